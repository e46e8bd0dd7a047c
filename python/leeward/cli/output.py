"""Output of commands on stdout: tables for people, JSON for programs.

On a terminal, a table fits the width and has bold headers. Elsewhere, a table is plain text of any width.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Literal

from leeward.cli.options import choice_option


class Format(StrEnum):
    """Format of the output."""

    table = "table"
    json = "json"


FormatOption = Annotated[
    Format,
    choice_option(Format, "-o", "--output", description="Output format."),
]
_LEAST_WIDTH = 12
"""Least width of a text column, in characters. If the terminal is too narrow, names and numbers wrap too."""


def print_json(value: object) -> None:
    """Prints a value as indented JSON."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(headers: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> None:
    """Prints rows of cells under headers.

    On a narrow terminal, text columns wrap first, and columns of names and numbers wrap last. No cell is cut
    off.

    Args:
        headers: Headers of the columns.
        sides: Alignment of each column: `<` for text, `>` for numbers. The first column has names.
        rows: Rows, with a cell for each column.
    """
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
    widths = [max(len(line[column]) for line in [list(headers), *cells]) for column in range(len(headers))]
    fixed_columns = [column == 0 or side == ">" for column, side in enumerate(sides)]
    least = sum(
        width if fixed else min(width, _LEAST_WIDTH)
        for width, fixed in zip(widths, fixed_columns, strict=True)
    )
    if least + 2 * (len(headers) - 1) > console.width:
        fixed_columns = [False] * len(headers)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header, side, fixed in zip(headers, sides, fixed_columns, strict=True):
        justify: Literal["left", "right"] = "left" if side == "<" else "right"
        table.add_column(header, justify=justify, no_wrap=fixed or not terminal, overflow="fold")
    for row in cells:
        table.add_row(*row)
    with console.capture() as capture:
        console.print(table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def print_words(words: Iterable[tuple[str, str]]) -> None:
    """Prints the meanings of the words of a table to stderr."""
    print(file=sys.stderr)
    for word, meaning in words:
        print(f"{word}: {meaning}", file=sys.stderr)
