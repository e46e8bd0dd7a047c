"""Identity of a reproduction, and the figures in its folder.

    FOLDER/run.json       paper, Leeward's version, number of seeds, horizon
    FOLDER/rows.json      the rows of all figures made so far
    FOLDER/results.md     the same as tables
    FOLDER/pictures/, FOLDER/sweeps/

Figures of one reproduction may be made one by one. Figures of another one, with other seeds or shorter runs,
are rejected, since they would look alike.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from leeward._files import atomic_file, check_folder, is_temporary
from leeward._native import __version__
from leeward.errors import InputError
from leeward_reproduce.rows import Row
from leeward_reproduce.table import markdown

SEEDS = 10
"""Least number of seeds of a full reproduction; fewer are a first look."""
RUN, ROWS, RESULTS = "run.json", "rows.json", "results.md"
PICTURES, SWEEPS = "pictures", "sweeps"


@dataclass(frozen=True)
class Inputs:
    """Inputs of rows."""

    paper: str
    leeward: str
    """Version."""
    seeds: int
    """Number of seeds, from 1 on."""
    horizon: str | None
    """Length of runs; None for the paper's."""

    @property
    def words(self) -> str:
        """The inputs in a line."""
        seeds = "seed 1" if self.seeds == 1 else f"seeds 1 to {self.seeds}"
        runs = "runs as long as the paper's" if self.horizon is None else f"runs of {self.horizon}"
        look = " (a first look, and not the reproduction)" if self.look else ""
        return f"{self.paper} by Leeward {self.leeward}, {seeds}, {runs}{look}"

    @property
    def look(self) -> str:
        """Reason for a first look only; empty for a full reproduction."""
        few = [f"{self.seeds} seed{'s' * (self.seeds > 1)}"] if self.seeds < SEEDS else []
        short = [] if self.horizon is None else [f"runs of {self.horizon}"]
        return " and ".join(few + short)


def current_inputs(paper: str, seeds: int, horizon: str | None) -> Inputs:
    """Inputs with this version."""
    return Inputs(paper, __version__, seeds, None if horizon is None else horizon.strip())


def mark_rows(rows: Sequence[Row], by: Inputs) -> list[Row]:
    """Rows of runs, whose notes mark a first look."""
    if not by.look:
        return list(rows)
    look = f"a first look: {by.look}"
    return [
        row if row.ours is None else replace(row, note="; ".join(filter(None, [row.note, look])))
        for row in rows
    ]


def earlier(out: Path, by: Inputs) -> list[Row]:
    """Rows in a folder.

    Raises:
        InputError: The folder cannot be written; or it holds something other than a reproduction, or another
            one.
    """
    check_folder(out, "out")
    here = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    texts = (RUN, ROWS, RESULTS)
    paper_value = (*texts, PICTURES, SWEEPS)
    strange = [name for name in here if name not in paper_value and not is_temporary(name, texts)]
    if strange:
        raise _input_error(out, f"holds `{strange[0]}`; expected an empty folder or an earlier reproduction")
    if not {ROWS, RESULTS} & set(here):
        return []
    try:
        before = Inputs(**json.loads((out / RUN).read_text(encoding="utf-8")))
        rows = [Row(**row) for row in json.loads((out / ROWS).read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        raise _input_error(out, f"holds figures of which `{RUN}` does not say how they were made") from None
    if before != by:
        name = next(one.name for one in fields(Inputs) if getattr(before, one.name) != getattr(by, one.name))
        raise _input_error(
            out, f"holds figures of {before.words}; expected the same {name}, or another folder"
        )
    return rows


def write(out: Path, by: Inputs, titles: Mapping[str, str], rows: Sequence[Row]) -> None:
    """Adds figures to a folder of the same reproduction, or replaces them.

    Args:
        out: The folder.
        by: Inputs of the figures.
        titles: Titles of all figures, in order.
        rows: Rows of some figures.
    """
    new = {row.figure for row in rows}
    every = [*rows, *(row for row in earlier(out, by) if row.figure not in new)]
    of_figure = {name: [row for row in every if row.figure == name] for name in titles}
    by_figure = {name: (titles[name], results) for name, results in of_figure.items() if results}
    whole = [asdict(row) for _, results in by_figure.values() for row in results]
    out.mkdir(parents=True, exist_ok=True)
    _write(out / RUN, json.dumps(asdict(by), indent=1) + "\n")
    _write(out / ROWS, json.dumps(whole, indent=1, allow_nan=False) + "\n")
    _write(out / RESULTS, markdown(f"{by.words}.", by_figure))


def _write(path: Path, text: str) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _input_error(out: Path, message: str) -> InputError:
    return InputError("out", None, None, None, f"`{out}`: {message}")
