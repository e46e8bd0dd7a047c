"""PromQL that makes links of the ports that Prometheus knows, by the rules of a map file."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from leeward.errors import InputError

_SELECTOR = re.compile(r"(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)(?:\{(?P<matchers>.*)\})?", re.DOTALL)
_FIELD = re.compile(r"\{(\w+)([+-]\d+)?\}")
_NOT_RE2 = re.compile(r"\(\?(?:=|!|<[=!]|\(|P=|>)|\\[1-9]|[*+?}]\+")
"""What Python's patterns have and those of Prometheus do not."""


@dataclass(frozen=True)
class Ports:
    """Ports whose labels match, and the links that they are.

    Attributes:
        match: For each label a pattern of all of its text.
        links: For `in`, `out` or `load` the name of the link: `{rack}` stands for a group of a pattern or for
            a label.
    """

    match: Mapping[str, str]
    links: Mapping[str, str]


@dataclass(frozen=True)
class Source:
    """Counters, and which links they are of.

    Attributes:
        name: What errors call it.
        counters: For `in`, `out` or `load` the selector of a counter.
        bits: How many bits one of its unit is.
        speed: The selector of what a port can carry.
        speed_bps: How many bits per second one of its unit is.
        ports: The first that matches counts.
        ignore: Ports that are no links.
    """

    name: str
    counters: Mapping[str, str]
    bits: int
    speed: str
    speed_bps: int
    ports: Sequence[Ports]
    ignore: Sequence[Mapping[str, str]] = ()


SNMP = Source(
    "snmp_exporter",
    {"in": "ifHCInOctets", "out": "ifHCOutOctets"},
    8,
    "ifHighSpeed",
    10**6,
    (Ports({}, {"in": "{instance}:{ifName}:in", "out": "{instance}:{ifName}:out"}),),
)
"""Without a map: each port of each switch is a link of its own, each way."""


def links(source: Source, selector: str, way: str, of: Callable[[str], str]) -> list[str]:
    """Expressions that have a label `link`, one for each rule.

    Args:
        source: The rules.
        selector: Of a metric.
        way: `in`, `out` or `load`.
        of: Makes an expression of a selector, such as `rate` of it.

    Raises:
        InputError: A rule cannot be said in PromQL.
    """
    made = []
    before: list[Mapping[str, str]] = list(source.ignore)
    for number, ports in enumerate(source.ports):
        template = ports.links.get(way)
        if template is not None:
            matchers = [_matcher(source, number, label, "=~", text) for label, text in ports.match.items()]
            # The first rule that matches counts: what earlier ones do is not for this one.
            single = [one for one in before if len(one) == 1]
            matchers += [
                _matcher(source, number, label, "!~", text) for one in single for label, text in one.items()
            ]
            expression = of(_narrowed(source, selector, matchers))
            for one in before:
                if len(one) > 1:
                    other = [_matcher(source, number, label, "=~", text) for label, text in one.items()]
                    expression = f"({expression} unless {of(_narrowed(source, selector, other))})"
            made.append(_named(source, number, ports, template, expression))
        before.append(ports.match)
    return made


def _narrowed(source: Source, selector: str, matchers: Sequence[str]) -> str:
    """A selector with more matchers."""
    match = _SELECTOR.fullmatch(selector.strip())
    if match is None:
        message = f'`{selector[:60]}`: expected a metric, such as ifHCInOctets or ifHCInOctets{{job="snmp"}}'
        raise InputError(source.name, None, None, "prometheus", message)
    own = (match["matchers"] or "").strip().rstrip(",")
    inside = ",".join([*([own] if own else []), *matchers])
    return f"{match['name']}{{{inside}}}" if inside else match["name"]


def _matcher(source: Source, number: int, label: str, sign: str, pattern: str) -> str:
    if _NOT_RE2.search(pattern):
        message = f"`{pattern[:60]}`: Prometheus' patterns have no looking ahead or back"
        raise InputError(source.name, None, None, f"links[{number}].match.{label}", message)
    return f"{label}{sign}{quoted(_plain(pattern))}"


def _plain(pattern: str) -> str:
    """A pattern as a matcher has it: names of groups are of no use there."""
    return re.sub(r"\(\?P<\w+>", "(", pattern)


def quoted(text: str) -> str:
    """A text in quotes, as PromQL has it."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{plain}"'


def _named(source: Source, number: int, ports: Ports, template: str, expression: str) -> str:
    """An expression with a label `link`, made as a template says."""
    groups = {
        group: (label, pattern)
        for label, pattern in ports.match.items()
        for group in re.compile(pattern).groupindex
    }
    parts: list[str] = []
    at = 0
    for found in _FIELD.finditer(template):
        if found[2]:
            message = f"`{found[0]}`: PromQL cannot count with labels; name the ports one by one"
            raise InputError(source.name, None, None, f"links[{number}]", message)
        if template[at : found.start()]:
            expression, part = _set(expression, len(parts), template[at : found.start()], "", "")
            parts.append(part)
        at = found.end()
        if found[1] in groups:
            label, pattern = groups[found[1]]
            expression, part = _set(expression, len(parts), f"${{{found[1]}}}", label, pattern)
            parts.append(part)
        else:
            parts.append(found[1])
    if template[at:]:
        expression, part = _set(expression, len(parts), template[at:], "", "")
        parts.append(part)
    return f"label_join({expression}, {', '.join(quoted(text) for text in ('link', '', *parts))})"


def _set(expression: str, part: int, text: str, label: str, pattern: str) -> tuple[str, str]:
    """An expression with a label for a part of a name, and that label."""
    called = f"leeward_{part}"
    value = text if label else text.replace("$", "$$")
    arguments = ", ".join(quoted(one) for one in (called, value, label, pattern))
    return f"label_replace({expression}, {arguments})", called
