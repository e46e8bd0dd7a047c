"""Runs an app on a tenant's hosts: judges whether to measure, measures, places, starts, and reports."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import Any

from leeward import _native
from leeward._files import atomic_file
from leeward._quantities import read_bytes, read_seconds
from leeward.data import data_folder
from leeward.errors import InputError, names
from leeward.placement import Reevaluation, place_tasks, reevaluate
from leeward.tenant import network
from leeward.tenant.execution import Execution
from leeward.tenant.fleet import PORT, Fleet
from leeward.tenant.hosts import Host
from leeward.tenant.network import NIC, Survey
from leeward.tenant.profile import profile as profile_app
from leeward.tenant.profile import read_source
from leeward.tenant.transfers import Transfers
from leeward.tenant.watch import Watch

MEASURE = ("worthwhile", "always", "never")
"""When to measure the network: if the app may gain more time than that takes, always, or never."""
PROFILE_FOR = "60s"
"""Longest time of the run of a profile."""
_TICK_S = 0.5
Matrix = list[list[float]]
"""Bytes from each task to each."""


def run(
    app: str | PathLike[str],
    hosts: Sequence[Host],
    *,
    policies: str | Sequence[str] = "leeward",
    cluster: str | PathLike[str] | Mapping[str, Any] | None = None,
    profile: str | None = None,
    profile_for: str | None = None,
    measure: str = "worthwhile",
    nic: str = NIC,
    shape: str = "hose",
    bottlenecks: bool = False,
    out: str | PathLike[str] | None = None,
    again: str | None = None,
    state: str = "0B",
    secret: str | None = None,
    port: int = PORT,
    seed: int = 1,
    on_step: Callable[[str], object] | None = None,
    on_output: Callable[[str, str], object] | None = None,
) -> dict[str, Any]:
    """Runs an app on hosts, under one policy or under several, one after another.

    Args:
        app: An app file. Leeward sends its transfers over TCP; or, if its tasks have commands, starts these,
            and the transfers say what they send to each other.
        hosts: Hosts of the tenant, at least two, from `listed`, `read_hosts` or `lab_hosts`.
        policies: Policies for tasks, with settings after colons.
        cluster: A cluster file with all hosts, or its fields, instead of a measurement.
        profile: How to profile an app of commands, which runs once before, to place it by what its tasks send
            instead of by the transfers of the file: `capture` on the hosts with tcpdump, which needs root
            there; or `sflow:PORT`, by sFlow datagrams to this port of this machine.
        profile_for: Longest time of that run; by default `PROFILE_FOR`.
        measure: One of `MEASURE`.
        nic: Rate of the hosts that is assumed before the network is measured.
        shape: Shape of the measured network: `hose`, whose hosts have a limit for all their paths together,
            or `pipe`. With `bottlenecks`, the search chooses.
        bottlenecks: True to search for shared bottlenecks too, so that placement counts links that several
            hosts share. It needs three hosts and takes minutes; then trains run one at a time.
        out: Cluster file to write if the network is measured, for `cluster` of later runs.
        again: Time between looks at the placement while the app runs, besides those between its phases; by
            default it is not looked at again.
        state: Size of the state that a task takes along when it moves.
        secret: Secret of listeners that run on the hosts already; by default the helpers listen themselves.
        port: Port for data on each host; 0 selects a free port.
        seed: Seed of tie-breaking and of the search for bottlenecks.
        on_step: Called with the name of each step.
        on_output: Called with a task and each line that its command prints.

    Returns:
        `app`; `matrix`, the profiled bytes from each task to each, or None; `network`, with `measured`,
        `why`, `kind`, `shared_links` (as in a cluster file), `seconds`, `bytes` and `gain`; and `runs`, for
        each policy its `policy`, `forecast_s`, `cost`, `wall_s`, `tasks`, `transfers`, `looks` and `moves`.

    Raises:
        InputError: An argument or a file is invalid, or a task fits on no host.
        HostError: A host is unreachable, does not answer, or ends during the run. Everything is stopped.
    """
    chosen = names(policies)
    if measure not in MEASURE:
        raise InputError.about("measure", f"`{measure}`: expected one of {', '.join(MEASURE)}")
    if not chosen:
        raise InputError.about("policies", "expected at least one")
    if bottlenecks and len(hosts) < network.LEAST_SEARCHED:
        message = f"{len(hosts)} hosts: expected at least {network.LEAST_SEARCHED}, to compare paths from one"
        raise InputError.about("bottlenecks", message)
    if out is not None and cluster is not None:
        raise InputError.about("out", "the cluster file has the rates, so nothing is measured")
    state_bytes = read_bytes("state", state)
    content = _native.app_file(fspath(app), data_folder())
    every_s = None if again is None else read_seconds("again", again)
    if every_s is not None and every_s <= 0:
        raise InputError.about("again", f"`{again}`: expected a time above 0")
    if every_s is not None and any(task["command"] for task in content["tasks"]):
        raise InputError.about("again", "tasks with a command cannot move; leave it out")
    step = on_step or (lambda _: None)
    matrix = _profile(app, content, hosts, profile, profile_for, port, step)
    known = None if cluster is None else network.with_resources(_cluster_fields(cluster), hosts)
    judged = _judge(app, matrix, hosts, nic, chosen, seed, bottlenecks)
    why = _why_unmeasured(measure, known, judged, content["bounded"])
    # Every policy must fit before any host works.
    for policy in chosen:
        _place(app, matrix, known or network.assumed(hosts, nic), hosts, policy, seed)
    step(f"starting helpers on {len(hosts)} hosts")
    with Fleet(hosts, port=port) as fleet:
        surveyor = _Surveyor(fleet, secret, None if bottlenecks else shape, seed)
        survey: Survey | None = None
        if why is None:
            step("measuring the network")
            survey = surveyor.measure(bottlenecks)
            if out is not None:
                _write(out, survey.cluster)
        believed = survey.cluster if survey else known or network.assumed(hosts, nic)
        results = []
        for policy in chosen:
            decision = _place(app, matrix, believed, hosts, policy, seed)
            where = {task["task"]: task["host"] for task in decision["tasks"]}
            step(f"running under {policy}")
            execution = Execution(
                fleet,
                content,
                where,
                state_bytes=state_bytes,
                waits_between_phases=every_s is not None,
                on_output=on_output,
            )
            watch = None
            if every_s is not None:
                watch = Watch(
                    fleet,
                    execution,
                    every_s=every_s,
                    survey_s=survey.seconds if survey and not bottlenecks else surveyor.expected_s(),
                    believed=believed,
                    judge=_judge_of(app, content, hosts, policy, state, seed),
                    measure=surveyor.measure,
                )
            _finish(fleet, execution, watch)
            results.append(_result(policy, decision, execution, watch.looks if watch else []))
    return {
        "app": content["name"],
        "matrix": matrix,
        "network": {
            "measured": survey is not None,
            "why": why,
            "kind": survey and survey.kind,
            "shared_links": survey.cluster.get("shared_links", []) if survey else [],
            "seconds": survey.seconds if survey else 0.0,
            "bytes": survey.sent_bytes if survey else 0,
            "gain": judged,
        },
        "runs": results,
    }


def _profile(
    app: str | PathLike[str],
    content: Mapping[str, Any],
    hosts: Sequence[Host],
    source: str | None,
    longest: str | None,
    port: int,
    step: Callable[[str], object],
) -> Matrix | None:
    """Runs an app of commands on hosts in turn, and returns its traffic matrix; None without a source."""
    if source is None:
        if longest is not None:
            raise InputError.about("profile_for", "it is the time of `profile`; give both")
        return None
    most_s = read_seconds("profile_for", longest or PROFILE_FOR)
    sflow_port = read_source(source)
    if not all(task["command"] for task in content["tasks"]):
        raise InputError.about("profile", "expected tasks with commands; transfers of a file need no profile")
    decision = _place(app, None, network.assumed(hosts), hosts, "round-robin", 1)
    where = {task["task"]: task["host"] for task in decision["tasks"]}
    step(f"profiling the app, at most {most_s:g} s")
    with Fleet(hosts, port=port) as fleet:
        return profile_app(fleet, content, where, sflow_port, most_s, step)


class _Surveyor:
    """Measures the network, and keeps the shape and the shared links of the first measurement."""

    def __init__(self, fleet: Fleet, secret: str | None, shape: str | None, seed: int) -> None:
        self._fleet, self._secret, self._shape, self._seed = fleet, secret, shape, seed
        self._listens = secret is not None
        self._shared: dict[str, Any] = {}

    def expected_s(self, bottlenecks: bool = False) -> float:
        """Time that a measurement takes, in seconds."""
        alone = self._is_alone(bottlenecks)
        return network.survey_s(len(self._fleet.hosts), alone=alone, bottlenecks=bottlenecks)

    def _is_alone(self, bottlenecks: bool) -> bool:
        """True if trains run one at a time, so that none meets another on a shared link."""
        return bottlenecks or bool(self._shared)

    def measure(self, bottlenecks: bool = False) -> Survey:
        """Measures the network; `bottlenecks`: searches for shared links too."""
        if not self._listens:
            self._secret = network.start_listeners(self._fleet)
            self._listens = True
        shape = None if bottlenecks else self._shape or "hose"
        # Hops tell which hosts share a machine, beyond the limits of a hose.
        arguments: dict[str, Any] = {"hops": True, "shape": shape, "seed": self._seed}
        if bottlenecks:
            arguments |= {"bottlenecks": True, "pairs": network.PAIRS}
        if self._is_alone(bottlenecks):
            arguments["at_once"] = 1
        survey = network.measure(self._fleet, self._secret, **arguments)
        if bottlenecks:
            self._shape = survey.cluster["shape"]
            self._shared = {key: survey.cluster[key] for key in ("shared_links",) if key in survey.cluster}
        return replace(survey, cluster={**survey.cluster, **self._shared})


def _judge_of(
    app: str | PathLike[str],
    content: Mapping[str, Any],
    hosts: Sequence[Host],
    policy: str,
    state: str,
    seed: int,
) -> Callable[[dict[str, Any], Transfers, bool], Reevaluation]:
    """Re-evaluates what is left of an app under a policy."""
    tasks = [task["task"] for task in content["tasks"]]

    def judge(cluster: dict[str, Any], transfers: Transfers, of_phase: bool) -> Reevaluation:
        rest = transfers.matrices(tasks, of_phase=of_phase)
        return reevaluate(
            app,
            cluster,
            transfers.where,
            remaining=rest,
            move_cost=state,
            exclude=network.other_hosts(cluster, hosts),
            policy=policy,
            seed=seed,
        )

    return judge


def _finish(fleet: Fleet, execution: Execution, watch: Watch | None) -> None:
    """Runs an app to its end."""
    execution.begin()
    while execution.ended_s is None:
        event = fleet.event(_TICK_S)
        if event is not None and execution.handle(event) and watch:
            watch.note(event)
        if watch:
            watch.step()


def _write(path: str | PathLike[str], cluster: Mapping[str, Any]) -> None:
    """Writes a cluster file."""
    import yaml

    try:
        with atomic_file(path) as temporary:
            temporary.write_text(yaml.safe_dump(dict(cluster), sort_keys=False), encoding="utf-8")
    except OSError as error:
        raise InputError.about("out", f"`{fspath(path)}`: {error.strerror or error}") from None


def _cluster_fields(cluster: str | PathLike[str] | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(cluster, Mapping):
        return cluster
    import yaml

    # The reader of cluster files names the line of an error.
    _native.Cluster.from_file(cluster)
    with open(cluster, encoding="utf-8") as file:
        content: Mapping[str, Any] = yaml.safe_load(file)
    return content


def _judge(
    app: str | PathLike[str],
    matrix: Matrix | None,
    hosts: Sequence[Host],
    nic: str,
    policies: Sequence[str],
    seed: int,
    bottlenecks: bool,
) -> dict[str, Any] | None:
    """Largest gain of the policies over random placements, on a network whose rates differ as EC2's did.

    See Choreo, section 7.1.
    """
    survey_s = network.survey_s(len(hosts), alone=bottlenecks, bottlenecks=bottlenecks)
    largest, most_s = None, -math.inf
    for policy in policies:
        decision = _place(app, matrix, network.varied(hosts, nic), hosts, policy, seed)
        gain, completion_s = decision["gain"], decision["completion_s"]
        if gain is None or completion_s is None:
            continue
        saved_s = gain["random_s"] - completion_s
        if saved_s > most_s:
            is_short = gain["measurements"] == "worthwhile" and saved_s <= survey_s
            measurements = "short" if is_short else gain["measurements"]
            largest, most_s = {**gain, "measurements": measurements}, saved_s
            largest |= {"policy": policy, "completion_s": completion_s, "survey_s": survey_s}
    return largest


def _why_unmeasured(
    measure: str, known: Mapping[str, Any] | None, gain: dict[str, Any] | None, is_bounded: bool
) -> str | None:
    """Reason not to measure the network; None to measure it.

    Raises:
        InputError: The app has bounds on round-trip times, and they are not to be measured.
    """
    if known is not None:
        return "the cluster file has its rates"
    if measure == "never" and is_bounded:
        message = "`never`: bounds on round-trip times need a measurement, or a cluster file with these times"
        raise InputError.about("measure", message)
    if measure == "never":
        return "not to be measured"
    if measure == "always" or is_bounded:
        return None
    if gain is None:
        return "the app has no transfers"
    reasons = {
        "uniform": "random placements are about as good for this app",
        "short": "a measurement takes longer than a placement saves",
    }
    return reasons.get(gain["measurements"])


def _place(
    app: str | PathLike[str],
    matrix: Matrix | None,
    cluster: Mapping[str, Any],
    hosts: Sequence[Host],
    policy: str,
    seed: int,
) -> Mapping[str, Any]:
    exclude = network.other_hosts(cluster, hosts)
    decision = place_tasks(
        dict(cluster), app, matrix=matrix, exclude=exclude, policy=policy, seed=seed, explain=0
    )
    if decision["refused"]:
        raise InputError.about(fspath(app), f"{decision['refused'][0]}, under {policy}")
    return decision


def _seen_s(look: dict[str, Any], ended_s: float | None) -> float | None:
    """Time that moves saved: the end without them, as forecast, less the end."""
    if not look.get("moves") or look["before_s"] is None or ended_s is None:
        return None
    return float(look["resumed_s"] + look["before_s"] - ended_s)


def _result(
    policy: str, decision: Mapping[str, Any], execution: Execution, looks: list[dict[str, Any]]
) -> dict[str, Any]:
    forecast = {(one["phase"], one["from"], one["to"]): one["seconds"] for one in decision["transfers"]}
    return {
        "policy": policy,
        "forecast_s": decision["completion_s"],
        "cost": decision["cost"],
        "wall_s": execution.ended_s,
        "tasks": [{"task": task, "host": host} for task, host in execution.transfers.where.items()],
        "transfers": [
            {
                "from": one.source,
                "to": one.target,
                "bytes": one.size,
                "phase": one.phase,
                "from_host": one.hosts[0][0],
                "to_host": one.hosts[0][1],
                "forecast_s": forecast.get((one.phase, one.source, one.target)),
                "ended_s": one.ended_s,
                "rate_bps": one.rate_bps(),
                "pieces": one.pieces,
            }
            for one in execution.transfers.all
        ],
        "looks": [{**look, "seen_s": _seen_s(look, execution.ended_s)} for look in looks],
        "moves": [
            {
                "task": move.task,
                "from": move.source,
                "to": move.target,
                "began_s": move.began_s,
                "ended_s": move.ended_s,
                "state_bytes": move.state_bytes,
            }
            for move in execution.moves
        ],
    }
