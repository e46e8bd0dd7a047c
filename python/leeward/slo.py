"""Workloads with objectives for tail latency: what is promised to them, and to whom more can be.

>>> from leeward.slo import load
>>> workloads = load("examples/slo/w.yaml", "examples/slo/cluster.yaml")  # doctest: +SKIP
>>> workloads.bound("snc")["workloads"][0]["bound_s"]  # doctest: +SKIP
"""

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from leeward._native import Cluster, SloWorkloads
from leeward.data import found
from leeward.errors import whole_number

METHODS = ("dnc", "priority-meister", "snc", "best")
"""Ways to bound latencies; `best` is the least of the others that apply."""

__all__ = ["METHODS", "Workloads", "load"]


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
            by_slo: By SLO, the tightest first, instead of PriorityMeister's search.
            levels: Priorities that networks tell apart; by default as in the file.
            method: The bound that the search goes by.

        Returns:
            As `bound` does, under the priorities that were found.

        Raises:
            InputError: An argument is not right.
        """
        if levels is not None:
            whole_number("levels", levels, 1, 1_000_000)
        record: dict[str, Any] = self._native.prioritize(
            "by-slo" if by_slo else "priority-meister", levels, method
        )
        return record

    def admit(self, arriving: str | PathLike[str], method: str = "snc") -> dict[str, Any]:
        """Whether workloads that arrive, one after another, can be promised their SLOs beside these.

        Args:
            arriving: A file of workloads with servers. Their names are not among these.
            method: A policy for admission, with settings after colons: `dnc:search=false`. Those that there
                are: `leeward policies`.

        Returns:
            As `bound` does for all that run in the end; and `arrivals` and `residents`, each with whether it
            is `admitted`, why it was `refused`, whether it `runs`, and which others it would have
            `disturbed`.

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
