"""`leeward hdfs check`: a NameNode and a controller that belong together."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli.controller import (
    CONTROLLER,
    CaOption,
    ControllerOption,
    TokenFileOption,
    client,
    controller_errors,
)
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.hdfs.options import NAMENODE, NameNodeOption
from leeward.cli.options import name_flags
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.place import print_candidates
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward import Client
    from leeward.hdfs import Check, NameNodeState

EXAMPLES = """\b
Examples:
  leeward hdfs check
  leeward hdfs check --namenode http://namenode:9870 --controller https://leeward:7600 --token-file token
  leeward hdfs check --writer dn17.example.com --size 256MiB
  leeward hdfs check --coding 6+3 -o json

The exit code is 1 if a check fails. Warnings do not fail.
"""
PATIENCE_S = 1.0
"""Time during which a request to an unavailable controller is retried."""


def check(
    namenode: NameNodeOption = NAMENODE,
    controller: ControllerOption = CONTROLLER,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    size: Annotated[
        str, typer.Option(metavar="SIZE", help="Size of the block of the decision, as dfs.blocksize.")
    ] = "128MiB",
    writer: Annotated[
        str | None,
        typer.Option(
            metavar="HOST", help="DataNode that writes this block.", show_default="the first one by name"
        ),
    ] = None,
    coding: Annotated[
        str | None,
        typer.Option(
            metavar="DATA+PARITY", help="Erasure code of this block, such as 6+3.", show_default=False
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Check that a NameNode and a controller belong together, and show a decision.

    Compares the DataNodes and racks of both, and looks at the telemetry and the storage of hosts, at the
    policy in the NameNode, at the age of its snapshot and at the blocks that it left to HDFS's default
    policy. Then asks the controller, without a commit, where a block of a DataNode would go now.
    """
    from leeward import hdfs

    with name_flags(namenode="--namenode"):
        state = hdfs.NameNode(namenode).state()
    leeward = client(controller, token_file, ca, PATIENCE_S)
    with controller_errors():
        status, hosts = leeward.status(), list(leeward.hosts())
    found = hdfs.differences(state.datanodes, {host["host"]: host["rack"] for host in hosts})
    checks = hdfs.check(state, status, hosts, found)
    host = _writer(state, found.hosts, writer)
    decision = None
    if host is not None:
        with controller_errors():
            decision, last = _decision(leeward, size, host, coding)
        checks.append(last)
    document = {
        "namenode": asdict(state),
        "checks": [asdict(one) for one in checks],
        "differences": asdict(found),
        "decision": decision,
    }
    if not print_data(output, document, "checks", COLUMNS["hdfs check"]):
        rows = [(one.check, one.state, one.detail) for one in checks]
        print_table(("CHECK", "STATE", "FINDING"), "<<<", rows)
        if decision is not None:
            _print_decision(decision, size, state)
    if any(one.state is hdfs.State.FAILED for one in checks):
        raise typer.Exit(1)


def _writer(state: "NameNodeState", hosts: Mapping[str, str], writer: str | None) -> str | None:
    """Host of the controller that writes the block of the decision; None if there is none.

    Raises:
        InputError: No DataNode has the name `writer`, or the controller does not know its host.
    """
    if writer is None:
        known = (node for node in state.datanodes if node.name in hosts and node.serves)
        return next((hosts[node.name] for node in known), None)
    named = [node for node in state.datanodes if writer in (node.name, node.address)]
    if not named:
        error = InputError.about("--writer", f"`{writer}`: the NameNode has no live DataNode of this name")
        error.add_note("hdfs dfsadmin -printTopology lists them")
        raise error
    if named[0].name not in hosts:
        raise InputError.about("--writer", f"`{writer}`: the controller does not have this host in this rack")
    return hosts[named[0].name]


def _decision(
    leeward: "Client", size: str, writer: str, coding: str | None
) -> tuple[dict[str, Any] | None, "Check"]:
    """Decision of the controller without a commit, and its check."""
    from leeward import hdfs
    from leeward.client import ProblemError, RefusedError

    try:
        decision = leeward.place_replicas(size, writer=writer, coding=coding, dry_run=True)
    except RefusedError as error:
        return None, hdfs.Check("decision", hdfs.State.FAILED, f"refused: {error.detail}")
    except ProblemError as error:
        field = {"size": "--size", "coding": "--coding"}.get(error.field or "")
        if field is None:
            raise
        raise InputError.about(field, error.detail) from None
    hosts, note = " ".join(decision["hosts"]), decision["note"]
    detail = f"{size} of {writer} to {hosts}, by {decision['policy']}"
    if note is not None:
        return dict(decision), hdfs.Check("decision", hdfs.State.WARNING, f"{detail}: {note}")
    return dict(decision), hdfs.Check("decision", hdfs.State.OK, detail)


def _print_decision(decision: dict[str, Any], size: str, state: "NameNodeState") -> None:
    policy = decision["policy"]
    print_text(f"\nThe controller would now place a block of {size} by {policy}, from these candidates.")
    others = sorted({one.policy for one in state.policies} - {policy.split(":")[0]})
    if others:
        print_text(f"The NameNode decides by {' and '.join(others)}, so its own choice may differ.")
    print_candidates(decision["why"])
