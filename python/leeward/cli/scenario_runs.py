"""Scenario file of a simulation, and the summary and warnings of its runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from leeward._native import Run, Scenario
from leeward.cli.notes import print_note, print_warning
from leeward.cli.options import hint_schema
from leeward.cli.progress import slow_notice


def read(file: str) -> Scenario:
    """Reads a scenario file for a command."""
    from leeward.simulation import read_scenario

    with hint_schema("cluster"), hint_schema("scenario", file), slow_notice(f"reading {file}"):
        return read_scenario(file)


def warn_of_refusals(rows: Sequence[Mapping[str, Any]]) -> None:
    """Warns on stderr about policies that wrote no block, or placed no app or task, although some arrived.

    Args:
        rows: One row for each run, with `policy` and figures under their names in `leeward._figures`.
    """
    for policy in dict.fromkeys(row["policy"] for row in rows):
        of_policy = [row for row in rows if row["policy"] == policy]

        def total(name: str, of: Sequence[Mapping[str, Any]] = of_policy) -> int:
            return sum(row.get(name) or 0 for row in of)

        unfinished, retries = total("blocks_unfinished"), total("retries")
        if unfinished and retries and not total("blocks"):
            message = f"{policy}: no block was written: {unfinished:,} blocks were refused {retries:,} times"
            print_warning(message)
            hint = f"leeward place replicas --policy {policy} --cluster FILE --size 256MiB shows the reason"
            print_note(f"hint: {hint}")
        for things, options in (("apps", "--app FILE"), ("tasks", "--job FILE")):
            arrived, unplaced = total(f"{things}.count"), total(f"{things}.unplaced")
            if arrived and unplaced == arrived:
                thing = things.removesuffix("s")
                message = f"{policy}: no {thing} was placed, of {arrived:,} that arrived"
                print_warning(message)
                hint = f"leeward place tasks --policy {policy} --cluster FILE {options} shows the reason"
                print_note(f"hint: {hint}")


def note_unfinished(runs: Sequence[Run]) -> None:
    """Names the coflows that did not end, on stderr."""
    most = 10
    for run in runs:
        coflows = run.summary().get("coflows")
        if coflows and coflows["unfinished"]:
            ids = coflows["unfinished_ids"]
            names = ", ".join(ids[:most]) + (", ..." if len(ids) > most else "")
            print_note(f"{run.policy}: {len(ids):,} of {coflows['count']:,} coflows did not end: {names}")


def summary(runs: list[Run]) -> dict[str, object]:
    """Summaries of the runs, and their comparison with the first run, as JSON."""
    return {
        "seed": runs[0].seed,
        "arrivals": runs[0].provenance,
        "baseline": runs[0].policy,
        "runs": [
            {
                "policy": run.policy,
                "summary": run.summary(),
                "against_baseline": run.compare(runs[0]) if run is not runs[0] else None,
            }
            for run in runs
        ],
    }
