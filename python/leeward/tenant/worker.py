"""The helper on a host of a tenant: sends and receives bytes, runs commands, and takes part in measurements.

Orders come on stdin and events go to stdout, each a JSON object on a line. The coordinator starts the helper
through `ssh` or `ip netns exec`; both end stdin when the coordinator ends, also by `kill -9`, and the helper
then ends with everything that it started. It also ends if no order arrives for a minute; `beat` is an order
for a sign of life. Other hosts reach one port, for data, and only with the token of this run. Besides
measurements and captures, it needs the standard library only.

    {"do": "beat"}                                                       {"event": "beat"}
    {"do": "begin", "address": "10.0.0.2", "port": 7602, "token": ...}   {"event": "ready", "port": 7602}
    {"do": "send", "id": 7, "to": ["10.0.1.2", 7602], "bytes": 1000}     {"event": "sent", "id": 7, ...}
    {"do": "stop", "id": 7}
    {"do": "progress"}                                                   {"event": "progress", ...}
    {"do": "count"}                                                      {"event": "counted", "bytes": 1000}
    {"do": "command", "id": 8, "line": "sort x", "environment": {}}      {"event": "output" | "exited", ...}
    {"do": "capture", "own": "10.0.0.2", "others": ["10.0.1.2"]}         {"event": "capturing"}
    {"do": "captured"}                                                   {"event": "captured", ...}
    {"do": "listen", "address": "10.0.0.2:7601", "secret": ...}          {"event": "listening"}
    {"do": "mesh", "arguments": {"hosts": [...]}}                        {"event": "measured", ...}
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from leeward.tenant import commands
from leeward.tenant.capture import Capture, CaptureError

CHUNK = 256 * 1024
"""Bytes that a sender passes to the kernel at once."""
CONNECT_S = 10.0
ACK_MS = 30_000
"""Time without an acknowledgement after which the kernel gives up a connection, in milliseconds."""
SILENT_S = 60.0
"""Time after which a peer that says nothing counts as gone: the coordinator, or the sender of a transfer."""
KEEPALIVE_S, KEEPALIVES = 10, 3
"""Time without a packet before the kernel asks the peer of a connection for a sign of life, and how often."""
_ID_DIGITS = 16


class Worker:
    """The helper of one host."""

    def __init__(self, out: TextIO, silent_s: float = SILENT_S) -> None:
        """Takes the stream for events, and the time without orders after which the helper ends."""
        self._out = out
        self._silent_s = silent_s
        self._heard_s = time.monotonic()
        self._writing = threading.Lock()
        self._token = b""
        self._stops: dict[int, threading.Event] = {}
        self._received: dict[int, int] = {}
        """Bytes so far of each transfer that this host receives, by its number."""
        self._commands: dict[int, subprocess.Popen[str]] = {}
        self._capture: Capture | None = None

    def serve(self, orders: Iterable[str]) -> None:
        """Carries out orders until they end; then ends all commands."""
        actions: dict[str, Callable[[dict[str, Any]], None]] = {
            "beat": lambda _: self._tell("beat"),
            "begin": self._begin,
            "send": self._start_sending,
            "stop": self._stop,
            "progress": lambda _: self._tell("progress", bytes=dict(self._received)),
            "count": lambda _: self._tell("counted", bytes=_sent_bytes()),
            "command": self._start_command,
            "capture": lambda order: self._start(self._start_capture, order),
            "captured": lambda order: self._start(self._stop_capture, order),
            "listen": lambda order: self._start(self._listen, order),
            "mesh": lambda order: self._start(self._mesh, order),
        }
        threading.Thread(target=self._end_when_silent, daemon=True).start()
        try:
            for line in orders:
                self._heard_s = time.monotonic()
                order = json.loads(line)
                actions[order["do"]](order)
        finally:
            self._close()

    def _close(self) -> None:
        """Ends all commands and captures."""
        for process in list(self._commands.values()):
            commands.kill(process)
        if capture := self._capture:
            capture.close()

    def _end_when_silent(self) -> None:
        """Ends this process if no order arrives for a time: its coordinator is unreachable."""
        while (left := self._heard_s + self._silent_s - time.monotonic()) > 0:
            time.sleep(left)
        self._close()
        os._exit(1)

    def _tell(self, event: str, **fields: Any) -> None:
        line = json.dumps({"event": event, **fields})
        # A reader that has gone ends stdin too, which ends this process.
        with self._writing, contextlib.suppress(OSError, ValueError):
            self._out.write(line + "\n")
            self._out.flush()

    def _start(self, work: Callable[[dict[str, Any]], None], order: dict[str, Any]) -> None:
        threading.Thread(target=work, args=(order,), daemon=True).start()

    def _begin(self, order: dict[str, Any]) -> None:
        self._token = order["token"].encode()
        try:
            family = socket.AF_INET6 if ":" in order["address"] else socket.AF_INET
            server = socket.create_server((order["address"], order["port"]), family=family, backlog=1024)
        except OSError as error:
            why = f"cannot listen on {order['address']} port {order['port']}: {error.strerror or error}"
            self._tell("refused", why=why)
            return
        threading.Thread(target=self._accept, args=(server,), daemon=True).start()
        self._tell("ready", port=server.getsockname()[1])

    def _accept(self, server: socket.socket) -> None:
        while True:
            connection, _ = server.accept()
            threading.Thread(target=self._receive, args=(connection,), daemon=True).start()

    def _receive(self, connection: socket.socket) -> None:
        """Counts the bytes of a transfer until its end, and tells the sender the sum."""
        buffer = bytearray(CHUNK)
        with connection, contextlib.suppress(OSError):
            connection.settimeout(CONNECT_S)
            header = connection.recv(len(self._token) + _ID_DIGITS, socket.MSG_WAITALL)
            token, number = header[: len(self._token)], header[len(self._token) :]
            if token != self._token or len(number) != _ID_DIGITS or not number.isdigit():
                return
            _keep_alive(connection)
            connection.settimeout(SILENT_S)
            count = 0
            try:
                while size := connection.recv_into(buffer):
                    count += size
                    self._received[int(number)] = count
                connection.sendall(b"%d\n" % count)
            finally:
                self._received.pop(int(number), None)

    def _start_sending(self, order: dict[str, Any]) -> None:
        self._stops[order["id"]] = threading.Event()
        self._start(self._send, order)

    def _stop(self, order: dict[str, Any]) -> None:
        # A transfer may end before the order to stop it arrives.
        if stop := self._stops.get(order["id"]):
            stop.set()

    def _send(self, order: dict[str, Any]) -> None:
        """Sends the bytes of a transfer; the time ends when the receiver has them all."""
        number, (address, port), left = order["id"], order["to"], order["bytes"]
        stop, data = self._stops[number], memoryview(bytes(CHUNK))
        start, began = time.time(), time.monotonic()
        try:
            with socket.create_connection((address, port), CONNECT_S) as connection:
                connection.settimeout(None)
                _keep_alive(connection)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, ACK_MS)
                # Few bytes wait in this host, so that a stopped transfer ends soon.
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, CHUNK)
                connection.sendall(self._token + b"%0*d" % (_ID_DIGITS, number))
                while left and not stop.is_set():
                    left -= connection.send(data[: min(left, CHUNK)])
                connection.shutdown(socket.SHUT_WR)
                answer = connection.makefile("rb").readline()
            if not answer:
                raise ConnectionResetError(None, "the receiver ended the connection")
        except OSError as error:
            self._tell("failed", id=number, why=f"to {address} port {port}: {error.strerror or error}")
            return
        finally:
            del self._stops[number]
        seconds = time.monotonic() - began
        self._tell("sent", id=number, bytes=int(answer), start=start, end=start + seconds, seconds=seconds)

    def _start_command(self, order: dict[str, Any]) -> None:
        process = commands.start(
            order["line"], order["environment"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._commands[order["id"]] = process
        self._start(lambda order: self._watch(order["id"], process), order)

    def _watch(self, number: int, process: subprocess.Popen[str]) -> None:
        start, began = time.time(), time.monotonic()
        reader = threading.Thread(target=self._pass_output, args=(number, process), daemon=True)
        reader.start()
        code = process.wait()
        # Programs that the command left would keep its output open.
        commands.kill(process)
        reader.join()
        del self._commands[number]
        seconds = time.monotonic() - began
        self._tell("exited", id=number, code=code, start=start, end=start + seconds, seconds=seconds)

    def _pass_output(self, number: int, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self._tell("output", id=number, line=line.rstrip("\n"))

    def _start_capture(self, order: dict[str, Any]) -> None:
        try:
            self._capture = Capture(order["own"], order["others"])
        except CaptureError as error:
            self._tell("refused", why=f"no capture: {error}")
            return
        self._tell("capturing")

    def _stop_capture(self, _: dict[str, Any]) -> None:
        capture = self._capture
        if capture is None:
            return
        try:
            sent, lost = capture.stop()
        except CaptureError as error:
            self._tell("refused", why=f"no capture: {error}")
            return
        finally:
            self._capture = None
        self._tell("captured", bytes=sent, lost=lost)

    def _listen(self, order: dict[str, Any]) -> None:
        from leeward import _native

        try:
            _native.probe_listen(order["address"], order["secret"], lambda _: self._tell("listening"))
        except (OSError, ValueError) as error:
            self._tell(
                "refused", why=f"cannot listen on {order['address']}: {getattr(error, 'message', error)}"
            )

    def _mesh(self, order: dict[str, Any]) -> None:
        from leeward import probe

        arguments = order["arguments"]
        hosts = [(name, address) for name, address in arguments.pop("hosts")]
        began = time.monotonic()
        try:
            result = probe.mesh(hosts, **arguments)
        except (OSError, ValueError) as error:
            self._tell("unmeasured", why=getattr(error, "message", None) or str(error))
            return
        self._tell("measured", seconds=time.monotonic() - began, result=result)


def _keep_alive(connection: socket.socket) -> None:
    """Lets the kernel end a connection whose peer has gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVES)


def _sent_bytes() -> int:
    """Bytes that all interfaces of this host but the loopback have sent."""
    with open("/proc/net/dev", encoding="ascii") as file:
        rows = [line.partition(":") for line in file if ":" in line]
    return sum(int(row.split()[8]) for name, _, row in rows if name.strip() != "lo")


def main(orders: TextIO, out: TextIO, silent_s: float = SILENT_S) -> None:
    """Runs the helper of this host; ends the process when the orders end, or at a signal to end."""
    # Ctrl-C in a terminal reaches the coordinator, which ends this process in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        Worker(out, silent_s).serve(orders)
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    # Transfers and a listener may still run in threads.
    os._exit(code)


def _end(number: int, _: object) -> None:
    raise SystemExit(128 + number)
