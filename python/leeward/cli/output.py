"""How commands print their data on stdout: tables for people, JSON for programs.

A table is plain text unless stdout is a terminal, and it is never cut to a width that is only assumed.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Literal

import typer


class Format(StrEnum):
    """What data is printed as."""

    table = "table"
    json = "json"


FormatOption = Annotated[Format, typer.Option("-o", "--output", help="How to print it.")]


def print_json(value: object) -> None:
    """Prints a value as indented JSON."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(columns: Mapping[str, Literal["left", "right"]], rows: Iterable[Sequence[str]]) -> None:
    """Prints rows of cells under headers; `columns` gives the side that each column keeps to."""
    from rich.console import Console
    from rich.table import Table

    terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header, side in columns.items():
        table.add_column(header, justify=side, no_wrap=not terminal)
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
