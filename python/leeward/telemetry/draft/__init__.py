"""A draft of a map file for a Prometheus server: which ports are which links.

The draft is read back as a map file and applied to every port, so that it says of each what it will be.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import yaml

from leeward._native import Cluster
from leeward.errors import InputError
from leeward.telemetry.answers import LEAST_MS, label_values, results, seconds
from leeward.telemetry.draft.families import Family, families
from leeward.telemetry.draft.rules import Draft, Places, Port, draft
from leeward.telemetry.http import Server, TooMuchError, server
from leeward.telemetry.mapping import Map, map_of_text
from leeward.telemetry.units import RATES

HOUR_MS = 3_600_000
"""Time before now in which series are looked for."""


@dataclass(frozen=True)
class Drafted:
    """A draft of a map file, and what it makes of each port.

    Attributes:
        text: The file.
        family: The counters it queries.
        others: Other counters of the server.
        placed: Each placed port, with the link of what it receives.
        ignored: Ports that are no links.
        unplaced: Ports without a link, each with the reason.
        missing: Links of the same kinds that are no port's.
        capacities: Each link whose ports have another speed in sum than the cluster says: both in bits per
            second.
    """

    text: str
    family: Family
    others: list[Family] = field(default_factory=list)
    placed: list[tuple[Port, str]] = field(default_factory=list)
    ignored: list[Port] = field(default_factory=list)
    unplaced: list[tuple[Port, str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    capacities: dict[str, tuple[float, float]] = field(default_factory=dict)


def from_prometheus(
    url: str, cluster: Cluster | None, now_ms: int, http: str | PathLike[str] | None = None
) -> Drafted:
    """A draft of a map file.

    Args:
        url: Address of the server.
        cluster: The cluster whose links are looked for; without one, each device is a host or a rack.
        now_ms: Current time, in milliseconds since 1970.
        http: A file of credentials and certificates.

    Raises:
        InputError: The server cannot be reached, has no counters of ports, or no port of the cluster.
    """
    prometheus = server(url, http)
    metrics = set(label_values(prometheus, "__name__", now_ms - HOUR_MS, now_ms))
    found = families(metrics)
    if not found:
        message = f"no counters of received and sent bytes among {len(metrics):,} metrics of the last hour"
        error = InputError.about(prometheus.url, message)
        error.add_note("leeward reads counters of ports, as snmp_exporter, node_exporter and gnmic have them")
        raise error
    drafts, failure = [], None
    for family in found:
        ports = _ports(prometheus, family, now_ms)
        places = Places.assumed(ports, family) if cluster is None else Places.of(cluster)
        try:
            drafts.append(_apply(draft(places, ports), family, ports, cluster))
        except InputError as error:
            failure = failure or error
    if not drafts:
        assert failure is not None
        raise failure
    best = max(drafts, key=lambda one: len({link for _, link in one.placed}))
    best.others.extend(family for family in found if family != best.family)
    return best


def _ports(prometheus: Server, family: Family, now_ms: int) -> list[Port]:
    """The ports of a pair of counters, with their speeds, in the order of their labels."""
    speeds: dict[str, float] = {}
    if family.speed:
        answer = prometheus.ask("query", query=family.speed, time=seconds(now_ms))
        for result in results(prometheus, answer.data, "vector"):
            try:
                value = float(result["value"][1])
                speeds[_key(result["metric"])] = value * RATES[family.speed_unit]
            except (KeyError, IndexError, TypeError, ValueError, AttributeError):
                raise prometheus.unknown_form(str(result)[:80]) from None
    keys = sorted({_key(labels) for labels in _series(prometheus, family.received, now_ms)})
    return [Port(json.loads(key), speeds.get(key)) for key in keys]


def _series(prometheus: Server, metric: str, now_ms: int) -> Iterator[Mapping[str, Any]]:
    """Labels of the series of a metric in the last hour, or in less time if the server limits it."""
    length = HOUR_MS
    while True:
        times = {"start": seconds(now_ms - length), "end": seconds(now_ms)}
        try:
            answer = prometheus.ask("series", **{"match[]": metric}, **times).data
        except TooMuchError:
            if length <= LEAST_MS:
                raise
            length //= 2
            continue
        if not isinstance(answer, list) or not all(isinstance(one, dict) for one in answer):
            raise prometheus.unknown_form(str(answer)[:80])
        yield from answer
        return


def _key(labels: Mapping[str, Any]) -> str:
    plain = {str(name): str(text) for name, text in labels.items() if name != "__name__"}
    return json.dumps(plain, sort_keys=True, ensure_ascii=False)


def _apply(made: Draft, family: Family, ports: list[Port], cluster: Cluster | None) -> Drafted:
    """The draft as a file, and what it makes of each port."""
    text = _text(made, family)
    map_file: Map = map_of_text(text, "draft")
    rows = [] if cluster is None else cluster.links().to_pylist()
    capacities = {row["name"]: float(row["capacity_bps"]) for row in rows}
    drafted = Drafted(text, family)
    sums: dict[str, list[float | None]] = {}
    for port in ports:
        link = map_file.link(port.labels, "in")
        if link == "":
            drafted.ignored.append(port)
        elif link is None or (capacities and link not in capacities):
            drafted.unplaced.append((port, made.reasons.get(port.text) or f"`{link}`: no such link"))
        else:
            drafted.placed.append((port, link))
            sums.setdefault(link, []).append(port.speed_bps)
    kinds = {re.sub(r"^.*:", "", link) for link in sums}
    drafted.missing.extend(
        row["name"] for row in rows if row["name"] not in sums and row["name"].rpartition(":")[2] in kinds
    )
    for link, speeds in sums.items():
        total = sum(speed or 0.0 for speed in speeds)
        if capacities and all(speeds) and abs(total / capacities[link] - 1) > 0.01:
            drafted.capacities[link] = total, capacities[link]
    return drafted


def _text(made: Draft, family: Family) -> str:
    """A map file, with the evidence for each rule as a comment."""
    metrics: dict[str, Any] = {"in": family.received, "out": family.sent}
    if family.unit != "octets":
        metrics["unit"] = family.unit
    if family.speed:
        metrics |= {"speed": family.speed, "speed_unit": family.speed_unit}
    if family.width != 64:
        metrics["counter_bits"] = family.width
    lines = [
        "# Maps ports to links: a draft from the metrics and labels of a Prometheus server.",
        _yaml({"prometheus": metrics}),
        "links:" if made.rules else "links: []",
    ]
    for match, links, evidence in made.rules:
        lines += [f"  # {evidence}"] if evidence else []
        rule = _yaml([{"match": match, **links}])
        lines += [f"  {line}" for line in rule.splitlines()]
    if made.ignored:
        lines += ["", _yaml({"ignore": [made.ignored]}).rstrip()]
    return "\n".join(lines) + "\n"


def _yaml(value: Any) -> str:
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000))
