"""`leeward report`: summary of decisions, moves and hot links."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from leeward._quantities import duration_text, read_milliseconds
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
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.client.summary_types import Summary
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward report                                  the last 24 hours
  leeward report --since 7d --out week.html       a page to mail, with pictures
  leeward report --since 2026-03-01T00:00:00Z -o json

The service stores ten minutes at a time for two days, and hours for 31 days.
"""
MOST_MS = 31 * 24 * 3_600_000
"""Longest stored time."""


def report(
    since: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Start: a duration such as `24h` or `7d` before the end, or a time."
        ),
    ] = "24h",
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="End; by default now.", show_default=False),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write one self-contained HTML page.", show_default=False),
    ] = None,
    controller: ControllerOption = CONTROLLER,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Show a summary of decisions, moves and hot links.

    Counts of decisions, moves and refusals; the time that links were hot, with Leeward's choices and with
    those of the default policy; and the ten decisions that mattered most. In shadow mode, the same numbers
    say what Leeward would have done.
    """
    service = client(controller, token_file, ca, 0.0)
    end = None if until is None else read_time("--until", until)
    start = start_time("--since", since, end or datetime.now(UTC))
    if end is not None and start >= end:
        raise InputError.about("--since", f"`{since}`: expected a time before --until")
    with controller_errors():
        summary = service.summary(since=start, until=end)
        cluster = service.status()["cluster"] if out is not None else ""
    if out is not None:
        from leeward.summary.page import write_page

        write_page(out, summary, cluster)
    if not print_data(output, summary, summary["decisions"], COLUMNS["report"]):
        print_summary(summary)
    if out is not None:
        print_note(f"page written to {out}")


def print_summary(summary: Summary) -> None:
    """Prints a summary as texts and tables."""
    # The pictures take a second, so that they are imported only if they are needed.
    from leeward.summary import rows

    length = datetime.fromisoformat(summary["to"]) - datetime.fromisoformat(summary["from"])
    print_text(f"{summary['from']} to {summary['to']} ({duration_text(length.total_seconds())})\n")
    print_text(rows.effect_sentence(summary))
    print_text(rows.move_sentence(summary) + "\n")
    print_table(rows.HOT_HEADERS, "<>>", rows.hot_rows(summary))
    if kinds := rows.kind_rows(summary):
        print()
        print_table(rows.KIND_HEADERS, "<>>>>>>>>", kinds)
    if mattered := rows.mattered_rows(summary):
        print_text("\nThe decisions that mattered most (+: Leeward's choice is better):")
        print_table(rows.MATTERED_HEADERS, rows.MATTERED_SIDES, mattered)


def read_time(argument: str, text: str) -> datetime:
    """A time with its zone.

    Raises:
        InputError: The text is not a time with a zone.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise InputError.about(argument, f"`{text}`: expected a time such as 2026-03-01T00:00:00Z")
    return at


def start_time(argument: str, text: str, end: datetime) -> datetime:
    """A time, or a duration before `end`."""
    if "T" in text or "-" in text or ":" in text:
        return read_time(argument, text)
    try:
        return end - timedelta(milliseconds=read_milliseconds(argument, text, MOST_MS))
    except OverflowError:
        raise InputError.about(argument, f"`{text}`: the start is before the year 1") from None
