"""Rows of figures 14 and 20 in small: the paper, the simulator and the cluster beside each other."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy

from leeward_reproduce.bars import bars
from leeward_reproduce.hotspots import paper
from leeward_reproduce.hotspots.chunks import HOT, LOW, bucket_shares
from leeward_reproduce.hotspots.pictures import class_panels
from leeward_reproduce.hotspots.real.measures import LINKS, Measures
from leeward_reproduce.hotspots.real.scenario import POLICIES
from leeward_reproduce.hotspots.requests import CLASSES, Requests
from leeward_reproduce.real.rows import Pair, agreement, busy, placed_by_hdfs, row, values
from leeward_reproduce.rows import Reason, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Runs = Mapping[str, Measures]
Pairs = Sequence[Pair[Measures]]
_NO_NUMBERS = "the paper: nearly all, in a figure without numbers"
_QUANTILES = ((50, "median"), (95, "p95"))
_HIGH, _LOW = CLASSES.index("High"), CLASSES.index("Low")


def requests(pairs: Pairs) -> list[Row]:
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
                rows.append(row("14", f"{kind} {text}, {policy}", "%", values(value, pairs), note=why))
        rows.append(row("14", f"Cv of copies over racks, {policy}", "", values(_variation(policy), pairs)))
    for kind in LINKS:
        change = values(_hot_change(kind), pairs)
        rows.append(row("14", f"{kind} at ToRs over {HOT:.0%}: ccp - default", "%", change))
    for policy in POLICIES:
        for kind in LINKS:
            high = values(_class(policy, kind, _HIGH), pairs)
            rows.append(agreement("14", f"{kind} that went to High, {policy}", high))
        copies = values(_variation(policy), pairs)
        rows.append(agreement("14", f"Cv of copies over racks, {policy}", copies))
    rows.append(row("14", "blocks that HDFS's policy placed, ccp", "%", values(_placed_by_hdfs, pairs)))
    return rows


def times(pairs: Pairs) -> list[Row]:
    """Figure 20: reads under both policies, with as many reads per second."""
    reported, why = paper.READ_GAINS["total"], Reason("disks do not limit reads here")
    note, p95 = "of reads from disks in the paper", values(_change(95), pairs)
    rows = [
        row("20", "p95 of reads: change, default to ccp", "%", p95, reported, note, why, is_change=True),
        row("20", "median of reads: change, default to ccp", "%", values(_change(50), pairs)),
    ]
    for policy in POLICIES:
        for percent, name in _QUANTILES:
            of_seeds = values(_quantile(policy, percent), pairs)
            rows.append(row("20", f"{name} of reads, {policy}", "s", of_seeds))
    for policy in POLICIES:
        for percent, name in _QUANTILES:
            of_seeds = values(_quantile(policy, percent), pairs)
            rows.append(agreement("20", f"{name} of reads, {policy}", of_seeds))
    for policy in POLICIES:
        rows.append(row("20", f"processors in use, {policy}", "%", values(_busy(policy), pairs)))
    return rows


def classes(pairs: Pairs, _: Sequence[Row]) -> "Figure":
    """Figure 14 of the cluster: a bar for each bucket of 5 %, over all pairs."""
    return class_panels(
        {policy: {kind: bucket_shares(_pooled(pairs, policy, kind)) for kind in LINKS} for policy in POLICIES}
    )


def changes(_: Pairs, rows: Sequence[Row]) -> "Figure":
    """Figure 20: the paper, the simulator and the cluster."""
    return bars(rows, "real")


def _pooled(pairs: Pairs, policy: str, kind: str) -> Iterator[Requests]:
    for pair in pairs:
        one = pair.real[policy]
        yield Requests(numpy.array(one.utilization[kind]), numpy.array(one.kinds[kind], dtype=int))


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


def _hot_change(kind: str) -> Callable[[Runs], float]:
    """Difference of the shares under both policies, in points."""
    return lambda runs: _hot("ccp", kind)(runs) - _hot("default", kind)(runs)


def _variation(policy: str) -> Callable[[Runs], float]:
    def variation(runs: Runs) -> float:
        stored = numpy.array(runs[policy].stored)
        return float(stored.std() / stored.mean()) if stored.any() else math.nan

    return variation


def _placed_by_hdfs(runs: Runs) -> float:
    return placed_by_hdfs(runs["ccp"].decisions)


def _busy(policy: str) -> Callable[[Runs], float]:
    return lambda runs: busy(runs[policy].busy)


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
