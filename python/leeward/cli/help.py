"""Help texts: groups of commands in the order of use, and examples that fit the width of the terminal."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_MOST_NAMES = 28
"""Greatest width of the column of names, in characters."""
_COMMAND = re.compile(r"  \S")
"""Start of a command in a list of examples: two spaces."""
_PART = re.compile(r"(?:-\S+ (?![-&|>]))?(?:'[^']*'|\"[^\"]*\"|\S)+")
"""A word of a command line, or an option with its value; quoted spaces do not end it."""


class Command(TyperCommand):
    """A command whose help lists arguments by their names and wraps examples."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Parts of the usage line, without brackets around required arguments."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the sections of arguments and options."""
        _write_parameters(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Writes the examples."""
        _write_examples(self.epilog, formatter)


class Group(TyperGroup):
    """A group of commands; each section of its help has the commands of a `rich_help_panel`.

    Attributes:
        order: Names of commands in the order of the help; other commands follow.
        start: Commands for a new user, shown first.
    """

    order: Sequence[str] = ()
    start: str | None = None

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands, in the order of the help."""
        return sorted(self.commands, key=lambda name: (*self.order, name).index(name))

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Writes the description, and the commands for a new user."""
        super().format_help_text(ctx, formatter)
        if self.start:
            with formatter.section("Start here"):
                _write_lines(self.start, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the sections of options and of commands."""
        _write_parameters(self, ctx, formatter)
        for title, names in self._sections():
            commands = [self.commands[name] for name in names]
            with formatter.section(title):
                _write_records(
                    [
                        (name, command.get_short_help_str(formatter.width * 2))
                        for name, command in zip(names, commands, strict=True)
                    ],
                    formatter,
                )

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Writes the examples."""
        _write_examples(self.epilog, formatter)

    def _sections(self) -> list[tuple[str, list[str]]]:
        """Titles and names of the visible commands."""
        sections: dict[str, list[str]] = {}
        for name in self.list_commands(None):
            command = self.commands[name]
            if not command.hidden:
                panel = getattr(command, "rich_help_panel", None)
                sections.setdefault(panel if isinstance(panel, str) else "Commands", []).append(name)
        return list(sections.items())


def parameters(
    command: TyperCommand | TyperGroup, context: typer.Context
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Names and descriptions of the arguments and of the options of a command."""
    arguments, options = [], []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            # The record has the name and the Python type.
            arguments.append((record[0].split()[0], record[1]))
        else:
            options.append(record)
    return arguments, options


def _write_parameters(command: TyperCommand | TyperGroup, context: Any, formatter: Any) -> None:
    for title, records in zip(("Arguments", "Options"), parameters(command, context), strict=True):
        if records:
            with formatter.section(title):
                _write_records(records, formatter)


def _write_records(records: Sequence[tuple[str, str]], formatter: Any) -> None:
    """Writes names and, in a second column, descriptions, without breaking a word."""
    indent = formatter.current_indent
    column = indent + 2 + min(_MOST_NAMES, max(len(names) for names, _description in records))
    for names, description in records:
        lines = textwrap.wrap(
            description, formatter.width - column, break_long_words=False, break_on_hyphens=False
        )
        first = f"{'':{indent}}{names}  "
        if len(first) <= column and lines:
            formatter.write(f"{first:{column}}{lines.pop(0)}\n")
        else:
            formatter.write(f"{first.rstrip()}\n")
        for line in lines:
            formatter.write(f"{'':{column}}{line}\n")


def _write_examples(epilog: str | None, formatter: Any) -> None:
    if epilog:
        formatter.write("\n")
        _write_lines(epilog, formatter)


def _write_lines(text: str, formatter: Any) -> None:
    indent = " " * formatter.current_indent
    for line in examples(text, formatter.width - formatter.current_indent):
        formatter.write(f"{indent}{line}".rstrip() + "\n")


def examples(text: str, width: int) -> Iterator[str]:
    """Lines of examples, wrapped.

    A command continues after a backslash, so that a reader can copy it at any width. A word that is
    longer than a line stays whole.

    Args:
        text: Examples: commands after two spaces, and texts.
        width: Width of the lines, in characters.
    """
    for line in re.sub(r" \\\n\s*", " ", text.replace("\b\n", "")).splitlines():
        if _COMMAND.match(line):
            yield from _wrap_command(line[2:], width)
        else:
            yield from textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]


def _wrap_command(command: str, width: int) -> Iterator[str]:
    if len(command) + 2 <= width:
        yield f"  {command}"
        return
    command, _, comment = command.partition("   ")
    if comment:
        yield from textwrap.wrap(comment.strip(), width, initial_indent="  # ", subsequent_indent="  # ")
    line = " "
    for word in _PART.findall(command):
        if len(line) + 1 + len(word) > width - 2 and line.strip():
            yield f"{line} \\"
            line = " " * 5
        line += f" {word}"
    yield line
