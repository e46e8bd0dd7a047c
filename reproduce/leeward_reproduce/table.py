"""Rows of a reproduction as cells of a table, for terminals and for pages."""

from collections.abc import Mapping, Sequence

from leeward_reproduce.rows import Row

HEADERS = ("figure", "quantity", "paper", "ours", "deviation", "note")
SIDES = "<<>>>>"


def cells(rows: Sequence[Row]) -> tuple[list[tuple[str, ...]], list[tuple[str, str]]]:
    """Cells of rows, and their notes by number; rows with the same note share its number."""
    notes: dict[str, str] = {}
    result: list[tuple[str, ...]] = []
    for row in rows:
        number = notes.setdefault(row.note, str(len(notes) + 1)) if row.note else ""
        result.append((row.figure, row.quantity, *_values(row), number))
    return result, [(number, note) for note, number in notes.items()]


def markdown(head: str, by_figure: Mapping[str, tuple[str, Sequence[Row]]]) -> str:
    """A page of tables, one for each figure; a book includes each table by the anchors around it.

    Args:
        head: First line, with the inputs of the tables.
        by_figure: Title and rows of each figure, by its name.
    """
    parts = [f"{head}\n"]
    for name, (title, rows) in by_figure.items():
        anchor = f"figure_{name}".replace(".", "_")
        visible, notes = cells(rows)
        lines = [f"| {' | '.join(HEADERS)} |", "| --- | --- | ---: | ---: | ---: | ---: |"]
        lines += [f"| {' | '.join(row)} |" for row in visible]
        lines += [""] if notes else []
        lines += [f"{number}. {note}" for number, note in notes]
        marked = [f"<!-- ANCHOR: {anchor} -->", "\n".join(lines), f"<!-- ANCHOR_END: {anchor} -->"]
        parts.append("\n\n".join([f"## {name}: {title}", *marked]) + "\n")
    return "\n".join(parts)


def _values(row: Row) -> tuple[str, str, str]:
    paper = "" if row.paper is None else _number(row.paper, row.unit)
    if row.ours is None:
        return paper, "NOT MEASURED", ""
    ours = _number(row.ours, row.unit)
    if row.ci_low is not None and row.ci_high is not None:
        ours += f" ± {_number((row.ci_high - row.ci_low) / 2, row.unit)}"
    deviation = "" if row.deviation_percent is None else f"{row.deviation_percent:+.0f} %"
    return paper, ours, deviation


def _number(value: float, unit: str) -> str:
    if unit == "x":
        return f"{value:.2f}x"
    digits = 3 if unit.startswith("% of") or not unit else 1
    return f"{value:z.{digits}f}{' ' + unit if unit else ''}"
