"""The executor of the guide "Serve": moves that it cannot carry out do not end it, and a crash loses none."""

from pathlib import Path
from typing import Any

import pytest

import leeward
from leeward import ProblemError

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/serve.md"


class EndOfLoopError(Exception):
    """Ends the loop of the guide, which has no end."""


class FakeClient:
    """The moves of a service, and the answers to them."""

    problem: ProblemError | None = None
    moves: dict[str, dict[str, Any]]
    answers: list[tuple[str, str, str | None, str | None]]

    def __init__(self, url: str) -> None:
        """Connects to nothing."""

    def migrations(self, state: str) -> list[dict[str, Any]]:
        """Returns the moves in this state."""
        return [move for move in self.moves.values() if move["state"] == state]

    def answer_migration(
        self, migration: str, answer: str, reason: str | None = None, *, executor: str | None = None
    ) -> None:
        """Takes an answer, unless the service has a problem with the move `gone`."""
        if self.problem is not None and migration == "gone":
            raise self.problem
        self.answers.append((migration, answer, reason, executor))


def run(
    monkeypatch: pytest.MonkeyPatch, moves: dict[str, dict[str, Any]], problem: ProblemError | None = None
) -> tuple[list[tuple[str, str, str | None, str | None]], list[str]]:
    """Runs one round of the guide's loop. Returns the answers, and the tasks that were restarted."""
    code = GUIDE.read_text(encoding="utf-8").split("## Carry out moves")[1]
    code = code.split("```python\n")[1].split("```")[0]
    restarted = []

    def restart(job: str, task: str, host: str) -> None:
        if task == "stuck":
            raise RuntimeError("no room")
        restarted.append(task)

    def end(_: float) -> None:
        raise EndOfLoopError

    FakeClient.moves, FakeClient.answers, FakeClient.problem = moves, [], problem
    monkeypatch.setattr(leeward, "Client", FakeClient)
    monkeypatch.setattr("time.sleep", end)
    with pytest.raises(EndOfLoopError):
        exec(code, {"restart": restart})
    return FakeClient.answers, restarted


def move(name: str, state: str = "advised", executor: str | None = None) -> dict[str, Any]:
    """A move of a task."""
    return {"id": name, "state": state, "job": "crawl", "task": name, "to": "r1h0", "executor": executor}


def test_moves_are_taken_and_end_as_done_or_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, restarted = run(monkeypatch, {name: move(name) for name in ("a", "stuck")})
    assert restarted == ["a"]
    assert answers == [
        ("a", "taken", None, "scheduler"),
        ("a", "done", None, "scheduler"),
        ("stuck", "taken", None, "scheduler"),
        ("stuck", "failed", "no room", "scheduler"),
    ]


def test_moves_that_were_taken_before_a_crash_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    moves = {
        "new": move("new"),
        "mine": move("mine", "taken", "scheduler"),
        "other": move("other", "taken", "evictor"),
    }
    _, restarted = run(monkeypatch, moves)
    assert restarted == ["mine", "new"]


def test_a_move_that_is_gone_does_not_end_the_executor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = ProblemError("answered", "The migration has another answer", 409, "the move is already expired")
    answers, restarted = run(monkeypatch, {name: move(name) for name in ("gone", "b")}, problem)
    assert restarted == ["b"]
    assert {answer[0] for answer in answers} == {"b"}
    assert "the move is already expired" in capsys.readouterr().out


def test_other_problems_end_the_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ProblemError("denied", "The token has another role", 403, "the role must be place")
    with pytest.raises(ProblemError):
        run(monkeypatch, {"gone": move("gone")}, problem)
