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
        note = whole_note(row)
        number = notes.setdefault(note, str(len(notes) + 1)) if note else ""
        cells.append((row.figure, row.quantity, *values(row), number))
    return Table(headers, sides, cells, [(number, note) for note, number in notes.items()])


def _beside(measured: str) -> tuple[str, ...]:
    return ("figure", "quantity", "paper", "simulator", measured, "expected", "met", "note")


def markdown(
    head: str, by_figure: Mapping[str, tuple[str, Sequence[Row]]], measured: str = "lab", summary: str = ""
) -> str:
    """A page of tables, one for each figure; a book includes each table by the anchors around it.

    Args:
        head: First line, with the inputs of the tables.
        by_figure: Title and rows of each figure, by its name.
        measured: Name of the column of what was measured beside the simulator.
        summary: Summary of the rows, between anchors of its own; empty for none.
    """
    parts = [f"{head}\n"]
    if summary:
        parts.append("\n\n".join(_between("summary", summary)) + "\n")
    for name, (title, rows) in by_figure.items():
        text = table(rows, measured)
        lines = aligned(text.headers, text.sides, text.cells)
        lines += [""] if text.notes else []
        lines += [f"{number}. {note}" for number, note in text.notes]
        anchor = f"figure_{name}".replace(".", "_")
        parts.append("\n\n".join([f"## {name}: {title}", *_between(anchor, "\n".join(lines))]) + "\n")
    return "\n".join(parts)


def aligned(headers: Sequence[str], sides: str, cells: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table of Markdown; `sides` has `<` or `>` for each column, as in `Table`."""
    rule = " | ".join("---" if side == "<" else "---:" for side in sides)
    return [
        f"| {' | '.join(headers)} |",
        f"| {rule} |",
        *(f"| {' | '.join(row)} |" for row in cells),
    ]


def whole_note(row: Row) -> str:
    """The reason of a row that does not hold, with its test, and the note of the row."""
    test = f"tested: {row.tested}" if row.tested else "untested"
    return "; ".join(filter(None, [f"{row.reason} ({test})" if row.reason else "", row.note]))


def paper_text(row: Row) -> str:
    """The paper's value or range; empty without one."""
    if row.paper is None:
        return ""
    low = value_text(row.paper, row.unit)
    return low if row.paper_high is None else f"{low} to {value_text(row.paper_high, row.unit)}"


def ours_text(row: Row) -> str:
    """Our value with its interval."""
    if row.ours is None:
        return "NOT MEASURED"
    return _estimate(row.ours, row.ci_low, row.ci_high, row.unit)


def deviation_text(row: Row) -> str:
    """Difference from the paper; empty for a row that is not compared."""
    if row.holds is None or row.ours is None or row.nearest is None:
        return ""
    if row.paper_high is not None and row.ours == row.nearest:
        return "within"
    if row.deviation_percent is not None:
        return f"{row.deviation_percent:+.0f} %"
    if row.deviation_points is None:
        return f"{row.ours - row.nearest:+.3g} {row.unit}".rstrip()
    return _points_text(row.deviation_points, row.ours, row.nearest)


def _points_text(points: float, ours: float, nearest: float) -> str:
    """Difference of a change, as an effect that is weaker or stronger than the paper's."""
    size = f"{abs(points):.0f}"
    text = f"{size} point{'' if size == '1' else 's'}"
    if size == "0":
        return text
    if nearest == 0:
        return f"{'+' if points > 0 else '-'}{text}"
    if ours * nearest < 0:
        return f"{text}, opposite sign"
    return f"{text} {'stronger' if abs(ours) > abs(nearest) else 'weaker'}"


def value_text(value: float, unit: str) -> str:
    """A value with its unit."""
    if unit == "x":
        return f"{value:.2f}x"
    digits = 3 if unit.startswith("% of") or not unit else 1
    return f"{value:z.{digits}f}{' ' + unit if unit else ''}"


def _between(anchor: str, text: str) -> list[str]:
    """A text between anchors."""
    return [f"<!-- ANCHOR: {anchor} -->", text, f"<!-- ANCHOR_END: {anchor} -->"]


def _values(row: Row) -> tuple[str, ...]:
    return paper_text(row), ours_text(row), deviation_text(row)


def _lab_values(row: Row) -> tuple[str, ...]:
    simulator = ""
    if row.simulator is not None:
        simulator = _estimate(row.simulator, row.simulator_low, row.simulator_high, row.unit)
    met = {True: "yes", False: "NO", None: ""}[row.met]
    return paper_text(row), simulator, ours_text(row), row.expected, met


def _estimate(mean: float, low: float | None, high: float | None, unit: str) -> str:
    """A mean with its interval. That of a geometric mean has different sides."""
    text = value_text(mean, unit)
    if low is None or high is None:
        return text
    if unit == "x" and not math.isclose(mean, (low + high) / 2, rel_tol=1e-9):
        return f"{text} ({low:.2f} to {high:.2f})"
    return f"{text} ± {value_text((high - low) / 2, unit)}"
