"""The sweeps of this paper.

Policies are compared at equal numbers of remote racks, so each policy runs with one and with two. All sweeps
take the same seeds, so runs of two sweeps can be compared write by write if the same files arrive in them.
"""

from importlib.resources import files
from pathlib import Path

from leeward._quantities import duration_text
from leeward.errors import InputError
from leeward.sweep import plan
from leeward.sweep.settings import axes
from leeward_reproduce.sweeps import Sweep

HERE = Path(str(files(__package__)))
DEMO = Path(str(files("leeward.demo")))
RACKS = HERE / "hour.yaml"
"""The simulation of section 7."""
EC2 = HERE / "machines.yaml"
"""The experiments on EC2."""
REMOTE_RACKS = (1, 2)
WARMUP_S = 60.0
"""Warm-up of both scenarios, in seconds."""
SAMPLE_S = 10.0
"""Length of an interval of link loads in both scenarios, in seconds."""
LEAST_S = WARMUP_S + 6 * SAMPLE_S
"""Shortest useful horizon, in seconds: even a policy that waits for 100 s places blocks in such a run."""
_WHY = f"and {(LEAST_S - WARMUP_S) / SAMPLE_S:.0f} intervals of {SAMPLE_S:.0f} s"
DISK_BPS = 50e6 * 8
"""Rate of a disk of the simulation (section 7.1)."""
RACK_LINK_BPS = 2e9
"""Rate of a rack's link of the simulation: 20 interfaces of 1 Gb/s, oversubscribed 10:1."""
OPT = "sinbad-file:interval=10s"
"""OPT' as the paper simulates it."""


def policy(name: str, remote_racks: int) -> str:
    """Name of a policy for the simulations of racks, with its settings."""
    name, colon, settings = name.partition(":")
    return f"{name}:remote_racks={remote_racks}{colon}{settings}"


def short(name: str) -> str:
    """A policy's name without settings; most rows have OPT' with one interval only."""
    return name.partition(":")[0]


def both(*names: str) -> tuple[str, ...]:
    """Policies with one and with two remote racks."""
    return tuple(policy(name, racks) for racks in REMOTE_RACKS for name in names)


WAITS_LONG = "sinbad-file:interval=100s"
"""OPT' with the longest interval that the paper tried."""
CLUSTER = "cluster"
HALF = (("horizon", "30min"),)
"""Half an hour, for sweeps of many runs."""
PHASES = "workloads[0].facebook.phases"

HOUR = Sweep("hour", RACKS, both("uniform", "sinbad", OPT, WAITS_LONG, "leeward"), tables=True)
"""The simulation of section 7."""
BEST_FIT = Sweep("best-fit", RACKS, both("sinbad:best_fit=true", f"{OPT}:best_fit=true"), tables=True)
"""The simulation with the rule that the paper rejects in section 6.3."""
WRITERS = Sweep(
    "writers",
    RACKS,
    (policy("uniform", 1),),
    fixed=(("sample", "5s"),),
    axis="workloads[0].facebook.writers",
    values=("waves", "paced", "none"),
    tables=True,
)
"""Loads of links with writes at the rate of disks, with writes at the pace of tasks, and of the background
alone. The shortest time of the paper's stability is 5 s, so samples are too."""
MEMORY = Sweep(
    "memory",
    RACKS,
    both("uniform", OPT, "sinbad", "leeward"),
    fixed=((CLUSTER, "clusters/memory.yaml"),),
    tables=True,
)
"""The simulation without disks (section 7.6)."""
SOURCES = Sweep(
    "free-sources",
    RACKS,
    both(OPT, "sinbad", "leeward"),
    fixed=(("workloads[0].facebook.flexible", "true"),),
    tables=True,
)
"""The simulation with sources that are placed as well, so that no link limits a writer (section 7.2)."""
JOBS = Sweep("jobs", RACKS, both("uniform", OPT, "sinbad", "leeward"), fixed=((PHASES, "{}"),))
"""The simulation with shuffles that belong to the jobs, and yield to placed blocks."""
TASKS = Sweep("jobs", RACKS, (policy("uniform", 1),), fixed=JOBS.fixed, tables=True)
"""Runs of figure 4, with their tasks."""
DAY = Sweep(
    "day",
    RACKS,
    (policy("uniform", 1), policy(OPT, 1)),
    fixed=(("horizon", "24h"), ("sample", "10min")),
)
"""A day (figure 10)."""
DAY_FEW = Sweep(
    "day",
    RACKS,
    (policy("uniform", 2), policy(OPT, 2), policy("leeward", 1)),
    fixed=DAY.fixed,
    max_seeds=3,
)
"""Other policies of the day, under fewer seeds because their runs take long."""
DAY_TABLES = Sweep(
    "day",
    RACKS,
    (policy("uniform", 1), policy(OPT, 1), policy("leeward", 1)),
    fixed=DAY.fixed,
    tables=True,
    max_seeds=1,
)
"""One day for the picture of storage over racks; its runs are among those of `DAY` and `DAY_FEW`."""
DAY_DOWN = Sweep(
    "day-down",
    RACKS,
    DAY_TABLES.policies,
    fixed=(*DAY.fixed, ("workloads[0].facebook.down", "0.04")),
    tables=True,
    max_seeds=1,
)
"""The day with 4 % of the racks down while the trace was taken, as in the paper (section 7.4)."""
LOAD = Sweep(
    "load",
    RACKS,
    both("uniform", "sinbad", "leeward"),
    fixed=HALF,
    axis="workloads[0].facebook.load",
    values=("0.5", "1", "2"),
)
"""Arrivals at 0.5, 1 and 2 times the rate, on the racks of the simulation."""
HIGH_LOAD = Sweep(
    "high-load",
    RACKS,
    both("uniform", "sinbad"),
    fixed=(("horizon", "10min"),),
    axis="workloads[0].facebook.load",
    values=("1", "2", "3", "4", "6"),
    max_seeds=3,
)
"""Arrivals up to six times the rate, to find the load at which the paper's factor appears."""
FLOWS = {
    load: Sweep(
        f"flows-{load}x",
        RACKS,
        both("uniform", "sinbad"),
        fixed=(
            ("horizon", "10min"),
            ("workloads[0].facebook.background", "flows"),
            ("workloads[0].facebook.load", load),
        ),
        axis="workloads[0].facebook.ceiling",
        values=("0.5", "0.8", "0.9", "0.95", "0.99"),
    )
    for load in ("1", "2", "3", "4")
}
"""Background of flows by the factor on all arrivals. A hot link has c / (1 - c) flows for a ceiling of c, so
that one more flow gets the rest of its capacity."""
FAULTS = Sweep(
    "faults",
    RACKS,
    both("uniform", "sinbad", "leeward"),
    fixed=(*HALF, ("faults", "{stragglers: 0.05, slowdown: 5, failures: 0.01}")),
)
"""Stragglers and tasks that fail; the paper gives no numbers of its own."""
REPAIRS = Sweep(
    "repairs",
    RACKS,
    both("uniform", "sinbad", "leeward"),
    fixed=(*HALF, ("repair", "{after: 1min}"), ("events", "[{at: 5min, rack: r7, state: down}]")),
    ignores_horizon=True,
)
"""A rack that fails after five minutes, and the new copies of its blocks."""
CHOICES = Sweep(
    "writer-choices",
    RACKS,
    both("uniform", "sinbad", "leeward"),
    fixed=HALF,
    axis="writer_choices",
    values=("2", "4"),
)
"""Tasks that choose their host by the network (section 8)."""
MAKESPAN = f"{OPT}:makespan=true"
"""OPT' that orders by the longest writers of jobs (section 8)."""
JOB_ENDS = Sweep("makespan", RACKS, both(OPT, MAKESPAN), fixed=(*HALF, ("workloads[0].facebook.load", "3")))
"""Both orders of OPT' at a load at which blocks wait for each other."""

MACHINE_POLICIES = ("uniform", "sinbad", "leeward")
MACHINES = Sweep("machines", EC2, MACHINE_POLICIES, fixed=((PHASES, "{}"),), tables=True)
"""The experiments on EC2, with jobs that shuffle before they write."""
MACHINES_APART = Sweep("machines-apart", EC2, MACHINE_POLICIES)
"""The experiments with shuffles that belong to no job, as uneven as in section 4.3."""
MACHINES_MEMORY = Sweep(
    "machines-memory",
    EC2,
    MACHINE_POLICIES,
    fixed=((CLUSTER, "clusters/machines-memory.yaml"), (PHASES, "{}")),
    tables=True,
)
"""The experiments with blocks in memory (section 7.6)."""
MACHINES_LOAD = Sweep(
    "machines-load",
    EC2,
    MACHINE_POLICIES,
    fixed=(*HALF, (PHASES, "{}")),
    axis="workloads[0].facebook.load",
    values=("9.68", "19.36", "38.72"),
)
"""Arrivals at 0.5, 1 and 2 times the rate (figure 11)."""

DELAYS = Sweep(
    "delay",
    RACKS,
    both("sinbad", "leeward"),
    fixed=HALF,
    axis="telemetry.delay",
    values=("2s", "10s"),
)
LOSSES = Sweep(
    "loss",
    RACKS,
    both("sinbad", "leeward"),
    fixed=HALF,
    axis="telemetry.loss",
    values=("0.1", "0.5"),
)
LOSSES_SINBAD = Sweep(
    "loss-sinbad",
    RACKS,
    both("sinbad"),
    fixed=(("ledger.missing", "sinbad"), *HALF),
    axis="telemetry.loss",
    values=("0.1", "0.5"),
)
NOISE = Sweep(
    "noise",
    RACKS,
    both("sinbad", "leeward"),
    fixed=HALF,
    axis="telemetry.noise",
    values=("0.3", "1"),
)
LARGE = Sweep(
    "large",
    RACKS,
    both("uniform", "sinbad", "leeward"),
    fixed=((CLUSTER, "clusters/large.yaml"), ("horizon", "3min")),
)
"""Ten times the racks."""
UNEVEN = Sweep(
    "uneven",
    RACKS,
    both("uniform", "sinbad", "ccp", "leeward"),
    fixed=((CLUSTER, "clusters/uneven.yaml"),),
)
"""Uplinks that differ threefold."""
TRACES = Sweep(
    "traces",
    DEMO / "traces.yaml",
    both("uniform", "sinbad", OPT, "leeward"),
    fixed=(("horizon", "10min"), ("telemetry.counters", "[racks]"), ("ledger.initial", "zero")),
    traces=True,
)
"""Public traces of the same cluster instead of the generator."""


def check_horizon(horizon: str) -> None:
    """Checks the length of runs.

    Raises:
        InputError: The text is not a time, or the time is shorter than `LEAST_S`.
    """
    try:
        (variant,) = plan.variants(RACKS, None, axes({"horizon": [horizon], "warmup": ["0s"]}))
        long = variant.read().horizon_s >= LEAST_S
    except InputError as error:
        raise InputError.about("horizon", error.message) from None
    if not long:
        why = f"expected at least {duration_text(LEAST_S)}: a warm-up of {duration_text(WARMUP_S)}, {_WHY}"
        raise InputError.about("horizon", f"`{horizon}`: {why}")
