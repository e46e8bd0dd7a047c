"""Groups of commands. A command has a file of its name, with a function of this name and `EXAMPLES`."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import typer

from leeward.cli.common import with_common_options
from leeward.cli.help import Command, Group

Function = TypeVar("Function", bound=Callable[..., Any])


class Commands(typer.Typer):
    """A group of commands, with the help texts of `leeward.cli.help`."""

    def __init__(self, cls: type[Group] = Group, **settings: Any) -> None:
        """Makes an empty group with the help of `cls`; takes the settings of `typer.Typer`."""
        plain: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}
        super().__init__(cls=cls, add_completion=False, **plain, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        """Adds a function as a command; takes the settings of `typer.Typer.command`."""
        add_command = super().command(name, cls=Command, **settings)

        def decorate(function: Function) -> Function:
            add_command(with_common_options(function))
            return function

        return decorate


def group(*modules: ModuleType) -> Commands:
    """Builds a group of commands from their files, in the given order."""
    app = Commands()
    for module in modules:
        add(app, module)
    return app


def add(app: Commands, module: ModuleType, section: str | None = None) -> None:
    """Adds the command or the group of a file, in a section of the help of `app`."""
    name = module.__name__.rpartition(".")[2]
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name, rich_help_panel=section)
    else:
        app.command(name, epilog=module.EXAMPLES, rich_help_panel=section)(getattr(module, name))
