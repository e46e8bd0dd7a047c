"""The modules of a crate use each other in one direction, so that each can be read after those that it uses.

A module and its submodules are one room: uses between them do not count.
"""

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CRATES = sorted((Path(__file__).resolve().parents[2] / "crates").glob("*/src"))
COMMENT = re.compile(r"//[^\n]*")
UNIT_TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod \w+ \{.*", re.DOTALL)
USE = re.compile(r"\buse\s+((?:crate|super|self)::[^;]+);")
PATH = re.compile(r"\b(?:crate|super)(?:::\w+)+")

Module = tuple[str, ...]


def modules(sources: Path) -> dict[Module, str]:
    """Code of each module of a library, without comments and unit tests."""
    found = {}
    for file in sources.rglob("*.rs"):
        parts = file.relative_to(sources).with_suffix("").parts
        if parts[0] != "bin" and parts[-1] != "tests":
            name = parts[:-1] if parts[-1] in {"mod", "lib"} else parts
            found[name] = UNIT_TESTS.sub("", COMMENT.sub("", file.read_text()))
    return found


def paths(code: str) -> Iterator[str]:
    """Paths to other modules, with each name of a list as a path of its own."""
    yield from PATH.findall(USE.sub("", code))
    for used in USE.findall(code):
        pending = [re.sub(r"\s", "", used)]
        while pending:
            path = pending.pop()
            inner = re.search(r"\{([^{}]*)\}", path)
            if inner:
                pending += [
                    path[: inner.start()] + name + path[inner.end() :] for name in inner[1].split(",")
                ]
            else:
                yield path


def target(user: Module, path: str, known: dict[Module, str]) -> Module:
    """The module that a path leads to: its longest part that is a module."""
    first, *names = path.split("::")
    base = () if first == "crate" else user if first == "self" else user[:-1]
    while names and names[0] == "super":
        base, names = base[:-1], names[1:]
    full = (*base, *names)
    return next(full[:end] for end in range(len(full), -1, -1) if full[:end] in known)


def uses(sources: Path) -> Iterator[tuple[Module, Module]]:
    """Pairs of a module and a module that it uses, without pairs of a module and its own submodule."""
    known = modules(sources)
    for user, code in known.items():
        for used in {target(user, path, known) for path in paths(code)}:
            shared = min(len(user), len(used))
            if user[:shared] != used[:shared]:
                yield user, used


@pytest.mark.parametrize("sources", CRATES, ids=lambda sources: sources.parent.name)
def test_modules_and_folders_use_each_other_in_one_direction(sources: Path) -> None:
    files: dict[Module, set[Module]] = {}
    folders: dict[Module, set[Module]] = {}
    for user, used in uses(sources):
        files.setdefault(user, set()).add(used)
        fork = next(depth for depth in range(len(user)) if user[depth] != used[depth]) + 1
        folders.setdefault(user[:fork], set()).add(used[:fork])
    for graph in (files, folders):
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            pytest.fail(" -> ".join("::".join(module) for module in reversed(error.args[1])))


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "lib.rs").write_text("mod a;\nmod b;\n")
    (tmp_path / "a.rs").write_text("use crate::b::{\n    Two,\n    More as Other,\n};\n")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/mod.rs").write_text("mod c;\n")
    (tmp_path / "b/c.rs").write_text("fn one() { super::super::a::one() }\n")
    assert sorted(uses(tmp_path)) == [(("a",), ("b",)), (("b", "c"), ("a",))]
    with pytest.raises(pytest.fail.Exception, match=r"a -> b -> a|b -> a -> b"):
        test_modules_and_folders_use_each_other_in_one_direction(tmp_path)
