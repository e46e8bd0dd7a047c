"""Workloads with tail latency objectives: their bounds, priorities, admission and packing.

>>> from leeward.slo import load
>>> workloads = load("examples/slo/w.yaml", "examples/slo/cluster.yaml")  # doctest: +SKIP
>>> workloads.bound("snc")["workloads"][0]["bound_s"]  # doctest: +SKIP
"""

import json
import re
from collections.abc import Callable, Mapping
from math import ceil
from os import PathLike, fspath, path
from typing import Any, ClassVar

import pyarrow
import yaml

from leeward._native import Cluster, SloWorkloads, check_slo, file_text, pack_slo
from leeward.data import data_folder
from leeward.errors import MOST_SEED, InputError, whole_number

METHODS = ("dnc", "priority-meister", "plp", "snc", "best")
"""Methods that bound latencies; `best` is the least bound of the other applicable methods."""

LIMITS = ("compactor", "effective-bandwidth", "average", "knee", "several")
"""Methods that choose rate limits."""

SERVER_ORDERS = ("first", "fewest-workloads", "least-load", "least-bursts", "same-slos", "random")
"""Orders in which packing tries servers that have volumes; `first` is their own order."""

ORDERS = ("priority", "fifo", "shares", "cake", "deadline")
"""Service orders of devices in a replay; `fifo` applies to links too, which otherwise keep priorities."""

STARTS = ("recorded", "together")
"""Starts of traces in a replay: with the times between them, or each with its first request at time 0."""

_MOST_REQUESTS, _MOST_BYTES = 10**6, 10**15
"""Greatest caps of a device."""
_NO_CAP = 2**64 - 1

__all__ = [
    "LIMITS",
    "METHODS",
    "ORDERS",
    "SERVER_ORDERS",
    "STARTS",
    "Workloads",
    "apply_packing",
    "check",
    "dump_packing",
    "load",
    "pack",
    "text_of",
]


class Workloads:
    """Workloads of a file on a cluster."""

    def __init__(self, native: SloWorkloads) -> None:
        """Takes the result of `load`."""
        self._native = native

    def bound(self, method: str = "best") -> dict[str, Any]:
        """Latency bound of each workload.

        Args:
            method: One of `METHODS`.

        Returns:
            Common facts (`file`, `cluster`, `margin`, `congestion`, `priorities`, `queues`, `notes` and so
            on), and `workloads`, as `leeward slo bound -o json` prints them.

        Raises:
            InputError: The method is unknown.
        """
        record: dict[str, Any] = self._native.bound(method)
        return record

    def prioritize(
        self, *, by_slo: bool = False, levels: int | None = None, method: str = "best"
    ) -> dict[str, Any]:
        """Assigns priorities and returns the bounds under them.

        Args:
            by_slo: True to order by SLO, the tightest first, instead of the search of PriorityMeister.
                `priorities` in the result is `by-slo` or `search`.
            levels: Number of priorities that networks distinguish; by default the value of the file.
            method: Bound that the search uses.

        Returns:
            The same as `bound`, under the assigned priorities.

        Raises:
            InputError: An argument is invalid.
        """
        if levels is not None:
            whole_number("levels", levels, 1, 1_000_000)
        record: dict[str, Any] = self._native.prioritize("by-slo" if by_slo else "search", levels, method)
        return record

    def admit(self, arriving: str | PathLike[str], method: str = "best") -> dict[str, Any]:
        """Decides the admission of workloads that arrive one after another, in addition to these workloads.

        Args:
            arriving: A file of workloads with servers. A workload with the name of a present one replaces it.
            method: A policy for admission, with settings after colons: `dnc:search=false`. `leeward policies`
                lists them.

        Returns:
            The same as `bound`, for all workloads that run in the end; and `arrivals` and `residents`
            (without replaced ones), each with `admitted` (runs with the requested SLO), the reason why it is
            `refused`, `runs`, the workloads that it would have `disturbed`, and `changed` (replaces a present
            one). The volume of a changed workload that is refused should move.

        Raises:
            InputError: The file or an argument is invalid.
        """
        record: dict[str, Any] = self._native.admit(fspath(arriving), method)
        return record


def load(
    file: str | PathLike[str],
    cluster: Cluster | Mapping[str, Any] | str | PathLike[str],
    *,
    data: str | PathLike[str] | None = None,
) -> Workloads:
    """Reads a file of workloads and the traces that it names, each once.

    Args:
        file: File of workloads; see the reference of SLO files.
        cluster: A `Cluster`, or anything that `Cluster(...)` takes.
        data: Folder of `data:...` files; by default as for scenarios.

    Raises:
        InputError: The file, or a file that it names, is invalid.
    """
    return Workloads(SloWorkloads(fspath(file), Cluster(cluster), data=data or data_folder()))


def check(
    file: str | PathLike[str],
    cluster: Cluster | Mapping[str, Any] | str | PathLike[str],
    *,
    method: str = "best",
    over: str | None = None,
    order: str | None = None,
    tails: bool | None = None,
    seed: int | None = None,
    start: str | None = None,
    caps: Mapping[str, Any] | None = None,
    closed: Mapping[str, int] | None = None,
    rows: bool = False,
    data: str | PathLike[str] | None = None,
) -> tuple[dict[str, Any], pyarrow.Table | None]:
    """Bounds of the workloads of a file, and their latencies in a replay of their traces.

    An argument that is None has the value in the file of workloads, or its default.

    Args:
        file: File of workloads that all have a server.
        cluster: A `Cluster`, or anything that `Cluster(...)` takes.
        method: Bound to check, one of `METHODS`.
        over: Treatment of requests over a limit: `held`, the default, or `demoted` below all others; or one
            for each stage, as `storage=demoted,network-in=held`.
        order: Service order of devices, one of `ORDERS`; `fifo` applies to links too. Default `priority`.
        tails: True to draw the latency without queueing of each request from the profile of its device;
            false, the default, to use only its work. With true, bounds hold for the SLO's percentile of
            requests, with any method: they add the profile's value at that percentile.
        seed: Seed of the draws. Default 1.
        start: Start of the traces, one of `STARTS`. Default `recorded`.
        caps: Caps of devices that replace those of all device files, by their names there:
            `outstanding_reads` and `outstanding_writes` (requests), `outstanding_read_bytes` and
            `outstanding_write_bytes` (bytes), `behind` (`requests` and `bytes`) and `write_batch` (`bytes`
            and `gap_bytes`). None as a value is no cap.
        closed: Workloads that keep a number of requests open, by name. They send the requests of their traces
            one after another, whatever the times of the requests are.
        rows: True to return each request too.
        data: Folder of `data:...` files; by default as for scenarios.

    Returns:
        The output of `leeward slo check --replay -o json`; and, if `rows`, a table with the latency of each
        request, in order of completion (else None).

    Raises:
        InputError: A file or an argument is invalid.
    """
    if seed is not None:
        whole_number("seed", seed, 0, MOST_SEED)
    return check_slo(
        fspath(file),
        Cluster(cluster),
        data=data or data_folder(),
        method=method,
        over=over,
        order=order,
        tails=tails,
        seed=seed,
        start=start,
        caps=None if caps is None else _caps(caps),
        closed=None if closed is None else _closed(closed),
        rows=rows,
    )


def _closed(closed: Mapping[str, int]) -> dict[str, int]:
    """Closed loops of `check` as the extension takes them.

    Raises:
        InputError: A number is invalid.
    """
    for name, number in closed.items():
        whole_number(f"closed {name}", number, 1, _MOST_REQUESTS)
    return dict(closed)


def _caps(caps: Mapping[str, Any]) -> dict[str, int | tuple[int, int] | None]:
    """Caps of `check` as the extension takes them.

    Raises:
        InputError: A cap is unknown or invalid.
    """
    numbers = {
        "outstanding_reads": _MOST_REQUESTS,
        "outstanding_writes": _MOST_REQUESTS,
        "outstanding_read_bytes": _MOST_BYTES,
        "outstanding_write_bytes": _MOST_BYTES,
    }
    limits: dict[str, dict[str, tuple[int, int]]] = {
        "behind": {"requests": (0, _MOST_REQUESTS), "bytes": (0, _MOST_BYTES)},
        "write_batch": {"bytes": (1, _MOST_BYTES), "gap_bytes": (0, _MOST_BYTES)},
    }
    for name, value in caps.items():
        if name not in numbers | limits:
            raise InputError.about("caps", f"`{name}`: expected one of {', '.join(numbers | limits)}")
        if value is None:
            continue
        if name in numbers:
            whole_number(f"caps {name}", value, 1, numbers[name])
            continue
        if not value or value.keys() - limits[name].keys():
            raise InputError.about(f"caps {name}", f"expected {' and '.join(limits[name])}, or None")
        for field, number in value.items():
            whole_number(f"caps {name}.{field}", number, *limits[name][field])
    if caps.get("write_batch") and "bytes" not in caps["write_batch"]:
        raise InputError.about("caps write_batch", "expected bytes")

    def pair(name: str, usual: tuple[int, int]) -> tuple[int, int] | None:
        if name not in caps:
            return None
        first, second = limits[name]
        given = caps[name] or {}
        return given.get(first, usual[0]), given.get(second, usual[1])

    return {
        **{name.removeprefix("outstanding_"): _number(caps, name) for name in numbers},
        "behind": pair("behind", (_NO_CAP, _NO_CAP)),
        "write_batch": pair("write_batch", (0, 0)),
    }


def _number(caps: Mapping[str, Any], name: str) -> int | None:
    """A cap on requests or bytes: 0 for no cap, None if it is not given."""
    return (caps[name] or 0) if name in caps else None


def pack(
    file: str | PathLike[str],
    cluster: Cluster | Mapping[str, Any] | str | PathLike[str],
    *,
    limits: str = "compactor",
    settings: Mapping[str, Any] | str = "",
    fast: bool = False,
    servers_by: str = "first",
    method: str = "best",
    margin: float | None = None,
    error: float = 0.0,
    threads: int = 1,
    again: bool = False,
    progress: Callable[[int], None] | None = None,
    data: str | PathLike[str] | None = None,
    text: str | None = None,
) -> dict[str, Any]:
    """Chooses server, priority and limits of every workload, so that few servers keep all SLOs.

    Args:
        file: File of workloads without servers, placed one after another.
        cluster: A `Cluster`, or anything that `Cluster(...)` takes. It must have `priorities`.
        limits: Method of choosing limits, one of `LIMITS`, with settings after colons:
            `compactor:slack=0.1`.
        settings: Settings of the method instead, or a YAML text of them.
        fast: True to skip servers whose configured rates leave no room.
        servers_by: Order of trials of servers with volumes, one of `SERVER_ORDERS`; empty servers come last.
        method: Bound that each place must keep for every workload that it may affect, one of `METHODS`.
        margin: Safety margin, such as 0.1; by default the value of the file.
        error: Greatest relative increase of a curve by leaving out buckets, which makes packing faster.
        threads: Number of servers tried at once. The result does not depend on it.
        again: True to discard servers, priorities and limits in the file.
        progress: Called with the number of workloads considered.
        data: Folder of `data:...` files; by default as for scenarios.
        text: Content of the file, if it was read already by `text_of`: a pipe can be read only once.

    Returns:
        The output of `leeward slo pack -o json`.

    Raises:
        InputError: A file or an argument is invalid.
    """
    whole_number("threads", threads, 1, 1024)
    result: dict[str, Any] = pack_slo(
        fspath(file),
        Cluster(cluster),
        data=data or data_folder(),
        limits=limits,
        settings=settings if isinstance(settings, str) else yaml.safe_dump(dict(settings)),
        fast=fast,
        servers_by=servers_by,
        method=method,
        margin=margin,
        error=error,
        threads=threads,
        again=again,
        progress=progress,
        text=text,
    )
    return result


def text_of(file: str | PathLike[str]) -> str:
    """Content of a file, for `pack` and then for `apply_packing`.

    Raises:
        InputError: The file cannot be read, or is not text.
    """
    return file_text(fspath(file))


def apply_packing(
    record: dict[str, Any], folder: str | PathLike[str] = ".", text: str | None = None
) -> dict[str, Any]:
    """Content of the packed file of workloads, with server, priority and limits of each placed workload.

    Texts of the file stay unchanged: a volume called `yes` or `010` keeps its name. Limits are rounded up to
    whole bytes and nanoseconds; packing leaves room for that.

    Args:
        record: Result of `pack`.
        folder: Folder of the output, from which names of other files are relative.
        text: Content of the packed file; by default the file is read again.

    Raises:
        InputError: The file has changed since it was packed.
    """
    content = _texts(record["file"], text)
    base = path.dirname(record["file"])

    def relative(name: str) -> str:
        if name.startswith("data:") or path.isabs(name):
            return name
        return path.relpath(path.join(base, name), folder)

    placements = {placement["workload"]: placement for placement in record["workloads"]}
    if content.get("device") is not None:
        content["device"] = relative(content["device"])
    # All digits, because the file is read back.
    content["margin"] = f"{100 * record['margin']:.17g}%"
    workloads = []
    for workload in content["workloads"]:
        placement = placements.pop(workload["name"], None)
        if placement is None:
            continue
        fields = {
            field: relative(value)
            if field in ("trace", "curves", "model") and isinstance(value, str)
            else value
            for field, value in workload.items()
        }
        fields["server"] = placement["server"]
        # `stages` stays unchanged: the reader skips network stages if the server is the client.
        stages = placement["stages"]
        fields["priority"] = {stage["stage"]: str(stage["priority"]) for stage in stages}
        fields["limits"] = {stage["stage"]: _buckets(stage) for stage in stages if stage["limits"]}
        workloads.append(fields)
    if placements:
        raise InputError.about(
            record["file"], f"workload `{next(iter(placements))}` was packed and is not in the file"
        )
    content["workloads"] = workloads
    return content


def dump_packing(record: dict[str, Any], folder: str | PathLike[str] = ".", text: str | None = None) -> str:
    """Result of `apply_packing` as the YAML text of a file.

    Raises:
        InputError: The file has changed since it was packed.
    """
    text_of_file: str = yaml.dump(
        apply_packing(record, folder, text), Dumper=_Writer, sort_keys=False, allow_unicode=True
    )
    return text_of_file


_UNQUOTED = {"int": r"0|[1-9][0-9]*", "float": r"(0|[1-9][0-9]*)\.[0-9]+", "bool": "true|false"}


class _Reader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads every scalar except null as text, and resolves merge keys.

    YAML 1.1, which this library implements, reads numbers, dates and booleans that the reader of workloads
    does not.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, form) for tag, form in known if tag.endswith((":null", ":merge"))]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class _Writer(yaml.SafeDumper):  # type: ignore[misc]
    """Writes texts that are plainly numbers or booleans without quotes; all readers read these alike."""

    def ignore_aliases(self, data: object) -> bool:
        """Writes repeated content in full, since people read one workload at a time."""
        return True


def _plain(writer: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    for kind, form in _UNQUOTED.items():
        if re.fullmatch(form, text):
            return writer.represent_scalar(f"tag:yaml.org,2002:{kind}", text)
    return writer.represent_str(text)


_Writer.add_representer(str, _plain)


def _texts(file: str, text: str | None) -> dict[str, Any]:
    """Content of a file of workloads or of its text, with numbers and booleans as texts.

    `pack` has read it before, so that its depth and size are limited.
    """
    try:
        if text is None:
            with open(file, encoding="utf-8") as opened:
                text = opened.read()
        text = text.removeprefix("\ufeff")
        try:
            content = json.loads(text, parse_int=str, parse_float=str)
        except ValueError:
            content = yaml.load(text, Loader=_Reader)
        if all("name" in workload for workload in content["workloads"]):
            return dict(content)
    except (OSError, ValueError, TypeError, KeyError, RecursionError, yaml.YAMLError):
        pass
    raise InputError.about(file, "it cannot be read again to be filled in")


def _buckets(stage: dict[str, Any]) -> list[dict[str, str]]:
    """Token buckets as in a workload file: with all digits, because the file is read back."""
    if stage["unit"] == "s":
        return [
            {"rate": f"{100 * bucket['rate']:.17g}%", "burst": f"{ceil(1e9 * bucket['burst'])}ns"}
            for bucket in stage["limits"]
        ]
    return [
        {"rate": f"{ceil(bucket['rate'])}B/s", "burst": f"{ceil(bucket['burst'])}B"}
        for bucket in stage["limits"]
    ]
