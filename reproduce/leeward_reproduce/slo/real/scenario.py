"""The files of a scenario: the simulator and the enforcers of a bed read the same ones.

| file | content |
| --- | --- |
| `cluster.yaml` | hosts, links and disks |
| `disk-SERVER.yaml` | device file of a server's disk |
| `WORKLOAD.csv` | requests that are sent |
| `WORKLOAD-declared.csv` | requests that were declared, if they differ |
| `POLICY.yaml` | SLO file with priorities and limits |
| `POLICY-bounds.yaml` | the same with the latencies of queues, of which a replay has none |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy
import yaml

from leeward.slo import load
from leeward.traces import open_trace
from leeward_reproduce.slo.real import disks
from leeward_reproduce.slo.real.cases import (
    PERCENTILE,
    Buckets,
    Case,
    Decision,
    Member,
    Policy,
    Priorities,
)
from leeward_reproduce.slo.real.layout import DISK
from leeward_reproduce.slo.real.traffic import least_burst

CLUSTER = "cluster.yaml"
BUCKETS = 7
"""Buckets of a curve: HTB nests as many."""
SEGMENT = 65_536
"""Bytes that a link sends at once: a segment of TCP before it is cut into frames."""
NO_LIMIT = {
    "network-in": [{"rate": "25MB/s", "burst": "64MB"}],
    "storage": [{"rate": "100%", "burst": "1000s"}],
    "network-out": [{"rate": "25MB/s", "burst": "64MB"}],
}
"""Limits that no workload exceeds: the rate of a link, and a device that is busy for a long time."""
OF_DISK = {
    "network-in": [{"rate": "1MB/s", "burst": "256kB"}],
    "network-out": [{"rate": "12MB/s", "burst": "2MB"}],
}
"""Limits on links that a workload with small requests does not exceed behind a disk of 10 MB/s, even if it
floods the disk."""
_DRAW = 31
"""Stream of random numbers of these scenarios."""


@dataclass(frozen=True)
class Scenario:
    """A case under a seed.

    Attributes:
        case: The case.
        seed: The seed.
        folder: Folder with the files.
        members: Admitted workloads of the case.
        arrived: Number of workloads that arrived.
        slos: SLO of each workload with one, in seconds.
        bounds: Latency bound of each workload with an SLO under the first policy, in seconds; None without
            a bound.
    """

    case: Case
    seed: int
    folder: Path
    members: Sequence[Member]
    arrived: int
    slos: Mapping[str, float]
    bounds: Mapping[str, float | None]

    @property
    def promised(self) -> bool:
        """True if the bounds that count are within the SLOs."""
        return _within(self.members, self.slos, self.bounds)

    @property
    def cluster(self) -> Path:
        """Cluster file."""
        return self.folder / CLUSTER

    def trace(self, member: Member) -> Path:
        """Trace of the requests that a workload sends."""
        return self.folder / f"{member.name}.csv"

    def file(self, policy: Policy) -> Path:
        """SLO file of a policy."""
        return self.folder / f"{policy.name}.yaml"


def write(folder: Path, case: Case, seed: int) -> Scenario:
    """Draws the scenario of a case and a seed, and writes its files. Equal arguments write equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    arriving = case.members(numpy.random.default_rng([seed, _DRAW]))
    dump(folder / CLUSTER, case.shape.cluster())
    for server in case.shape.server_names:
        dump(folder / f"disk-{server}.yaml", disks.device(case.shape.disk_rate(server)))
    for member in arriving:
        member.requests.write(folder / trace_of(member))
        if member.sent is not None:
            member.declared.write(folder / trace_of(member, is_declared=True))
    decision = Decision(arriving) if case.decide is None else case.decide(folder, case, arriving)
    members, limits = decision.members, decision.limits
    if limits is None:
        limits = {member.name: _limits(folder, case, member) for member in members if member.slo is not None}
    first = case.policies[0]
    slos: dict[str, float] = {}
    bounds: dict[str, float | None] = {}
    for factor in case.factors:
        slos = {one.name: factor * one.slo for one in members if one.slo is not None}
        priorities = _write_policy(folder, case, members, first, slos, limits, decision.priorities)
        bounds = _bounds(folder, first, case)
        if _within(members, slos, bounds):
            break
    for policy in case.policies[1:]:
        # Policies with priorities of the same origin have the same ones.
        same = priorities if policy.priorities == first.priorities else None
        _write_policy(folder, case, members, policy, slos, limits, same)
    return Scenario(case, seed, folder, members, len(arriving), slos, bounds)


def _within(members: Sequence[Member], slos: Mapping[str, float], bounds: Mapping[str, float | None]) -> bool:
    """True if the bounds that count are within the SLOs."""
    pairs = [(bounds[one.name], slos[one.name]) for one in members if one.slo is not None and one.counts]
    return all(bound is not None and bound <= slo for bound, slo in pairs)


def trace_of(member: Member, is_declared: bool = False) -> str:
    """Name of the trace of a workload: of its declared requests, or of those that it sends."""
    return f"{member.name}-declared.csv" if is_declared and member.sent is not None else f"{member.name}.csv"


def _limits(folder: Path, case: Case, member: Member) -> Buckets:
    """Token buckets of a workload by stage, from its declared requests."""
    file = folder / trace_of(member, is_declared=True)
    trace = open_trace(file, device=folder / f"disk-{member.server}.yaml")

    def buckets(stage: str) -> list[dict[str, str]]:
        curve = trace.curve(stage, prune=BUCKETS, margin=case.margin)["buckets"]
        return [literal(stage, one["rate"], one["burst"]) for one in curve]

    return {stage: buckets(stage) for stage in case.stages}


def literal(stage: str, rate: float, burst: float) -> dict[str, str]:
    """A token bucket as in an SLO file, rounded up: a rate below the mean one of a trace has no bound."""
    if stage == "storage":
        return {"rate": f"{ceil(1e12 * rate) / 1e10:.10f}%", "burst": f"{ceil(1e9 * burst)}ns"}
    return {"rate": f"{ceil(rate)}B/s", "burst": f"{ceil(burst)}B"}


def _own_rates(case: Case, member: Member, rates: Sequence[float]) -> list[dict[str, str]]:
    """Limits at storage of these rates, each with the least burst that delays no declared request."""
    throttle = case.shape.disk_rate(member.server)

    def work(size: int) -> float:
        return disks.work(throttle, size)

    # A device file lies a little above the formula between its sizes.
    bursts = [1.02 * least_burst(member.declared, rate, work) for rate in rates]
    return [literal("storage", rate, burst) for rate, burst in zip(rates, bursts, strict=True)]


def _write_policy(
    folder: Path,
    case: Case,
    members: Sequence[Member],
    policy: Policy,
    slos: Mapping[str, float],
    limits: Mapping[str, Buckets],
    priorities: Priorities | None = None,
) -> Priorities:
    """Writes the files of a policy. Returns the priorities: those given, or the policy's own."""
    given = priorities or _priorities(folder, case, members, policy, slos, limits)
    dump(folder / f"{policy.name}.yaml", content(case, members, policy, slos, limits, given))
    declared = content(case, members, policy, slos, limits, given, is_declared=True)
    dump(folder / f"{policy.name}-bounds.yaml", declared)
    return given


def _priorities(
    folder: Path,
    case: Case,
    members: Sequence[Member],
    policy: Policy,
    slos: Mapping[str, float],
    limits: Mapping[str, Buckets],
) -> Priorities:
    """Priorities of the workloads under a policy, by stage or one for all stages."""
    if policy.priorities == "equal":
        return {one.name: 0 for one in members}
    if policy.priorities == "slo":
        ranks = sorted(set(slos.values()))
        return {name: ranks.index(slo) for name, slo in slos.items()}
    draft = folder / f"{policy.name}-bounds.yaml"
    dump(draft, content(case, members, policy, slos, limits, {}, is_declared=True))
    record = load(draft, folder / CLUSTER).prioritize(method=case.method)
    return {
        one["workload"]: {stage["stage"]: stage["priority"] for stage in one["stages"]}
        for one in record["workloads"]
        if one["slo"] is not None
    }


def content(
    case: Case,
    members: Sequence[Member],
    policy: Policy,
    slos: Mapping[str, float],
    limits: Mapping[str, Buckets],
    priorities: Priorities,
    is_declared: bool = False,
) -> dict[str, Any]:
    """SLO file of a policy: of the declared requests with latencies of queues, or of those that are sent."""
    latencies = {"links": f"{disks.LINK_S:g}s", "devices": f"{disks.SLICE_S:g}s"}
    workloads = [_workload(case, one, policy, slos, limits, priorities) for one in members]
    for member, fields in zip(members, workloads, strict=True):
        fields["trace"] = trace_of(member, is_declared)
    return {
        "name": f"{case.name}, {policy.name}",
        "devices": {server: f"disk-{server}.yaml" for server in case.shape.server_names},
        "margin": f"{100 * case.margin:g}%",
        "buckets": BUCKETS,
        "congestion": "hosts",
        "stages": list(case.stages),
        "bounds": {"unit": "frames", "frame": SEGMENT},
        **({"over": {"storage": policy.over}} if "storage" in case.stages else {}),
        "workloads": workloads,
    } | ({"latency": latencies} if is_declared else {})


def _workload(
    case: Case,
    member: Member,
    policy: Policy,
    slos: Mapping[str, float],
    limits: Mapping[str, Buckets],
    priorities: Priorities,
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": member.name,
        "client": member.client,
        "server": f"{member.server}:{DISK}",
    }
    if member.name in slos:
        fields["slo"] = {"percentile": PERCENTILE, "latency": f"{round(1e6 * slos[member.name])}us"}
    elif policy.priorities != "equal":
        # Best effort is served when nothing else is, and nothing holds it back.
        return fields | {"over": "demoted"}
    if member.name in priorities:
        fields["priority"] = priorities[member.name]
    own: Buckets = limits[member.name] if policy.limits and member.name in limits else NO_LIMIT
    own = {stage: NO_LIMIT[stage] if stage in policy.unlimited else own[stage] for stage in case.stages}
    if member.rates and policy.limits:
        own = OF_DISK | {"storage": _own_rates(case, member, policy.rates or member.rates)}
    # Copies, because YAML would refer from one workload to the limits of another.
    return fields | {"limits": {stage: [dict(one) for one in own[stage]] for stage in case.stages}}


def _bounds(folder: Path, policy: Policy, case: Case) -> dict[str, float | None]:
    """Bound of each workload with an SLO under a policy."""
    record = load(folder / f"{policy.name}-bounds.yaml", folder / CLUSTER).bound(case.method)
    return {one["workload"]: one["bound_s"] for one in record["workloads"] if one["slo"] is not None}


def dump(file: Path, content: Mapping[str, Any]) -> None:
    """Writes a YAML file."""
    file.write_text(yaml.safe_dump(dict(content), sort_keys=False), encoding="utf-8")
