"""`leeward kubernetes top|explain|hotspots|check`: the commands of the kubectl plugin, by its program."""

import os
import shutil
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from leeward.cli.controller import CONTROLLER
from leeward.cli.groups import Commands
from leeward.errors import InputError

PROGRAM = "kubectl-leeward"
"""Program that kubectl runs for `kubectl leeward`."""
CONTROLLER_VARIABLE = "LEEWARD_CONTROLLER"
SUMMARIES = {
    "top": "Racks or nodes by the load of their links, the fullest first.",
    "explain": "The demand of a pod, the links of its node, and why it may move or stays.",
    "hotspots": "Hot links, and the pods that send or receive most there.",
    "check": "Problems of the cluster, its nodes and pods, and the service.",
}
"""Commands of the program, each with its purpose, as the program lists them."""
ARGUMENTS = {"top": "--nodes --limit 50", "explain": "pod/web-0 -n shop", "hotspots": "-o json", "check": ""}
"""Arguments of an example of each command."""
ArgumentsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ARGUMENTS...",
        help="Arguments and options of the kubectl plugin; `-- --help` lists them.",
        show_default=False,
    ),
]


def add_commands(app: Commands) -> None:
    """Adds the commands to a group."""
    for name, summary in SUMMARIES.items():
        example = f"leeward kubernetes {name} {ARGUMENTS[name]}".rstrip()
        epilog = f"\b\nExamples:\n  {example}\n  leeward kubernetes {name} -- --help\n"
        settings = {"ignore_unknown_options": True}
        app.command(name, epilog=epilog, context_settings=settings)(_command(name, summary))


def _command(name: str, summary: str) -> Callable[..., None]:
    def command(arguments: ArgumentsArgument = None) -> None:
        become(name, arguments or [])

    command.__doc__ = f"""{summary}

    The program {PROGRAM} of the kubectl plugin runs with these arguments, and must be on the path. The
    service, the token and the authority are those of the variables LEEWARD_CONTROLLER, LEEWARD_TOKEN_FILE or
    LEEWARD_TOKEN, and LEEWARD_CA_FILE, as in other commands.
    """
    return command


def become(name: str, arguments: list[str]) -> None:
    """Replaces this process by the program.

    Raises:
        InputError: The program is not installed.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        error = InputError.about(PROGRAM, "no such program on the path")
        error.add_note("`make kubernetes-binaries` builds it into dist/: put it on the path")
        raise error
    sys.stdout.flush()
    sys.stderr.flush()
    # All commands of `leeward` look for the service at the same address. The program reads the variables of
    # the token and of the authority as they do.
    environment = {CONTROLLER_VARIABLE: CONTROLLER} | os.environ
    os.execve(program, [program, name, *arguments], environment)
