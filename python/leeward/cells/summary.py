"""Runs in numbers."""

from typing import Any

from leeward._native import CellsRuns

COMPARED = ("core_fullest", "core_p98", "core_excess", "rack_p98", "hot", "rejected")
"""Quantities that are compared with one ledger. Less is better."""


def summary(runs: CellsRuns) -> dict[str, Any]:
    """Runs in numbers, as values of JSON.

    `runs` has a row for each run, with the columns of the table `runs`. `beyond_one_ledger` of a row has the
    differences of some of them from the run with one ledger: the price of cells. It is null for that run.
    """
    rows: list[dict[str, Any]] = runs.runs().to_pylist()
    one = rows[0]
    for row in rows:
        differences = {name: row[name] - one[name] for name in COMPARED}
        row["beyond_one_ledger"] = None if row is one else differences
    return {"runs": rows}
