"""`leeward top`: the hottest links, live."""

import json
import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from leeward._quantities import duration_text, percent_text, rate_text, read_milliseconds
from leeward.cli.common import runs_until_stopped
from leeward.cli.controller import (
    CONTROLLER,
    CaOption,
    ControllerOption,
    TokenFileOption,
    client,
    controller_errors,
)
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import name_flags, whole_number
from leeward.cli.output import Format, FormatOption, print_csv, print_json, print_table, print_text
from leeward.client.board import Board, Row, View

if TYPE_CHECKING:
    from rich.console import RenderableType

EXAMPLES = """\b
Examples:
  leeward top
  leeward top --once --top 5
  leeward top --controller https://leeward:7600 --every 5s -o json | jq '.rows[0]'

On a terminal, the command redraws the table until q or Ctrl-C. Elsewhere, it prints a table at each refresh.
"""
BARS = " ▁▂▃▄▅▆▇█"
"""Levels of utilization in a trend."""
WIDTH = 20
"""Width of a bar of utilization, in characters."""


@runs_until_stopped
def top(
    controller: ControllerOption = CONTROLLER,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    top_rows: Annotated[
        int, typer.Option("--top", metavar="N", parser=whole_number(1, 1000), help="Number of links to show.")
    ] = 20,
    every: Annotated[str, typer.Option(metavar="DURATION", help="Time between refreshes.")] = "1s",
    once: Annotated[bool, typer.Option("--once", help="Show the links once, and exit.")] = False,
    output: FormatOption = Format.table,
) -> None:
    """Show the hottest links, live.

    Shows the utilization of each link, its trend over the last ten minutes, and the time for which the link
    has been hot. Pending load is placed load that telemetry does not show yet. A message names the reason
    for stale values. With -o json, each refresh is one line, except with --once.
    """
    with name_flags(every="--every"):
        pause = read_milliseconds("every", every) / 1000
    board = Board(client(controller, token_file, ca, 0.0), top_rows, time.monotonic)
    with controller_errors():
        if once:
            _show(board.view(), output, indented=True)
        elif output is not Format.table or not (sys.stdout.isatty() and sys.stdin.isatty()):
            is_first = True
            while True:
                _show(board.view(), output, header=is_first)
                is_first = False
                time.sleep(pause)
        else:
            _draw(board, pause)


def _show(view: View, output: Format, indented: bool = False, header: bool = True) -> None:
    if output is Format.json:
        print_json(view.record()) if indented else print(json.dumps(view.record(), allow_nan=False))
    elif output is Format.csv:
        rows = [{"time": view.time} | asdict(row) for row in view.rows]
        print_csv(rows, COLUMNS["top"], header)
    else:
        print_text(_head(view))
        print_table(HEADERS, SIDES, [_cells(row) for row in view.rows])
        if view.old:
            print_note(f"old: {view.old}", doubt=True)
        if not indented:
            print()
    sys.stdout.flush()


HEADERS = ("LINK", "UTILIZATION", "", "10 MIN", "HOT FOR", "LOAD", "OF", "PENDING")
SIDES = "<<><>>>>"


def _head(view: View) -> str:
    time = view.time.partition(".")[0].rstrip("Z").replace("T", " ")
    hot = f"{view.hot} {'link' if view.hot == 1 else 'links'} above {percent_text(view.hot_above, None)}"
    return f"{view.cluster}, {time} UTC: {hot}"


def _cells(row: Row) -> tuple[str, ...]:
    percent = "unseen" if row.utilization is None else percent_text(row.utilization, 0)
    return (
        row.link,
        _bar(row.utilization),
        percent,
        _trend(row.trend),
        "" if row.hot_s is None else duration_text(row.hot_s),
        "" if row.measured_bps is None else rate_text(row.measured_bps),
        rate_text(row.capacity_bps),
        rate_text(row.pending_bps) if row.pending_bps else "",
    )


def _bar(utilization: float | None) -> str:
    full = 0 if utilization is None else round(WIDTH * min(max(utilization, 0.0), 1.0))
    return "█" * full + "·" * (WIDTH - full)


def _trend(trend: list[float | None]) -> str:
    def letter(value: float | None) -> str:
        return "·" if value is None else BARS[round(min(max(value, 0.0), 1.0) * (len(BARS) - 1))]

    return "".join(letter(value) for value in trend)


def _draw(board: Board, pause: float) -> None:
    """Draws on a terminal until the user presses q."""
    from rich.console import Console
    from rich.live import Live

    plain = bool(os.environ.get("NO_COLOR"))
    console = Console(color_system=None if plain else "auto", markup=False, highlight=False, emoji=False)
    view = board.view()
    with _keys(), Live(_picture(view), console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(_picture(view), refresh=True)
            if _pressed_q(pause):
                return
            view = board.view()


def _picture(view: View) -> "RenderableType":
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for header, side in zip(HEADERS, SIDES, strict=True):
        table.add_column(header, justify="left" if side == "<" else "right", no_wrap=True)
    for row in view.rows:
        warm = row.utilization is not None and row.utilization > 0.8 * view.hot_above
        style = "red" if row.hot_s is not None else "yellow" if warm else "green"
        name, bar, *others = _cells(row)
        table.add_row(Text(name), Text(bar, style=style), *map(Text, others))
    foot = Text(view.old, style="bold red") if view.old else Text("press q to quit", style="dim")
    return Group(Text(_head(view), style="bold"), table, foot)


@contextmanager
def _keys() -> Iterator[None]:
    """Reads keys as they are pressed, without echo."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _pressed_q(pause: float) -> bool:
    """True if the user presses q within a pause, or the terminal is closed."""
    until = time.monotonic() + pause
    while (left := until - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], left)[0]:
            key = os.read(sys.stdin.fileno(), 1)
            if key in (b"q", b"Q", b""):
                return True
    return False
