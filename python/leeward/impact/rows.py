"""Presentation of an analysis of impact, on the terminal and on the page: rows and their words."""

from collections.abc import Iterator, Sequence

from leeward._quantities import NONE, percent_text, time_text
from leeward.impact.analysis import Impact
from leeward.impact.bins import ERROR
from leeward.impact.curves import Bucket, Curve, Estimate, Tolerance
from leeward.impact.settings import MILLION

NEVER = "never"
"""Text for an inflation that does not reach a factor."""


def summary(impact: Impact) -> tuple[list[str], list[list[str]]]:
    """Headers and rows of the table of all kinds: each with its load-tolerances and hotspot-inflation."""
    settings = impact.settings
    hot = f"AT {percent_text(settings.hot_ppm / MILLION, None)}"
    headers = [name.upper() for name in impact.by]
    parts = any(curve.part != "total" for curve in impact.curves)
    headers += ["PART"] if parts else []
    headers += ["LATENCIES", "P95", *(f"{factor:g}x" for factor in settings.factors), hot, f"MEDIAN {hot}"]
    rows = []
    for curve in impact.curves:
        row = [NONE if value is None else value for value in curve.split.values()]
        row += [curve.part] if parts else []
        row.append(f"{sum(bucket.latencies for bucket in curve.buckets):,}")
        judged = curve.judged
        row.append(time_text(judged[0].ns["p95"] / 1e9) if judged else NONE)
        for factor in settings.factors:
            matches = [item for item in curve.tolerances if (item.of, item.factor) == ("p95", factor)]
            row.append(tolerance(impact, matches[0]) if matches else NONE)
        row += [inflation(curve.hotspot[name]) for name in ("p95", "median")]
        rows.append(row)
    return headers, rows


def buckets(impact: Impact, curve: Curve) -> tuple[list[str], list[list[str]]]:
    """Headers and rows of a curve, bucket by bucket."""
    headers = ["UTILIZATION", "LATENCIES", "P95", "INFLATION", "MEDIAN", "INFLATION"]
    rows = []
    for bucket in curve.buckets:
        row = [span(bucket), f"{bucket.latencies:,}"]
        for name in ("p95", "median"):
            row.append(time_text(bucket.ns[name] / 1e9))
            row.append(inflation(bucket.inflation[name]) if bucket.enough else "too few")
        rows.append(row)
    return headers, rows


def glossary(impact: Impact) -> Iterator[tuple[str, str]]:
    """Meanings of the words of the tables."""
    settings = impact.settings
    yield "p95", "95th percentile of latency in the lowest bucket of utilization with enough latencies"
    yield (
        ", ".join(f"{factor:g}x" for factor in settings.factors),
        f"load-tolerance: the utilization at which p95 is that many times as long ({_between(impact)})",
    )
    yield (
        f"at {percent_text(settings.hot_ppm / MILLION, None)}",
        "hotspot-inflation: p95 (or median) at that utilization, divided by that of the lowest bucket",
    )
    interval, width = f"{settings.interval_ms / 1000:g}", percent_text(settings.bucket_ppm / MILLION, None)
    measure = "weighted-effective utilization" if impact.weights else "utilization"
    yield (
        "utilization",
        f"greatest {measure} of an operation's links in intervals of {interval} s, in buckets of {width}",
    )
    if impact.weights or any(
        bucket.high_ppm < MILLION for curve in impact.curves for bucket in curve.judged[-1:]
    ):
        yield "above", "not reached in the judged buckets, the last of which ends at this utilization"
    yield "too few", f"fewer than {settings.least:,} latencies: such a bucket is not judged"
    if any(item.gap for curve in impact.curves for item in curve.tolerances):
        yield "at most", "the buckets just below, which have too few latencies, may reach it already"
    if settings.resamples:
        level = percent_text(settings.confidence, None)
        yield "in brackets", f"{level} interval, by bootstrap over latencies taken as independent"
    yield "percentiles", f"within {percent_text(ERROR)}, as they come from histograms"


def discard_lines(impact: Impact) -> Iterator[str]:
    """Lines on rows left out."""
    for noun, discards in (("latencies", impact.discards), ("samples of telemetry", impact.telemetry)):
        for reason, count, examples in discards:
            examples_text = f" ({'; '.join(examples)})" if examples else ""
            yield f"left out: {count:,} {noun}, {reason}{examples_text}"


def tolerance(impact: Impact, result: Tolerance) -> str:
    """A load-tolerance with its interval."""
    estimate = result.utilization
    # With classes of service a link may be full at more than 100 %.
    full = impact.weights is None and result.judged_ppm >= MILLION
    ends = (estimate.value, estimate.low, estimate.high)
    value, low, high = (_reach_text(end, result, full) for end in ends)
    text = f"at most {value}" if result.gap and estimate.value is not None else value
    return f"{text} ({low} to {high})" if impact.settings.resamples and low != high else text


def inflation(estimate: Estimate) -> str:
    """An inflation with its interval."""
    value, low, high = estimate.value, estimate.low, estimate.high
    if value is None:
        return NONE
    if low is None or high is None or low == high == value:
        return f"{value:.2f}x"
    return f"{value:.2f}x ({low:.2f} to {high:.2f})"


def span(bucket: Bucket) -> str:
    """Utilizations of a bucket."""
    return f"{bucket.low_ppm / 10_000:g} to {bucket.high_ppm / 10_000:g} %"


def sides(headers: Sequence[str], by: Sequence[str]) -> str:
    """Alignment of each column: texts to the left, numbers to the right."""
    texts = {*(name.upper() for name in by), "PART"}
    return "".join("<" if header in texts else ">" for header in headers)


def _reach_text(utilization: float | None, result: Tolerance, full: bool) -> str:
    if utilization is not None:
        return percent_text(utilization)
    return NEVER if full else f"above {percent_text(result.judged_ppm / MILLION, None)}"


def _between(result: Impact) -> str:
    if result.settings.interpolate:
        return "between the middles of buckets"
    width = percent_text(result.settings.bucket_ppm / MILLION, None)
    return f"lower edge of the first such bucket of {width}"
