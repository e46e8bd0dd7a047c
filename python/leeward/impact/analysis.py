"""The complete analysis: from latencies and telemetry to curves of inflation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow

from leeward.errors import InputError
from leeward.impact import latencies as latencies_of
from leeward.impact import stages as stages_of
from leeward.impact.curves import Curve, curves
from leeward.impact.join import Above, join
from leeward.impact.operations import Places, rules
from leeward.impact.settings import MILLION, Settings
from leeward.impact.utilization import Utilization, effective, plain
from leeward.telemetry import Discards, Samples, windows
from leeward.telemetry.units import Source, doubt


@dataclass(frozen=True)
class Impact:
    """Growth of latencies with utilization.

    Attributes:
        curves: A curve for each kind of operation.
        by: Fields that distinguish kinds.
        settings: Settings of the analysis.
        rows: Number of latencies.
        latencies: Number of latencies with a utilization.
        discards: Counts of the other latencies, by reason.
        telemetry: Counts of telemetry that was left out, by reason.
        warnings: Doubts about the numbers.
        weights: Weights of classes of service, for weighted-effective utilizations.
        counts: Histograms behind all curves.
    """

    curves: Sequence[Curve]
    by: Sequence[str]
    settings: Settings
    rows: int
    latencies: int
    discards: Discards
    telemetry: Discards
    warnings: Sequence[str]
    weights: Mapping[str, int] | None
    counts: pyarrow.Table = field(repr=False)


def measure(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    telemetry: Samples | Mapping[str, Samples],
    settings: Settings | None = None,
    *,
    operations: Mapping[str, str] | None = None,
    stages: str | PathLike[str] | None = None,
    weights: Mapping[str, int] | None = None,
    names: Mapping[str, str] | None = None,
) -> Impact:
    """Measures the growth of operations' latencies with the utilization of their links.

    Args:
        paths: Files of latencies in CSV or Parquet, of spans (OpenTelemetry, Jaeger) or of histograms
            (Prometheus), or folders of them.
        telemetry: Loads of links; or, for weighted-effective utilization, the load of each class of service
            on them, by its name.
        settings: Widths, thresholds and edges.
        operations: Links that kinds of operations cross, in addition to the default links or instead of them.
        stages: A file with the times of stages, for compute ratios of queries.
        weights: Weights of classes of service, whole numbers; required with telemetry by class.
        names: Kinds of operations by the names of spans and histograms, such as `{"GetObject": "file-read"}`.

    Raises:
        InputError: A file cannot be read, latencies and telemetry do not overlap, or a setting is invalid.
    """
    options = settings or Settings()
    use = _utilization(telemetry, weights, options)
    discards, telemetry_discards = Discards(), Discards()
    several = telemetry.values() if isinstance(telemetry, Mapping) else [telemetry]
    with TemporaryDirectory(prefix="leeward-impact-") as name:
        folder = Path(name)
        files = [paths] if isinstance(paths, str | PathLike) else paths
        places = Places(use.links)
        rows = latencies_of.read([Path(path) for path in files], places, rules(operations), folder, names)
        discards.add(rows.discards)
        ratios = None if stages is None else stages_of.read(Path(stages), folder, discards)
        joined = join(rows, use, options, ratios, discards)
    for samples in several:
        telemetry_discards.add(samples.discards)
    result = curves(joined.counts, joined.by, options)
    source = telemetry.source if isinstance(telemetry, Samples) else Source()
    warnings = _warnings(result, joined.above, source, rows, options)
    return Impact(
        result,
        joined.by,
        options,
        rows.rows,
        joined.latencies,
        discards,
        telemetry_discards,
        warnings,
        use.weights,
        joined.counts,
    )


def _utilization(
    telemetry: Samples | Mapping[str, Samples], weights: Mapping[str, int] | None, settings: Settings
) -> Utilization:
    if isinstance(telemetry, Mapping):
        if weights is None:
            message = "telemetry is by class of service: expected the weights of its scheduler"
            raise InputError.about("weights", message)
        by_class = {
            name: windows(samples, settings.interval_ms, settings.coverage)
            for name, samples in telemetry.items()
        }
        return effective(by_class, weights)
    if weights is not None:
        message = "only valid with telemetry by class of service"
        raise InputError.about("weights", message)
    return plain(windows(telemetry, settings.interval_ms, settings.coverage))


def _warnings(
    result: Sequence[Curve],
    above: Sequence[Above],
    source: Source,
    rows: latencies_of.Latencies,
    settings: Settings,
) -> list[str]:
    lines = []
    if above:
        worst = above[0]
        factor, why = doubt(worst.usual_ppm / MILLION, source)
        likely = f"{why} (a factor of {factor:g})" if factor else why
        subject = f"{len(above):,} links were" if len(above) > 1 else "a link was"
        most = f"{worst.most_ppm / 10_000:,.0f}"
        lines.append(f"{subject} above 105 % of capacity, `{worst.name}` at {most} %; {likely}")
    if rows.too_fast:
        message = "latencies are too short for their bytes to have crossed the links: is a unit off?"
        lines.append(f"{rows.too_fast:,} {message}")
    if rows.above_buckets:
        message = "latencies are above the last bound of their histogram, and count with that bound"
        lines.append(f"{rows.above_buckets:,} {message}: percentiles among them are too low")
    for curve in result:
        name, judged = f"{curve.name}{'' if curve.part == 'total' else ', network'}", curve.judged
        if not judged:
            fullest = max(bucket.latencies for bucket in curve.buckets)
            lines.append(f"{name}: no bucket has {settings.least} latencies (the fullest has {fullest})")
        elif len(judged) == 1:
            (only,) = judged
            span = f"{only.low_ppm / 10_000:g} to {only.high_ppm / 10_000:g} %"
            lines.append(f"{name}: only the bucket {span} has {settings.least} latencies: no inflation")
    return lines
