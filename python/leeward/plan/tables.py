"""A plan as tables, for programs."""

from typing import Any

import pyarrow

from leeward.plan.planning import Plan
from leeward.plan.simulate import Outcome

_TEXT, _WHOLE, _DOUBLE = pyarrow.string(), pyarrow.int64(), pyarrow.float64()


def tables(plan: Plan) -> dict[str, pyarrow.Table]:
    """All tables by name, as in an output folder."""
    return {"racks": racks(plan), "shifts": shifts(plan), "links": links(plan)}


def racks(plan: Plan) -> pyarrow.Table:
    """A row for each planned rack, the worst first.

    `rack`, `kind`; ports: `speed_bps` of one, `assumed` (bool: derived from the capacity), `now`, `lost`,
    `needed`, `added`; and in percent of the rack's work `shift` (has to leave) and `left` (the part of it
    that no rack can take).
    """
    rows = [
        {
            "rack": rack.rack,
            "kind": rack.kind,
            **{name: getattr(rack.ports, name) for name in ("speed_bps", "assumed", *_PORTS)},
            "shift": rack.shift.percent,
            "left": rack.shift.left,
        }
        for rack in plan.planned
    ]
    columns = [("rack", _TEXT), ("kind", _TEXT), ("speed_bps", _WHOLE), ("assumed", pyarrow.bool_())]
    columns += [(name, _WHOLE) for name in (*_PORTS, "shift", "left")]
    return pyarrow.Table.from_pylist(rows, pyarrow.schema(columns))


_PORTS = ("now", "lost", "needed", "added")


def shifts(plan: Plan) -> pyarrow.Table:
    """Work that racks would take: `from`, `to` (racks), `percent` of the work of `from`."""
    rows = [
        {"from": one.rack, "to": to, "percent": percent}
        for one in plan.planned
        for to, percent in one.shift.to.items()
    ]
    return pyarrow.Table.from_pylist(
        rows, pyarrow.schema([("from", _TEXT), ("to", _TEXT), ("percent", _WHOLE)])
    )


def links(plan: Plan) -> pyarrow.Table:
    """Result of each link: `link`, `rack`, `run`, `hot`, `intervals`, `percentile`, `most`.

    `rack` is the planned rack; null for other links that would take its work or lose it. `run` is `before`,
    `ports` or `shift`; `hot` is the number of hot ones among the seen `intervals`; `percentile` and `most` of
    the utilization are shares.
    """
    rows = [row for one in plan.planned for row in _runs(one.rack, one.outcomes)]
    rows += _runs(None, plan.taking)
    columns = [("link", _TEXT), ("rack", _TEXT), ("run", _TEXT), ("hot", _WHOLE), ("intervals", _WHOLE)]
    columns += [("percentile", _DOUBLE), ("most", _DOUBLE)]
    return pyarrow.Table.from_pylist(rows, pyarrow.schema(columns))


def _runs(rack: str | None, outcomes: dict[str, dict[str, Outcome]]) -> list[dict[str, Any]]:
    return [
        {"link": link, "rack": rack, "run": run, **vars(outcome)}
        for link, runs in outcomes.items()
        for run, outcome in runs.items()
    ]
