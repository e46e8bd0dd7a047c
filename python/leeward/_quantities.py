"""Parses and formats quantities: rates, bytes, times, shares.

Functions `read_...` parse. Their first parameter is the name of the argument, for errors. Functions
`..._text` format; those that accept None format it as a dash. `leeward.export.rules` formats durations of
PromQL.
"""

import re
from math import inf, isfinite, nan

from leeward import _native
from leeward._native import bytes_text, rate_text
from leeward.errors import InputError

__all__ = ["bytes_text", "rate_text"]

NONE = "-"
MOST_BPS = 10**15
"""Greatest rate of a link in bits per second, in cluster files and in telemetry."""
HOUR_MS = 3_600_000
_PORTS = re.compile(r"\s*(\d{1,4})\s*[x*]\s*(.+)", re.ASCII)
_BYTE_UNITS = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def read_rate(argument: str, text: str) -> int:
    """A rate in bits per second.

    Args:
        argument: Name of the argument.
        text: A rate with its unit as in a cluster file, `25Gbps`; or ports times a rate, `4x100Gbps`.

    Raises:
        InputError: The text is not a rate from 1 to `MOST_BPS`.
    """
    ports = _PORTS.fullmatch(text)
    count, each = (int(ports[1]), ports[2]) if ports else (1, text)
    total = count * _bps(argument, text, each)
    if not 0 < total <= MOST_BPS:
        message = f"`{text[:40]}`: expected a positive rate of at most {rate_text(MOST_BPS)}"
        raise InputError.about(argument, message)
    return total


def _bps(argument: str, text: str, each: str) -> int:
    """Parses a rate like the reader of cluster files; errors name the whole text."""
    try:
        cluster = _native.Cluster({"racks": 1, "hosts_per_rack": 1, "nic": each, "rack_link": "1Gbps"})
    except InputError as error:
        message = error.message if f"`{text}`" in error.message else f"`{text[:40]}`: {error.message}"
        raise InputError.about(argument, message) from None
    bps: int = cluster.links()["capacity_bps"][0].as_py()
    return bps


def read_bytes(argument: str, text: str) -> int:
    """A number of bytes: `256MiB`.

    Raises:
        InputError: The text is not a number of bytes with a unit.
    """
    try:
        return _native.byte_count(text)
    except InputError as error:
        raise InputError.about(argument, error.message) from None


def read_seconds(argument: str, text: str) -> float:
    """A time in seconds: `20ms` is 0.02.

    Raises:
        InputError: The text is not a time with a unit.
    """
    try:
        return _native.seconds(text)
    except InputError as error:
        raise InputError.about(argument, error.message) from None


def read_milliseconds(argument: str, text: str, most: int | None = None) -> int:
    """A time in whole milliseconds, at least 1: `5min` is 300,000.

    Args:
        argument: Name of the argument.
        text: A time with its unit.
        most: The longest time, a multiple of an hour; by default, no limit.

    Raises:
        InputError: The text is not a time with a unit, or out of bounds.
    """
    value = round(1000 * read_seconds(argument, text))
    if value < 1 or (most is not None and value > most):
        bounds = "1ms or more" if most is None else f"from 1ms to {most // HOUR_MS}h"
        raise InputError.about(argument, f"`{text}`: expected {bounds}")
    return value


def read_share(argument: str, text: str, least: float = -inf, most: float = inf) -> float:
    """A share in percent: `75%` is 0.75.

    Args:
        argument: Name of the argument.
        text: A number with a percent sign.
        least: The least share.
        most: The greatest share.

    Raises:
        InputError: The text is not a percentage, or out of bounds.
    """
    number = text.strip().removesuffix("%").strip()
    try:
        value = float(number) if text.strip().endswith("%") and number.isascii() else nan
    except ValueError:
        value = nan
    share = value / 100
    if not (isfinite(value) and least <= share <= most):
        bounds = "" if least == -inf else f" from {100 * least:g}% to {100 * most:g}%".replace("e+0", "e")
        message = f"`{text}`: expected a percentage{bounds}, such as 75%"
        raise InputError.about(argument, message)
    return share


def rounded_rate_text(bps: float | None) -> str:
    """A measured rate with four significant digits: `6.834Gbps`."""
    return NONE if bps is None else rate_text(int(float(f"{bps:.4g}")))


def gigabits_text(bps: float, digits: int = 3) -> str:
    """A rate in Gb/s with a number of significant digits: `6.83 Gb/s`."""
    return f"{bps / 1e9:,.{digits}g} Gb/s"


def size_text(value: float) -> str:
    """A number of bytes with two decimals: `18.70kB`."""
    for unit, size in _BYTE_UNITS:
        if value >= size:
            return f"{value / size:,.2f}{unit}"
    return f"{value:.0f}B" if value == round(value) else f"{value:.2f}B"


def file_size_text(count: int) -> str:
    """Size of a file in MB or kB with one decimal: `18.7kB`."""
    return f"{count / 1e6:.1f}MB" if count >= 1e6 else f"{max(count / 1e3, 0.1):.1f}kB"


def work_text(value: float | None, unit: str) -> str:
    """An amount of work with three digits: bytes, or seconds of service if the unit is `s`."""
    if value is None:
        return NONE
    if unit == "s":
        return time_text(value)
    for name, size in _BYTE_UNITS:
        if value >= size:
            return f"{value / size:.3g} {name}" if value < 999.5 * size else f"{value / size:,.0f} {name}"
    return f"{value:.3g} B"


def work_rate_text(value: float | None, unit: str) -> str:
    """Work per second with three digits: bytes per second, or the share of a device if the unit is `s`."""
    if value is None:
        return NONE
    return f"{100 * value:.3g} %" if unit == "s" else f"{work_text(value, unit)}/s"


def time_text(seconds: float | None) -> str:
    """A time with at most three digits, in a unit that fits: `2.5 ms`."""
    if seconds is None:
        return NONE
    for name, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns" if seconds else "0 s"


def latency_text(ns: float) -> str:
    """A latency with three digits, in a unit that fits: `2.50 ms`."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            whole = len(f"{ns / size:.0f}")
            return f"{ns / size:.{max(0, 3 - whole)}f} {unit}"
    return f"{ns:.0f} ns"


def round_trip_text(seconds: float | None) -> str:
    """A round-trip time: whole microseconds below 1 ms, otherwise milliseconds with two decimals."""
    if seconds is None:
        return NONE
    return f"{1e6 * seconds:.0f} us" if seconds < 1e-3 else f"{1e3 * seconds:.2f} ms"


def milliseconds_text(seconds: float | None) -> str:
    """A time in milliseconds with three decimals: `1,234.500 ms`."""
    return NONE if seconds is None else f"{1e3 * seconds:,.3f} ms"


def microseconds_text(seconds: float | None) -> str:
    """A time in microseconds with one decimal: `1,234.5 us`."""
    return NONE if seconds is None else f"{1e6 * seconds:,.1f} us"


def day_length_text(seconds: float) -> str:
    """Length of a circuit scheduler's day: microseconds with six digits below 0.1 s, otherwise seconds."""
    return f"{1e6 * seconds:,.6g} us" if seconds < 0.1 else f"{seconds:,.4g} s"


def seconds_text(value: float, beside: float = 0) -> str:
    """A time in seconds: two decimals below 100 s, otherwise none.

    Args:
        value: The time.
        beside: Another time in the same cell. The larger of both determines the decimals.
    """
    return f"{value:z.2f} s" if round(max(value, beside), 2) < 100 else f"{value:z,.0f} s"


def duration_text(seconds: float) -> str:
    """A duration: `1 h 5 min`, `40 s`. Durations of ten minutes or more are rounded to minutes."""
    whole = round(seconds) if seconds < 600 else 60 * round(seconds / 60)
    parts = ((whole // 3600, "h"), (whole // 60 % 60, "min"), (whole % 60, "s"))
    return " ".join(f"{count:,} {unit}" for count, unit in parts if count) or "0 s"


def days_text(ms: float) -> str:
    """A duration: `3 d 4 h`. Durations of two days or more are rounded to hours."""
    hours = round(ms / HOUR_MS)
    if hours < 48:
        return f"{ms:g} ms" if ms < 1000 else duration_text(ms / 1000)
    return f"{hours // 24} d" + (f" {hours % 24} h" if hours % 24 else "")


def age_text(seconds: float) -> str:
    """An age in the largest unit that is not longer than the age, as a whole number: `3 h`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def percent_text(share: float | None, digits: int = 1) -> str:
    """A share in percent: `12.5 %`."""
    return NONE if share is None else f"{100 * share:z.{digits}f} %"


def share_text(share: float | None) -> str:
    """A share in percent: three decimals below 0.1 %, otherwise one decimal unless it is zero."""
    if share is None:
        return NONE
    value = 100 * share
    return f"{value:z.3f} %" if 0 < value < 0.1 else f"{value:z.1f} %".replace(".0 %", " %")


def exact_percent_text(percent: float) -> str:
    """A percentile with all its digits: `99.999999 %`."""
    return f"{percent:.15g} %"
