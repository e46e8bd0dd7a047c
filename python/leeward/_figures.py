"""The figures of a run under one name each, with dots between: `full_block_write_s.p95`."""

from collections.abc import Mapping
from typing import Any

BASELINE = "against_baseline"
"""What the figures of a comparison stand under."""


def flat(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of `Run.summary()` by name. Where nothing was written there is no time, and not one of 0 s.

    Args:
        summary: As it is kept and printed: all zero where nothing is counted.
    """
    figures = _named(summary, "")
    if figures["job_communication_s.count"] == 0:
        figures["job_communication_by_bytes_s"] = None
    return figures


def compared(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of `Run.compare()` by name. Without pairs there is no factor, and not one of 1."""
    figures = _named({BASELINE: comparison}, "")
    del figures[f"{BASELINE}.same_within"]
    return figures


def _named(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    nothing = values.get("count") == 0
    made: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            made |= _named(value, f"{prefix}{name}.")
        else:
            made[prefix + name] = None if nothing and name != "count" else value
    return made
