"""Outputs of analyses: the folder of `--out` and the page of `--report`.

    FOLDER/summary.json
    FOLDER/TABLE.parquet

The folder is written under a temporary name and then renamed. It replaces only an earlier result of the same
analysis: a folder whose summary names this analysis and the tables in the folder.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli.notes import print_note
from leeward.cli.options import parse_path

if TYPE_CHECKING:
    import pyarrow

OutOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        parser=parse_path,
        help="Output folder for a summary and all tables (Parquet).",
        show_default=False,
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", parser=parse_path, help="Output page with pictures (.html).", show_default=False
    ),
]
SUMMARY = "summary.json"
ANALYSIS = "analysis"
"""Field of a summary that names the analysis."""
TABLES = "tables"
"""Field of a summary that lists the tables; a result holds no other file."""


def check(out: Path | None, report: Path | None, analysis: str) -> None:
    """Checks that outputs can be written, before work begins.

    Args:
        out: Folder, which may be missing; None without `--out`.
        report: Page, which may be missing; None without `--report`.
        analysis: Name of the command whose result the folder will hold.

    Raises:
        InputError: The output cannot be written, or the folder holds something other than an earlier result.
    """
    from leeward._files import check_file, check_replaced

    if report is not None:
        check_file(report, "--report")
    if out is not None:
        check_replaced(
            out, "--out", f"an earlier result of {analysis}", lambda path: _find_foreign(path, analysis)
        )


def _find_foreign(out: Path, analysis: str) -> str | None:
    """First entry of a folder that is not part of an earlier result; None in a valid or empty folder."""
    names = sorted(path.name for path in out.iterdir())
    if not names:
        return None
    try:
        summary = json.loads((out / SUMMARY).read_text(encoding="utf-8"))
        owner, tables = summary[ANALYSIS], {f"{name}.parquet" for name in summary[TABLES]}
    except (OSError, ValueError, KeyError, TypeError):
        return f"`{names[0]}`"
    if owner != analysis:
        return f"a result of {owner}"
    return next((f"`{name}`" for name in names if name not in {SUMMARY, *tables}), None)


def write(
    out: Path, analysis: str, tables: "Mapping[str, pyarrow.Table]", summary: Mapping[str, Any]
) -> None:
    """Writes tables and summary to a folder, completely or not at all."""
    from pyarrow import parquet

    from leeward._files import atomic_folder

    with atomic_folder(out) as folder:
        for name, table in tables.items():
            parquet.write_table(table, folder / f"{name}.parquet")
        document = {ANALYSIS: analysis, TABLES: sorted(tables), **summary}
        text = json.dumps(document, indent=2, allow_nan=False) + "\n"
        (folder / SUMMARY).write_text(text, encoding="utf-8")
    print_note(f"wrote {out}/{SUMMARY} and {len(tables)} tables")
