"""`leeward completion`: completion of commands, options and their values in a shell."""

import os
from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import completion_init, get_completion_script  # type: ignore[attr-defined]

from leeward.cli.options import choice, words

EXAMPLES = """\b
Examples:
  leeward completion bash > leeward.bash
  leeward completion zsh > _leeward
  leeward completion fish > leeward.fish

bash reads the script as ~/.local/share/bash-completion/completions/leeward, zsh as _leeward in a folder of
its fpath, and fish as ~/.config/fish/completions/leeward.fish.
"""
VARIABLE = "_LEEWARD_COMPLETE"
"""Environment variable by which the script asks for completions."""


class Shell(StrEnum):
    """A shell with completion."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(
    shell: Annotated[
        Shell,
        typer.Argument(
            metavar="|".join(Shell),
            parser=choice(Shell),
            autocompletion=words(Shell),
            help="Shell of the script.",
            show_default=False,
        ),
    ],
) -> None:
    """Print a script that completes commands in a shell."""
    print(get_completion_script(prog_name="leeward", complete_var=VARIABLE, shell=shell))


def prepare() -> None:
    """Prepares the answer to a shell, if a shell runs the command for completions."""
    if VARIABLE in os.environ:
        completion_init()
