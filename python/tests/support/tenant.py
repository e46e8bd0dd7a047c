"""Hosts of a tenant that are this machine, and fleets that only note orders."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leeward import tenant
from leeward.tenant.fleet import Event, Fleet
from support.fixtures import LEEWARD

APP = "tasks: [{name: a, cpus: 1}, {name: b, cpus: 1}]\ntransfers: [{from: a, to: b, bytes: 3MB}]\n"
PHASES = [
    {"from": "a", "to": "b", "bytes": 100, "phase": 0},
    {"from": "b", "to": "c", "bytes": 60, "phase": 1},
    {"from": "a", "to": "c", "bytes": 50, "phase": 1},
]


class Orders(Fleet):
    """A fleet that notes orders and carries out none."""

    def __init__(self, hosts: Sequence[tenant.Host]) -> None:
        super().__init__(hosts)
        self.orders: list[tuple[str, str, int, int]] = []

    def order(self, host: str, do: str, **fields: Any) -> None:
        self.orders.append((host, do, fields.get("id", 0), fields.get("bytes", 0)))

    def send(self, number: int, source: str, target: str, size: int) -> None:
        self.orders.append((f"{source}>{target}", "send", number, size))


def sent(number: int, size: int) -> Event:
    return {"event": "sent", "id": number, "bytes": size, "seconds": 1.0, "host": ""}


def here(*starts: str) -> list[tenant.Host]:
    """Hosts that are this machine, each with its words before a command."""
    hosts = []
    for at, start in enumerate(starts):
        (host, _) = tenant.listed([f"h{at}=127.0.0.1", "other=127.0.0.1"], start, str(LEEWARD), cpus="1")
        hosts.append(host)
    return hosts


def app_file(folder: Path, text: str = APP) -> Path:
    path = folder / "app.yaml"
    path.write_text(text)
    return path


def left_over(mark: str) -> list[str]:
    """Command lines of processes of this machine that have a word."""
    lines = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            if mark in line:
                lines.append(line)
    return lines


@contextmanager
def nothing_is_left(mark: str) -> Iterator[None]:
    """Checks that no process with a word in its command line stays."""
    yield
    until = time.monotonic() + 10
    while (lines := left_over(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not lines
