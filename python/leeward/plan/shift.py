"""How much work would have to leave a rack, and which racks could take it."""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy

from leeward.plan.series import Numbers, Series, nearest_rank, rank

PERCENT = 100
"""Units that a rack's work is moved in are hundredths of it."""
OVERLAP = 0.5
"""The least share of a rack's intervals in which a rack that takes its work was seen, too."""


@dataclass(frozen=True)
class Rack:
    """A rack, and the series of the links between it and the core.

    Attributes:
        name: The rack's.
        kind: `compute`, `disk` or `mixed`.
        pod: Its pod, if there are pods.
        links: Its `uplink` and `downlink`, where they were seen.
        pod_links: Its pod's, likewise.
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
        percent: Of the rack's work, so much has to leave.
        to: For each rack that takes some of it, how much: percent of the first rack's work.
    """

    percent: int
    to: dict[str, int]

    @property
    def left(self) -> int:
        """What no rack can take, in percent of the rack's work."""
        return self.percent - sum(self.to.values())


@dataclass
class Carried:
    """What every link would carry: measured, with all shifts so far.

    Attributes:
        threshold_ppm: What utilization may be, in millionths.
        thousandths: Which percentile of it, in thousandths of a percent.
        loads: By name of the link, in bits per second; where one is not in it, it is as measured.
    """

    threshold_ppm: int
    thousandths: int
    loads: dict[str, Numbers] = field(default_factory=dict)
    _percentiles: dict[str, float] = field(default_factory=dict, repr=False)

    def of(self, link: Series) -> Numbers:
        """What a link would carry."""
        return self.loads.get(link.name, link.load_bps)

    def percentile(self, link: Series, added: Numbers | None = None) -> float:
        """The percentile of a link's utilization at the capacity it has now.

        Args:
            link: The link.
            added: What it would carry more in each interval, nowhere below 0.
        """
        if link.name not in self._percentiles:
            self._percentiles[link.name] = nearest_rank(self.of(link)[link.seen], self.thousandths)
        least = self._percentiles[link.name]
        if added is None:
            return least / link.now_bps
        load = (self.of(link) + added)[link.seen]
        # With more it is not less, so that it is among those from there on, which are few.
        high = load[load >= least]
        above = len(load) - rank(len(load), self.thousandths)
        return float(numpy.partition(high, -1 - above)[-1 - above]) / link.now_bps

    def put(self, link: Series, load: Numbers) -> None:
        """Changes what a link would carry; where it was not seen, nothing is known of it still."""
        self.loads[link.name] = load
        self._percentiles.pop(link.name, None)


def shift(rack: Rack, targets: Mapping[str, Rack], carried: Carried) -> Shift:
    """Moves as much of a rack's work as is needed to racks that stay under the threshold with it.

    Unit by unit it goes where the highest percentile, over the links that the unit would use, is least. All
    that a rack sends and receives is taken to leave its pod; within a pod, nothing changes above it.

    Args:
        rack: Over the threshold.
        targets: Racks that may take work, by name; of another kind than the rack's they take none, unless
            they are mixed.
        carried: What links would carry so far; shifts are added to it.
    """
    percent = _percent(rack, carried)
    units = {way: numpy.nan_to_num(link.load_bps) / PERCENT for way, link in rack.links.items()}
    queue: list[tuple[float, str]] = []
    for name, target in targets.items():
        if target.kind in (rack.kind, "mixed") and _overlaps(rack, target):
            # More work makes no link less busy: what it is without is not above what it would be.
            least = max(carried.percentile(link) for _, link in _used(rack, target))
            heapq.heappush(queue, (least, name))
    to: dict[str, int] = {}
    moved = 0
    while moved < percent and queue:
        before, name = heapq.heappop(queue)
        target = targets[name]
        # It may be busier with the work, or a pod's links have filled up: then it goes back to its place.
        share = _with(rack, target, units, carried)
        if share > before:
            heapq.heappush(queue, (share, name))
            continue
        if share * 10**6 > carried.threshold_ppm:
            break
        for way, link in _used(rack, target):
            carried.put(link, carried.of(link) + units[way])
        to[name] = to.get(name, 0) + 1
        moved += 1
        heapq.heappush(queue, (_with(rack, target, units, carried), name))
    for way, link in rack.links.items():
        carried.put(link, carried.of(link) - moved * units[way])
    outside = sum(number for name, number in to.items() if targets[name].pod != rack.pod)
    for way, link in rack.pod_links.items():
        if outside and way in units:
            # What was not seen of the pod's link cannot be below nothing.
            carried.put(link, numpy.maximum(carried.of(link) - outside * units[way], 0))
    return Shift(percent, to)


def _percent(rack: Rack, carried: Carried) -> int:
    """How many hundredths of a rack's work have to leave it."""
    threshold = Fraction(carried.threshold_ppm, 10**6)
    need = 0
    for link in rack.links.values():
        load = Fraction(nearest_rank(carried.of(link)[link.seen], carried.thousandths))
        if load > threshold * Fraction(link.now_bps):
            stays = threshold * Fraction(link.now_bps) / load
            need = max(need, math.ceil((1 - stays) * PERCENT))
    return need


def _used(rack: Rack, target: Rack) -> list[tuple[str, Series]]:
    """The links that work would use on a rack that takes it."""
    used = list(target.links.items())
    if target.pod != rack.pod:
        used += target.pod_links.items()
    return [(way, link) for way, link in used if way in rack.links]


def _overlaps(rack: Rack, target: Rack) -> bool:
    """Whether enough is known of a rack at the times at which the other has work."""
    return all(
        way in target.links and (link.seen & target.links[way].seen).sum() >= OVERLAP * link.seen.sum()
        for way, link in rack.links.items()
    )


def _with(rack: Rack, target: Rack, units: Mapping[str, Numbers], carried: Carried) -> float:
    """The highest percentile over the links that one more unit would use."""
    return max(carried.percentile(link, units[way]) for way, link in _used(rack, target))
