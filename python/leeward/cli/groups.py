"""Groups of commands. A command has a file of its name, with a function of this name and `EXAMPLES`."""

from types import ModuleType

import typer


def group(*modules: ModuleType) -> typer.Typer:
    """Builds a group of commands from their files, in the given order."""
    app = typer.Typer(rich_markup_mode=None)
    for module in modules:
        name = module.__name__.rpartition(".")[2]
        app.command(name, epilog=module.EXAMPLES)(getattr(module, name))
    return app
