"""Rates of links as people give them: `25Gbps`, or so many ports of one rate, `4x100Gbps`."""

import re

from leeward._native import Cluster, rate_text
from leeward.errors import InputError

MOST_BPS = 10**15
"""Bits per second that a link may have, here and in telemetry."""
_PORTS = re.compile(r"\s*(\d{1,4})\s*[x*]\s*(.+)", re.ASCII)


def rate(argument: str, text: str) -> int:
    """A rate in bits per second.

    Args:
        argument: What gave it.
        text: With its unit, as in a cluster file; or ports times that.

    Raises:
        InputError: It is none, or above `MOST_BPS`; of the argument.
    """
    ports = _PORTS.fullmatch(text)
    count, each = (int(ports[1]), ports[2]) if ports else (1, text)
    total = count * _bps(argument, text, each)
    if not 0 < total <= MOST_BPS:
        message = f"`{text[:40]}`: expected a positive rate, of {rate_text(MOST_BPS)} at most"
        raise InputError(argument, None, None, None, message)
    return total


def rounded(bps: float) -> str:
    """A rate that was measured or reckoned, to four digits: `6.834Gbps` says no more than is known."""
    return rate_text(int(float(f"{bps:.4g}")))


def _bps(argument: str, text: str, each: str) -> int:
    """What the reader of cluster files takes a rate for."""
    try:
        cluster = Cluster({"racks": 1, "hosts_per_rack": 1, "nic": each, "rack_link": "1Gbps"})
    except InputError as error:
        message = error.message if f"`{text}`" in error.message else f"`{text[:40]}`: {error.message}"
        raise InputError(argument, None, None, None, message) from None
    bps: int = cluster.links()["capacity_bps"][0].as_py()
    return bps
