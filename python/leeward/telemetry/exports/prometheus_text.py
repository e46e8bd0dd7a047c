"""Text of Prometheus with times: lines of the exposition format, or of `promtool tsdb dump`.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

import json
import re
from collections.abc import Iterator

from leeward.errors import InputError
from leeward.telemetry.exports.table import Export, joined

_LINE = re.compile(r"([a-zA-Z_:][\w:]*)?\s*(?:\{(.*)\})?\s+(\S+)(?:\s+(-?\d+(?:\.\d+)?))?(?:\s+#.*)?")
_LABEL = re.compile(r'\s*([a-zA-Z_]\w*)\s*=\s*("(?:[^"\\]|\\.)*")\s*(?:,|$)')
_NOT_A_NUMBER = ("nan", "+inf", "-inf", "inf")


def recognizes(head: list[str]) -> bool:
    """True if the first lines are comments of Prometheus, or a metric with a value."""
    lines = [line.strip() for line in head if line.strip()]
    if any(line.startswith(("# TYPE ", "# HELP ")) for line in lines):
        return True
    return (
        bool(lines)
        and "{" in lines[0]
        and "," not in lines[0].split("{")[0]
        and _LINE.fullmatch(lines[0]) is not None
    )


def read(file: str, lines: list[str]) -> Export:
    """All samples; the name of the metric is that of the reading.

    Raises:
        InputError: A line is not a sample, or has no time: from one scrape, no rate can be computed.
    """
    return Export(joined(samples(file, lines)))


def samples(file: str, lines: list[str]) -> Iterator[tuple[int, dict[str, str], str, float | int]]:
    """Samples in order: time in milliseconds since 1970, labels, name of the metric, value.

    Samples whose value is not a finite number are left out.

    Raises:
        InputError: A line is not a sample, or has no time.
    """
    openmetrics = any(line.strip() == "# EOF" for line in lines[-3:])
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        sample = _LINE.fullmatch(text)
        labels = _labels(sample[2] or "") if sample else None
        if sample is None or labels is None:
            raise InputError(
                file, number, None, None, f'`{text[:60]}`: expected name{{label="text"}} value time'
            )
        name = sample[1] or labels.pop("__name__", "")
        if sample[4] is None:
            message = f"`{text[:60]}`: no time after the value, so no rate; promtool tsdb dump prints times"
            raise InputError(file, number, None, None, message)
        # The older format has milliseconds, and OpenMetrics has seconds.
        seconds = openmetrics or "." in sample[4]
        time_ms = round(float(sample[4]) * (1000 if seconds else 1))
        if sample[3].lower() in _NOT_A_NUMBER:
            continue
        try:
            value: float | int = int(sample[3]) if re.fullmatch(r"-?\d+", sample[3]) else float(sample[3])
        except ValueError:
            raise InputError(file, number, None, name, f"`{sample[3][:40]}`: expected a number") from None
        yield time_ms, labels, name, value


def _labels(text: str) -> dict[str, str] | None:
    """Labels of a sample; None if they are not written as labels."""
    labels: dict[str, str] = {}
    place = 0
    while place < len(text):
        label = _LABEL.match(text, place)
        if label is None:
            return None if text[place:].strip() else labels
        try:
            labels[label[1]] = json.loads(label[2])
        except ValueError:
            return None
        place = label.end()
    return labels
