"""The state of the Leeward policy in a NameNode, from its beans.

The policies for replicated and for erasure-coded blocks have beans of their own; `ErasureCoded` is in the
names of the latter. A bean is the state of the policy, or its metrics.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from leeward.errors import InputError

BEANS = "Hadoop:service=NameNode,name=Leeward*"
"""Pattern of the names of the beans."""
STATES = {
    "replicated blocks": "Hadoop:service=NameNode,name=LeewardInfo",
    "erasure-coded blocks": "Hadoop:service=NameNode,name=LeewardErasureCodedInfo",
}
"""Names of the beans with the state of the policy, by the blocks that it places."""
_POLICY = "tag.Policy"
"""Attribute with the name of the policy, in beans of metrics."""
_DECISIONS = "Decisions_"
"""Beginning of the names of counts by reason, in beans of metrics."""
RANKED = "ranked"
"""Reason of decisions in which the policy chose all hosts."""
SETTINGS = ("off", "small")
"""Reasons of decisions that the mode of the controller or a setting leaves to HDFS's default policy."""
MAX_AGE_S = 5.0
"""Age from which a snapshot does not count, by default, in seconds."""
NO_LOADS = ("ccp", "rehdfs")
"""Policies that read no loads, so that a snapshot of any age serves them."""
FORM_ERRORS = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""Errors caused by missing fields, and by fields of a wrong type or value."""
_INVALID_SETTINGS = "settings"
"""Failure of a policy that does not run, because its settings are invalid."""


@dataclass(frozen=True)
class PolicyState:
    """State of the policy for one kind of blocks.

    Attributes:
        blocks: Blocks that it places: `replicated blocks` or `erasure-coded blocks`.
        policy: Its name: `sinbad`, `ccp`, `rehdfs` or `leeward`.
        controller: Address of the controller that it asks next; None without one.
        snapshot_age_s: Age of its snapshot of the controller, in seconds; None without one.
        max_age_s: Age from which a snapshot does not count, in seconds; None if the policy reads no loads, so
            that a snapshot of any age serves it.
        failure: Failure of the last request for a snapshot, with its message; None if it succeeded.
        unknown: Names of at most 100 DataNodes whose loads it does not know.
        decisions: Number of decisions since its start by reason: `ranked`, or that of HDFS's default policy.
        last_hour: The same of the last hour; None if the NameNode does not count it.
        explains: True if the NameNode shows decisions over HTTP.
        invalid: Message about invalid settings, with which HDFS's default policy places the blocks; None if
            they are valid.
    """

    blocks: str
    policy: str
    controller: str | None
    snapshot_age_s: float | None
    max_age_s: float | None
    failure: str | None
    unknown: list[str]
    decisions: dict[str, int]
    last_hour: dict[str, int] | None
    explains: bool
    invalid: str | None


def fallbacks(decisions: Mapping[str, int]) -> dict[str, int]:
    """Number of decisions that a policy left to HDFS's default policy, by reason, the most frequent first.

    Decisions that the operator left to it are not among them: small blocks, and those of a mode.

    Args:
        decisions: Number of decisions by reason.
    """
    own = (RANKED, *SETTINGS)
    others = {reason: count for reason, count in decisions.items() if count and reason not in own}
    return dict(sorted(others.items(), key=lambda one: (-one[1], one[0])))


def by_settings(decisions: Mapping[str, int]) -> dict[str, int]:
    """Number of decisions that settings and modes leave to HDFS's default policy, by reason."""
    return {reason: decisions[reason] for reason in SETTINGS if decisions.get(reason)}


def read_policies(beans: Iterable[Mapping[str, Any]]) -> list[PolicyState]:
    """States of the policy, from the beans whose names match `BEANS`.

    Raises:
        InputError: A bean has another form than expected.
    """
    states: dict[str, PolicyState] = {}
    for bean in beans:
        name = str(bean.get("name", "")).rpartition("name=")[2]
        blocks = "erasure-coded blocks" if "ErasureCoded" in name else "replicated blocks"
        try:
            if bean.get("Failure") == _INVALID_SETTINGS:
                states[blocks] = _read_invalid(blocks, bean)
            # The bean of a policy that no longer runs has no name of a policy.
            elif bean.get("Policy") == "":
                continue
            # The state says more than the metrics.
            elif "DecisionsByReason" in bean:
                states[blocks] = _read_state(blocks, bean)
            elif bean.get(_POLICY):
                states.setdefault(blocks, _read_metrics(blocks, bean))
        except FORM_ERRORS as error:
            message = f"bean {name}: unknown form ({error!r}); its jar is of another version than Leeward"
            raise InputError.about("namenode", message) from None
    return [states[blocks] for blocks in sorted(states, reverse=True)]


def _read_invalid(blocks: str, bean: Mapping[str, Any]) -> PolicyState:
    """State of a policy whose settings are invalid."""
    return PolicyState(
        blocks=blocks,
        policy="",
        controller=None,
        snapshot_age_s=None,
        max_age_s=None,
        failure=None,
        unknown=[],
        decisions={},
        last_hour=None,
        explains=False,
        invalid=str(bean["FailureDetail"]),
    )


def _read_state(blocks: str, bean: Mapping[str, Any]) -> PolicyState:
    failure, detail = str(bean["Failure"]), str(bean.get("FailureDetail", ""))
    last_hour = bean.get("DecisionsOfLastHour")
    return PolicyState(
        blocks=blocks,
        policy=str(bean["Policy"]),
        controller=str(bean["Controller"]) or None,
        snapshot_age_s=_age_s(bean["SnapshotAgeMs"]),
        max_age_s=_age_s(bean["SnapshotMaxAgeMs"]),
        failure=": ".join(part for part in (failure, detail) if part) if failure else None,
        unknown=[str(name) for name in bean["UnknownDataNodes"]],
        decisions=_counts(bean["DecisionsByReason"]),
        last_hour=None if last_hour is None else _counts(last_hour),
        explains=True,
        invalid=None,
    )


def _read_metrics(blocks: str, bean: Mapping[str, Any]) -> PolicyState:
    """State from the metrics of the policy, which have no names and no texts."""
    decisions = {
        name.removeprefix(_DECISIONS): int(count)
        for name, count in bean.items()
        if name.startswith(_DECISIONS)
    }
    # Without a controller, there is no age.
    age = bean.get("SnapshotAgeMs")
    return PolicyState(
        blocks=blocks,
        policy=str(bean[_POLICY]),
        controller=None if age is None else "its controller",
        snapshot_age_s=None if age is None else _age_s(age),
        max_age_s=None if bean[_POLICY] in NO_LOADS else MAX_AGE_S,
        failure=None,
        unknown=[],
        decisions=decisions,
        last_hour=None,
        explains=False,
        invalid=None,
    )


def _age_s(milliseconds: Any) -> float | None:
    return None if int(milliseconds) < 0 else int(milliseconds) / 1000


def _counts(table: Any) -> dict[str, int]:
    """Counts by reason: JMX shows a map as a list of entries with `key` and `value`."""
    entries = table.items() if isinstance(table, Mapping) else ((one["key"], one["value"]) for one in table)
    return {str(reason): int(count) for reason, count in entries}


def read_decision(text: str) -> dict[str, Any]:
    """A decision of the policy, from its JSON. The value of a candidate is None if its load is unknown.

    Raises:
        FORM_ERRORS: It has another form than expected.
    """
    decision = json.loads(text)
    for field in ("time", "policy", "reason"):
        if not isinstance(decision[field], str):
            raise TypeError(field)
    if not isinstance(decision.get("mode", ""), str):
        raise TypeError("mode")
    for step in decision["steps"]:
        for level in ("racks", "hosts"):
            for candidate in step.get(level, []):
                value = float(candidate["value"])
                # Java writes the text "NaN" for an unknown load.
                candidate["value"] = value if math.isfinite(value) else None
                if not isinstance(candidate.get("detail", ""), str):
                    raise TypeError("detail")
    for field in ("hosts", "existing"):
        if not all(isinstance(host, str) for host in decision.get(field, [])):
            raise TypeError(field)
    return dict(decision)
