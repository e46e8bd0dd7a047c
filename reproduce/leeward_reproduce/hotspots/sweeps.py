"""The sweeps of this paper."""

from importlib.resources import files
from pathlib import Path

import yaml

from leeward._quantities import duration_text
from leeward.errors import InputError
from leeward.sweep import plan
from leeward.sweep.settings import axes
from leeward_reproduce.sweeps import Sweep

HERE = Path(str(files(__package__)))
CELL = HERE / "cell.yaml"
WARMUP_S = 2 * 86_400.0
"""Warm-up of the cell, in seconds."""
LEAST_S = WARMUP_S + 2 * 3600.0
"""Shortest horizon of a cell, in seconds: it leaves two windows of an hour."""

NETWORK = "workloads[0].cell.network"
STRICT = "utp:spread=0"
"""UTP in which each task of a job in a rack counts for spread, so lower-ranked objectives seldom decide."""
GROWN = "0.665"
"""The pilot's load after the growth that the paper's cell saw (table 2)."""
FLEET_LOADS = ("0.2", "0.35", "0.5")
"""Loads of the cells that represent a fleet; the average load of ToRs is low."""

PILOT = Sweep("pilot", CELL, ("borg", "utp-reactive", "utp"), tables=True)
"""The cell of tables 2 and 3."""
PILOT_MANY = Sweep("pilot", CELL, ("borg", "utp-reactive", "utp"), tables=True, seeds_factor=10)
"""The pilot cell under ten times the seeds; stored with the runs of the pilot."""
PILOT_LEEWARD = Sweep("pilot", CELL, ("leeward",), tables=True, max_seeds=3)
"""The pilot cell under `leeward`, which decides as `utp` does; stored with the runs of the pilot."""
PILOT_PAIR = Sweep("pilot", CELL, ("borg", "utp"), tables=True)
"""The pilot cell under the two policies of figure 19."""
PILOT_GROWN = Sweep("pilot-grown", CELL, ("utp",), fixed=((NETWORK, GROWN),), tables=True)
"""The pilot cell with more traffic."""
PILOT_STRICT = Sweep("pilot", CELL, (STRICT,), tables=True)
"""The pilot cell with spread before all lower-ranked objectives; stored with the runs of the pilot."""
FLEET = Sweep("fleet", CELL, ("borg", "utp"), axis=NETWORK, values=FLEET_LOADS, tables=True)
"""Cells under several loads (figure 15)."""

MONTH_FILE = HERE / "month.yaml"
MONTH_CLUSTER = HERE / "clusters" / "month.yaml"
MONTH_LOADS = ("0.115", "0.2", "0.285")
"""Loads of tasks in the cells that represent a fleet. With the traffic of disk servers, the average load of
ToRs is that of `FLEET_LOADS`."""
MONTH = Sweep("month", MONTH_FILE, ("borg",), axis=NETWORK, values=MONTH_LOADS, tables=True, max_seeds=5)
"""A month of cells with causes of hotspots that last for days (figures 3, 4, 5 and 8)."""
_GROWTH, _LOSSES, _PEAK = (f"workloads[0].cell.{name}" for name in ("growth", "losses", "peak"))
MONTH_PLAIN = Sweep(
    "month-plain",
    MONTH_FILE,
    ("borg",),
    fixed=((_GROWTH, "null"), (_LOSSES, "null")),
    axis=NETWORK,
    values=MONTH_LOADS,
    tables=True,
    max_seeds=3,
)
"""The same month without growth of services and without losses of uplinks."""
MONTH_STEADY = Sweep(
    "month-steady",
    MONTH_FILE,
    ("borg",),
    fixed=((_PEAK, "1"),),
    axis=NETWORK,
    values=MONTH_LOADS,
    tables=True,
    max_seeds=3,
)
"""The same month with rates that change with the time of day alone."""

INCIDENTS = HERE / "incidents"
UPLINKS_FILE = INCIDENTS / "halved-uplinks.yaml"


def _announced_events() -> str:
    """Events of the first incident, announced to the scheduler."""
    events = yaml.safe_load(UPLINKS_FILE.read_text(encoding="utf-8"))["events"]
    return str(yaml.safe_dump([event | {"told": True} for event in events], default_flow_style=True))


IN_CELL = ("borg", "utp")
LEARNS = "utp:learn_capacity=true"
"""UTP that learns which links have lost capacity."""
UPLINKS = Sweep("uplinks", UPLINKS_FILE, (*IN_CELL, LEARNS), tables=True, ignores_horizon=True)
UPLINKS_TOLD = Sweep(
    "uplinks-told",
    UPLINKS_FILE,
    IN_CELL,
    fixed=(("events", _announced_events()),),
    tables=True,
    ignores_horizon=True,
)
UPLINKS_WHOLE = Sweep(
    "uplinks-whole",
    UPLINKS_FILE,
    (*IN_CELL, LEARNS),
    fixed=(("events", "[]"),),
    tables=True,
    ignores_horizon=True,
)
"""Three variants of the first incident: uplinks at half capacity, without and with the scheduler's knowledge;
and uplinks at full capacity. A scheduler that knows has nothing to learn."""
HERDING = Sweep("herding", INCIDENTS / "herding-constraint.yaml", IN_CELL, tables=True, ignores_horizon=True)
HERDING_NONE = Sweep(
    "herding-none",
    INCIDENTS / "herding-constraint.yaml",
    IN_CELL,
    fixed=(("workloads[0].cell.constrained", "null"),),
    tables=True,
    ignores_horizon=True,
)
"""The second incident with the constraint, and without it."""

STORAGE = HERE / "clusters" / "storage.yaml"
CHUNKS_LOADS = ("12Gbps", "24Gbps", "36Gbps")
"""Loads of reads: 21, 42 and 63 percent of all storage racks' uplinks."""
CHUNKS = Sweep(
    "chunks",
    HERE / "chunks.yaml",
    ("uniform", "ccp", "leeward"),
    axis="workloads[1].reads.rate",
    values=CHUNKS_LOADS,
    tables=True,
    ignores_horizon=True,
    max_seeds=5,
)
"""Chunks on racks with uneven uplinks (figure 14)."""
CHUNKS_PAIR = Sweep(
    "chunks",
    CHUNKS.scenario,
    ("uniform", "ccp"),
    axis=CHUNKS.axis,
    values=CHUNKS_LOADS,
    tables=True,
    ignores_horizon=True,
)
"""The policies of figure 20, under all seeds."""
DEGRADED = Sweep(
    "degraded", INCIDENTS / "degraded-reads.yaml", ("uniform",), tables=True, ignores_horizon=True
)
DEGRADED_NONE = Sweep(
    "degraded-none",
    INCIDENTS / "degraded-reads.yaml",
    ("uniform",),
    fixed=(("workloads[1].reads.degraded", "null"),),
    tables=True,
    ignores_horizon=True,
)
"""The third incident: an incast with degraded reads, and without them."""
REPLICATION = Sweep(
    "replication", INCIDENTS / "hot-storage-tor.yaml", ("uniform",), tables=True, ignores_horizon=True
)
"""The fourth incident: a storage ToR that is hot for ten minutes."""


def check_horizon(horizon: str) -> None:
    """Checks the length of a cell's runs.

    Raises:
        InputError: The text is not a time, or the time is shorter than `LEAST_S`.
    """
    try:
        (variant,) = plan.variants(CELL, None, axes({"horizon": [horizon], "warmup": ["0s"]}))
        long = variant.read().horizon_s >= LEAST_S
    except InputError as error:
        raise InputError.about("horizon", error.message) from None
    if not long:
        why = f"expected at least {duration_text(LEAST_S)}: a warm-up of {duration_text(WARMUP_S)}, and two"
        why += " hours"
        raise InputError.about("horizon", f"`{horizon}`: {why}")
