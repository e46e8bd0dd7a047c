"""Reproduction of the paper on network hotspots at Google: UTP, CCP and the incidents that led to them.

Cells, racks and chunks are generated from the paper's statements. The paper publishes no loads, and only some
objectives of the scheduler. The notes of the rows name the values that we substitute. Nothing is tuned to the
paper's results.
"""

from collections.abc import Callable
from functools import partial

from leeward_reproduce.figures import Figure, Results
from leeward_reproduce.hotspots import (
    chunks,
    fleet,
    gains,
    incidents,
    latency,
    many_cells,
    pictures,
    prevalence,
    racks,
    tasks,
)
from leeward_reproduce.hotspots.tcp import chunks as tcp_chunks
from leeward_reproduce.hotspots.tcp import gains as tcp_gains
from leeward_reproduce.hotspots.tcp import incidents as tcp_incidents
from leeward_reproduce.hotspots.tcp import latency as tcp_latency
from leeward_reproduce.hotspots.tcp.queries import TCP_QUERIES
from leeward_reproduce.hotspots.tcp.rack import TCP_ARRIVALS, TCP_CLASSES, TCP_RACK
from leeward_reproduce.rows import Row
from leeward_reproduce.summary import MainResult

Rows = Callable[[Results], list[Row]]


def _both(over_tcp: Rows, without: Rows) -> Rows:
    """Rows over TCP, and those of another simulator after them."""
    return lambda results: [*over_tcp(results), *without(results)]


_RACK = (TCP_RACK, racks.RACK)
_QUERIES = (TCP_QUERIES, racks.RACK)
_FLEET = (fleet.FLEET,)

FIGURES = {
    "3": Figure(
        "hot links by direction and cross-section",
        prevalence.MONTH_SWEEPS,
        prevalence.section_rows,
        None,
        _FLEET,
    ),
    "4": Figure(
        "durations of hotspots", prevalence.DURATION_SWEEPS, prevalence.duration_rows, prevalence.lasting
    ),
    "5": Figure("hot links by kind of rack", prevalence.MONTH_SWEEPS, prevalence.kind_rows),
    "6": Figure("owners of the hotspots of mixed racks", (), fleet.split_rows, fleet.owners, _FLEET),
    "7": Figure("bandwidth per compute unit of jobs", (), fleet.job_rows, fleet.needs, _FLEET),
    "8": Figure(
        "network-intensive tasks and utilization",
        prevalence.MONTH_SWEEPS,
        prevalence.crowding_rows,
        prevalence.crowding,
    ),
    "9": Figure("uplink over disk capacity", (), prevalence.provision_rows),
    "11": Figure(
        "an aggregation and its parts by utilization",
        (),
        _both(tcp_latency.aggregation_rows, latency.aggregation_rows),
        partial(tcp_latency.picture, "11"),
        _QUERIES,
    ),
    "table-1": Figure(
        "queries by utilization (figure 12a)",
        (),
        _both(tcp_latency.table_rows, latency.table_rows),
        partial(tcp_latency.picture, "12a"),
        _QUERIES,
    ),
    "12b": Figure(
        "hotspot-inflation by compute ratio",
        (),
        _both(tcp_latency.ratio_rows, latency.ratio_rows),
        partial(tcp_latency.picture, "12b"),
        _QUERIES,
    ),
    "13": Figure(
        "HDD reads and writes by utilization",
        (),
        _both(tcp_latency.file_rows, latency.file_rows),
        partial(tcp_latency.picture, "13"),
        (*_RACK, TCP_ARRIVALS),
    ),
    "14": Figure(
        "chunk requests by class of uplink",
        chunks.SWEEPS,
        _both(tcp_chunks.request_rows, chunks.rows),
        pictures.chunk_shares,
        (tcp_chunks.TCP_CHUNKS,),
    ),
    "15": Figure(
        "hot ToRs of a fleet, before and after UTP", tasks.FLEET_SWEEPS, tasks.fleet_rows, pictures.fleet
    ),
    "table-2": Figure(
        "one cell before and after UTP (figure 16 too)", tasks.PILOT_SWEEPS, tasks.pilot_rows, pictures.pilot
    ),
    "table-3": Figure(
        "with and without the proactive part (figures 17, 18)",
        tasks.MOVES_SWEEPS,
        tasks.moves_rows,
        pictures.moves,
    ),
    "windows": Figure("tables 2 and 3 with ten times the cells", many_cells.SWEEPS, many_cells.rows),
    "19": Figure(
        "queries before and after UTP",
        gains.QUERY_SWEEPS,
        _both(tcp_gains.query_rows, gains.query_rows),
        gains.changes,
        (TCP_QUERIES, *gains.QUERY_EXPERIMENTS),
    ),
    "20": Figure(
        "HDD reads with and without CCP",
        gains.READ_SWEEPS,
        _both(tcp_chunks.read_rows, gains.read_rows),
        gains.changes,
        (tcp_chunks.TCP_CHUNKS, tcp_chunks.TCP_SPREADS, *gains.READ_EXPERIMENTS),
    ),
    "21": Figure(
        "load-tolerance by size",
        (),
        _both(tcp_latency.size_rows, latency.size_rows),
        partial(tcp_latency.picture, "21"),
        _RACK,
    ),
    "22": Figure(
        "load-tolerance by class of service",
        (),
        _both(tcp_latency.class_rows, latency.class_rows),
        partial(tcp_latency.picture, "22"),
        (TCP_CLASSES, racks.BY_CLASS),
    ),
    "23": Figure(
        "reads of SSDs and of memory",
        (),
        _both(tcp_latency.medium_rows, latency.medium_rows),
        partial(tcp_latency.picture, "23"),
        _RACK,
    ),
    "objectives": Figure(
        "cost of UTP, and of the objective that ranks above UTP",
        tasks.OBJECTIVES_SWEEPS,
        tasks.objectives_rows,
    ),
    "incidents": Figure(
        "the incidents of section 3.4",
        incidents.SWEEPS,
        _both(tcp_incidents.rows, incidents.rows),
        None,
        (tcp_incidents.TCP_INCIDENTS,),
    ),
    "leeward": Figure("leeward against utp", tasks.LEEWARD_SWEEPS, tasks.leeward_rows),
}
"""Figures by the names of `--figure`."""
MAIN = (
    MainResult("main", "table-2", "ToRs hot outbound: change, borg to utp, same tasks"),
    MainResult("less favourable", "table-2", "ToRs hot outbound: change, borg to utp"),
)
"""Results that matter most."""
