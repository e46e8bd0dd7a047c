"""Imbalance of links: that of the input (figure 5), and the effect of placement (figures 8 and 9).

Cv is the standard deviation over the mean of the loads of all links of a kind, in each interval of 10 s
(section 4.3).
"""

from collections.abc import Mapping

import numpy

from leeward._arrays import Floats
from leeward.hotspots.hot import TOR, hours
from leeward.hotspots.imbalance import imbalance
from leeward.hotspots.settings import Settings
from leeward.telemetry import windows
from leeward_reproduce.links import samples
from leeward_reproduce.rows import Reason, Row, measured_row
from leeward_reproduce.sinbad import paper
from leeward_reproduce.sinbad.pairs import differences
from leeward_reproduce.sinbad.sweeps import (
    DEMO,
    HOUR,
    MACHINES,
    OPT,
    REMOTE_RACKS,
    WRITERS,
    policy,
    short,
)
from leeward_reproduce.sweeps import Cells, Sweep

INPUT_SWEEPS = (HOUR,)
LINK_SWEEPS = (WRITERS,)
RACK_SWEEPS = (HOUR,)
MACHINE_SWEEPS = (MACHINES,)

_TIERS = {
    "rack_uplink": "racks' uplinks",
    "rack_downlink": "racks' downlinks",
    "host_egress": "out of machines",
    "host_ingress": "into machines",
}
_WRITERS = {
    "waves": "writes at the rate of disks",
    "paced": "writes at the pace of tasks",
    "none": "background alone",
}
"""Values of the generator's setting `writers`, in words."""
_ALONE = "the background alone, without writes (`5-links`)"
_BACKGROUND = Reason("background dominates the links' unevenness, and does not move")
_SHUFFLES = Reason("shuffles make most of it, and what leaves a machine is not placed")
_UNEVEN = Reason("some 25 writers at a time on 150 uplinks", _ALONE)
_UNSTABLE = {
    "waves": Reason(
        "each link has a block that starts or ends every 19 s, and a block is a fifth of the link's capacity",
        "writes at the pace of tasks, and the background alone",
    ),
    "paced": Reason(
        "the generator is fitted to the stability of its background, and not of all traffic", _ALONE
    ),
    "none": Reason(
        "the rate at a time is a mean of 5 s here, and the generator is fitted to the rate at an instant"
    ),
}


def cv(cells: Cells, policy: str, seed: int, kind: str) -> Floats:
    """Cv of each interval in which links of a kind carried anything, sorted."""
    balance = cells.table("balance", policy, seed)
    of_kind = balance["kind"].to_numpy(zero_copy_only=False) == kind
    values = balance["cv"].to_numpy(zero_copy_only=False)[of_kind]
    return numpy.sort(values[numpy.isfinite(values)])


def input_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Figure 5: share of intervals with uneven links under the default."""
    hour, result = results[HOUR], []
    for kind in ("rack_downlink", "rack_uplink"):
        uneven = [cv(hour, policy("uniform", 1), seed, kind) for seed in hour.seeds]
        values = [100 * float((one > 1).mean()) for one in uneven if len(one)]
        label = f"intervals of 10 s in which Cv > 1, {_TIERS[kind]}, uniform, 1 remote"
        note = "almost half, in words; the generator is fitted to it"
        if kind == "rack_uplink":
            note += " without writes"
        result.append(measured_row("5", label, "%", values, paper.UNEVEN_HALF, note, _UNEVEN))
    return result


def link_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Figure 5 and the rest of section 4.3, by `leeward.hotspots` from loads of links."""
    result = []
    for writers, words in _WRITERS.items():
        result += _link_rows(results[WRITERS], writers, words)
    return result


def _link_rows(cells: Cells, writers: str, words: str) -> list[Row]:
    """Rows of the runs with one value of `writers`."""
    ways = ("down", "up")
    uneven: dict[str, list[float]] = {way: [] for way in ways}
    busy: dict[str, list[float]] = {way: [] for way in ways}
    worst: dict[int, list[float]] = {seconds: [] for seconds in paper.STABLE}
    every: dict[int, list[float]] = {seconds: [] for seconds in paper.STABLE}
    for seed in cells.seeds:
        links = cells.table("links", policy("uniform", 1), seed, writers)
        all_windows = windows(samples(links, DEMO / "cluster.yaml"))
        outcome = imbalance(all_windows, hours(all_windows), Settings())
        for row in outcome.unevenness.to_pylist():
            if row["cross_section"] == TOR and row["above_one"] is not None:
                uneven[row["direction"]].append(100 * row["above_one"])
                busy[row["direction"]].append(100 * row["busy"])
        for row in outcome.stability.to_pylist():
            seconds = row["horizon_ms"] // 1000
            if seconds in worst and row["worst"] is not None:
                worst[seconds].append(100 * row["worst"])
                every[seconds].append(100 * row["all"])
    result = []
    for way in ways:
        label = f"intervals of 10 s in which Cv > 1, racks' {way}links, {words}"
        reason = _UNEVEN if (writers, way) == ("waves", "up") else None
        result.append(measured_row("5-links", label, "%", uneven[way], paper.UNEVEN_HALF, reason=reason))
    for way in ways:
        label = f"intervals of 10 s in which the 95th percentile of racks' {way}links is above 75 %, {words}"
        note = "of bottleneck links in the paper, without saying in which direction"
        result.append(measured_row("5-links", label, "%", busy[way], paper.BUSY, note))
    for seconds, values in worst.items():
        label = f"utilization of the least predictable link moves by at most 5 % in {seconds} s, {words}"
        reason = _UNSTABLE[writers]
        result.append(measured_row("5-links", label, "%", values, paper.STABLE[seconds], reason=reason))
    for seconds, values in every.items():
        label = f"utilization of any link moves by at most 5 % in {seconds} s, {words}"
        result.append(measured_row("5-links", label, "%", values))
    return result


def rack_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Figure 8: decrease of the median Cv, over racks."""
    hour, result = results[HOUR], []
    for remote in REMOTE_RACKS:
        for name in (OPT, "sinbad", "leeward"):
            for quantity, reported in paper.CV_DECREASE.items():
                values = differences(hour, quantity, policy(name, remote), policy("uniform", remote))
                tier = _TIERS[quantity.removesuffix("_cv")]
                label = f"decrease of the median Cv, {tier}: uniform - {short(name)}, {remote} remote"
                paper_value = reported if name == OPT else None
                result.append(measured_row("8", label, "", values, paper_value, reason=_BACKGROUND))
    return result


def machine_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Figure 9: decrease of the median Cv, over machines."""
    machines, result = results[MACHINES], []
    for name in ("sinbad", "leeward"):
        for quantity, reported in paper.MACHINES_CV_DECREASE.items():
            values = differences(machines, quantity, name, "uniform")
            tier = _TIERS[quantity.removesuffix("_cv")]
            label = f"decrease of the median Cv, {tier}: uniform - {name}"
            is_paper = name == "sinbad"
            paper_value = reported if is_paper else None
            result.append(measured_row("9", label, "", values, paper_value, reason=_SHUFFLES))
    return result
