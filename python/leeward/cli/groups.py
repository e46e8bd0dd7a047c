"""Groups of commands, of which each has a file with its name: a function, and examples for its help."""

from types import ModuleType

import typer


def group(*modules: ModuleType) -> typer.Typer:
    """The commands of some files, in their order."""
    app = typer.Typer(rich_markup_mode=None)
    for module in modules:
        name = module.__name__.rpartition(".")[2]
        app.command(name, epilog=module.EXAMPLES)(getattr(module, name))
    return app
