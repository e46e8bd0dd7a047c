"""Quantities and times of Kubernetes' objects."""

from datetime import UTC, datetime
from math import ceil
from typing import Any

from leeward.errors import InputError
from leeward.importers.kubernetes import quantity

CPU = "cpu"
"""The resource that counts in thousandths; all others count in whole units."""
MOST = 10**17
"""Largest amount that counts; sums of a node's pods stay within 64 bits."""
MOST_PEAK_BPS = 2**47
"""Largest peak rate of a pod, as in the scheduler."""


def amount(resource: str, value: Any) -> int:
    """Amount of a resource: thousandths of a processor, bytes, or a number.

    Raises:
        InputError: The value is no quantity of Kubernetes.
    """
    number = quantity(resource, resource, value)
    units = (number or 0) * (1000 if resource == CPU else 1)
    # A part of a unit counts as a whole one, as in kube-scheduler.
    return min(ceil(units), MOST)


def rate(value: Any, least: int = 0, most: int = MOST_PEAK_BPS) -> int | None:
    """Rate of an annotation in bits per second; None if it is absent, no quantity, or out of bounds.

    An invalid annotation does not count, as in the scheduler.
    """
    try:
        number = quantity("rate", "rate", value.strip() if isinstance(value, str) else value)
    except InputError:
        return None
    return None if number is None or not least <= number <= most else min(ceil(number), MOST_PEAK_BPS)


def time_ms(value: Any) -> int | None:
    """A time in milliseconds since 1970; None if it is absent or no time."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
