"""A load on a file of an NFS export: `python -m leeward_reproduce.slo.real.load SETTINGS`, a JSON object.

Reads come in bursts at random times, whether or not earlier ones have ended (an open load), or a number of
them is always open (a closed load). Each second, a line on stdout has the latencies of the reads that ended,
from the time at which each was due. A connection that ends is opened again, and its open reads are sent
again.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from leeward_reproduce.slo.real.nfs import Connection, File, mount, open_file

PERIOD_S = 1.0
_AGAIN_S = 0.1
"""Time after which a lost connection is opened again."""


@dataclass(frozen=True)
class Load:
    """Settings of a load.

    Attributes:
        host: Address of the server or of its enforcer.
        port: Port of NFS.
        mount_port: Port of MOUNT.
        export: Path of the export.
        name: Name of the file in it.
        file_bytes: Size of the file; reads are at multiples of their size.
        size: Bytes of a read.
        seconds: Length of the load.
        bursts_per_s: Bursts of an open load, 0 for a closed one.
        burst: Reads of a burst.
        outstanding: Open reads of a closed load.
        seed: Seed of times and places.
    """

    host: str
    port: int
    mount_port: int
    export: str
    name: str
    file_bytes: int
    size: int
    seconds: float
    bursts_per_s: float = 0.0
    burst: int = 1
    outstanding: int = 1
    seed: int = 1

    def arrivals(self) -> Iterator[float]:
        """Times of bursts since the start, in seconds: a Poisson process."""
        source = random.Random(self.seed)
        at = source.expovariate(self.bursts_per_s)
        while at < self.seconds:
            yield at
            at += source.expovariate(self.bursts_per_s)


class Session:
    """A file behind connections that may end."""

    def __init__(self, load: Load) -> None:
        """Takes a load; `read` connects."""
        self.load = load
        self.latencies: list[float] = []
        self.count_bytes = 0
        self._places = random.Random(load.seed + 1)
        self._file: File | None = None
        self._opening = asyncio.Lock()

    async def read(self, due: float) -> None:
        """Reads at a random place until it succeeds. `due` is on the clock of the event loop."""
        place = self._places.randrange(self.load.file_bytes // self.load.size) * self.load.size
        while True:
            file = await self.open()
            try:
                data = await file.read(place, self.load.size)
            except OSError:
                await self._close(file)
                await asyncio.sleep(_AGAIN_S)
                continue
            self.latencies.append(asyncio.get_running_loop().time() - due)
            self.count_bytes += len(data)
            return

    async def open(self) -> File:
        """The open file; connects if it is not open."""
        async with self._opening:
            while self._file is None:
                try:
                    self._file = await self._connect()
                except OSError:
                    await asyncio.sleep(_AGAIN_S)
            return self._file

    async def _connect(self) -> File:
        load = self.load
        mounting = await Connection.connect(load.host, load.mount_port)
        try:
            root = await mount(mounting, load.export)
        finally:
            mounting.close()
        return await open_file(await Connection.connect(load.host, load.port), root, [load.name])

    async def _close(self, file: File) -> None:
        if self._file is file:
            self._file = None
            file.connection.close()

    def take(self) -> dict[str, Any]:
        """What ended since the last call."""
        latencies, self.latencies = self.latencies, []
        count, self.count_bytes = self.count_bytes, 0
        return {"at_s": time.time(), "bytes": count, "latencies": [round(one, 6) for one in latencies]}


async def run(load: Load) -> None:
    """Makes the load, and writes lines."""
    session = Session(load)
    loop = asyncio.get_running_loop()
    # The connection is there before the first read is due.
    await session.open()
    begin = loop.time()
    tasks: set[asyncio.Task[None]] = set()

    def start(due: float) -> None:
        task = asyncio.ensure_future(session.read(due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def open_load() -> None:
        for at in load.arrivals():
            await asyncio.sleep(begin + at - loop.time())
            for _ in range(load.burst):
                start(begin + at)
        await asyncio.sleep(max(begin + load.seconds - loop.time(), 0.0))

    async def closed_load() -> None:
        async def again() -> None:
            while loop.time() < begin + load.seconds:
                await session.read(loop.time())

        await asyncio.gather(*(again() for _ in range(load.outstanding)))

    async def report() -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            print(json.dumps(session.take()), flush=True)

    reports = asyncio.ensure_future(report())
    await (open_load() if load.bursts_per_s else closed_load())
    if tasks:
        await asyncio.wait(tasks)
    reports.cancel()
    print(json.dumps(session.take()), flush=True)


if __name__ == "__main__":
    asyncio.run(run(Load(**json.loads(sys.argv[1]))))
