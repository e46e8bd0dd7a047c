"""`leeward probe listen`: the listener of a host that takes part in measurements."""

import ipaddress
import signal
import socket
import sys
from typing import Annotated

import typer

from leeward import _native
from leeward.cli.common import runs_until_stopped
from leeward.cli.options import name_flags
from leeward.cli.probe.options import SecretOption, secret_of
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward probe listen                                             for this machine alone
  leeward probe listen --listen 0.0.0.0:7601 --secret secret.txt

The listener runs until it is interrupted (Ctrl-C) or terminated. It uses one port, for TCP and for UDP.
"""

MOST_PORT = 65_535


@runs_until_stopped
def listen(
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address to listen on; port 0 selects a free port.")
    ] = "127.0.0.1:7601",
    secret: SecretOption = None,
) -> None:
    """Take part in measurements.

    Receives packets and, on request, sends packets to another listener. A train sends at most 512 MiB, and a
    transfer takes at most one minute.
    """
    address, key = resolve_address(listen), secret_of(secret)

    def on_listen(local: str) -> None:
        # The default action ends the process at once; Python's handler would wait until the listener ends.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        print(f"listening on {local}", file=sys.stderr, flush=True)
        if key is None and not ipaddress.ip_address(local.rpartition(":")[0].strip("[]")).is_loopback:
            print(
                "note: any host that reaches this port may order measurements; --secret FILE prevents it",
                file=sys.stderr,
                flush=True,
            )

    with name_flags(listen="--listen"):
        _native.probe_listen(address, key, on_listen)


def resolve_address(listen: str) -> str:
    """Resolves a name to a numeric address with a port; to an IPv4 address if the name has one.

    Raises:
        InputError: The name has no address, or the text is not an address and port.
    """
    name, _, port = listen.rpartition(":")
    if not name or not port.isdecimal() or int(port) > MOST_PORT:
        return listen
    try:
        addresses = socket.getaddrinfo(name.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError.about("--listen", f"`{listen}`: {why}") from error
    family, *_, (host, *_) = min(addresses, key=lambda one: one[0] != socket.AF_INET)
    return f"[{host!s}]:{port}" if family == socket.AF_INET6 else f"{host!s}:{port}"
