"""Rows of a reproduction as cells of a table, for terminals and for pages."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leeward_reproduce.rows import Row

HEADERS = ("figure", "quantity", "paper", "ours", "deviation", "note")


@dataclass(frozen=True)
class Table:
    """Rows as cells of text.

    Attributes:
        headers: Headers of the columns.
        sides: For each column, `<` if its text is to the left, `>` if it is to the right.
        cells: Cells of each row. The last one is the number of its note.
        notes: Numbers of notes, and the notes; rows with the same note share its number.
    """

    headers: tuple[str, ...]
    sides: str
    cells: list[tuple[str, ...]]
    notes: list[tuple[str, str]]


def table(rows: Sequence[Row], measured: str = "lab") -> Table:
    """The table of rows; those with values of the simulator have columns of their own.

    Args:
        rows: The rows.
        measured: Name of the column of what was measured beside the simulator.
    """
    is_lab = any(row.expected or row.simulator is not None for row in rows)
    headers, sides, values = (
        (_beside(measured), "<<>>><<>", _lab_values) if is_lab else (HEADERS, "<<>>>>", _values)
    )
    notes: dict[str, str] = {}
    cells: list[tuple[str, ...]] = []
    for row in rows:
        number = notes.setdefault(row.note, str(len(notes) + 1)) if row.note else ""
        cells.append((row.figure, row.quantity, *values(row), number))
    return Table(headers, sides, cells, [(number, note) for note, number in notes.items()])


def _beside(measured: str) -> tuple[str, ...]:
    return ("figure", "quantity", "paper", "simulator", measured, "expected", "met", "note")


def markdown(head: str, by_figure: Mapping[str, tuple[str, Sequence[Row]]], measured: str = "lab") -> str:
    """A page of tables, one for each figure; a book includes each table by the anchors around it.

    Args:
        head: First line, with the inputs of the tables.
        by_figure: Title and rows of each figure, by its name.
        measured: Name of the column of what was measured beside the simulator.
    """
    parts = [f"{head}\n"]
    for name, (title, rows) in by_figure.items():
        anchor = f"figure_{name}".replace(".", "_")
        text = table(rows, measured)
        rule = " | ".join("---" if side == "<" else "---:" for side in text.sides)
        lines = [f"| {' | '.join(text.headers)} |", f"| {rule} |"]
        lines += [f"| {' | '.join(row)} |" for row in text.cells]
        lines += [""] if text.notes else []
        lines += [f"{number}. {note}" for number, note in text.notes]
        marked = [f"<!-- ANCHOR: {anchor} -->", "\n".join(lines), f"<!-- ANCHOR_END: {anchor} -->"]
        parts.append("\n\n".join([f"## {name}: {title}", *marked]) + "\n")
    return "\n".join(parts)


def _values(row: Row) -> tuple[str, ...]:
    paper = "" if row.paper is None else _number(row.paper, row.unit)
    deviation = "" if row.deviation_percent is None else f"{row.deviation_percent:+.0f} %"
    return paper, _ours(row), deviation


def _lab_values(row: Row) -> tuple[str, ...]:
    paper = "" if row.paper is None else _number(row.paper, row.unit)
    simulator = ""
    if row.simulator is not None:
        simulator = _estimate(row.simulator, row.simulator_low, row.simulator_high, row.unit)
    met = {True: "yes", False: "NO", None: ""}[row.met]
    return paper, simulator, _ours(row), row.expected, met


def _ours(row: Row) -> str:
    if row.ours is None:
        return "NOT MEASURED"
    return _estimate(row.ours, row.ci_low, row.ci_high, row.unit)


def _estimate(mean: float, low: float | None, high: float | None, unit: str) -> str:
    """A mean with its interval. That of a geometric mean has different sides."""
    text = _number(mean, unit)
    if low is None or high is None:
        return text
    if unit == "x" and not math.isclose(mean, (low + high) / 2, rel_tol=1e-9):
        return f"{text} ({low:.2f} to {high:.2f})"
    return f"{text} ± {_number((high - low) / 2, unit)}"


def _number(value: float, unit: str) -> str:
    if unit == "x":
        return f"{value:.2f}x"
    digits = 3 if unit.startswith("% of") or not unit else 1
    return f"{value:z.{digits}f}{' ' + unit if unit else ''}"
