"""Blocks that DataNodes wrote and read, from their logs: HDFS's own client trace."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from leeward_reproduce.hdfs.processes import Process

WRITE, READ = "HDFS_WRITE", "HDFS_READ"
"""Operations of clients."""
_LINE = re.compile(
    r"^(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) .*"
    r"src: [^/,]*/(?P<source>[\d.]+):\d+, dest: [^/,]*/(?P<destination>[\d.]+):\d+, .*"
    r"bytes: (?P<bytes>\d+), op: (?P<operation>\w+), .*"
    r"blockid: [^:,]+:(?P<block>blk_\d+)\w*, duration\(ns\): (?P<duration>\d+)"
)
"""Line of a client trace, by the layout of `settings`. Later versions add fields between those here."""


@dataclass(frozen=True)
class Trace:
    """A block that a DataNode has taken from a client or another DataNode, or has sent to a client.

    Attributes:
        operation: `WRITE` or `READ`.
        source: Address of the machine that sent the bytes.
        destination: Address of the machine that took them.
        bytes: Bytes of the block; a read also counts its checksums.
        block: Name of the block.
        ended_s: End, in seconds of Unix time.
        seconds: Time from the first byte to the last acknowledgement.
    """

    operation: str
    source: str
    destination: str
    bytes: int
    block: str
    ended_s: float
    seconds: float

    @property
    def began_s(self) -> float:
        """Start, in seconds of Unix time."""
        return self.ended_s - self.seconds

    @property
    def crosses(self) -> bool:
        """True if the bytes went to another machine."""
        return self.source != self.destination


def read(lines: Iterable[str]) -> list[Trace]:
    """The client traces of a log. Other lines are left out."""
    matches = (_LINE.search(line) for line in lines if "duration(ns): " in line)
    return [
        Trace(
            one["operation"],
            one["source"],
            one["destination"],
            int(one["bytes"]),
            one["block"],
            # Java and Python have the time zone of the machine.
            datetime.strptime(one["at"], "%Y-%m-%d %H:%M:%S,%f").timestamp(),
            int(one["duration"]) / 1e9,
        )
        for one in matches
        if one is not None and one["operation"] in (WRITE, READ)
    ]


def of_datanodes(processes: Iterable[Process], since_s: float) -> list[Trace]:
    """The client traces of the DataNodes among processes, of blocks that began after a Unix time."""
    found: list[Trace] = []
    for process in processes:
        if process.name.startswith("DataNode "):
            with process.log.open(encoding="utf-8", errors="replace") as lines:
                found += [one for one in read(lines) if one.began_s >= since_s]
    return found
