"""Folder that `leeward simulate --out` writes: tables, summary and page of a result.

    FOLDER/report.html
    FOLDER/summary.json
    FOLDER/POLICY/*.parquet

The folder is written under a temporary name and then renamed, so it is complete or absent. It replaces only
an earlier result. The summary of an earlier result names its runs, and all files belong to these runs.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from leeward._files import atomic_folder, check_replaced
from leeward._native import Run, Scenario
from leeward.cli.notes import print_note
from leeward.simulation import TABLES


def check(out: Path, flag: str) -> None:
    """Checks that a result can be written to a folder.

    Args:
        out: Folder, which may be missing.
        flag: Option that names the folder.

    Raises:
        InputError: The folder cannot be written, or holds something other than an earlier result.
    """
    check_replaced(out, flag, "an earlier result of one seed", _find_foreign)


def _find_foreign(out: Path) -> str | None:
    """First entry of a folder that is not part of an earlier result; None in a valid or empty folder."""
    names = sorted(path.name for path in out.iterdir())
    if not names:
        return None
    try:
        runs = json.loads((out / "summary.json").read_text(encoding="utf-8"))["runs"]
        folders = dict.fromkeys(folders_of(run["policy"] for run in runs))
    except (OSError, ValueError, KeyError, TypeError):
        return f"`{names[0]}`"
    for name in names:
        if name in folders and (out / name).is_dir():
            inside = sorted(path.name for path in (out / name).iterdir())
            foreign = [f"{name}/{table}" for table in inside if table not in {f"{t}.parquet" for t in TABLES}]
        else:
            foreign = [] if name in ("summary.json", "report.html") else [name]
        if foreign:
            return f"`{foreign[0]}`"
    return None


def folders_of(policies: Iterable[str]) -> list[str]:
    """Names of policies as folder names. A comma replaces special characters; repeated names have numbers."""
    names: list[str] = []
    for policy in policies:
        plain = re.sub(r"[^A-Za-z0-9._=-]+", ",", policy)[:100]
        same = sum(name.lower() == plain.lower() or name.startswith(f"{plain}~") for name in names)
        names.append(f"{plain}~{same + 1}" if same else plain)
    return names


def write(out: Path, scenario: Scenario, runs: list[Run]) -> None:
    """Writes tables, summary and page to a folder, completely or not at all."""
    from pyarrow import parquet

    from leeward.cli.scenario_runs import summary
    from leeward.report import write_page

    with atomic_folder(out) as folder:
        for result, name in zip(runs, folders_of(run.policy for run in runs), strict=True):
            (folder / name).mkdir()
            for table in TABLES:
                parquet.write_table(getattr(result, table)(), folder / name / f"{table}.parquet")
        text = json.dumps(summary(runs), indent=2, allow_nan=False) + "\n"
        (folder / "summary.json").write_text(text, encoding="utf-8")
        write_page(folder / "report.html", scenario, runs)
    print_note(f"\nwrote {out}/report.html, summary.json, and tables by policy")
