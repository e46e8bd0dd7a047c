"""`leeward tenant run --again`: looks at a run, measures if that may pay, and moves tasks."""

import math
from typing import Any

import pytest

from leeward import tenant
from leeward.placement import Reevaluation
from leeward.tenant.execution import Execution
from leeward.tenant.transfers import Transfers
from leeward.tenant.watch import Watch, worth_measuring
from support.tenant import PHASES, Orders, sent


@pytest.mark.parametrize(
    ("observed_s", "forecast_s", "measured", "reason"),
    [
        (30.0, 30.0, False, "transfers end as the forecast says"),
        (20.0, 30.0, False, "transfers end as the forecast says"),
        (34.0, 30.0, False, "at most 4 s can be saved; a measurement takes 5 s"),
        (36.0, 30.0, True, "transfers end 6 s later than the forecast says"),
        (math.inf, 30.0, True, "a transfer makes no progress"),
        (36.0, None, True, "a transfer makes no progress"),
    ],
)
def test_a_measurement_must_cost_less_than_it_may_save(
    observed_s: float, forecast_s: float | None, measured: bool, reason: str
) -> None:
    assert worth_measuring(observed_s, forecast_s, 5.0) == (measured, reason)


def test_a_watch_pauses_a_late_run_measures_and_moves() -> None:
    fleet = Orders(tenant.listed(["x=1.1.1.1", "y=1.1.1.2", "z=1.1.1.3"]))
    app = {
        "tasks": [{"task": task, "command": None} for task in "ab"],
        "transfers": [{"from": "a", "to": "b", "bytes": 1000}],
    }
    now = 0.0
    run = Execution(fleet, app, {"a": "x", "b": "y"}, clock=lambda: now)
    judged: list[tuple[str, float]] = []

    def judge(network: dict[str, Any], transfers: Transfers, of_phase: bool) -> Reevaluation:
        left = transfers.all[0].left
        assert of_phase == (network["name"] == "old")
        judged.append((network["name"], left))
        moves = [{"task": "a", "from": "x", "to": "z"}] if network["name"] == "new" else []
        slow = 10 if network["name"] == "new" else 1
        return Reevaluation(moves, left / 100 * slow, left / 100, 1.0, 0.0, bool(moves), "why", "", "")

    survey = tenant.Survey({"name": "new"}, None, 0.5, 77)
    watch = Watch(
        fleet, run, every_s=2.0, survey_s=1.0, believed={"name": "old"}, judge=judge, measure=lambda: survey
    )
    run.begin()
    watch.step()
    assert len(fleet.orders) == 1
    now = 2.0
    watch.step()
    watch.step()
    assert [do for _, do, *_ in fleet.orders[1:]] == ["progress"] * 3
    for host, received in (("x", {}), ("y", {"1": 100}), ("z", {})):
        event = {"event": "progress", "host": host, "bytes": received}
        run.handle(event)
        watch.note(event)
    # 900 bytes at 50 a second take 18 s; the forecast says 9.
    assert judged == [("old", 900)]
    assert (watch.looks[0]["observed_s"], watch.looks[0]["forecast_s"]) == (18.0, 9.0)
    assert fleet.orders[4:] == [("x", "stop", 1, 0)]
    watch.step()
    assert len(judged) == 1
    run.handle(sent(1, 120))
    watch.step()
    assert judged[1:] == [("new", 880)]
    assert fleet.orders[5:] == [("z>y", "send", 2, 880)]
    look = watch.looks[0]
    assert (look["bytes"], look["before_s"], look["after_s"]) == (77, 88.0, 8.8)


def test_a_watch_moves_tasks_between_phases_without_a_measurement() -> None:
    fleet = Orders(tenant.listed(["x=1.1.1.1", "y=1.1.1.2", "z=1.1.1.3"]))
    app = {"tasks": [{"task": task, "command": None} for task in "abc"], "transfers": PHASES}
    where = {"a": "x", "b": "y", "c": "z"}
    run = Execution(fleet, app, where, waits_between_phases=True, clock=lambda: 3.0)

    def judge(network: dict[str, Any], transfers: Transfers, of_phase: bool) -> Reevaluation:
        assert network == {"name": "old"}
        moves = [{"task": "c", "from": "z", "to": "y"}]
        return Reevaluation(moves, 9.0, 4.0, 5.0, 0.0, True, "why", "", "")

    def measure() -> tenant.Survey:
        raise AssertionError("nothing is measured")

    watch = Watch(
        fleet, run, every_s=60.0, survey_s=1.0, believed={"name": "old"}, judge=judge, measure=measure
    )
    run.begin()
    watch.step()
    assert watch.looks == []
    run.handle(sent(1, 100))
    assert run.between_phases
    assert len(fleet.orders) == 1
    watch.step()
    assert fleet.orders[1:] == [("y>y", "send", 2, 60), ("x>y", "send", 3, 50)]
    (look,) = watch.looks
    assert (look["reason"], look["because"], look["measured"]) == ("phase 1 begins", "why", False)
    watch.step()
    assert len(watch.looks) == 1


def watched(
    now: list[float], moves: list[dict[str, str]], state_bytes: int = 0
) -> tuple[Orders, Execution, Watch]:
    """A run of `PHASES` whose watch looks every 2 s; `moves` is the answer of each re-evaluation."""
    fleet = Orders(tenant.listed(["x=1.1.1.1", "y=1.1.1.2", "z=1.1.1.3"]))
    app = {"tasks": [{"task": task, "command": None} for task in "abc"], "transfers": PHASES}
    where = {"a": "x", "b": "y", "c": "z"}
    run = Execution(
        fleet, app, where, state_bytes=state_bytes, waits_between_phases=True, clock=lambda: now[0]
    )

    def judge(network: dict[str, Any], transfers: Transfers, of_phase: bool) -> Reevaluation:
        return Reevaluation(moves, 9.0, 4.0, 5.0, 0.0, bool(moves), "why", "", "")

    def measure() -> tenant.Survey:
        raise AssertionError("nothing is measured")

    watch = Watch(fleet, run, every_s=2.0, survey_s=1.0, believed={}, judge=judge, measure=measure)
    run.begin()
    return fleet, run, watch


def test_a_phase_that_ends_during_a_look_does_not_end_the_looks() -> None:
    now = [0.0]
    fleet, run, watch = watched(now, [])
    now[0] = 2.0
    watch.step()
    watch.note({"event": "progress", "host": "x", "bytes": {}})
    run.handle(sent(1, 100))
    watch.step()
    assert [look["reason"] for look in watch.looks] == ["phase 1 begins"]
    # A late answer of the phase that has ended is no look.
    for host in "yz":
        watch.note({"event": "progress", "host": host, "bytes": {}})
    assert len(watch.looks) == 1
    now[0] = 4.0
    before = len(fleet.orders)
    watch.step()
    assert [do for _, do, *_ in fleet.orders[before:]] == ["progress"] * 3


def test_rates_are_seen_from_when_the_state_of_moved_tasks_has_arrived() -> None:
    now = [0.0]
    moves = [{"task": "c", "from": "z", "to": "y"}]
    fleet, run, watch = watched(now, moves, state_bytes=7)
    now[0] = 1.0
    run.handle(sent(1, 100))
    watch.step()
    (copy,) = [order for order in fleet.orders if order[0] == "z>y"]
    now[0] = 11.0
    watch.step()
    run.handle(sent(copy[2], 7))
    watch.step()
    moves.clear()
    now[0] = 12.9
    before = len(fleet.orders)
    watch.step()
    assert fleet.orders[before:] == []
    now[0] = 13.0
    watch.step()
    pieces = {order[0]: order[2] for order in fleet.orders if order[1] == "send"}
    received = {"x": {}, "y": {str(pieces["y>y"]): 30, str(pieces["x>y"]): 25}, "z": {}}
    for host, count in received.items():
        event = {"event": "progress", "host": host, "bytes": count}
        run.handle(event)
        watch.note(event)
    # Half of the bytes in 2 s; the 10 s before, in which the state was on its way, do not count.
    assert watch.looks[-1]["observed_s"] == 2.0
