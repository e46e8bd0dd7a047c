"""Fields of a summary of a range of time."""

from typing import TypedDict

from leeward.client.types import Decision


class KindCounts(TypedDict):
    """Numbers of decisions of one kind, by result."""

    kind: str
    decided: int
    by_default: int
    refused: int
    blind: int
    fallback: int
    better: int
    same: int
    worse: int
    unknown: int
    one_refused: int


class MoveCounts(TypedDict):
    """Numbers of task moves that reached a state."""

    considered: int
    advised: int
    done: int
    refused: int
    expired: int


class HotLinkHours(TypedDict):
    """Times of links, summed over all links, in hours."""

    seen: float
    with_leeward: float
    without_leeward: float
    observed: float
    compared: int
    uncompared: int


class SummaryStep(TypedDict):
    """A step of the range."""

    ends: str
    decided: int
    hot_h: float
    with_h: float
    without_h: float


class Gain(TypedDict):
    """Difference that Leeward's choice makes; positive if it is better."""

    hot_links: int
    utilization: float


class Mattered(TypedDict):
    """A decision in which the choices of both policies differ."""

    gain: Gain
    decision: Decision


Summary = TypedDict(
    "Summary",
    {
        "from": str,
        "to": str,
        "step_s": int,
        "decisions": list[KindCounts],
        "moves": MoveCounts,
        "hot_link_hours": HotLinkHours,
        "steps": list[SummaryStep],
        "mattered": list[Mattered],
    },
)
"""Summary of a range of time."""
