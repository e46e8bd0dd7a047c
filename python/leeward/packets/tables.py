"""Tables of a run."""

from typing import TYPE_CHECKING

from leeward._native import PacketRun

if TYPE_CHECKING:
    import pyarrow

PATHS = ("all", "packet", "circuit")
"""Paths through the switch with separate latencies."""
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
"""Percentiles of the table `percentiles`, as shares."""
TABLES = ("flows", "trains", "copies", "days", "samples", "latencies", "percentiles")
"""Names of a run's tables."""


def tables(run: PacketRun) -> "dict[str, pyarrow.Table]":
    """Tables of a run, by name.

    - `flows`: ends, start and finish (seconds; null without one), bytes and segments.
    - `trains`: trains of packets without a transport: ends, packets sent and received, and `rate_bps`, the
      estimate of the probe from their arrivals (null with too few).
    - `copies`: copies of blocks, except those on the writers' hosts: owner, place, start of the block and
      finish.
    - `days`: days of circuits, with `utilization`, the share of the day in which the circuit sent.
    - `samples`: queue lengths in packets and bytes, and `delivered_bytes`, bytes of all flows of the pair
      that have arrived in order.
    - `latencies`: number of packets with data by their time in the switch, by path.
    - `percentiles`: percentiles of these latencies, by path and for all paths.
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
