"""Demand: reports of the bytes that programs write, by `libleeward_adu.so` and by the kernel."""

import os
import queue
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.kernel import end, inside, loaded, run
from support.repeats import repeated

RECORD = struct.Struct("<IBBH4s4s2s2sIQ")
WRITTEN, CLOSED = 1, 2


Report = tuple[int, tuple[str, int, str, int], int]
"""The kind of a record, its local and remote address and port, and its bytes."""


def parse(data: bytes) -> Report:
    magic, version, kind, zero, local, remote, local_port, remote_port, zero_too, written = RECORD.unpack(
        data
    )
    assert (magic, version, zero, zero_too) == (0x4C574144, 1, 0, 0)
    ports = (int.from_bytes(local_port, "big"), int.from_bytes(remote_port, "big"))
    return kind, (socket.inet_ntoa(local), ports[0], socket.inet_ntoa(remote), ports[1]), written


class Reports:
    """The switch's end of the demand. A thread reads at once, because the kernel queues few datagrams."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: queue.Queue[bytes] = queue.Queue()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self) -> None:
        while data := self.socket.recv(100):
            self.records.put(data)

    def send(self, data: bytes) -> None:
        """Sends a datagram, which the thread reads after those that have been sent before."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(data, str(self.path))

    def close(self) -> None:
        """Ends the thread, by an empty datagram."""
        self.send(b"")
        self.thread.join()
        self.socket.close()

    def next(self) -> Report:
        return parse(self.records.get(timeout=30))

    def all(self) -> list[Report]:
        """The records that have been sent."""
        self.send(b"last")
        return [parse(data) for data in iter(lambda: self.records.get(timeout=30), b"last")]


@pytest.fixture
def reports(tmp_path: Path) -> Iterator[Reports]:
    receiver = Reports(tmp_path / "demand")
    yield receiver
    receiver.close()


CONNECTED = """
import ctypes, os, socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0))
def drain(end):
    while end.recv(1 << 20): pass
def connect(family=socket.AF_INET, read=True):
    client = socket.socket(family, socket.SOCK_STREAM)
    address = "::ffff:127.0.0.1" if family == socket.AF_INET6 else "127.0.0.1"
    client.connect((address, listener.getsockname()[1]))
    server = listener.accept()[0]
    if read: threading.Thread(target=drain, args=(server,), daemon=True).start()
    return client, server
"""


def demand(parts: Path, reports: Reports, script: str, **more: str) -> list[tuple[int, int]]:
    """Kinds and bytes of the records of the last connection of a script, which prints its port."""
    environment = {**os.environ, "LD_PRELOAD": str(parts / "libleeward_adu.so"), **more}
    environment["LEEWARD_ADU_SOCKET"] = str(reports.path)
    port = int(run(sys.executable, "-c", CONNECTED + script, env=environment))
    return [
        (kind, written) for kind, ends, written in reports.all() if ends[0] == "127.0.0.1" and ends[1] == port
    ]


PORT = "\nprint(client.getsockname()[1], flush=True)\n"


SHORT_FILE = """
with open("short", "wb") as file: file.write(bytes(300))
file = open("short", "rb")
os.sendfile(client.fileno(), file.fileno(), 100, 1 << 30)
"""
PIPE = """
pipe = os.pipe(); os.write(pipe[1], bytes(500))
assert ctypes.CDLL(None).splice(pipe[0], None, client.fileno(), None, 65536, 0) == 500
"""
MESSAGES = """
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]
class Message(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_void_p), ("name_length", ctypes.c_uint),
        ("parts", ctypes.POINTER(Part)), ("count", ctypes.c_size_t),
        ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int), ("sent", ctypes.c_ulong),
    ]
parts = (Part * 2)((b"x" * 10, 10), (b"y" * 20, 20))
messages = (Message * 2)((None, 0, parts, 2), (None, 0, parts, 1))
assert ctypes.CDLL(None).sendmmsg(client.fileno(), messages, 2, 0) == 2
"""


@pytest.mark.parametrize(
    ("write", "sizes"),
    [
        ("client.send(bytes(10)); client.send(bytes(20))", [10, 30]),
        ("os.write(client.fileno(), bytes(10))", [10]),
        ("os.writev(client.fileno(), [bytes(10), bytes(5)])", [15]),
        ("client.sendmsg([bytes(10), bytes(7)])", [17]),
        ("client.sendto(bytes(9), client.getpeername())", [9]),
        ("file = open(sys.executable, 'rb'); os.sendfile(client.fileno(), file.fileno(), 0, 1000)", [1000]),
        (SHORT_FILE, [200]),
        (PIPE, [500]),
        (MESSAGES, [40]),
    ],
)
def test_each_writing_call_reports_its_bytes(
    parts: Path,
    reports: Reports,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: str,
    sizes: list[int],
) -> None:
    monkeypatch.chdir(tmp_path)
    records = demand(parts, reports, f"client, server = connect()\n{write}{PORT}client.close()")
    assert records == [*((WRITTEN, size) for size in sizes), (CLOSED, sizes[-1])]


def test_a_mapped_address_is_an_address(parts: Path, reports: Reports) -> None:
    script = f"client, server = connect(socket.AF_INET6)\nclient.send(b'abc'){PORT}"
    assert demand(parts, reports, script) == [(WRITTEN, 3), (CLOSED, 3)]


def test_other_descriptors_report_nothing(parts: Path, reports: Reports) -> None:
    script = (
        "client, server = connect()\n"
        "udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.sendto(b'x', ('127.0.0.1', 9))\n"
        "six = socket.create_server(('::1', 0), family=socket.AF_INET6)\n"
        "end = socket.create_connection(six.getsockname()[:2])\n"
        "end.send(b'x'); pair = socket.socketpair(); pair[0].send(b'x'); os.write(os.pipe()[1], b'x')" + PORT
    )
    environment = {**os.environ, "LD_PRELOAD": str(parts / "libleeward_adu.so")}
    environment["LEEWARD_ADU_SOCKET"] = str(reports.path)
    run(sys.executable, "-c", CONNECTED + script, env=environment)
    assert reports.all() == []


def test_demand_is_known_before_a_call_blocks_and_corrected_after_it(parts: Path, reports: Reports) -> None:
    script = (
        "import time\n"
        "client, server = connect(read=False)\n"
        "client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, (1).to_bytes(8, 'little') + bytes(8))\n"
        f"sent = client.send(bytes(100_000_000)){PORT}"
        "print(sent, file=sys.stderr)"
    )
    environment = {**os.environ, "LD_PRELOAD": str(parts / "libleeward_adu.so")}
    environment["LEEWARD_ADU_SOCKET"] = str(reports.path)
    with subprocess.Popen(
        [sys.executable, "-c", CONNECTED + script],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        kind, _, written = reports.next()
        assert (kind, written, program.poll()) == (WRITTEN, 100_000_000, None)
        _, errors = program.communicate(timeout=20)
    sent = int(errors)
    assert 0 < sent < 100_000_000
    assert [(kind, written) for kind, _, written in reports.all()][:2] == [(WRITTEN, sent), (CLOSED, sent)]


def test_a_connection_is_closed_with_its_last_descriptor(parts: Path, reports: Reports) -> None:
    script = (
        "client, server = connect(); client.send(bytes(10))\n"
        "one, two = os.dup(client.fileno()), os.dup2(client.fileno(), 77)\n"
        "os.write(one, bytes(5)); os.close(one); client.send(bytes(1)); os.write(two, bytes(2))"
        f"{PORT}client.close(); os.write(two, bytes(4)); os.close(two)"
    )
    assert demand(parts, reports, script) == [(WRITTEN, n) for n in (10, 15, 16, 18, 22)] + [(CLOSED, 22)]


@pytest.mark.parametrize(
    ("script", "totals"),
    [
        (
            "library.dup3(number, 500, os.O_CLOEXEC); client.close(); os.write(500, bytes(5)); os.close(500)",
            [15],
        ),
        (
            "library.dup3(number, 500, 0); library.close_range(500, 600, 0); client.send(bytes(5)); leave()",
            [15],
        ),
        (
            "library.dup3(number, 500, 0); client.close(); os.write(500, bytes(1)); library.closefrom(500)",
            [11],
        ),
        ("library.close_range(number, number, 0)", []),
    ],
)
def test_descriptors_are_duplicated_and_closed_in_ranges(
    parts: Path, reports: Reports, script: str, totals: list[int]
) -> None:
    opening = (
        "client, server = connect(); client.send(bytes(10)); library = ctypes.CDLL(None)\n"
        f"number, leave = client.fileno(), client.close{PORT}"
    )
    # A program that is killed reports no end by itself.
    kill = "\nsys.stdout.close(); os.kill(os.getpid(), 9)"
    environment = {**os.environ, "LD_PRELOAD": str(parts / "libleeward_adu.so")}
    environment["LEEWARD_ADU_SOCKET"] = str(reports.path)
    result = subprocess.run(
        [sys.executable, "-c", CONNECTED + opening + script + kill],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert result.returncode == -9, result.stderr
    port = int(result.stdout)
    records = [(kind, written) for kind, ends, written in reports.all() if ends[1] == port]
    last = (totals or [10])[-1]
    assert records == [(WRITTEN, 10), *((WRITTEN, total) for total in totals), (CLOSED, last)]


def test_a_number_that_is_used_again_is_another_connection(parts: Path, reports: Reports) -> None:
    script = (
        "client, server = connect(); client.send(bytes(10)); number = client.fileno(); other = connect()[0]; "
        "other.send(bytes(3))\n"
        "os.dup2(other.fileno(), number); client.send(bytes(20)); print(other.getsockname()[1])"
    )
    assert demand(parts, reports, script) == [(WRITTEN, 3), (WRITTEN, 23), (CLOSED, 23)]


def test_a_fork_shares_the_sum_and_the_last_process_closes(parts: Path, reports: Reports) -> None:
    script = (
        "client, server = connect(); client.send(bytes(10)); go = os.pipe()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.read(go[0], 1); client.send(bytes(5)); os._exit(0)\n"
        f"client.send(bytes(1)){PORT}client.close(); os.write(go[1], b'x'); os.waitpid(child, 0)"
    )
    assert demand(parts, reports, script) == [(WRITTEN, 10), (WRITTEN, 11), (WRITTEN, 16), (CLOSED, 16)]


def test_a_program_that_inherits_a_socket_continues_the_sum(parts: Path, reports: Reports) -> None:
    script = (
        "import subprocess\n"
        "client, server = connect(); client.send(bytes(10))\n"
        "number = client.fileno()\n"
        "subprocess.run(['sh', '-c', f'printf abc >&{number}'], pass_fds=[number], check=True)" + PORT
    )
    records = demand(parts, reports, script)
    assert (WRITTEN, 13) in records
    # The processes that close their copies meanwhile may report an end; a later record corrects it.
    assert records[0] == (WRITTEN, 10)


def test_shutdown_is_a_close(parts: Path, reports: Reports) -> None:
    script = f"client, server = connect(); client.send(bytes(10)); client.shutdown(socket.SHUT_WR){PORT}"
    assert demand(parts, reports, script) == [(WRITTEN, 10), (CLOSED, 10), (CLOSED, 10)]


def test_a_program_runs_without_a_switch(parts: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "LD_PRELOAD": str(parts / "libleeward_adu.so")}
    script = CONNECTED + "client, server = connect(); print(client.send(bytes(10))); os.closerange(3, 2000)"
    assert run(sys.executable, "-c", script, env=environment) == "10\n"
    environment["LEEWARD_ADU_SOCKET"] = str(tmp_path / "none")
    assert run(sys.executable, "-c", script, env=environment) == "10\n"
    environment["LEEWARD_ADU_SOCKET"] = "/" + "x" * 108
    result = subprocess.run(["echo", "ran"], env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (127, "")
    assert "LEEWARD_ADU_SOCKET=/xx" in result.stderr
    assert result.stderr.count("\n") == 1


SINK = """
import os, socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", 0))
print("listening", listener.getsockname()[1], flush=True)
while True:
    end, _ = listener.accept()
    time.sleep(0.1)
    try:
        while end.recv(1 << 16): pass
        end.sendall(bytes(777))
    except ConnectionResetError:
        pass
    end.close()
"""
"""A server that reads late, and answers at the end with 777 bytes."""


@contextmanager
def sink(cgroup: Path) -> Iterator[int]:
    """The port of a server."""
    command = inside(cgroup, sys.executable, "-c", SINK)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            yield int(program.stdout.readline().split()[1])
        finally:
            program.kill()


@pytest.mark.parametrize(
    ("size", "writes", "how"),
    [(1000, 3, "close"), (20_000_000, 1, "close"), (500, 2, "exit"), (1000, 2, "reset")],
)
@repeated
def test_the_kernel_tells_the_demand_of_a_static_program(
    loader: Path, programs: Path, cgroup: Path, reports: Reports, size: int, writes: int, how: str
) -> None:
    reports.all()
    records: list[Report] = []
    arguments = ("--cgroup", cgroup, "--adu", f"{reports.path},every_us=500")
    with loaded(loader, *arguments) as program, sink(cgroup) as port:
        command = inside(cgroup, programs / "talk", str(port), str(size), str(writes), how)
        own = int(run(*command))
        for _ in range(100):
            time.sleep(0.1)
            records += reports.all()
            written, closed = ({ends for kind, ends, _ in records if kind == k} for k in (WRITTEN, CLOSED))
            if ("127.0.0.1", own, "127.0.0.1", port) in closed and written <= closed:
                break
        # Nothing comes after the end.
        time.sleep(0.2)
        assert end(program) == {}
    records += reports.all()
    client = [
        (kind, written) for kind, ends, written in records if ends == ("127.0.0.1", own, "127.0.0.1", port)
    ]
    server = [
        (kind, written) for kind, ends, written in records if ends == ("127.0.0.1", port, "127.0.0.1", own)
    ]
    assert len(client) + len(server) == len(records)
    sums = [written for kind, written in client if kind == WRITTEN]
    assert sums == sorted(set(sums))
    assert client[-2:] == [(WRITTEN, size * writes), (CLOSED, size * writes)]
    if size == 1000:
        assert sums == [1000 * (n + 1) for n in range(writes)]
    assert [kind for kind, _ in client].count(CLOSED) == 1
    # The server writes and closes at once: its sum is in both records, or in the end alone.
    assert how == "reset" or server in ([(WRITTEN, 777), (CLOSED, 777)], [])
