"""What analyses write: `--out`, a folder with a Parquet file for each table and a summary, and `--report`.

    FOLDER/summary.json
    FOLDER/TABLE.parquet

The folder is written beside its place and then put there. It takes the place of an earlier result of the same
analysis, which its summary tells, and of nothing else.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli.options import place
from leeward.errors import InputError

if TYPE_CHECKING:
    import pyarrow

OutOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        parser=place,
        help="Folder for all tables, as Parquet, and a summary.",
        show_default=False,
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", parser=place, help="Where a page with pictures goes (.html).", show_default=False
    ),
]
SUMMARY = "summary.json"
ANALYSIS = "analysis"
"""The field of a summary that says what it is of."""


def check(out: Path | None, report: Path | None, analysis: str) -> None:
    """Checks that what is asked for can be written, before work begins.

    Args:
        out: The folder, there or not; None: there is to be none.
        report: The page, likewise.
        analysis: What the folder will be of: the name of its command.

    Raises:
        InputError: It cannot be written, or the folder holds something else than an earlier result.
    """
    from leeward.files import check_file, check_folder

    if report is not None:
        check_file(report, "--report")
    if out is None:
        return
    check_folder(out, "--out")
    if not out.is_dir():
        return
    # What takes the place of the current folder would leave the shell in one that is gone.
    if Path.cwd().is_relative_to(out.resolve()):
        raise _wrong(out, "this is the current folder, or above it; expected another")
    if strange := _strange(out, analysis):
        raise _wrong(out, f"holds {strange}; expected an empty folder or an earlier result of {analysis}")


def _strange(out: Path, analysis: str) -> str | None:
    """What keeps a folder from being an earlier result, or empty; None if nothing does."""
    here = sorted(path.name for path in out.iterdir())
    for name in here:
        if name != SUMMARY and not name.endswith(".parquet"):
            return f"`{name}`"
    if not here:
        return None
    try:
        of = json.loads((out / SUMMARY).read_text(encoding="utf-8"))[ANALYSIS]
    except (OSError, ValueError, KeyError, TypeError):
        return f"`{here[0]}`"
    return None if of == analysis else f"a result of {of}"


def write(
    out: Path, analysis: str, tables: "Mapping[str, pyarrow.Table]", summary: Mapping[str, Any]
) -> None:
    """Writes tables and summary, whole or not at all."""
    from pyarrow import parquet

    from leeward.files import whole_folder

    with whole_folder(out) as folder:
        for name, table in tables.items():
            parquet.write_table(table, folder / f"{name}.parquet")
        text = json.dumps({ANALYSIS: analysis, **summary}, indent=2, allow_nan=False) + "\n"
        (folder / SUMMARY).write_text(text, encoding="utf-8")
    print(f"wrote {out}/{SUMMARY} and {len(tables)} tables", file=sys.stderr)


def _wrong(out: Path, message: str) -> InputError:
    return InputError("--out", None, None, None, f"`{out}`: {message}")
