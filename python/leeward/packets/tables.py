"""The tables of a run."""

from typing import TYPE_CHECKING

from leeward._native import PacketRun

if TYPE_CHECKING:
    import pyarrow

PATHS = ("all", "packet", "circuit")
"""Ways through the switch whose latencies are told apart."""
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
"""Percentiles of the table `percentiles`, as shares."""
TABLES = ("flows", "trains", "copies", "days", "samples", "latencies", "percentiles")
"""Names of a run's tables."""


def tables(run: PacketRun) -> "dict[str, pyarrow.Table]":
    """The tables of a run, by name.

    - `flows`: between whom, when they began and finished (seconds; null if not), bytes and segments.
    - `trains`: of packets without a transport: between whom, packets sent and received, and `rate_bps`, what
      the probe makes of their arrivals (null where too few came).
    - `copies`: of blocks of files, beside their writers': whose, where, when the block began and finished.
    - `days`: of circuits, with `utilization`, the share of the day in which the circuit sent.
    - `samples`: of queues, in packets and bytes, and `delivered_bytes`, what has arrived in order of all
      flows of the pair.
    - `latencies`: how many packets with data were how long in the switch, by path.
    - `percentiles`: of these, by path and for all.
    """
    return {
        "flows": run.flows(),
        "trains": run.trains(),
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
