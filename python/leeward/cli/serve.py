"""`leeward serve`: the service."""

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from leeward import _native
from leeward.cli.cluster import read
from leeward.cli.options import given_by, seed
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward serve --cluster c.yaml
  leeward serve --cluster c.yaml --policy sinbad:remote_racks=2 --listen 0.0.0.0:7600
  leeward serve --cluster c.yaml --store /var/lib/leeward/store.db --durable power
  curl localhost:7600/v1/status

It runs until it is interrupted (Ctrl-C) or terminated, and then finishes the requests under way.
"""

MOST_PORT = 65_535


def serve(
    cluster: Annotated[str, typer.Option(metavar="FILE", help="Cluster file.", show_default=False)],
    policy: Annotated[
        str, typer.Option(metavar="POLICY", help="A policy, with settings after colons.")
    ] = "sinbad",
    task_policy: Annotated[str, typer.Option(metavar="POLICY", help="The same for tasks.")] = "leeward",
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to listen; port 0 finds a free one.")
    ] = "127.0.0.1:7600",
    interval: Annotated[str, typer.Option(metavar="TIME", help="Time between reports of a link.")] = "1s",
    seed: Annotated[int, typer.Option(metavar="N", parser=seed, help="Seed of ties, from 0.")] = 1,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where decisions are kept, or `memory`.",
            show_default="by the cluster's name",
        ),
    ] = None,
    durable: Annotated[
        str, typer.Option(metavar="WHAT", help="What kept decisions outlive: `process` or `power`.")
    ] = "process",
) -> None:
    """Take in telemetry and place replicas and tasks over HTTP."""
    from leeward.simulation import check_policies

    network = read(cluster)
    with given_by(policies="--policy"):
        check_policies([policy])
    address = resolved(listen)
    kept = kept_in(store, network.name)

    def tell(address: str) -> None:
        print(f"listening on http://{address}", file=sys.stderr, flush=True)
        print(f"decisions are kept in {kept or 'memory'}", file=sys.stderr, flush=True)

    # The service stops by itself when it is told to. Python's own handler would end it with an exception.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        _native.serve(cluster, policy, task_policy, address, interval, seed, kept, durable, tell)
    except InputError as error:
        # What the ledger says of its interval names it; and an address is told as it was given.
        message = error.message.removeprefix("interval: ").replace(f"`{address}`", f"`{listen}`")
        raise InputError(error.file, error.line, error.column, error.field, message) from error


def kept_in(store: str | None, name: str) -> str | None:
    """The file of a store, whose folder is there; None for one in memory.

    Raises:
        InputError: Its folder cannot be made.
    """
    if store == "memory":
        return None
    if store is None:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "leeward"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError("--store", None, None, None, f"{folder}: {error.strerror}") from error
        store = str(folder / f"{name}.db")
    return store


def resolved(listen: str) -> str:
    """An address with a port, where a name was given; one of IPv4, if it has any.

    Raises:
        InputError: The name stands for no address; or it is no address and port.
    """
    name, _, port = listen.rpartition(":")
    if not name or not port.isdecimal() or int(port) > MOST_PORT:
        return listen
    try:
        found = socket.getaddrinfo(name.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError("--listen", None, None, None, f"`{listen}`: {why}") from error
    family, *_, (host, *_) = min(found, key=lambda one: one[0] != socket.AF_INET)
    return f"[{host!s}]:{port}" if family == socket.AF_INET6 else f"{host!s}:{port}"
