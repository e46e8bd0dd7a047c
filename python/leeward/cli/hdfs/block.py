"""Explanation of the placement of a block, for `leeward explain --block`."""

import getpass
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from leeward._quantities import bytes_text, counted, rate_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_error, print_note
from leeward.cli.options import name_flags
from leeward.cli.output import Format, print_data, print_table, print_text
from leeward.errors import InputError

_RATE = "bit/s"
"""Beginning of the units of rates."""
_UNLIMITED_BPS = 1e18
"""Rate from which nothing limits a candidate: a thousand times the greatest rate of a link."""


def explain_block(name: str, namenode: str, ca: Path | None, user: str | None, output: Format) -> None:
    """Prints where the policy of a NameNode placed a block, and why.

    Raises:
        InputError: The NameNode does not answer, has no such block, or runs no Leeward policy.
    """
    from leeward import hdfs

    with name_flags(namenode="--namenode", ca="--namenode-ca", block="--block"):
        node = hdfs.NameNode(namenode, ca)
        block = node.block(name, user or getpass.getuser())
        policies = [policy for policy in node.policies() if policy.invalid is None]
        if not policies:
            error = InputError.about("--namenode", f"{node.url}: the NameNode runs no Leeward policy")
            error.add_note("leeward hdfs check shows what is missing")
            raise error
        explaining = [policy.blocks for policy in policies if policy.explains]
        if not explaining:
            message = f"{node.url}: the policy in the NameNode shows no decisions over HTTP"
            raise InputError.about("--namenode", message)
        stored = [decision for blocks in explaining for decision in node.decisions(blocks)]
    found = hdfs.match(block, stored)
    decision, note = (None, None) if found is None else (found.decision, found.note)
    document = {"block": asdict(block), "decision": decision, "note": note}
    rows = [] if decision is None else list(_rows(decision))
    if not print_data(output, document, rows, COLUMNS["explain"]):
        for label, text in _facts(asdict(block), decision):
            print_text(f"{label:<10} {text}")
        if decision is not None:
            print_steps(decision["steps"])
    if note is not None:
        print_note(f"note: {note}", doubt=True)
    if decision is None:
        others = sum(one.get("path") == block.path for one in stored)
        print_error(_missing(block.path, others))
        print_note("hint: dfs.leeward.explain.sample is the share of decisions that the NameNode stores")
        raise typer.Exit(1)


def _missing(path: str, others: int) -> str:
    if others:
        stored = counted(others, "decision")
        return f"of {path}, the NameNode stores {stored}, and none has the hosts of the block"
    return f"the NameNode stores no decision about {path}, and none with the hosts of the block"


def _facts(block: dict[str, Any], decision: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Label and text of each fact, except the candidates."""
    yield "block", f"{block['name']} of {block['path']}"
    yield "stored on", " ".join(block["hosts"]) or "no live host"
    if decision is None:
        return
    size = decision.get("bytes")
    writer = decision.get("writer") or "a client outside the cluster"
    yield "decision", f"{decision['time']}, for {writer}" + ("" if size is None else f", {bytes_text(size)}")
    if decision.get("path", block["path"]) != block["path"]:
        yield "path", str(decision["path"])
    yield "hosts", " ".join(decision["hosts"]) or "none"
    if decision.get("existing"):
        yield "earlier", " ".join(decision["existing"])
    yield "policy", decision["policy"]
    yield "reason", decision["reason"]


def print_steps(steps: Sequence[dict[str, Any]]) -> None:
    """Prints the candidates of each copy, best first."""
    for number, step in enumerate(steps, 1):
        host = step.get("host") or "left to HDFS's default policy"
        scope = step.get("scope") or "anywhere"
        where = f"outside {scope[1:]}" if scope.startswith("~") else scope
        print_text(f"\n{number}. {host}, {where}: {step.get('note') or step.get('reason', '')}")
        candidates = [one for level in ("racks", "hosts") for one in step.get(level, [])]
        rows = [(one["name"], _value(one), one.get("detail", "")) for one in candidates]
        if rows:
            # Only some policies rank by more than one value.
            columns = 3 if any(detail for *_, detail in rows) else 2
            print()
            print_table(
                ("CANDIDATE", "RANKED BY", "THEN BY")[:columns],
                "<" * columns,
                [row[:columns] for row in rows],
            )


def _value(candidate: dict[str, Any]) -> str:
    """Value by which a candidate was ranked, with its meaning."""
    unit, value = str(candidate.get("unit", "")), candidate["value"]
    if unit.startswith(_RATE):
        rate = "no limit" if value is not None and value >= _UNLIMITED_BPS else rate_text(value)
        return ("unknown" if value is None else rate) + unit.removeprefix(_RATE)
    return ("unknown" if value is None else f"{value:g} {unit}").rstrip()


def _rows(decision: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of CSV: the candidates of each copy, counted as tasks are."""
    for number, step in enumerate(decision["steps"]):
        for level in ("racks", "hosts"):
            for one in step.get(level, []):
                yield {
                    "task": number,
                    "candidate": one["name"],
                    "value_bps": one["value"] if str(one.get("unit", "")).startswith(_RATE) else None,
                    "verdict": "chosen" if one["name"] == step.get("host") else None,
                    "because": "; ".join(filter(None, (one.get("detail"), step.get("note")))) or None,
                }
