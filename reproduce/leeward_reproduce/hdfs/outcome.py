"""Figures of a run: times of files, loads of links, and stored bytes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy

from leeward._arrays import Floats
from leeward_reproduce.hdfs.counters import Sample


@dataclass(frozen=True)
class FileTime:
    """Time in which a file was written: from the request to the end of its last block."""

    host: str
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """Measurements of a run."""

    files: list[FileTime]
    samples: list[Sample]
    start_s: float
    """Monotonic time of the start of the run."""
    seconds: float
    stored: dict[str, int] = field(default_factory=dict)
    """Bytes of the files of the run on each host at its end."""
    evicted: int = 0
    """Number of files that a full cache deleted before."""
    decisions: dict[str, int] = field(default_factory=dict)
    """Number of decisions of the policy by reason; none under HDFS's own policy."""
    busy: float = 0.0
    """Share of the processors' time in use, by all programs of the machine."""

    def links(self, way: str) -> list[str]:
        """Links in a direction: `uplink` or `downlink` of racks, `egress` or `ingress` of hosts."""
        return [link for link in self.samples[0][1] if link.endswith(f":{way}")]

    def carried(self, link: str) -> float:
        """Bytes on a link in the run."""
        at = numpy.array([self.start_s, self.start_s + self.seconds])
        return float(numpy.diff(self._counted(link, at))[0])

    def loads(self, way: str, step_s: float) -> Floats:
        """Load of each link in a direction in bit/s, by interval and link. A rest at the end is left out."""
        at: Floats = self.start_s + step_s * numpy.arange(int(self.seconds / step_s) + 1, dtype=numpy.float64)
        counted = [self._counted(link, at) for link in self.links(way)]
        loads: Floats = 8 * numpy.diff(numpy.array(counted), axis=1).T / step_s
        return loads

    def cv(self, way: str, step_s: float) -> float:
        """Median over intervals of the coefficient of variation of the links (Sinbad section 4.3)."""
        return median_cv(self.loads(way, step_s))

    def _counted(self, link: str, at: Floats) -> Floats:
        times = [time for time, _ in self.samples]
        values = [counts[link] for _, counts in self.samples]
        counted: Floats = numpy.interp(at, times, values)
        return counted


def median_cv(loads: Floats, idle_bps: float = 0.0) -> float:
    """Median of the coefficient of variation over intervals with load; NaN without any.

    Args:
        loads: Load of each link in bit/s, by interval and link.
        idle_bps: Mean load up to which an interval has no load.
    """
    mean = loads.mean(axis=1)
    with_load = mean > idle_bps
    cv = loads.std(axis=1)[with_load] / mean[with_load]
    return float(numpy.median(cv)) if len(cv) else float("nan")


def quantile(files: Sequence[FileTime], share: float) -> float:
    """Quantile of the times of files, in seconds."""
    return float(numpy.quantile([one.seconds for one in files], share))
