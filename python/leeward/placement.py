"""One decision at a time: where the copies of a block should go."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from leeward import _native
from leeward.errors import MOST_SEED, InputError, names, whole_number
from leeward.simulation import of_policy

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
    fault_domains: int | None = None,
    exclude: Sequence[str] | str = (),
    tags: Sequence[str] | str = (),
    collocate: Sequence[str] | str = (),
    max_imbalance: float | None = None,
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
        replicas: Copies, the writer's included: 1 to 255.
        fault_domains: Fault domains besides the first copy's that must hold one, 0 to 255; by default 1, and
            none for a single copy.
        exclude: Hosts, racks and pods that must hold none; a text is one name.
        tags: Tags that hosts must have; a text is one.
        collocate: Hosts of related files: if there are any, no other may hold a copy; a text is one.
        max_imbalance: How much more of its room, as a share, a host may fill than hosts do in the mean.
        seed: Seed of ties.
        explain: How many candidates of each level to keep in `why`.

    Returns:
        `hosts` (in the order of the chain, or None), `refused` (why not, or None), `note` (why the policy
        left the choice to another, or None), `why` (candidates, the best first, each with what limits it,
        how its load is known, its number and what came of it), `policy`, and `oldest_telemetry_s`.

    Raises:
        InputError: The cluster, the telemetry or an argument is not right.
    """
    whole_number("replicas", replicas, 1, 255)
    if fault_domains is not None:
        whole_number("fault_domains", fault_domains, 0, 255)
    whole_number("seed", seed, 0, MOST_SEED)
    whole_number("explain", explain, 0)
    network = _native.Cluster(cluster)
    try:
        with of_policy("policy"):
            return _native.place_replicas(
                network,
                policy,
                size,
                telemetry=telemetry,
                writer=writer,
                replicas=replicas,
                fault_domains=fault_domains,
                exclude=names(exclude),
                tags=names(tags),
                collocate=names(collocate),
                max_imbalance=max_imbalance,
                seed=seed,
                explain=min(explain, ALL),
            )
    except InputError as error:
        if error.file != "request" or error.field is None or error.line is not None:
            raise
        raise InputError(error.field, None, None, None, error.message) from None


def policies() -> list[dict[str, Any]]:
    """Every policy there is: `kind`, `name`, `summary`, `source`, and `settings` as JSON schema."""
    return _native.policies()
