r"""Numbers in names of links, `{port-1}`: PromQL cannot count, so that it is told each that there is.

Which there are, the names of a cluster's links say: where there is `r0h47:egress`, the template
`{rack}h{port-1}:egress` has a port 48. Only ports of these numbers are selected, so that a port that is no
host's is no link. What a number ends in says what it ends in with one less, but for those ends where it is
borrowed from the digits before; so a label is given its number by one `label_replace` for each end::

    label_replace(x, "number", "${1}0", "port", "0*([1-9][0-9]*|)1")        1 -> 0, 11 -> 10, 21 -> 20, ...
    label_replace(x, "number", "9", "port", "0*10")                         10 -> 9
"""

import re
from collections.abc import Iterable, Sequence

FIELD = re.compile(r"\{(\w+)([+-]\d+)?\}")
"""Of a template: a name, and what is added to its number."""
MOST_ENDS = 300
"""For each a function is called inside the one before, on all series."""


def numbers(template: str, names: Iterable[str]) -> dict[str, list[int]]:
    """For each field of a template that counts, the numbers for which some link has such a name.

    Args:
        template: Of names of links.
        names: Of all links.
    """
    found: dict[str, set[int]] = {}
    counted: list[tuple[str, int]] = []
    pattern, at = "", 0
    for field in FIELD.finditer(template):
        literal = template[at : field.start()]
        pattern += re.escape(literal)
        if field[2]:
            # A number is whole: none begins in the middle of another.
            pattern += r"(0|[1-9]\d*)" if literal else r"(?<!\d)(0|[1-9]\d*)"
            counted.append((field[0], int(field[2])))
            found[field[0]] = set()
        else:
            pattern += ".+?"
        at = field.end()
    whole = re.compile(pattern + re.escape(template[at:]), re.ASCII)
    for name in names:
        match = whole.fullmatch(name)
        for (field_, more), text in zip(counted, match.groups() if match else (), strict=False):
            if int(text) >= more:
                found[field_].add(int(text) - more)
    return {field_: sorted(every) for field_, every in found.items()}


def ends(numbers: Iterable[int], more: int) -> dict[str, str]:
    """How each number becomes another: patterns of what it may be, and what takes its place.

    Args:
        numbers: From 0.
        more: What is added to each; no sum is below 0.
    """
    found: dict[str, str] = {}
    for number in numbers:
        ten = 10
        while number // ten != (number + more) // ten:
            ten *= 10
        end, width = (number + more) % ten, len(str(ten)) - 1
        if ten == 10:
            found[f"0*([1-9][0-9]*|){number % ten}"] = f"${{1}}{end}"
        elif number < ten:
            # Nothing stands before it, nor may a 0.
            found[f"0*{number}"] = str(end)
        else:
            found[f"0*([1-9][0-9]*){number % ten:0{width}}"] = f"${{1}}{end:0{width}}"
    return found


def narrowed(pattern: str, group: str, to: Sequence[int]) -> str:
    """A pattern whose group of this name holds one of some numbers; zeros may stand before it."""
    begin = pattern.index(f"(?P<{group}>") + len(f"(?P<{group}>")
    return f"{pattern[:begin]}{one_of(to)}{pattern[_closed(pattern, begin) :]}"


def one_of(numbers: Sequence[int]) -> str:
    """A pattern of some numbers; zeros may stand before each."""
    return f"0*(?:{'|'.join(map(str, numbers))})"


def _closed(pattern: str, at: int) -> int:
    """Where the group ends in which a place of a pattern is."""
    depth, inside = 1, False
    while depth:
        letter = pattern[at]
        if letter == "\\":
            at += 1
        elif inside:
            inside = letter != "]"
        elif letter == "[":
            # A bracket that comes first is one of the letters.
            at += 2 if pattern[at + 1] == "^" else 1
            at -= pattern[at] != "]"
            inside = True
        else:
            depth += (letter == "(") - (letter == ")")
        at += 1
    return at - 1
