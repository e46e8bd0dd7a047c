"""Snapshots of the network in columns, and differences between them."""

from itertools import accumulate
from typing import Any, cast

from leeward.client.types import Snapshot

TABLES = ("links", "racks", "hosts", "devices")
"""Tables of a snapshot."""


def apply(base: Snapshot, difference: Snapshot) -> Snapshot:
    """The later snapshot: the same values as in the whole snapshot that the service would answer.

    Args:
        base: The earlier snapshot. It stays as it is.
        difference: Answer of the service to a request with `since`. A whole snapshot is returned as it is.

    Raises:
        ValueError: The difference is not one from `base`.
    """
    if difference["since"] is None:
        return difference
    if difference["since"] != base["id"]:
        raise ValueError(f"since: the difference is from `{difference['since']}`, not from `{base['id']}`")
    later = dict(difference) | {"since": None}
    for table in TABLES:
        if table in base:
            before, changes = cast(dict[str, Any], base)[table], cast(dict[str, Any], difference)[table]
            later[table] = _apply_to_table(before, changes)
    sequences = {one["client"]: one["sequence"] for one in base["clients"] + difference["clients"]}
    clients = [
        {"client": client, "sequence": sequence}
        for client, sequence in sequences.items()
        if sequence is not None
    ]
    later["clients"] = sorted(clients, key=lambda one: cast(str, one["client"]))
    return cast(Snapshot, later)


def _apply_to_table(before: dict[str, list[Any]], changes: dict[str, list[Any]]) -> dict[str, list[Any]]:
    rows = list(accumulate(changes["rows"]))
    after = {}
    for column, values in before.items():
        # Columns of names are not in a difference.
        changed = zip(rows, changes[column], strict=True) if column in changes else ()
        after[column] = later = list(values)
        for row, change in changed:
            is_number = isinstance(change, int) and not isinstance(change, bool)
            later[row] = (later[row] or 0) + change if is_number else change
    return after
