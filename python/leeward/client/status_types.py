"""Fields of the status of a service."""

from typing import Any, TypedDict


class Agents(TypedDict):
    """Numbers of hosts by their telemetry, and the names of at most 100 silent ones."""

    reporting: int
    silent: int
    absent: int
    silent_hosts: list[str]


class Comparisons(TypedDict):
    """Comparisons of a kind of decision, by the effect of Leeward's choice."""

    kind: str
    better: int
    same: int
    worse: int
    unknown: int
    refused: int


class KeptTelemetry(TypedDict):
    """Telemetry that the service kept over its last restart: counts of what was fresh at the start."""

    file: str
    links: int
    devices: int
    hosts: int
    problem: str | None


class LedgerSettings(TypedDict):
    """Settings of the estimates of loads; `grace` is None for half an interval."""

    interval: str
    alpha: float
    missing: str
    initial: str
    grace: str | None
    unknown_after: float
    hold_peak: bool
    limit: float
    reservable: float
    hot: float


class HistorySettings(TypedDict):
    """Settings of demand from history."""

    window: str
    percentile: float


class MoveSettings(TypedDict):
    """Settings of moves of tasks."""

    load: str
    windows: int
    cooldown: int
    timeout: str
    hook: dict[str, str | None] | None


class Status(TypedDict):
    """Version and counts of the service."""

    version: str
    cluster: str
    cluster_version: str
    policies: dict[str, Any]
    modes: dict[str, str]
    since: str
    time: str
    clock_behind_s: float
    interval_s: float
    hot_above: float
    ledger: LedgerSettings
    history: HistorySettings | None
    moves: MoveSettings
    epoch: int
    decisions: int
    decided: int
    samples: int
    slow_links: int
    waiting: int
    released_early: int
    snapshot_age_s: float
    transaction_s: float | None
    agents: Agents
    connections: dict[str, int]
    comparisons: list[Comparisons]
    warnings: list[str]
    store: str
    durability: str | None
    role: str
    leader: str | None
    stalled: str | None
    telemetry: dict[str, Any] | None
    kept_telemetry: KeptTelemetry | None
    demo: dict[str, Any] | None
