"""Folder of a sweep: finished cells, each complete or absent.

    FOLDER/cells/NAME.json         identity of the cell, its summary, digests of its files and of itself
    FOLDER/cells/NAME.parquet      its write times
    FOLDER/cells/NAME/*.parquet    its tables, if requested

The JSON is written last, so a cell is complete if its JSON is present. A cell with a file of another digest
counts as absent. One sweep at a time writes to a folder.
"""

import fcntl
import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from leeward._files import atomic_file, check_folder, is_temporary
from leeward.errors import InputError
from leeward.simulation import TABLES
from leeward.sweep.cell import Outcome
from leeward.sweep.plan import Cell, digest_of, file_digest

log = logging.getLogger("leeward.sweep")


TABLE, SUMMARY = "cells.parquet", "summary.json"
"""Files beside the cells."""
_CELL = re.compile(r".*-\d+-[0-9a-f]{16}(\.\d+)?(\.json|\.parquet)?")
"""Name of a cell's file or folder, complete or unfinished."""


class Store:
    """Finished cells in a folder."""

    def __init__(self, folder: Path) -> None:
        """Takes the folder of a sweep, which may be missing.

        Raises:
            InputError: The folder holds something other than a sweep, or cannot be made.
        """
        check_folder(folder, "out")
        self.folder = folder
        self.cells = folder / "cells"
        if foreign := self._find_foreign():
            message = f"`{folder}`: holds `{foreign}`; expected an empty folder or an earlier sweep"
            raise InputError.about("out", message)

    def _find_foreign(self) -> str | None:
        """First entry of the folder that is not part of a sweep; None in a valid or empty folder."""
        names = sorted(path.name for path in self.folder.iterdir()) if self.folder.is_dir() else []
        if names and not self.cells.is_dir():
            return names[0]
        for name in names:
            path = self.folder / name
            ours = (
                name == "cells"
                or (name == TABLE and _is_table(path))
                or (name == SUMMARY and _is_summary(path))
            )
            if not ours and not is_temporary(name, (TABLE, SUMMARY)):
                return name
        cells = sorted(path.name for path in self.cells.iterdir()) if names else []
        foreign = [name for name in cells if not _CELL.fullmatch(name)]
        return f"cells/{foreign[0]}" if foreign else None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Makes the folder and locks it; the system releases the lock when the process ends.

        Raises:
            InputError: Another sweep is writing to it.
        """
        self.cells.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.cells, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"`{self.folder}`: another sweep is writing to it; wait, or choose another folder"
            raise InputError.about("out", message) from None
        else:
            yield
        finally:
            os.close(folder)

    def has(self, cell: Cell, tables: bool) -> bool:
        """True for a present, complete cell, with its tables if requested. Logs a damaged cell."""
        path = self._path(cell, ".json")
        if not path.is_file():
            return False
        try:
            document = _read(path)
        except ValueError as error:
            log.warning("%s: %s; computing the cell again", path, error)
            return False
        files = document["files"]
        needed = [path.with_suffix("").name + ".parquet"]
        needed += [f"{path.stem}/{name}.parquet" for name in TABLES] if tables else []
        if document["cell"] != cell.identity or not set(needed) <= files.keys():
            return False
        for name in files:
            file = self.cells / name
            if not file.is_file() or file_digest(file) != files[name]:
                log.warning("%s: its content does not match its digest; computing the cell again", file)
                return False
        return True

    def others(self, cells: list[Cell]) -> int:
        """Number of stored cells like one of `cells`, but of earlier files or an earlier Leeward."""
        current_keys = {_place(cell.identity): cell.key for cell in cells}
        count = 0
        for path in sorted(self.cells.glob("[!.]*.json")):
            try:
                identity = _read(path)["cell"]
            except ValueError:
                continue
            key = current_keys.get(_place(identity))
            count += key is not None and not path.stem.endswith(key[:16])
        return count

    def write(self, cell: Cell, outcome: Outcome) -> None:
        """Stores a finished cell."""
        path = self._path(cell, ".json")
        # Existing files are from a killed process, since no other process writes here.
        for stale in [*self.cells.glob(f".{path.stem}.*"), *path.with_suffix("").glob(".*")]:
            stale.unlink()
        tables = {f"{path.stem}.parquet": outcome.writes}
        if outcome.tables:
            path.with_suffix("").mkdir(exist_ok=True)
            tables |= {f"{path.stem}/{name}.parquet": table for name, table in outcome.tables.items()}
        for name, table in tables.items():
            write_table(self.cells / name, table)
        document = {
            "cell": cell.identity,
            "arrivals": outcome.arrivals,
            "summary": outcome.summary,
            "files": {name: file_digest(self.cells / name) for name in tables},
        }
        with atomic_file(path) as temporary:
            temporary.write_text(json.dumps({"sha256": digest_of(document)} | document, indent=1) + "\n")

    def read(self, cell: Cell) -> tuple[dict[str, Any], pyarrow.Table]:
        """Document of a present cell, and its write times."""
        return _read(self._path(cell, ".json")), parquet.read_table(self._path(cell, ".parquet"))

    def _path(self, cell: Cell, suffix: str) -> Path:
        policy = re.sub(r"[^A-Za-z0-9_=-]+", ",", cell.policy)[:80]
        return self.cells / f"{policy}-{cell.seed}-{cell.key[:16]}{suffix}"


def _is_table(path: Path) -> bool:
    """True for the table of a sweep's cells."""
    try:
        return {"policy", "seed", "baseline"} <= set(parquet.read_schema(path).names)
    except (OSError, pyarrow.ArrowException):
        return False


def _is_summary(path: Path) -> bool:
    """True for the summary of a sweep."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and {"baseline", "seeds", "summary", "cells"} == document.keys()


def write_table(path: Path, table: pyarrow.Table) -> None:
    """Writes a table as Parquet, completely or not at all."""
    with atomic_file(path) as temporary:
        parquet.write_table(table, temporary, compression="zstd")


def _read(path: Path) -> dict[str, Any]:
    """Reads the document of a cell; a ValueError describes an invalid document."""
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.pop("sha256", None) != digest_of(document):
        raise ValueError("its content does not match its digest")
    return document


def _place(identity: dict[str, Any]) -> str:
    return json.dumps([identity["set"], identity["policy"], identity["seed"]], sort_keys=True)
