"""The packet plant: hosts that send through a switch of packets and circuits, packet by packet.

>>> from leeward import packets
>>> run = packets.simulate({
...     "network": {"racks": 4, "hosts_per_rack": 2},
...     "scheduler": {"name": "strobe"},
...     "workload": {"flows": [{"from": [0, 0], "to": [1, 0], "bytes": "1MB"}]},
...     "horizon": "10ms",
... })
>>> run.totals()["finished"]
1
"""

import json
from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from leeward import _native
from leeward._native import PacketRun, PacketScenario

if TYPE_CHECKING:
    import pyarrow

__all__ = ["PATHS", "SHARES", "TABLES", "PacketRun", "PacketScenario", "read", "simulate", "tables"]

PATHS = ("all", "packet", "circuit")
"""Ways through the switch whose latencies are told apart."""
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
"""Percentiles of the table `percentiles`, as shares."""
TABLES = ("flows", "copies", "days", "samples", "latencies", "percentiles")
"""Names of a run's tables."""


def read(scenario: PacketScenario | Mapping[str, Any] | str | PathLike[str]) -> PacketScenario:
    """Reads a scenario of the packet plant.

    Args:
        scenario: A file (YAML or JSON), or what would be in one, as a mapping.

    Raises:
        InputError: It cannot be read, or a field is not right.
    """
    if isinstance(scenario, PacketScenario):
        return scenario
    if isinstance(scenario, Mapping):
        return _native.PacketScenario.from_text(json.dumps(scenario), "scenario")
    return _native.PacketScenario.from_file(str(scenario))


def simulate(
    scenario: PacketScenario | Mapping[str, Any] | str | PathLike[str],
    *,
    progress: Callable[[float], object] | None = None,
) -> PacketRun:
    """Runs a scenario of the packet plant.

    Args:
        scenario: What `read` takes.
        progress: Told the share of the horizon that is over.

    Returns:
        What happened: see `tables`, and `PacketRun`.

    Raises:
        InputError: The scenario is not right, or its scheduler makes no schedule.
    """
    return read(scenario).run(progress)


def tables(run: PacketRun) -> "dict[str, pyarrow.Table]":
    """The tables of a run, by name.

    - `flows`: between whom, when they began and finished (seconds; null if not), bytes and segments.
    - `copies`: of blocks of files, beside their writers': whose, where, when the block began and finished.
    - `days`: of circuits, with `utilization`, the share of the day in which the circuit sent.
    - `samples`: of queues, in packets and bytes, and `delivered_bytes`, what has arrived in order of all
      flows of the pair.
    - `latencies`: how many packets with data were how long in the switch, by path.
    - `percentiles`: of these, by path and for all.
    """
    return {
        "flows": run.flows(),
        "copies": run.copies(),
        "days": run.days(),
        "samples": run.samples(),
        "latencies": run.latencies(),
        "percentiles": _percentiles(run),
    }


def _percentiles(run: PacketRun) -> "pyarrow.Table":
    import pyarrow

    rows = [(path, share, run.latency(path, share)) for path in PATHS for share in SHARES]
    columns = {
        "path": pyarrow.array([row[0] for row in rows], pyarrow.string()),
        "share": pyarrow.array([row[1] for row in rows], pyarrow.float64()),
        "latency_s": pyarrow.array([row[2] for row in rows], pyarrow.float64()),
    }
    return pyarrow.table(columns)
