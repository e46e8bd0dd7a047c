"""`leeward cells`: several controllers that share a spine, beside one ledger for all of them."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward._quantities import percent_text, time_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import parse_path
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text, print_words
from leeward.cli.progress import STEPS, progress, steps

if TYPE_CHECKING:
    from leeward._native import CellsRuns

EXAMPLES = """\b
Examples:
  leeward cells examples/cells/small.yaml
  leeward cells examples/cells/away.yaml --out away
  leeward cells examples/cells/small.yaml -o json
"""
SUMMARY = "summary.json"
_WORDS = (
    ("digests", "time between the digests that a cell sends to the others; 0s: always the present state"),
    ("fullest", "utilization of the fullest link between a pod and the core, mean over windows"),
    ("core p98", "98th percentile of the utilization of these links, mean over windows"),
    ("rack p98", "the same of the links of racks"),
    ("hot", "share of placed blocks whose copies are behind a hot link"),
    ("rejected", "share of blocks that no controller placed"),
    ("crossed", "share of placed blocks whose copies are in another cell"),
    ("wait", "mean time until another cell had granted a block"),
)


def cells(
    scenario: Annotated[str, typer.Argument(metavar="FILE", help="Scenario file.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=parse_path,
            help="Folder for tables (Parquet) and summary.json. An existing one must be empty or hold an"
            " earlier result, which is replaced.",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Simulate several controllers that share a spine.

    Places the blocks of equal cells, each with a controller and a ledger of its own, and the same blocks
    with one ledger for the whole network. Shows the loss of quality by the age of what cells know of each
    other, by the loss of messages, and with controllers away.
    """
    from leeward.cells import read, summary

    if out is not None:
        _check_out(out)
    plan = read(scenario)
    with progress(f"simulating {scenario}", STEPS) as advance:
        runs = plan.run(partial(steps(advance), 0))
    figures = summary(runs)
    if not print_data(output, figures, "runs", COLUMNS["cells"]):
        print_text(f"{plan.hosts:,} hosts in {plan.cells:,} cells\n")
        _print(figures["runs"])
    if out is not None:
        _write(runs, figures, out)


def _check_out(out: Path) -> None:
    from leeward._files import check_replaced

    check_replaced(out, "--out", "an earlier result of this command", _find_foreign)


def _find_foreign(out: Path) -> str | None:
    """First entry of a folder that is not part of an earlier result; None in a valid or empty folder."""
    from leeward.cells import TABLES

    names = sorted(path.name for path in out.iterdir())
    own = {SUMMARY, *(f"{name}.parquet" for name in TABLES)}
    foreign = [name for name in names if name not in own]
    if not names or (SUMMARY in names and not foreign):
        return None
    return f"`{(foreign or names)[0]}`"


def _write(runs: "CellsRuns", figures: dict[str, Any], out: Path) -> None:
    from pyarrow import parquet

    from leeward._files import atomic_folder
    from leeward.cells import tables

    with atomic_folder(out) as folder:
        for name, table in tables(runs).items():
            parquet.write_table(table, folder / f"{name}.parquet")
        (folder / SUMMARY).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print_note(f"wrote {out}")


def _print(rows: list[dict[str, Any]]) -> None:
    shares = ("core_fullest", "core_p98", "rack_p98", "hot", "rejected", "crossed")
    headers = ("FULLEST", "CORE P98", "RACK P98", "HOT", "REJECTED", "CROSSED")
    print_table(
        ("DECIDED BY", "DIGESTS", "LOST", *headers, "WAIT"),
        "<>>>>>>>>>",
        [
            (
                "cells, some away" if row["absent"] else row["decided_by"].replace("-", " "),
                "" if row["interval_s"] is None else time_text(row["interval_s"]),
                "" if row["loss"] is None else percent_text(row["loss"]),
                *(percent_text(row[name]) for name in shares),
                time_text(row["wait_mean_s"]) if row["crossed_count"] and row["loss"] is not None else "",
            )
            for row in rows
        ],
    )
    print_words(_WORDS)
