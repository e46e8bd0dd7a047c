"""Ports of a link: which series are the same port, and which are counted in another one.

A link may have several series. Each has one of these relations to the others of its link:

* *Follows*: it begins after another has ended, because a label of the port changed. Both are one port.
* *Replica*: it runs beside another with the same device and port, and has its values, because two servers
  read the port. One is kept, and the other only where the first has no readings.
* *Aggregate*: a bond, whose growth is the sum of that of its members on the same device. It is left out; if
  it carries more than the members that are seen, they are left out instead.
* *Sub-interface*: a VLAN of a port that is there as well. It is left out.
* Any other is a port of its own, and the link is a bundle.

A port whose speed is unknown has an equal part of the capacity in the cluster file, among the ports that run
beside each other: the number of series does not matter.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import ibis

from leeward.telemetry.discards import Discards
from leeward.telemetry.engine import Engine

WINDOWS = 16
"""Greatest number of spans in which the growth of two series is compared."""
READINGS = 8
"""Readings of a series in such a span, at least."""
ALIKE = 0.1
"""Greatest difference between two series that are alike in a span, relative to the larger."""
ALIKE_IN_TOTAL = 0.05
"""The same over all spans."""
SAME = 3
"""Cadences of growth by which two readings of one counter may differ, because they are of different times."""
OVERLAP = 2
"""Cadences by which a series may begin before the end of the one that it follows."""
SERVER = "prometheus_server"
"""Label of the server of a series, if there are several."""
NAMES = ("ifname", "interface", "interface_name", "ifdescr", "port", "port_name", "nic", "netdev")
"""Labels that name a port on its device, the first of which counts."""
DEVICES = ("device", "instance", "source", "producer", "node", "hostname", "switch", "target", "agent")
"""Labels that name a device. `device` names a port if another of them is there, and no label of `NAMES`."""
_AGGREGATE = re.compile(
    r"(bond|team|lag|ae|po|port-?channel|bundle-?ether|eth-?trunk|trunk|reth|br)[-_ ]?\d+", re.IGNORECASE
)
FOREVER = 2**62


@dataclass
class Run:
    """A series of a link.

    Attributes:
        key: Labels as one text.
        way: Direction.
        link: Number of the link.
        labels: Labels.
        number: Number of readings.
        first_ms: Time of the first reading.
        last_ms: Time of the last reading.
        text: The series in messages.
        since_ms: Readings up to this time do not count.
        growth: For each span, growth per millisecond, or the mean of a rate.
        ends: For each span, the time and value of the last reading of a counter.
    """

    key: str
    way: str
    link: int
    labels: Mapping[str, str]
    number: int
    first_ms: int
    last_ms: int
    text: str
    since_ms: int = -FOREVER
    growth: dict[int, float] = field(default_factory=dict)
    ends: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def port(self) -> str:
        """Name of the port on its device; empty if no label is one."""
        return _port(self.labels)[1]

    @property
    def device(self) -> tuple[tuple[str, str], ...]:
        """Labels of the device."""
        return _port(self.labels)[0]


def _port(labels: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], str]:
    plain = {re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_"): text for name, text in labels.items()}
    device = {name: plain[name] for name in DEVICES if name in plain}
    name = next((plain[name] for name in NAMES if plain.get(name)), "")
    if not name and len(device) > 1 and "device" in device:
        name = device.pop("device")
    if not name:
        name = plain.get("ifindex") or plain.get("if_index", "")
    return tuple(device.items()), name


def beside(runs: Sequence[Run], cadence_ms: int) -> list[list[Run]]:
    """Series of a link as the fewest chains in which each follows the one before."""
    chains: list[list[Run]] = []
    for run in sorted(runs, key=lambda run: (run.first_ms, run.last_ms, run.key)):
        free = [chain for chain in chains if chain[-1].last_ms < run.first_ms + OVERLAP * cadence_ms]
        # A chain of the same port comes before one that ended shortly before.
        chain = max(free, key=lambda chain: (chain[-1].port == run.port, chain[-1].last_ms), default=None)
        if chain is None:
            chains.append([run])
        else:
            chain.append(run)
    return chains


def ports(
    runs: Sequence[Run],
    engine: Engine,
    table: ibis.Table,
    by: Sequence[str],
    counter: bool,
    cadence_ms: int,
    replica_labels: Sequence[str],
    discards: Discards,
) -> list[tuple[Run, int]]:
    """Series that count, each with the number of ports of its link.

    Args:
        runs: All series of links.
        engine: Engine of the readings.
        table: Valid readings: the columns `by`, `t_ms` and `value`.
        by: `key`, or `key` and `way`.
        counter: True if values are counters.
        cadence_ms: Usual time between readings.
        replica_labels: Labels of copies, in addition to the usual ones.
        discards: Counts readings of series that are left out.
    """
    of_link: dict[int, list[Run]] = {}
    for run in runs:
        of_link.setdefault(run.link, []).append(run)
    several = [group for group in of_link.values() if len(group) > 1 and len(beside(group, cadence_ms)) > 1]
    if several:
        compared = [run for group in several for run in group]
        _compare(compared, engine, table, by, counter, cadence_ms)
    result: list[tuple[Run, int]] = []
    for group in of_link.values():
        kept = group
        if len(group) > 1:
            kept = _without_replicas(group, frozenset((*replica_labels, SERVER)), cadence_ms, discards)
            kept = _without_parts(kept, discards)
        chains = beside(kept, cadence_ms)
        for one, other in (pair for chain in chains for pair in pairwise(chain)):
            other.since_ms = max(other.since_ms, one.last_ms)
        result.extend((run, max(1, len(chains))) for run in kept)
    return result


def _compare(
    runs: Sequence[Run], engine: Engine, table: ibis.Table, by: Sequence[str], counter: bool, cadence_ms: int
) -> None:
    """Sets the growth of series in spans of equal length."""
    first, last = min(run.first_ms for run in runs), max(run.last_ms for run in runs)
    readings = max(1, (last - first) // cadence_ms)
    spans = int(min(WINDOWS, max(1, readings // READINGS)))
    length = (last - first) // spans + 1
    some = table.filter(table.key.isin([run.key for run in runs]))
    with_span = some.mutate(span=((some.t_ms - first) // length).cast("int64"))
    grouped = with_span.group_by([*by, "span"]).agg(
        first_ms=with_span.t_ms.min(),
        last_ms=with_span.t_ms.max(),
        before=with_span.value.argmin(with_span.t_ms),
        after=with_span.value.argmax(with_span.t_ms),
        mean=with_span.value.cast("float64").mean(),
    )
    found = {(run.key, run.way if len(by) > 1 else ""): run for run in runs}
    for row in engine.arrow(grouped).to_pylist():
        run = found.get((row["key"], row.get("way", "")))
        if run is None:
            continue
        if not counter:
            run.growth[row["span"]] = row["mean"]
            continue
        run.ends[row["span"]] = row["last_ms"], row["after"]
        if row["last_ms"] > row["first_ms"] and row["after"] >= row["before"]:
            run.growth[row["span"]] = (row["after"] - row["before"]) / (row["last_ms"] - row["first_ms"])


def _alike(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
    """True if two series agree in most spans that both have, and in their sum; false if both are idle."""
    both = one.keys() & other.keys()
    if not any(one[at] or other[at] for at in both):
        return False
    agree = sum(abs(one[at] - other[at]) <= ALIKE * max(one[at], other[at]) for at in both)
    sums = sum(one[at] for at in both), sum(other[at] for at in both)
    return agree >= 0.9 * len(both) and abs(sums[0] - sums[1]) <= ALIKE_IN_TOTAL * max(sums)


def _same_counter(one: Run, other: Run, cadence_ms: int) -> bool:
    """True if the readings of two series are of one counter, at somewhat different times."""
    both = one.ends.keys() & other.ends.keys()
    fastest = max([*one.growth.values(), *other.growth.values()], default=0.0)
    for at in both:
        (one_ms, one_value), (other_ms, other_value) = one.ends[at], other.ends[at]
        apart_ms = abs(one_ms - other_ms) + SAME * cadence_ms
        if abs(one_value - other_value) > fastest * apart_ms:
            return False
    return bool(both)


def _without_replicas(
    group: Sequence[Run], declared: frozenset[str], cadence_ms: int, discards: Discards
) -> list[Run]:
    """Series without copies of others. A copy stays where its original has no readings."""
    kept: list[Run] = []
    for run in sorted(group, key=lambda run: (-run.number, run.key, run.way)):
        original = next((other for other in kept if _is_replica(run, other, declared, cadence_ms)), None)
        if original is None:
            kept.append(run)
            continue
        discards.count("replica", run.number, f"{run.text}: a copy of {original.text}")
        if run.last_ms > original.last_ms + OVERLAP * cadence_ms:
            run.since_ms = run.first_ms = original.last_ms
            kept.append(run)
    return sorted(kept, key=lambda run: (run.first_ms, run.key, run.way))


def _is_replica(one: Run, other: Run, declared: frozenset[str], cadence_ms: int) -> bool:
    if one.way != other.way or one.first_ms > other.last_ms or other.first_ms > one.last_ms:
        return False
    names = {name for name in {*one.labels, *other.labels} if one.labels.get(name) != other.labels.get(name)}
    if names <= declared:
        return True
    if (one.device, one.port) != (other.device, other.port):
        return False
    if one.ends:
        return _same_counter(one, other, cadence_ms)
    idle = not any(one.growth.values()) and not any(other.growth.values())
    return _alike(one.growth, other.growth) or (idle and bool(one.port))


def _without_parts(group: Sequence[Run], discards: Discards) -> list[Run]:
    """Series without those that are counted in others: bonds and their members, ports and their VLANs."""
    left_out: dict[int, tuple[str, str]] = {}
    for one, other in combinations(group, 2):
        for part, whole in ((one, other), (other, one)):
            if (
                part.way == whole.way
                and part.device == whole.device
                and _is_sub_interface(part.port, whole.port)
            ):
                left_out[id(part)] = ("sub-interface", f"{part.text}: a part of {whole.text}")
    for run in group:
        members = [
            other
            for other in group
            if other is not run
            and other.way == run.way
            and other.device == run.device
            and id(other) not in left_out
            and run.first_ms <= other.last_ms
            and other.first_ms <= run.last_ms
        ]
        if id(run) in left_out or not members or not run.port:
            continue
        sums = {
            at: sum(member.growth.get(at, 0.0) for member in members)
            for at in set().union(*(member.growth for member in members))
        }
        named = _AGGREGATE.fullmatch(run.port) and not any(_AGGREGATE.fullmatch(one.port) for one in members)
        names = ", ".join(member.text for member in members)
        if (named or len(members) > 1) and _alike(run.growth, sums):
            left_out[id(run)] = ("aggregate", f"{run.text}: the sum of {names}")
        elif named:
            for member in members:
                left_out[id(member)] = ("member", f"{member.text}: a part of {run.text}")
    for run in group:
        if id(run) in left_out:
            reason, text = left_out[id(run)]
            discards.count(reason, run.number, text)
    return [run for run in group if id(run) not in left_out]


def _is_sub_interface(name: str, whole: str) -> bool:
    """True for `eth0.100` of `eth0`."""
    return bool(whole) and re.fullmatch(re.escape(whole) + r"[.:]\d+", name) is not None
