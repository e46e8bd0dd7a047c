"""PromQL that maps ports in Prometheus to links, by the rules of a map file."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from leeward.errors import InputError
from leeward.export.numbers import FIELD, MOST_ENDS, ends, narrowed, numbers, one_of
from leeward.export.patterns import ALLOWED, foreign

_SELECTOR = re.compile(r"(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)(?:\{(?P<matchers>.*)\})?", re.DOTALL)


@dataclass(frozen=True)
class Ports:
    """Ports whose labels match, and their links.

    Attributes:
        match: Pattern of the complete text of each label.
        links: For `in`, `out` or `load` the name of the link: `{rack}` stands for a group of a pattern or for
            a label, `{port-1}` for its number less 1.
    """

    match: Mapping[str, str]
    links: Mapping[str, str]


@dataclass(frozen=True)
class Source:
    """Counters and their links.

    Attributes:
        name: Name in errors.
        counters: Selector of a counter for `in`, `out` or `load`.
        bits: Bits of one unit of a counter.
        speed: Selector of the capacity of a port; None: `capacities` has that of links.
        speed_bps: Bits per second of one unit of the speed.
        ports: Rules, of which the first match counts.
        ignore: Ports that are not links.
        capacities: Capacity of each link of the cluster by its name, in bits per second; empty without a
            cluster.
    """

    name: str
    counters: Mapping[str, str]
    bits: int
    speed: str | None
    speed_bps: int
    ports: Sequence[Ports]
    ignore: Sequence[Mapping[str, str]] = ()
    capacities: Mapping[str, int] = field(default_factory=dict)


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
        source: Counters and rules.
        selector: Selector of a metric.
        way: `in`, `out` or `load`.
        of: Makes an expression of a selector, such as its `rate`.

    Raises:
        InputError: PromQL cannot express a rule.
    """
    made = []
    before: list[Mapping[str, str]] = list(source.ignore)
    for number, ports in enumerate(source.ports):
        template = ports.links.get(way)
        if template is not None:
            there = _numbers(source, number, template)
            matchers = [_matcher(source, number, label, "=~", text) for label, text in ports.match.items()]
            matchers += [
                _matcher(source, number, *_narrowed_to(ports, field_, of)) for field_, of in there.items()
            ]
            # The first rule that matches counts: this one excludes ports of earlier rules.
            single = [one for one in before if len(one) == 1]
            matchers += [
                _matcher(source, number, label, "!~", text) for one in single for label, text in one.items()
            ]
            expression = of(_narrowed(source, selector, matchers))
            for one in before:
                if len(one) > 1:
                    other = [_matcher(source, number, label, "=~", text) for label, text in one.items()]
                    expression = f"({expression} unless {of(_narrowed(source, selector, other))})"
            made.append(_named(ports, template, there, expression))
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
    if part := foreign(pattern):
        message = (
            f"`{pattern[:60]}`: Prometheus' patterns do not have `{part}`, or it means something else there"
        )
        error = InputError(source.name, None, None, f"links[{number}].match.{label}", message)
        error.add_note(f"allowed are {ALLOWED}")
        raise error
    return f"{label}{sign}{quoted(_plain(pattern))}"


def _plain(pattern: str) -> str:
    """A pattern for a matcher, without names of groups."""
    return re.sub(r"\(\?P<\w+>", "(", pattern)


def quoted(text: str) -> str:
    """A text in quotes, as PromQL has it."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{plain}"'


def _numbers(source: Source, number: int, template: str) -> dict[str, list[int]]:
    """Numbers for each field of a template that counts.

    Raises:
        InputError: The numbers are unknown, absent, or too many.
    """
    there = numbers(template, source.capacities)
    for field_, of in there.items():
        place = f"links[{number}]"
        if not source.capacities:
            error = InputError(source.name, None, None, place, f"`{field_}`: PromQL cannot count with labels")
            error.add_note("--cluster FILE says which numbers there are")
            raise error
        if not of:
            message = (
                f"`{template}`: no link of the cluster has such a name, as `{next(iter(source.capacities))}`"
            )
            raise InputError(source.name, None, None, place, message)
        if (steps := len(ends(of, _added(field_)))) > MOST_ENDS:
            message = (
                f"`{field_}`: PromQL would need {steps:,} steps to count with it, of at most {MOST_ENDS}"
            )
            raise InputError(source.name, None, None, place, message)
    return there


def _added(field_: str) -> int:
    """Difference that a field adds to a number."""
    match = FIELD.fullmatch(field_)
    return int(match[2]) if match else 0


def _narrowed_to(ports: Ports, field_: str, of: Sequence[int]) -> tuple[str, str, str]:
    """A matcher of a label by the pattern of its possible numbers."""
    label, pattern, group = _held(ports, field_)
    return label, "=~", narrowed(pattern, group, of) if group else one_of(of)


def _held(ports: Ports, field_: str) -> tuple[str, str, str]:
    """Label of a field, its pattern, and the group in it; an empty group for the complete label."""
    match = FIELD.fullmatch(field_)
    assert match is not None, "only fields are looked for"
    for label, pattern in ports.match.items():
        if match[1] in re.compile(pattern).groupindex:
            return label, pattern, match[1]
    return match[1], "", ""


def _named(ports: Ports, template: str, there: Mapping[str, Sequence[int]], expression: str) -> str:
    """An expression with a label `link`, by a template."""
    parts: list[str] = []
    at = 0
    for found in FIELD.finditer(template):
        if template[at : found.start()]:
            expression, part = _set(expression, len(parts), template[at : found.start()], "", "")
            parts.append(part)
        at = found.end()
        label, pattern, group = _held(ports, found[0])
        if group:
            expression, label = _set(expression, len(parts), f"${{{group}}}", label, pattern)
        if found[2]:
            counted = f"leeward_{len(parts)}_counted"
            for number, sum_ in ends(there[found[0]], _added(found[0])).items():
                arguments = (counted, sum_, label, number)
                expression = f"label_replace({expression}, {', '.join(map(quoted, arguments))})"
            label = counted
        parts.append(label)
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
