"""Settings of a sweep: values that replace those at a path of a scenario's text.

A path has the form of errors: `telemetry.delay`, `workloads[0].facebook.load`. The text of the scenario is
edited, not a parsed form of it, so that only the reader of scenarios decides the meaning of a value. The rest
of the text is unchanged, including blanks.
"""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from leeward._texts import split_at_commas
from leeward.errors import InputError

Setting = tuple[tuple[str, str], ...]
"""One value for each path, as YAML text; empty for an unchanged scenario."""

_PART = re.compile(r"\.?([A-Za-z_][A-Za-z0-9_-]*)|\[(\d+)\]")
_APART = ("policies", "seed")
"""Fields that a sweep sets by its other arguments."""


def axes(values: Mapping[str, Sequence[object] | str]) -> list[Setting]:
    """Every combination of values; the values of the last path change fastest.

    Args:
        values: For each path its values: YAML text, or values of JSON. A text is one value.

    Raises:
        InputError: A path or value is invalid or repeated.
    """
    texts = {}
    for path, several in values.items():
        if path in _APART:
            raise _setting_error(
                path, None, "policies and seeds of a sweep are given apart from its settings"
            )
        if not list(_steps(path)):
            raise _setting_error(path, None, "expected a path such as telemetry.delay")
        value_list = [several] if isinstance(several, str) else several
        texts[path] = [value.strip() if isinstance(value, str) else json.dumps(value) for value in value_list]
        if not texts[path]:
            raise _setting_error(path, None, "expected a value")
        for at, text in enumerate(texts[path]):
            if not _stands_alone(text):
                raise _setting_error(
                    path, text, "expected a word, a number, or a list or mapping in brackets"
                )
            if text in texts[path][:at]:
                raise _setting_error(path, text, "given twice")
    return [tuple(zip(texts, combination, strict=True)) for combination in itertools.product(*texts.values())]


def parse(options: Sequence[str]) -> dict[str, list[str]]:
    """Reads options such as `telemetry.delay=0s,2s` or `telemetry.counters=[hosts],[hosts,racks]`.

    Raises:
        InputError: An option has no `=`, or two name the same path.
    """
    values: dict[str, list[str]] = {}
    for option in options:
        path, equals, texts = option.partition("=")
        if not equals:
            raise _setting_error(option, None, "expected a path and values, such as telemetry.delay=0s,2s")
        if path in values:
            raise _setting_error(path, texts, "given twice; separate its values by commas")
        values[path] = split_at_commas(texts)
    return values


def edit(text: str, path: str, value: str) -> str:
    """Text of a scenario with another value at a path, which is added if it is absent.

    Args:
        text: YAML or JSON.
        path: Path of the value, such as `telemetry.delay`.
        value: YAML text of the value.

    Raises:
        InputError: The path leads through a value that has no such part.
    """
    try:
        # An edit of an aliased node would show in two places, and the path names one.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
            raise _setting_error(path, value, "the scenario has YAML aliases; write them out")
        node = yaml.compose(text)
    except yaml.YAMLError as error:
        raise _setting_error(path, value, f"the scenario cannot be edited: {error}") from error
    steps = list(_steps(path))
    for at, part in enumerate(steps):
        if isinstance(node, yaml.MappingNode) and isinstance(part, str):
            below = [child for key, child in node.value if key.value == part]
            if not below:
                return _insert(text, node, f"{part}: {_nest(path, value, steps[at + 1 :])}")
            node = below[0]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            if part >= len(node.value):
                raise _setting_error(path, value, f"[{part}]: there are {len(node.value)}, counted from 0")
            node = node.value[part]
        elif _is_empty(node) and isinstance(part, str):
            value = _nest(path, value, steps[at:])
            break
        else:
            kind = "a list there" if isinstance(part, int) else "fields there"
            what = f"`{part}`: the scenario has no {kind}"
            if isinstance(node, yaml.SequenceNode):
                place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps[:at])
                what += f", but a list of {len(node.value)}: {place.lstrip('.')}[0].{part}"
            raise _setting_error(path, value, what)
    # The node of a block ends where the next begins; its last line and the blanks before that stay.
    start, end = node.start_mark.index, node.end_mark.index
    end = start + len(text[start:end].rstrip())
    touches_name = start > 0 and not text[start - 1].isspace() and text[start - 1] not in "[{"
    # A list may stand as far left as its name, but no other value may.
    is_block_list = isinstance(node, yaml.SequenceNode) and not node.flow_style
    blank = " " if touches_name or is_block_list else ""
    return text[:start] + blank + value + text[end:]


def _steps(path: str) -> Iterator[str | int]:
    at = 0
    while at < len(path):
        part = _PART.match(path, at)
        if not part or (at == 0 and not path[0].isalpha()):
            raise _setting_error(
                path, None, "expected a path such as telemetry.delay or workloads[0].facebook.load"
            )
        at = part.end()
        yield part[1] or int(part[2])


def _stands_alone(value: str) -> bool:
    try:
        node = yaml.compose(f"[{value}]")
    except yaml.YAMLError:
        return False
    # `a: b` would be a mapping too, but only within brackets.
    return len(node.value) == 1 and (isinstance(node.value[0], yaml.ScalarNode) or value[0] in "[{")


def _is_empty(node: Any) -> bool:
    return node is not None and node.tag == "tag:yaml.org,2002:null"


def _nest(path: str, value: str, steps: Sequence[str | int]) -> str:
    for part in reversed(steps):
        if isinstance(part, int):
            raise _setting_error(path, value, f"[{part}]: the scenario has no such list")
        value = f"{{{part}: {value}}}"
    return value


def _insert(text: str, mapping: Any, field: str) -> str:
    """Inserts a field before the first field of a mapping, whose indentation is known."""
    if mapping.flow_style:
        start = mapping.start_mark.index + 1
        return text[:start] + field + (", " if mapping.value else "") + text[start:]
    first = mapping.value[0][0].start_mark
    return f"{text[: first.index]}{field}\n{' ' * first.column}{text[first.index :]}"


def _setting_error(path: str, value: str | None, message: str) -> InputError:
    where = f"settings {path}" if value is None else f"settings {path}={value}"
    return InputError.about(where, message)
