"""An app that runs on a fleet: sends its transfers or starts its commands, pauses, and moves tasks."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from leeward.errors import InputError
from leeward.tenant.fleet import Event, Fleet, HostError
from leeward.tenant.transfers import Transfer, Transfers


@dataclass
class Move:
    """A task that moves to another host, with its state."""

    task: str
    source: str
    target: str
    state_bytes: int
    began_s: float
    ended_s: float | None = None


class Execution:
    """A run of an app. The caller passes on the events of the fleet, until the run has ended."""

    def __init__(
        self,
        fleet: Fleet,
        app: Mapping[str, Any],
        where: Mapping[str, str],
        *,
        state_bytes: int = 0,
        waits_between_phases: bool = False,
        clock: Callable[[], float] = time.monotonic,
        on_output: Callable[[str, str], object] | None = None,
    ) -> None:
        """Prepares a run.

        Args:
            fleet: Helpers of the hosts.
            app: Tasks and transfers, as `leeward._native.app_file` returns them. If tasks have commands, the
                transfers say what these send, and the run itself sends nothing.
            where: Host of each task.
            state_bytes: Bytes that a task takes along when it moves.
            waits_between_phases: True if the run pauses when a phase has ended and another one follows,
                until `resume`.
            clock: Time in seconds.
            on_output: Called with a task and each line that its command prints.

        Raises:
            InputError: Some tasks have commands, and others have none.
        """
        self._commands = {one["task"]: one["command"] for one in app["tasks"] if one["command"]}
        if self._commands and len(self._commands) < len(app["tasks"]):
            without = next(one["task"] for one in app["tasks"] if not one["command"])
            raise InputError.about(
                "app", f"task `{without}` has no command; expected one for every task or none"
            )
        self._fleet = fleet
        self._clock = clock
        self._on_output = on_output
        self._start: float | None = None
        self._paused = False
        self._copies: dict[int, Move] = {}
        self._running: dict[int, str] = {}
        """Tasks whose commands run, by the number of the command."""
        self._state_bytes = state_bytes
        self._waits = waits_between_phases
        self._phase: int | None = None
        self.between_phases = False
        """True if a phase has ended, and the run waits before the next one."""
        self.transfers = Transfers([] if self._commands else app["transfers"], where)
        self.moves: list[Move] = []
        self.ended_s: float | None = None
        """Wall-clock time from the begin to the end of the last transfer or command, in seconds."""

    def begin(self) -> None:
        """Starts all transfers of the first phase, or all commands."""
        self._start = self._clock()
        self._phase = self.transfers.phase
        where, hosts = self.transfers.where, self._fleet.hosts
        peers = ",".join(f"{task}={hosts[host].address}" for task, host in where.items())
        for task, line in self._commands.items():
            number = self._fleet.next_number()
            self._running[number] = task
            environment = {
                "LEEWARD_TASK": task,
                "LEEWARD_ADDRESS": hosts[where[task]].address,
                "LEEWARD_PEERS": peers,
            }
            self._fleet.order(where[task], "command", id=number, line=line, environment=environment)
        self._continue()
        self._note_end()

    def now_s(self) -> float:
        """Time since the begin, in seconds."""
        assert self._start is not None, "the run has not begun"
        return self._clock() - self._start

    @property
    def quiet(self) -> bool:
        """True if nothing is being sent."""
        return not self._copies and all(one.piece is None for one in self.transfers.all)

    @property
    def moving(self) -> bool:
        """True if the state of a task is on its way."""
        return bool(self._copies)

    def handle(self, event: Event) -> bool:
        """Takes an event of the fleet; False if it concerns another run.

        Raises:
            HostError: A command ended with another code than 0.
        """
        number = event.get("id")
        if event["event"] == "progress":
            for piece, received in event["bytes"].items():
                self.transfers.progress(int(piece), received)
            return True
        if number in self._copies:
            self._arrive(self._copies.pop(number))
        elif number in self._running:
            self._handle_command(event, self._running[number])
        elif number is not None and self.transfers.has(number):
            self.transfers.end(number, event["bytes"], event["seconds"], self.now_s())
        else:
            return False
        self._continue()
        self._note_end()
        return True

    def pause(self) -> None:
        """Stops all transfers; the run is quiet when the last bytes on the way have arrived."""
        self._paused = True
        for transfer in self.transfers.all:
            if transfer.piece:
                self._fleet.order(transfer.piece.source, "stop", id=transfer.piece.number)

    def resume(self) -> None:
        """Sends what is left, from and to the hosts of the tasks now, or when their state has arrived."""
        self._paused = self.between_phases = False
        self._phase = self.transfers.phase
        self._continue()

    def move(self, task: str, target: str) -> Move:
        """Moves a task of a quiet run: sends its state, and then lets its transfers continue at `target`."""
        assert self._paused, "only a paused run moves tasks"
        move = Move(task, self.transfers.where[task], target, self._state_bytes, self.now_s())
        self.moves.append(move)
        if self._state_bytes:
            number = self._fleet.next_number()
            self._copies[number] = move
            self._fleet.send(number, move.source, target, self._state_bytes)
        else:
            self._arrive(move)
        return move

    def _arrive(self, move: Move) -> None:
        self.transfers.where[move.task] = move.target
        move.ended_s = self.now_s()

    def _continue(self) -> None:
        """Begins a piece of each transfer of the current phase that waits for nothing."""
        if self._paused:
            return
        phase = self.transfers.phase
        if self._waits and phase is not None and phase != self._phase:
            self._paused = self.between_phases = True
            return
        moving = {move.task for move in self._copies.values()}
        for transfer in self.transfers.all:
            if (
                transfer.piece is None
                and not transfer.ended
                and transfer.phase == phase
                and not {transfer.source, transfer.target} & moving
            ):
                self._send(transfer)

    def _send(self, transfer: Transfer) -> None:
        piece = self.transfers.begin(transfer, self._fleet.next_number(), self.now_s())
        self._fleet.send(piece.number, piece.source, piece.target, piece.size)

    def _handle_command(self, event: Event, task: str) -> None:
        if event["event"] == "output":
            if self._on_output:
                self._on_output(task, event["line"])
            return
        if event["code"]:
            raise HostError(event["host"], f"the command of task {task} ended with code {event['code']}")
        del self._running[event["id"]]

    def _note_end(self) -> None:
        if self.ended_s is None and not self._running and not self._copies and self.transfers.ended:
            self.ended_s = self.now_s()
