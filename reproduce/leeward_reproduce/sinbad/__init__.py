"""Sinbad: leveraging endpoint flexibility in data-intensive clusters (SIGCOMM 2013), section by section.

Each figure has its sweeps, its rows and its picture. The paper's trace is private; arrivals are generated
from the paper's statements, and nothing is tuned to its results.
"""

from leeward_reproduce.figures import Figure
from leeward_reproduce.sinbad import (
    analysis,
    extensions,
    failures,
    imbalance,
    limits,
    machines,
    pictures,
    simulation,
    storage,
    tasks,
)
from leeward_reproduce.summary import MainResult

FIGURES = {
    "4": Figure("tasks' share of time in writing", tasks.SWEEPS, tasks.rows, pictures.task_shares),
    "5": Figure(
        "imbalance of the input", imbalance.INPUT_SWEEPS, imbalance.input_rows, pictures.input_imbalance
    ),
    "5-links": Figure(
        "imbalance and stability, as telemetry tells them", imbalance.LINK_SWEEPS, imbalance.link_rows
    ),
    "6": Figure("machines: blocks, and jobs by bin", machines.SWEEPS, machines.rows, pictures.intervals),
    "6.3": Figure(
        "best fit to the rate of disks", simulation.FIT_SWEEPS, simulation.fit_rows, pictures.intervals
    ),
    "7": Figure("machines: jobs by write size", machines.SIZE_SWEEPS, machines.size_rows, pictures.intervals),
    "7.2": Figure("the simulation", simulation.SWEEPS, simulation.rows, pictures.intervals),
    "7.2-load": Figure(
        "the simulation under more load", simulation.LOAD_SWEEPS, simulation.load_rows, pictures.intervals
    ),
    "7.2-flows": Figure(
        "the simulation over flows", simulation.FLOW_SWEEPS, simulation.flow_rows, pictures.intervals
    ),
    "7.2-sources": Figure(
        "the simulation with free sources",
        simulation.SOURCE_SWEEPS,
        simulation.source_rows,
        pictures.intervals,
    ),
    "7.4": Figure("machines: storage", storage.MACHINE_SWEEPS, storage.machine_rows, pictures.intervals),
    "7.6": Figure(
        "the simulation without disks", simulation.MEMORY_SWEEPS, simulation.memory_rows, pictures.intervals
    ),
    "7.6-machines": Figure(
        "machines: blocks in memory", machines.MEMORY_SWEEPS, machines.memory_rows, pictures.intervals
    ),
    "8": Figure("imbalance over racks", imbalance.RACK_SWEEPS, imbalance.rack_rows, pictures.rack_imbalance),
    "9": Figure(
        "imbalance over machines",
        imbalance.MACHINE_SWEEPS,
        imbalance.machine_rows,
        pictures.machine_imbalance,
    ),
    "10": Figure("storage over racks after a day", storage.SWEEPS, storage.rows, pictures.stored),
    "11": Figure("machines: arrival rates", machines.LOAD_SWEEPS, machines.load_rows, pictures.intervals),
    "12": Figure("probability of a slow copy", (), analysis.slowdown_rows, pictures.slowdown),
    "equations": Figure("equations (2) to (5)", analysis.SWEEPS, analysis.rows, pictures.intervals),
    "failures": Figure(
        "failures, stragglers, sources and jobs", failures.SWEEPS, failures.rows, pictures.intervals
    ),
    "limits": Figure("what holds blocks back", limits.SWEEPS, limits.rows),
    "load": Figure(
        "the simulation: arrival rates", extensions.LOAD_SWEEPS, extensions.load_rows, pictures.intervals
    ),
    "reports": Figure(
        "late, lost and wrong reports", extensions.REPORT_SWEEPS, extensions.report_rows, pictures.intervals
    ),
    "large": Figure(
        "ten times the racks", extensions.LARGE_SWEEPS, extensions.large_rows, pictures.intervals
    ),
    "traces": Figure("public traces", extensions.TRACE_SWEEPS, extensions.trace_rows, pictures.intervals),
    "leeward": Figure(
        "leeward against the others", extensions.LEEWARD_SWEEPS, extensions.leeward_rows, pictures.intervals
    ),
}
"""Figures by the names of `--figure`."""
MAIN = (
    MainResult(
        "main",
        "6",
        "section 7.2: full blocks, shuffles apart from jobs, as uneven as in section 4.3: uniform / sinbad",
    ),
    MainResult("less favourable", "7.2", "full blocks from placing: uniform / sinbad-file, 1 remote"),
)
"""Results that matter most."""
