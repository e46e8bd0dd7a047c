"""`leeward tenant run`: bytes of transfers are conserved while tasks move and phases follow each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from leeward import tenant
from leeward.tenant.execution import Execution
from leeward.tenant.transfers import Transfers
from support.tenant import PHASES, Orders, sent


@given(
    sizes=some.lists(some.integers(0, 1000), min_size=1, max_size=6),
    steps=some.lists(some.tuples(some.integers(0, 5), some.floats(0, 1), some.booleans()), max_size=40),
)
def test_bytes_are_conserved_however_transfers_stop_and_tasks_move(
    sizes: list[int], steps: list[tuple[int, float, bool]]
) -> None:
    names = [f"t{at}" for at in range(len(sizes) + 1)]
    pairs = zip(names, names[1:], sizes, strict=False)
    transfers = Transfers(
        [{"from": a, "to": b, "bytes": size} for a, b, size in pairs], dict.fromkeys(names, "h0")
    )
    now, sent = 0.0, 0
    for number, (at, share, moves) in enumerate(steps):
        now += 1.0
        transfer = transfers.all[at % len(sizes)]
        if transfer.ended:
            assert transfer.arrived == transfer.size
            continue
        piece = transfers.begin(transfer, number, now)
        assert piece.size == transfer.size - transfer.arrived
        transfers.progress(number, round(share * piece.size))
        transfers.progress(number, 0)
        (rows,) = transfers.matrices(names)
        left = sum(map(sum, rows))
        assert left == sum(one.size - one.arrived for one in transfers.all) - round(share * piece.size)
        transfers.end(number, round(share * piece.size), 1.0, now)
        sent += round(share * piece.size)
        if moves:
            transfers.where[transfer.source] = f"h{number}"
    assert sum(one.arrived for one in transfers.all) == sent
    assert all(one.ended == (one.arrived == one.size) for one in transfers.all if one.pieces)
    assert all(one.pieces == len(one.hosts) for one in transfers.all)


def test_more_bytes_than_sent_are_an_error() -> None:
    transfers = Transfers([{"from": "a", "to": "b", "bytes": 10}], {"a": "x", "b": "y"})
    transfers.begin(transfers.all[0], 1, 0.0)
    with pytest.raises(ValueError, match="11 bytes arrived of 10"):
        transfers.end(1, 11, 1.0, 1.0)


def test_a_moved_task_takes_its_state_along_and_sends_the_rest_from_there() -> None:
    fleet = Orders(tenant.listed(["x=1.1.1.1", "y=1.1.1.2", "z=1.1.1.3"]))
    transfers = [{"from": "a", "to": "b", "bytes": 100}, {"from": "c", "to": "b", "bytes": 50}]
    app = {"tasks": [{"task": task, "command": None} for task in "abc"], "transfers": transfers}
    now = 0.0
    run = Execution(fleet, app, {"a": "x", "b": "y", "c": "y"}, state_bytes=7, clock=lambda: now)
    run.begin()
    assert fleet.orders == [("x>y", "send", 1, 100), ("y>y", "send", 2, 50)]
    run.pause()
    assert fleet.orders[2:] == [("x", "stop", 1, 0), ("y", "stop", 2, 0)]
    run.handle(sent(1, 30))
    run.handle(sent(2, 20))
    assert run.quiet
    now = 2.0
    run.move("a", "z")
    run.resume()
    # The state goes first; the transfer that has nothing to do with the task continues at once.
    assert fleet.orders[4:] == [("x>z", "send", 3, 7), ("y>y", "send", 4, 30)]
    now = 3.0
    run.handle(sent(3, 7))
    assert fleet.orders[6:] == [("z>y", "send", 5, 70)]
    assert run.ended_s is None
    run.handle(sent(4, 30))
    now = 5.0
    run.handle(sent(5, 70))
    assert run.ended_s == 5.0
    assert [(move.began_s, move.ended_s) for move in run.moves] == [(2.0, 3.0)]
    assert run.transfers.all[0].hosts == [("x", "y"), ("z", "y")]


def test_a_phase_begins_when_the_earlier_one_has_ended() -> None:
    fleet = Orders(tenant.listed(["x=1.1.1.1", "y=1.1.1.2", "z=1.1.1.3"]))
    app = {"tasks": [{"task": task, "command": None} for task in "abc"], "transfers": PHASES}
    run = Execution(fleet, app, {"a": "x", "b": "y", "c": "z"}, clock=lambda: 0.0)
    run.begin()
    assert fleet.orders == [("x>y", "send", 1, 100)]
    assert run.transfers.matrices(["a", "b", "c"]) == [
        [[0, 100, 0], [0, 0, 0], [0, 0, 0]],
        [[0, 0, 50], [0, 0, 60], [0, 0, 0]],
    ]
    run.handle(sent(1, 100))
    assert fleet.orders[1:] == [("y>z", "send", 2, 60), ("x>z", "send", 3, 50)]
    assert run.transfers.matrices(["a", "b", "c"], of_phase=True)[0] == [[0] * 3] * 3
    run.handle(sent(2, 60))
    assert run.ended_s is None
    run.handle(sent(3, 50))
    assert run.ended_s == 0.0
