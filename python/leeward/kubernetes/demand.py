"""Peak rates of pods, as the scheduler finds them.

For each direction, the annotation counts before the measured peak of the workload, and this before the limit
of shaping, which is an upper bound of all. A measured peak is that of the workload's pods in the intervals
before the pod came, so no decision knows the future. It is the service's estimate with its default settings
(`history` in crates/engine): a percentile of the last day, once there are enough observations.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy
from numpy.typing import NDArray

from leeward.kubernetes.recording import Pod, Rates, Recording, Template

WINDOW_MS = 86_400_000
"""Time for which an observation counts: `history.window` of the service."""
PERCENTILE = 98
"""Percentile that estimates the peak: `history.percentile` of the service."""
LEAST_OBSERVATIONS = 12
"""Least number of observations of a peak: `leastObservations` of the package `peaks` of the scheduler."""
COUNT_MS = 300_000
"""Time between two observations of a pod: `COUNT_INTERVAL` of the service."""


class Source(StrEnum):
    """Source of a peak rate, by the names that `kubectl leeward explain` has for them."""

    annotation = "annotation"
    history = "history"
    limit = "limit"


Peak = tuple[int, Source] | None
"""A peak rate in bits per second with its source; None if it is unknown."""


@dataclass(frozen=True)
class _Observations:
    """Observed rates of the pods of a workload, in the order of their intervals.

    Attributes:
        intervals: Number of the interval of each observation.
        rates: Rates out of the pod and into it, a row for each direction.
    """

    intervals: NDArray[numpy.int64]
    rates: Rates


class Peaks:
    """Measured peaks of workloads over time."""

    def __init__(self, recording: Recording) -> None:
        """Takes the traffic of all pods."""
        interval_ms = recording.interval_ms
        self._window = max(1, WINDOW_MS // interval_ms)
        # The mean of a long interval stands for several observations. Not each of the short ones counts.
        self._weight = max(1, interval_ms // COUNT_MS)
        stride = -(-COUNT_MS // interval_ms)
        parts: dict[tuple[str, str], list[_Observations]] = defaultdict(list)
        for at, traffic in recording.traffic.items():
            rates = numpy.array([traffic.out, traffic.into], dtype=numpy.float64)[:, ::stride]
            intervals = traffic.first + stride * numpy.arange(rates.shape[1])
            known = ~numpy.isnan(rates).any(axis=0)
            pod = recording.pods[at]
            key = pod.namespace, pod.workload
            parts[key].append(_Observations(intervals[known], rates[:, known]))
        self._of: Mapping[tuple[str, str], _Observations] = {
            key: _joined(of_pods) for key, of_pods in parts.items()
        }
        self._last: dict[tuple[str, str], tuple[int, tuple[int, int] | None]] = {}

    def before(self, pod: Pod, interval: int) -> tuple[int, int] | None:
        """Peaks of a pod's workload before an interval, out and in; None with too few observations."""
        key = pod.namespace, pod.workload
        # The pods of a workload often come together.
        last = self._last.get(key)
        if last is None or last[0] != interval:
            last = self._last[key] = interval, self._peaks(key, interval)
        return last[1]

    def _peaks(self, key: tuple[str, str], interval: int) -> tuple[int, int] | None:
        observed = self._of.get(key)
        if observed is None:
            return None
        first, end = numpy.searchsorted(observed.intervals, [interval - self._window, interval])
        rates = observed.rates[:, first:end]
        if rates.shape[1] * self._weight < LEAST_OBSERVATIONS:
            return None
        # The nearest rank, and at least the mean, as in the service.
        peaks = numpy.percentile(rates, PERCENTILE, axis=1, method="inverted_cdf")
        egress, ingress = numpy.maximum(peaks, rates.mean(axis=1))
        return round(float(egress)), round(float(ingress))


def _joined(parts: list[_Observations]) -> _Observations:
    """Observations of several pods, in the order of their intervals."""
    intervals = numpy.concatenate([part.intervals for part in parts])
    order = numpy.argsort(intervals, kind="stable")
    rates = numpy.concatenate([part.rates for part in parts], axis=1)
    return _Observations(intervals[order], rates[:, order])


def peaks_of(template: Template, measured: tuple[int, int] | None) -> tuple[Peak, Peak]:
    """Peak rates of a pod out of it and into it."""
    egress, ingress = (
        _peak(template.peak_bps[way], None if measured is None else measured[way], template.limit_bps[way])
        for way in range(2)
    )
    return egress, ingress


def _peak(annotated: int | None, measured: int | None, limit: int | None) -> Peak:
    peak: Peak = None
    if annotated is not None:
        peak = annotated, Source.annotation
    elif measured is not None:
        peak = measured, Source.history
    if limit is not None and (peak is None or peak[0] > limit):
        peak = limit, Source.limit
    return peak
