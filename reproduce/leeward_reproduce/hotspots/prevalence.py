"""Places, durations and causes of hot links: figures 3 to 5, 8 and 9, by `leeward.hotspots`.

Runs of the fluid simulator replace a fleet's telemetry: a month of cells under three loads, before UTP, with
racks of all kinds. In each cell, services grow and racks lose uplinks for days, and the traffic of disk
servers follows the size of their disks (section 3.3; see `month.yaml`). A synthetic fleet (`fleet`) replaces
data that no run has (figures 6, 7 and a part of 3). The paper's fleet is private: its values are for
reference only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy
import pyarrow
from pyarrow import compute

from leeward import Cluster
from leeward._arrays import Floats
from leeward.hotspots import durations, hot
from leeward.hotspots.causes.provision import provision
from leeward.hotspots.causes.tasks import correlation
from leeward.hotspots.settings import Settings
from leeward.telemetry import Engine, Samples, windows
from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import fleet, paper
from leeward_reproduce.hotspots.sweeps import (
    MONTH,
    MONTH_CLUSTER,
    MONTH_LOADS,
    MONTH_PLAIN,
    MONTH_STEADY,
)
from leeward_reproduce.links import samples
from leeward_reproduce.rows import Row, measured_row, reference_row
from leeward_reproduce.sweeps import Cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MONTH_SWEEPS = (MONTH,)
DURATION_SWEEPS = (MONTH, MONTH_PLAIN, MONTH_STEADY)
_REFERENCE = "the paper's fleet is private: its value is for reference only"
_DAY_S = 86_400.0
_BOUNDS_S = {
    "below 1 h": (0.0, 3600.0),
    "1 to 12 h": (3600.0, _DAY_S / 2),
    "1 day to 2 weeks": (_DAY_S, 14 * _DAY_S),
}
_VARIANTS = {
    MONTH_PLAIN: "without growth of services and losses of uplinks",
    MONTH_STEADY: "with rates that change with the time of day alone",
}
"""Months with one input changed, and its name in rows: tests of what cuts and what makes long hotspots."""


@dataclass(frozen=True)
class _Month:
    """Hotspots of ToRs in one cell.

    Attributes:
        directions: Number of hot link-intervals, and of all, in each direction.
        kinds: Number of hot link-intervals by kind of rack.
        durations: Duration of each hotspot, in seconds.
        racks: Mean utilization of the busier direction of each rack, 0 to 1.
    """

    directions: Mapping[str, tuple[int, int]]
    kinds: Mapping[str, int]
    durations: Floats
    racks: Mapping[str, float]


@lru_cache(maxsize=128)
def _month(cells: Cells, seed: int, load: str) -> _Month:
    every = windows(samples(cells.table("links", "borg", seed, load), MONTH_CLUSTER))
    bins = hot.histogram(every, Settings())
    runs = durations.runs(every, durations.hot_intervals(every, Settings()))
    table = every.samples.engine.arrow(runs)
    racks: dict[str, float] = {}
    for row in hot.by_link(every, bins, hot.hours(every), runs).to_pylist():
        if row["cross_section"] == hot.TOR:
            racks[row["rack"]] = max(racks.get(row["rack"], 0.0), row["mean_ppm"] / 1e6)
    return _Month(
        {
            row["direction"]: (row["hot"], row["intervals"])
            for row in hot.by_cross_section(every, bins).to_pylist()
            if row["cross_section"] == hot.TOR
        },
        {row["kind"]: row["hot"] for row in hot.by_kind(every, bins).to_pylist()},
        compute.subtract(table["end_ms"], table["start_ms"]).to_numpy() / 1000,
        racks,
    )


def _fleet(cells: Cells, seed: int) -> list[_Month]:
    """The cells that represent a fleet, under one seed."""
    return [_month(cells, seed, load) for load in MONTH_LOADS]


def section_rows(results: Results) -> list[Row]:
    """Figure 3: rates of hot links by direction."""
    cells, rates, upwards = results[MONTH], list[float](), list[float]()
    for seed in cells.seeds:
        of_fleet = [one.directions for one in _fleet(cells, seed)]
        count = sum(number for one in of_fleet for number, _ in one.values())
        rates.append(100 * count / sum(number for one in of_fleet for _, number in one.values()))
        upwards += [100 * sum(one["up"][0] for one in of_fleet) / count] if count else []
    label = "hot link-intervals of ToRs, borg"
    return [
        measured_row("3", label, "%", rates, None, "the paper's axis has no numbers"),
        reference_row("3", "of these upwards", "%", upwards, paper.HOT_UPWARDS, _REFERENCE),
        *fleet.section_rows(results),
    ]


def _durations(cells: Cells) -> list[Floats]:
    """For each seed with hotspots, the duration of each in the fleet, in seconds."""
    by_seed = [numpy.concatenate([one.durations for one in _fleet(cells, seed)]) for seed in cells.seeds]
    return [one for one in by_seed if len(one)]


def duration_rows(results: Results) -> list[Row]:
    """Figure 4: durations of hot links."""
    result = []
    by_seed = _durations(results[MONTH])
    for words, values in _shares(by_seed).items():
        label = f"hotspots that last {words}, borg"
        result.append(reference_row("4", label, "%", values, paper.DURATIONS[words], _REFERENCE))
    label = "hot time in hotspots that last a day or more"
    result.append(measured_row("4", f"{label}, borg", "%", _long_time(by_seed)))
    for sweep, variant in _VARIANTS.items():
        by_seed = _durations(results[sweep])
        for words, values in _shares(by_seed).items():
            result.append(measured_row("4", f"hotspots that last {words}, {variant}", "%", values))
        result.append(measured_row("4", f"{label}, {variant}", "%", _long_time(by_seed)))
    return result


def _shares(by_seed: Sequence[Floats]) -> dict[str, list[float]]:
    """Percent of hotspots in each range of durations, by seed."""
    return {
        words: [100 * float(((one >= low) & (one < high)).mean()) for one in by_seed]
        for words, (low, high) in _BOUNDS_S.items()
    }


def _long_time(by_seed: Sequence[Floats]) -> list[float]:
    """Percent of the hot time that is in hotspots of a day or more, by seed."""
    return [100 * float(one[one >= _DAY_S].sum() / one.sum()) for one in by_seed]


def kind_rows(results: Results) -> list[Row]:
    """Figure 5: hot links by kind of rack."""
    cells, counts = results[MONTH], {"compute": list[float](), "disk": [], "mixed": []}
    for seed in cells.seeds:
        of_fleet = [one.kinds for one in _fleet(cells, seed)]
        total = sum(number for one in of_fleet for number in one.values())
        for kind in counts:
            counts[kind] += [100 * sum(one[kind] for one in of_fleet) / total] if total else []
    racks = Cluster(MONTH_CLUSTER).rack_table()["kind"].to_pylist()
    result = []
    for kind, values in counts.items():
        note = f"{racks.count(kind)} of {len(racks)} racks are of this kind, our choice; {_REFERENCE}"
        label = f"share of hot link-intervals, {kind} racks, borg"
        result.append(reference_row("5", label, "%", values, paper.KINDS.get(kind), note))
    return result


def _crowding(cells: Cells, seed: int, load: str) -> tuple[Floats, Floats]:
    """For each compute rack: mean number of network-intensive tasks per Gb/s of uplink, and utilization.

    The utilization of a rack is the mean utilization of its busier direction, from 0 to 1.
    """
    network = Cluster(MONTH_CLUSTER)
    kinds = {row["rack"]: row["kind"] for row in network.rack_table().to_pylist()}
    capacity = {
        link["rack"]: link["capacity_bps"] / 1e9
        for link in network.links().to_pylist()
        if link["cross_section"] == hot.TOR and kinds[link["rack"]] == "compute"
    }
    links = cells.table("links", "borg", seed, load)["start_s"].to_numpy()
    first, last = float(links.min()), float(links.max())
    tasks = cells.table("tasks", "borg", seed, load)
    placed, finished = (tasks[name].to_numpy(zero_copy_only=False) for name in ("placed_s", "finished_s"))
    begin = numpy.maximum(placed, first)
    end = numpy.where(numpy.isnan(finished), last, numpy.fmin(finished, last))
    spent = numpy.where(tasks["intensive"].to_numpy(zero_copy_only=False) & (end > begin), end - begin, 0.0)
    there: dict[str, float] = dict.fromkeys(capacity, 0.0)
    for at in numpy.flatnonzero(spent).tolist():
        rack = tasks["host"][at].as_py().partition("h")[0]
        if rack in there:
            there[rack] += spent[at] / (last - first)
    utilization = _month(cells, seed, load).racks
    return (
        numpy.array([there[rack] / capacity[rack] for rack in capacity]),
        numpy.array([utilization[rack] for rack in capacity]),
    )


def crowding_rows(results: Results) -> list[Row]:
    """Figure 8: network-intensive tasks per Gb/s of uplink, against utilization."""
    cells, values = results[MONTH], list[float]()
    for seed in cells.seeds:
        pairs = [_crowding(cells, seed, load) for load in MONTH_LOADS]
        outcome = [correlation(x.tolist(), y.tolist()) for x, y in pairs]
        of_loads = [one[0] for one in outcome if one]
        values += [sum(of_loads) / len(of_loads)] if of_loads else []
    label = "network-intensive tasks per Gb/s and utilization of ToRs: Pearson's r over compute racks, borg"
    note = "mean over the cells of three loads; the paper: a clear correlation, without a number"
    return [measured_row("8", label, "", values, None, note)]


def provision_rows(_: Results) -> list[Row]:
    """Figure 9: uplink over disk capacity."""
    network = Cluster(MONTH_CLUSTER)
    engine = Engine.duckdb(threads=1)
    nothing = engine.table(pyarrow.table({"link": pyarrow.array([], "int32")}))
    racks = provision(Samples(engine, nothing, network.links(), network.rack_table(), 1000), Settings()).racks
    shares = [
        row["normalized"]
        for row in racks.to_pylist()
        if row["kind"] == "disk" and row["normalized"] is not None
    ]
    note = f"of the cluster of figures 3 to 5 and 8, made as uneven on purpose; {_REFERENCE}"
    label = "uplink over disk capacity, largest over smallest, disk racks"
    return [reference_row("9", label, "x", [max(shares) / min(shares)], paper.WIDEST_RACK, note)]


def lasting(results: Results, _: Sequence[Row]) -> "Figure":
    """Figure 4: cumulative distributions of durations over all seeds."""
    from matplotlib import pyplot

    fig, axes = pyplot.subplots(figsize=(6.4, 3.9), layout="constrained")
    shares = numpy.linspace(0, 100, 101)
    for sweep, words, style in (
        (MONTH, "with causes that last", "-"),
        (MONTH_PLAIN, "without growth and losses", "--"),
    ):
        if by_seed := _durations(results[sweep]):
            hours = numpy.concatenate(by_seed) / 3600
            axes.plot(numpy.percentile(hours, shares), shares, style, color="#5a6a7a", label=words)
    if axes.lines:
        axes.legend(loc="lower right", fontsize=8)
    for words in list(_BOUNDS_S)[:2]:
        high = _BOUNDS_S[words][1]
        upto = sum(share for name, share in paper.DURATIONS.items() if _BOUNDS_S[name][1] <= high)
        axes.plot(
            [high / 3600], [upto], "D", markerfacecolor="white", markeredgecolor="#111111", markersize=8
        )
        axes.annotate(
            f"the paper: {words}", (high / 3600, upto), (8, -10), textcoords="offset points", fontsize=8
        )
    axes.set_xscale("log")
    axes.set_xlabel("hours that a ToR's link stays hot")
    axes.set_ylabel("hotspots that last at most this, %")
    return fig


def crowding(results: Results, _: Sequence[Row]) -> "Figure":
    """Figure 8: a point for each compute rack, of all seeds and loads."""
    from matplotlib import pyplot

    cells = results[MONTH]
    fig, axes = pyplot.subplots(figsize=(6.4, 3.9), layout="constrained")
    for seed in cells.seeds:
        for load in MONTH_LOADS:
            across, up = _crowding(cells, seed, load)
            axes.plot(across, 100 * up, ".", color="#5a6a7a", markersize=3)
    axes.set_xlabel("network-intensive tasks for each Gb/s of uplink")
    axes.set_ylabel("mean utilization of the ToR, %")
    return fig
