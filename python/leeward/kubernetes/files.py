"""Recordings as folders, to keep or to carry to another machine.

recording.json   nodes, templates and pods
racks.parquet    rates of racks: rack, interval, out_bps, into_bps
pods.parquet     rates of pods: pod (its position), interval, out_bps, into_bps
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy
import pyarrow
from numpy.typing import NDArray
from pyarrow import parquet

from leeward._files import atomic_folder
from leeward.errors import InputError
from leeward.kubernetes.recording import (
    REASONS,
    Expression,
    Node,
    Pod,
    Rates,
    Recording,
    Taint,
    Template,
    Toleration,
    Traffic,
    as_json,
)

FORMAT = 1
"""Version of the format."""
ABOUT, RACKS, PODS = "recording.json", "racks.parquet", "pods.parquet"
MOST_INTERVALS = 100_000
_RATES = [("interval", pyarrow.int32()), ("out_bps", pyarrow.float64()), ("into_bps", pyarrow.float64())]
_OF_RACKS = pyarrow.schema([("rack", pyarrow.string()), *_RATES])
_OF_PODS = pyarrow.schema([("pod", pyarrow.int32()), *_RATES])
Record = TypeVar("Record", Node, Template, Pod)


def find_foreign(folder: Path) -> str | None:
    """First entry of a folder that is no part of a recording; None if all are."""
    return next((one.name for one in sorted(folder.iterdir()) if one.name not in (ABOUT, RACKS, PODS)), None)


def write_recording(recording: Recording, folder: str | PathLike[str]) -> None:
    """Writes a recording, completely or not at all; it replaces an earlier one.

    Raises:
        OSError: The folder cannot be written.
    """
    about = {
        "format": FORMAT,
        **{name: getattr(recording, name) for name in ("begin_ms", "interval_ms", "intervals")},
        "rack_bps": dict(recording.rack_bps),
        "notes": list(recording.notes),
        **{name: as_json(getattr(recording, name)) for name in ("nodes", "templates", "pods")},
    }
    racks = [
        _table(_OF_RACKS, rack, 0, recording.out[rack], recording.into[rack]) for rack in recording.rack_bps
    ]
    pods = [_table(_OF_PODS, at, one.first, one.out, one.into) for at, one in recording.traffic.items()]
    with atomic_folder(folder) as temporary:
        text = json.dumps(about, indent=1, allow_nan=False)
        (temporary / ABOUT).write_text(f"{text}\n", encoding="utf-8")
        for name, schema, tables in ((RACKS, _OF_RACKS, racks), (PODS, _OF_PODS, pods)):
            parquet.write_table(pyarrow.concat_tables([schema.empty_table(), *tables]), temporary / name)


def _table(schema: pyarrow.Schema, key: str | int, first: int, out: Rates, into: Rates) -> pyarrow.Table:
    numbers = numpy.arange(first, first + len(out), dtype=numpy.int32)
    columns = [[key] * len(out), numbers, out, into]
    # NaN stands for an unknown rate only within this package.
    arrays = [
        pyarrow.array(column, type=one.type, from_pandas=True)
        for column, one in zip(columns, schema, strict=True)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=schema)


def read_recording(folder: str | PathLike[str]) -> Recording:
    """Reads a recording.

    Raises:
        InputError: The folder is no recording, or a part of it is invalid.
    """
    place = Path(folder)
    about = _about(place)
    name = str(place / ABOUT)
    try:
        begin, length, count = (_whole(about[key]) for key in ("begin_ms", "interval_ms", "intervals"))
        rack_bps = {str(rack): _whole(bps) for rack, bps in about["rack_bps"].items()}
        nodes = tuple(_node(one) for one in about["nodes"])
        templates = tuple(_template(one) for one in about["templates"])
        pods = tuple(Pod(**_fields(Pod, one)) for one in about["pods"])
        notes = tuple(str(note) for note in about["notes"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError.about(name, f"not a recording of this version: {error}") from None
    if not (1 <= count <= MOST_INTERVALS and length >= 1):
        raise InputError.about(name, f"expected 1 to {MOST_INTERVALS:,} intervals of a positive length")
    out, into = ({rack: numpy.full(count, numpy.nan) for rack in rack_bps} for _ in range(2))
    for rack, at, *ways in _rates(place / RACKS, _OF_RACKS, rack_bps.__contains__, count):
        out[rack], into[rack] = (_series(count, 0, at, way) for way in ways)
    traffic = _traffic(place / PODS, len(pods), count)
    recording = Recording(begin, length, count, rack_bps, nodes, templates, pods, out, into, traffic, notes)
    _check(name, recording)
    return recording


def _about(folder: Path) -> dict[str, Any]:
    name = str(folder / ABOUT)
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except OSError as error:
        problem = InputError.about(name, error.strerror or "cannot be read")
        problem.add_note("expected the folder of a recording, which --record writes")
        raise problem from None
    except (ValueError, RecursionError):
        raise InputError.about(name, "not valid JSON") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        version = about.get("format") if isinstance(about, dict) else None
        raise InputError.about(name, f"format {version}: expected {FORMAT}; record the cluster again")
    return about


def _node(content: Any) -> Node:
    values = _fields(Node, content)
    return Node(**values | {"taints": tuple(Taint(**one) for one in values.get("taints", ()))})


def _template(content: Any) -> Template:
    values = _fields(Template, content)
    terms = tuple(
        tuple(Expression(**one | {"values": tuple(one.get("values", ()))}) for one in term)
        for term in values.get("terms", ())
    )
    tolerations = tuple(Toleration(**one) for one in values.get("tolerations", ()))
    pairs: dict[str, Any] = {
        name: _pair(values[name]) for name in ("peak_bps", "limit_bps") if name in values
    }
    return Template(**values | pairs | {"terms": terms, "tolerations": tolerations})


def _pair(value: Any) -> tuple[int | None, int | None]:
    egress, ingress = value
    return (None if egress is None else _whole(egress), None if ingress is None else _whole(ingress))


def _fields(kind: type[Record], content: Any) -> dict[str, Any]:
    """Fields of a record; a later version may have more."""
    return {one.name: content[one.name] for one in fields(kind) if one.name in content}


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**62:
        raise ValueError(f"`{str(value)[:40]}`: expected a whole number")
    return value


def _rates(
    path: Path, schema: pyarrow.Schema, is_known: Callable[[Any], bool], count: int
) -> Iterator[tuple[Any, NDArray[numpy.int32], Rates, Rates]]:
    """Intervals of each rack or pod, with the rates out of it and into it; a null rate is NaN.

    Raises:
        InputError: The file is unreadable, or has a rate of no interval, rack or pod.
    """
    if not path.is_file():
        raise InputError.about(path, "no such file")
    try:
        table = parquet.read_table(path, columns=schema.names).cast(schema)
    except (OSError, ValueError, KeyError, pyarrow.ArrowException):
        raise InputError.about(path, f"not a table of {', '.join(schema.names)}") from None
    key = schema.names[0]
    if table[key].null_count or table["interval"].null_count:
        raise InputError.about(path, f"{key} or interval is null in a row")
    keys, at, out, into = (table[name].to_numpy() for name in schema.names)
    names, codes = numpy.unique(keys, return_inverse=True)
    known = numpy.array([is_known(name) for name in names.tolist()], dtype=numpy.bool_)
    foreign = numpy.flatnonzero((at < 0) | (at >= count) | ~known[codes])
    if len(foreign):
        row = foreign[0]
        raise InputError.about(path, f"row {row}: {key} {keys[row]}, interval {at[row]}: not in {ABOUT}")
    wrong = numpy.flatnonzero((out < 0) | (into < 0) | numpy.isinf(out) | numpy.isinf(into))
    if len(wrong):
        raise InputError.about(path, f"row {wrong[0]}: expected rates of at least 0")
    order = numpy.lexsort((at, codes))
    rows = numpy.split(order, numpy.flatnonzero(numpy.diff(codes[order])) + 1) if len(order) else []
    for name, part in zip(names.tolist(), rows, strict=True):
        yield name, at[part], out[part], into[part]


def _series(count: int, first: int, at: NDArray[numpy.int32], values: Rates) -> Rates:
    """Rates in each interval from the first one on, NaN in the others."""
    series = numpy.full(count, numpy.nan)
    series[at - first] = values
    return series


def _traffic(path: Path, pods: int, count: int) -> dict[int, Traffic]:
    """Traffic of pods from the first known interval to the last one."""
    traffic = {}
    for pod, at, out, into in _rates(path, _OF_PODS, range(pods).__contains__, count):
        known = ~numpy.isnan(out + into)
        if known.any():
            first, length = int(at[known][0]), int(at[known][-1] - at[known][0]) + 1
            ways = (_series(length, first, at[known], way[known]) for way in (out, into))
            traffic[pod] = Traffic(first, *ways)
    return traffic


def _check(name: str, recording: Recording) -> None:
    """Checks numbers and references."""
    _check_racks(name, recording)
    for pod in recording.pods:
        where = f"pod {pod.namespace}/{pod.name}"
        if not isinstance(pod.template, int) or not 0 <= pod.template < len(recording.templates):
            raise InputError.about(name, f"{where}: no such template: {pod.template}")
        times = (pod.created_ms, pod.created_ms if pod.ended_ms is None else pod.ended_ms)
        if not all(isinstance(time, int) and abs(time) < 2**53 for time in times):
            raise InputError.about(name, f"{where}: expected times in milliseconds since 1970")
    for number, template in enumerate(recording.templates):
        if template.unfit is not None and template.unfit not in REASONS:
            raise InputError.about(name, f"template {number}: no such reason: {template.unfit}")
        _check_amounts(f"{name}: template {number}", template.requests)


def _check_racks(name: str, recording: Recording) -> None:
    if not recording.rack_bps or min(recording.rack_bps.values()) < 1:
        raise InputError.about(name, "expected racks, each with a positive rate")
    names: Iterable[str] = [node.name for node in recording.nodes]
    if len(set(names)) != len(recording.nodes):
        raise InputError.about(name, "a node is listed twice")
    for node in recording.nodes:
        if node.rack is not None and node.rack not in recording.rack_bps:
            raise InputError.about(name, f"node {node.name}: no such rack: {node.rack}")
        _check_amounts(f"{name}: node {node.name}", node.room)


def _check_amounts(name: str, amounts: Mapping[str, Any]) -> None:
    for resource, value in amounts.items():
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**60:
            raise InputError.about(name, f"{resource}: `{str(value)[:40]}`: expected a whole number from 0")
