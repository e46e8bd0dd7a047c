"""Lists in a text, and descriptions of links and devices."""

from collections.abc import Mapping
from typing import Any

from leeward._quantities import bytes_text, rate_text


def split_at_commas(text: str) -> list[str]:
    """Splits a list at commas outside of brackets and quotes: `a,b:offsets=[1,2]`."""
    result, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        else:
            depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0 and not quote:
            result.append("")
        else:
            result[-1] += letter
    return result


def rates_text(links: Mapping[str, Any]) -> str:
    """Capacities of links of a kind, as `Cluster.describe` returns them."""
    return range_text(*(rate_text(links[f"{end}_bps"], None) for end in ("least", "most")))


def oversubscription_text(links: Mapping[str, Any]) -> str:
    """Oversubscription of links of a kind; empty if no link is below them."""
    ends = [links[f"{end}_oversubscription"] for end in ("least", "most")]
    return "" if None in ends else range_text(*(f"{ratio:.3g}:1" for ratio in ends))


def speed_text(devices: Mapping[str, Any], way: str) -> str:
    """Speed at which devices of a kind `read` or `write`."""
    return f"{bytes_text(devices[f'{way}_bps'] // 8, None)}/s"


def range_text(least: str, most: str) -> str:
    """Range from the least to the most, or one value if both are equal."""
    return least if least == most else f"{least} to {most}"
