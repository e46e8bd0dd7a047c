"""A run in numbers."""

from typing import Any

import numpy

from leeward._native import OperationsRun

PERCENTILES = (50, 95, 99)


def summary(run: OperationsRun) -> dict[str, Any]:
    """A run in numbers, as values of JSON.

    - `totals`: `OperationsRun.totals`.
    - `operations`: for each kind of job and operation, their number; mean, median, 95th and 99th percentile
      of the latency, and the mean of its part on the network.
    - `jobs`: the same of each kind of job, without a network part.
    - `links`: for each link and class, the mean and the largest utilization of windows, and packets that were
      dropped or marked. Utilization is the share of the capacity in the cluster's file, also while an event
      has changed it.
    """
    return {
        "totals": run.totals(),
        "operations": _operations(run),
        "jobs": _jobs(run),
        "links": _links(run),
    }


def _times(values: Any) -> dict[str, float]:
    median, p95, p99 = numpy.percentile(values, PERCENTILES)
    return {"mean_s": float(values.mean()), "p50_s": float(median), "p95_s": float(p95), "p99_s": float(p99)}


def _operations(run: OperationsRun) -> list[dict[str, Any]]:
    table = run.operations()
    result = []
    for (job, operation), rows in _groups(table, ("job", "operation")):
        latency, network = (table[name].to_numpy()[rows] for name in ("latency_s", "network_s"))
        result.append(
            {"job": job, "operation": operation, "count": len(rows)}
            | _times(latency)
            | {"network_mean_s": float(network.mean())}
        )
    return result


def _jobs(run: OperationsRun) -> list[dict[str, Any]]:
    table = run.jobs()
    latency = table["ended_s"].to_numpy() - table["began_s"].to_numpy()
    return [
        {"job": job, "count": len(rows)} | _times(latency[rows]) for (job,), rows in _groups(table, ("job",))
    ]


def _links(run: OperationsRun) -> list[dict[str, Any]]:
    table, links = run.links(), run.cluster.links()
    capacity = dict(zip(links["name"].to_pylist(), links["capacity_bps"].to_pylist(), strict=True))
    result = []
    for (link, of_class), rows in _groups(table, ("link", "class")):
        load = table["bytes"].to_numpy()[rows] * 8 / run.sample_s / max(capacity[link], 1)
        counts = {name: int(table[name].to_numpy()[rows].sum()) for name in ("dropped", "marked")}
        utilization = {"mean_utilization": float(load.mean()), "most_utilization": float(load.max())}
        result.append({"link": link, "class": of_class} | utilization | counts)
    return result


def _groups(table: Any, keys: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    """Row numbers of each distinct combination of values, in the order of its first row."""
    if not len(table):
        return []
    codes, values = [], []
    for key in keys:
        coded = table[key].combine_chunks().dictionary_encode()
        codes.append(coded.indices.to_numpy())
        values.append(coded.dictionary.to_pylist())
    rows = numpy.stack(codes, axis=1)
    distinct, first, which = numpy.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = numpy.argsort(first, kind="stable")
    which = which.reshape(-1)
    return [
        (
            tuple(value[code] for value, code in zip(values, distinct[at].tolist(), strict=True)),
            numpy.flatnonzero(which == at),
        )
        for at in order.tolist()
    ]
