"""PromQL that maps ports in Prometheus to links, by the rules of a map file."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from leeward.errors import InputError
from leeward.export.numbers import FIELD, MOST_ENDS, any_number, ends, narrow_group, numbers
from leeward.export.patterns import ALLOWED, find_unsupported

_SELECTOR = re.compile(r"(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)(?:\{(?P<matchers>.*)\})?", re.DOTALL)


@dataclass(frozen=True)
class Ports:
    """Ports whose labels match, and their links.

    Attributes:
        match: Pattern of the complete text of each label.
        links: For `in`, `out` or `load` the name of the link: `{rack}` stands for a group of a pattern or for
            a label, `{port-1}` for its number minus 1.
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
        speed: Selector of the capacity of a port; None if `capacities` has the capacities.
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
"""Source without a map file: each direction of each port of a switch is a link."""


def links(source: Source, selector: str, way: str, expression_of: Callable[[str], str]) -> list[str]:
    """Expressions that have a label `link`, one for each rule.

    Args:
        source: Counters and rules.
        selector: Selector of a metric.
        way: `in`, `out` or `load`.
        expression_of: Returns an expression for a selector, such as its `rate`.

    Raises:
        InputError: PromQL cannot express a rule.
    """
    result = []
    before: list[Mapping[str, str]] = list(source.ignore)
    for number, ports in enumerate(source.ports):
        template = ports.links.get(way)
        if template is not None:
            numbers_of_field = _numbers(source, number, template)
            matchers = [_matcher(source, number, label, "=~", text) for label, text in ports.match.items()]
            matchers += [
                _matcher(source, number, *_number_matcher(ports, field_, field_numbers))
                for field_, field_numbers in numbers_of_field.items()
            ]
            # The first rule that matches counts: this one excludes ports of earlier rules.
            single = [match for match in before if len(match) == 1]
            matchers += [
                _matcher(source, number, label, "!~", text)
                for match in single
                for label, text in match.items()
            ]
            expression = expression_of(_narrow(source, selector, matchers))
            for match in before:
                if len(match) > 1:
                    other = [_matcher(source, number, label, "=~", text) for label, text in match.items()]
                    expression = f"({expression} unless {expression_of(_narrow(source, selector, other))})"
            result.append(_add_link_label(ports, template, numbers_of_field, expression))
        before.append(ports.match)
    return result


def _narrow(source: Source, selector: str, matchers: Sequence[str]) -> str:
    """A selector with more matchers."""
    match = _SELECTOR.fullmatch(selector.strip())
    if match is None:
        message = f'`{selector[:60]}`: expected a metric, such as ifHCInOctets or ifHCInOctets{{job="snmp"}}'
        raise InputError(source.name, None, None, "prometheus", message)
    own = (match["matchers"] or "").strip().rstrip(",")
    inside = ",".join([*([own] if own else []), *matchers])
    return f"{match['name']}{{{inside}}}" if inside else match["name"]


def _matcher(source: Source, number: int, label: str, sign: str, pattern: str) -> str:
    if part := find_unsupported(pattern):
        message = (
            f"`{pattern[:60]}`: Prometheus does not support `{part}` in patterns, or reads it differently"
        )
        error = InputError(source.name, None, None, f"links[{number}].match.{label}", message)
        error.add_note(f"allowed are {ALLOWED}")
        raise error
    return f"{label}{sign}{quote(_without_names(pattern))}"


def _without_names(pattern: str) -> str:
    """A pattern for a matcher, without names of groups."""
    return re.sub(r"\(\?P<\w+>", "(", pattern)


def quote(text: str) -> str:
    """A text as a string of PromQL, in quotes."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{plain}"'


def _numbers(source: Source, number: int, template: str) -> dict[str, list[int]]:
    """Numbers for each field of a template with a difference.

    Raises:
        InputError: The numbers are unknown, absent, or too many.
    """
    numbers_of_field = numbers(template, source.capacities)
    for field_, field_numbers in numbers_of_field.items():
        place = f"links[{number}]"
        if not source.capacities:
            error = InputError(
                source.name, None, None, place, f"`{field_}`: PromQL cannot compute with labels"
            )
            error.add_note("--cluster FILE lists the valid numbers")
            raise error
        if not field_numbers:
            message = (
                f"`{template}`: no link of the cluster has such a name, as `{next(iter(source.capacities))}`"
            )
            raise InputError(source.name, None, None, place, message)
        if (steps := len(ends(field_numbers, _difference(field_)))) > MOST_ENDS:
            message = (
                f"`{field_}`: PromQL would need {steps:,} steps to compute it; expected at most {MOST_ENDS}"
            )
            raise InputError(source.name, None, None, place, message)
    return numbers_of_field


def _difference(field_: str) -> int:
    """Difference that a field adds to a number."""
    match = FIELD.fullmatch(field_)
    return int(match[2]) if match else 0


def _number_matcher(ports: Ports, field_: str, allowed: Sequence[int]) -> tuple[str, str, str]:
    """A matcher of a label by the pattern of its possible numbers."""
    label, pattern, group = _label_of(ports, field_)
    return label, "=~", narrow_group(pattern, group, allowed) if group else any_number(allowed)


def _label_of(ports: Ports, field_: str) -> tuple[str, str, str]:
    """Label of a field, its pattern, and the group in it; an empty group for the complete label."""
    match = FIELD.fullmatch(field_)
    assert match is not None, "only fields are looked for"
    for label, pattern in ports.match.items():
        if match[1] in re.compile(pattern).groupindex:
            return label, pattern, match[1]
    return match[1], "", ""


def _add_link_label(
    ports: Ports, template: str, numbers_of_field: Mapping[str, Sequence[int]], expression: str
) -> str:
    """An expression with a label `link`, by a template."""
    parts: list[str] = []
    position = 0
    for match in FIELD.finditer(template):
        if template[position : match.start()]:
            expression, part = _add_label(expression, len(parts), template[position : match.start()], "", "")
            parts.append(part)
        position = match.end()
        label, pattern, group = _label_of(ports, match[0])
        if group:
            expression, label = _add_label(expression, len(parts), f"${{{group}}}", label, pattern)
        if match[2]:
            number_label = f"leeward_{len(parts)}_counted"
            for number, sum_ in ends(numbers_of_field[match[0]], _difference(match[0])).items():
                arguments = (number_label, sum_, label, number)
                expression = f"label_replace({expression}, {', '.join(map(quote, arguments))})"
            label = number_label
        parts.append(label)
    if template[position:]:
        expression, part = _add_label(expression, len(parts), template[position:], "", "")
        parts.append(part)
    return f"label_join({expression}, {', '.join(quote(text) for text in ('link', '', *parts))})"


def _add_label(expression: str, part: int, text: str, label: str, pattern: str) -> tuple[str, str]:
    """An expression with a label for a part of a name, and that label."""
    name = f"leeward_{part}"
    value = text if label else text.replace("$", "$$")
    arguments = ", ".join(quote(one) for one in (name, value, label, pattern))
    return f"label_replace({expression}, {arguments})", name
