"""Options and errors of the commands that send requests to a controller."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from leeward.cli.options import name_flags, parse_path
from leeward.client import Client, ProblemError, UnreachableError
from leeward.client.base import URL
from leeward.errors import InputError

ControllerOption = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar="LEEWARD_CONTROLLER",
        show_envvar=True,
        help="Address of the controller.",
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=parse_path,
        envvar="LEEWARD_TOKEN_FILE",
        show_envvar=True,
        help="File with the client's token; by default the token in the variable LEEWARD_TOKEN.",
        show_default=False,
    ),
]
CaOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=parse_path,
        envvar="LEEWARD_CA_FILE",
        show_envvar=True,
        help="PEM file with the certificate authorities of the controller; by default the system's.",
        show_default=False,
    ),
]
CONTROLLER = URL
"""Default address of a controller."""


def client(url: str, token_file: Path | None, ca: Path | None, patience_s: float) -> Client:
    """A client of the controller that the options name.

    Raises:
        InputError: The address is invalid, or a file cannot be read.
    """
    token = os.environ.get("LEEWARD_TOKEN") or None
    if token_file is not None:
        try:
            token = token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not text"
            raise InputError.about("--token-file", f"`{token_file}`: {why}") from None
        if not token:
            raise InputError.about("--token-file", f"`{token_file}`: the file holds no token")
    with name_flags(url="--controller", token="--token-file" if token_file else "LEEWARD_TOKEN", ca="--ca"):
        return Client(url, token=token, ca=ca, timeout_s=30.0, patience_s=patience_s)


@contextmanager
def controller_errors() -> Iterator[None]:
    """Turns a rejected request, or an unavailable controller, into an error of one line.

    Raises:
        InputError: The controller rejects a request, or does not answer.
    """
    try:
        with name_flags(ca="--ca"):
            yield
    except UnreachableError as error:
        report = InputError.about("--controller", str(error))
        report.add_note("leeward serve starts a controller; --controller URL gives its address")
        raise report from None
    except ProblemError as error:
        report = InputError.about("--controller", str(error))
        if error.word in ("unauthorized", "forbidden"):
            report.add_note("--token-file FILE, or the variable LEEWARD_TOKEN, gives the client's token")
        raise report from None
