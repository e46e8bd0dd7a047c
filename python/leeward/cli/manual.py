"""Manual pages of all commands, in the format of man(7), from the same descriptions as `--help`."""

import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

import typer

from leeward import __version__
from leeward.cli.help import Command, Group, examples, parameters

_WIDTH = 70
"""Width of examples, in characters."""


def write(app: typer.Typer, folder: Path) -> int:
    """Writes a page for `leeward` and one for each of its commands: `leeward.1`, `leeward-place-tasks.1`.

    Args:
        app: The command line.
        folder: Existing folder for the pages.

    Returns:
        Number of the pages.
    """
    count = 0
    for name, text in pages(app):
        (folder / f"{name}.1").write_text(text, encoding="utf-8")
        count += 1
    return count


def pages(app: typer.Typer) -> Iterator[tuple[str, str]]:
    """Name and text of each page."""
    root: Any = typer.main.get_command(app)
    settings: Any = root.context_settings
    yield from _pages(typer.Context(root, info_name="leeward", **settings))


def _pages(context: Any) -> Iterator[tuple[str, str]]:
    command = context.command
    children = [
        typer.Context(child, info_name=name, parent=context)
        for name in (command.list_commands(context) if isinstance(command, Group) else ())
        if not (child := command.commands[name]).hidden
    ]
    yield _name(context), _page(context, children)
    for child in children:
        yield from _pages(child)


def _name(context: Any) -> str:
    """Name of a command's page: `leeward place tasks` has `leeward-place-tasks`."""
    names = []
    while context is not None:
        names.append(context.info_name)
        context = context.parent
    return "-".join(reversed(names))


def _page(context: Any, children: list[Any]) -> str:
    command: Command | Group = context.command
    name = _name(context)
    summary, *paragraphs = re.split(r"\n\s*\n", cleandoc(command.help or "").partition("\f")[0])
    arguments, options = parameters(command, context)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH "{name.upper()}" 1 "" "leeward {__version__}" "Leeward"',
        *(".SH NAME", f"{_escape(name)} \\- {_text(summary).rstrip('.')}"),
        *(".SH SYNOPSIS", f".B {_escape(context.command_path)}", _escape(usage)),
    ]
    if paragraphs:
        lines += [".SH DESCRIPTION", *_joined(map(_text, paragraphs))]
    for title, records in (("ARGUMENTS", arguments), ("OPTIONS", options)):
        if records:
            lines.append(f".SH {title}")
            for names, description in records:
                lines += [".TP", f".B {_escape(names)}", _text(description)]
    if children:
        lines.append(".SH COMMANDS")
        for child in children:
            lines += [".TP", f".B {_escape(_name(child))}(1)", _text(child.command.get_short_help_str(1000))]
    if isinstance(command, Group) and command.start:
        lines += [".SH START HERE", *_example_lines(command.start)]
    if command.epilog:
        lines += [".SH EXAMPLES", *_example_lines(command.epilog)]
    if context.parent:
        lines += [".SH SEE ALSO", f".BR {_escape(_name(context.parent))} (1)"]
    return "\n".join(lines) + "\n"


def _example_lines(text: str) -> Iterator[str]:
    yield ".nf"
    yield from (_escape(line) for line in examples(text, _WIDTH) if line != "Examples:")
    yield ".fi"


def _joined(paragraphs: Iterator[str]) -> Iterator[str]:
    for number, paragraph in enumerate(paragraphs):
        if number:
            yield ".PP"
        yield paragraph


def _text(text: str) -> str:
    """A text on one line, which man wraps."""
    return _escape(" ".join(text.replace("\b", "").split()))


def _escape(text: str) -> str:
    """A text without the control characters of roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)
