"""Inputs as programs have them: mappings, tables and arrays of any library, and graphs; beside paths."""

import json
from collections.abc import Collection, Iterable, Mapping
from math import isfinite
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from leeward._arrow import Table
from leeward.errors import InputError

Links = str | PathLike[str] | Mapping[str, float | None] | Table
"""Numbers of links: the path of a file, a number for each name, or a table."""
Document = str | PathLike[str] | Mapping[str, Any]
"""A document: the path of its file, or a mapping with its fields."""
SIZES = ("block", "bytes", "bytes_per_writer", "memory", "size", "total")
"""Fields of documents that are sizes: a number is one of bytes."""
CLUSTER_SIZES = (*SIZES, "capacity")
"""Likewise of clusters, where only devices have a capacity."""
OPERATIONS_SIZES = (*SIZES, "buffer", "cache", "host_limit", "mark_at")
"""Likewise of scenarios of operations."""
_IN_MEMORY = "(in memory)"
"""The cluster in the text of a scenario whose cluster is no path."""


@runtime_checkable
class Graph(Protocol):
    """A graph of networkx."""

    def is_directed(self) -> bool:
        """True if its edges have a direction."""

    def nodes(self, data: bool = False) -> Iterable[tuple[Any, Mapping[str, Any]]]:
        """Nodes, with their attributes."""

    def edges(self, data: bool = False) -> Iterable[tuple[Any, Any, Mapping[str, Any]]]:
        """Edges, with their attributes."""


App = Document | Graph
"""An app: as a document, or as a graph of its tasks."""


def is_table(value: object) -> bool:
    """True for an object that Arrow can read as a table, or as an array."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def size_text(argument: str, size: str | int) -> str:
    """A size with its unit; a number is one of bytes.

    Raises:
        InputError: The number is negative.
        TypeError: The value is neither a text nor a whole number.
    """
    if isinstance(size, str):
        return size
    text = _bytes(size)
    if text is None:
        raise TypeError(f"{argument}: {type(size).__name__}: expected a text, or a whole number of bytes")
    if text.startswith("-"):
        raise InputError.about(argument, f"`{size}`: expected bytes, not negative")
    return text


def link_rows(value: Links | None, argument: str, column: str) -> Any:
    """A path or a table for the extension module; a mapping becomes a table.

    Args:
        value: Numbers of links.
        argument: Name of the argument, for errors.
        column: Column of the numbers in a table.

    Raises:
        InputError: The value is something else, or a number of a mapping is none.
    """
    if value is None or isinstance(value, str | PathLike) or is_table(value):
        return value
    if not isinstance(value, Mapping):
        form = "a file, numbers by name of link, or a table that Arrow can read"
        raise InputError.about(argument, f"{type(value).__name__}: expected {form}")
    import pyarrow

    numbers: list[float | None] = []
    for link, number in value.items():
        try:
            numbers.append(None if number is None else float(number))
        except (TypeError, ValueError):
            message = f"`{str(number)[:40]}`: expected a number"
            raise InputError(argument, None, None, str(link), message) from None
    names = pyarrow.array([str(link) for link in value], pyarrow.string())
    return pyarrow.table({"link": names, column: pyarrow.array(numbers, pyarrow.float64())})


def app_document(app: App | None) -> Document | None:
    """An app as a document: a graph has tasks as its nodes, and transfers as its edges.

    Nodes may have `cpus` and `memory`, and edges have `bytes`. Other attributes do not count.

    Raises:
        InputError: The edges of a graph have no direction or no `bytes`, two nodes have one name, or two
            edges join the same tasks.
    """
    if app is None or isinstance(app, str | PathLike | Mapping):
        return app
    if not isinstance(app, Graph):
        form = "a file, a mapping with its fields, or a directed graph"
        raise InputError.about("app", f"{type(app).__name__}: expected {form}")
    if not app.is_directed():
        raise InputError.about("app", "expected a directed graph: an edge from each sender to its receiver")
    tasks: dict[str, dict[str, Any]] = {}
    for node, data in app.nodes(data=True):
        name = str(node)
        if name in tasks:
            raise InputError.about("app", f"`{name[:40]}`: two nodes have this name")
        tasks[name] = {"name": name} | {field: data[field] for field in ("cpus", "memory") if field in data}
    transfers: dict[tuple[str, str], dict[str, Any]] = {}
    for sender, receiver, data in app.edges(data=True):
        ends = str(sender), str(receiver)
        if "bytes" not in data:
            raise InputError.about("app", f"the edge from {ends[0]} to {ends[1]} has no attribute `bytes`")
        if ends in transfers:
            message = f"two edges from {ends[0]} to {ends[1]}: expected one, with the bytes of both"
            raise InputError.about("app", message)
        transfers[ends] = {"from": ends[0], "to": ends[1], "bytes": data["bytes"]}
    return {"tasks": list(tasks.values()), "transfers": list(transfers.values())}


def current_hosts(where: Mapping[str, Any] | str | PathLike[str]) -> dict[str, str]:
    """Host of each task, from a mapping, an answer of `place_tasks`, or a JSON file of either."""
    name, value = "where", where
    if isinstance(where, str | PathLike):
        name = fspath(where)
        try:
            value = json.loads(Path(where).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError.about(name, error.strerror or str(error)) from None
        except ValueError:
            message = "expected JSON, as `leeward place tasks -o json` writes it"
            raise InputError.about(name, message) from None
    if not isinstance(value, Mapping):
        raise InputError.about(name, "expected an object with the host of each task")
    tasks = value.get("tasks")
    if isinstance(tasks, list):
        entries = [one if isinstance(one, Mapping) else {} for one in tasks]
        pairs = [(entry.get("task"), entry.get("host")) for entry in entries]
    else:
        pairs = list(value.items())
    hosts = {task: host for task, host in pairs if isinstance(task, str) and isinstance(host, str)}
    if len(hosts) < len(pairs):
        raise InputError.about(name, "expected the name of a task and its host in each entry")
    return hosts


def json_text(mapping: Mapping[str, Any], sizes: Collection[str] = SIZES) -> str:
    """JSON text of a document in a mapping.

    Values may be tables (lists of rows, without empty cells), arrays and numbers of other libraries, and
    paths.

    Args:
        mapping: The document.
        sizes: Fields whose numbers are bytes.

    Raises:
        InputError: A value has no form in JSON.
    """
    try:
        return json.dumps(_plain(mapping, sizes), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError.about("<mapping>", str(error)) from None


def cluster_text(mapping: Mapping[str, Any]) -> str:
    """JSON text of a cluster. A table of `hosts` with a column `rack` stands for the racks.

    Its columns are those of `Cluster.host_table`, and fields of hosts.

    Raises:
        InputError: A value has no form in JSON, or a host has no name or no rack.
    """
    hosts = mapping.get("hosts")
    if not is_table(hosts) or hasattr(hosts, "tolist"):
        return json_text(mapping, CLUSTER_SIZES)
    rows = _plain(hosts, CLUSTER_SIZES)
    if not any("rack" in row for row in rows):
        return json_text(mapping, CLUSTER_SIZES)
    racks: dict[str, dict[str, Any]] = {}
    for at, row in enumerate(rows):
        name = row.pop("host", None) or row.pop("name", None)
        rack, pod = row.pop("rack", None), row.pop("pod", None)
        if not isinstance(name, str) or not isinstance(rack, str):
            message = f"row {at}: expected the name of a host and of its rack"
            raise InputError("<mapping>", None, None, "hosts", message)
        place = {"name": rack} | ({} if pod is None else {"pod": pod})
        racks.setdefault(rack, place | {"hosts": []})["hosts"].append({"name": name} | row)
    fields = {key: value for key, value in mapping.items() if key != "hosts"}
    pods = dict.fromkeys(rack["pod"] for rack in racks.values() if "pod" in rack)
    if pods and "pods" not in fields:
        fields["pods"] = [{"name": pod} for pod in pods]
    return json_text(fields | {"racks": list(racks.values())}, CLUSTER_SIZES)


def _plain(value: Any, sizes: Collection[str], field: str = "") -> Any:
    """A value of mappings, lists, texts and numbers only."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each, sizes, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        # A range of sizes is a list of two.
        return [_plain(each, sizes, field) for each in value]
    # Arrays and numbers of NumPy, and columns of tables, make lists of themselves.
    convert = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    if is_table(value) and convert is None:
        return [
            {key: _plain(cell, sizes, key) for key, cell in row.items() if cell is not None}
            for row in _rows(value)
        ]
    if field in sizes and (text := _bytes(value)) is not None:
        return text
    if callable(convert):
        return _plain(convert(), sizes, field)
    return fspath(value) if isinstance(value, PathLike) else value


def _rows(table: Any) -> list[dict[str, Any]]:
    """Rows of a table."""
    import pyarrow

    try:
        return pyarrow.table(table).to_pylist()  # type: ignore[no-any-return]
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise InputError.about("<mapping>", f"a table that Arrow cannot read: {error}") from None


def _bytes(value: Any) -> str | None:
    """A number of bytes with its unit; None for another value."""
    if isinstance(value, str | bool) or value is None:
        return None
    try:
        number = float(value)
        return f"{int(value)}B" if isfinite(number) and number == int(number) else None
    except (TypeError, ValueError, OverflowError):
        return None


def operations_text(mapping: Mapping[str, Any]) -> tuple[str, Any]:
    """JSON text of a scenario of operations in a mapping, and its cluster.

    The cluster is a source of `Cluster`, or None if the mapping has the path of its file.

    Raises:
        InputError: A value has no form in JSON.
    """
    fields, cluster = without_cluster(mapping)
    return json_text(fields, OPERATIONS_SIZES), cluster


def without_cluster(mapping: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Fields of a scenario, and the source of its cluster unless that is a path."""
    fields = dict(mapping)
    cluster = fields.get("cluster")
    is_path = isinstance(cluster, PathLike) or (isinstance(cluster, str) and "\n" not in cluster)
    if cluster is None or is_path:
        return fields, None
    return fields | {"cluster": _IN_MEMORY}, cluster


def scenario_text(mapping: Mapping[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """JSON text of a scenario in a mapping, its cluster, and its tables by name.

    The cluster is a source of `Cluster`, or None if the mapping has the path of its file. In place of the
    `file` of a workload, there may be a table, or a square array for `matrix`.

    Raises:
        InputError: A value has no form in JSON.
    """
    fields, cluster = without_cluster(mapping)
    tables: dict[str, Any] = {}
    if isinstance(fields.get("workloads"), list | tuple):
        fields["workloads"] = [_workload(one, tables) for one in fields["workloads"]]
    return json_text(fields), cluster, tables


def _workload(workload: Any, tables: dict[str, Any]) -> Any:
    """A workload that reads its table by name; the table is added to `tables`."""
    if not isinstance(workload, Mapping):
        return workload
    result = dict(workload)
    for kind, settings in workload.items():
        file = settings.get("file") if isinstance(settings, Mapping) else None
        more: dict[str, Any] = {}
        if kind == "matrix" and getattr(file, "ndim", None) == 2 and hasattr(file, "tolist"):
            file, more = _pairs(file), {"pairs": ["src", "dst", "amount"]}
        if is_table(file):
            import pyarrow

            name = f"{len(tables)}"
            tables[name] = pyarrow.table(file)
            result[kind] = {**settings, **more, "file": f"table:{name}"}
    return result


def _pairs(matrix: Any) -> Any:
    """Entries of a square array that are not zero, as a table."""
    import numpy
    import pyarrow

    array = numpy.asarray(matrix)
    src, dst = numpy.nonzero(array)
    return pyarrow.table({"src": src, "dst": dst, "amount": array[src, dst]})
