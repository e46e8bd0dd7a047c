"""Latency by utilization: figures 11 to 13 and 21 to 23, and table 1.

Operations wait in the request simulator (`plant`), telemetry has the load of their link, and `leeward.impact`
joins the two, as for an operator. None of the paper's curves is an input.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy
import pyarrow
from pyarrow import compute

from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import forms, paper, plant, racks
from leeward_reproduce.hotspots.plant import Served
from leeward_reproduce.hotspots.queries import BASE_S, BENCHMARKS, Worker
from leeward_reproduce.hotspots.racks import BY_CLASS, RACK
from leeward_reproduce.links import START_MS
from leeward_reproduce.rows import Row, measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WEIGHTS = {"PC": 8, "NC": 4}
"""Weights of a switch's scheduler; an example, the paper prints none."""
QUERIES = 100
"""Queries of each benchmark, in each interval."""
RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Shares of computation in queries of figure 12b."""
_FIFO = "a sender of more waits no longer: a queue without TCP, which would share the link fairly by flow"
_NEVER = "counted as reached where buckets end, if not before"
_BURSTS = "bursts of C^2 3.6 and no congestion control: queues are longer than TCP would let them be"


def file_rows(results: Results) -> list[Row]:
    """Figure 13: HDD reads and writes."""
    found = [_files(served) for served in results.outcomes[RACK]]
    made = []
    for name, (tolerance, hotspot) in paper.FILES.items():
        made += _tolerance("13", found, (name,), 2.0, tolerance, _BURSTS)
        note = "a write is the network and memory here, no server's time" if name == "file-write" else _BURSTS
        made.append(_hotspot("13", found, (name,), hotspot, note))
        known = paper.FILES_NETWORK if name == "file-read" else None
        made.append(_hotspot("13", found, (name,), known, _BURSTS, "network"))
    for name in paper.FILES:
        for low, high, words in (
            (0.0, 0.25, "below 25 %"),
            (0.75, 0.95, "75 to 95 %"),
            (0.95, 1.0, "over 95 %"),
        ):
            values = [share for of in found for share in _network_share(of, name, low, high)]
            bound = paper.NETWORK_SHARES.get((name, words))
            note = f"the paper: {bound}" if bound else ""
            note += "; no server's time is simulated" if bound and name == "file-write" else ""
            said = f"network's part of the mean latency, {name}, at {words}"
            made.append(measured("13", said, "%", values, None, note))
    return made


def size_rows(results: Results) -> list[Row]:
    """Figure 21: load-tolerance by size."""
    found, made = [_sizes(served) for served in results.outcomes[RACK]], []
    for name in paper.FILES:
        for size in ("10kB to 100kB", "100kB to 1MB", "1MB to 10MB"):
            of_paper = name == "file-read" and size in paper.SIZES
            known = paper.SIZES[size] if of_paper else None
            note = (_FIFO if known else f"the paper: not reached; {_FIFO}") if of_paper else ""
            made += _tolerance("21", found, (name, size), 2.0, known, note)
    return made


def class_rows(results: Results) -> list[Row]:
    """Figure 22: load-tolerance by class of service."""
    found, made = [_classes(served) for served in results.outcomes[BY_CLASS]], []
    for name in paper.FILES:
        for of_class in plant.CLASSES:
            note = (
                "the paper: PC above NC, in a figure without numbers; links serve PC first; by weights of 8:4"
            )
            note += f" links are full at {75 if of_class == 'PC' else 150} %"
            made += _tolerance("22", found, (name, of_class, "100kB to 1MB"), 2.0, None, note)
    return made


def medium_rows(results: Results) -> list[Row]:
    """Figure 23: reads of SSDs and of memory."""
    found, made = [_media(served) for served in results.outcomes[RACK]], []
    for name, (tolerance, hotspot) in paper.MEDIA.items():
        made += _tolerance("23", found, (name,), 2.0, tolerance, _BURSTS)
        made.append(_hotspot("23", found, (name,), hotspot, _BURSTS))
    return made


def aggregation_rows(results: Results) -> list[Row]:
    """Figure 11: an aggregation and its parts."""
    found = [_aggregation(served, seed) for seed, served in enumerate(results.outcomes[RACK], 1)]
    made = []
    for name, known in paper.AGGREGATION.items():
        made += _tolerance("11", found, (name,), 1.5, known, _BURSTS)
    return made


def table_rows(results: Results) -> list[Row]:
    """Table 1 and figure 12a: queries."""
    found = [_queries(served, seed) for seed, served in enumerate(results.outcomes[RACK], 1)]
    made = []
    for of in BENCHMARKS:
        low, high, hotspot = paper.QUERIES[of.name]
        made += _tolerance("table-1", found, (of.name,), 1.5, low, of.note)
        note = of.note if high else f"the paper: not reached; {of.note}"
        made += _tolerance("table-1", found, (of.name,), 2.0, high, note)
        made.append(_hotspot("table-1", found, (of.name,), hotspot, of.note))
    return made


def ratio_rows(results: Results) -> list[Row]:
    """Figure 12b: hotspot-inflation by compute ratio."""
    found = [_ratios(served, seed) for seed, served in enumerate(results.outcomes[RACK], 1)]
    made = []
    for of in BENCHMARKS:
        for ratio in RATIOS:
            kind = (of.name, _nominal(ratio))
            rows = _there([_row(one, "hotspot-inflation", None, kind) for one in found])
            values = _there([row["value"] for row in rows])
            is_paper = (of.name, ratio) == ("shuffle-flush", paper.FLUSH_RATIO)
            known = paper.FLUSH_INFLATION if is_paper else None
            said = f"hotspot-inflation at 75 %, {of.name}, compute ratio {ratio:g}"
            made.append(measured("12b", said, "x", values, known, of.note if is_paper else ""))
    return made


def picture(name: str, tables: str, results: Results, _: Sequence[Row]) -> "Figure":
    """A form, of all seeds together.

    Args:
        name: Name of the form.
        tables: Source of its tables, one of `TABLES`.
        results: Results of the runs.
    """
    of = BY_CLASS if tables == "classes" else RACK
    return forms.FORMS[name].draw(TABLES[tables](racks.joined(results.outcomes[of])))


def _tolerance(
    figure: str,
    found: Sequence[forms.Tables],
    kind: tuple[str, ...],
    factor: float,
    known: float | None,
    note: str,
) -> list[Row]:
    rows = _there([_row(one, "load-tolerance", factor, kind) for one in found])
    never = any(row["value"] is None for row in rows)
    note = "; ".join(filter(None, [note, _NEVER if never else ""]))
    said = f"load-tolerance at {factor:g}x, {', '.join(kind)}"
    shares = [100 * (row["judged_to"] if row["value"] is None else row["value"]) for row in rows]
    return [measured(figure, said, "%", shares, known, note)]


def _hotspot(
    figure: str,
    found: Sequence[forms.Tables],
    kind: tuple[str, ...],
    known: float | None,
    note: str,
    part: str = "total",
) -> Row:
    rows = _there([_row(one, "hotspot-inflation", None, kind, part) for one in found])
    values = _there([row["value"] for row in rows])
    words = ", network's part" if part == "network" else ""
    return measured(figure, f"hotspot-inflation at 75 %, {', '.join(kind)}{words}", "x", values, known, note)


def _row(
    of: forms.Tables, figure: str, factor: float | None, kind: tuple[str, ...], part: str = "total"
) -> dict[str, Any] | None:
    keys = of.tolerance.column_names[: len(kind)]
    return of.figures(figure, factor, keys, part).get(kind)


def _there(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _network_share(of: forms.Tables, name: str, low: float, high: float) -> list[float]:
    """Percent of the latency on the network, between two utilizations."""
    sums = {"network": 0.0, "total": 0.0}
    for row in of.buckets.to_pylist():
        if row["operation"] == name and low <= row["from_utilization"] + 1e-9 < high:
            sums[row["part"]] += row["mean_s"] * row["latencies"]
    return [100 * sums["network"] / sums["total"]] if sums["total"] else []


def _files(served: Served) -> forms.Tables:
    rows = racks.logs(served)
    return racks.inflation(served, _chosen(rows, "hdd", plant.CHUNK), forms.FORMS["13"].by)


def _sizes(served: Served) -> forms.Tables:
    return racks.inflation(served, _chosen(racks.logs(served), "hdd"), forms.FORMS["21"].by)


def _classes(served: Served) -> forms.Tables:
    return racks.inflation(served, racks.logs(served), forms.FORMS["22"].by, WEIGHTS)


def _media(served: Served) -> forms.Tables:
    rows = _chosen(racks.logs(served), None, plant.CHUNK)
    return racks.inflation(
        served, rows.filter(compute.equal(rows["operation"], "file-read")), forms.FORMS["23"].by
    )


def _chosen(rows: pyarrow.Table, medium: str | None, sizes: tuple[int, int] | None = None) -> pyarrow.Table:
    if medium:
        rows = rows.filter(compute.equal(rows["medium"], medium))
    if sizes:
        size = rows["size_bytes"]
        rows = rows.filter(compute.and_(compute.greater_equal(size, sizes[0]), compute.less(size, sizes[1])))
    return rows


def _aggregation(served: Served, seed: int = 0) -> forms.Tables:
    """Parts by the paper's names: writes of a shuffle end in memory, as those of files do."""
    rows = _chosen(racks.logs(served), None, plant.CHUNK)
    parts = {("file-read", "hdd"): "chunk-read", ("file-read", "ram"): "shuffle-read"}
    parts |= {("file-write", "hdd"): "shuffle-write"}
    kinds = zip(rows["operation"].to_pylist(), rows["medium"].to_pylist(), strict=True)
    names = [parts.get(kind) for kind in kinds]
    rows = rows.set_column(rows.column_names.index("operation"), "operation", pyarrow.array(names))
    rows = rows.filter(compute.is_valid(rows["operation"])).select(_COLUMNS)
    (benchmark,) = (one for one in BENCHMARKS if one.name == "aggregation")
    query = _asked(served, seed, {benchmark.name: (benchmark, benchmark.compute)}).select(_COLUMNS)
    return racks.inflation(served, pyarrow.concat_tables([rows, query]), forms.FORMS["11"].by)


_COLUMNS = ["t_ms", "latency_s", "operation", "links"]


def _queries(served: Served, seed: int = 0) -> forms.Tables:
    asked = {one.name: (one, one.compute) for one in BENCHMARKS}
    return racks.inflation(served, _asked(served, seed, asked), forms.FORMS["12a"].by)


def _ratios(served: Served, seed: int = 0) -> forms.Tables:
    """Split by the compute ratio on idle links: a hot link lowers that of the same query."""
    parts = []
    for ratio in RATIOS:
        rows = _asked(served, seed, {one.name: (one, ratio) for one in BENCHMARKS})
        parts.append(rows.append_column("compute_ratio", pyarrow.array(numpy.full(len(rows), ratio))))
    return racks.inflation(served, pyarrow.concat_tables(parts), forms.FORMS["12b"].by)


def _nominal(ratio: float) -> str:
    """Class of a ratio in `leeward impact`."""
    return f"{ratio:g} to {ratio + 0.1:g}" if ratio < 0.85 else "0.9 to 1"


def _asked(served: Served, seed: int, queries: Mapping[str, tuple[Any, float]]) -> pyarrow.Table:
    """Latencies of queries, a number of each in each interval."""
    worker, length = Worker(served), plant.INTERVAL_S
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


TABLES = {
    "aggregation": _aggregation,
    "queries": _queries,
    "ratios": _ratios,
    "files": _files,
    "sizes": _sizes,
    "classes": _classes,
    "media": _media,
}
"""Sources of each form."""
