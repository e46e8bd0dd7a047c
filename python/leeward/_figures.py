"""Figures of a run by dotted name: `full_block_write_s.p95`."""

from collections.abc import Mapping
from typing import Any

BASELINE = "against_baseline"
"""Prefix of the figures of a comparison."""


def flatten_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of `Run.summary()` by name, without lists; None for times of which none was counted.

    Args:
        summary: A summary, in which a time is 0 if none was counted.
    """
    figures = _flatten(summary, "")
    if figures["job_communication_s.count"] == 0:
        figures["job_communication_by_bytes_s"] = None
    return figures


def flatten_comparison(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of `Run.compare()` by name; None for factors without a pair of writes."""
    figures = _flatten({BASELINE: comparison}, "")
    del figures[f"{BASELINE}.same_within"]
    return figures


def _flatten(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    nothing = values.get("count") == 0
    result: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            result |= _flatten(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            result[prefix + name] = None if nothing and name != "count" else value
    return result
