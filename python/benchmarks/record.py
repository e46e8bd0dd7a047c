"""Record of figures: lines of JSON in the file that the environment variable LEEWARD_BENCH names.

Without the variable, nothing is written. A line is a figure (`name`, `unit`, `value`, and `peer` for a
figure of another program or relative to it), or a peer: its `version`, or the reason why it is `missing`.
"""

import json
import os
import sys
from pathlib import Path


def record(name: str, unit: str, value: float, peer: str | None = None) -> None:
    """Appends a figure."""
    _append({"name": name, "unit": unit, "value": value} | ({"peer": peer} if peer else {}))


def record_peer(peer: str, version: str) -> None:
    """Appends the version of another program that this run measures."""
    _append({"peer": peer, "version": version})


def record_missing(peer: str, reason: str) -> None:
    """Appends the reason why this run does not measure another program, and prints it."""
    print(f"skipped: {peer}: {reason}", file=sys.stderr)
    _append({"peer": peer, "missing": reason})


def _append(line: dict[str, object]) -> None:
    if path := os.environ.get("LEEWARD_BENCH"):
        with Path(path).open("a") as file:
            file.write(json.dumps(line) + "\n")
