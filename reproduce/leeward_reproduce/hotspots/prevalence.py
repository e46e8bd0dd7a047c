"""Places, durations and causes of hot links: figures 3 to 9, by `leeward.hotspots` on simulated links.

Runs of the fluid simulator replace a fleet's telemetry: the pilot cell before UTP (figures 3, 4 and 8), and
chunks before CCP (figure 5). A synthetic fleet (`fleet`) replaces data that no run has (figures 6, 7 and a
part of 3). The paper's fleet is private: its values are for reference only.
"""

from collections.abc import Sequence
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
from leeward.telemetry import Engine, Samples, Windows, windows
from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import fleet, paper
from leeward_reproduce.hotspots.sweeps import CHUNKS_LOADS, CHUNKS_PAIR, HERE, PILOT_PAIR, STORAGE
from leeward_reproduce.links import samples
from leeward_reproduce.rows import Row, measured_row, reference_row
from leeward_reproduce.sweeps import Cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL_SWEEPS = (PILOT_PAIR,)
KIND_SWEEPS = (CHUNKS_PAIR,)
KIND_INTERVAL_MS = 30_000
"""Interval of figure 5: in these runs of half an hour, no link is hot on average over five minutes."""
COMPUTE = HERE / "clusters" / "compute.yaml"
_REFERENCE = "the paper's fleet is private: its value is for reference only"
_DAY_S = 86_400.0
_BOUNDS_S = {
    "below 1 h": (0.0, 3600.0),
    "1 to 12 h": (3600.0, _DAY_S / 2),
    "1 day to 2 weeks": (_DAY_S, 14 * _DAY_S),
}


@lru_cache(maxsize=16)
def _cell(cells: Cells, seed: int) -> Windows:
    return windows(samples(cells.table("links", "borg", seed), COMPUTE))


def section_rows(results: Results) -> list[Row]:
    """Figure 3: rates of hot links by direction."""
    cells, rates, upwards = results[PILOT_PAIR], list[float](), list[float]()
    for seed in cells.seeds:
        every = _cell(cells, seed)
        outcome = hot.by_cross_section(every, hot.histogram(every, Settings())).to_pylist()
        tors = {row["direction"]: row for row in outcome if row["cross_section"] == hot.TOR}
        count = sum(row["hot"] for row in tors.values())
        rates.append(100 * count / sum(row["intervals"] for row in tors.values()))
        upwards += [100 * tors["up"]["hot"] / count] if count else []
    label = "hot link-intervals of ToRs, borg"
    return [
        measured_row("3", label, "%", rates, None, "the paper's axis has no numbers"),
        reference_row("3", "of these upwards", "%", upwards, paper.HOT_UPWARDS, _REFERENCE),
        *fleet.section_rows(results),
    ]


def _durations(cells: Cells, seed: int) -> Floats:
    """Duration of each hotspot, in seconds."""
    every = _cell(cells, seed)
    runs = every.samples.engine.arrow(durations.runs(every, durations.hot_intervals(every, Settings())))
    result: Floats = compute.subtract(runs["end_ms"], runs["start_ms"]).to_numpy() / 1000
    return result


def duration_rows(results: Results) -> list[Row]:
    """Figure 4: durations of hot links."""
    cells, result = results[PILOT_PAIR], []
    by_seed = [_durations(cells, seed) for seed in cells.seeds]
    for words, (low, high) in _BOUNDS_S.items():
        values = [100 * float(((one >= low) & (one < high)).mean()) for one in by_seed if len(one)]
        result.append(
            reference_row(
                "4", f"hotspots that last {words}, borg", "%", values, paper.DURATIONS[words], _REFERENCE
            )
        )
    return result


def kind_rows(results: Results) -> list[Row]:
    """Figure 5: hot links by kind of rack."""
    cells, counts = results[CHUNKS_PAIR], {"compute": list[float](), "disk": [], "mixed": []}
    for seed in cells.seeds:
        by_kind = dict.fromkeys(counts, 0)
        for load in CHUNKS_LOADS:
            every = windows(samples(cells.table("links", "uniform", seed, load), STORAGE), KIND_INTERVAL_MS)
            for row in hot.by_kind(every, hot.histogram(every, Settings())).to_pylist():
                by_kind[row["kind"]] += row["hot"]
        total = sum(by_kind.values())
        for kind, count in by_kind.items():
            counts[kind] += [100 * count / total] if total else []
    note = f"intervals of 30 s, storage's traffic alone, as many disk racks as mixed ones; {_REFERENCE}"
    return [
        reference_row(
            "5",
            f"share of hot link-intervals, {kind} racks, uniform",
            "%",
            values,
            paper.KINDS.get(kind),
            note,
        )
        for kind, values in counts.items()
    ]


def _crowding(cells: Cells, seed: int) -> tuple[Floats, Floats]:
    """For each rack: mean number of network-intensive tasks per Gb/s of uplink, and utilization, 0 to 1.

    The utilization of a rack is the mean utilization of its busier direction.
    """
    every = _cell(cells, seed)
    bins = hot.histogram(every, Settings())
    runs = durations.runs(every, durations.hot_intervals(every, Settings()))
    by_rack: dict[str, float] = {}
    capacity = {}
    for link in every.samples.links.to_pylist():
        if link["cross_section"] == hot.TOR:
            capacity[link["rack"]] = link["capacity_bps"] / 1e9
    for row in hot.by_link(every, bins, hot.hours(every), runs).to_pylist():
        if row["cross_section"] == hot.TOR:
            by_rack[row["rack"]] = max(by_rack.get(row["rack"], 0.0), row["mean_ppm"] / 1e6)
    links = cells.table("links", "borg", seed)["start_s"].to_numpy()
    first, last = float(links.min()), float(links.max())
    tasks = cells.table("tasks", "borg", seed)
    placed, finished = (tasks[name].to_numpy(zero_copy_only=False) for name in ("placed_s", "finished_s"))
    begin = numpy.maximum(placed, first)
    end = numpy.where(numpy.isnan(finished), last, numpy.fmin(finished, last))
    spent = numpy.where(tasks["intensive"].to_numpy(zero_copy_only=False) & (end > begin), end - begin, 0.0)
    there: dict[str, float] = dict.fromkeys(by_rack, 0.0)
    for at in numpy.flatnonzero(spent).tolist():
        there[tasks["host"][at].as_py().partition("h")[0]] += spent[at] / (last - first)
    return (
        numpy.array([there[rack] / capacity[rack] for rack in by_rack]),
        numpy.array(list(by_rack.values())),
    )


def crowding_rows(results: Results) -> list[Row]:
    """Figure 8: network-intensive tasks per Gb/s of uplink, against utilization."""
    cells = results[PILOT_PAIR]
    pairs = [_crowding(cells, seed) for seed in cells.seeds]
    outcome = [correlation(x.tolist(), y.tolist()) for x, y in pairs]
    label = "network-intensive tasks per Gb/s and utilization of ToRs: Pearson's r over racks, borg"
    note = "the paper: a clear correlation, without a number"
    return [measured_row("8", label, "", [one[0] for one in outcome if one], None, note)]


def provision_rows(_: Results) -> list[Row]:
    """Figure 9: uplink over disk capacity."""
    network = Cluster(STORAGE)
    engine = Engine.duckdb(threads=1)
    nothing = engine.table(pyarrow.table({"link": pyarrow.array([], "int32")}))
    racks = provision(Samples(engine, nothing, network.links(), network.rack_table(), 1000), Settings()).racks
    shares = [
        row["normalized"]
        for row in racks.to_pylist()
        if row["kind"] == "disk" and row["normalized"] is not None
    ]
    note = f"of the cluster that chunks are placed on, made as uneven on purpose; {_REFERENCE}"
    label = "uplink over disk capacity, largest over smallest, disk racks"
    return [reference_row("9", label, "x", [max(shares) / min(shares)], paper.WIDEST_RACK, note)]


def lasting(results: Results, _: Sequence[Row]) -> "Figure":
    """Figure 4: cumulative distribution of durations over all seeds."""
    from matplotlib import pyplot

    cells = results[PILOT_PAIR]
    hours = numpy.sort(numpy.concatenate([_durations(cells, seed) for seed in cells.seeds])) / 3600
    fig, axes = pyplot.subplots(figsize=(6.4, 3.9), layout="constrained")
    shares = numpy.linspace(0, 100, 101)
    axes.plot(numpy.percentile(hours, shares), shares, color="#5a6a7a")
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
    """Figure 8: a point for each rack, of all seeds."""
    from matplotlib import pyplot

    cells = results[PILOT_PAIR]
    fig, axes = pyplot.subplots(figsize=(6.4, 3.9), layout="constrained")
    for seed in cells.seeds:
        across, up = _crowding(cells, seed)
        axes.plot(across, 100 * up, ".", color="#5a6a7a", markersize=3)
    axes.set_xlabel("network-intensive tasks for each Gb/s of uplink")
    axes.set_ylabel("mean utilization of the ToR, %")
    return fig
