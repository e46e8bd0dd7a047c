"""`leeward explain`: a decision with its reasons."""

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import NoneType
from typing import Annotated, Any

import typer

from leeward._quantities import percent_text, rate_text, time_text, work_rate_text, work_text
from leeward.cli import place, place_tasks
from leeward.cli.controller import (
    CONTROLLER,
    CaOption,
    ControllerOption,
    TokenFileOption,
    client,
    controller_errors,
)
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.hdfs.block import explain_block
from leeward.cli.hdfs.options import NAMENODE, NameNodeCaOption, NameNodeOption
from leeward.cli.output import Format, FormatOption, print_data, print_json, print_table, print_text
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward explain 42
  leeward explain 42 --controller https://leeward:7600 --token-file ~/.leeward-token -o json
  leeward explain decision.json
  leeward explain --block blk_1073741825 --namenode http://namenode:9870 --user hdfs
  leeward place replicas --cluster examples/clusters/reference.yaml --size 1GiB --policy uniform \\
      --explain -o json | leeward explain -

The command shows the stored record; it does not repeat the decision.
"""
REASON = {"candidate", "limit", "sight", "value_bps", "verdict", "because"}
"""Required fields of a candidate."""
DOCUMENT_ERRORS = (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError, RecursionError)
"""Errors caused by missing fields and by fields of a wrong type."""
PATIENCE_S = 1.0
"""Time during which a request to an unavailable controller is retried."""


def explain(
    decision: Annotated[
        str | None,
        typer.Argument(
            metavar="DECISION",
            help="Id of the decision; or a JSON file with a decision, or - for stdin.",
            show_default=False,
        ),
    ] = None,
    controller: ControllerOption = CONTROLLER,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    block: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Block of HDFS, such as blk_1073741825, in place of a decision.",
            show_default=False,
        ),
    ] = None,
    namenode: NameNodeOption = NAMENODE,
    namenode_ca: NameNodeCaOption = None,
    user: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Superuser of HDFS, for --block.", show_default="the local user"),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Explain a decision, or where a block of HDFS went.

    Shows its candidates level by level with the outcome of each, the bottleneck link, the age of the
    telemetry, and the policy. The decision comes from a controller or from a file. For a block, it comes
    from the Leeward policy in the NameNode, which stores one in 1,000 of its decisions by default
    (dfs.leeward.explain.sample).
    """
    if (decision is None) == (block is None):
        raise InputError.about("DECISION", "expected the id of a decision, a file, or --block NAME")
    if block is not None:
        explain_block(block, namenode, namenode_ca, user, output)
    elif decision is not None and decision.isascii() and decision.isdigit():
        with controller_errors():
            record = client(controller, token_file, ca, PATIENCE_S).decision(decision)
        _show(record, output, "--controller")
    elif decision is not None:
        name = "<stdin>" if decision == "-" else decision
        _show(_read(decision, name), output, name)


def _show(decision: Any, output: Format, name: str) -> None:
    """Prints a decision; rejects any other document, before the first output."""
    field = _invalid_field(decision)
    if field is not None:
        raise _no_decision(name, field or None)
    with _decision_errors(name):
        if output is Format.json:
            print_json(decision)
            return
        decision = _plain(decision)
        if print_data(output, decision, _rows(decision), COLUMNS["explain"]):
            return
        # The first call discards its output: a field of a wrong type fails before anything is printed.
        with redirect_stdout(io.StringIO()):
            _print(decision)
    _print(decision)


def _rows(decision: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of CSV: the candidates, with the names of their tasks."""
    if not _is_task_decision(decision):
        return list(decision["why"])
    return [{"task": one["task"]} | one["reason"] for one in _task_candidates(decision)]


@contextmanager
def _decision_errors(name: str) -> Iterator[None]:
    """Turns errors about fields of the document into one error.

    Raises:
        InputError: The document is not a decision.
    """
    try:
        yield
    except DOCUMENT_ERRORS:
        raise _no_decision(name, None) from None


def _no_decision(name: str, field: str | None) -> InputError:
    error = InputError(name, None, None, field, "expected a decision as JSON")
    error.add_note("leeward explain NUMBER -o json prints one")
    return error


def _plain(value: Any) -> Any:
    """A copy without control characters, which could send commands to the terminal."""
    if isinstance(value, str):
        return "".join(letter if letter.isprintable() else "?" for letter in value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_plain(name): _plain(item) for name, item in value.items()}
    return value


def _read(file: str, name: str) -> Any:
    """JSON in a file, as `-o json` of this command or of `leeward place` prints a decision."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"`{file}`: neither the id of a decision (a number) nor a file"
        raise InputError.about("DECISION", message) from None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text"
        raise InputError.about(name, why) from None
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise InputError(name, error.lineno, error.colno, None, f"not JSON: {error.msg}") from None
    except RecursionError:
        raise InputError.about(name, "not JSON: nested too deeply") from None
    except ValueError as error:
        raise InputError.about(name, f"not JSON: {error}") from None


def _no_number(constant: str) -> float:
    raise ValueError(f"{constant} is not a number")


def _invalid_field(document: Any) -> str | None:
    """First invalid field of a document: empty if the document is not an object, None for a decision."""
    if not isinstance(document, dict):
        return ""
    kinds: dict[str, type | tuple[type, ...]] = {
        "policy": str,
        "why": list,
        "hosts": (list, NoneType),
        "tasks": list,
        "request": (dict, NoneType),
        "limit": (dict, NoneType),
        "promise": (dict, NoneType),
        "reevaluation": (dict, NoneType),
        "telemetry_age_s": (int, float, NoneType),
    }
    for field, kind in kinds.items():
        if field in ("policy", "why") and field not in document:
            return field
        if not isinstance(document.get(field), kind) and field in document:
            return field
    for index, entry in enumerate(document["why"]):
        reason = entry.get("reason") if isinstance(entry, dict) and "reason" in entry else entry
        if not isinstance(reason, dict) or REASON - reason.keys():
            return f"why[{index}]"
    return None


def _print(decision: dict[str, Any]) -> None:
    for label, text in _facts(decision):
        print(f"{label:<10} {text}")
    if decision.get("note"):
        print_text(f"\n{decision['note']}")
    if promise := decision.get("promise"):
        _print_promise(promise)
    if not decision["why"]:
        print_text("\nno candidates are recorded")
    elif _is_task_decision(decision):
        place_tasks.print_reasons(_task_candidates(decision))
    else:
        place.print_candidates(decision["why"])


def _facts(decision: dict[str, Any]) -> list[tuple[str, str]]:
    """Label and text of each fact about a decision, except its candidates."""
    request = decision.get("request") or {}
    hosts = decision.get("hosts") or [task["host"] for task in decision.get("tasks", []) if task.get("host")]
    lines = []
    if "id" in decision:
        lines.append(("decision", f"{decision['id']}, made {decision['time']}"))
    if request:
        # A request to admit a workload holds a workload file.
        lines.append(("request", f"{decision['kind']}: {_request_text(request.get('workload') or request)}"))
    lines.append(("hosts", " ".join(hosts) or "none"))
    if decision.get("refused"):
        lines.append(("refused", str(decision["refused"])))
    lines.append(("policy", decision["policy"]))
    lines.append(("bottleneck", _bottleneck(decision)))
    if promise := decision.get("promise"):
        lines.append(("promised", _promise_text(promise)))
    if "telemetry_age_s" in decision:
        age = decision["telemetry_age_s"]
        text = "none was used" if age is None else f"{time_text(age)} old at the decision"
        lines.append(("telemetry", text))
    if again := decision.get("reevaluation"):
        lines.append(("again", f"{'move' if again['worth_it'] else 'stay'}: {again['reason']}"))
    if decision.get("released"):
        lines.append(("released", decision["released"]))
    elif decision.get("expires"):
        lines.append(("expires", decision["expires"]))
    return lines


def _bottleneck(decision: dict[str, Any]) -> str:
    """Bottleneck link, as the policy saw it."""
    if (limit := decision.get("limit")) is not None:
        return f"{limit.get('at') or 'a copy'}, {rate_text(limit['value_bps'])} left"
    reasons = [one.get("reason", one) for one in decision["why"]]
    winners = [one for one in reasons if one["verdict"] == "chosen" and one["limit"]]
    with_load = [one for one in winners if one.get("objectives")]
    if with_load:
        most = max(with_load, key=lambda one: one["objectives"]["balance"])
        return f"{most['limit']}, {percent_text(most['objectives']['balance'], 0)} with it"
    with_rate = [one for one in winners if one["value_bps"] is not None]
    if with_rate:
        least = min(with_rate, key=lambda one: one["value_bps"])
        return f"{least['limit']}, {rate_text(least['value_bps'])} left"
    return "no load was considered"


def _request_text(fields: dict[str, Any]) -> str:
    """Fields of a request on one line: a list as its length, nested fields in brackets."""
    parts = []
    for name, value in fields.items():
        if value is None or value == []:
            continue
        if isinstance(value, dict):
            parts.append(f"{name} ({_request_text(value)})")
        else:
            parts.append(f"{name} {len(value) if isinstance(value, list) else value}")
    return ", ".join(parts)


def _promise_text(promise: dict[str, Any]) -> str:
    """Objective and bound of a workload."""
    slo, bound = promise["slo"], promise["bound_s"]
    objective = f"{percent_text(slo['percentile'] / 100, None)} in {time_text(slo['latency_s'])}"
    result = "no bound" if bound is None else f"bound {time_text(bound)} by {promise['by']}"
    return f"{objective}; {result}, volume {promise['volume']}"


def _print_promise(promise: dict[str, Any]) -> None:
    """Prints the bound at each stage of a request's path, and the limits to enforce there."""
    print()
    print_table(
        ("STAGE", "PRIORITY", "LIMITS", "BOUND", "QUEUES"),
        "<>>><",
        [
            (
                stage["stage"],
                "-" if stage["priority"] is None else str(stage["priority"]),
                _limits(stage),
                time_text(stage["bound_s"]),
                ", ".join(stage["queues"]) or "-",
            )
            for stage in promise["stages"]
        ],
    )


def _limits(stage: dict[str, Any]) -> str:
    """Token buckets of a stage: in bytes, or in seconds of a device."""
    unit = "s" if stage["stage"] == "storage" else "bytes"
    buckets = [
        f"{work_rate_text(bucket['rate'], unit)} + {work_text(bucket['burst'], unit)}"
        for bucket in stage["limits"] or []
    ]
    return ", ".join(buckets) or "-"


def _is_task_decision(decision: dict[str, Any]) -> bool:
    return decision.get("kind") == "tasks" or "tasks" in decision


def _task_candidates(decision: dict[str, Any]) -> list[dict[str, Any]]:
    """Candidates for tasks, each with the name of its task."""
    if decision["why"] and "reason" in decision["why"][0]:
        return list(decision["why"])
    tasks = (decision.get("request") or {}).get("tasks") or []
    rows = []
    for reason in decision["why"]:
        index = (reason.get("objectives") or {}).get("task", 0)
        name = tasks[index]["name"] if index < len(tasks) else str(index)
        rows.append({"task": name, "reason": reason})
    return rows
