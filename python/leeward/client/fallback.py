"""Settings of outage decisions: placements that a client decides alone while the service is away.

By `fallback`, the metrics, summaries and search of the service mean other decisions: those that a policy left
to the default policy.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from leeward import _native
from leeward.errors import MOST_SEED, InputError, whole_number
from leeward.simulation import name_policy


@dataclass(frozen=True, kw_only=True)
class Fallback:
    """Settings of outage decisions.

    A file system that loses Sinbad's master uses the default placement policy (Sinbad, section 3.2). A client
    with these settings does so for replicas and tasks, on the cluster and the state of its hosts that it read
    last. Loads of links age within seconds, so its policies get none. Guarantees (`promise`,
    `place_volume`) need the whole ledger, so the client cannot make them alone.

    Attributes:
        replicas: Policy for replicas, with settings after colons.
        tasks: Policy for tasks.
        cluster: Cluster for outage decisions before the client has read that of the service: a `Cluster`, or
            anything that `Cluster(...)` takes.
        wait_s: Time for which a placement is sent and repeated before the client decides it alone.
        retry_s: Time between checks if the service is back, made in the background.
        refresh_s: Least time between reads of cluster and hosts, made in the background after placements.
        seed: Seed of outage decisions; each also depends on the key of its request.
        most: Greatest number of decisions that are stored in `Client.made_alone`; the oldest are dropped.
        hand_over: True to commit outage decisions to the service once it answers again. They then count as
            the service's own. False leaves them to the caller, in `Client.made_alone`.

    Raises:
        InputError: A policy, the cluster or a number is invalid.
    """

    replicas: str = "uniform"
    tasks: str = "borg"
    cluster: _native.Cluster | Mapping[str, Any] | str | PathLike[str] | None = None
    wait_s: float = 5.0
    retry_s: float = 1.0
    refresh_s: float = 60.0
    seed: int = 1
    most: int = 10_000
    hand_over: bool = True

    def __post_init__(self) -> None:
        for name, kind in (("replicas", "replicas"), ("tasks", "apps")):
            with name_policy(name):
                _native.check_policy(getattr(self, name), kind)
        for name in ("wait_s", "retry_s", "refresh_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InputError.about(name, f"{value}: expected more than 0 seconds")
        whole_number("seed", self.seed, 0, MOST_SEED)
        whole_number("most", self.most, 1)
        if self.cluster is not None:
            # The file is read once, so that an invalid one is an error now and not during an outage.
            object.__setattr__(self, "cluster", _native.Cluster(self.cluster))
