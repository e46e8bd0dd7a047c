"""Series of Prometheus for a trial: pods that have ended, traffic of pods, traffic of nodes.

| part | source |
| --- | --- |
| node, owner, begin and end of pods | kube-state-metrics |
| traffic of pods | cAdvisor, in the kubelet |
| traffic of nodes | node_exporter |
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy

from leeward.errors import InputError
from leeward.kubernetes.recording import Rates
from leeward.telemetry.answers import label_values, results, seconds
from leeward.telemetry.http import Server, TooMuchError

DAY_MS = 86_400_000
PIECE_MS = 21_600_000
"""Time of a query for rates; a rejected query is split."""
POD_INFO = 'kube_pod_info{node!="",uid!=""}'
CREATED = 'kube_pod_created{uid!=""}'
COMPLETED = 'kube_pod_completion_time{uid!=""}'
REQUESTS = 'kube_pod_container_resource_requests{resource=~"cpu|memory",uid!=""}'
POD_TRAFFIC = ("container_network_transmit_bytes_total", "container_network_receive_bytes_total")
NODE_TRAFFIC = ("node_network_transmit_bytes_total", "node_network_receive_bytes_total")
DEVICES = (
    r"lo|veth.*|cali.*|cni.*|cilium.*|lxc.*|flannel.*|docker.*|br-.*|virbr.*|tunl.*|vxlan.*|geneve.*|genev_.*"
    r"|kube-.*|nodelocaldns|dummy.*|ovs.*|wg.*|bond.*|team.*|.*\\..*"
)
"""Interfaces that carry the traffic of others: of containers, tunnels, bonds of ports, and VLANs."""
SOURCES: Mapping[str, str] = {
    POD_INFO: "kube-state-metrics",
    CREATED: "kube-state-metrics",
    f'{POD_TRAFFIC[0]}{{pod!=""}}': "cAdvisor, in the kubelet",
    NODE_TRAFFIC[0]: "node_exporter",
}
"""Metrics that a trial needs, and their exporters."""

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Period:
    """Intervals to query.

    Attributes:
        begin_ms: Beginning of the first interval, in milliseconds since 1970.
        interval_ms: Length of an interval.
        count: Number of intervals.
    """

    begin_ms: int
    interval_ms: int
    count: int

    @property
    def end_ms(self) -> int:
        """End of the last interval."""
        return self.begin_ms + self.count * self.interval_ms


@dataclass(frozen=True)
class Queries:
    """Queries to a Prometheus server about a period.

    Attributes:
        server: The server.
        period: The period.
        advance: Called after each query.
        warnings: Warnings of answers, each with their number; such an answer may lack series.
    """

    server: Server
    period: Period
    advance: Callable[[int], None]
    warnings: Counter[str] = field(default_factory=Counter)

    def check(self) -> None:
        """Checks that the server has all metrics that a trial needs.

        Raises:
            InputError: A metric is missing, or its labels are those of the exporter's own pod.
        """
        server, times = self.server, (self.period.begin_ms, self.period.end_ms)
        for query, exporter in SOURCES.items():
            if not any(label_values(server, "__name__", *times, query)):
                error = InputError.about(server.url, f"`{query}`: it has no such metric in these times")
                error.add_note(
                    f"the metric comes from {exporter}: let Prometheus scrape it, or choose other times"
                )
                raise error
        if any(label_values(server, "exported_pod", *times, POD_INFO)):
            error = InputError.about(
                server.url, f"`{POD_INFO}`: its label `pod` is the pod of kube-state-metrics"
            )
            error.add_note("set `honor_labels: true` where Prometheus scrapes kube-state-metrics")
            raise error

    def largest(self, by: str, within: Callable[[str], str]) -> Iterator[tuple[Labels, float]]:
        """Largest values within each day, by labels; a label set may occur on several days.

        Args:
            by: Labels of the result, with commas.
            within: Returns the expression for a length of time, such as `86400000ms`.
        """
        for start, end in days(self.period):
            for result in self._values(by, within, start, end):
                labels, value = _labels(self.server, result), _number(self.server, result.get("value"))
                if numpy.isfinite(value):
                    yield labels, value
            self.advance(1)

    def _values(
        self, by: str, within: Callable[[str], str], start: int, end: int
    ) -> Iterator[dict[str, Any]]:
        """Results between two times, split until no answer is too large."""
        query = f"max by ({by}) ({within(f'{end - start}ms')})"
        try:
            series = self._ask("vector", "query", query=query, time=seconds(end))
        except TooMuchError:
            if end - start <= 2 * self.period.interval_ms:
                raise
            middle = (start + end) // 2
            yield from self._values(by, within, start, middle)
            yield from self._values(by, within, middle, end)
            return
        yield from series

    def rates(self, by: str, selector: str) -> list[tuple[Labels, Rates]]:
        """Mean rates of counters of bytes in each interval, in bits per second; NaN where unknown.

        Args:
            by: Labels to sum by, with commas.
            selector: Selector of the counters.
        """
        query = f"8 * sum by ({by}) (rate({selector}[{self.period.interval_ms}ms]))"
        rates: dict[tuple[tuple[str, str], ...], Rates] = {}
        for first, last in pieces(self.period):
            for labels, at, value in self._points(query, first, last):
                key = tuple(sorted(labels.items()))
                if key not in rates:
                    rates[key] = numpy.full(self.period.count, numpy.nan)
                rates[key][at] = value
            self.advance(1)
        return [(dict(key), values) for key, values in sorted(rates.items(), key=lambda item: item[0])]

    def _points(self, query: str, first: int, last: int) -> Iterator[tuple[Labels, int, float]]:
        """Labels, interval and value of each point, split until no answer is too large."""
        begin_ms, length = self.period.begin_ms, self.period.interval_ms
        start, end = (seconds(begin_ms + (interval + 1) * length) for interval in (first, last))
        try:
            series = self._ask(
                "matrix", "query_range", query=query, start=start, end=end, step=f"{length / 1000:.3f}"
            )
        except TooMuchError:
            if first == last:
                raise
            middle = (first + last) // 2
            yield from self._points(query, first, middle)
            yield from self._points(query, middle + 1, last)
            return
        for result in series:
            labels, values = _labels(self.server, result), result.get("values")
            if not isinstance(values, list):
                raise self.server.unknown_form(str(result)[:80])
            for point in values:
                value = _number(self.server, point)
                at = round((float(point[0]) * 1000 - begin_ms) / length) - 1
                if 0 <= at < self.period.count and numpy.isfinite(value) and value >= 0:
                    yield labels, at, value

    def _ask(self, kind: str, path: str, **parameters: str) -> list[dict[str, Any]]:
        """Series of an answer; its warnings are counted."""
        answer = self.server.ask(path, **parameters)
        self.warnings.update(set(answer.warnings))
        return results(self.server, answer.data, kind)


def days(period: Period) -> Iterator[tuple[int, int]]:
    """Parts of a period of at most a day."""
    for start in range(period.begin_ms, period.end_ms, DAY_MS):
        yield start, min(start + DAY_MS, period.end_ms)


def pieces(period: Period) -> Iterator[tuple[int, int]]:
    """First and last interval of each query for rates."""
    size = max(1, PIECE_MS // period.interval_ms)
    for first in range(0, period.count, size):
        yield first, min(first + size, period.count) - 1


def _labels(server: Server, result: Mapping[str, Any]) -> Labels:
    labels = result.get("metric")
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise server.unknown_form(str(result)[:80])
    return labels


def _number(server: Server, point: Any) -> float:
    try:
        float(point[0])
        return float(point[1])
    except (IndexError, TypeError, ValueError, KeyError):
        raise server.unknown_form(str(point)[:80]) from None
