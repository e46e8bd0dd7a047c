"""`leeward hdfs check`: a NameNode and a controller that belong together."""

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward._quantities import read_bytes
from leeward.cli.controller import (
    CONTROLLER,
    CaOption,
    ControllerOption,
    TokenFileOption,
    client,
    controller_errors,
)
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.hdfs.block import print_steps
from leeward.cli.hdfs.options import NAMENODE, NameNodeOption
from leeward.cli.options import name_flags
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.place import print_candidates
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward import Client
    from leeward.hdfs import Check, DataNode, NameNodeState

EXAMPLES = """\b
Examples:
  leeward hdfs check
  leeward hdfs check --namenode http://namenode:9870 --controller https://leeward:7600 --token-file token
  leeward hdfs check --writer dn17.example.com --size 256MiB
  leeward hdfs check --coding 6+3 -o json

The exit code is 1 if a check fails. Warnings do not fail.
"""
COPIES = 3
"""Number of copies of a replicated block: dfs.replication by default."""
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
    policy. Then asks the NameNode where a block of a DataNode would go now. Without Leeward in the NameNode,
    asks the controller. Nothing is placed.
    """
    from leeward import hdfs

    chunk, copies = _chunks(size, coding)
    with name_flags(namenode="--namenode"):
        node = hdfs.NameNode(namenode)
        state = node.state()
    leeward = client(controller, token_file, ca, PATIENCE_S)
    with controller_errors():
        status, hosts = leeward.status(), list(leeward.hosts())
    found = hdfs.differences(state.datanodes, {host["host"]: host["rack"] for host in hosts})
    checks = hdfs.check(state, status, hosts, found)
    datanode = _writer(state, found.hosts, writer)
    blocks = "replicated blocks" if coding is None else "erasure-coded blocks"
    answers = any(one.blocks == blocks and one.explained is not None for one in state.policies)
    decision = None
    if datanode is not None and answers:
        with name_flags(namenode="--namenode"):
            decision = node.explain(blocks, datanode.name, chunk, copies)
        checks.append(_check_of_namenode(decision, size, datanode.name))
    elif datanode is not None:
        with controller_errors():
            decision, last = _ask_controller(leeward, size, found.hosts[datanode.name], coding)
        checks.append(last)
    document = {
        "namenode": asdict(state),
        "checks": [asdict(one) for one in checks],
        "differences": asdict(found),
        "decided_by": None if decision is None else "namenode" if answers else "controller",
        "decision": decision,
    }
    if not print_data(output, document, "checks", COLUMNS["hdfs check"]):
        rows = [(one.check, one.state, one.detail) for one in checks]
        print_table(("CHECK", "STATE", "FINDING"), "<<<", rows)
        if decision is not None and answers:
            print_text(f"\nThe NameNode would now place a block of {size} of {decision['writer']} so.")
            print_steps(decision["steps"])
        elif decision is not None:
            _print_decision(decision, size, state, blocks)
    if any(one.state is hdfs.State.FAILED for one in checks):
        raise typer.Exit(1)


def _chunks(size: str, coding: str | None) -> tuple[int, int]:
    """Size in bytes and number of the copies or chunks of a block.

    Raises:
        InputError: The size or the code is invalid.
    """
    total = read_bytes("--size", size)
    if coding is None:
        return total, COPIES
    form = re.fullmatch(r"([1-9][0-9]?)\+([1-9][0-9]?)", coding)
    if form is None:
        raise InputError.about("--coding", f"`{coding[:60]}`: expected DATA+PARITY, such as 6+3")
    data, parity = int(form[1]), int(form[2])
    return -(-total // data), data + parity


def _writer(state: "NameNodeState", hosts: Mapping[str, str], writer: str | None) -> "DataNode | None":
    """DataNode that writes the block of the decision; None if the controller knows none that serves.

    Raises:
        InputError: No DataNode has the name `writer`, or the controller does not know its host.
    """
    if writer is None:
        return next((node for node in state.datanodes if node.name in hosts and node.serves), None)
    named = [node for node in state.datanodes if writer in (node.name, node.address)]
    if not named:
        error = InputError.about("--writer", f"`{writer}`: the NameNode has no live DataNode of this name")
        error.add_note("hdfs dfsadmin -printTopology lists them")
        raise error
    if named[0].name not in hosts:
        raise InputError.about("--writer", f"`{writer}`: the controller does not have this host in this rack")
    return named[0]


def _check_of_namenode(decision: Mapping[str, Any], size: str, writer: str) -> "Check":
    """Check of the NameNode's own decision."""
    from leeward import hdfs
    from leeward.hdfs.policy import RANKED, SETTINGS

    hosts, reason = " ".join(decision["hosts"]), decision["reason"]
    if not hosts:
        state = hdfs.State.OK if reason in SETTINGS else hdfs.State.WARNING
        return hdfs.Check("decision", state, f"{size} of {writer} is left to HDFS's default policy: {reason}")
    detail = f"{size} of {writer} to {hosts}, by {decision['policy']} in the NameNode"
    if reason != RANKED:
        return hdfs.Check("decision", hdfs.State.WARNING, f"{detail}: {reason}")
    return hdfs.Check("decision", hdfs.State.OK, detail)


def _ask_controller(
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
    detail = f"{size} of {writer} to {hosts}, by {decision['policy']} of the controller"
    if note is not None:
        return dict(decision), hdfs.Check("decision", hdfs.State.WARNING, f"{detail}: {note}")
    return dict(decision), hdfs.Check("decision", hdfs.State.OK, detail)


def _print_decision(decision: dict[str, Any], size: str, state: "NameNodeState", blocks: str) -> None:
    policy = decision["policy"]
    print_text(f"\nThe controller would now place a block of {size} by {policy}, from these candidates.")
    names = [one.policy for one in state.policies if one.blocks == blocks]
    if names:
        print_text(
            f"The NameNode decides by {names[0]}, and shows no decision over HTTP: its own may differ."
        )
    else:
        print_text(f"The NameNode has no Leeward policy for {blocks}, so HDFS's own policy decides.")
    print_candidates(decision["why"])
