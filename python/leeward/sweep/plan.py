"""Cells of a sweep: one for each setting, seed and policy, and the key of a finished cell.

The key covers everything that a result depends on: the text of the scenario with its settings, the content of
the cluster file and of the traces that it names, the policy, the seed, and the version and build of Leeward.
A stored cell with the same key therefore equals a new run, and a changed scenario has new keys.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow
import yaml

from leeward import _native
from leeward._native import Cluster, Scenario
from leeward._policies import OwnPolicy
from leeward.errors import InputError
from leeward.simulation import ScenarioSource, read_scenario
from leeward.sweep.settings import Setting, edit

_LONGEST = 60
"""Greatest length of a setting in words."""


@dataclass(frozen=True)
class Variant:
    """A scenario with a setting."""

    setting: Setting
    name: str
    """Name of the scenario's file in errors."""
    text: str
    base: Path
    """Folder of the scenario's files."""
    data: Path | None
    """Folder of traces."""
    cluster: Cluster | None = None
    """The cluster, in place of the cluster file."""
    tables: dict[str, Any] = field(default_factory=dict, compare=False)
    """Tables that the text names."""
    tables_digest: str = ""
    """Digest of the tables, which compares them."""

    def read(self) -> Scenario:
        """The scenario, checked.

        Raises:
            InputError: The scenario is invalid; the error names the setting.
        """
        try:
            return Scenario.from_text(self.text, self.base, self.data, self.name, self.cluster, self.tables)
        except InputError as error:
            if not self.setting:
                raise
            # Lines of the edited text are not those of the file.
            where = " ".join(["settings", *(f"{path}={value}" for path, value in self.setting)])
            ours = error.file == self.name
            line, column = (None, None) if ours else (error.line, error.column)
            raise InputError(
                where if ours else f"{where}: {error.file}", line, column, error.field, error.message
            ) from error

    @cached_property
    def digest(self) -> str:
        """Digest of its text, its cluster file and the traces it names."""
        names = [*_scalars(self._fields["workloads"])]
        if self.cluster is None:
            names.insert(0, self._fields["cluster"].value)
        digests = [(name, file_digest(path)) for name in names if (path := self._path(name)).is_file()]
        parts: list[object] = [_text_digest(self.text), digests]
        if self.cluster is not None:
            parts += [_text_digest(self.cluster.text), self.tables_digest]
        return digest_of(parts)

    @cached_property
    def _fields(self) -> dict[str, Any]:
        return {key.value: value for key, value in yaml.compose(self.text).value}

    def _path(self, name: str) -> Path:
        below = name.removeprefix("data:")
        return self.data / below if self.data and below != name else self.base / name


@dataclass(frozen=True)
class Cell:
    """One run of a sweep."""

    variant: Variant
    seed: int
    policy: str
    own: OwnPolicy | None = None
    """The policy, if it is the user's own."""

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that its result depends on."""
        identity = {
            "leeward": _native.__version__,
            "build": build(),
            "scenario": self.variant.digest,
            "set": dict(self.variant.setting),
            "policy": self.policy,
            "seed": self.seed,
        }
        return identity if self.own is None else identity | {"own": self.own.digest}

    @cached_property
    def key(self) -> str:
        """Digest of its identity."""
        return digest_of(self.identity)

    @property
    def where(self) -> str:
        """Seed and setting in words, which decide its arrivals."""
        settings = (f"{path}={_short(value)}" for path, value in self.variant.setting)
        return " ".join([f"seed {self.seed}", *settings])


def variants(
    source: ScenarioSource, data: str | PathLike[str] | None, settings: Sequence[Setting]
) -> list[Variant]:
    """The scenario with each of the settings, read and checked.

    Raises:
        InputError: The scenario is invalid, or a setting makes it invalid.
    """
    plain = _plain(source, Path(data).absolute() if data else None)
    result = []
    for setting in settings:
        text = plain.text
        for where, value in setting:
            text = edit(text, where, value)
        result.append(replace(plain, setting=setting, text=text))
        result[-1].read()
    return result


def _plain(source: ScenarioSource, folder: Path | None) -> Variant:
    """The scenario without settings.

    Raises:
        InputError: The scenario is invalid.
    """
    if isinstance(source, str | PathLike):
        path = Path(source)
        Scenario.from_file(path, folder)
        with path.open(encoding="utf-8", newline="") as file:
            return Variant((), str(path), file.read(), path.parent.absolute(), folder)
    text, base, own_folder, name, cluster, tables = read_scenario(source, folder)._parts()
    digests = [(key, _text_digest(_bytes(table))) for key, table in tables.items()]
    return Variant((), name, text, base, own_folder, cluster, tables, digest_of(digests))


def _bytes(table: Any) -> bytes:
    """A table as Arrow's format of streams, which is the same for equal tables of equal chunks."""
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def cells(
    variant_list: Sequence[Variant],
    policies: Sequence[str],
    seeds: Sequence[int],
    own: Mapping[str, OwnPolicy] | None = None,
) -> list[Cell]:
    """All cells of a sweep: by setting, then by seed, then by policy.

    Args:
        variant_list: The scenario with each setting.
        policies: Names of the policies.
        seeds: The seeds.
        own: The user's own policies among them, by name.

    Raises:
        InputError: A policy or seed is repeated.
    """
    policies = [policy.strip() for policy in policies]
    for argument, values in (("policies", policies), ("seeds", list(seeds))):
        if not values:
            raise InputError.about(argument, "expected at least one")
        duplicates = [value for at, value in enumerate(values) if value in values[:at]]
        if duplicates:
            raise InputError.about(argument, f"`{duplicates[0]}` is given twice")
    return [
        Cell(variant, seed, policy, (own or {}).get(policy))
        for variant in variant_list
        for seed in seeds
        for policy in policies
    ]


@cache
def build() -> str:
    """Digest of the extension module: of the code that simulates."""
    return file_digest(Path(_native.__file__ or ""))


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _text_digest(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def digest_of(value: object) -> str:
    """SHA-256 of a value of JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _scalars(node: Any) -> Iterator[str]:
    if isinstance(node, yaml.ScalarNode):
        yield node.value
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _scalars(item)
    else:
        for _, value in node.value:
            yield from _scalars(value)


def _short(value: str) -> str:
    """A value on one line: a list of events may be as long as the scenario."""
    line = " ".join(value.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
