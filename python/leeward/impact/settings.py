"""Settings of the analysis that the paper leaves open or that a user may change."""

from dataclasses import dataclass

from leeward.errors import InputError, whole_number
from leeward.telemetry.windows import COVERAGE

MILLION = 1_000_000
INTERVAL_MS = 30_000
"""Hotspots' telemetry has a window each 30 s (section 4.1)."""
MOST_INTERVAL_MS = 86_400_000
MOST_RESAMPLES = 100_000
SPLITS = ("operation", "medium", "class", "size", "compute")
"""Fields that latencies can be split by."""


@dataclass(frozen=True)
class Settings:
    """Widths, thresholds and edges of the analysis.

    Attributes:
        interval_ms: Length of the intervals whose utilization latencies are compared with.
        coverage: Least observed share of an interval that is judged.
        bucket_ppm: The width of a bucket of utilization, in millionths (section 4.1: 5 %).
        hot_ppm: Utilization for hotspot-inflation, which is that of the bucket that holds it (section 4.2: 75
            %).
        least: Least number of latencies of a judged bucket; the paper states no number.
        factors: Factors of inflation, for load-tolerance (section 4.1: 1.5 and 2).
        interpolate: True to interpolate load-tolerance between the middles of buckets, instead of taking the
            lower edge of the first bucket that reaches the factor.
        by: Fields to split latencies by, of `SPLITS`; None: by operation, and by medium where it is known.
        sizes: Edges of size classes, in bytes, ascending (appendix B: 10 KB, 100 KB, 1 MB, 10 MB).
        ratios: Edges of compute-ratio classes, in millionths, ascending.
        resamples: Number of resamples of the bootstrap.
        confidence: Share of the resamples that an interval holds.
        seed: Seed of the bootstrap.
    """

    interval_ms: int = INTERVAL_MS
    coverage: float = COVERAGE
    bucket_ppm: int = 50_000
    hot_ppm: int = 750_000
    least: int = 100
    factors: tuple[float, ...] = (1.5, 2.0)
    interpolate: bool = False
    by: tuple[str, ...] | None = None
    sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000, 10_000_000)
    ratios: tuple[int, ...] = tuple(range(100_000, MILLION, 100_000))
    resamples: int = 1000
    confidence: float = 0.95
    seed: int = 1

    def __post_init__(self) -> None:
        """Checks each setting.

        Raises:
            InputError: A setting is invalid.
        """
        if not 1000 <= self.interval_ms <= MOST_INTERVAL_MS:
            raise InputError.about("interval", f"`{self.interval_ms} ms`: expected from 1 s to 1 d")
        if not 0 <= self.coverage <= 1:
            raise InputError.about("coverage", f"`{self.coverage:g}`: expected a share from 0 to 1")
        for name in ("bucket", "hot"):
            share: int = getattr(self, f"{name}_ppm")
            if not 1000 <= share <= MILLION:
                raise InputError.about(name, f"`{share / 10_000:g}%`: expected from 0.1 % to 100 %")
        whole_number("least", self.least, 2)
        whole_number("resamples", self.resamples, 0, MOST_RESAMPLES)
        whole_number("seed", self.seed, 0)
        if not self.factors or not all(1 < factor < float("inf") for factor in self.factors):
            raise InputError.about("factors", f"`{_list(self.factors)}`: expected factors above 1")
        for split in self.by or ():
            if split not in SPLITS:
                raise InputError.about("by", f"`{split}`: expected some of {', '.join(SPLITS)}")
        for name in ("sizes", "ratios"):
            edges: tuple[int, ...] = getattr(self, name)
            if not all(0 < low < high for low, high in zip(edges, (*edges[1:], float("inf")), strict=True)):
                raise InputError.about(
                    name, f"`{_list(edges)}`: expected edges above 0, each above the one before"
                )
        if not 0 < self.confidence < 1:
            raise InputError.about("confidence", f"`{self.confidence:g}`: expected a share between 0 and 1")


def _list(values: tuple[float, ...]) -> str:
    return ",".join(f"{value:g}" for value in values)
