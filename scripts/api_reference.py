"""Public names of a module with their signatures and docstrings, as a part of a page."""

import ast
import importlib
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any, is_typeddict

SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Yields):")
ENTRY = re.compile(r"([\w*.]+): (.*)")
WIDTH = 110
"""Length of a signature above which each parameter has a line."""


def api(module: str) -> str:
    """Returns the public names of a module, those that it lists in `__all__`."""
    loaded = importlib.import_module(module)
    parts = [markdown(loaded.__doc__ or "")]
    for name in loaded.__all__:
        value = getattr(loaded, name)
        # A module that another one lists has its own part; a constant has no docstring at runtime.
        if not inspect.isclass(value) and not callable(value):
            continue
        parts += [f"### `{module}.{name}`", "", *described(name, value)]
    return "\n" + "\n".join(parts) + "\n"


def described(name: str, value: Any) -> list[str]:
    """Signature, docstring and members of a class or function."""
    if not inspect.isclass(value):
        return [*signature(name, value), markdown(own_doc(value))]
    if is_typeddict(value):
        return [markdown(own_doc(value) or assigned_doc(value)), *fields(value), ""]
    lines = [*signature(name, value), markdown(own_doc(value))]
    for member, attribute in sorted(vars(value).items()):
        if member.startswith("_") or not (inspect.getdoc(getattr(value, member, None)) or "").strip():
            continue
        plain = attribute.__func__ if isinstance(attribute, staticmethod | classmethod) else attribute
        if isinstance(plain, property) or inspect.isgetsetdescriptor(plain):
            lines += [f"#### `{name}.{member}`", "", markdown(inspect.getdoc(plain) or "")]
        elif callable(plain):
            shown = signature(f"{name}.{member}", getattr(value, member))
            lines += [f"#### `{name}.{member}()`", "", *shown, markdown(inspect.getdoc(plain) or "")]
    return lines


def fields(value: Any) -> list[str]:
    """A line for each field of a dictionary with types: its type, and the text below it in the source."""
    texts = dict(field_texts(value))
    lines = []
    for field, kind in inspect.get_annotations(value).items():
        text = texts.get(field)
        lines.append(f"* `{field}`: `{inspect.formatannotation(kind)}`" + (f". {text}" if text else ""))
    return lines


def field_texts(value: Any) -> Iterator[tuple[str, str]]:
    """Fields of a dictionary with types and of those that it extends, with the texts below them."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(value))).body
    except OSError:
        # Without the syntax of a class, as for fields whose names are keywords.
        return
    assert isinstance(tree, ast.ClassDef)
    for base in tree.bases:
        extended = vars(sys.modules[value.__module__]).get(ast.unparse(base))
        if is_typeddict(extended):
            yield from field_texts(extended)
    for field, below in itertools.pairwise(tree.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            yield field.target.id, " ".join(string(below).split())


def assigned_doc(value: Any) -> str:
    """The text below the assignment that makes a type; empty without one."""
    body = ast.parse(inspect.getsource(sys.modules[value.__module__])).body
    for statement, below in itertools.pairwise(body):
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == value.__name__ for target in targets):
            return string(below)
    return ""


def string(statement: ast.stmt) -> str:
    """The text of a statement that is a string; empty for another one."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def own_doc(value: Any) -> str:
    """Docstring of a class or function; of a class also that of its constructor."""
    # A dictionary with types that has no text of its own has that of `dict`.
    has_none = is_typeddict(value) and value.__doc__ in (None, dict.__doc__)
    parts = [] if has_none else [inspect.getdoc(value) or ""]
    if inspect.isclass(value) and inspect.isfunction(vars(value).get("__init__")):
        parts.append(inspect.getdoc(vars(value)["__init__"]) or "")
    # A dataclass and a dictionary with types have a docstring that Python makes from their fields.
    return "\n\n".join(part for part in parts if part and not re.match(r"\w+\(.*\)$", part))


def signature(name: str, value: Any) -> list[str]:
    """Block with the signature of a function or class; empty without one."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return []
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in found.parameters.values()
        # Clocks and the like, which tests replace, have functions as their defaults.
        if parameter.name != "self" and not inspect.isroutine(parameter.default)
    ]
    found = inspect.Signature(parameters)
    text = f"{name}{found}"
    if len(text) > WIDTH:
        inner = str(found)[1:-1]
        text = f"{name}(\n    " + re.sub(r", (?=\*|\w+=)", ",\n    ", inner) + "\n)"
    return ["```text", text, "```", ""]


def markdown(text: str) -> str:
    """A docstring with its sections as lists and its examples as blocks."""
    out: list[str] = []
    section, in_code = "", False
    for line in inspect.cleandoc(text).splitlines():
        is_code = line.startswith(">>>") or (in_code and line.strip() != "")
        if is_code != in_code:
            out.append("```pycon" if is_code else "```")
            in_code = is_code
        if is_code:
            out.append(line)
        elif SECTION.fullmatch(line):
            section = line[:-1]
            out += [f"**{section}**", ""]
        elif section and line.startswith("    "):
            entry = ENTRY.match(line[4:]) if section != "Returns" else None
            out.append(f"* `{entry[1]}`: {entry[2]}" if entry else f"  {line.strip()}")
        else:
            section = section if not line.strip() else ""
            out.append(line)
    if in_code:
        out.append("```")
    return "\n".join(out) + "\n"
