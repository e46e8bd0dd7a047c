"""Peak rates of pods, as the scheduler finds them.

For each direction, the annotation counts before the measured peak of the workload, and this before the limit
of shaping, which is an upper bound of all. A measured peak is that of the workload's pods in the intervals
before the pod came, so no decision knows the future.
"""

from collections.abc import Mapping
from enum import StrEnum

import numpy

from leeward.kubernetes.recording import Pod, Rates, Recording, Template


class Source(StrEnum):
    """Source of a peak rate."""

    annotation = "annotation"
    measured = "measured"
    limit = "limit"


Peak = tuple[int, Source] | None
"""A peak rate in bits per second with its source; None if it is unknown."""


class Peaks:
    """Measured peaks of workloads over time."""

    def __init__(self, recording: Recording) -> None:
        """Takes the traffic of all pods."""
        shape = (2, recording.intervals)
        highest: dict[tuple[str, str], Rates] = {}
        for at, traffic in recording.traffic.items():
            pod = recording.pods[at]
            peaks = highest.setdefault((pod.namespace, pod.workload), numpy.full(shape, numpy.nan))
            part = slice(traffic.first, traffic.first + len(traffic.out))
            peaks[:, part] = numpy.fmax(peaks[:, part], [traffic.out, traffic.into])
        self._so_far: Mapping[tuple[str, str], Rates] = {
            key: numpy.fmax.accumulate(peaks, axis=1) for key, peaks in highest.items()
        }

    def before(self, pod: Pod, interval: int) -> tuple[int, int] | None:
        """Peaks of a pod's workload before an interval, out and in; None without a measurement."""
        peaks = self._so_far.get((pod.namespace, pod.workload))
        if peaks is None or interval < 1 or numpy.isnan(peaks[:, interval - 1]).any():
            return None
        return round(float(peaks[0, interval - 1])), round(float(peaks[1, interval - 1]))


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
        peak = measured, Source.measured
    if limit is not None and (peak is None or peak[0] > limit):
        peak = limit, Source.limit
    return peak
