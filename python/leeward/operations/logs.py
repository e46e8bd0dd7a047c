"""A run as the logs and telemetry of an operator: the inputs of `leeward impact`.

The run begins at a time since 1970, by default at the beginning of 2026.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from leeward._native import OperationsRun

if TYPE_CHECKING:
    import pyarrow

START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""


def latencies(run: OperationsRun, *, start_ms: int = START_MS) -> "pyarrow.Table":
    """Latencies of operations between racks, each with the links of racks and pods that its bytes crossed.

    Columns are those of a latency file (`t_ms`, `latency_s`, `network_s`, `size_bytes`, `operation`,
    `medium`, `class`, `links`) and the kind of the `job`. Operations within a rack are left out: they cross
    no link of a rack.
    """
    import pyarrow
    from pyarrow import compute

    table = run.operations()
    reads = compute.equal(table["kind"], "read")
    senders = compute.if_else(reads, table["server"], table["client"])
    receivers = compute.if_else(reads, table["client"], table["server"])
    racks, pods = (_of_hosts(run, place) for place in ("rack", "pod"))
    sender, receiver = _lookup(senders, racks), _lookup(receivers, racks)
    links = _crossed(sender, receiver)
    if pods:
        pod_links = _crossed(_lookup(senders, pods), _lookup(receivers, pods))
        both = compute.binary_join_element_wise(links, pod_links, " ")
        links = compute.if_else(compute.equal(pod_links, ""), links, both)
    columns = {
        "t_ms": _milliseconds(table["ended_s"], start_ms),
        "job": table["job"],
        "latency_s": table["latency_s"],
        "network_s": table["network_s"],
        "size_bytes": table["bytes"],
        "operation": table["operation"],
        "medium": table["medium"],
        "class": table["class"],
        "links": links,
    }
    return pyarrow.table(columns).filter(compute.not_equal(sender, receiver))


def queries(
    run: OperationsRun, jobs: Sequence[str] | None = None, *, start_ms: int = START_MS
) -> "pyarrow.Table":
    """Latencies of jobs, each with both links of the racks of all its workers.

    A job has no record of its servers, so the links of pods are left out.

    Columns are those of a latency file: `t_ms`, `latency_s`, `operation` (the kind of the job), `query` (the
    name in `stages`), `links`.

    Args:
        run: A run.
        jobs: Names of the kinds of jobs; by default all.
        start_ms: Time at which the run began.
    """
    import pyarrow
    from pyarrow import compute

    table = _of_jobs(run.jobs(), jobs)
    workers = _of_jobs(run.workers(), jobs)
    racks = _lookup(workers["host"], _of_hosts(run, "rack")).to_pylist()
    of_job: dict[str, set[str]] = {}
    for name, rack in zip(_names(workers).to_pylist(), racks, strict=True):
        of_job.setdefault(name, set()).add(rack)
    names = _names(table)
    links = [
        " ".join(f"{rack}:{side}" for rack in sorted(of_job[name]) for side in ("downlink", "uplink"))
        for name in names.to_pylist()
    ]
    return pyarrow.table(
        {
            "t_ms": _milliseconds(table["ended_s"], start_ms),
            "latency_s": compute.subtract(table["ended_s"], table["began_s"]),
            "operation": table["job"],
            "query": names,
            "links": pyarrow.array(links, pyarrow.string()),
        }
    )


def stages(run: OperationsRun, jobs: Sequence[str] | None = None) -> "pyarrow.Table":
    """Times of the workers of jobs: the columns of a file of stages, with `compute_s` and `total_s`."""
    import pyarrow
    from pyarrow import compute

    table = _of_jobs(run.workers(), jobs)
    return pyarrow.table(
        {
            "query": _names(table),
            "stage": compute.cast(table["stage"], pyarrow.string()),
            "worker": compute.cast(table["worker"], pyarrow.string()),
            "compute_s": table["computed_s"],
            "total_s": compute.subtract(table["ended_s"], table["began_s"]),
        }
    )


def telemetry(
    run: OperationsRun, of_class: str | None = None, *, start_ms: int = START_MS
) -> "pyarrow.Table":
    """Mean loads of links in the windows of a run, as a telemetry file: `t_ms`, `link`, `load_bps`.

    Args:
        run: A run.
        of_class: A class of service; by default the traffic of all.
        start_ms: Time at which the run began.
    """
    import pyarrow
    from pyarrow import compute

    table = run.links()
    if of_class is not None:
        table = table.filter(compute.equal(table["class"], of_class))
    sums = table.group_by(["start_s", "link"], use_threads=False).aggregate([("bytes", "sum")])
    ends = compute.add(sums["start_s"], run.sample_s)
    bits = compute.multiply(compute.cast(sums["bytes_sum"], pyarrow.float64()), 8.0)
    return pyarrow.table(
        {
            "t_ms": compute.cast(_milliseconds(ends, start_ms), pyarrow.int64()),
            "link": sums["link"],
            "load_bps": compute.divide(bits, run.sample_s),
        }
    )


def _of_hosts(run: OperationsRun, place: str) -> dict[str, str]:
    """Rack or pod of each host; empty without pods."""
    links = run.cluster.links()
    hosts = zip(links["host"].to_pylist(), links[place].to_pylist(), strict=True)
    return {host: name for host, name in hosts if host is not None and name is not None}


def _crossed(sender: Any, receiver: Any) -> Any:
    """Links from one rack or pod to another; empty within one."""
    from pyarrow import compute

    links = compute.binary_join_element_wise(sender, ":uplink ", receiver, ":downlink", "")
    return compute.if_else(compute.equal(sender, receiver), "", links)


def _lookup(names: Any, values: dict[str, str]) -> Any:
    """The value of each name. Each distinct name is looked up once."""
    import pyarrow

    coded = names.combine_chunks().dictionary_encode() if len(names) else None
    if coded is None:
        return pyarrow.array([], pyarrow.string())
    found = pyarrow.array([values[name] for name in coded.dictionary.to_pylist()], pyarrow.string())
    return found.take(coded.indices)


def _names(table: Any) -> Any:
    """Name of the job of each row: its kind and number."""
    import pyarrow
    from pyarrow import compute

    number = compute.cast(table["number"], pyarrow.string())
    return compute.binary_join_element_wise(table["job"], number, " ")


def _of_jobs(table: Any, jobs: Sequence[str] | None) -> Any:
    """Rows of these kinds of jobs."""
    import pyarrow
    from pyarrow import compute

    if jobs is None:
        return table
    return table.filter(compute.is_in(table["job"], pyarrow.array(list(jobs), pyarrow.string())))


def _milliseconds(seconds: Any, start_ms: int) -> Any:
    import pyarrow

    return pyarrow.array(start_ms + numpy.rint(1e6 * seconds.to_numpy()) / 1e3)
