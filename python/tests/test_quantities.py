"""Texts of rates, bytes, times and shares."""

from typing import Any

import pytest

from leeward._quantities import (
    bytes_text,
    duration_text,
    percent_text,
    rate_text,
    read_bytes,
    read_rate,
    time_text,
    work_rate_text,
    work_text,
)
from leeward.errors import InputError


@pytest.mark.parametrize(
    ("bps", "digits", "text"),
    [
        (6_834_123_456, 4, "6.834 Gbps"),
        (39_083_000.5, 4, "39.08 Mbps"),
        (10**10, 4, "10 Gbps"),
        (950, 4, "950 bps"),
        (0, 4, "0 bps"),
        (-123_456_789, 4, "-123.5 Mbps"),
        (37_512_000_000, None, "37.512 Gbps"),
        (None, 4, "-"),
    ],
)
def test_rates(bps: float | None, digits: int | None, text: str) -> None:
    assert rate_text(bps, digits) == text


@pytest.mark.parametrize(
    ("count", "digits", "text"),
    [
        (0, 3, "0 B"),
        (0.5, 3, "0.5 B"),
        (999.6, 3, "1 kB"),
        (18_704, 3, "18.7 kB"),
        (999_500, 3, "1 MB"),
        (268_435_456, 3, "268 MB"),
        (268_435_456, None, "256 MiB"),
        (1.234e18, 3, "1,234 PB"),
        (None, 3, "-"),
    ],
)
def test_bytes(count: float | None, digits: int | None, text: str) -> None:
    assert bytes_text(count, digits) == text


@pytest.mark.parametrize(
    ("seconds", "options", "text"),
    [
        (0.0, {}, "0 s"),
        (5e-10, {}, "0.5 ns"),
        (18.42e-6, {}, "18.4 us"),
        (0.0025, {}, "2.5 ms"),
        (0.9996, {}, "1 s"),
        (99.999, {}, "100 s"),
        (3661.4, {}, "3,661 s"),
        (1.23456, {"digits": 5}, "1.2346 s"),
        (7.45, {"beside": 405.2}, "7 s"),
        (0.084, {"beside": 2.7}, "0.08 s"),
        (None, {}, "-"),
    ],
)
def test_times(seconds: float | None, options: dict[str, Any], text: str) -> None:
    assert time_text(seconds, **options) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.25, "250 ms"),
        (65, "1 min 5 s"),
        (3_929, "1 h 5 min"),
        (47 * 3_600, "47 h"),
        (76 * 3_600, "3 d 4 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("share", "options", "text"),
    [
        (0.125, {}, "12.5 %"),
        (1.0, {}, "100 %"),
        (0.0, {}, "0 %"),
        (-1e-9, {"digits": 0}, "0 %"),
        (0.0004, {}, "0.04 %"),
        (0.0004, {"digits": 0}, "0 %"),
        (0.0004, {"beside": 0.5}, "0 %"),
        (0.99999999, {"digits": None}, "99.999999 %"),
        (None, {}, "-"),
    ],
)
def test_shares(share: float | None, options: dict[str, Any], text: str) -> None:
    assert percent_text(share, **options) == text


def test_work_is_bytes_or_seconds_of_service() -> None:
    assert (work_text(65_536, "bytes"), work_rate_text(2e6, "bytes")) == ("65.5 kB", "2 MB/s")
    assert (work_text(0.012, "s"), work_rate_text(0.15, "s")) == ("12 ms", "15 %")
    assert (work_text(None, "s"), work_rate_text(None, "bytes")) == ("-", "-")


def test_texts_are_valid_input() -> None:
    assert read_rate("rate", rate_text(37_512_000_000, None)) == 37_512_000_000
    assert read_bytes("size", bytes_text(268_435_456, None)) == 268_435_456
    with pytest.raises(InputError, match=r"^size: `4`: the unit is missing"):
        read_bytes("size", "4")
