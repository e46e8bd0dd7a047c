"""How much work would have to leave a rack, and which racks could take it."""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy

from leeward.plan.series import Numbers, Series, nearest_rank

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

    def of(self, link: Series) -> Numbers:
        """What a link would carry."""
        return self.loads.get(link.name, link.load_bps)

    def percentile(self, link: Series, added: Numbers | None = None) -> float:
        """The percentile of a link's utilization at the capacity it has now, with more added."""
        load = self.of(link) if added is None else self.of(link) + numpy.nan_to_num(added)
        return nearest_rank(load[link.seen], self.thousandths) / link.now_bps

    def add(self, link: Series, added: Numbers) -> None:
        """Adds to what a link would carry; where it was not seen, nothing is known of it still."""
        self.loads[link.name] = self.of(link) + numpy.nan_to_num(added)


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
    units = {way: link.load_bps / PERCENT for way, link in rack.links.items()}
    queue: list[tuple[float, str]] = []
    for name, target in targets.items():
        if target.kind in (rack.kind, "mixed") and _overlaps(rack, target):
            heapq.heappush(queue, (_with(rack, target, units, carried), name))
    to: dict[str, int] = {}
    moved = 0
    while moved < percent and queue:
        before, name = heapq.heappop(queue)
        target = targets[name]
        # A pod's links may have filled up since: then it goes back to where it belongs now.
        share = _with(rack, target, units, carried)
        if share > before:
            heapq.heappush(queue, (share, name))
            continue
        if share * 10**6 > carried.threshold_ppm:
            break
        for way, link in _used(rack, target):
            carried.add(link, units[way])
        to[name] = to.get(name, 0) + 1
        moved += 1
        heapq.heappush(queue, (_with(rack, target, units, carried), name))
    for way, link in rack.links.items():
        carried.add(link, -moved * units[way])
    outside = sum(number for name, number in to.items() if targets[name].pod != rack.pod)
    for way, link in rack.pod_links.items():
        if outside and way in units:
            # What was not seen of the pod's link cannot be below nothing.
            carried.loads[link.name] = numpy.maximum(
                carried.of(link) - outside * numpy.nan_to_num(units[way]), 0
            )
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
