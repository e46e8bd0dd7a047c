"""The result of a trial: hot racks before and after, and the pods behind the difference."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy

from leeward._quantities import some
from leeward.kubernetes.recording import Rates, Recording
from leeward.telemetry.times import moment_text
from leeward.telemetry.units import UNIT_PPM

HOUR_MS = 3_600_000
PERCENTILE = 98
"""Percentile of utilization, as in tables 2 and 3 of Hotspots."""


@dataclass(frozen=True)
class Load:
    """Load of a rack, or of all racks together.

    Attributes:
        hot_h: Hours in which a direction of the link was above the threshold; for all racks, their sum.
        p98: 98th percentile of the utilization of the fuller direction, over all known intervals; None if
            none is known.
        out_bps: Mean rate out of a rack; None if none is known.
        into_bps: Mean rate into a rack.
    """

    hot_h: float
    p98: float | None
    out_bps: float | None
    into_bps: float | None


@dataclass(frozen=True)
class Rack:
    """A rack before and after.

    Attributes:
        rack: Name.
        link_bps: Rate of its link in each direction.
        nodes: Number of nodes.
        known_h: Hours in which its load is known.
        before: Load as recorded.
        after: Load with the pods that the trial placed elsewhere.
    """

    rack: str
    link_bps: int
    nodes: int
    known_h: float
    before: Load
    after: Load


@dataclass(frozen=True)
class Move:
    """A pod that would have run on another node. The peaks are those by which the plugin decided."""

    namespace: str
    pod: str
    workload: str
    created_ms: int
    source: str
    source_rack: str
    target: str
    target_rack: str
    egress_bps: int
    ingress_bps: int

    def record(self) -> dict[str, Any]:
        """The pod as JSON."""
        names = {"source": "from", "source_rack": "from_rack", "target": "to", "target_rack": "to_rack"}
        return {names.get(name, name): value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Outcome:
    """Result of a trial.

    Attributes:
        recording: The recording.
        hot: Utilization above which a rack is hot.
        racks: Racks, the ones with the most hot time first.
        before: Load of all racks as recorded.
        after: Load of all racks with the trial's placements.
        moves: Pods that would have run elsewhere, by creation.
        stayed: Number of pods that no other rack would have suited better.
        not_judged: Number of pods that came and that the trial cannot judge, by reason.
        ran_before: Number of pods that ran when the trial began.
        peaks: Number of judged pods by the source of their larger peak.
    """

    recording: Recording
    hot: float
    racks: tuple[Rack, ...]
    before: Load
    after: Load
    moves: tuple[Move, ...]
    stayed: int
    not_judged: Mapping[str, int]
    ran_before: int
    peaks: Mapping[str, int]

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about parts that are missing, estimated or doubtful."""
        over = [one.rack for one in self.racks if (one.before.p98 or 0) > UNIT_PPM / 1e6]
        doubt = f"racks carry more than the rate of their links, which is probably too low: {some(over)}"
        return (*self.recording.notes, *([doubt] if over else []))

    @property
    def hot_racks(self) -> tuple[int, int]:
        """Number of racks that were hot at least once, before and after."""
        return sum(one.before.hot_h > 0 for one in self.racks), sum(one.after.hot_h > 0 for one in self.racks)

    def record(self) -> dict[str, Any]:
        """The result as JSON."""
        before, after = self.hot_racks
        return {
            "since": moment_text(self.recording.begin_ms),
            "until": moment_text(self.recording.end_ms),
            "interval_s": self.recording.interval_ms / 1000,
            "hot": self.hot,
            "before": {"hot_racks": before, **asdict(self.before)},
            "after": {"hot_racks": after, **asdict(self.after)},
            "racks": [asdict(rack) for rack in self.racks],
            "pods": {
                "ran_before": self.ran_before,
                "stayed": self.stayed,
                "elsewhere": len(self.moves),
                "not_judged": dict(self.not_judged),
                "peaks": dict(self.peaks),
            },
            "moves": [move.record() for move in self.moves],
            "notes": list(self.notes),
        }


def racks_of(
    recording: Recording, hot: float, names: Sequence[str], before: Sequence[Rates], after: Sequence[Rates]
) -> tuple[tuple[Rack, ...], Load, Load]:
    """Racks before and after, and the load of all of them.

    Args:
        recording: The recording.
        hot: Utilization above which a rack is hot.
        names: Racks in the order of the rates.
        before: Rates as recorded: out of racks and into them, with a row for each rack.
        after: The same with the trial's placements.
    """
    capacity = numpy.array([recording.rack_bps[name] for name in names], dtype=numpy.float64)[:, None]
    hours = recording.interval_ms / HOUR_MS
    nodes = {name: sum(node.rack == name for node in recording.nodes) for name in names}
    racks = [
        Rack(
            name,
            recording.rack_bps[name],
            nodes[name],
            float((~numpy.isnan(before[0][at] + before[1][at])).sum() * hours),
            *(_load(out[at], into[at], capacity[at], hot, hours) for out, into in (before, after)),
        )
        for at, name in enumerate(names)
    ]
    racks.sort(key=lambda one: (-one.before.hot_h, -one.after.hot_h, -(one.before.p98 or 0), one.rack))
    all_before, all_after = (_load(out, into, capacity, hot, hours) for out, into in (before, after))
    return tuple(racks), all_before, all_after


def _load(out: Rates, into: Rates, capacity: Rates, hot: float, hours: float) -> Load:
    """Load over the intervals in which both directions are known."""
    known = ~numpy.isnan(out + into)
    if not known.any():
        return Load(0.0, None, None, None)
    utilization = (numpy.maximum(out, into) / capacity)[known]
    # The nearest rank, as in the analysis of hotspots.
    p98 = float(numpy.percentile(utilization, PERCENTILE, method="inverted_cdf"))
    hot_h = float((utilization > hot).sum() * hours)
    return Load(hot_h, p98, float(out[known].mean()), float(into[known].mean()))
