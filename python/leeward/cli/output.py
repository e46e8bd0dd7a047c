"""How commands print their data on stdout: tables for people, JSON for programs.

A table is plain text unless stdout is a terminal, and it is never cut to a width that is only assumed.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """What data is printed as."""

    table = "table"
    json = "json"


FormatOption = Annotated[Format, typer.Option("-o", "--output", help="What it is printed as.")]


def print_json(value: object) -> None:
    """Prints a value as indented JSON."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(headers: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> None:
    """Prints rows of cells under headers.

    Args:
        headers: Of the columns.
        sides: For each column, the side that it keeps to: `<` or `>`.
        rows: A cell for each column.
    """
    from rich.console import Console
    from rich.table import Table

    terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header, side in zip(headers, sides, strict=True):
        table.add_column(header, justify="left" if side == "<" else "right", no_wrap=not terminal)
    for row in rows:
        table.add_row(*row)
    console = Console(
        color_system="auto" if terminal and not os.environ.get("NO_COLOR") else None,
        width=None if terminal else sys.maxsize,
        markup=False,
        highlight=False,
        emoji=False,
    )
    with console.capture() as capture:
        console.print(table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def print_words(words: Iterable[tuple[str, str]]) -> None:
    """Says on stderr what words of a table mean."""
    print(file=sys.stderr)
    for word, meaning in words:
        print(f"{word}: {meaning}", file=sys.stderr)
