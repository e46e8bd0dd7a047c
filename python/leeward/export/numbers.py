r"""Numbers in names of links, such as `{port-1}`: a rule lists each number, since PromQL cannot compute it.

The names of a cluster's links give the numbers: with `r0h47:egress`, the template `{rack}h{port-1}:egress`
has a port 48. A matcher selects the ports with such numbers, so that other ports are not links;
`narrow_group` describes an exception. The last digits of a number decide the last digits of its predecessor,
unless the subtraction borrows from earlier digits. So one `label_replace` for each ending computes the
number::

    label_replace(x, "number", "${1}0", "port", "0*([1-9][0-9]*|)1")        1 -> 0, 11 -> 10, 21 -> 20, ...
    label_replace(x, "number", "9", "port", "0*10")                         10 -> 9
"""

import re
from collections.abc import Iterable, Sequence

FIELD = re.compile(r"\{(\w+)([+-]\d+)?\}")
"""Field of a template: a name, and a difference to add to its number."""
MOST_ENDS = 300
"""Greatest number of endings: each is a nested function call, on all series."""


def numbers(template: str, names: Iterable[str]) -> dict[str, list[int]]:
    """For each field of a template with a difference, the numbers for which a link exists.

    Args:
        template: Template of names of links.
        names: Names of all links.
    """
    result: dict[str, set[int]] = {}
    fields: list[tuple[str, int]] = []
    pattern, at = "", 0
    for field in FIELD.finditer(template):
        literal = template[at : field.start()]
        pattern += re.escape(literal)
        if field[2]:
            # A number is matched completely, and never from its middle.
            pattern += r"(0|[1-9]\d*)" if literal else r"(?<!\d)(0|[1-9]\d*)"
            fields.append((field[0], int(field[2])))
            result[field[0]] = set()
        else:
            pattern += ".+?"
        at = field.end()
    name_pattern = re.compile(pattern + re.escape(template[at:]), re.ASCII)
    for name in names:
        match = name_pattern.fullmatch(name)
        for (field_, difference), text in zip(fields, match.groups() if match else (), strict=False):
            if int(text) >= difference:
                result[field_].add(int(text) - difference)
    return {field_: sorted(field_numbers) for field_, field_numbers in result.items()}


def ends(numbers: Iterable[int], difference: int) -> dict[str, str]:
    """Rules that add a difference to each number: patterns, and their replacements.

    Args:
        numbers: Numbers, from 0.
        difference: Difference to add to each; no sum is below 0.
    """
    result: dict[str, str] = {}
    for number in numbers:
        ten = 10
        while number // ten != (number + difference) // ten:
            ten *= 10
        end, width = (number + difference) % ten, len(str(ten)) - 1
        if ten == 10:
            result[f"0*([1-9][0-9]*|){number % ten}"] = f"${{1}}{end}"
        elif number < ten:
            # Only zeros may precede the number.
            result[f"0*{number}"] = str(end)
        else:
            result[f"0*([1-9][0-9]*){number % ten:0{width}}"] = f"${{1}}{end:0{width}}"
    return result


def narrow_group(pattern: str, group: str, to: Sequence[int]) -> str:
    r"""A pattern with some numbers in the place of a group, with optional zeros before each.

    It matches a text in which the rest of the pattern matches around one of the numbers. A rule requires the
    pattern itself too, because a number may be one that the group does not match.

    Both may match a text in which the group is not one of the numbers. This happens if the rest of the
    pattern can match characters of the group. In `-0/3`, the group of `-(?P<n>[^-]+)(?:/\d+)?` is `0/3`, but
    around the number 0 the rest matches `-` and `/3`. Such a port is selected, and its number is not
    computed.
    """
    begin = pattern.index(f"(?P<{group}>") + len(f"(?P<{group}>")
    return f"{pattern[:begin]}{any_number(to)}{pattern[_group_end(pattern, begin) :]}"


def any_number(numbers: Sequence[int]) -> str:
    """A pattern of some numbers, with optional zeros before each."""
    return f"0*(?:{'|'.join(map(str, numbers))})"


def _group_end(pattern: str, at: int) -> int:
    """End of the group that contains a position of a pattern."""
    depth, inside = 1, False
    while depth:
        letter = pattern[at]
        if letter == "\\":
            at += 1
        elif inside:
            inside = letter != "]"
        elif letter == "[":
            # A bracket that comes first is a member of the class.
            at += 2 if pattern[at + 1] == "^" else 1
            at -= pattern[at] != "]"
            inside = True
        else:
            depth += (letter == "(") - (letter == ")")
        at += 1
    return at - 1
