"""A recording of a running cluster: its objects from the API server, and the past from Prometheus.

Pods that exist have their own object. A pod that has ended is known from kube-state-metrics, and its owner's
template has its constraints; without an owner it stays where it was. The load of a rack is the sum of its
nodes' interfaces, which includes traffic within the rack.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy

from leeward._quantities import some
from leeward.errors import InputError
from leeward.kubernetes.cluster import LISTS, Cluster, read_cluster
from leeward.kubernetes.history import STEPS, PastPod, past_pods
from leeward.kubernetes.kubectl import Kubectl
from leeward.kubernetes.objects import controller_of, template_of, workload_of
from leeward.kubernetes.quantities import time_ms
from leeward.kubernetes.recording import Pod, Rates, Recording, Template, Traffic, as_json
from leeward.kubernetes.series import DEVICES, NODE_TRAFFIC, POD_TRAFFIC, Period, Queries, days, pieces
from leeward.telemetry.http import Server

Advance = Callable[[int], None]


def steps(period: Period) -> int:
    """Number of steps of `collect`."""
    return len(LISTS) + STEPS * len(list(days(period))) + 4 * len(list(pieces(period)))


def collect(
    kubectl: Kubectl,
    server: Server,
    period: Period,
    rack_label: str | None = None,
    rack_bps: int | None = None,
    advance: Advance = lambda _: None,
) -> Recording:
    """Records a cluster. Nothing is changed: the API server gets requests to read only.

    Args:
        kubectl: Connection to the API server.
        server: Prometheus with the past of the cluster.
        period: Intervals to record.
        rack_label: Label of nodes that names their rack; by default the usual ones.
        rack_bps: Rate of the links of a rack whose nodes have no annotation.
        advance: Called after each of the `steps`.

    Raises:
        InputError: A server does not answer, a metric or a rack is missing, or the rate of a rack is unknown.
    """
    cluster = read_cluster(kubectl, rack_label, rack_bps, advance)
    queries = Queries(server, period, advance)
    queries.check()
    past = past_pods(queries)
    out, into, notes = _racks(queries, cluster)
    pods, templates = _pods(cluster, past, period)
    traffic = _traffic(queries, pods)
    notes += [
        f"{count:,} answers of {server.url} may lack series: {warning}"
        for warning, count in sorted(queries.warnings.items())
    ]
    return Recording(
        period.begin_ms,
        period.interval_ms,
        period.count,
        cluster.rack_bps,
        cluster.nodes,
        templates,
        pods,
        out,
        into,
        traffic,
        (*cluster.notes, *notes),
    )


def _racks(queries: Queries, cluster: Cluster) -> tuple[dict[str, Rates], dict[str, Rates], list[str]]:
    """Rates out of racks and into them, and notes."""
    directions = []
    silent: set[str] = set()
    for metric in NODE_TRAFFIC:
        selector = f'{metric}{{device!~"{DEVICES}"}}'
        of_nodes: dict[str, Rates] = {}
        for labels, values in queries.rates("instance,node", selector):
            name = _node_of(cluster, labels)
            if name is not None:
                # A node that is scraped twice has two series of the same counters.
                of_nodes[name] = numpy.fmax(of_nodes[name], values) if name in of_nodes else values
        silent |= {node.name for node in cluster.nodes if node.rack and node.name not in of_nodes}
        directions.append(_sums(cluster, of_nodes, queries.period))
    if all(numpy.isnan(values).all() for direction in directions for values in direction.values()):
        error = InputError.about(
            queries.server.url, f"`{NODE_TRAFFIC[0]}`: no series is of a node of the cluster"
        )
        error.add_note(
            "its label `node`, or the host in `instance`, must be the name or the address of a node"
        )
        raise error
    notes = ["the load of a rack is the sum of its nodes' interfaces, with the traffic within the rack"]
    if silent:
        notes.append(f"nodes without counters count as idle: {some(sorted(silent))}")
    return directions[0], directions[1], notes


def _node_of(cluster: Cluster, labels: Mapping[str, str]) -> str | None:
    """Node of a series of node_exporter."""
    address = labels.get("instance", "")
    host = address.rpartition(":")[0].strip("[]") or address
    names = (labels.get("node", ""), address, host)
    return next((cluster.known_as[name] for name in names if name in cluster.known_as), None)


def _sums(cluster: Cluster, of_nodes: Mapping[str, Rates], period: Period) -> dict[str, Rates]:
    """Rate of each rack; NaN in intervals in which a node of it is silent.

    A node does not count before its creation, and not at all without any counter.
    """
    sums: dict[str, Rates] = {}
    starts = period.begin_ms + period.interval_ms * numpy.arange(period.count)
    for node in cluster.nodes:
        if node.rack is not None and node.name in of_nodes:
            values = of_nodes[node.name]
            values = numpy.where(numpy.isnan(values) & (starts < node.created_ms), 0.0, values)
            sums[node.rack] = sums.get(node.rack, 0.0) + values
    unknown = numpy.full(period.count, numpy.nan)
    return {rack: sums.get(rack, unknown) for rack in cluster.rack_bps}


def _pods(
    cluster: Cluster, past: Mapping[str, PastPod], period: Period
) -> tuple[tuple[Pod, ...], tuple[Template, ...]]:
    """Pods of a period by creation, and their templates, each once."""
    templates: dict[str, tuple[int, Template]] = {}

    def number(template: Template) -> int:
        key = json.dumps(as_json(template), sort_keys=True)
        return templates.setdefault(key, (len(templates), template))[0]

    pods = [*_living(cluster, past, period, number), *_ended(cluster, past, period, number)]
    during = [
        pod
        for pod in pods
        if pod.created_ms < period.end_ms and (pod.ended_ms is None or pod.ended_ms > period.begin_ms)
    ]
    during.sort(key=lambda pod: (pod.created_ms, pod.namespace, pod.name, pod.uid))
    return tuple(during), tuple(template for _, template in templates.values())


def _living(
    cluster: Cluster, past: Mapping[str, PastPod], period: Period, number: Callable[[Template], int]
) -> Iterator[Pod]:
    """Pods that the API server has."""
    for uid, item in cluster.pods.items():
        metadata, (kind, owner) = item["metadata"], controller_of(item)
        name, labels = str(metadata.get("name")), metadata.get("labels") or {}
        created_ms = time_ms(metadata.get("creationTimestamp"))
        if created_ms is not None:
            yield Pod(
                str(metadata.get("namespace")),
                name,
                uid,
                workload_of(kind, owner, name, labels),
                str(item["spec"]["nodeName"]),
                created_ms,
                _finished_ms(item) or (past[uid].completed_ms if uid in past else None),
                number(template_of(item, kind)),
            )


def _ended(
    cluster: Cluster, past: Mapping[str, PastPod], period: Period, number: Callable[[Template], int]
) -> Iterator[Pod]:
    """Pods that only Prometheus has."""
    for uid, pod in past.items():
        if uid in cluster.pods or pod.created_ms is None:
            continue
        owner = cluster.owners.get((pod.namespace, pod.kind, pod.owner))
        template = Template(requests=pod.requests, unfit="owner_gone") if owner is None else owner.template
        unfit = "bound_to_node" if pod.kind in ("DaemonSet", "Node") else None
        unfit = "host_network" if unfit is None and pod.host_network else unfit
        yield Pod(
            pod.namespace,
            pod.name,
            uid,
            workload_of(pod.kind, pod.owner, pod.name, {} if owner is None else owner.labels),
            pod.node,
            pod.created_ms,
            # It does not exist any more, so it ended in the last interval at the latest.
            pod.ended_ms(period) or period.end_ms,
            number(template if unfit is None else replace(template, unfit=unfit)),
        )


def _finished_ms(item: Mapping[str, Any]) -> int | None:
    """End of a pod that has completed; None if it runs."""
    status = item.get("status")
    if not isinstance(status, dict) or status.get("phase") not in ("Succeeded", "Failed"):
        return None
    states = [one.get("state") for one in status.get("containerStatuses") or () if isinstance(one, dict)]
    ends = [
        time_ms(state["terminated"].get("finishedAt"))
        for state in states
        if isinstance(state, dict) and isinstance(state.get("terminated"), dict)
    ]
    return max((end for end in ends if end is not None), default=None)


def _traffic(queries: Queries, pods: tuple[Pod, ...]) -> dict[int, Traffic]:
    """Traffic of pods by their positions, within their lives."""
    period = queries.period
    ways = []
    for metric in POD_TRAFFIC:
        selector = f'{metric}{{pod!="",interface!="lo"}}'
        series = queries.rates("namespace,pod", selector)
        ways.append({(labels.get("namespace"), labels.get("pod")): values for labels, values in series})
    traffic = {}
    for at, pod in enumerate(pods):
        both = [way.get((pod.namespace, pod.name)) for way in ways]
        if both[0] is None or both[1] is None:
            continue
        first = max(0, (pod.created_ms - period.begin_ms) // period.interval_ms)
        end_ms = period.end_ms if pod.ended_ms is None else min(pod.ended_ms, period.end_ms)
        last = max(first, -(-(end_ms - period.begin_ms) // period.interval_ms))
        # A name may belong to several pods, one after another.
        known = [
            first + int(one)
            for one in numpy.flatnonzero(~numpy.isnan(both[0][first:last] + both[1][first:last]))
        ]
        if known:
            part = slice(known[0], known[-1] + 1)
            traffic[at] = Traffic(known[0], both[0][part], both[1][part])
    return traffic
