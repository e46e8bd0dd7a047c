"""Timing of this machine: the dilation that it can carry (Etalon, table 1)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from leeward import _native
from leeward._quantities import read_seconds
from leeward.lab import kernel_parts
from leeward.lab.runs import BOUND
from leeward.packets import read

LADDER = (20, 40, 80, 120, 160, 240, 360, 500, 1000)
"""Dilations that `check` tries, one after another."""
_TIME_S = 2.0
"""Real length of a trial."""


@dataclass(frozen=True)
class Trial:
    """A short run with all racks sending, under one dilation. Times are virtual seconds.

    Attributes:
        dilation: Dilation of the trial.
        day_s: Mean length of a day as the lab carried it out; the schedule says 180 us.
        day_deviation_s: Standard deviation of this length.
        late_p99_s: Lateness of 99 % of the packets.
        rate_bps: Real rate of the packets that the lab carried, in bits per second.
        kept_up: Whether the lateness is within the bound, and no packet was lost outside the switch.
    """

    dilation: int
    day_s: float
    day_deviation_s: float
    late_p99_s: float
    rate_bps: float
    kept_up: bool


def check(
    racks: int = 8, hosts_per_rack: int = 2, *, bound: str | None = None, ladder: Sequence[int] = LADDER
) -> list[Trial]:
    """Tries one dilation after another, until the lab keeps up.

    Args:
        racks: Number of racks, all of which send to all others.
        hosts_per_rack: Hosts of each rack.
        bound: Largest lateness of 99 % of the packets, in virtual time; by default `BOUND`.
        ladder: Dilations to try, ascending.

    Returns:
        The trials; the last one has kept up, unless none did.

    Raises:
        OSError: No root, no TUN devices, or a program of iproute2 failed.
    """
    trials: list[Trial] = []
    for dilation in ladder:
        trials.append(_try(racks, hosts_per_rack, dilation, read_seconds("bound", bound or BOUND)))
        if trials[-1].kept_up:
            break
    return trials


def _try(racks: int, hosts_per_rack: int, dilation: int, bound_s: float) -> Trial:
    horizon_s = _TIME_S / dilation
    scenario = read(
        {
            "network": {"racks": racks, "hosts_per_rack": hosts_per_rack},
            "scheduler": {"name": "strobe"},
            "workload": {
                "collective": {"kind": "all_to_all", "bytes": "10GB", "ranks_per_rack": hosts_per_rack}
            },
            "horizon": f"{round(horizon_s * 1e9)}ns",
        }
    )
    records, timing = _native.run_lab(scenario, dilation, None, kernel_parts.folder())
    days = numpy.array(timing["days_s"])
    late = timing["packets"]["p99_s"]
    sent = records.totals()["sent_bytes"]
    return Trial(
        dilation=dilation,
        day_s=float(days.mean()) if len(days) else math.nan,
        day_deviation_s=float(days.std()) if len(days) else math.nan,
        late_p99_s=math.inf if late is None else late,
        rate_bps=8 * sent / _TIME_S,
        kept_up=late is not None and late <= bound_s and not timing["lost_packets"],
    )
