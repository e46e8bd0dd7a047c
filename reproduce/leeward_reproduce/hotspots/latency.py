"""Latency by utilization: figures 11 to 13 and 21 to 23, and table 1.

The request simulator gives the latencies of operations and the telemetry of their link (`rack_storage`).
`leeward.impact` joins latencies and telemetry, as for an operator. None of the paper's curves is an input.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import pyarrow
from pyarrow import compute

from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import impact_figures, paper, rack_storage, racks
from leeward_reproduce.hotspots.queries import BASE_S, BENCHMARKS, Worker
from leeward_reproduce.hotspots.rack_storage import ServedOperations
from leeward_reproduce.hotspots.racks import BY_CLASS, RACK
from leeward_reproduce.hotspots.reasons import OVER_TCP, UNKNOWN, Cause, Causes
from leeward_reproduce.links import START_MS
from leeward_reproduce.rows import Row, measured_row

WEIGHTS = {"PC": 8, "NC": 4}
"""Example weights of a switch's scheduler; the paper publishes none."""
QUERIES = 100
"""Number of queries of each benchmark in each interval."""
RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Compute ratios of figure 12b: shares of computation in the time of a query."""
_FIFO_TEXT = "without TCP, which shares the link by flow, a large transfer waits no longer than a small one"
_FIFO_CAUSE = Cause(_FIFO_TEXT, OVER_TCP)
_FIFO = Causes(slower=_FIFO_CAUSE, faster=_FIFO_CAUSE)
_NEVER = "where it is not reached, the end of the buckets counts"
_BURSTS = Causes(
    slower=Cause(
        "bursts of C^2 3.6 and no congestion control: queues are longer than TCP would let them be", OVER_TCP
    )
)
"""Causes of latencies that grow more with the load than the paper's."""


def file_rows(results: Results) -> list[Row]:
    """Figure 13: HDD reads and writes."""
    outcome = [_files(served) for served in results.outcomes[RACK]]
    result = []
    for name, (tolerance, hotspot) in paper.FILES.items():
        result += tolerance_rows("13", outcome, (name,), 2.0, tolerance, "", causes=_BURSTS)
        note = "a write is the network and memory here, no server's time" if name == "file-write" else ""
        result.append(hotspot_row("13", outcome, (name,), hotspot, note, causes=_BURSTS))
        paper_value = paper.FILES_NETWORK if name == "file-read" else None
        result.append(hotspot_row("13", outcome, (name,), paper_value, "", "network", causes=_BURSTS))
    for name in paper.FILES:
        for low, high, words in (
            (0.0, 0.25, "below 25 %"),
            (0.75, 0.95, "75 to 95 %"),
            (0.95, 1.0, "over 95 %"),
        ):
            values = [share for tables in outcome for share in network_share(tables, name, low, high)]
            bound = paper.NETWORK_SHARES.get((name, words))
            note = f"the paper: {bound}" if bound else ""
            note += "; no server's time is simulated" if bound and name == "file-write" else ""
            label = f"network's part of the mean latency, {name}, at {words}"
            result.append(measured_row("13", label, "%", values, None, note))
    return result


def size_rows(results: Results) -> list[Row]:
    """Figure 21: load-tolerance by size."""
    outcome, result = [_sizes(served) for served in results.outcomes[RACK]], []
    for name in paper.FILES:
        for size in ("10kB to 100kB", "100kB to 1MB", "1MB to 10MB"):
            of_paper = name == "file-read" and size in paper.SIZES
            paper_value = paper.SIZES[size] if of_paper else None
            note = f"the paper: not reached; {_FIFO_TEXT}" if of_paper and paper_value is None else ""
            result += tolerance_rows("21", outcome, (name, size), 2.0, paper_value, note, causes=_FIFO)
    return result


def class_rows(results: Results) -> list[Row]:
    """Figure 22: load-tolerance by class of service."""
    outcome, result = [_classes(served) for served in results.outcomes[BY_CLASS]], []
    for name in paper.FILES:
        for of_class in rack_storage.CLASSES:
            note = (
                "the paper: PC above NC, in a figure without numbers; links serve PC first; by weights of 8:4"
            )
            note += f" links are full at {75 if of_class == 'PC' else 150} %"
            result += tolerance_rows("22", outcome, (name, of_class, "100kB to 1MB"), 2.0, None, note)
    return result


def medium_rows(results: Results) -> list[Row]:
    """Figure 23: reads of SSDs and of memory."""
    outcome, result = [_media(served) for served in results.outcomes[RACK]], []
    for name, (tolerance, hotspot) in paper.MEDIA.items():
        result += tolerance_rows("23", outcome, (name,), 2.0, tolerance, "", causes=_BURSTS)
        result.append(hotspot_row("23", outcome, (name,), hotspot, "", causes=_BURSTS))
    return result


def aggregation_rows(results: Results) -> list[Row]:
    """Figure 11: an aggregation and its parts."""
    outcome = [_aggregation(served, seed) for seed, served in enumerate(results.outcomes[RACK], 1)]
    result = []
    for name, paper_value in paper.AGGREGATION.items():
        result += tolerance_rows("11", outcome, (name,), 1.5, paper_value, "", causes=_BURSTS)
    return result


def table_rows(results: Results) -> list[Row]:
    """Table 1 and figure 12a: queries."""
    outcome = [_queries(served, seed) for seed, served in enumerate(results.outcomes[RACK], 1)]
    result = []
    for benchmark in BENCHMARKS:
        low, high, hotspot = paper.QUERIES[benchmark.name]
        kind = (benchmark.name,)
        result += tolerance_rows("table-1", outcome, kind, 1.5, low, benchmark.note, causes=_BURSTS)
        note = benchmark.note if high else f"the paper: not reached; {benchmark.note}"
        result += tolerance_rows("table-1", outcome, kind, 2.0, high, note, causes=_BURSTS)
        result.append(hotspot_row("table-1", outcome, kind, hotspot, benchmark.note, causes=_BURSTS))
    return result


def ratio_rows(results: Results) -> list[Row]:
    """Figure 12b: hotspot-inflation by compute ratio."""
    outcome = [_ratios(served, seed) for seed, served in enumerate(results.outcomes[RACK], 1)]
    result = []
    for benchmark in BENCHMARKS:
        for ratio in RATIOS:
            kind = (benchmark.name, ratio_class(ratio))
            rows = present([row_of(one, "hotspot-inflation", None, kind) for one in outcome])
            values = present([row["value"] for row in rows])
            is_paper = (benchmark.name, ratio) == ("shuffle-flush", paper.FLUSH_RATIO)
            paper_value = paper.FLUSH_INFLATION if is_paper else None
            label = f"hotspot-inflation at 75 %, {benchmark.name}, compute ratio {ratio:g}"
            note = benchmark.note if is_paper else ""
            reason = _BURSTS.reason("12b", label, values, paper_value, is_tolerance=False)
            result.append(measured_row("12b", label, "x", values, paper_value, note, reason))
    return result


def tolerance_rows(
    figure: str,
    results: Sequence[impact_figures.Tables],
    kind: tuple[str, ...],
    factor: float,
    paper_value: float | None,
    note: str,
    words: str = "",
    causes: Causes = UNKNOWN,
) -> list[Row]:
    """The load-tolerance of a kind of operations, one value for each seed; `words` end the label."""
    rows = present([row_of(one, "load-tolerance", factor, kind) for one in results])
    never = any(row["value"] is None for row in rows)
    note = "; ".join(filter(None, [note, _NEVER if never else ""]))
    label = f"load-tolerance at {factor:g}x, {', '.join(kind)}"
    shares = [100 * (row["judged_to"] if row["value"] is None else row["value"]) for row in rows]
    reason = causes.reason(figure, label, shares, paper_value, is_tolerance=True)
    return [measured_row(figure, label + words, "%", shares, paper_value, note, reason)]


def hotspot_row(
    figure: str,
    results: Sequence[impact_figures.Tables],
    kind: tuple[str, ...],
    paper_value: float | None,
    note: str,
    part: str = "total",
    words: str = "",
    causes: Causes = UNKNOWN,
) -> Row:
    """The hotspot-inflation of a kind of operations, one value for each seed; `words` end the label."""
    rows = present([row_of(one, "hotspot-inflation", None, kind, part) for one in results])
    values = present([row["value"] for row in rows])
    of_part = ", network's part" if part == "network" else ""
    label = f"hotspot-inflation at 75 %, {', '.join(kind)}{of_part}"
    reason = causes.reason(figure, label, values, paper_value, is_tolerance=False)
    return measured_row(figure, label + words, "x", values, paper_value, note, reason)


def row_of(
    tables: impact_figures.Tables,
    figure: str,
    factor: float | None,
    kind: tuple[str, ...],
    part: str = "total",
) -> dict[str, Any] | None:
    """Row of a kind of operations in the table of tolerances."""
    keys = tables.tolerance.column_names[: len(kind)]
    return tables.figures(figure, factor, keys, part).get(kind)


def present(values: Sequence[Any]) -> list[Any]:
    """The values that are not None."""
    return [value for value in values if value is not None]


def network_share(tables: impact_figures.Tables, name: str, low: float, high: float) -> list[float]:
    """Network's part of the latency in percent, between two utilizations; empty without latencies."""
    sums = {"network": 0.0, "total": 0.0}
    for row in tables.buckets.to_pylist():
        if row["operation"] == name and low <= row["from_utilization"] + 1e-9 < high:
            sums[row["part"]] += row["mean_s"] * row["latencies"]
    return [100 * sums["network"] / sums["total"]] if sums["total"] else []


def _files(served: ServedOperations) -> impact_figures.Tables:
    rows = racks.logs(served)
    return racks.inflation(
        served, matching_rows(rows, "hdd", rack_storage.CHUNK), impact_figures.TEMPLATES["13"].by
    )


def _sizes(served: ServedOperations) -> impact_figures.Tables:
    return racks.inflation(
        served, matching_rows(racks.logs(served), "hdd"), impact_figures.TEMPLATES["21"].by
    )


def _classes(served: ServedOperations) -> impact_figures.Tables:
    return racks.inflation(served, racks.logs(served), impact_figures.TEMPLATES["22"].by, WEIGHTS)


def _media(served: ServedOperations) -> impact_figures.Tables:
    rows = matching_rows(racks.logs(served), None, rack_storage.CHUNK)
    return racks.inflation(
        served, rows.filter(compute.equal(rows["operation"], "file-read")), impact_figures.TEMPLATES["23"].by
    )


def matching_rows(
    rows: pyarrow.Table, medium: str | None, sizes: tuple[int, int] | None = None
) -> pyarrow.Table:
    """Operations of a medium, and of sizes between two."""
    if medium:
        rows = rows.filter(compute.equal(rows["medium"], medium))
    if sizes:
        size = rows["size_bytes"]
        rows = rows.filter(compute.and_(compute.greater_equal(size, sizes[0]), compute.less(size, sizes[1])))
    return rows


def _aggregation(served: ServedOperations, seed: int = 0) -> impact_figures.Tables:
    """Parts of an aggregation, named as in the paper.

    File writes stand for shuffle writes, because both end in memory.
    """
    rows = matching_rows(racks.logs(served), None, rack_storage.CHUNK)
    parts = {("file-read", "hdd"): "chunk-read", ("file-read", "ram"): "shuffle-read"}
    parts |= {("file-write", "hdd"): "shuffle-write"}
    kinds = zip(rows["operation"].to_pylist(), rows["medium"].to_pylist(), strict=True)
    names = [parts.get(kind) for kind in kinds]
    rows = rows.set_column(rows.column_names.index("operation"), "operation", pyarrow.array(names))
    rows = rows.filter(compute.is_valid(rows["operation"])).select(_COLUMNS)
    (benchmark,) = (one for one in BENCHMARKS if one.name == "aggregation")
    query = _query_times(served, seed, {benchmark.name: (benchmark, benchmark.compute)}).select(_COLUMNS)
    return racks.inflation(served, pyarrow.concat_tables([rows, query]), impact_figures.TEMPLATES["11"].by)


_COLUMNS = ["t_ms", "latency_s", "operation", "links"]


def _queries(served: ServedOperations, seed: int = 0) -> impact_figures.Tables:
    queries = {one.name: (one, one.compute) for one in BENCHMARKS}
    return racks.inflation(served, _query_times(served, seed, queries), impact_figures.TEMPLATES["12a"].by)


def _ratios(served: ServedOperations, seed: int = 0) -> impact_figures.Tables:
    """Queries by their compute ratio on idle links. A hot link lowers the ratio of a query."""
    parts = []
    for ratio in RATIOS:
        rows = _query_times(served, seed, {one.name: (one, ratio) for one in BENCHMARKS})
        parts.append(rows.append_column("compute_ratio", pyarrow.array(numpy.full(len(rows), ratio))))
    return racks.inflation(served, pyarrow.concat_tables(parts), impact_figures.TEMPLATES["12b"].by)


def ratio_class(ratio: float) -> str:
    """Name of the class of a compute ratio in `leeward impact`."""
    return f"{ratio:g} to {ratio + 0.1:g}" if ratio < 0.85 else "0.9 to 1"


def _query_times(
    served: ServedOperations, seed: int, queries: Mapping[str, tuple[Any, float]]
) -> pyarrow.Table:
    """Latencies of `QUERIES` queries of each kind in each interval."""
    worker, length = Worker(served), rack_storage.INTERVAL_S
    intervals = numpy.repeat(numpy.arange(len(served.level)), QUERIES)
    parts = []
    for number, (name, (benchmark, ratio)) in enumerate(queries.items()):
        random = numpy.random.default_rng([seed, number, round(100 * ratio)])
        latency = ratio * BASE_S + worker.storage_s(benchmark, ratio, intervals, intervals, random)
        within = numpy.maximum(length - latency, 0.0)
        end = length * intervals + numpy.minimum(latency + within * random.random(len(latency)), length)
        parts.append(
            pyarrow.table(
                {
                    "t_ms": START_MS + 1000 * end,
                    "latency_s": latency,
                    "operation": [name] * len(latency),
                    "links": [" ".join(racks.LINKS.values())] * len(latency),
                }
            )
        )
    return pyarrow.concat_tables(parts)
