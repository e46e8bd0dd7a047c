"""`leeward enforce nfs`: options, errors and reports, with a server of a few procedures."""

import csv
import io
import json
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

LEEWARD = str(Path(sys.executable).with_name("leeward"))
NFS, MOUNT, WRITE, MNT = 100_003, 100_005, 7, 1
LAST = 1 << 31
"""Mark of the last fragment of a record."""


def opaque(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def receive(stream: socket.socket) -> bytes:
    """One record of a single fragment; empty at the end."""
    mark = stream.recv(4, socket.MSG_WAITALL)
    return stream.recv(struct.unpack(">I", mark)[0] & ~LAST, socket.MSG_WAITALL) if mark else b""


def send(stream: socket.socket, message: bytes) -> None:
    stream.sendall(struct.pack(">I", len(message) | LAST) + message)


def call(program: int, procedure: int, arguments: bytes) -> bytes:
    return struct.pack(">10I", 7, 0, 2, program, 3, procedure, 0, 0, 0, 0) + arguments


def answer(stream: socket.socket) -> None:
    """Answers NULL, MNT and WRITE."""
    with stream:
        while message := receive(stream):
            xid, _call, _rpc, program, _version, procedure = struct.unpack_from(">6I", message)
            results = b""
            if (program, procedure) == (MOUNT, MNT):
                results = struct.pack(">I", 0) + opaque(b"root") + struct.pack(">2I", 1, 1)
            elif (program, procedure) == (NFS, WRITE):
                results = struct.pack(">5IQ", 0, 0, 0, 4, 2, 7)
            send(stream, struct.pack(">6I", xid, 1, 0, 0, 0, 0) + results)


@pytest.fixture
def server() -> Iterator[str]:
    """Port of a server with the export `/vol`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    stream, _address = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=[stream], daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield str(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


def write_through(port: str, *options: str) -> tuple[int, str, str]:
    """Writes 4 bytes through a proxy, and ends it. Returns its exit code, its output and its log."""
    command = [LEEWARD, "enforce", "nfs", "--export", "127.0.0.1:/vol", "--listen", "127.0.0.1:0"]
    command += ["--nfsport", port, "--mountport", port, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as proxy:
        assert proxy.stderr is not None
        log = next(line for line in proxy.stderr if "listening on" in line)
        host, _, own = log.split()[-1].rpartition(":")
        with socket.create_connection((host, int(own)), timeout=20) as stream:
            data = opaque(b"file") + struct.pack(">QII", 0, 4, 2) + opaque(b"data")
            send(stream, call(NFS, WRITE, data))
            assert struct.unpack_from(">I", receive(stream))[0] == 7
        proxy.send_signal(signal.SIGINT)
        output, rest = proxy.communicate(timeout=20)
    return proxy.returncode, output, log + rest


def test_reports_have_the_requests_in_each_format(server: str) -> None:
    code, table, log = write_through(server)
    assert code == 0, log
    header, row = table.splitlines()
    assert header.split()[:3] == ["WORKLOAD", "PRIORITY", "READS"]
    assert row.startswith("client 127.0.0.1")
    _code, text, _log = write_through(server, "-o", "json")
    (summary,) = json.loads(text)["workloads"]
    assert (summary["workload"], summary["writes"], summary["written_bytes"]) == ("client 127.0.0.1", 1, 4)
    _code, text, _log = write_through(server, "-o", "csv", "--interval", "100ms")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {one["workload"] for one in rows} == {"client 127.0.0.1"}
    assert rows[-1]["writes"] == "1"
    assert text.count("at_s,workload") == 1


@pytest.mark.parametrize(
    ("options", "code", "parts"),
    [
        (["--export", "nas"], 2, ["--export", "such as nas:/vol"]),
        (["--export", "127.0.0.1:/vol", "--nfsport", "1"], 1, ["no NFS version 3", "refused"]),
        (["--export", "127.0.0.1:/vol", "--listen", "x"], 2, ["--listen"]),
        (["--export", "127.0.0.1:/vol", "--workloads", "w.yaml"], 2, ["w.yaml"]),
        (["--export", "127.0.0.1:/vol", "--cluster", "c.yaml"], 2, ["--cluster"]),
        (["--export", "127.0.0.1:/vol", "--interval", "0s"], 2, ["--interval"]),
        (["--export", "127.0.0.1:/vol", "--outstanding", "0"], 2, ["--outstanding"]),
        (["--export", "127.0.0.1:/vol", "--order", "cake"], 2, ["--order", "shares"]),
        (["--export", "127.0.0.1:/vol", "--outstanding-reads", "0"], 2, ["--outstanding-reads"]),
        (["--export", "127.0.0.1:/vol", "--outstanding-read-bytes", "lots"], 2, ["--outstanding-read-bytes"]),
        (["--export", "127.0.0.1:/vol", "--behind", "few"], 2, ["--behind"]),
        (["--export", "127.0.0.1:/vol", "--write-batch", "0B"], 2, ["--write-batch"]),
        (["--export", "127.0.0.1:/vol", "--any-port"], 2, ["--any-port", "--reserved-port"]),
    ],
)
def test_errors_are_one_line_and_name_the_option(
    run: Run, options: list[str], code: int, parts: list[str]
) -> None:
    result = run("enforce", "nfs", "--allow", "all", *options)
    assert result.returncode == code
    assert result.stderr.startswith("error: ")
    assert all(part in result.stderr for part in parts), result.stderr


def test_a_proxy_that_others_reach_says_who_may_connect(run: Run) -> None:
    for listen in ([], ["--listen", "0.0.0.0:0"]):
        result = run("enforce", "nfs", "--export", "127.0.0.1:/vol", *listen)
        assert result.returncode == 2
        text = " ".join(result.stderr.split())
        assert text.startswith("error: --allow: missing; the server sees the proxy alone"), text
