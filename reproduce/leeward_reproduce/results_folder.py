"""Inputs of a reproduction, and the files in its folder.

    FOLDER/run.json       paper, Leeward's version, number of seeds, horizon
    FOLDER/rows.json      the rows of all figures made so far
    FOLDER/results.md     a summary, and the same rows as tables
    FOLDER/pictures/      pictures of the figures
    FOLDER/sweeps/        runs

Figures of one reproduction may be made one by one. A folder rejects figures with other inputs, such as other
seeds or shorter runs, because their rows would look alike.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from leeward._files import atomic_file, check_folder, is_temporary
from leeward._native import __version__
from leeward.errors import InputError
from leeward_reproduce.rows import NOT_EXPLAINED, Row, with_reason
from leeward_reproduce.summary import MainResult, summary
from leeward_reproduce.table import markdown
from leeward_reproduce.variants import with_tests

SEEDS = 10
"""Number of seeds of a full reproduction, unless a paper has another."""
RUN, ROWS, RESULTS = "run.json", "rows.json", "results.md"
PICTURES, SWEEPS = "pictures", "sweeps"


@dataclass(frozen=True)
class Inputs:
    """Inputs of a reproduction."""

    paper: str
    leeward: str
    """Leeward's version."""
    seeds: int
    """Number of seeds; they are numbered from 1."""
    horizon: str | None
    """Length of runs; None for the paper's."""
    lab: bool = False
    """True for runs in a lab on this machine instead of simulations."""
    full_seeds: int = field(default=SEEDS, compare=False)
    """Number of seeds of a full reproduction; fewer are a first look."""
    real: bool = False
    """True for runs on real bytes in a lab on this machine."""
    kubernetes: bool = False
    """True for runs under kube-scheduler on this machine."""

    @property
    def summary(self) -> str:
        """The inputs in a line."""
        seeds = "seed 1" if self.seeds == 1 else f"seeds 1 to {self.seeds}"
        is_short = self.lab or self.real or self.kubernetes
        length = "shorter runs than the paper's" if is_short else "runs as long as the paper's"
        runs = length if self.horizon is None else f"runs of {self.horizon}"
        look = " (a first look, and not the reproduction)" if self.look else ""
        places = (" in a lab", self.lab), (" on real bytes", self.real), (" in Kubernetes", self.kubernetes)
        place = next((words for words, holds in places if holds), "")
        return f"{self.paper}{place} by Leeward {self.leeward}, {seeds}, {runs}{look}"

    @property
    def measured(self) -> str:
        """Name of the column of what was measured beside the simulator."""
        return "real" if self.real else "kubernetes" if self.kubernetes else "lab"

    @property
    def look(self) -> str:
        """Reason why this is only a first look; empty for a full reproduction."""
        few = [f"{self.seeds} seed{'s' * (self.seeds > 1)}"] if self.seeds < self.full_seeds else []
        short = [] if self.horizon is None else [f"runs of {self.horizon}"]
        return " and ".join(few + short)


def current_inputs(
    paper: str,
    seeds: int,
    horizon: str | None,
    lab: bool = False,
    full_seeds: int = SEEDS,
    real: bool = False,
    kubernetes: bool = False,
) -> Inputs:
    """Inputs with this version."""
    length = None if horizon is None else horizon.strip()
    return Inputs(paper, __version__, seeds, length, lab, full_seeds, real, kubernetes)


def mark_rows(rows: Sequence[Row], inputs: Inputs) -> list[Row]:
    """Rows of runs. In a first look, their notes say so; otherwise those that do not hold have a reason."""
    if not inputs.look:
        return [with_reason(row, NOT_EXPLAINED) for row in rows]
    look = f"a first look: {inputs.look}"
    return [
        row if row.ours is None else replace(row, note="; ".join(filter(None, [row.note, look])))
        for row in rows
    ]


def read_rows(out: Path, inputs: Inputs) -> list[Row]:
    """Reads the rows in a folder; an empty folder has no rows.

    Raises:
        InputError: The folder cannot be written, holds other files, or holds figures with other inputs.
    """
    check_folder(out, "out")
    present = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    texts = (RUN, ROWS, RESULTS)
    expected = (*texts, PICTURES, SWEEPS)
    strange = [name for name in present if name not in expected and not is_temporary(name, texts)]
    if strange:
        raise _folder_error(out, f"holds `{strange[0]}`; expected an empty folder or an earlier reproduction")
    if not {ROWS, RESULTS} & set(present):
        return []
    try:
        before = Inputs(**json.loads((out / RUN).read_text(encoding="utf-8")))
        rows = [Row(**row) for row in json.loads((out / ROWS).read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        raise _folder_error(
            out, f"holds figures without a valid `{RUN}`, so that their inputs are unknown"
        ) from None
    if before != inputs:
        name = next(
            one.name for one in fields(Inputs) if getattr(before, one.name) != getattr(inputs, one.name)
        )
        raise _folder_error(
            out, f"holds figures of {before.summary}; expected the same {name}, or another folder"
        )
    return rows


def write(
    out: Path,
    inputs: Inputs,
    titles: Mapping[str, str],
    rows: Sequence[Row],
    main: Sequence[MainResult] = (),
) -> None:
    """Adds figures to a folder of the same reproduction, or replaces them.

    Args:
        out: The folder.
        inputs: Inputs of the figures.
        titles: Titles of all figures, in order.
        rows: Rows of some figures.
        main: Results that matter most, for the summary.

    Raises:
        ValueError: A row is of a figure without a title.
    """
    new = {row.figure for row in rows}
    if not new <= titles.keys():
        raise ValueError(f"figures without a title: {sorted(new - titles.keys())}")
    every = [*rows, *(row for row in read_rows(out, inputs) if row.figure not in new)]
    of_figure = {name: [row for row in every if row.figure == name] for name in titles}
    by_figure = {name: (titles[name], results) for name, results in of_figure.items() if results}
    # A variant may be of another figure, which another call has made.
    by_figure = {name: (title, with_tests(results, every)) for name, (title, results) in by_figure.items()}
    whole = [row for _, results in by_figure.values() for row in results]
    out.mkdir(parents=True, exist_ok=True)
    _write(out / RUN, json.dumps(asdict(inputs), indent=1) + "\n")
    _write(out / ROWS, json.dumps([asdict(row) for row in whole], indent=1, allow_nan=False) + "\n")
    beginning = f"{inputs.summary}."
    _write(out / RESULTS, markdown(beginning, by_figure, inputs.measured, summary(whole, main)))


def _write(path: Path, text: str) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _folder_error(out: Path, message: str) -> InputError:
    return InputError.about("out", f"`{out}`: {message}")
