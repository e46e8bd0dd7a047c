"""Thresholds of the analysis that the papers leave open or that a user may change."""

from dataclasses import dataclass

from leeward.errors import InputError
from leeward.telemetry.units import UNIT_PPM
from leeward.telemetry.windows import COVERAGE, INTERVAL_MS

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
BIN_PPM = 10_000
"""Width of the bins of histograms of utilization: 1 %."""
MOST_BRIDGE = 1000


@dataclass(frozen=True)
class Settings:
    """Thresholds of the analysis.

    Attributes:
        hot_ppm: A link is hot in an interval if its utilization, in millionths, is above this
            (Hotspots, section 3.1: 75 %).
        interval_ms: Length of an interval (Hotspots, section 3.1: 5 minutes).
        coverage: Share of an interval that telemetry must cover for the interval to count.
        bridge: Largest number of consecutive intervals without telemetry that do not end a run of hot
            intervals.
        hours_ms: Shortest run of the class `hours`; shorter runs are of the class `minutes` (section 3.2: a
            third of the runs).
        days_ms: Shortest run of the class `days`.
        ahead_ms: Horizon of the forecast of hot links.
        train: Share of the time, from its start, from which forecasts learn; the rest scores them.
        fell: Capacity has fallen if it is below this share of the largest capacity before.
        grew: A load has grown if it is above this multiple of the largest load before.
        matches: A rack's uplink for its disks is Medium if it differs from the guideline by at most this
            share of the guideline.
        split: Storage or compute causes a hotspot of a mixed rack if it uses more than this share of the
            capacity that is provisioned for it (section 3.2: 75 %).
        intensive: A job is network-intensive if its bandwidth per compute unit is above this multiple of the
            median job's.
        crowded: A job is concentrated if the share of its tasks on hot racks is at least this multiple of
            the share of hosts in hot racks, among racks of the same kind. A rack is crowded if it has more
            than this multiple of the median rack's network-intensive tasks per unit of bandwidth.
        part: Tasks are a cause of hot racks only if they have at least this share of the racks' traffic.
        persistent: In the analysis of tasks, a rack is hot if at least this share of its intervals is hot.
        idle_ppm: A rack is idle if its mean utilization, in millionths, is below this.
        cpu_bps: Provisioned bandwidth for a processor; None for that of the median compute rack.
        disk_bps_per_tb: Provisioned bandwidth for a terabyte (10^12 bytes) of disks; None for that of the
            median disk rack.
        stable_percent: A link is stable if its mean utilization over a horizon differs from the current one
            by at most this percentage of the current one (Sinbad, section 4.3: 5 %).
        seed: Seed of the bootstrap.
    """

    hot_ppm: int = 750_000
    interval_ms: int = INTERVAL_MS
    coverage: float = COVERAGE
    bridge: int = 0
    hours_ms: int = HOUR_MS
    days_ms: int = DAY_MS
    ahead_ms: int = 15 * 60_000
    train: float = 0.7
    fell: float = 0.9
    grew: float = 1.1
    matches: float = 0.1
    split: float = 0.75
    intensive: float = 2.0
    crowded: float = 2.0
    part: float = 0.1
    persistent: float = 0.1
    idle_ppm: int = 500_000
    cpu_bps: float | None = None
    disk_bps_per_tb: float | None = None
    stable_percent: int = 5
    seed: int = 1

    def __post_init__(self) -> None:
        """Checks the thresholds that have a valid range.

        Raises:
            InputError: A threshold is invalid.
        """
        if not 0 < self.hot_ppm < UNIT_PPM:
            raise InputError.about(
                "hot", f"`{self.hot_ppm / 10_000:g}%`: expected more than 0 % and less than 105 %"
            )
        if not 1000 <= self.interval_ms <= DAY_MS:
            raise InputError.about("interval", f"`{self.interval_ms} ms`: expected from 1 s to 1 d")
        if not 0 <= self.coverage <= 1:
            raise InputError.about("coverage", f"`{self.coverage:g}`: expected a share from 0 to 1")
        if not 0 <= self.bridge <= MOST_BRIDGE:
            raise InputError.about(
                "bridge", f"`{self.bridge}`: expected a whole number from 0 to {MOST_BRIDGE}"
            )
        if not 0 < self.hours_ms < self.days_ms:
            raise InputError.about("days", "expected `hours_ms` above 0, and `days_ms` above `hours_ms`")
        if self.ahead_ms <= 0 or self.ahead_ms % self.interval_ms:
            raise InputError.about(
                "ahead",
                f"`{self.ahead_ms / 1000:g} s`: expected a whole number of intervals of"
                f" {self.interval_ms / 1000:g} s",
            )
        if not 0 < self.train < 1:
            raise InputError.about("train", f"`{self.train:g}`: expected a share between 0 and 1")
        for name in ("cpu_bps", "disk_bps_per_tb"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise InputError.about(name, f"`{value}`: expected a rate above 0")
