"""Source of telemetry from a map file."""

from collections.abc import Mapping
from os import PathLike

from leeward.errors import InputError
from leeward.export.promql import Ports, Source
from leeward.telemetry.mapping import read_map
from leeward.telemetry.units import COUNTERS, RATES


def from_map(path: str | PathLike[str], capacities: Mapping[str, int] | None = None) -> Source:
    """Metrics of Prometheus and their links.

    Args:
        path: Path of the file.
        capacities: Capacity of each link of the cluster by its name, in bits per second, if a cluster is
            known.

    Raises:
        InputError: The file is invalid, or neither the file nor a cluster has a value that rules need.
    """
    telemetry_map = read_map(path)
    if telemetry_map.metrics is None:
        raise InputError(
            telemetry_map.name, None, None, "prometheus", "missing: the counters that the rules read"
        )
    if telemetry_map.metrics.speed is None and not capacities:
        message = "missing: the metric of the capacity of ports"
        error = InputError(telemetry_map.name, None, None, "prometheus.speed", message)
        error.add_note("--cluster FILE gives the capacities of links")
        raise error
    # Without rules a label names the link.
    ports = [Ports({}, dict.fromkeys(telemetry_map.metrics.queries, "{link}"))]
    if telemetry_map.rules:
        ports = [
            Ports({label: pattern.pattern for label, pattern in rule.match.items()}, dict(rule.links))
            for rule in telemetry_map.rules
        ]
    return Source(
        telemetry_map.name,
        dict(telemetry_map.metrics.queries),
        COUNTERS[telemetry_map.metrics.unit],
        telemetry_map.metrics.speed,
        round(RATES[telemetry_map.metrics.speed_unit]),
        ports,
        [{label: pattern.pattern for label, pattern in one.items()} for one in telemetry_map.ignore],
        dict(capacities or {}),
    )
