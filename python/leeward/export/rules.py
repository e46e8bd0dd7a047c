"""Recording rules and alerts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from leeward._quantities import percent_text
from leeward.errors import InputError
from leeward.export.promql import Source, links, quote
from leeward.hotspots.durations import CLASSES
from leeward.hotspots.settings import Settings
from leeward.telemetry.units import UNIT_PPM

UTILIZATION = "leeward:link_utilization:ratio"
LOAD = "leeward:link_load:bps"
CAPACITY = "leeward:link_capacity:bps"
HOT = "leeward:link_hot:bool"
RATE = "leeward:hotspot_rate:ratio"
ENDS = (("up", "uplink|egress"), ("down", "downlink|ingress"), ("in", "in"), ("out", "out"))
"""Direction of a link, and the ends of names that show it."""
MANY = 0.1
"""Hotspot rate of a cross-section that raises an alert. The paper gives no value."""
REMEDIES = {
    "migrate": "Move tolerant tasks off the rack now.",
    "place": "Place data and long-running jobs elsewhere.",
    "provision": "Plan capacity for it, or upgrade the rack: leeward plan.",
}


@dataclass(frozen=True)
class Watch:
    """Content of rules and dashboard.

    Attributes:
        source: Counters and links.
        settings: Definition of hot links, as for `leeward hotspots`.
        cadence_ms: Time between scrapes.
        pods: Names of pods, whose links are in another cross-section than those of racks.
    """

    source: Source
    settings: Settings
    cadence_ms: int
    pods: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Checks that an interval holds two scrapes.

        Raises:
            InputError: The interval is too short.
        """
        if not 1 <= self.cadence_ms <= self.settings.interval_ms // 2:
            message = (
                f"`{duration(self.cadence_ms)}`: expected at most half of an interval"
                f" ({duration(self.settings.interval_ms)})"
            )
            raise InputError.about("cadence", message)


def duration(ms: int) -> str:
    """A duration in PromQL: `5m29s999ms`."""
    result = ""
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        if ms >= length:
            result += f"{ms // length}{unit}"
            ms %= length
    return result or "0s"


def rules(watch: Watch) -> dict[str, Any]:
    """Groups of recording rules and alerts, in the format of Prometheus' rule files.

    Raises:
        InputError: PromQL cannot express a rule of the map.
    """
    interval = duration(watch.settings.interval_ms)
    records = [{"record": name, "expr": expression} for name, expression in recordings(watch).items()]
    # One group: Prometheus computes its rules one after the other, at the same instant.
    return {"groups": [{"name": "leeward", "interval": interval, "rules": records + _alerts(watch)}]}


def text(watch: Watch, provenance: str) -> str:
    """The rule file, with its inputs in a comment at its top."""
    return rule_file(rules(watch), provenance)


def rule_file(groups: dict[str, Any], provenance: str) -> str:
    """A rule file of groups, with a comment at its top."""
    body = yaml.dump(groups, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)
    return f"# {provenance}\n{body}"


def recordings(watch: Watch) -> dict[str, str]:
    """Expressions of recording rules by name, each after its inputs."""
    settings, source = watch.settings, watch.source
    reach = duration(settings.interval_ms + watch.cadence_ms - 1)
    within = duration(settings.interval_ms - 1)
    least = -(-round(settings.coverage * settings.interval_ms) // watch.cadence_ms) + 1
    load, sample_counts = [], []
    for way, counter in source.counters.items():
        load += links(source, counter, way, lambda selector: f"rate({selector}[{reach}])")
        sample_counts += links(source, counter, way, lambda selector: f"count_over_time({selector}[{reach}])")
    bits = _times(_sum_by_link("sum", load), source.bits)
    enough = f"{_sum_by_link('min', sample_counts)} >= {max(least, 2)}"
    return {
        LOAD: f"{_add_place_labels(watch, bits)}\nand on (link)\n{enough}",
        CAPACITY: _cluster_capacities(source.capacities)
        if source.speed is None
        else _port_capacities(watch, source.speed, within),
        UTILIZATION: f"{LOAD} / ({CAPACITY} > 0)",
        # Whole millionths, as in `leeward hotspots`.
        HOT: f"floor(1e6 * {UTILIZATION}) > bool {settings.hot_ppm}",
        RATE: f"avg by (cross_section, direction) ({HOT})",
    }


def _port_capacities(watch: Watch, speed: str, within: str) -> str:
    """Capacities of links by their ports."""
    source, capacity = watch.source, []
    for way in source.counters:
        capacity += links(source, speed, way, lambda selector: f"avg_over_time({selector}[{within}])")
    return _add_place_labels(watch, _times(_sum_by_link("sum", capacity), source.speed_bps))


def _cluster_capacities(capacities: Mapping[str, int]) -> str:
    """Capacities of links by the cluster: the most frequent one of each kind, and others by name."""
    kinds: dict[str, Counter[int]] = {}
    for name, bps in capacities.items():
        kinds.setdefault(name.rpartition(":")[2], Counter())[bps] += 1
    # A name without an ending is of a pair of hosts, and each pair is a kind of its own.
    usual_bps = {end: max(counts, key=lambda bps: (counts[bps], bps)) for end, counts in kinds.items()}
    names_by_bps: dict[int, list[str]] = {}
    for name, bps in capacities.items():
        end = name.rpartition(":")[2]
        if name == end or usual_bps[end] != bps:
            names_by_bps.setdefault(bps, []).append(name)
    ends_by_bps: dict[int, list[str]] = {}
    for end, bps in usual_bps.items():
        if end not in capacities:
            ends_by_bps.setdefault(bps, []).append(end)
    patterns = [(bps, "|".join(map(_literal, names_by_bps[bps]))) for bps in sorted(names_by_bps)]
    patterns += [(bps, f".+:({'|'.join(ends_by_bps[bps])})") for bps in sorted(ends_by_bps)]
    # The first expression with a link counts.
    return "\nor\n".join(f"0 * {LOAD}{{link=~{quote(pattern)}}} + {bps}" for bps, pattern in patterns)


def _literal(name: str) -> str:
    """A name as a pattern, with escaped dots."""
    return name.replace(".", "\\.")


def _times(expression: str, factor: int) -> str:
    return expression if factor == 1 else f"{factor} * {expression}"


def _sum_by_link(aggregate: str, expressions: list[str]) -> str:
    """Sum over the ports of each link. Rules match different links, or different ports of one link."""
    inside = "\nor\n".join(f"  {one}" for one in expressions)
    return f"{aggregate} by (link) (\n{inside}\n)"


def _add_place_labels(watch: Watch, expression: str) -> str:
    """An expression with labels `direction` and `cross_section`, from the names of links."""
    sections = [("host-ToR", ".+:(egress|ingress)"), ("ToR-pod", ".+:(uplink|downlink)")]
    if watch.pods:
        names = "|".join(map(_literal, watch.pods))
        sections.append(("pod-core", f"({names}):(uplink|downlink)"))
    labels = [("direction", way, f".+:({ends})") for way, ends in ENDS]
    labels += [("cross_section", name, pattern) for name, pattern in sections]
    for label, value, pattern in labels:
        arguments = ", ".join(quote(one) for one in (label, value, "link", pattern))
        expression = f"label_replace({expression}, {arguments})"
    return expression


def _alerts(watch: Watch) -> list[dict[str, Any]]:
    """The alerts."""
    settings = watch.settings
    step, day = settings.interval_ms, 86_400_000
    percent = percent_text(settings.hot_ppm / 1e6, None)
    lasts = (step, settings.hours_ms, settings.days_ms)
    result = []
    for (name, remedy), ms in zip(CLASSES, lasts, strict=True):
        # A hotspot of n intervals is seen at its first and n - 1 more.
        wait = max(ms - step, 0)
        result.append(
            alert(
                f"LeewardLinkHot{name.capitalize()}",
                f"{HOT} == 1",
                wait,
                {"severity": "info" if wait == 0 else "warning", "persistence": name, "remedy": remedy},
                f"{{{{ $labels.link }}}} has been over {percent} for {duration(ms)} or more",
                REMEDIES[remedy],
            )
        )
    result.append(
        alert(
            "LeewardManyLinksHot",
            f"{RATE} > {MANY:g}",
            settings.hours_ms - step,
            {"severity": "warning"},
            f"More than {percent_text(MANY, None)} of {{{{ $labels.cross_section }}}} links are hot",
            "leeward hotspots lists them, with their start and cause.",
        )
    )
    if watch.source.speed is not None:
        result.append(
            alert(
                "LeewardLinkLostCapacity",
                f"{CAPACITY} < {settings.fell:g} * max_over_time({CAPACITY}[{duration(day)}])",
                0,
                {"severity": "warning"},
                f"{{{{ $labels.link }}}} has less than {percent_text(settings.fell, None)} of its earlier"
                " capacity",
                "Ports are down. Placement uses the reported capacity.",
            )
        )
    result.append(
        alert(
            "LeewardLinkUnseen",
            f"max_over_time({UTILIZATION}[{duration(day)}]) unless on (link) {UTILIZATION}",
            2 * step,
            {"severity": "warning"},
            "No telemetry of {{ $labels.link }}, which was seen in the last day",
            "Placement sends no best-effort work over a link without telemetry.",
        )
    )
    speed = [watch.source.speed] if watch.source.speed is not None else []
    metrics = [*sorted(set(watch.source.counters.values())), *speed]
    result.append(
        alert(
            "LeewardTelemetryMissing",
            " or ".join(f"absent({metric})" for metric in metrics),
            step,
            {"severity": "critical"},
            "A metric needed to compute hotspots is missing",
            "Check that Prometheus scrapes the exporter.",
        )
    )
    result.append(
        alert(
            "LeewardUnitsLookWrong",
            f"{UTILIZATION} > {UNIT_PPM / 1e6:g}",
            0,
            {"severity": "warning"},
            "{{ $labels.link }} carries more than its capacity: {{ $value | humanizePercentage }}",
            "Its speed or the unit of its counter is probably wrong.",
        )
    )
    return result


def alert(
    name: str, expression: str, wait_ms: int, labels: dict[str, str], summary: str, description: str
) -> dict[str, Any]:
    """An alert that fires once its expression has had a result for the wait."""
    wait = {"for": duration(wait_ms)} if wait_ms else {}
    annotations = {"summary": summary, "description": description}
    return {"alert": name, "expr": expression} | wait | {"labels": labels, "annotations": annotations}


class _Dumper(yaml.SafeDumper):  # type: ignore[misc] # yaml has no types
    """Writes multi-line texts as blocks."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
