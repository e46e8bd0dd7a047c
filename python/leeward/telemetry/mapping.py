"""Map files: links of ports by labels, metrics to query, and meanings of columns.

A port of a switch sees a link from its own end: for a ToR's port to the spine, incoming traffic is on the
rack's downlink, and outgoing traffic on its uplink. A rule states this once for all ports whose labels match.
Several ports may be one link (4 x 100G to the spines are one uplink): their bits and capacities add up.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import yaml

from leeward.errors import InputError
from leeward.telemetry.layout import Column, MapColumns, check_time_unit, check_unit
from leeward.telemetry.units import COUNTERS, RATES

WAYS = ("in", "out", "load")
"""Ways of a reading: into a port, out of it, or the load of a named link."""
MOST_BYTES = 1_000_000
"""Greatest size of a map file."""
_FIELD = re.compile(r"\{(\w+)(?:([+-])(\d{1,6}))?\}")


@dataclass(frozen=True)
class Metrics:
    """Metrics to query from Prometheus.

    Attributes:
        queries: Selector of a counter for `in`, `out` or `load`, such as `ifHCInOctets{job="snmp"}`.
        unit: Unit of the counters: `octets` or `bits`.
        speed: Selector of the capacity of a port, if there is one.
        speed_unit: Unit of the speed.
        width: Bits of the counters, 32 or 64.
    """

    queries: dict[str, str]
    unit: str = "octets"
    speed: str | None = None
    speed_unit: str = "Mbps"
    width: int = 64


@dataclass(frozen=True)
class Rule:
    """Ports whose labels all match, and their links.

    Attributes:
        match: Pattern of the complete text of each label.
        links: Name of the link for each way: `{rack}` stands for a group of a pattern or for a label,
            `{port-1}` for its number minus 1.
    """

    match: dict[str, re.Pattern[str]]
    links: dict[str, str]


@dataclass(frozen=True)
class Map:
    """A map file.

    Attributes:
        name: Name of the file.
        metrics: Metrics to query from Prometheus, if given.
        columns: Meanings of columns of files.
        rules: Rules, of which the first that matches a port counts.
        ignore: Ports that are known not to be links of the cluster.
        replica_labels: Labels by which copies of a series differ, such as `replica`.
    """

    name: str = "map"
    metrics: Metrics | None = None
    columns: MapColumns = field(default_factory=MapColumns)
    rules: tuple[Rule, ...] = ()
    ignore: tuple[dict[str, re.Pattern[str]], ...] = ()
    replica_labels: tuple[str, ...] = ()

    def link(self, labels: Mapping[str, str], way: str) -> str | None:
        """Name of the link of a reading; None without a rule; empty, if it is ignored.

        Without rules, the label `link` is the name; without this label, a single label is the name.

        Raises:
            InputError: A rule matches, but its name needs other labels.
        """
        if not self.rules:
            if self._is_ignored(labels):
                return ""
            return labels.get("link") or (next(iter(labels.values())) if len(labels) == 1 else None)
        if self._is_ignored(labels):
            return ""
        for number, rule in enumerate(self.rules):
            groups = _groups(rule.match, labels)
            if groups is not None:
                template = rule.links.get(way)
                # A rule without a way leaves it out on purpose.
                return "" if template is None else self._link_name(number, template, {**labels, **groups})
        return None

    def near(self, labels: Mapping[str, str]) -> str:
        """The rule that all labels but one match, as text that names this label; empty without one."""
        for number, rule in enumerate(self.rules):
            failed = [
                label for label, pattern in rule.match.items() if not pattern.fullmatch(labels.get(label, ""))
            ]
            if len(failed) == 1 and len(rule.match) > 1:
                label, pattern = failed[0], rule.match[failed[0]].pattern
                text = (
                    f"`{label}` is `{labels[label]}`" if label in labels else f"there is no label `{label}`"
                )
                return f"links[{number}] matches but for one label: {text}, expected `{pattern}`"
        return ""

    def _is_ignored(self, labels: Mapping[str, str]) -> bool:
        return any(_groups(patterns, labels) is not None for patterns in self.ignore)

    def _link_name(self, number: int, template: str, texts: Mapping[str, str]) -> str:
        def put(match: re.Match[str]) -> str:
            text = texts.get(match[1])
            if text is None:
                message = f"`{{{match[1]}}}`: no such label or group; there are: {', '.join(sorted(texts))}"
                raise InputError(self.name, None, None, f"links[{number}]", message)
            if not match[2]:
                return text
            if not (text.isascii() and text.isdecimal() and len(text) < 10):
                message = f"`{{{match[0][1:-1]}}}`: `{text[:40]}` is not a number"
                raise InputError(self.name, None, None, f"links[{number}]", message)
            return str(int(text) + int(match[2] + match[3]))

        return _FIELD.sub(put, template)


def nearest(name: str, names: Iterable[str], number: int = 3) -> list[str]:
    """Most similar names."""
    return difflib.get_close_matches(name, list(names), number, cutoff=0.4)


def _groups(match: Mapping[str, re.Pattern[str]], labels: Mapping[str, str]) -> dict[str, str] | None:
    """Contents of the groups of patterns, if each matches all of its label."""
    groups: dict[str, str] = {}
    for label, pattern in match.items():
        result = pattern.fullmatch(labels.get(label, ""))
        if result is None:
            return None
        groups.update({name: text for name, text in result.groupdict().items() if text is not None})
    return groups


def read_map(path: str | PathLike[str]) -> Map:
    """Reads a map file.

    Raises:
        InputError: The file cannot be read, or a field is invalid.
    """
    name = str(path)
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        why = "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or str(error))
        raise InputError.about(name, why) from None
    if len(text) > MOST_BYTES:
        raise InputError.about(name, f"longer than {MOST_BYTES:,} bytes")
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError.about(name, "not text in UTF-8") from None
    return map_of_text(decoded, name)


def map_of_text(text: str, name: str) -> Map:
    """The map of a text of a map file.

    Raises:
        InputError: The text is not YAML, or a field is invalid; the error has `name`.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or "not readable as YAML"
        raise InputError(name, mark and mark.line + 1, mark and mark.column + 1, None, why) from None
    return _Reader(name).map(root)


class _Reader:
    """Reads the nodes of a map file, which know their lines."""

    def __init__(self, name: str) -> None:
        self.name = name

    def map(self, root: Any) -> Map:
        top = self.fields(root, "", ("prometheus", "columns", "links", "ignore", "replica_labels"))
        rules = [
            self.rule(node, f"links[{number}]")
            for number, node in enumerate(self.items(top.get("links"), "links"))
        ]
        ignore = [
            self.patterns(node, f"ignore[{number}]")
            for number, node in enumerate(self.items(top.get("ignore"), "ignore"))
        ]
        metrics = self.metrics(top["prometheus"]) if "prometheus" in top else None
        columns = self.columns(top["columns"]) if "columns" in top else MapColumns()
        replica_labels = [
            self.text(node, f"replica_labels[{number}]")
            for number, node in enumerate(self.items(top.get("replica_labels"), "replica_labels"))
        ]
        return Map(self.name, metrics, columns, tuple(rules), tuple(ignore), tuple(replica_labels))

    def metrics(self, node: Any) -> Metrics:
        where = "prometheus"
        fields = self.fields(node, where, (*WAYS, "unit", "speed", "speed_unit", "counter_bits"))
        queries = {way: self.text(fields[way], f"{where}.{way}") for way in WAYS if way in fields}
        if not queries:
            raise self.error(node, where, "expected the counters to query: `in` and `out`, or `load`")
        unit = self.choice(fields.get("unit"), f"{where}.unit", COUNTERS, "octets")
        speed_unit = self.choice(fields.get("speed_unit"), f"{where}.speed_unit", RATES, "Mbps")
        speed = self.text(fields["speed"], f"{where}.speed") if "speed" in fields else None
        return Metrics(queries, unit, speed, speed_unit, self.width(fields, where) or 64)

    def columns(self, node: Any) -> MapColumns:
        where = "columns"
        fields = self.fields(node, where, ("time", "labels", *WAYS, "speed", "wide", "counter_bits"))
        time = self.column(fields["time"], f"{where}.time", check_time_unit) if "time" in fields else None
        speed = None
        if "speed" in fields:
            speed = self.column(fields["speed"], f"{where}.speed", check_unit)
            if speed.unit not in RATES:
                raise self.error(fields["speed"], f"{where}.speed.unit", f"`{speed.unit}`: expected a rate")
        labels = [
            self.text(one, f"{where}.labels[{number}]")
            for number, one in enumerate(self.items(fields.get("labels"), f"{where}.labels"))
        ]
        values = {
            way: self.column(fields[way], f"{where}.{way}", check_unit) for way in WAYS if way in fields
        }
        wide = None
        if "wide" in fields:
            wide = self.choice(fields["wide"], f"{where}.wide", {**RATES, **COUNTERS}, "bps")
        return MapColumns(time, tuple(labels), values, speed, wide, self.width(fields, where))

    def column(self, node: Any, where: str, check: Any) -> Column:
        fields = self.fields(node, where, ("column", "unit"))
        if "column" not in fields:
            raise self.error(node, f"{where}.column", "missing")
        unit = self.text(fields["unit"], f"{where}.unit") if "unit" in fields else ""
        if unit or check is check_unit:
            check(self.name, node.start_mark.line + 1, f"{where}.unit", unit)
        return Column(self.text(fields["column"], f"{where}.column"), unit)

    def rule(self, node: Any, where: str) -> Rule:
        fields = self.fields(node, where, ("match", *WAYS))
        if "match" not in fields:
            raise self.error(node, f"{where}.match", "missing")
        links = {way: self.text(fields[way], f"{where}.{way}") for way in WAYS if way in fields}
        if not links:
            raise self.error(node, where, "expected `in`, `out` or `load`: the name of a link")
        for way, template in links.items():
            rest = _FIELD.sub("", template)
            if "{" in rest or "}" in rest:
                raise self.error(
                    fields[way], f"{where}.{way}", f"`{template}`: expected `{{name}}` or `{{name+1}}`"
                )
        return Rule(self.patterns(fields["match"], f"{where}.match"), links)

    def patterns(self, node: Any, where: str) -> dict[str, re.Pattern[str]]:
        result = {}
        for label, value in self.fields(node, where, None).items():
            text = self.text(value, f"{where}.{label}")
            try:
                result[label] = re.compile(text)
            except (re.error, RecursionError, OverflowError) as error:
                raise self.error(
                    value, f"{where}.{label}", f"`{text[:80]}`: invalid pattern: {error}"
                ) from None
        if not result:
            raise self.error(node, where, "expected labels with patterns")
        return result

    def width(self, fields: dict[str, Any], where: str) -> int | None:
        if "counter_bits" not in fields:
            return None
        return int(self.choice(fields["counter_bits"], f"{where}.counter_bits", ("32", "64"), "64"))

    def choice(self, node: Any, where: str, choices: Iterable[str], default: str) -> str:
        if node is None:
            return default
        text = self.text(node, where)
        if text not in choices:
            raise self.error(node, where, f"`{text[:80]}`: expected one of {', '.join(choices)}")
        return text

    def fields(self, node: Any, where: str, names: tuple[str, ...] | None) -> dict[str, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise self.error(node, where or None, "expected fields with values")
        result: dict[str, Any] = {}
        for key, value in node.value:
            name = self.text(key, where)
            if names is not None and name not in names:
                raise self.error(
                    key, f"{where}.{name}".strip("."), f"no such field; expected {', '.join(names)}"
                )
            if name in result:
                raise self.error(key, f"{where}.{name}".strip("."), "given twice")
            result[name] = value
        return result

    def items(self, node: Any, where: str) -> list[Any]:
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            raise self.error(node, where, "expected a list")
        return list(node.value)

    def text(self, node: Any, where: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or not node.value.strip():
            raise self.error(node, where, "expected a text")
        return str(node.value)

    def error(self, node: Any, where: str | None, message: str) -> InputError:
        mark = getattr(node, "start_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        return InputError(self.name, line, column, where, message)
