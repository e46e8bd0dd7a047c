"""Checks of the lab on this machine: its dilations, table 1 of Etalon, and programs in virtual time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leeward.lab.checks.ladder import HOSTS_PER_RACK, LADDER, RACKS, Senders, Trial, climb
from leeward.lab.checks.network import check_network
from leeward.lab.checks.programs import check_programs
from leeward.lab.checks.values import Check

__all__ = ["LADDER", "Check", "LabCheck", "Trial", "check", "check_network", "check_programs", "climb"]

_PARTS = (("pair", 0.2), ("all", 0.25), ("network", 0.2), ("programs", 0.35))
"""Shares of the time of a check."""


@dataclass(frozen=True)
class LabCheck:
    """Result of `check`.

    Attributes:
        trials: Trials of dilations, first with one pair of racks that sends, and then with all racks.
        checks: Table 1, the largest real rate, and what programs read.
    """

    trials: list[Trial]
    checks: list[Check]

    def recommended(self, senders: Senders) -> Trial | None:
        """The trial that kept up with one pair of racks that sends, or with all racks; None if none did."""
        kept = (trial for trial in self.trials if trial.senders == senders and trial.kept_up)
        return next(kept, None)


def check(
    racks: int = RACKS,
    hosts_per_rack: int = HOSTS_PER_RACK,
    *,
    bound: str | None = None,
    dilations: Sequence[int] = LADDER,
    progress: Callable[[float], object] | None = None,
) -> LabCheck:
    """Chooses a dilation for this machine, and measures the lab under it.

    Args:
        racks: Number of racks, in trials in which all racks send.
        hosts_per_rack: Hosts of each rack, in these trials.
        bound: Largest lateness of 99 % of the packets, in virtual time; by default `BOUND`.
        dilations: Dilations to try; the smallest is the first.
        progress: Called with the elapsed share of the check.

    Raises:
        InputError: A number is invalid.
        OSError: No root, no TUN devices, or a program of iproute2 failed.
    """
    begun = 0.0

    def part(name: str) -> Callable[[float], object]:
        """Progress of a part of the check."""
        nonlocal begun
        start, share = begun, dict(_PARTS)[name]
        begun += share

        def report(done: float) -> None:
            if progress:
                progress(start + share * done)

        return report

    trials: list[Trial] = []
    senders: tuple[Senders, ...] = ("pair", "all")
    for kind in senders:
        report = part(kind)
        trials += climb(kind, racks, hosts_per_rack, bound=bound, dilations=dilations, progress=report)
    # If no dilation sufficed, the largest one shows how far off the machine is.
    dilation = next(trial for trial in reversed(trials) if trial.senders == "pair").dilation
    checks = check_network(dilation, progress=part("network")) + check_programs(progress=part("programs"))
    return LabCheck(trials, checks)
