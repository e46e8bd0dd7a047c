"""`leeward slo pack`: which server, rates, bursts and priority every volume gets."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward.cli.cluster import read
from leeward.cli.options import advised, given_by, place, whole
from leeward.cli.output import Format, print_json, print_table, print_words
from leeward.cli.progress import progress
from leeward.cli.slo.options import amount, duration, rate
from leeward.cli.slo.promises import ClusterOption, WorkloadsArgument, objective
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward slo pack examples/slo/volumes.yaml --cluster examples/slo/servers.yaml
  leeward slo pack examples/slo/volumes.yaml --cluster examples/slo/servers.yaml --limits average
  leeward slo pack examples/slo/volumes.yaml --cluster examples/slo/servers.yaml --write packed.yaml

The code is 1 if a workload is refused, or if one has no bound within its SLO.
"""
_WORDS = (
    ("bound", "no request is later: by curves, under the file's `bounds`"),
    ("spare", "what is left of the SLO"),
    ("reserved", "the share of a link or device that the rates of limits take, the busiest first"),
)
_SHOWN = 8
"""Queues in the summary."""


def pack(
    file: WorkloadsArgument,
    cluster: ClusterOption,
    limits: Annotated[
        str,
        typer.Option(
            metavar="WAY",
            help="compactor, effective-bandwidth, average, knee or several: how limits are chosen.",
        ),
    ] = "compactor",
    settings: Annotated[
        str | None,
        typer.Option(metavar="MAPPING", help="Settings of that way: '{slack: 0.1}'.", show_default=False),
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Pass over servers whose configured rates leave no room.")
    ] = False,
    margin: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Safety margin, such as 10%; by default that of the file.",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option(metavar="N", parser=whole(1, 1024), help="Servers that are tried at once.")
    ] = 1,
    again: Annotated[
        bool,
        typer.Option("--again", help="Choose anew what the file says of servers, priorities and limits."),
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", parser=place, help="Write the file with what was chosen.", show_default=False
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FORMAT", help="table, json, or yaml: the filled file.")
    ] = "table",
) -> None:
    """Pack volumes onto few servers that keep every SLO.

    First fit, in the order of the file: rate limits are chosen for all workloads of a server together.
    """
    if output not in ("table", "json", "yaml"):
        raise typer.BadParameter(f"`{output}`: expected one of table, json, yaml")
    import yaml

    from leeward.slo import filled
    from leeward.slo import pack as packed

    network = read(cluster)
    chosen = _mapping(settings)
    share = _share(margin)
    state: dict[str, Any] = {}

    def tell(number: int, done: int) -> None:
        if state.get("round") != number:
            _close(state)
            state["round"] = number
            state["shown"] = progress(f"packing, round {number}", max(state["total"], done))
            state["advance"] = state["shown"].__enter__()
        state["advance"](1)

    flags = {"limits": "--limits", "margin": "--margin", "threads": "--threads"}
    with advised("slo", file), given_by(**flags):
        state["total"] = _count(file)
        try:
            record = packed(
                file,
                network,
                limits=limits,
                settings=chosen,
                fast=fast,
                margin=share,
                threads=threads,
                again=again,
                progress=tell,
            )
        finally:
            _close(state)
    if write is not None:
        write.write_text(yaml.safe_dump(filled(record, write.parent), sort_keys=False), encoding="utf-8")
    if output == Format.json:
        print_json(record)
    elif output == "yaml":
        print(yaml.safe_dump(filled(record), sort_keys=False), end="")
    else:
        _print(record)
    failed = _failures(record)
    for line in failed:
        print("error:", line, file=sys.stderr)
    if failed:
        raise typer.Exit(1)


def _close(state: dict[str, Any]) -> None:
    if "shown" in state:
        state.pop("shown").__exit__(None, None, None)


def _count(file: str) -> int:
    """How many workloads a file has; what is wrong with it is said where it is read."""
    import yaml

    try:
        with open(file, encoding="utf-8") as text:
            return len(yaml.safe_load(text)["workloads"])
    except (OSError, TypeError, KeyError, UnicodeError, yaml.YAMLError):
        return 1


def _mapping(text: str | None) -> dict[str, Any] | None:
    import yaml

    try:
        value = None if text is None else yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    if value is not None and not isinstance(value, dict):
        raise InputError("--settings", None, None, None, f"`{text}`: expected a mapping, such as {{a: 1}}")
    return value


def _share(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text.strip().removesuffix("%")) / 100 if text.strip().endswith("%") else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e7:
        raise InputError("--margin", None, None, None, f"`{text}`: expected a share in percent, such as 10%")
    return value


def _print(record: dict[str, Any]) -> None:
    """Prints who is where, what is enforced, and what is set aside."""
    print_table(
        ("WORKLOAD", "CLIENT", "SERVER", "PRIORITY", "SLO", "BOUND", "SPARE"),
        "<<<><>>",
        [
            (
                one["workload"],
                one["client"],
                one["server"],
                str(one["priority"]),
                objective({**one, "best_effort": False}),
                duration(one["bound_s"]),
                "-" if not one["met"] else duration(one["slo"]["latency_s"] - one["bound_s"]),
            )
            for one in record["workloads"]
        ],
    )
    print()
    print_table(
        ("WORKLOAD", "STAGE", "RATE", "BURST", "BOUND"),
        "<<>>>",
        [
            (
                one["workload"],
                stage["stage"],
                rate(bucket["rate"], stage["unit"]),
                amount(bucket["burst"], stage["unit"]),
                duration(stage["bound_s"]),
            )
            for one in record["workloads"]
            for stage in one["stages"]
            for bucket in stage["limits"]
        ],
    )
    print()
    print_table(
        ("RESERVED", "SHARE"),
        "<>",
        [(one["queue"], f"{100 * one['share']:.1f} %") for one in record["reserved"][:_SHOWN]],
    )
    print_words(_WORDS)
    print(file=sys.stderr)
    print(f"servers: {record['servers_used']} of {record['servers']}", file=sys.stderr)
    print(f"margin: {100 * record['margin']:g} % above what the files say", file=sys.stderr)
    if len(record["reserved"]) > _SHOWN:
        print(f"reserved: {len(record['reserved'])} links and devices; -o json lists all", file=sys.stderr)
    for note in record["notes"]:
        print(f"note: {note}", file=sys.stderr)


def _failures(record: dict[str, Any]) -> list[str]:
    """Who is refused, and which bounds are above SLOs."""
    said = [f"{one['workload']} is refused: {one['why']}" for one in record["refused"]]
    for one in record["workloads"]:
        if one["why"]:
            said.append(f"no bound: {one['why']}")
        elif not one["met"]:
            asked = duration(one["slo"]["latency_s"])
            said.append(f"{one['workload']}: a bound of {duration(one['bound_s'])}, above its SLO of {asked}")
    return said
