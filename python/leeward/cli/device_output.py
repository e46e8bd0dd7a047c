"""Outputs of a device's profile: the device file, the outputs of fio beside it, and tables."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward._quantities import bytes_text, percent_text, time_text, work_rate_text
from leeward.cli.options import name_flags
from leeward.cli.output import print_table

if TYPE_CHECKING:
    from leeward._disk import DiskProfile


class KeptText:
    """A file with all texts so far, so that an interrupted measurement has them."""

    def __init__(self, path: Path) -> None:
        """A file that the first text creates or replaces."""
        self._path = path
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        """Adds a text that is not blank."""
        from leeward._files import give_to_caller

        if text.strip():
            self._texts.append(text)
            self._path.write_text("".join(self._texts), encoding="utf-8")
            give_to_caller(self._path)


def check_outputs(out: Path, *suffixes: str) -> list[Path]:
    """Checks that a profile and the files beside it can be written; returns the paths of these files.

    Args:
        out: File for the profile.
        suffixes: Suffixes of the other files, in place of that of the profile.

    Raises:
        InputError: A file cannot be written.
    """
    from leeward._files import check_file

    beside = [out.with_name(f"{out.stem}.{suffix}") for suffix in suffixes]
    for path in (out, *beside):
        check_file(path, "--out")
    return beside


def write_device(out: Path, device: dict[str, Any]) -> None:
    """Writes a device file. A profile that cannot be read again is not written.

    Raises:
        InputError: The profile is invalid.
    """
    from leeward._files import atomic_file
    from leeward._native import check_device

    text = json.dumps(device, indent=2, allow_nan=False) + "\n"
    with name_flags(device=str(out)):
        check_device("device", text)
    with atomic_file(out) as temporary:
        temporary.write_text(text, encoding="utf-8")


def print_device(device: dict[str, Any]) -> None:
    """Prints requests per second and latencies without queueing, by kind and size."""
    rows = device.get("unloaded", [])
    tails = {(row["kind"], row["size_bytes"], row["percentile"]): row["seconds"] for row in rows}
    percentiles = [p for p in (50.0, 99.0, 99.9) if any(key[2] == p for key in tails)]
    headers = [
        "KIND",
        "SIZE",
        "REQUESTS/S",
        "BANDWIDTH",
        *(f"{percent_text(p / 100, None)} UNLOADED" for p in percentiles),
    ]
    cells = [
        [
            kind,
            bytes_text(row["size_bytes"], None),
            f"{row[f'{kind}_iops']:,.0f}",
            work_rate_text(row["size_bytes"] * row[f"{kind}_iops"], "bytes"),
            *(time_text(tails.get((kind, row["size_bytes"], p))) for p in percentiles),
        ]
        for kind in ("read", "write")
        for row in device["table"]
    ]
    print_table(headers, "<" + ">" * (len(headers) - 1), cells)


def print_seeks(measured: "DiskProfile") -> None:
    """Prints seek times by distance, with their spread."""
    print_table(
        ("DISTANCE", "SEEK", "FORWARD", "BACKWARD", "10 %", "90 %", "PAIRS"),
        ">>>>>>>",
        [
            [
                bytes_text(seek.distance),
                *map(time_text, (seek.seconds, seek.forward, seek.backward, seek.low, seek.high)),
                f"{seek.pairs:,}",
            ]
            for seek in measured.seeks
        ],
    )
