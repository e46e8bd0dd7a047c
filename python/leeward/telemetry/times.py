"""Times in options: a length before another time, a date, or a number since 1970."""

import re
from datetime import UTC, datetime

from leeward import _native
from leeward.errors import InputError

FIRST_MS = 10**11
"""Numbers from here on are milliseconds since 1970 (from 1973), and smaller ones seconds (until 5138)."""


def moment(argument: str, text: str, before_ms: int, now_ms: int) -> int:
    """A time in milliseconds since 1970.

    Args:
        argument: Name of the argument, for errors.
        text: A length before `before_ms` (`30d`, `2h30m`), a length before now (`now-1d`, `now`), a date with
            or without a time, or seconds or milliseconds since 1970. A date without a zone is in UTC.
        before_ms: Time from which a length counts back.
        now_ms: Current time.

    Raises:
        InputError: The text is none of these.
    """
    stripped = text.strip()
    if re.match(r"\d{4}-\d", stripped, re.ASCII):
        try:
            time = datetime.fromisoformat(stripped)
            time = time if time.tzinfo else time.replace(tzinfo=UTC)
            return round(time.timestamp() * 1000)
        except (ValueError, OverflowError):
            raise _time_error(argument, text) from None
    if re.fullmatch(r"\d{9,13}(\.\d*)?", stripped, re.ASCII):
        since = float(stripped)
        return round(since * 1000 if since < FIRST_MS else since)
    relative = re.fullmatch(r"now(?:\s*-\s*(\S+))?", stripped)
    if relative is not None:
        before_ms, stripped = now_ms, relative[1] or "0s"
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
    expected = "a length (30d, 2h30m, now-1d), a date (2026-01-31, 2026-01-31T12:00Z) or seconds since 1970"
    return InputError.about(argument, f"`{text}`: expected {expected}")
