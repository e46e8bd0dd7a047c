"""Latency by utilization over TCP: rows of figures 11 to 13 and 21 to 23, and of table 1."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

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
from leeward_reproduce.hotspots.tcp import queries, rack
from leeward_reproduce.hotspots.tcp.queries import QUERIES, TCP_QUERIES, Ran
from leeward_reproduce.hotspots.tcp.rack import TCP_ARRIVALS, TCP_CLASSES, TCP_RACK, Logs
from leeward_reproduce.rows import Row, measured_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORDS = ", over TCP"
"""End of the labels of rows of this simulator."""
WAITS = "others wait for their transfers, twenty workers in each direction"
_ARRIVALS = "others arrive at random and do not wait: the variant"
_SERVERS = "servers' times are our choice, by the network's part at idle links"
_SIZES = ("10kB to 100kB", "100kB to 1MB", "1MB to 10MB")
_SHARES = ((0.0, 0.25, "below 25 %"), (0.75, 0.95, "75 to 95 %"), (0.95, 1.0, "over 95 %"))


def files(logs: Logs) -> impact_figures.Tables:
    """Inflation of HDD reads and writes of chunks."""
    rows = matching_rows(rack.named(logs), "hdd", CHUNK)
    return rack.inflation(logs, rows, impact_figures.TEMPLATES["13"].by)


def sizes(logs: Logs) -> impact_figures.Tables:
    """Inflation of HDD reads and writes by size."""
    return rack.inflation(logs, matching_rows(rack.named(logs), "hdd"), impact_figures.TEMPLATES["21"].by)


def classes(logs: Logs) -> impact_figures.Tables:
    """Inflation by class of service and size, at weighted-effective utilizations."""
    return rack.inflation(logs, rack.named(logs), impact_figures.TEMPLATES["22"].by, rack.WEIGHTS)


def media(logs: Logs) -> impact_figures.Tables:
    """Inflation of reads of chunks by medium."""
    rows = matching_rows(rack.named(logs), None, CHUNK)
    reads = rows.filter(compute.equal(rows["operation"], "file-read"))
    return rack.inflation(logs, reads, impact_figures.TEMPLATES["23"].by)


def file_rows(results: Results) -> list[Row]:
    """Figure 13: HDD reads and writes, with other traffic that waits and with traffic that does not."""
    result = []
    for experiment, words, note in (
        (TCP_RACK, WORDS, WAITS),
        (TCP_ARRIVALS, f"{WORDS}, arrivals", _ARRIVALS),
    ):
        outcome = [files(logs) for logs in results.outcomes[experiment]]
        for name, (tolerance, hotspot) in paper.FILES.items():
            result += tolerance_rows("13", outcome, (name,), 2.0, tolerance, note, words)
            result.append(hotspot_row("13", outcome, (name,), hotspot, note, words=words))
            value = paper.FILES_NETWORK if name == "file-read" else None
            result.append(hotspot_row("13", outcome, (name,), value, note, "network", words))
        if experiment is TCP_RACK:
            result += _share_rows(outcome)
    return result


def _share_rows(outcome: Sequence[impact_figures.Tables]) -> list[Row]:
    result = []
    for name in paper.FILES:
        for low, high, span in _SHARES:
            values = [share for tables in outcome for share in network_share(tables, name, low, high)]
            bound = paper.NETWORK_SHARES.get((name, span))
            note = f"the paper: {bound}; {_SERVERS}" if bound else ""
            label = f"network's part of the mean latency, {name}, at {span}{WORDS}"
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
            result += tolerance_rows("21", outcome, (name, size), 2.0, value, note, WORDS)
    return result


def class_rows(results: Results) -> list[Row]:
    """Figure 22: load-tolerance by class of service and size."""
    outcome, result = [classes(logs) for logs in results.outcomes[TCP_CLASSES]], []
    note = "the paper: PC above NC, in a figure without numbers; ports share by weights of 8:4"
    note += "; racks with 20, 50 and 80 % of PC"
    for name in paper.FILES:
        for size in _SIZES:
            for of_class in rack.CLASSES:
                result += tolerance_rows("22", outcome, (name, of_class, size), 2.0, None, note, WORDS)
                note = ""
    return result


def medium_rows(results: Results) -> list[Row]:
    """Figure 23: reads of SSDs and of memory."""
    outcome, result = [media(logs) for logs in results.outcomes[TCP_RACK]], []
    for name, (tolerance, hotspot) in paper.MEDIA.items():
        result += tolerance_rows("23", outcome, (name,), 2.0, tolerance, _SERVERS, WORDS)
        result.append(hotspot_row("23", outcome, (name,), hotspot, _SERVERS, words=WORDS))
    return result


def aggregation_rows(results: Results) -> list[Row]:
    """Figure 11: an aggregation and its parts."""
    outcome = [queries.aggregation_tables(ran) for ran in results.outcomes[TCP_QUERIES]]
    note = "four workers on one rack, whose link is that of two interfaces"
    result = []
    for name, value in paper.AGGREGATION.items():
        result += tolerance_rows("11", outcome, (name,), 1.5, value, note, WORDS)
    return result


def table_rows(results: Results) -> list[Row]:
    """Table 1 and figure 12a: queries."""
    outcome = [queries.query_tables(ran) for ran in results.outcomes[TCP_QUERIES]]
    result = []
    for one in QUERIES:
        low, high, hotspot = paper.QUERIES[one.name]
        result += tolerance_rows("table-1", outcome, (one.name,), 1.5, low, one.note, WORDS)
        note = one.note if high else f"the paper: not reached; {one.note}"
        result += tolerance_rows("table-1", outcome, (one.name,), 2.0, high, note, WORDS)
        result.append(hotspot_row("table-1", outcome, (one.name,), hotspot, one.note, words=WORDS))
    return result


def ratio_rows(results: Results) -> list[Row]:
    """Figure 12b: hotspot-inflation by compute ratio."""
    outcome = [queries.ratio_tables(ran, RATIOS) for ran in results.outcomes[TCP_QUERIES]]
    result = []
    for one in QUERIES:
        for ratio in RATIOS:
            kind = (one.name, ratio_class(ratio))
            rows = present([row_of(tables, "hotspot-inflation", None, kind) for tables in outcome])
            values = present([row["value"] for row in rows])
            is_paper = (one.name, ratio) == ("shuffle-flush", paper.FLUSH_RATIO)
            value = paper.FLUSH_INFLATION if is_paper else None
            label = f"hotspot-inflation at 75 %, {one.name}, compute ratio {ratio:g}{WORDS}"
            result.append(measured_row("12b", label, "x", values, value, one.note if is_paper else ""))
    return result


TABLES: dict[str, tuple[Any, Callable[[Any], impact_figures.Tables]]] = {
    "11": (TCP_QUERIES, queries.aggregation_tables),
    "12a": (TCP_QUERIES, queries.query_tables),
    "12b": (TCP_QUERIES, lambda ran: queries.ratio_tables(ran, RATIOS)),
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
    whole: Logs | Ran = queries.concatenate(parts) if experiment is TCP_QUERIES else rack.concatenate(parts)
    return impact_figures.TEMPLATES[name].draw(tables(whole))
