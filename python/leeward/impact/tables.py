"""An analysis of impact as tables and as plain values, for programs."""

from typing import Any

import pyarrow

from leeward.impact.analysis import Impact
from leeward.impact.bins import ERROR
from leeward.impact.curves import PERCENTILES, Curve, Estimate
from leeward.impact.settings import MILLION

_DOUBLE = pyarrow.float64()


def tables(impact: Impact) -> dict[str, pyarrow.Table]:
    """All tables by name, as in an output folder."""
    return {"buckets": buckets(impact), "tolerance": tolerance(impact), "discards": discards(impact)}


def buckets(impact: Impact) -> pyarrow.Table:
    """A row for each bucket of each curve.

    Fields that latencies are split by (text, null if unknown), `part`, `from_utilization` and
    `to_utilization` (shares), `latencies` (int64), `enough` (bool), for each percentile `p95_s`, its
    inflation `p95_inflation` and the ends of the interval `p95_low` and `p95_high` (null if not judged),
    `mean_s`.
    """
    rows = []
    for curve in impact.curves:
        for bucket in curve.buckets:
            row: dict[str, Any] = dict(curve.split)
            row |= {
                "part": curve.part,
                "from_utilization": bucket.low_ppm / MILLION,
                "to_utilization": bucket.high_ppm / MILLION,
                "latencies": bucket.latencies,
                "enough": bucket.enough,
            }
            for name in PERCENTILES:
                inflation = bucket.inflation[name]
                row |= {f"{name}_s": bucket.ns[name] / 1e9, f"{name}_inflation": inflation.value}
                row |= {f"{name}_low": inflation.low, f"{name}_high": inflation.high}
            rows.append(row | {"mean_s": bucket.sum_us / bucket.latencies / 1e6})
    kinds = [(name, pyarrow.string()) for name in (*impact.by, "part")]
    kinds += [(f"{end}_utilization", _DOUBLE) for end in ("from", "to")]
    kinds += [("latencies", pyarrow.int64()), ("enough", pyarrow.bool_())]
    suffixes = ("s", "inflation", "low", "high")
    kinds += [(f"{name}_{suffix}", _DOUBLE) for name in PERCENTILES for suffix in suffixes]
    return pyarrow.Table.from_pylist(rows, pyarrow.schema([*kinds, ("mean_s", _DOUBLE)]))


def tolerance(impact: Impact) -> pyarrow.Table:
    """A row for each curve, percentile and factor, and one for each hotspot-inflation.

    Fields that latencies are split by, `part`, `figure` (`load-tolerance` or `hotspot-inflation`),
    `percentile`, `factor` (null for hotspot-inflation), `value`, `low`, `high` (shares of capacity, or
    inflation; null if not reached or unknown); for load-tolerance `judged_to` (utilization up to which
    buckets are judged) and `gap` (bool: buckets just below have too few latencies).
    """
    rows: list[dict[str, Any]] = []
    for curve in impact.curves:
        kind = {**curve.split, "part": curve.part}
        for item in curve.tolerances:
            figure = {"figure": "load-tolerance", "percentile": item.of, "factor": item.factor}
            more = {"gap": item.gap, "judged_to": item.judged_ppm / MILLION}
            rows.append(kind | figure | more | _estimate(item.utilization))
        for name, inflation in curve.hotspot.items():
            figure = {"figure": "hotspot-inflation", "percentile": name}
            rows.append(kind | figure | _estimate(inflation))
    kinds = [(name, pyarrow.string()) for name in (*impact.by, "part", "figure", "percentile")]
    kinds += [(name, _DOUBLE) for name in ("factor", "value", "low", "high", "judged_to")]
    return pyarrow.Table.from_pylist(rows, pyarrow.schema([*kinds, ("gap", pyarrow.bool_())]))


def discards(impact: Impact) -> pyarrow.Table:
    """Rows left out: `of` (`latencies` or `telemetry`), `reason`, `count` (int64), `examples` (texts)."""
    rows = [
        {"of": source} | row
        for source, counts in (("latencies", impact.discards), ("telemetry", impact.telemetry))
        for row in counts.record()
    ]
    kinds = [("of", pyarrow.string()), ("reason", pyarrow.string()), ("count", pyarrow.int64())]
    return pyarrow.Table.from_pylist(
        rows, pyarrow.schema([*kinds, ("examples", pyarrow.list_(pyarrow.string()))])
    )


def record(impact: Impact) -> dict[str, Any]:
    """The analysis as plain values, as `leeward impact -o json` prints it."""
    return summary(impact) | {"curves": [_curve(curve) for curve in impact.curves]}


def summary(impact: Impact) -> dict[str, Any]:
    """All except curves: settings, number of latencies, rows left out."""
    settings = impact.settings
    return {
        "rows": impact.rows,
        "latencies": impact.latencies,
        "discards": impact.discards.record(),
        "telemetry_discards": impact.telemetry.record(),
        "warnings": list(impact.warnings),
        "by": list(impact.by),
        "interval_s": settings.interval_ms / 1000,
        "coverage": settings.coverage,
        "bucket": settings.bucket_ppm / MILLION,
        "hot": settings.hot_ppm / MILLION,
        "least": settings.least,
        "interpolated": settings.interpolate,
        "weights": None if impact.weights is None else dict(impact.weights),
        "percentile_error": ERROR,
        "confidence": settings.confidence if settings.resamples else None,
        "resamples": settings.resamples,
        "seed": settings.seed,
    }


def _curve(curve: Curve) -> dict[str, Any]:
    return {
        "split": dict(curve.split),
        "part": curve.part,
        "load_tolerance": [
            {"factor": item.factor, "percentile": item.of}
            | _estimate(item.utilization)
            | {"gap": item.gap, "judged_to": item.judged_ppm / MILLION}
            for item in curve.tolerances
        ],
        "hotspot_inflation": [
            {"percentile": name} | _estimate(inflation) for name, inflation in curve.hotspot.items()
        ],
        "buckets": [
            {
                "from": bucket.low_ppm / MILLION,
                "to": bucket.high_ppm / MILLION,
                "latencies": bucket.latencies,
                "enough": bucket.enough,
                "mean_s": bucket.sum_us / bucket.latencies / 1e6,
            }
            | {
                name: {"s": bucket.ns[name] / 1e9, "inflation": _estimate(bucket.inflation[name])}
                for name in PERCENTILES
            }
            for bucket in curve.buckets
        ],
    }


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}
