"""Scripts with cells, run as a notebook runs them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_CELL = re.compile(r"^# %%(.*)$", re.MULTILINE)


def cells(text: str) -> Iterator[str]:
    """Code of each cell; the text before the first one is a cell too."""
    before, *rest = _CELL.split(text)
    yield before
    for mark, code in zip(rest[::2], rest[1::2], strict=True):
        if "[markdown]" not in mark:
            yield code


def results(path: Path) -> Iterator[Any]:
    """Runs the cells; yields the value that a notebook would show below each, or None."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in cells(path.read_text()):
        tree = ast.parse(code)
        last = tree.body[-1] if tree.body else None
        shown = last.value if isinstance(last, ast.Expr) else None
        if shown is not None:
            tree.body.pop()
        exec(compile(tree, str(path), "exec"), names)
        yield None if shown is None else eval(compile(ast.Expression(shown), str(path), "eval"), names)


def is_picture(value: Any) -> bool:
    """True for a value that a notebook shows as a picture."""
    if type(value).__module__ == "matplotlib.figure":
        return True
    for show in ("_repr_svg_", "_repr_html_"):
        method = getattr(value, show, None)
        if method is not None and "<svg" in method():
            return True
    return False
