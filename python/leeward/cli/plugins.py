"""Commands of other packages, found by the entry point group `leeward.commands`.

An entry point has the name of the command and refers to a module, like the modules of this package. The
module has a function of that name, `EXAMPLES` for the end of its help, and `SHORT_HELP` for the list of
commands.
"""

from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import cast

import typer

from leeward.cli.groups import Commands
from leeward.errors import InputError

GROUP = "leeward.commands"
REPOSITORY_PLUGINS = {"reproduce": "pip install ./reproduce, in the folder of Leeward's sources"}
"""Plug-ins in the repository of Leeward, and the command that installs each."""


def add_commands(app: Commands, section: str) -> None:
    """Adds the commands of installed plug-ins, in a section of the help of `app`.

    A plug-in that does not load gets a command that reports the problem. So does a plug-in of the repository
    that is not installed.
    """
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    for name in sorted(entries.keys() | REPOSITORY_PLUGINS.keys()):
        if name not in entries:
            _add_refusal(app, name, "the plug-in is not installed", REPOSITORY_PLUGINS[name])
            continue
        try:
            module = _load(entries[name])
        except Exception as error:
            reason = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
            _add_refusal(app, name, f"the plug-in does not load: {reason}", _reinstallation(entries[name]))
        else:
            app.command(name, epilog=module.EXAMPLES, short_help=module.SHORT_HELP, rich_help_panel=section)(
                getattr(module, name)
            )


def _load(entry: EntryPoint) -> ModuleType:
    """The module of a plug-in.

    Raises:
        Exception: The module does not load, lacks a part, or has a function that cannot be a command.
    """
    module = entry.load()
    plug_in = Commands()
    plug_in.command(entry.name, epilog=module.EXAMPLES, short_help=module.SHORT_HELP)(
        getattr(module, entry.name)
    )
    # Typer reads the parameters of a function when it builds a command. This build finds errors in them.
    typer.main.get_command(plug_in)
    return cast("ModuleType", module)


def _reinstallation(entry: EntryPoint) -> str | None:
    """Command that installs a plug-in again; None if the package of the plug-in is unknown."""
    if entry.name in REPOSITORY_PLUGINS:
        return REPOSITORY_PLUGINS[entry.name]
    return f"pip install --force-reinstall {entry.dist.name}" if entry.dist else None


def _add_refusal(app: Commands, name: str, problem: str, hint: str | None) -> None:
    def refuse(context: typer.Context) -> None:
        error = InputError.about(name, problem)
        if hint:
            error.add_note(hint)
        raise error

    anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name, hidden=True, add_help_option=False, context_settings=anything)(refuse)
