"""The extension module: the stub declares all its members, and every method has a description."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mypy import stubtest

import leeward
from leeward import _native

STUB = Path(leeward.__file__).with_name("_native.pyi")


def test_the_stub_declares_the_extension_module(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("MYPYPATH", str(STUB.parents[1]))
    monkeypatch.chdir(STUB.parents[2])
    options = stubtest.parse_options(["leeward._native", "--mypy-config-file", "pyproject.toml"])
    problems = stubtest.test_stubs(options)
    assert problems == 0, capsys.readouterr().out


def methods() -> Iterator[tuple[str, object]]:
    """Public methods and properties of the module's classes."""
    for name, value in vars(_native).items():
        if inspect.isclass(value):
            for method in vars(value):
                if not method.startswith("_"):
                    yield f"{name}.{method}", getattr(value, method)


def test_help_describes_every_method() -> None:
    assert [name for name, value in methods() if not (value.__doc__ or "").strip()] == []


def words(text: str | None) -> str:
    """The first sentence of a description, without line breaks."""
    return re.sub(r"\s+", " ", (text or "").strip()).partition(". ")[0].rstrip(".")


def test_the_stub_and_help_describe_a_method_with_the_same_words() -> None:
    declared = {
        f"{kind.name}.{method.name}": ast.get_docstring(method)
        for kind in ast.parse(STUB.read_text()).body
        if isinstance(kind, ast.ClassDef)
        for method in kind.body
        if isinstance(method, ast.FunctionDef)
    }
    described = {name: value.__doc__ for name, value in methods()}
    differs = {
        name: (words(declared[name]), words(text))
        for name, text in described.items()
        if name in declared and words(declared[name]) != words(text)
    }
    assert differs == {}
