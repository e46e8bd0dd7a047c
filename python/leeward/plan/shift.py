"""Work that would have to leave a rack, and racks that could take it."""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy

from leeward.plan.series import Numbers, Series, nearest_rank, rank

PERCENT = 100
"""Number of units of a rack's work: each unit is a hundredth of the work."""
OVERLAP = 0.5
"""Least share of a rack's intervals in which a rack that takes its work must have been seen, too."""


@dataclass(frozen=True)
class Rack:
    """A rack, and the series of the links between it and the core.

    Attributes:
        name: Name of the rack.
        kind: `compute`, `disk` or `mixed`.
        pod: Pod of the rack, if any.
        links: `uplink` and `downlink` of the rack, if seen.
        pod_links: `uplink` and `downlink` of its pod, if seen.
    """

    name: str
    kind: str
    pod: str | None
    links: Mapping[str, Series]
    pod_links: Mapping[str, Series]


@dataclass(frozen=True)
class Shift:
    """Work that leaves a rack.

    Attributes:
        percent: Percent of the rack's work that has to leave.
        to: For each rack that takes a part, this part in percent of the work of the rack that it leaves.
    """

    percent: int
    to: dict[str, int]

    @property
    def left(self) -> int:
        """Part that no rack can take, in percent of the rack's work."""
        return self.percent - sum(self.to.values())


@dataclass
class LinkLoads:
    """Load of every link: measured, with all shifts so far.

    Attributes:
        threshold_ppm: Greatest utilization, in millionths.
        thousandths: Percentile of the utilization, in thousandths of a percent.
        loads: Loads by name of the link, in bits per second; links without an entry have the measured load.
    """

    threshold_ppm: int
    thousandths: int
    loads: dict[str, Numbers] = field(default_factory=dict)
    _percentiles: dict[str, float] = field(default_factory=dict, repr=False)

    def of(self, link: Series) -> Numbers:
        """Load of a link."""
        return self.loads.get(link.name, link.load_bps)

    def percentile(self, link: Series, added: Numbers | None = None) -> float:
        """Percentile of a link's utilization at its present capacity.

        Args:
            link: The link.
            added: Additional load in each interval, never below 0.
        """
        if link.name not in self._percentiles:
            self._percentiles[link.name] = nearest_rank(self.of(link)[link.seen], self.thousandths)
        least = self._percentiles[link.name]
        if added is None:
            return least / link.now_bps
        load = (self.of(link) + added)[link.seen]
        # Added load only raises the percentile, so it is among the few values from the old one on.
        high = load[load >= least]
        above = len(load) - rank(len(load), self.thousandths)
        return float(numpy.partition(high, -1 - above)[-1 - above]) / link.now_bps

    def put(self, link: Series, load: Numbers) -> None:
        """Changes the load of a link; intervals without telemetry stay unknown."""
        self.loads[link.name] = load
        self._percentiles.pop(link.name, None)


def shift(rack: Rack, targets: Mapping[str, Rack], loads: LinkLoads) -> Shift:
    """Moves as much of a rack's work as needed to racks that stay under the threshold with it.

    Each unit goes to the rack with the least maximum percentile over the links that the unit would use. All
    traffic of a rack is assumed to leave its pod; a move within a pod changes no load above the pod.

    Args:
        rack: Rack over the threshold.
        targets: Racks that may take work, by name. Only racks of the same kind and mixed racks take any.
        loads: Loads of links so far; the shift is added to them.
    """
    percent = _percent(rack, loads)
    units = {way: numpy.nan_to_num(link.load_bps) / PERCENT for way, link in rack.links.items()}
    queue: list[tuple[float, str]] = []
    for name, target in targets.items():
        if target.kind in (rack.kind, "mixed") and _overlaps(rack, target):
            # Work never lowers a link's load: its percentile without the work is a lower bound.
            least = max(loads.percentile(link) for _, link in _links_used(rack, target))
            heapq.heappush(queue, (least, name))
    to: dict[str, int] = {}
    units_moved = 0
    while units_moved < percent and queue:
        before, name = heapq.heappop(queue)
        target = targets[name]
        # The work may raise the rack's percentile, or links of its pod may have filled up. Then the rack goes
        # back into the queue.
        share = _percentile_with(rack, target, units, loads)
        if share > before:
            heapq.heappush(queue, (share, name))
            continue
        if share * 10**6 > loads.threshold_ppm:
            break
        for way, link in _links_used(rack, target):
            loads.put(link, loads.of(link) + units[way])
        to[name] = to.get(name, 0) + 1
        units_moved += 1
        heapq.heappush(queue, (_percentile_with(rack, target, units, loads), name))
    for way, link in rack.links.items():
        loads.put(link, loads.of(link) - units_moved * units[way])
    outside = sum(number for name, number in to.items() if targets[name].pod != rack.pod)
    for way, link in rack.pod_links.items():
        if outside and way in units:
            # Unseen load of the pod's link cannot fall below zero.
            loads.put(link, numpy.maximum(loads.of(link) - outside * units[way], 0))
    return Shift(percent, to)


def _percent(rack: Rack, loads: LinkLoads) -> int:
    """Hundredths of a rack's work that have to leave the rack."""
    threshold = Fraction(loads.threshold_ppm, 10**6)
    need = 0
    for link in rack.links.values():
        load = Fraction(nearest_rank(loads.of(link)[link.seen], loads.thousandths))
        if load > threshold * Fraction(link.now_bps):
            stays = threshold * Fraction(link.now_bps) / load
            need = max(need, math.ceil((1 - stays) * PERCENT))
    return need


def _links_used(rack: Rack, target: Rack) -> list[tuple[str, Series]]:
    """Links that work would use on a rack that takes it."""
    links = list(target.links.items())
    if target.pod != rack.pod:
        links += target.pod_links.items()
    return [(way, link) for way, link in links if way in rack.links]


def _overlaps(rack: Rack, target: Rack) -> bool:
    """True if a rack was seen at the times at which the other has work."""
    return all(
        way in target.links and (link.seen & target.links[way].seen).sum() >= OVERLAP * link.seen.sum()
        for way, link in rack.links.items()
    )


def _percentile_with(rack: Rack, target: Rack, units: Mapping[str, Numbers], loads: LinkLoads) -> float:
    """Greatest percentile over the links that one more unit would use."""
    return max(loads.percentile(link, units[way]) for way, link in _links_used(rack, target))
