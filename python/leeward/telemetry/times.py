"""Times in options: a length before another time, or a date."""

import re
from datetime import UTC, datetime

from leeward import _native
from leeward.errors import InputError


def moment(argument: str, text: str, before_ms: int) -> int:
    """A time in milliseconds since 1970.

    Args:
        argument: Name of the argument, for errors.
        text: A length before `before_ms` (`30d`, `6h`), or a date with or without a time. Without a zone,
            it is in UTC.
        before_ms: Time from which a length counts back.

    Raises:
        InputError: The text is neither.
    """
    stripped = text.strip()
    if re.match(r"\d{4}-\d", stripped, re.ASCII):
        try:
            time = datetime.fromisoformat(stripped)
            time = time if time.tzinfo else time.replace(tzinfo=UTC)
            return round(time.timestamp() * 1000)
        except (ValueError, OverflowError):
            raise _time_error(argument, text) from None
    try:
        length = _native.seconds(stripped)
    except InputError:
        raise _time_error(argument, text) from None
    if not 0 <= length * 1000 <= before_ms:
        raise InputError.about(argument, f"`{text}`: before 1970")
    return before_ms - round(length * 1000)


def moment_text(time_ms: int) -> str:
    """A time in milliseconds since 1970 as a date, or as a number outside of the calendar."""
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return f"{time_ms / 1000:g} s"


def _time_error(argument: str, text: str) -> InputError:
    expected = "expected a time with a unit (30d, 6h) or a date (2026-01-31, 2026-01-31T12:00Z)"
    return InputError.about(argument, f"`{text}`: {expected}")
