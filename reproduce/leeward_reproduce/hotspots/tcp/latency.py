"""Latency by utilization over TCP: rows of figures 11 to 13 and 21 to 23, and of table 1."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy
from pyarrow import compute

from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import impact_figures, paper
from leeward_reproduce.hotspots.latency import (
    RATIOS,
    hotspot_row,
    matching_rows,
    network_share,
    present,
    ratio_class,
    row_of,
    tolerance_rows,
)
from leeward_reproduce.hotspots.rack_storage import CHUNK
from leeward_reproduce.hotspots.reasons import OVER_TCP, Cause, Causes
from leeward_reproduce.hotspots.tcp import queries, rack
from leeward_reproduce.hotspots.tcp.queries import QUERIES, TCP_QUERIES, QueryRuns
from leeward_reproduce.hotspots.tcp.rack import TCP_ARRIVALS, TCP_CLASSES, TCP_RACK, Logs
from leeward_reproduce.rows import Reason, Row, measured_row, row_key, with_reason

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WAITS = "others wait for their transfers, twenty workers in each direction"
_ARRIVALS = "others arrive at random and do not wait: the variant"
_ARRIVALS_WORDS = f"{OVER_TCP}, arrivals"
_SERVERS = "servers' times are our choice, by the network's part at idle links"
_SIZES = ("10kB to 100kB", "100kB to 1MB", "1MB to 10MB")
_OURS = Cause("the paper states neither its servers' times nor the rates of its racks' links")
_FILES = Causes(
    slower=_OURS,
    faster=Cause(
        "others wait for their transfers, so that queues at a full link are bounded", _ARRIVALS_WORDS
    ),
)
_FILES_ARRIVALS = Causes(_OURS, _OURS)
_BY_FLOW = Cause("TCP shares the link by transfer, so that all sizes are slowed by the same factor")
_BY_SIZE = Causes(_BY_FLOW, _BY_FLOW)
_SIZES_OF_QUERIES = Cause("the paper states neither the sizes of its queries nor its servers' times")
_QUERIES = Causes(_SIZES_OF_QUERIES, _SIZES_OF_QUERIES)
_RATIO = "the paper does not state the compute ratio of this query"
_STATED = ("shuffle-flush", "aggregation", "streaming")
"""Queries whose compute ratio the paper states."""
_SHARES = ((0.0, 0.25, "below 25 %"), (0.75, 0.95, "75 to 95 %"), (0.95, 1.0, "over 95 %"))


def files(logs: Logs) -> impact_figures.Tables:
    """Inflation of HDD reads and writes of chunks."""
    rows = matching_rows(rack.with_names(logs), "hdd", CHUNK)
    return rack.inflation(logs, rows, impact_figures.TEMPLATES["13"].by)


def sizes(logs: Logs) -> impact_figures.Tables:
    """Inflation of HDD reads and writes by size."""
    return rack.inflation(
        logs, matching_rows(rack.with_names(logs), "hdd"), impact_figures.TEMPLATES["21"].by
    )


def classes(logs: Logs) -> impact_figures.Tables:
    """Inflation by class of service and size, at weighted-effective utilizations."""
    return rack.inflation(logs, rack.with_names(logs), impact_figures.TEMPLATES["22"].by, rack.WEIGHTS)


def media(logs: Logs) -> impact_figures.Tables:
    """Inflation of reads of chunks by medium."""
    rows = matching_rows(rack.with_names(logs), None, CHUNK)
    reads = rows.filter(compute.equal(rows["operation"], "file-read"))
    return rack.inflation(logs, reads, impact_figures.TEMPLATES["23"].by)


def file_rows(results: Results) -> list[Row]:
    """Figure 13: HDD reads and writes, with other traffic that waits and with traffic that does not."""
    result = []
    for experiment, words, note, causes in (
        (TCP_RACK, OVER_TCP, _WAITS, _FILES),
        (TCP_ARRIVALS, _ARRIVALS_WORDS, _ARRIVALS, _FILES_ARRIVALS),
    ):
        outcome = [files(logs) for logs in results.outcomes[experiment]]
        for name, (tolerance, hotspot) in paper.FILES.items():
            result += tolerance_rows("13", outcome, (name,), 2.0, tolerance, note, words, causes)
            result.append(hotspot_row("13", outcome, (name,), hotspot, note, words=words, causes=causes))
            value = paper.FILES_NETWORK if name == "file-read" else None
            result.append(hotspot_row("13", outcome, (name,), value, note, "network", words, causes))
        result.append(
            _unfinished_row(
                "13", "operations", words, [logs.unfinished for logs in results.outcomes[experiment]]
            )
        )
        if experiment is TCP_RACK:
            result += _share_rows(outcome)
    return result


def _unfinished_row(figure: str, things: str, words: str, shares: Sequence[float]) -> Row:
    """Share that had not ended at the fullest link; buckets there have the latencies of the others alone."""
    label = f"{things} at the fullest link that had not ended at the end of the run{words}"
    return measured_row(figure, label, "%", [100 * share for share in shares], None, "latencies lack them")


def _share_rows(outcome: Sequence[impact_figures.Tables]) -> list[Row]:
    result = []
    for name in paper.FILES:
        for low, high, span in _SHARES:
            values = [share for tables in outcome for share in network_share(tables, name, low, high)]
            bound = paper.NETWORK_SHARES.get((name, span))
            note = f"the paper: {bound}; {_SERVERS}" if bound else ""
            label = f"network's part of the mean latency, {name}, at {span}{OVER_TCP}"
            result.append(measured_row("13", label, "%", values, None, note))
    return result


def size_rows(results: Results) -> list[Row]:
    """Figure 21: load-tolerance by size."""
    outcome, result = [sizes(logs) for logs in results.outcomes[TCP_RACK]], []
    for name in paper.FILES:
        for size in _SIZES:
            of_paper = name == "file-read" and size in paper.SIZES
            value = paper.SIZES[size] if of_paper else None
            note = "the paper: not reached" if of_paper and value is None else ""
            result += tolerance_rows("21", outcome, (name, size), 2.0, value, note, OVER_TCP, _BY_SIZE)
    return result


def class_rows(results: Results) -> list[Row]:
    """Figure 22: load-tolerance by class of service and size."""
    outcome, result = [classes(logs) for logs in results.outcomes[TCP_CLASSES]], []
    note = "the paper: PC above NC, in a figure without numbers; ports share by weights of 8:4"
    note += "; racks with 20, 50 and 80 % of PC"
    for name in paper.FILES:
        for size in _SIZES:
            for of_class in rack.CLASSES:
                result += tolerance_rows("22", outcome, (name, of_class, size), 2.0, None, note, OVER_TCP)
                note = ""
    return result


def medium_rows(results: Results) -> list[Row]:
    """Figure 23: reads of SSDs and of memory."""
    outcome, result = [media(logs) for logs in results.outcomes[TCP_RACK]], []
    for name, (tolerance, hotspot) in paper.MEDIA.items():
        note, causes = _SERVERS, _FILES_ARRIVALS
        result += tolerance_rows("23", outcome, (name,), 2.0, tolerance, note, OVER_TCP, causes)
        result.append(hotspot_row("23", outcome, (name,), hotspot, note, words=OVER_TCP, causes=causes))
    return result


def aggregation_rows(results: Results) -> list[Row]:
    """Figure 11: an aggregation and its parts."""
    outcome = [queries.aggregation_tables(runs) for runs in results.outcomes[TCP_QUERIES]]
    note = "four workers on one rack, whose link is that of two interfaces"
    result = []
    for name, value in paper.AGGREGATION.items():
        result += tolerance_rows("11", outcome, (name,), 1.5, value, note, OVER_TCP, _QUERIES)
    return result


def table_rows(results: Results) -> list[Row]:
    """Table 1 and figure 12a: queries."""
    outcome = [queries.query_tables(runs) for runs in results.outcomes[TCP_QUERIES]]
    by_ratio = [queries.ratio_tables(runs, RATIOS) for runs in results.outcomes[TCP_QUERIES]]
    result = []
    for one in QUERIES:
        low, high, hotspot = paper.QUERIES[one.name]
        kind = (one.name,)
        result += tolerance_rows("table-1", outcome, kind, 1.5, low, one.note, OVER_TCP, _QUERIES)
        note = one.note if high else f"the paper: not reached; {one.note}"
        result += tolerance_rows("table-1", outcome, kind, 2.0, high, note, OVER_TCP, _QUERIES)
        row = hotspot_row("table-1", outcome, kind, hotspot, one.note, words=OVER_TCP)
        result.append(with_reason(row, _reason_of_ratio(one.name, by_ratio, hotspot)))
    shares = [runs.unfinished for runs in results.outcomes[TCP_QUERIES]]
    return [*result, _unfinished_row("table-1", "queries", OVER_TCP, shares)]


def _reason_of_ratio(name: str, by_ratio: Sequence[impact_figures.Tables], reported: float) -> Reason:
    """Reason of a query's hotspot-inflation; its variant has the compute ratio nearest to the paper."""
    means = {ratio: values for ratio in RATIOS if (values := _inflations(by_ratio, name, ratio))}
    if name in _STATED or not means:
        return Reason(_SIZES_OF_QUERIES.text)
    nearest = min(means, key=lambda ratio: abs(float(numpy.mean(means[ratio])) - reported))
    return Reason(_RATIO, variant=row_key("12b", _ratio_label(name, nearest)))


def _inflations(by_ratio: Sequence[impact_figures.Tables], name: str, ratio: float) -> list[float]:
    """Hotspot-inflations of a query at a compute ratio, one for each seed that reached a hotspot."""
    kind = (name, ratio_class(ratio))
    rows = present([row_of(tables, "hotspot-inflation", None, kind) for tables in by_ratio])
    return present([row["value"] for row in rows])


def _ratio_label(name: str, ratio: float) -> str:
    return f"hotspot-inflation at 75 %, {name}, compute ratio {ratio:g}{OVER_TCP}"


def ratio_rows(results: Results) -> list[Row]:
    """Figure 12b: hotspot-inflation by compute ratio."""
    outcome = [queries.ratio_tables(runs, RATIOS) for runs in results.outcomes[TCP_QUERIES]]
    result = []
    for one in QUERIES:
        for ratio in RATIOS:
            values = _inflations(outcome, one.name, ratio)
            is_paper = (one.name, ratio) == ("shuffle-flush", paper.FLUSH_RATIO)
            value, note = (paper.FLUSH_INFLATION, one.note) if is_paper else (None, "")
            label, reason = _ratio_label(one.name, ratio), Reason(_SIZES_OF_QUERIES.text)
            result.append(measured_row("12b", label, "x", values, value, note, reason))
    return result


TABLES: dict[str, tuple[Any, Callable[[Any], impact_figures.Tables]]] = {
    "11": (TCP_QUERIES, queries.aggregation_tables),
    "12a": (TCP_QUERIES, queries.query_tables),
    "12b": (TCP_QUERIES, lambda runs: queries.ratio_tables(runs, RATIOS)),
    "13": (TCP_RACK, files),
    "21": (TCP_RACK, sizes),
    "22": (TCP_CLASSES, classes),
    "23": (TCP_RACK, media),
}
"""Experiment of each template, and the function that makes the template's tables."""


def picture(name: str, results: Results, _: Sequence[Row]) -> "Figure":
    """Draws a template from the results of all seeds together."""
    experiment, tables = TABLES[name]
    parts: Sequence[Any] = results.outcomes[experiment]
    whole: Logs | QueryRuns = (
        queries.concatenate(parts) if experiment is TCP_QUERIES else rack.concatenate(parts)
    )
    return impact_figures.TEMPLATES[name].draw(tables(whole))
