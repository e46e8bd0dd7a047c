"""Checks of a NameNode and a controller that belong together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from leeward._quantities import counted, time_text
from leeward.hdfs.differences import Differences
from leeward.hdfs.namenode import NameNodeState
from leeward.hdfs.policy import MAX_AGE_S, STATES, PolicyState, by_settings, fallbacks

NAMES = 3
"""Number of names that a check lists."""
RARE = 0.01
"""Share of decisions by HDFS's default policy up to which a NameNode is healthy: after a short outage."""
_PROPERTIES = dict(
    zip(STATES, ("dfs.block.replicator.classname", "dfs.block.placement.ec.classname"), strict=True)
)
"""Property with the class that places blocks, by their kind."""


class State(StrEnum):
    """Result of a check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True)
class Check:
    """Result of a check.

    Attributes:
        check: Name of the check.
        state: Its result.
        detail: Finding, in a sentence without its end.
    """

    check: str
    state: State
    detail: str


def check(
    namenode: NameNodeState,
    status: Mapping[str, Any],
    hosts: Sequence[Mapping[str, Any]],
    found: Differences,
) -> list[Check]:
    """All checks of a NameNode and a controller.

    Args:
        namenode: State of the NameNode.
        status: Status of the controller, as of `GET /v1/status`.
        hosts: Hosts of the controller, as of `GET /v1/hosts`.
        found: Differences of the two topologies.
    """
    states = {host["host"]: host for host in hosts}
    known = [states[name] for name in found.hosts.values() if name in states]
    return [
        _namenode(namenode),
        _controller(status),
        *_topology(namenode, found),
        _agents(known),
        _storage(known),
        *_policy(namenode.policies),
    ]


def check_alone(namenode: NameNodeState, why: str) -> list[Check]:
    """Checks of a NameNode whose controller does not answer.

    Args:
        namenode: State of the NameNode.
        why: Failure of the request to the controller.
    """
    skipped = ("topology", "agents", "storage")
    return [
        _namenode(namenode),
        Check("controller", State.FAILED, why),
        *(Check(name, State.WARNING, "not checked: no controller") for name in skipped),
        *_policy(namenode.policies),
    ]


def _namenode(state: NameNodeState) -> Check:
    detail = f"Hadoop {state.version}, {state.role}, {counted(len(state.datanodes), 'live DataNode')}"
    if not state.datanodes:
        return Check("NameNode", State.FAILED, f"{detail}: blocks can be placed nowhere")
    if state.safe_mode is not None:
        return Check("NameNode", State.WARNING, f"{detail}, in safe mode: it places no blocks")
    if state.role != "active":
        return Check("NameNode", State.WARNING, f"{detail}: the active NameNode places the blocks")
    return Check("NameNode", State.OK, detail)


def _controller(status: Mapping[str, Any]) -> Check:
    detail = f"Leeward {status['version']}, cluster version {status['cluster_version']}"
    detail += f", mode {status['modes']['replicas']}"
    if status["role"] != "leader":
        detail += f": a {status['role']}; the leader is {status['leader']}"
        return Check("controller", State.WARNING, detail)
    if status["stalled"] is not None:
        return Check("controller", State.FAILED, f"{detail}: {status['stalled']}")
    return Check("controller", State.OK, detail)


def _topology(state: NameNodeState, found: Differences) -> Iterator[Check]:
    """One check for each kind of difference, or one if there is none."""
    total = counted(len(state.datanodes), "DataNode")
    if found.is_of_other_cluster():
        detail = f"the controller has fewer than half of {total}: it is the controller of another cluster"
        yield Check("topology", State.FAILED, f"{detail}, and HDFS's default policy places all blocks")
    if found.unknown:
        detail = f"the controller lacks {len(found.unknown)} of {total}: {_listed(found.unknown)}"
        yield Check("topology", State.FAILED, f"{detail}; their loads are unknown")
    if found.moved:
        places = [f"{name} is in {path} and not in {rack}" for name, path, rack in found.moved]
        detail = f"{len(found.moved)} of {total} in another rack than for the controller: {_listed(places)}"
        yield Check("topology", State.FAILED, f"{detail}; their loads are unknown")
    if found.absent:
        detail = f"{counted(len(found.absent), 'host')} of the controller without a live DataNode"
        yield Check("topology", State.WARNING, f"{detail}: {_listed(found.absent)}")
    if state.datanodes and not (found.unknown or found.moved):
        racks = len({node.rack for node in state.datanodes})
        yield Check("topology", State.OK, f"{total} in {counted(racks, 'rack')}, as in the controller")


def _agents(hosts: Sequence[Mapping[str, Any]]) -> Check:
    """Hosts without recent telemetry: sinbad and leeward choose them for no copies besides a writer's own."""
    silent = [host["host"] for host in hosts if any(_is_silent(host[way]) for way in ("egress", "ingress"))]
    if not hosts:
        return Check("agents", State.FAILED, "the controller knows no DataNode")
    if not silent:
        return Check("agents", State.OK, f"{counted(len(hosts), 'host')} with telemetry")
    state = State.FAILED if len(silent) == len(hosts) else State.WARNING
    detail = f"{len(silent)} of {counted(len(hosts), 'host')} without recent telemetry: {_listed(silent)}"
    if len(silent) == 1:
        detail += f"; until it reports, sinbad and leeward choose {silent[0]} for no further copies, and it"
        detail += " counts with its full rate in the load of its rack"
    else:
        detail += "; until they report, sinbad and leeward choose them for no further copies, and they count"
        detail += " with their full rates in the loads of their racks"
    return Check("agents", state, detail)


def _is_silent(link: Mapping[str, Any] | None) -> bool:
    return link is not None and not link["seen"]


def _storage(hosts: Sequence[Mapping[str, Any]]) -> Check:
    """Hosts without known storage: for the controller they are never full.

    The policy in the NameNode reads the storage of DataNodes from their heartbeats.
    """
    without = [host["host"] for host in hosts if host["storage"] is None]
    if not without:
        return Check("storage", State.OK, f"{counted(len(hosts), 'host')} with known storage")
    detail = f"{len(without)} of {counted(len(hosts), 'host')} without known storage: {_listed(without)}"
    detail += "; leeward agent --volume reports it to the controller. The NameNode knows it by heartbeats"
    return Check("storage", State.WARNING, detail)


def _policy(policies: Sequence[PolicyState]) -> Iterator[Check]:
    if not policies:
        detail = "the NameNode runs no Leeward policy: dfs.block.replicator.classname names another one"
        yield Check("policy", State.FAILED, detail)
        return
    by_blocks = {policy.blocks: policy for policy in policies}
    for blocks, name in _PROPERTIES.items():
        policy = by_blocks.get(blocks)
        if policy is None:
            detail = f"HDFS's own policy places {blocks}: {name} names no policy of Leeward"
            yield Check("policy", State.WARNING, detail)
        elif policy.invalid is not None:
            yield Check("policy", State.FAILED, f"Leeward is off for {blocks}: {policy.invalid}")
        else:
            yield Check("policy", State.OK, f"{policy.policy} places {blocks}")
            yield _snapshot(policy)
            yield _decisions(policy)


def _decisions(policy: PolicyState) -> Check:
    """Decisions that the policy left to HDFS's: those of the last hour count, if they are known."""
    detail = f"{policy.blocks}: {counted(sum(policy.decisions.values()), 'decision')} since the start"
    detail += _by_hdfs(policy.decisions)
    judged = policy.decisions
    if policy.last_hour is not None:
        judged = policy.last_hour
        detail += f"; {sum(judged.values()):,} in the last hour{_by_hdfs(judged)}"
    is_rare = sum(fallbacks(judged).values()) <= RARE * sum(judged.values())
    return Check("decisions", State.OK if is_rare else State.WARNING, detail)


def _by_hdfs(decisions: Mapping[str, int]) -> str:
    """Number of the decisions by HDFS's policy, with its reasons; empty if there are none."""
    others = fallbacks(decisions) | by_settings(decisions)
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in others.items())
    return f", {sum(others.values()):,} by HDFS's default policy ({reasons})" if others else ""


def _snapshot(policy: PolicyState) -> Check:
    age = policy.snapshot_age_s
    because = "" if policy.failure is None else f"; the last request failed: {policy.failure}"
    if policy.controller is None:
        # Only this policy needs no loads and no capacities.
        state = State.OK if policy.policy == "rehdfs" else State.FAILED
        return Check("snapshot", state, "the NameNode has no controller: dfs.leeward.controller names one")
    if age is None:
        detail = f"the NameNode has no snapshot of {policy.controller}{because}"
        return Check("snapshot", State.FAILED, detail)
    detail = f"{time_text(age)} old, from {policy.controller}{because}"
    if policy.max_age_s is None and age > MAX_AGE_S:
        detail = f"{detail}; {policy.policy} reads no loads, so a snapshot of any age serves it"
        return Check("snapshot", State.WARNING, detail)
    if policy.max_age_s is not None and age > policy.max_age_s:
        detail = f"{detail}; dfs.leeward.snapshot.max-age is {policy.max_age_s:g} s"
        return Check("snapshot", State.FAILED, detail)
    return Check("snapshot", State.OK if policy.failure is None else State.WARNING, detail)


def _listed(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(names[:NAMES]) + more
