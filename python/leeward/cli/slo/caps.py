"""Options of `leeward slo check` for the caps of devices, and for closed loops."""

from collections.abc import Sequence
from typing import Any

from leeward._quantities import read_bytes
from leeward.cli.options import whole_number
from leeward.errors import InputError

NO_CAP = "none"
"""Value of an option that removes a cap."""
_MOST_REQUESTS = 1_000_000
"""Largest number of requests of an option."""


def read_closed(texts: Sequence[str]) -> dict[str, int]:
    """Workloads of `--closed` with their numbers of open requests.

    Raises:
        InputError: A value is not of the form of the option.
    """
    closed: dict[str, int] = {}
    for text in texts:
        name, found, number = text.rpartition("=")
        if not found or not name:
            raise InputError.about("--closed", f"`{text}`: expected a workload and a number, such as mail=4")
        closed[name] = whole_number(1, _MOST_REQUESTS)(number)
    return closed


def read_caps(
    numbers: tuple[str | None, str | None],
    sizes: tuple[str | None, str | None],
    behind: str | None,
    write_batch: str | None,
) -> dict[str, Any]:
    """Caps of the options, as `leeward.slo.check` takes them.

    Args:
        numbers: Numbers of reads and of writes.
        sizes: Bytes of reads and of writes.
        behind: Requests and bytes that start behind a request of a higher priority.
        write_batch: Bytes of a batch of writes, and its largest gap.

    Raises:
        InputError: A value is not of the form of its option.
    """
    caps: dict[str, Any] = {}
    for kind, number, size in zip(("read", "write"), numbers, sizes, strict=True):
        if number is not None:
            most = None if number == NO_CAP else whole_number(1, _MOST_REQUESTS)(number)
            caps[f"outstanding_{kind}s"] = most
        if size is not None:
            flag = f"--outstanding-{kind}-bytes"
            caps[f"outstanding_{kind}_bytes"] = None if size == NO_CAP else read_bytes(flag, size)
    if behind is not None:
        caps["behind"] = None if behind == NO_CAP else _behind(behind)
    if write_batch is not None:
        caps["write_batch"] = None
        if write_batch != NO_CAP:
            size, _, gap = write_batch.partition(",")
            fields = {"bytes": size, "gap_bytes": gap}
            caps["write_batch"] = {
                name: read_bytes("--write-batch", part.strip()) for name, part in fields.items() if part
            }
    return caps


def _behind(text: str) -> dict[str, int]:
    """Requests and bytes of `--behind`: `8,1MiB`, or one of the two."""
    parts = [part.strip() for part in text.split(",")]
    fields: dict[str, int] = {}
    if parts[0].isdigit():
        fields["requests"] = whole_number(0, _MOST_REQUESTS)(parts.pop(0))
    if parts:
        fields["bytes"] = read_bytes("--behind", ",".join(parts))
    return fields
