"""Single decisions: hosts for the copies of a block, or for the tasks of an app."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, cast

from leeward import _native
from leeward._age import MAX_AGE, now_and_max_age
from leeward._inputs import App, Document, Links, app_document, current_hosts, link_rows, size_text
from leeward._matrices import csv_path, errors_name_file, phases, rows_of
from leeward._policies import Policy, choose_one
from leeward._quantities import read_move_cost
from leeward.data import data_folder, hint_fetch
from leeward.decisions import MoveDecision, ReplicaDecision, TaskDecision
from leeward.errors import MOST_SEED, InputError, label_values, name_arguments, names, whole_number
from leeward.simulation import name_policy

ALL = 65_535
"""Keeps every candidate."""
ClusterSource = _native.Cluster | Document
"""A cluster, or anything that `Cluster(...)` takes."""
POLICY_KINDS = ("replicas", "tasks", "moves", "coflows", "admission")
"""Kinds of plug-ins that are policies."""


def place_replicas(
    cluster: ClusterSource,
    size: str | int,
    *,
    policy: Policy = "sinbad",
    telemetry: Links | None = None,
    max_age: str = MAX_AGE,
    writer: str | None = None,
    replicas: int | None = None,
    coding: str | None = None,
    fault_domains: int | None = None,
    exclude: Sequence[str] | str = (),
    tags: Sequence[str] | str = (),
    collocate: Sequence[str] | str = (),
    max_imbalance: float | None = None,
    existing: Sequence[str] | str = (),
    prefer: Sequence[str] | str = (),
    storage: str | None = None,
    labels: Mapping[str, str | Sequence[str]] | None = None,
    seed: int = 1,
    explain: int = ALL,
) -> ReplicaDecision:
    """Chooses the hosts of the copies of a block, or of the chunks of its stripe.

    Args:
        cluster: A `Cluster`, or anything that `Cluster(...)` takes.
        size: Size of the block, such as `256MiB`; a number is one of bytes.
        policy: A policy, with settings after colons: `sinbad:remote_racks=2`; or a policy of your own (see
            `leeward.policy`).
        telemetry: Loads of links: a CSV file or a table with the columns `link` and `load_bps`, or a mapping
            of names of links to bits per second. Links without a row have an unknown load.
        max_age: Greatest age of the latest load of each link, if `telemetry` has a column `t_s` in seconds
            since 1970.
        writer: Host that writes; None for a writer outside the cluster.
        replicas: Copies, the writer's included: 1 to 255, by default 3. Not with `coding`.
        coding: Erasure code, such as `6+3`: instead of copies, each host holds a chunk.
        fault_domains: Number of fault domains, besides that of the first copy, that must hold a copy, 0 to
            255; by default 1, and 0 for a single copy. With `coding`, number of fault domains that may be
            lost.
        exclude: Hosts, racks and pods that must not hold a copy; a text is one name.
        tags: Tags that hosts must have; a text is one tag.
        collocate: Hosts of related files: if any are given, no other host may hold a copy; a text is one
            name.
        max_imbalance: Greatest excess of a host's used share of storage over the average of all hosts, 0 to
            1.
        existing: Hosts that have a copy already: `replicas` counts the new copies only, and without a writer,
            one of these hosts sends them; a text is one name. With `coding`, hosts that have a chunk: only
            the others are placed.
        prefer: Hosts to try first, in this order; a text is one name.
        storage: Type of storage that holds the copies, as `type` of devices in the cluster file.
        labels: Labels that hosts must have, each with its value or with one of several values.
        seed: Seed of tie-breaking.
        explain: Number of candidates of each level to keep in `why`.

    Returns:
        `hosts` (in the order of the chain, or None), `source` (the host of an existing copy that sends the
        new ones, or None), `refused` (reason without a placement, or None), `note`
        (reason why the policy left the choice to another policy, or None), `why` (candidates, the best first,
        each with its limit, the source of its load, its score and its outcome), `policy`, and
        `oldest_telemetry_s`.

    Raises:
        InputError: The cluster, the telemetry or an argument is invalid.
    """
    if replicas is not None:
        whole_number("replicas", replicas, 1, 255)
    if fault_domains is not None:
        whole_number("fault_domains", fault_domains, 0, 255)
    whole_number("seed", seed, 0, MOST_SEED)
    whole_number("explain", explain, 0)
    network = _native.Cluster(cluster)
    wall_clock = now_and_max_age(max_age)
    label, own = choose_one(policy)
    with name_arguments(), name_policy("policy"):
        answer = _native.place_replicas(
            network,
            label,
            size_text("size", size),
            telemetry=link_rows(telemetry, "telemetry", "load_bps"),
            writer=writer,
            replicas=replicas,
            coding=coding,
            fault_domains=fault_domains,
            exclude=names(exclude),
            tags=names(tags),
            collocate=names(collocate),
            max_imbalance=max_imbalance,
            existing=names(existing),
            prefer=names(prefer),
            storage=storage,
            labels=label_values(labels),
            seed=seed,
            explain=min(explain, ALL),
            clock=wall_clock,
            own=own,
        )
    return cast(ReplicaDecision, answer)


def place_tasks(
    cluster: ClusterSource,
    app: App | None = None,
    *,
    policy: Policy = "leeward",
    matrix: str | PathLike[str] | Sequence[Sequence[float]] | Any | None = None,
    cpus: str | float | None = None,
    memory: str | int | None = None,
    telemetry: Links | None = None,
    cross_traffic: Links | None = None,
    max_age: str = MAX_AGE,
    exclude: Sequence[str] | str = (),
    tags: Sequence[str] | str = (),
    labels: Mapping[str, str | Sequence[str]] | None = None,
    apart: str | None = None,
    together: bool = True,
    seed: int = 1,
    explain: int = ALL,
) -> TaskDecision:
    """Chooses the hosts of the tasks of an app.

    Args:
        cluster: A `Cluster`, or anything that `Cluster(...)` takes.
        app: Tasks and the transfers between them: an app file, or a mapping with its fields, in which lists
            may be tables; or a directed graph of networkx, whose nodes are tasks, with `cpus` and `memory`,
            and whose edges are transfers, with `bytes`. Without an app, the `matrix` alone is one, with a
            task for each row: `task0`, `task1` and so on.
        policy: A policy for tasks, with settings after colons: `choreo:ties=lowest`; or a policy of your own
            (see `leeward.policy`).
        matrix: Traffic matrix that replaces the transfers of the file: bytes from each task to each, as an
            array or rows, or as a file: a NumPy file (`.npy`), or a square of numbers as CSV without a
            header, by its path or as `data:NAME/FILE` below the folder of traces.
        cpus: Processors of each task of a matrix alone, such as `2` or `500m`; by default 1.
        memory: Memory of each of these tasks, such as `4GiB`; by default none.
        telemetry: Loads of links, as in `place_replicas`.
        max_age: Greatest age of the latest load of each link, if `telemetry` has a column `t_s` in seconds
            since 1970.
        cross_traffic: Numbers of connections of others that share a link, as `leeward probe cross` counts
            them: a CSV file or a table with the columns `link` and `connections`, or a mapping. They replace
            those of the cluster.
        exclude: Hosts, racks and pods that must not run a task; a text is one name.
        tags: Tags that hosts must have; a text is one tag.
        labels: Labels that hosts must have, each with its value or with one of several values.
        apart: `host` or `rack`: no two tasks share a host, or a rack. By default they may.
        together: True to place the tasks as one app, completely or not at all. False to place tasks
            one after the other, as a scheduler receives them; then the app has no transfers.
        seed: Seed of tie-breaking.
        explain: Number of candidates of each task to keep in `why`.

    Returns:
        `tasks` (each with its `host`, or None), `refused` (a list of reasons: one for the app, or with
        `together=False` one for each task without a host; None if all tasks have hosts),
        `completion_s` (end of the last transfer by the model of Choreo's appendix), `transfers` (each with
        its phase, its hosts, its limiting link and its end), `goal` of the app, `cost` (of the hosts, per
        hour; None if no host has a cost), `time_gap` and `cost_gap` (the share of the
        completion time, and of the cost, that another placement might still save, from policies that know
        it; for the goal that comes second, without a loss in the first), `proven` (whether both are zero),
        `gain` (over random placements:
        their median `random_s`; `survey_s`, the time to measure the network; and `measurements`, which are
        `worthwhile`, or not for an app that is `short` or `uniform`; None without transfers), `why`,
        `policy`, `app` and `oldest_telemetry_s`.

    Raises:
        InputError: The cluster, the app, the telemetry or an argument is invalid.
    """
    whole_number("seed", seed, 0, MOST_SEED)
    whole_number("explain", explain, 0)
    network = _native.Cluster(cluster)
    wall_clock = now_and_max_age(max_age)
    square = csv_path(matrix)
    label, own = choose_one(policy)
    with name_arguments(), errors_name_file(matrix), name_policy("policy"), hint_fetch():
        answer = _native.place_tasks(
            network,
            label,
            app_document(app),
            matrix=None if matrix is None or square is not None else rows_of(matrix),
            square=square,
            cpus=None if cpus is None else str(cpus),
            memory=None if memory is None else size_text("memory", memory),
            data=data_folder(),
            telemetry=link_rows(telemetry, "telemetry", "load_bps"),
            cross_traffic=link_rows(cross_traffic, "cross_traffic", "connections"),
            exclude=names(exclude),
            tags=names(tags),
            labels=label_values(labels),
            apart=apart,
            together=together,
            seed=seed,
            explain=min(explain, ALL),
            clock=wall_clock,
            own=own,
        )
    return cast(TaskDecision, answer)


@dataclass(frozen=True)
class Reevaluation:
    """Answer of `reevaluate`. Times are forecasts in seconds from now; None if a link carries nothing."""

    moves: list[dict[str, str]]
    """Tasks to move, each with `task`, `from` and `to` (hosts); empty if the app should stay."""
    before_s: float | None
    """End of the remaining transfers on the current hosts."""
    after_s: float | None
    """End of the remaining transfers on the new hosts, the cost of the moves included."""
    gain_s: float | None
    """`before_s` minus `after_s`; negative if the moves cost more than they save."""
    cost_s: float | None
    """Duration of the moves."""
    worth_it: bool
    """True if the app should move."""
    reason: str
    """Reason for which the app should move or stay."""
    app: str
    """Name of the app."""
    policy: str
    """Policy, as given."""


def reevaluate(
    app: App,
    cluster: ClusterSource,
    where: Mapping[str, Any] | str | PathLike[str],
    *,
    remaining: str | PathLike[str] | Sequence[Sequence[float]] | Any | None = None,
    move_cost: str | float | None = None,
    margin: float = 0.1,
    policy: Policy = "leeward",
    telemetry: Links | None = None,
    cross_traffic: Links | None = None,
    max_age: str = MAX_AGE,
    exclude: Sequence[str] | str = (),
    tags: Sequence[str] | str = (),
    labels: Mapping[str, str | Sequence[str]] | None = None,
    apart: str | None = None,
    seed: int = 1,
) -> Reevaluation:
    """Decides if the tasks of a running app should move to other hosts (Choreo, section 2.4).

    The policy places the remaining transfers again, as if the app were absent. The app should move if the
    moves and the rest of the transfers take less time than the rest on the current hosts, by `margin`.

    Args:
        app: Tasks and the transfers between them, as in `place_tasks`.
        cluster: A `Cluster`, or anything that `Cluster(...)` takes.
        where: Current host of each task by its name; or an answer of `place_tasks`; or the path of a file
            with either, as JSON.
        remaining: Bytes that each task still has to send to each, as `matrix` of `place_tasks`; or such an
            array, or file, for each phase that is left, in order. By default all bytes of the app.
        move_cost: A size (`2GiB`): the state that each task which moves carries over the network. Or a time
            (`30s`, or a number of seconds): the app stands still for it, and tasks carry nothing. By default
            each task carries its memory.
        margin: Share of the remaining time that the moves must save, their cost included: 0 to 1.
        policy: A policy for tasks, with settings after colons: `choreo:ties=lowest`; or a policy of your own
            (see `leeward.policy`).
        telemetry: Loads of links, with the traffic of the app, as in `place_replicas`.
        cross_traffic: Numbers of connections of others that share a link, without those of the app, as in
            `place_tasks`.
        max_age: As in `place_tasks`.
        exclude: As in `place_tasks`.
        tags: As in `place_tasks`.
        labels: As in `place_tasks`.
        apart: As in `place_tasks`.
        seed: Seed of tie-breaking.

    Raises:
        InputError: The cluster, the app, a file or an argument is invalid, or a task has no known host.
    """
    whole_number("seed", seed, 0, MOST_SEED)
    if not 0 <= margin <= 1:
        raise InputError.about("margin", f"{margin}: expected a share from 0 to 1")
    network = _native.Cluster(cluster)
    pause_s, state = (0.0, None) if move_cost is None else read_move_cost(move_cost)
    hosts = current_hosts(where)
    wall_clock = now_and_max_age(max_age)
    square = csv_path(remaining)
    label, own = choose_one(policy)
    with name_arguments(), errors_name_file(remaining), name_policy("policy"), hint_fetch():
        answer = _native.reevaluate(
            network,
            label,
            app_document(app),
            hosts,
            remaining=None if remaining is None or square is not None else phases(remaining),
            square=square,
            data=data_folder(),
            pause_s=pause_s,
            state=state,
            margin=margin,
            telemetry=link_rows(telemetry, "telemetry", "load_bps"),
            cross_traffic=link_rows(cross_traffic, "cross_traffic", "connections"),
            exclude=names(exclude),
            tags=names(tags),
            labels=label_values(labels),
            apart=apart,
            seed=seed,
            clock=wall_clock,
            own=own,
        )
    return Reevaluation(**answer)


def migrate(
    cluster: ClusterSource,
    running: Document,
    telemetry: Links,
    *,
    max_age: str = MAX_AGE,
    policy: str = "utp",
    hot: float | None = None,
    seed: int = 1,
) -> MoveDecision:
    """Chooses running tasks that should leave hot racks.

    Args:
        cluster: A `Cluster`, or anything that `Cluster(...)` takes.
        running: Running tasks and the interruptions that their jobs accept: a file, or a mapping with its
            fields.
        telemetry: Loads of links, as in `place_replicas`; a link is hot if it was hot in the last window.
        max_age: Greatest age of the latest load of each link, if `telemetry` has a column `t_s` in seconds
            since 1970.
        policy: A policy for moves, with settings after colons: `utp:margin=0.1`.
        hot: Utilization above which a link is hot, a share above 0 and at most 1; by default 0.75.
        seed: Seed of tie-breaking.

    Returns:
        `hot` (hot links, with their utilization before and after the moves), `moves` (in the order in which
        to make them), `kept` (tasks that stay on a link that stays hot, with reasons), `refused` (reason
        without an answer, or None) and `policy`.

    Raises:
        InputError: The cluster, a file or an argument is invalid.
    """
    whole_number("seed", seed, 0, MOST_SEED)
    if hot is not None and not 0 < hot <= 1:
        raise InputError.about("hot", f"{hot}: expected a share above 0 and at most 1")
    network = _native.Cluster(cluster)
    wall_clock = now_and_max_age(max_age)
    with name_arguments(), name_policy("policy"):
        loads = link_rows(telemetry, "telemetry", "load_bps")
        answer = _native.migrate(network, policy, running, loads, hot=hot, seed=seed, clock=wall_clock)
    return cast(MoveDecision, answer)


def policies() -> list[dict[str, Any]]:
    """Every registered policy: `kind`, `name`, `summary`, `source`, and `settings` as JSON schema."""
    return [
        {key: value for key, value in plug_in.items() if key != "aliases"}
        for plug_in in _native.plug_ins()
        if plug_in["kind"] in POLICY_KINDS
    ]
