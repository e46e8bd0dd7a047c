"""Runs an app on a tenant's hosts: judges whether to measure, measures, places, starts, and reports."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from leeward import _native
from leeward._quantities import read_bytes
from leeward.data import data_folder
from leeward.errors import InputError, names
from leeward.placement import place_tasks
from leeward.tenant import network
from leeward.tenant.execution import Execution
from leeward.tenant.fleet import PORT, Fleet
from leeward.tenant.hosts import Host
from leeward.tenant.network import NIC, Survey

MEASURE = ("worthwhile", "always", "never")
"""When to measure the network: if the app may gain more time than that takes, always, or never."""
_TICK_S = 0.5


def run(
    app: str | PathLike[str],
    hosts: Sequence[Host],
    *,
    policies: str | Sequence[str] = "leeward",
    cluster: str | PathLike[str] | Mapping[str, Any] | None = None,
    measure: str = "worthwhile",
    nic: str = NIC,
    bottlenecks: bool = False,
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
        measure: One of `MEASURE`.
        nic: Rate of the hosts that is assumed before the network is measured.
        bottlenecks: True to search for shared bottlenecks too, which takes minutes.
        state: Size of the state that a task takes along when it moves.
        secret: Secret of listeners that run on the hosts already; by default the helpers listen themselves.
        port: Port for data on each host; 0 selects a free port.
        seed: Seed of tie-breaking and of the search for bottlenecks.
        on_step: Called with the name of each step.
        on_output: Called with a task and each line that its command prints.

    Returns:
        `app`; `network`, with `measured`, `why`, `kind`, `seconds`, `bytes` and `gain`; and `runs`, for each
        policy its `policy`, `forecast_s`, `wall_s`, `tasks`, `transfers` and `moves`.

    Raises:
        InputError: An argument or a file is invalid, or a task fits on no host.
        HostError: A host is unreachable, does not answer, or ends during the run. Everything is stopped.
    """
    chosen = names(policies)
    if measure not in MEASURE:
        raise InputError.about("measure", f"`{measure}`: expected one of {', '.join(MEASURE)}")
    if not chosen:
        raise InputError.about("policies", "expected at least one")
    state_bytes = read_bytes("state", state)
    content = _native.app_file(fspath(app), data_folder())
    step = on_step or (lambda _: None)
    known = None if cluster is None else network.with_resources(_cluster_fields(cluster), hosts)
    judged = _judge(app, hosts, nic, chosen[0], seed)
    why = _why_unmeasured(measure, known, judged)
    # Every policy must fit before any host works.
    for policy in chosen:
        _place(app, known or network.assumed(hosts, nic), policy, seed)
    step(f"starting helpers on {len(hosts)} hosts")
    with Fleet(hosts, port=port) as fleet:
        survey: Survey | None = None
        if why is None:
            step("measuring the network")
            key = network.start_listeners(fleet) if secret is None else secret
            survey = network.measure(fleet, key, bottlenecks=bottlenecks, seed=seed)
        believed = survey.cluster if survey else known or network.assumed(hosts, nic)
        results = []
        for policy in chosen:
            decision = _place(app, believed, policy, seed)
            where = {task["task"]: task["host"] for task in decision["tasks"]}
            step(f"running under {policy}")
            execution = Execution(fleet, content, where, state_bytes=state_bytes, on_output=on_output)
            execution.begin()
            while execution.ended_s is None:
                event = fleet.event(_TICK_S)
                if event is not None:
                    execution.handle(event)
            results.append(_result(policy, decision, execution))
    return {
        "app": content["name"],
        "network": {
            "measured": survey is not None,
            "why": why,
            "kind": survey and survey.kind,
            "seconds": survey.seconds if survey else 0.0,
            "bytes": survey.sent_bytes if survey else 0,
            "gain": judged,
        },
        "runs": results,
    }


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
    app: str | PathLike[str], hosts: Sequence[Host], nic: str, policy: str, seed: int
) -> dict[str, Any] | None:
    """Gain of the placement over random ones, on a network whose rates differ as EC2's did (Choreo, 7.1)."""
    decision = _place(app, network.varied(hosts, nic), policy, seed)
    gain: dict[str, Any] | None = decision["gain"]
    return gain and {**gain, "completion_s": decision["completion_s"]}


def _why_unmeasured(measure: str, known: Mapping[str, Any] | None, gain: dict[str, Any] | None) -> str | None:
    """Reason not to measure the network; None to measure it."""
    if known is not None:
        return "the cluster file has its rates"
    if measure == "never":
        return "not to be measured"
    if measure == "always":
        return None
    if gain is None:
        return "the app has no transfers"
    reasons = {
        "uniform": "random placements are about as good for this app",
        "short": "a measurement takes longer than a placement saves",
    }
    return reasons.get(gain["measurements"])


def _place(app: str | PathLike[str], cluster: Mapping[str, Any], policy: str, seed: int) -> dict[str, Any]:
    decision = place_tasks(dict(cluster), app, policy=policy, seed=seed, explain=0)
    if decision["refused"]:
        raise InputError.about(fspath(app), f"{decision['refused'][0]}, under {policy}")
    return decision


def _result(policy: str, decision: dict[str, Any], execution: Execution) -> dict[str, Any]:
    forecast = {(one["from"], one["to"]): one["seconds"] for one in decision["transfers"]}
    return {
        "policy": policy,
        "forecast_s": decision["completion_s"],
        "wall_s": execution.ended_s,
        "tasks": [{"task": task, "host": host} for task, host in execution.transfers.where.items()],
        "transfers": [
            {
                "from": one.source,
                "to": one.target,
                "bytes": one.size,
                "from_host": one.hosts[0][0],
                "to_host": one.hosts[0][1],
                "forecast_s": forecast.get((one.source, one.target)),
                "ended_s": one.ended_s,
                "rate_bps": one.rate_bps(),
                "pieces": one.pieces,
            }
            for one in execution.transfers.all
        ],
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
