"""Times in options: lengths of PromQL, lengths before now, dates, and numbers since 1970."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward import InputError
from leeward.telemetry.times import moment

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
END = NOW - timedelta(days=10)


def milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5m", END - timedelta(minutes=5)),
        ("2h30m", END - timedelta(hours=2, minutes=30)),
        ("1w", END - timedelta(weeks=1)),
        ("1y", END - timedelta(days=365)),
        ("90s", END - timedelta(seconds=90)),
        ("now", NOW),
        ("now-1d", NOW - timedelta(days=1)),
        (" now - 2h30m ", NOW - timedelta(hours=2, minutes=30)),
        ("2026-01-30", datetime(2026, 1, 30, tzinfo=UTC)),
        ("2026-01-30T12:00+02:00", datetime(2026, 1, 30, 10, tzinfo=UTC)),
        ("1769774400", datetime(2026, 1, 30, 12, tzinfo=UTC)),
        ("1769774400.5", datetime(2026, 1, 30, 12, 0, 0, 500_000, tzinfo=UTC)),
        ("1769774400000", datetime(2026, 1, 30, 12, tzinfo=UTC)),
    ],
)
def test_times_are_read_as_prometheus_and_grafana_write_them(text: str, expected: datetime) -> None:
    assert moment("since", text, milliseconds(END), milliseconds(NOW)) == milliseconds(expected)


@pytest.mark.parametrize(
    "text", ["", "5", "yesterday", "now+1d", "now-", "now-1d/d", "-1d", "1d-", "2026-13-01", "17697744000001"]
)
def test_other_texts_are_errors_that_say_what_is_expected(text: str) -> None:
    with pytest.raises(InputError, match=r"since: .*expected a length|since: .*before 1970"):
        moment("since", text, milliseconds(END), milliseconds(NOW))


@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from("smhdw")), min_size=1, max_size=4))
def test_a_length_is_the_sum_of_its_parts(parts: list[tuple[int, str]]) -> None:
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
    text = "".join(f"{number}{unit}" for number, unit in parts)
    length = sum(number * seconds[unit] for number, unit in parts)
    assert moment("since", text, 10**15, 0) == 10**15 - 1000 * length
