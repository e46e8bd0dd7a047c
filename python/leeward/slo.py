"""Workloads with objectives for tail latency: what is promised to them, and to whom more can be.

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
from leeward.data import found
from leeward.errors import MOST_SEED, InputError, whole_number

METHODS = ("dnc", "priority-meister", "plp", "snc", "best")
"""Ways to bound latencies; `best` is the least of the others that apply."""

LIMITS = ("compactor", "effective-bandwidth", "average", "knee", "several")
"""Ways to choose rate limits."""

ORDERS = ("priority", "fifo", "shares", "cake", "deadline")
"""Orders in which devices of a replay serve; `fifo` counts for its links too, which else keep priorities."""

__all__ = [
    "LIMITS",
    "METHODS",
    "ORDERS",
    "Workloads",
    "check",
    "filled",
    "load",
    "pack",
    "text_of",
    "written",
]


class Workloads:
    """Workloads of a file, where they are on a cluster."""

    def __init__(self, native: SloWorkloads) -> None:
        """Takes what `load` made."""
        self._native = native

    def bound(self, method: str = "best") -> dict[str, Any]:
        """How late the requests of each workload are at most.

        Args:
            method: One of `METHODS`.

        Returns:
            What holds for all (`file`, `cluster`, `margin`, `congestion`, `priorities`, `queues`, `notes`
            and so on), and `workloads`, as `leeward slo bound -o json` prints it.

        Raises:
            InputError: There is no such method.
        """
        record: dict[str, Any] = self._native.bound(method)
        return record

    def prioritize(
        self, *, by_slo: bool = False, levels: int | None = None, method: str = "dnc"
    ) -> dict[str, Any]:
        """Who is served first, and what that keeps.

        Args:
            by_slo: By SLO, the tightest first, instead of PriorityMeister's search. `priorities` of what
                is returned is `by-slo`, or else `search`.
            levels: Priorities that networks tell apart; by default as in the file.
            method: The bound that the search goes by.

        Returns:
            As `bound` does, under the priorities that were found.

        Raises:
            InputError: An argument is not right.
        """
        if levels is not None:
            whole_number("levels", levels, 1, 1_000_000)
        record: dict[str, Any] = self._native.prioritize("by-slo" if by_slo else "search", levels, method)
        return record

    def admit(self, arriving: str | PathLike[str], method: str = "snc") -> dict[str, Any]:
        """Whether workloads that arrive, one after another, can be promised their SLOs beside these.

        Args:
            arriving: A file of workloads with servers. One of the name of one of these is that one, changed.
            method: A policy for admission, with settings after colons: `dnc:search=false`. Those that there
                are: `leeward policies`.

        Returns:
            As `bound` does for all that run in the end; and `arrivals` and `residents` (but for those that
            changed), each with whether it is `admitted` (runs with what it asked for), why it was `refused`,
            whether it `runs`, which others it would have `disturbed`, and whether it was there before and
            `changed`: if such a one is refused, its volume should move.

        Raises:
            InputError: The file or an argument is not right.
        """
        record: dict[str, Any] = self._native.admit(fspath(arriving), method)
        return record


def load(
    file: str | PathLike[str],
    cluster: Cluster | Mapping[str, Any] | str | PathLike[str],
    *,
    data: str | PathLike[str] | None = None,
) -> Workloads:
    """Reads a file of workloads, and the traces that it names, each once.

    Args:
        file: The file; see the reference of SLO files.
        cluster: A `Cluster`, or anything that `Cluster(...)` takes.
        data: The folder that `data:...` is looked up in; by default as for scenarios.

    Raises:
        InputError: The file, or one that it names, is not right.
    """
    return Workloads(SloWorkloads(fspath(file), Cluster(cluster), data=data or found()))


def check(
    file: str | PathLike[str],
    cluster: Cluster | Mapping[str, Any] | str | PathLike[str],
    *,
    method: str = "best",
    over: str = "held",
    order: str = "priority",
    outstanding: int | None = None,
    tails: bool = False,
    seed: int = 1,
    rows: bool = False,
    data: str | PathLike[str] | None = None,
) -> tuple[dict[str, Any], pyarrow.Table | None]:
    """What is promised to the workloads of a file, and what a replay of their traces sees.

    Every trace begins with its first request at time 0, so that all workloads are there together.

    Args:
        file: The file, in which every workload has a server.
        cluster: A `Cluster`, or anything that `Cluster(...)` takes.
        method: The bound that is promised, one of `METHODS`.
        over: What happens to requests over a limit: `held`, or `demoted` to after all others.
        order: Who is served next at devices, one of `ORDERS`; `fifo` counts for links too.
        outstanding: Requests that a device is handed at once, in bounds and replay; by default as the file's
            `bounds` say.
        tails: Whether each request takes a time without queueing that is drawn from its device's profile,
            instead of its work alone. Bounds then are of the SLO's percentile of requests, whatever the
            method: they add what was profiled at it.
        seed: Seed of what is drawn.
        rows: Whether each request is wanted too.
        data: The folder that `data:...` is looked up in; by default as for scenarios.

    Returns:
        What `leeward slo check --replay -o json` prints; and, if `rows`, a table with the latency of each
        request, in the order in which they were done (else None).

    Raises:
        InputError: A file or an argument is not right.
    """
    if outstanding is not None:
        whole_number("outstanding", outstanding, 1, 1_000_000)
    whole_number("seed", seed, 0, MOST_SEED)
    return check_slo(
        fspath(file),
        Cluster(cluster),
        data=data or found(),
        method=method,
        over=over,
        order=order,
        outstanding=outstanding,
        tails_seed=seed if tails else None,
        rows=rows,
    )


def pack(
    file: str | PathLike[str],
    cluster: Cluster | Mapping[str, Any] | str | PathLike[str],
    *,
    limits: str = "compactor",
    settings: Mapping[str, Any] | str = "",
    fast: bool = False,
    margin: float | None = None,
    threads: int = 1,
    again: bool = False,
    progress: Callable[[int, int], None] | None = None,
    data: str | PathLike[str] | None = None,
    text: str | None = None,
) -> dict[str, Any]:
    """Chooses server, priority and limits of every workload, so that few servers keep every SLO.

    Args:
        file: Workloads without servers, placed one after another.
        cluster: A `Cluster`, or anything that `Cluster(...)` takes. It has `priorities`.
        limits: How limits are chosen, one of `LIMITS`.
        settings: Settings of that way, or a YAML text of them.
        fast: Whether servers are passed over whose configured rates leave no room.
        margin: The safety margin, such as 0.1; by default that of the file.
        threads: Servers that are tried at once. The result does not depend on it.
        again: Whether servers, priorities and limits in the file are chosen anew.
        progress: Told the round and how many workloads it has looked at.
        data: The folder that `data:...` is looked up in; by default as for scenarios.
        text: What stands in the file, if that was read already (`text_of`), as one that is a pipe can be only
            once.

    Returns:
        What `leeward slo pack -o json` prints.

    Raises:
        InputError: A file or an argument is not right.
    """
    whole_number("threads", threads, 1, 1024)
    result: dict[str, Any] = pack_slo(
        fspath(file),
        Cluster(cluster),
        data=data or found(),
        limits=limits,
        settings=settings if isinstance(settings, str) else yaml.safe_dump(dict(settings)),
        fast=fast,
        margin=margin,
        threads=threads,
        again=again,
        progress=progress,
        text=text,
    )
    return result


def text_of(file: str | PathLike[str]) -> str:
    """What stands in a file, for `pack` and then for `filled`.

    Raises:
        InputError: It cannot be read, or is no text.
    """
    return file_text(fspath(file))


def filled(
    record: dict[str, Any], folder: str | PathLike[str] = ".", text: str | None = None
) -> dict[str, Any]:
    """The file of workloads that was packed, with server, priority and limits of each that is placed.

    What stands in the file stays the text that it is there: a volume called `yes` or `010` keeps its name.
    Limits are rounded up to whole bytes and nanoseconds; packing leaves room for that.

    Args:
        record: What `pack` returned.
        folder: Where the result will be written: names of other files are given from there.
        text: What stands in the file that was packed; by default it is read again.

    Raises:
        InputError: The file is no longer the one that was packed.
    """
    content = _texts(record["file"], text)
    base = path.dirname(record["file"])

    def moved(name: str) -> str:
        if name.startswith("data:") or path.isabs(name):
            return name
        return path.relpath(path.join(base, name), folder)

    placed = {one["workload"]: one for one in record["workloads"]}
    if content.get("device") is not None:
        content["device"] = moved(content["device"])
    content["margin"] = f"{100 * record['margin']:.17g}%"
    workloads = []
    for workload in content["workloads"]:
        one = placed.pop(workload["name"], None)
        if one is None:
            continue
        given = {
            field: moved(value) if field in ("trace", "curves", "model") and isinstance(value, str) else value
            for field, value in workload.items()
        }
        given["server"] = one["server"]
        # Stages stay as they are: where the server is the client some cross nothing, and elsewhere they do.
        given["priority"] = {stage["stage"]: str(stage["priority"]) for stage in one["stages"]}
        given["limits"] = {stage["stage"]: _buckets(stage) for stage in one["stages"] if stage["limits"]}
        workloads.append(given)
    if placed:
        raise _changed(record["file"], f"workload `{next(iter(placed))}` was packed and is not in it")
    content["workloads"] = workloads
    return content


def written(record: dict[str, Any], folder: str | PathLike[str] = ".", text: str | None = None) -> str:
    """What `filled` gives, as the YAML text of a file.

    Raises:
        InputError: The file is no longer the one that was packed.
    """
    made: str = yaml.dump(filled(record, folder, text), Dumper=_Writer, sort_keys=False, allow_unicode=True)
    return made


_UNQUOTED = {"int": r"0|[1-9][0-9]*", "float": r"(0|[1-9][0-9]*)\.[0-9]+", "bool": "true|false"}


class _Reader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads every scalar as the text that it is, but for nothing at all, and takes merges for what they are.

    YAML 1.1, which this library reads, has numbers, dates and truths that the reader of workloads has not.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, form) for tag, form in known if tag.endswith((":null", ":merge"))]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class _Writer(yaml.SafeDumper):  # type: ignore[misc]
    """Writes texts that are plainly numbers or truths without quotes; all readers take these for the same."""

    def ignore_aliases(self, data: object) -> bool:
        """Writes out what several workloads have, as one who looks at one of them wants it."""
        return True


def _plain(writer: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    for kind, form in _UNQUOTED.items():
        if re.fullmatch(form, text):
            return writer.represent_scalar(f"tag:yaml.org,2002:{kind}", text)
    return writer.represent_str(text)


_Writer.add_representer(str, _plain)


def _texts(file: str, text: str | None) -> dict[str, Any]:
    """The content of a file of workloads or its text; numbers and truths are the texts that they are there.

    It has been read by `pack`, so that it is neither too deep nor repeats itself without end.
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
    raise _changed(file, "it cannot be read again to be filled in")


def _changed(file: str, message: str) -> InputError:
    return InputError(file, None, None, None, message)


def _buckets(stage: dict[str, Any]) -> list[dict[str, str]]:
    if stage["unit"] == "s":
        return [
            {"rate": f"{100 * bucket['rate']:.17g}%", "burst": f"{ceil(1e9 * bucket['burst'])}ns"}
            for bucket in stage["limits"]
        ]
    return [
        {"rate": f"{ceil(bucket['rate'])}B/s", "burst": f"{ceil(bucket['burst'])}B"}
        for bucket in stage["limits"]
    ]
