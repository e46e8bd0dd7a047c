"""Lines on stderr: notes, which --quiet omits, and warnings and errors, which always appear.

On a terminal, lines wrap at spaces.
"""

import shutil
import sys
import textwrap
from contextvars import ContextVar

quiet = ContextVar("quiet", default=False)
"""True under --quiet."""


def print_note(text: str = "", doubt: bool = False) -> None:
    """Prints a note: a file that was written, the meaning of a word, an assumption.

    Args:
        text: The note.
        doubt: True if the note may change how the user reads the answer; --quiet keeps such a note.
    """
    if doubt or not quiet.get():
        _print(text)


def print_warning(text: str) -> None:
    """Prints a warning: the answer may differ from what the user expects."""
    _print(f"warning: {text}")


def print_error(text: str) -> None:
    """Prints an error of a command that goes on, or that ends with code 1."""
    _print(f"error: {text}")


def _print(text: str) -> None:
    for line in text.split("\n"):
        print(fit(line, sys.stderr.isatty()), file=sys.stderr)


def fit(line: str, on_terminal: bool) -> str:
    """A line of text as it is printed: on a terminal it wraps at spaces, elsewhere it stays whole."""
    if not on_terminal or not line.strip():
        return line
    width = shutil.get_terminal_size().columns
    return "\n".join(textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False))
