"""Answers of Prometheus: their parts, checked."""

from collections.abc import Iterator
from typing import Any

from leeward.errors import InputError
from leeward.telemetry.http import Server, TooMuchError

LEAST_MS = 300_000
"""Shortest time of a query that is split by time."""


def label_values(
    prometheus: Server, label: str, begin: int, last: int, query: str | None = None
) -> Iterator[str]:
    """Values of a label; a value may repeat.

    Mimir, Cortex and Thanos limit the time and the series of such a query. Smaller pieces are then queried,
    the latest first.

    Raises:
        InputError: The server cannot be reached, or rejects even five minutes.
    """
    parameters = {"start": seconds(begin), "end": seconds(last)}
    if query is not None:
        parameters["match[]"] = query
    try:
        yield from texts(prometheus, prometheus.ask(f"label/{label}/values", **parameters).data)
    except TooMuchError:
        if last - begin <= LEAST_MS:
            raise
        middle = (begin + last) // 2
        yield from label_values(prometheus, label, middle, last, query)
        yield from label_values(prometheus, label, begin, middle, query)


def results(prometheus: Server, answer: Any, kind: str) -> list[dict[str, Any]]:
    """Results of a query, of the kind `vector` or `matrix`.

    Raises:
        InputError: The answer is not of this kind, or a series has native histograms.
    """
    if not isinstance(answer, dict) or answer.get("resultType") != kind:
        raise prometheus.unknown_form(str(answer)[:80])
    found = answer.get("result")
    if not isinstance(found, list) or not all(isinstance(result, dict) for result in found):
        raise prometheus.unknown_form(str(answer)[:80])
    for result in found:
        if "histogram" in result or "histograms" in result:
            labels = str(result.get("metric"))[:80]
            error = InputError.about(prometheus.url, f"{labels} has native histograms; expected a counter")
            error.add_note("the field `prometheus` of a map file sets the query")
            raise error
    return found


def texts(prometheus: Server, answer: Any) -> list[str]:
    """A list of texts; no answer is an empty list.

    Raises:
        InputError: The answer is not a list of texts.
    """
    if answer is None:
        return []
    if not isinstance(answer, list) or not all(isinstance(text, str) for text in answer):
        raise prometheus.unknown_form(str(answer)[:80])
    return answer


def seconds(time_ms: int) -> str:
    """A time as Prometheus reads it, in seconds since 1970."""
    return f"{time_ms // 1000}.{time_ms % 1000:03d}"
