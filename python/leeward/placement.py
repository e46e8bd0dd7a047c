"""One decision at a time: where the copies of a block should go."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from leeward import _native

ALL = 65_535
"""Every candidate."""


def place_replicas(
    cluster: _native.Cluster | Mapping[str, Any] | str | PathLike[str],
    size: str,
    *,
    policy: str = "sinbad",
    telemetry: str | PathLike[str] | None = None,
    writer: str | None = None,
    replicas: int = 3,
    fault_domains: int = 1,
    exclude: Sequence[str] = (),
    tags: Sequence[str] = (),
    seed: int = 1,
    explain: int = ALL,
) -> dict[str, Any]:
    """Chooses the hosts of the copies of a block.

    Args:
        cluster: A `Cluster`, or anything that `Cluster(...)` takes.
        size: Size of the block, such as `256MiB`.
        policy: A policy, with settings after colons: `sinbad:remote_racks=2`.
        telemetry: A CSV file with the columns `link` and `load_bps`. Links it does not name are not seen.
        writer: The host that writes; none if it is outside the cluster.
        replicas: Copies, the writer's included.
        fault_domains: Fault domains besides the first copy's that must hold one.
        exclude: Hosts, racks and pods that must hold none.
        tags: Tags that hosts must have.
        seed: Seed of ties.
        explain: How many candidates of each level to keep in `why`.

    Returns:
        `hosts` (in the order of the chain, or None), `refused` (why not, or None), `why` (candidates,
        the best first, each with the link that limits it, its number and what came of it), `policy`, and
        `oldest_telemetry_s`.

    Raises:
        InputError: The cluster, the telemetry or an argument is not right.
    """
    return _native.place_replicas(
        _native.Cluster(cluster),
        policy,
        size,
        telemetry=telemetry,
        writer=writer,
        replicas=replicas,
        fault_domains=fault_domains,
        exclude=list(exclude),
        tags=list(tags),
        seed=seed,
        explain=min(explain, ALL),
    )


def policies() -> list[dict[str, Any]]:
    """Every policy there is: `kind`, `name`, `summary`, `source`, and `settings` as JSON schema."""
    return _native.policies()
