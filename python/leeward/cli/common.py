"""What all commands share: the option --quiet, and lists.

An option whose metavar ends in `,...` is a list. On the command line, it takes commas and repeats alike:
`--exclude r1,r2` is `--exclude r1 --exclude r2`. The function of the command declares it as a text, and gets
the parts joined by commas, or as a list of texts, and gets the parts.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import typer
from typer.models import OptionInfo

from leeward._texts import split_at_commas
from leeward.cli.notes import quiet

Function = TypeVar("Function", bound=Callable[..., Any])
LIST = ",..."
"""End of the metavar of a list."""
_QUIET = inspect.Parameter(
    "quiet",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "-q",
            "--quiet",
            # Parsers of other options may print notes.
            is_eager=True,
            callback=lambda value: quiet.set(bool(value)),
            help="Print results, warnings and errors, but no progress and no notes.",
        ),
    ],
)


def runs_until_stopped(function: Function) -> Function:
    """Marks a command that runs until it is stopped. Its lines on stderr are a log, so it has no --quiet."""
    function.__dict__["runs_until_stopped"] = True
    return function


def with_common_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as Typer reads it: with --quiet, and lists that take commas and repeats."""
    has_quiet = not getattr(function, "runs_until_stopped", False)
    signature = inspect.signature(function)
    texts = [name for name, one in signature.parameters.items() if _is_list(one) and not _has_parts(one)]
    parts = [name for name, one in signature.parameters.items() if _is_list(one) and _has_parts(one)]

    @wraps(function)
    def command(*arguments: Any, **values: Any) -> Any:
        values.pop("quiet", None)
        for name in texts:
            values[name] = None if values[name] is None else ",".join(values[name])
        for name in parts:
            values[name] = None if values[name] is None else _split(values[name])
        return function(*arguments, **values)

    parameters = [_as_list(one) if one.name in texts else one for one in signature.parameters.values()]
    parameters += [_QUIET] if has_quiet else []
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined] # typer reads it
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _is_list(parameter: inspect.Parameter) -> bool:
    """True for an option whose metavar is that of a list."""
    options = [one for one in get_args(parameter.annotation) if isinstance(one, OptionInfo)]
    return any((option.metavar or "").endswith(LIST) for option in options)


def _has_parts(parameter: inspect.Parameter) -> bool:
    """True for a parameter that is a list of texts, or None."""
    kind = get_args(parameter.annotation)[0]
    return list[str] in (kind, *get_args(kind))


def _as_list(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter with a text as one with a list of texts."""
    option = next(one for one in get_args(parameter.annotation) if isinstance(one, OptionInfo))
    default = [parameter.default] if isinstance(parameter.default, str) else parameter.default
    return parameter.replace(annotation=Annotated[list[str] | None, option], default=default)


def _split(values: Sequence[str]) -> list[str]:
    """Parts of texts at commas. The name of an existing file stays whole."""
    return [
        part.strip()
        for value in values
        for part in ([value] if "," in value and Path(value).exists() else split_at_commas(value))
    ]
