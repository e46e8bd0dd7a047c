"""Reproduction of the paper on network hotspots at Google: UTP, CCP and the incidents that led to them.

Cells, racks and chunks are generated from the paper's statements. The paper publishes no loads, and only some
objectives of the scheduler. The notes of the rows name the values that we substitute. Nothing is tuned to the
paper's results.
"""

from functools import partial

from leeward_reproduce.figures import Figure
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
from leeward_reproduce.summary import MainResult

_RACK = (racks.RACK,)
_FLEET = (fleet.FLEET,)

FIGURES = {
    "3": Figure(
        "hot links by direction and cross-section",
        prevalence.CELL_SWEEPS,
        prevalence.section_rows,
        None,
        _FLEET,
    ),
    "4": Figure(
        "durations of hotspots", prevalence.CELL_SWEEPS, prevalence.duration_rows, prevalence.lasting
    ),
    "5": Figure("hot links by kind of rack", prevalence.KIND_SWEEPS, prevalence.kind_rows),
    "6": Figure("owners of the hotspots of mixed racks", (), fleet.split_rows, fleet.owners, _FLEET),
    "7": Figure("bandwidth per compute unit of jobs", (), fleet.job_rows, fleet.needs, _FLEET),
    "8": Figure(
        "network-intensive tasks and utilization",
        prevalence.CELL_SWEEPS,
        prevalence.crowding_rows,
        prevalence.crowding,
    ),
    "9": Figure("uplink over disk capacity", (), prevalence.provision_rows),
    "11": Figure(
        "an aggregation and its parts by utilization",
        (),
        latency.aggregation_rows,
        partial(latency.picture, "11", "aggregation"),
        _RACK,
    ),
    "table-1": Figure(
        "queries by utilization (figure 12a)",
        (),
        latency.table_rows,
        partial(latency.picture, "12a", "queries"),
        _RACK,
    ),
    "12b": Figure(
        "hotspot-inflation by compute ratio",
        (),
        latency.ratio_rows,
        partial(latency.picture, "12b", "ratios"),
        _RACK,
    ),
    "13": Figure(
        "HDD reads and writes by utilization",
        (),
        latency.file_rows,
        partial(latency.picture, "13", "files"),
        _RACK,
    ),
    "14": Figure("chunk requests by class of uplink", chunks.SWEEPS, chunks.rows, pictures.chunk_shares),
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
        gains.query_rows,
        gains.changes,
        gains.QUERY_EXPERIMENTS,
    ),
    "20": Figure(
        "HDD reads with and without CCP",
        gains.READ_SWEEPS,
        gains.read_rows,
        gains.changes,
        gains.READ_EXPERIMENTS,
    ),
    "21": Figure(
        "load-tolerance by size",
        (),
        latency.size_rows,
        partial(latency.picture, "21", "sizes"),
        _RACK,
    ),
    "22": Figure(
        "load-tolerance by class of service",
        (),
        latency.class_rows,
        partial(latency.picture, "22", "classes"),
        (racks.BY_CLASS,),
    ),
    "23": Figure(
        "reads of SSDs and of memory",
        (),
        latency.medium_rows,
        partial(latency.picture, "23", "media"),
        _RACK,
    ),
    "objectives": Figure(
        "cost of UTP, and of the objective that ranks above UTP",
        tasks.OBJECTIVES_SWEEPS,
        tasks.objectives_rows,
    ),
    "incidents": Figure("the incidents of section 3.4", incidents.SWEEPS, incidents.rows),
    "leeward": Figure("leeward against utp", tasks.LEEWARD_SWEEPS, tasks.leeward_rows),
}
"""Figures by the names of `--figure`."""
MAIN = (
    MainResult("main", "table-2", "ToRs hot outbound: change, borg to utp, same tasks"),
    MainResult("less favourable", "table-2", "ToRs hot outbound: change, borg to utp"),
)
"""Results that matter most."""
