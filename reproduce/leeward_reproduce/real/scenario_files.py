"""Files of a scenario, which the simulator and the cluster read."""

import csv
import hashlib
from collections.abc import Sequence
from pathlib import Path

from leeward._quantities import read_seconds
from leeward.errors import InputError

_PARTS = ("*.yaml", "*.csv")
"""Files of a scenario in its folder."""


def check_horizon(horizon: str, least_s: float) -> None:
    """Checks the length of runs.

    Raises:
        InputError: The text is not a time, or the time is too short for a run.
    """
    if read_seconds("horizon", horizon) < least_s:
        raise InputError.about("horizon", f"`{horizon}`: expected at least {least_s:g}s")


def write_csv(file: Path, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Writes a table."""
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


def read_csv(file: Path) -> list[dict[str, str]]:
    """The rows of a table, by the names of its columns."""
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def content_hash(folder: Path) -> str:
    """SHA-256 of the files of the scenario in a folder, with their names."""
    files = sorted(path for pattern in _PARTS for path in folder.glob(pattern))
    content = hashlib.sha256()
    for path in files:
        content.update(f"{path.name}\n{path.stat().st_size}\n".encode())
        content.update(path.read_bytes())
    return content.hexdigest()
