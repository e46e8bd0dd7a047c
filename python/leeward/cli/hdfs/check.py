"""`leeward hdfs check`: a NameNode and a controller that belong together."""

import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
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
from leeward.cli.hdfs.options import NAMENODE, NameNodeCaOption, NameNodeOption
from leeward.cli.options import name_flags, parse_path
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.place import print_candidates
from leeward.client import ProblemError, RefusedError, UnreachableError
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward import Client
    from leeward.hdfs import Check, DataNode, Differences, NameNodeState

EXAMPLES = """\b
Examples:
  leeward hdfs check
  leeward hdfs check --namenode http://namenode:9870 --controller https://leeward:7600 --token-file token
  leeward hdfs check --writer dn17.example.com --size 256MiB
  leeward hdfs check --coding 6+3 -o json
  curl --negotiate -u : https://namenode:9871/jmx > jmx.json; leeward hdfs check --jmx jmx.json

The exit code is 1 if a check fails. Warnings do not fail.
"""
COPIES = 3
"""Number of copies of a replicated block: dfs.replication by default."""
PATIENCE_S = 1.0
"""Time during which a request to an unavailable controller is retried."""
_IDLE_MODES = ("off", "shadow")
"""Modes of the controller in which Leeward places no block."""


def check(
    namenode: NameNodeOption = NAMENODE,
    namenode_ca: NameNodeCaOption = None,
    jmx: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="Answer of the NameNode's servlet /jmx in a file, in place of --namenode.",
            show_default=False,
        ),
    ] = None,
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
    policy. Then asks the NameNode where a new block, written by one DataNode, would go now. Without Leeward
    in the NameNode, asks the controller. Nothing is placed.

    Without an answer of the controller, shows the checks of the NameNode alone, and fails.
    """
    from leeward import hdfs

    chunk, copies = _chunks(size, coding)
    if jmx is not None and namenode_ca is not None:
        raise InputError.about(
            "--namenode-ca", f"`{namenode_ca}`: not valid with --jmx, which asks no NameNode"
        )
    node = None
    with name_flags(namenode="--namenode", ca="--namenode-ca", jmx="--jmx"):
        if jmx is None:
            node = hdfs.NameNode(namenode, namenode_ca)
            state = node.state()
        else:
            state = hdfs.SavedNameNode(jmx).state()
    leeward = client(controller, token_file, ca, PATIENCE_S)
    found, checks = _compare(leeward, state)
    datanode = _writer(state, found, writer)
    blocks = "replicated blocks" if coding is None else "erasure-coded blocks"
    decision, decided_by = None, None
    if datanode is not None and node is not None and _explains(state, blocks):
        with name_flags(namenode="--namenode"):
            decision, decided_by = node.explain(blocks, datanode.name, chunk, copies), "namenode"
        checks.append(_check_of_namenode(decision, size, datanode.name))
    elif datanode is not None and found is not None:
        with controller_errors():
            decision, last = _ask_controller(leeward, size, found.hosts[datanode.name], coding)
        decided_by = None if decision is None else "controller"
        checks.append(last)
    document = {
        "namenode": asdict(state),
        "checks": [asdict(one) for one in checks],
        "differences": None if found is None else asdict(found),
        "decided_by": decided_by,
        "decision": decision,
    }
    if not print_data(output, document, "checks", COLUMNS["hdfs check"]):
        rows = [(one.check, one.state, one.detail) for one in checks]
        print_table(("CHECK", "STATE", "FINDING"), "<<<", rows)
        if decision is not None and decided_by == "controller":
            _print_decision(decision, size, state, blocks)
        elif decision is not None:
            _print_of_namenode(decision, size)
    if any(one.state is hdfs.State.FAILED for one in checks):
        raise typer.Exit(1)


def _compare(leeward: "Client", state: "NameNodeState") -> tuple["Differences | None", list["Check"]]:
    """Differences of the topologies, None without an answer of the controller; and the checks of both."""
    from leeward import hdfs
    from leeward.client.http import is_away

    with controller_errors():
        try:
            status, hosts = leeward.status(), list(leeward.hosts())
        except (UnreachableError, ProblemError) as error:
            if not is_away(error):
                raise
            return None, hdfs.check_alone(state, str(error))
    found = hdfs.differences(state.datanodes, {host["host"]: host["rack"] for host in hosts})
    return found, hdfs.check(state, status, hosts, found)


def _explains(state: "NameNodeState", blocks: str) -> bool:
    """True if the NameNode shows decisions about a kind of blocks over HTTP."""
    return any(one.blocks == blocks and one.explains for one in state.policies)


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


def _writer(state: "NameNodeState", found: "Differences | None", writer: str | None) -> "DataNode | None":
    """DataNode that writes the block of the decision; None if the controller knows none that serves.

    Raises:
        InputError: No DataNode has the name `writer`, or the controller does not know its host.
    """
    hosts = {node.name for node in state.datanodes} if found is None else found.hosts.keys()
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
    mode = decision.get("mode", "")
    if not hosts:
        state = hdfs.State.OK if reason in SETTINGS else hdfs.State.WARNING
        return hdfs.Check("decision", state, f"{size} of {writer} is left to HDFS's default policy: {reason}")
    detail = f"{size} of {writer} to {hosts}, by {decision['policy']} in the NameNode"
    if mode in _IDLE_MODES:
        detail += f", if the mode were on; it is {mode}"
    if reason != RANKED:
        return hdfs.Check("decision", hdfs.State.WARNING, f"{detail}: {reason}")
    return hdfs.Check("decision", hdfs.State.OK, detail)


def _ask_controller(
    leeward: "Client", size: str, writer: str, coding: str | None
) -> tuple[dict[str, Any] | None, "Check"]:
    """Decision of the controller without a commit, and its check."""
    from leeward import hdfs

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


def _print_of_namenode(decision: dict[str, Any], size: str) -> None:
    """Prints the candidates of the NameNode's own decision, unless it is left to HDFS's default policy."""
    if not decision["hosts"]:
        return
    now = "in the mode on" if decision.get("mode") in _IDLE_MODES else "now"
    print_text(
        f"\nThe NameNode would {now} place a block of {size}, written by {decision['writer']}, on these"
        " hosts. The candidates of each copy:"
    )
    print_steps(decision["steps"])


def _print_decision(decision: dict[str, Any], size: str, state: "NameNodeState", blocks: str) -> None:
    policy = decision["policy"]
    print_text(f"\nThe controller would now place a block of {size} by {policy}, from these candidates.")
    names = [one.policy for one in state.policies if one.blocks == blocks]
    if any(names):
        print_text(f"The NameNode decides by {names[0]}, and was not asked: its own decision may differ.")
    else:
        print_text(f"The NameNode has no Leeward policy for {blocks}, so HDFS's own policy decides.")
    print_candidates(decision["why"])
