"""Rows of figures 14 and 20 in small: the paper, the simulator and the cluster beside each other."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy

from leeward_reproduce.etalon.kernels.pictures import bars
from leeward_reproduce.hotspots import paper
from leeward_reproduce.hotspots.chunks import HOT, LOW, bucket_shares
from leeward_reproduce.hotspots.pictures import class_panels
from leeward_reproduce.hotspots.real.measures import LINKS, Measures
from leeward_reproduce.hotspots.real.pairs import Pair
from leeward_reproduce.hotspots.real.scenario import POLICIES
from leeward_reproduce.hotspots.requests import CLASSES, Requests
from leeward_reproduce.rows import Row, measured_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Runs = dict[str, Measures]
_NO_NUMBERS = "the paper: nearly all, in a figure without numbers"
_HIGH, _LOW = CLASSES.index("High"), CLASSES.index("Low")


def requests(pairs: Sequence[Pair]) -> list[Row]:
    """Figure 14, before and after CCP."""
    rows = []
    for policy in POLICIES:
        note = _NO_NUMBERS if policy == "default" else ""
        for kind in LINKS:
            for text, value, why in (
                (f"at ToRs below {LOW:.0%} that went to High", _share(policy, kind, 0.0, LOW, _HIGH), note),
                (f"at ToRs over {HOT:.0%} that went to Low", _share(policy, kind, HOT, math.inf, _LOW), note),
                (f"at ToRs over {HOT:.0%}", _hot(policy, kind), ""),
                *((f"that went to {name}", _class(policy, kind, at), "") for at, name in enumerate(CLASSES)),
            ):
                rows.append(_row("14", f"{kind} {text}, {policy}", "%", pairs, value, note=why))
        rows.append(_row("14", f"Cv of copies over racks, {policy}", "", pairs, _variation(policy)))
    return rows


def times(pairs: Sequence[Pair]) -> list[Row]:
    """Figure 20: reads under both policies, with as many reads per second."""
    low, high = paper.READ_GAINS["total"]
    note = f"the paper: {low:g} to {high:g} %, of reads from disks; disks are fast here"
    rows = [_row("20", "p95 of reads: change, default to ccp", "%", pairs, _change(95), high, note)]
    rows.append(_row("20", "median of reads: change, default to ccp", "%", pairs, _change(50)))
    for policy in POLICIES:
        for percent, name in ((50, "median"), (95, "p95")):
            rows.append(_row("20", f"{name} of reads, {policy}", "s", pairs, _quantile(policy, percent)))
    return rows


def classes(pairs: Sequence[Pair], _: Sequence[Row]) -> "Figure":
    """Figure 14 of the cluster: a bar for each bucket of 5 %, over all pairs."""
    return class_panels(
        {policy: {kind: bucket_shares(_pooled(pairs, policy, kind)) for kind in LINKS} for policy in POLICIES}
    )


def changes(_: Sequence[Pair], rows: Sequence[Row]) -> "Figure":
    """Figure 20: the paper, the simulator and the cluster."""
    return bars(rows, "real")


def _pooled(pairs: Sequence[Pair], policy: str, kind: str) -> Iterator[Requests]:
    for pair in pairs:
        one = pair.real[policy]
        yield Requests(numpy.array(one.utilization[kind]), numpy.array(one.kinds[kind], dtype=int))


def _row(
    figure: str,
    quantity: str,
    unit: str,
    pairs: Sequence[Pair],
    value: Callable[[Runs], float],
    reported: float | None = None,
    note: str = "",
) -> Row:
    """A row with the mean over pairs, and an interval for the cluster. Pairs without a value do not count."""
    real, simulator = (
        [number for number in map(value, runs) if math.isfinite(number)]
        for runs in ([pair.real for pair in pairs], [pair.simulator for pair in pairs])
    )
    row = measured_row(figure, quantity, unit, real, reported, note)
    return replace(row, simulator=math.fsum(simulator) / len(simulator) if simulator else None)


def _percent(chosen: list[bool]) -> float:
    return 100 * sum(chosen) / len(chosen) if chosen else math.nan


def _share(policy: str, kind: str, least: float, most: float, wanted: int) -> Callable[[Runs], float]:
    """Percent of the requests in a range of utilization that went to a class."""

    def share(runs: Runs) -> float:
        one = runs[policy]
        pairs = zip(one.kinds[kind], one.utilization[kind], strict=True)
        return _percent([at == wanted for at, load in pairs if least <= load < most])

    return share


def _class(policy: str, kind: str, wanted: int) -> Callable[[Runs], float]:
    return _share(policy, kind, 0.0, math.inf, wanted)


def _hot(policy: str, kind: str) -> Callable[[Runs], float]:
    def hot(runs: Runs) -> float:
        return _percent([load > HOT for load in runs[policy].utilization[kind]])

    return hot


def _variation(policy: str) -> Callable[[Runs], float]:
    def variation(runs: Runs) -> float:
        stored = numpy.array(runs[policy].stored)
        return float(stored.std() / stored.mean()) if stored.any() else math.nan

    return variation


def _quantile(policy: str, percent: float) -> Callable[[Runs], float]:
    def quantile(runs: Runs) -> float:
        seconds = runs[policy].seconds
        return float(numpy.percentile(seconds, percent)) if seconds else math.nan

    return quantile


def _change(percent: float) -> Callable[[Runs], float]:
    def change(runs: Runs) -> float:
        before, after = (_quantile(policy, percent)(runs) for policy in POLICIES)
        return 100 * (after / before - 1)

    return change
