"""The account of an app's transfers while it runs: which bytes arrived, from where, and what is left.

Pure: times come as arguments, and nothing is sent. A transfer is sent in pieces. If a task moves, the piece
of each of its transfers ends, and another piece carries the rest from or to the new host.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Piece:
    """A part of a transfer, between two hosts, that is being sent."""

    number: int
    source: str
    target: str
    size: int
    began_s: float
    received: int = 0


@dataclass
class Transfer:
    """Bytes from a task to another."""

    source: str
    target: str
    size: int
    phase: int = 0
    """Phase of the app: its transfers begin when all of earlier phases have ended."""
    arrived: int = 0
    """Bytes of the pieces that ended."""
    began_s: float | None = None
    ended_s: float | None = None
    sending_s: float = 0.0
    """Time in which pieces were sent."""
    piece: Piece | None = None
    pieces: int = 0
    hosts: list[tuple[str, str]] = field(default_factory=list)
    """Source and target host of each piece."""

    @property
    def left(self) -> int:
        """Bytes that have not arrived."""
        return self.size - self.arrived - (self.piece.received if self.piece else 0)

    @property
    def ended(self) -> bool:
        """True if all bytes have arrived."""
        return self.ended_s is not None

    def rate_bps(self) -> float | None:
        """Average rate while it was sent; None before its end or if it took no time."""
        return 8 * self.size / self.sending_s if self.ended and self.sending_s > 0 else None


class Transfers:
    """All transfers of an app, and the hosts of its tasks."""

    def __init__(self, transfers: Iterable[Mapping[str, Any]], where: Mapping[str, str]) -> None:
        """Takes transfers with `from`, `to`, `bytes` and `phase`, and the host of each task."""
        self.all = [Transfer(one["from"], one["to"], one["bytes"], one.get("phase", 0)) for one in transfers]
        self.where = dict(where)
        self._at: dict[int, Transfer] = {}

    @property
    def ended(self) -> bool:
        """True if all transfers have ended."""
        return all(transfer.ended for transfer in self.all)

    @property
    def phase(self) -> int | None:
        """The earliest phase with a transfer that has not ended; None if all have ended."""
        return min((transfer.phase for transfer in self.all if not transfer.ended), default=None)

    def begin(self, transfer: Transfer, number: int, now_s: float) -> Piece:
        """Begins a piece with the bytes that are left, between the hosts of its tasks now."""
        assert transfer.piece is None, "a piece is being sent"
        assert not transfer.ended, "nothing is left"
        source, target = self.where[transfer.source], self.where[transfer.target]
        piece = Piece(number, source, target, transfer.left, now_s)
        transfer.piece, transfer.pieces = piece, transfer.pieces + 1
        transfer.hosts.append((source, target))
        if transfer.began_s is None:
            transfer.began_s = now_s
        self._at[number] = transfer
        return piece

    def progress(self, number: int, received: int) -> None:
        """Notes how many bytes of a piece have arrived; an earlier report does not take bytes back."""
        transfer = self._at.get(number)
        if transfer and transfer.piece:
            transfer.piece.received = min(max(transfer.piece.received, received), transfer.piece.size)

    def end(self, number: int, received: int, seconds: float, now_s: float) -> Transfer:
        """Ends a piece of which the receiver has a number of bytes, after a time of sending.

        Raises:
            ValueError: The receiver has more bytes than were to be sent.
        """
        transfer = self._at.pop(number)
        piece = transfer.piece
        assert piece is not None
        if not 0 <= received <= piece.size:
            raise ValueError(f"{received} bytes arrived of {piece.size}")
        transfer.arrived += received
        transfer.sending_s += seconds
        transfer.piece = None
        if transfer.arrived == transfer.size:
            transfer.ended_s = now_s
        return transfer

    def has(self, number: int) -> bool:
        """True for the number of a piece that is being sent."""
        return number in self._at

    def matrices(self, tasks: list[str], *, of_phase: bool = False) -> list[list[list[float]]]:
        """Bytes that are left, from each task to each, in each phase; `of_phase`: in the current one only."""
        at = {task: number for number, task in enumerate(tasks)}
        phases = range(max((transfer.phase for transfer in self.all), default=0) + 1)
        result = [[[0.0] * len(tasks) for _ in tasks] for _ in phases]
        for transfer in self.all:
            if not of_phase or transfer.phase == self.phase:
                row = result[transfer.phase][at[transfer.source]]
                row[at[transfer.target]] += float(transfer.left)
        return result
