"""Dilations one after another, until this machine carries the packets in time."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy

from leeward._quantities import read_seconds
from leeward.errors import InputError
from leeward.lab.checks.network import days_scenario, real_bps
from leeward.lab.runs import BOUND, check_dilation, measure

Senders = Literal["pair", "all"]
LADDER = (20, 30, 40, 60, 80, 120, 160, 240, 360, 500, 1000)
"""Dilations that `check` tries, one after another."""
RACKS, HOSTS_PER_RACK = 8, 2
"""Network in which all racks send."""
_TIME_S = 2.0
"""Real length of a trial."""


@dataclass(frozen=True)
class Trial:
    """A short run under one dilation. Times are virtual seconds.

    Attributes:
        senders: `pair` if one of eight racks sends to one other, `all` if all racks send to all others.
        dilation: Dilation of the trial.
        day_s: Mean length of a day as the lab carried it out; the schedule says 180 us.
        day_deviation_s: Standard deviation of this length.
        late_p99_s: Lateness of 99 % of the packets; infinite without packets.
        lost_packets: Packets that were lost where the switch did not decide.
        rate_bps: Real rate of the packets that hosts sent, in bits per second.
        kept_up: Whether the lateness is within the bound, and no packet was lost outside the switch.
    """

    senders: Senders
    dilation: int
    day_s: float
    day_deviation_s: float
    late_p99_s: float
    lost_packets: int
    rate_bps: float
    kept_up: bool


def climb(
    senders: Senders,
    racks: int = RACKS,
    hosts_per_rack: int = HOSTS_PER_RACK,
    *,
    bound: str | None = None,
    dilations: Sequence[int] = LADDER,
    progress: Callable[[float], object] | None = None,
) -> list[Trial]:
    """Tries one dilation after another, until the lab keeps up.

    Args:
        senders: `pair` for sixteen flows between two of eight racks (Etalon, section 4), `all` for flows
            between all hosts of different racks.
        racks: Number of racks, if all send.
        hosts_per_rack: Hosts of each rack, if all send.
        bound: Largest lateness of 99 % of the packets, in virtual time; by default `BOUND`.
        dilations: Dilations to try; the smallest is the first.
        progress: Called with the share of the dilations that were tried.

    Returns:
        The trials; the last one has kept up, unless none did.

    Raises:
        InputError: A number is invalid.
        OSError: No root, no TUN devices, or a program of iproute2 failed.
    """
    bound_s = read_seconds("bound", bound or BOUND)
    ladder = sorted({check_dilation(dilation) for dilation in dilations})
    if not ladder:
        raise InputError.about("dilations", "none: expected at least one")
    trials: list[Trial] = []
    for dilation in ladder:
        horizon = f"{round(1e9 * _TIME_S / dilation)}ns"
        scenario = days_scenario(horizon) if senders == "pair" else _all(racks, hosts_per_rack, horizon)
        trials.append(_try(senders, scenario, dilation, bound_s))
        if progress:
            progress(len(trials) / len(ladder))
        if trials[-1].kept_up:
            break
    return trials


def _all(racks: int, hosts_per_rack: int, horizon: str) -> dict[str, Any]:
    kind = {"kind": "all_to_all", "bytes": "10GB", "ranks_per_rack": hosts_per_rack}
    return {
        "network": {"racks": racks, "hosts_per_rack": hosts_per_rack},
        "scheduler": {"name": "strobe"},
        "workload": {"collective": kind},
        "horizon": horizon,
    }


def _try(senders: Senders, scenario: dict[str, Any], dilation: int, bound_s: float) -> Trial:
    result = measure(scenario, dilation)
    timing, days = result.timing, numpy.array(result.timing["days_s"])
    late, lost = timing["packets"]["p99_s"], timing["lost_packets"]
    return Trial(
        senders=senders,
        dilation=dilation,
        day_s=float(days.mean()) if len(days) else math.nan,
        day_deviation_s=float(days.std()) if len(days) else math.nan,
        late_p99_s=math.inf if late is None else late,
        lost_packets=lost,
        rate_bps=real_bps(result),
        kept_up=late is not None and late <= bound_s and not lost,
    )
