"""`leeward traces replay`: options, errors and reports, with a server that has one export in memory."""

import csv
import io
import json
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

NFS, MOUNT = 100_003, 100_005
GETATTR, LOOKUP, READ, WRITE, CREATE, REMOVE, COMMIT = 1, 3, 6, 7, 8, 12, 21
NO_ENTRY, NO_SPACE = 2, 28
LAST = 1 << 31
"""Mark of the last fragment of a record."""
TRACE = "seconds,kind,size,offset\n10,read,4096,0\n10.1,write,8192,4096\n10.2,read,4096,65536\n"


def opaque(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def receive(stream: socket.socket) -> bytes:
    """One record of a single fragment; empty at the end."""
    mark = stream.recv(4, socket.MSG_WAITALL)
    return stream.recv(struct.unpack(">I", mark)[0] & ~LAST, socket.MSG_WAITALL) if mark else b""


@dataclass
class Server:
    """A server with the export `/vol` and the files that clients make."""

    files: dict[bytes, bytearray] = field(default_factory=dict)
    calls: list[tuple[str, int, int]] = field(default_factory=list)
    """Reads and writes: kind, place and bytes."""
    is_full: bool = False
    delay_s: float = 0.0
    """Time that a read takes."""

    def answer(self, stream: socket.socket) -> None:
        """Answers the calls of a connection."""
        with stream:
            while message := receive(stream):
                xid, _call, _rpc, program, _version, procedure = struct.unpack_from(">6I", message)
                # The credential has an opaque body, and the verifier is empty.
                (length,) = struct.unpack_from(">I", message, 28)
                arguments = message[32 + length + 8 :]
                results = self.results(program, procedure, arguments)
                reply = struct.pack(">6I", xid, 1, 0, 0, 0, 0) + results
                stream.sendall(struct.pack(">I", len(reply) | LAST) + reply)

    def results(self, program: int, procedure: int, arguments: bytes) -> bytes:
        """Results of a call; nothing for a null procedure."""
        if procedure == 0:
            return b""
        (length,) = struct.unpack_from(">I", arguments)
        handle, rest = arguments[4 : 4 + length], arguments[4 + length + -length % 4 :]
        if program == MOUNT:
            return word(0) + opaque(b"root") + word(1, 1) if handle == b"/vol" else word(NO_ENTRY)
        return self.of_file(procedure, handle, rest)

    def of_file(self, procedure: int, handle: bytes, rest: bytes) -> bytes:
        """Results of a call of NFS."""
        if procedure in (LOOKUP, CREATE):
            (length,) = struct.unpack_from(">I", rest)
            return self.open(procedure, rest[4 : 4 + length])
        if procedure in (READ, WRITE):
            return self.transfer(procedure, self.files[handle], rest)
        if procedure == REMOVE:
            (length,) = struct.unpack_from(">I", rest)
            del self.files[rest[4 : 4 + length]]
            return word(0, 0, 0)
        if procedure == GETATTR:
            size = len(self.files[handle])
            return struct.pack(">6I2Q2I2Q6I", 0, 1, 0o644, 1, 0, 0, size, 0, *[0] * 10)
        assert procedure == COMMIT
        return word(0, 0, 0) + bytes(8)

    def open(self, procedure: int, name: bytes) -> bytes:
        """Results of LOOKUP and CREATE."""
        if procedure == CREATE:
            self.files[name] = bytearray()
            return word(0, 1) + opaque(name) + word(0, 0, 0)
        return word(0) + opaque(name) + word(0, 0) if name in self.files else word(NO_ENTRY, 0)

    def transfer(self, procedure: int, content: bytearray, rest: bytes) -> bytes:
        """Results of READ and WRITE."""
        place, count = struct.unpack_from(">QI", rest)
        self.calls.append(("read" if procedure == READ else "write", place, count))
        if procedure == READ:
            time.sleep(self.delay_s)
            data = bytes(content[place : place + count])
            return word(0, 0, len(data), 0) + opaque(data)
        if self.is_full:
            return word(NO_SPACE, 0, 0)
        content[place : place + count] = rest[20 : 20 + count]
        return word(0, 0, 0, count, 2) + bytes(8)


def word(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}I", *numbers)


@pytest.fixture
def server() -> Iterator[tuple[Server, str]]:
    """A server and its port."""
    made = Server()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    stream, _address = listener.accept()
                except OSError:
                    return
                threading.Thread(target=made.answer, args=[stream], daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield made, str(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


def options(port: str, *more: str) -> list[str]:
    """Arguments of a replay of `mail.csv` at a server."""
    file = ("--nfs", "127.0.0.1:/vol", "--nfsport", port, "--mountport", port, "--file-size", "1MiB")
    return ["traces", "replay", "mail.csv", *file, *more]


def test_requests_arrive_at_their_times_and_each_is_a_row(
    run: Run, tmp_path: Path, server: tuple[Server, str]
) -> None:
    (tmp_path / "mail.csv").write_text(TRACE)
    content, port = server
    result = run(*options(port, "--out", "rows.csv", "-o", "json"))
    assert result.returncode == 0, result.stderr
    assert content.files == {}, "the file of the replay is removed"
    summary = json.loads(result.stdout)
    assert (summary["requests"], summary["reads"], summary["writes"]) == (3, 2, 1)
    assert (summary["read_bytes"], summary["written_bytes"]) == (8192, 8192)
    assert summary["export"] == "127.0.0.1:/vol"
    # The file was filled by a write of 1 MiB.
    assert content.calls[0] == ("write", 0, 1 << 20)
    assert content.calls[1:] == [("read", 0, 4096), ("write", 4096, 8192), ("read", 65536, 4096)]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "rows.csv").read_text())))
    assert [float(row["seconds"]) for row in rows] == pytest.approx([0.0, 0.1, 0.2])
    assert [row["state"] for row in rows] == ["done"] * 3
    assert all(float(row["latency_s"]) >= float(row["late_s"]) >= 0 for row in rows)


def test_the_output_has_latencies_and_the_lateness_of_the_client(
    run: Run, tmp_path: Path, server: tuple[Server, str]
) -> None:
    (tmp_path / "mail.csv").write_text(TRACE)
    content, port = server
    content.delay_s = 0.15
    result = run(*options(port))
    assert result.returncode == 0, result.stderr
    header, row, _, columns, latency, lateness = result.stdout.splitlines()
    assert header.split()[:4] == ["REQUESTS", "READS", "WRITES", "BYTES"]
    assert row.split()[:3] == ["3", "2", "1"]
    assert columns.split() == ["MEAN", "P50", "P99", "P99.9", "MAX"]
    assert latency.startswith("latency")
    assert lateness.startswith("lateness")
    text = run(*options(port, "--closed", "2", "--for", "400ms", "-o", "csv")).stdout
    (closed,) = csv.DictReader(io.StringIO(text))
    assert closed["most_open"] == "2"
    # Two at a time at a server that serves one after another: the trace is repeated, and reads take 150 ms.
    assert 3 <= int(closed["requests"]) <= 8


def test_a_full_server_is_a_warning_and_a_failure(
    run: Run, tmp_path: Path, server: tuple[Server, str]
) -> None:
    (tmp_path / "mail.csv").write_text(TRACE)
    content, port = server
    content.files[b"leeward-replay"] = bytearray(1 << 20)
    content.is_full = True
    result = run(*options(port, "--keep-file"))
    assert result.returncode == 1
    assert "failed requests: 1; the first one: no space left at the server" in result.stderr


@pytest.mark.parametrize(
    ("more", "code", "parts"),
    [
        (["--nfs", "nas"], 2, ["--nfs", "such as nas:/vol"]),
        (["--nfs", "127.0.0.1:/other"], 2, ["--nfs", "/other"]),
        (["--nfsport", "1"], 2, ["--nfs", "refused"]),
        (["--at", "1"], 2, ["--at", "give a later time"]),
        (["--at", "nan"], 2, ["--at", "seconds since 1970"]),
        (["--from", "x"], 2, ["--from"]),
        (["--for", "0s"], 2, ["--for"]),
        (["--closed", "0"], 2, ["--closed"]),
        (["--file-size", "0B"], 2, ["--file-size"]),
        (["--out", "absent/rows.csv"], 2, ["--out"]),
        (["--dialect", "other"], 2, ["--dialect"]),
    ],
)
def test_errors_are_one_line_and_name_the_option(
    run: Run, tmp_path: Path, server: tuple[Server, str], more: list[str], code: int, parts: list[str]
) -> None:
    (tmp_path / "mail.csv").write_text(TRACE)
    result = run(*options(server[1], *more))
    assert result.returncode == code, result.stderr
    assert all(part in result.stderr for part in parts), result.stderr
    assert "Traceback" not in result.stderr
