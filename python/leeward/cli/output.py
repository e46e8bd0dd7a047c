"""Output of commands on stdout: tables for people, JSON for programs.

On a terminal, a table fits the width and has bold headers. Elsewhere, a table is plain text of any width.
"""

import csv
import json
import os
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal, cast

from leeward.cli.notes import fit, print_note
from leeward.cli.options import choice_option


class Format(StrEnum):
    """Format of the output."""

    table = "table"
    json = "json"
    csv = "csv"


FormatOption = Annotated[
    Format,
    choice_option(
        Format, "-o", "--output", description="Output format; csv has the main table of the command."
    ),
]


def print_json(value: object) -> None:
    """Prints a value as indented JSON."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_csv(rows: Iterable[Mapping[str, object]], columns: Sequence[str], header: bool = True) -> None:
    """Prints columns of rows as CSV.

    A list or object is JSON in one cell. A missing value or null is an empty cell.

    Args:
        rows: Rows; other fields are left out.
        columns: Names of fields. The field of a nested object is a path, such as `slo.latency_s`.
        header: False to continue an earlier output.
    """
    # An invalid row fails before the first output.
    cells = [[_cell(_field(row, name)) for name in columns] for row in rows]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerows([columns, *cells] if header else cells)


def print_data(
    output: str, document: object, rows: Iterable[Mapping[str, object]] | str, columns: Sequence[str]
) -> bool:
    """Prints JSON or CSV, if one of these is the output.

    Args:
        output: Format of the output.
        document: Value to print as JSON.
        rows: Rows to print as CSV, or the field of the document that has them.
        columns: Columns of CSV, also without rows.

    Returns:
        True if it was printed; False if the output is another format.
    """
    if output == Format.json:
        print_json(document)
    elif output == Format.csv:
        print_csv(cast("dict[str, Any]", document)[rows] if isinstance(rows, str) else rows, columns)
    return output in (Format.json, Format.csv)


def _field(row: Mapping[str, Any], path: str) -> object:
    """Value of a field, or of a field of a nested object; None if the object is null or has no such field."""
    if path in row:
        return row[path]
    name, _, rest = path.partition(".")
    inner = row.get(name)
    return _field(inner, rest) if rest and isinstance(inner, Mapping) else None


def _cell(value: object) -> object:
    if isinstance(value, Mapping | list | tuple | bool):
        return json.dumps(value, allow_nan=False)
    return "" if value is None else value


def print_table(headers: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> None:
    """Prints rows of cells under headers.

    On a narrow terminal, columns of text wrap at spaces. If their longest words do not fit beside each other,
    each row becomes a list of headers and cells. No cell is cut off, and no word is broken.

    Args:
        headers: Headers of the columns.
        sides: Alignment of each column: `<` for text, `>` for numbers. The first column has names.
        rows: Rows, with a cell for each column.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table

    terminal = sys.stdout.isatty()
    console = Console(
        color_system="auto" if terminal and not os.environ.get("NO_COLOR") else None,
        width=None if terminal else sys.maxsize,
        markup=False,
        highlight=False,
        emoji=False,
    )
    cells = [list(row) for row in rows]
    columns = list(zip(headers, *cells, strict=True))
    # Names and numbers stay whole; a text may wrap at spaces.
    whole = [at == 0 or side == ">" for at, side in enumerate(sides)]
    most = [max(map(cell_len, column)) for column in columns]
    least = [
        most[at] if keep else max(cell_len(word) for cell in column for word in [*cell.split(), ""])
        for at, (column, keep) in enumerate(zip(columns, whole, strict=True))
    ]
    widths = _widths(least, most, console.width - 2 * (len(headers) - 1))
    if widths is None:
        _print_list(headers, cells, console.width)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header, side, width in zip(headers, sides, widths, strict=True):
        justify: Literal["left", "right"] = "left" if side == "<" else "right"
        table.add_column(header, justify=justify, width=width)
    for row in cells:
        table.add_row(*row)
    with console.capture() as capture:
        console.print(table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _widths(least: Sequence[int], most: Sequence[int], width: int) -> list[int] | None:
    """Widths of columns: `most` if all fit, else `least` with the rest for those that need it most.

    Returns None if even `least` does not fit.
    """
    if sum(most) <= width:
        return list(most)
    if sum(least) > width:
        return None
    widths = list(least)
    for _ in range(width - sum(least)):
        widths[max(range(len(widths)), key=lambda at: most[at] - widths[at])] += 1
    return widths


def _print_list(headers: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> None:
    """Prints each row as lines of a header and a cell, with an empty line between rows."""
    column = max(map(len, headers)) + 2
    for number, row in enumerate(rows):
        if number:
            print()
        for header, cell in zip(headers, row, strict=True):
            # A cell without a header is the title of its row.
            margin = column if header else 0
            room = max(width - margin, 1)
            lines = textwrap.wrap(cell, room, break_long_words=False, break_on_hyphens=False) or [""]
            for at, line in enumerate(lines):
                print(f"{'' if at else header:{margin}}{line}".rstrip())


def print_text(text: str = "") -> None:
    """Prints lines of text on stdout; on a terminal, they wrap at spaces."""
    for line in text.split("\n"):
        print(fit(line, sys.stdout.isatty()))


def print_words(words: Iterable[tuple[str, str]]) -> None:
    """Prints the meanings of the words of a table to stderr."""
    print_note()
    for word, meaning in words:
        print_note(f"{word}: {meaning}")
