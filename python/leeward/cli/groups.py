"""Groups of commands; each command has a file with its name: a function, and examples for its help."""

from types import ModuleType

import typer


def group(*modules: ModuleType) -> typer.Typer:
    """Commands of some files, in their order."""
    app = typer.Typer(rich_markup_mode=None)
    for module in modules:
        name = module.__name__.rpartition(".")[2]
        app.command(name, epilog=module.EXAMPLES)(getattr(module, name))
    return app
