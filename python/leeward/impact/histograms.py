"""Latencies from histograms of Prometheus: operations that ended between two readings, by bounds of latency.

A series `http_server_request_duration_seconds_bucket{le="0.1",...}` counts the operations that took at most
0.1 s since the process started. The growth between two readings is the number of operations in that time.
Within a bucket, latencies are taken as evenly spread, as `histogram_quantile` does. Latencies above the last
bound count with that bound, which is less than they took.
"""

from collections.abc import Mapping
from itertools import pairwise
from math import ceil, inf, isfinite, isnan
from pathlib import Path
from typing import Any

from leeward.errors import InputError
from leeward.impact.operations import Places, Rules
from leeward.impact.records import Records, text
from leeward.telemetry import Discards
from leeward.telemetry.exports import prometheus_text

STEPS = 8
"""Number of latencies that stand for those of a bucket, if it has more."""
MOST_COUNT = 1_000_000
"""Greatest number of operations in a row of a latency table."""
MOST_GROWTH = 10**9
"""Greatest plausible number of operations between two readings."""
MOST_READINGS = 20_000_000
"""Greatest number of readings of a file."""
MOST_ROWS = 5_000_000
"""Greatest number of latencies of a file."""
MOST_TIME_MS = 2**52 // 1000
"""Time in milliseconds since 1970 that is past any plausible one."""
GAP_MS = 600_000
"""Greatest distance of readings; the operations between them belong to no interval."""
UNITS = {
    "_seconds": 1e9,
    "_milliseconds": 1e6,
    "_microseconds": 1e3,
    "_nanoseconds": 1.0,
    "_ms": 1e6,
    "_us": 1e3,
    "_ns": 1.0,
}
"""Nanoseconds in the unit at the end of a metric's name."""
HOST = ("leeward_host", "node", "k8s_node_name", "host_name", "host", "hostname", "instance")
"""Labels that name the host of a process, `instance` with its port."""

_BUCKET = "_bucket"
_Labels = tuple[tuple[str, str], ...]


class Histograms:
    """Readings of the histograms of a file.

    Attributes:
        readings: Number of readings of buckets.
        above: Number of latencies above the last bound of their histogram, which count with that bound.
    """

    def __init__(self, places: Places, rules: Rules, names: Mapping[str, str]) -> None:
        """Takes the hosts of the cluster, rules, and kinds of operations by names of metrics."""
        self._places, self._rules, self._names = places, rules, names
        self._series: dict[tuple[str, _Labels], dict[int, dict[float, float]]] = {}
        self.readings = self.above = 0

    def take(self, file: str, metric: str, labels: Mapping[str, str], time_ms: int, value: float) -> None:
        """Takes a reading; other metrics than buckets of histograms are ignored.

        Raises:
            InputError: There are too many readings.
        """
        if not metric.endswith(_BUCKET) or "le" not in labels:
            return
        self.readings += 1
        if self.readings > MOST_READINGS:
            raise InputError.about(file, f"more than {MOST_READINGS:,} readings: expected fewer at once")
        try:
            bound = float(labels["le"])
        except ValueError:
            bound = float("nan")
        if isnan(bound) or bound == -inf or not isfinite(value):
            return
        if not 0 <= time_ms < MOST_TIME_MS:
            raise InputError.about(file, f"`{str(time_ms)[:40]}`: expected a time in milliseconds since 1970")
        rest = tuple(sorted((name, label) for name, label in labels.items() if name != "le"))
        readings = self._series.setdefault((metric.removesuffix(_BUCKET), rest), {})
        readings.setdefault(time_ms, {})[bound] = value

    def records(self, file: str, discards: Discards) -> Records:
        """Latencies of the file.

        Args:
            file: Name of the file.
            discards: Counts of operations that are left out.

        Raises:
            InputError: No metric is a known kind of operation or has a known unit, or there are too many
                latencies.
        """
        result = Records()
        metrics = dict.fromkeys(metric for metric, _ in self._series)
        known = {metric: operation for metric in metrics if (operation := self._operation(metric))}
        labelled = any(name == "operation" for _, labels in self._series for name, _ in labels)
        if metrics and not known and not labelled:
            shown = ", ".join([*metrics][:5])
            error = InputError.about(file, f"no histogram is a known kind of operation; it has {shown}")
            error.add_note(
                f"--operation '{next(iter(metrics))}=file-read' makes this histogram one of file reads"
            )
            raise error
        for (metric, labels), readings in self._series.items():
            named = dict(labels)
            operation = text(named.get("operation")) or known.get(metric)
            if operation is None:
                discards.count("other-histogram", 1, metric)
                continue
            unit = next((ns for end, ns in UNITS.items() if metric.endswith(end)), None)
            if unit is None:
                message = f"`{metric[:80]}`: expected a name that ends in one of {', '.join(UNITS)}"
                raise InputError.about(file, message)
            ends = self._ends(metric, operation, named)
            for (before, first), (after, last) in pairwise(sorted(readings.items())):
                self._grow(result, discards, metric, (before, after), (first, last), unit, operation, ends)
            if len(result) > MOST_ROWS:
                raise InputError.about(file, f"more than {MOST_ROWS:,} latencies: expected fewer at once")
        return result

    def _grow(
        self,
        result: Records,
        discards: Discards,
        metric: str,
        times: tuple[int, int],
        counts: tuple[Mapping[float, float], Mapping[float, float]],
        unit: float,
        operation: str,
        ends: Mapping[str, str | None],
    ) -> None:
        """Adds the operations between two readings of a series."""
        first, last = counts
        if first.keys() != last.keys():
            discards.count("incomplete-histogram", 1, metric)
            return
        bounds = sorted(last)
        growth = [last[bound] - first[bound] for bound in bounds]
        if any(more < 0 for more in growth) or any(less > more for less, more in pairwise(growth)):
            discards.count("reset", 1, metric)
            return
        total = round(growth[-1])
        if times[1] - times[0] > GAP_MS or total > MOST_GROWTH:
            discards.count("gap" if total <= MOST_GROWTH else "not-plausible", max(total, 1), metric)
            return
        # Operations that ended between the readings are taken to have ended in the middle.
        end_us = 500 * (times[0] + times[1])
        below, lower = 0.0, 0.0
        for bound, cumulated in zip(bounds, growth, strict=True):
            number = round(cumulated - below)
            upper = bound if bound != inf else lower
            self.above += number if bound == inf else 0
            for latency, count in _spread(max(lower, 0.0), max(upper, 0.0), number):
                latency_ns = round(min(latency * unit, 2.0**62))
                result.add(t=end_us, latency_ns=latency_ns, operation=operation, count=count, **ends)
            below, lower = cumulated, upper

    def _operation(self, metric: str) -> str | None:
        """Kind of operation of a metric, if it is known."""
        return self._names.get(metric, metric if metric in self._rules else None)

    def _ends(self, metric: str, operation: str, labels: Mapping[str, str]) -> dict[str, str | None]:
        """Ends of the operations of a series, and further columns from its labels."""
        found = next((labels[name] for name in HOST if labels.get(name)), None)
        host = None
        if found is not None:
            name, _, port = found.partition(":")
            host = self._places.known(name if port.isdigit() else found)
        # Bytes of a write go from the client to the server; those of a read come from there.
        from_here = ("_client_" in metric) == operation.endswith("write")
        src = host if from_here and operation != "query" else None
        dst = None if from_here and operation != "query" else host
        return {
            "src": text(labels.get("src")) or text(src),
            "dst": text(labels.get("dst")) or text(dst),
            "links": text(labels.get("links")),
            "medium": text(labels.get("medium")),
            "class": text(labels.get("class")),
        }


def _spread(lower: float, upper: float, number: int) -> list[tuple[float, int]]:
    """Latencies that stand for those of a bucket, evenly spread, each with the number of its operations."""
    if number <= 0:
        return []
    steps = min(number, max(STEPS, ceil(number / MOST_COUNT)))
    width = (upper - lower) / steps
    share, more = divmod(number, steps)
    return [(lower + (step + 0.5) * width, share + (step < more)) for step in range(steps)]


def read_text(file: Path, lines: list[str], series: Histograms) -> None:
    """Reads a text of Prometheus with times, such as that of `promtool tsdb dump`.

    Raises:
        InputError: A line is not a sample, or has no time.
    """
    for time_ms, labels, name, value in prometheus_text.samples(str(file), lines):
        series.take(str(file), name, labels, time_ms, float(value))


def is_answer(document: Any) -> bool:
    """True for an answer of Prometheus's HTTP API to a query."""
    data = document.get("data") if isinstance(document, dict) else None
    return isinstance(data, dict) and "resultType" in data


def read_answer(file: Path, document: Any, series: Histograms) -> None:
    """Reads an answer to a range query of buckets.

    Raises:
        InputError: The answer is of another kind, or has native histograms.
    """
    data = document["data"]
    found = data.get("result")
    if data["resultType"] != "matrix" or not isinstance(found, list):
        message = (
            f"`{str(data['resultType'])[:40]}`: one reading has no growth; expected an answer of query_range"
        )
        raise InputError(str(file), None, None, "resultType", message)
    for result in found:
        labels = result.get("metric") if isinstance(result, dict) else None
        if not isinstance(labels, dict):
            raise InputError(str(file), None, None, "result", "expected series with `metric` and `values`")
        if "histograms" in result:
            message = "native histograms; expected the buckets of classic ones, with a label `le`"
            raise InputError(str(file), None, None, "result", message)
        texts = {str(name): value for name, value in labels.items() if isinstance(value, str)}
        name = texts.pop("__name__", "")
        values = result.get("values")
        for pair in values if isinstance(values, list) else ():
            try:
                seconds, value = pair
                time_ms, count = round(float(seconds) * 1000), float(value)
            except (TypeError, ValueError, OverflowError):
                shown = str(pair)[:40]
                raise InputError(
                    str(file), None, None, "values", f"`{shown}`: expected [time, text]"
                ) from None
            series.take(str(file), name, texts, time_ms, count)
