"""Profiles an app of commands (Choreo, section 2.1): runs it once, and counts what its tasks send each other.

Agents on the hosts or switches of the network send sFlow datagrams to this machine. Each task needs a host
of its own, because datagrams have addresses of hosts.
"""

import socket
import struct
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leeward.errors import InputError
from leeward.tenant.execution import Execution
from leeward.tenant.fleet import Fleet
from leeward.tenant.hosts import Host

MOST_PORT = 65_535
_SFLOW_PORT = 6343
_RAW_IP = 101
"""Link type of a capture whose packets begin with the IP header."""
_TICK_S = 0.2
Datagram = tuple[float, str, bytes]
"""Time of arrival in seconds since 1970, address of the sender, payload."""


def read_source(text: str) -> int:
    """The port of `sflow:PORT`.

    Raises:
        InputError: The text has another form.
    """
    kind, _, port = text.partition(":")
    if kind != "sflow" or not port.isdecimal() or not 0 < int(port) <= MOST_PORT:
        raise InputError.about("profile", f"`{text}`: expected sflow:PORT, such as sflow:6343")
    return int(port)


def profile(
    fleet: Fleet,
    app: Mapping[str, Any],
    where: Mapping[str, str],
    port: int,
    most_s: float,
) -> list[list[float]]:
    """Runs an app of commands until its end, but at most for a time, and returns its traffic matrix.

    Commands that still run end with the fleet.

    Raises:
        InputError: Two tasks share a host, the port is in use, or no traffic between the hosts was reported.
    """
    if len(set(where.values())) < len(where):
        message = f"{len(where)} tasks on {len(set(where.values()))} hosts: expected a host for each task"
        raise InputError.about("profile", message)
    with _datagrams(port) as datagrams:
        execution = Execution(fleet, app, where)
        execution.begin()
        while execution.ended_s is None and execution.now_s() < most_s:
            event = fleet.event(min(_TICK_S, most_s - execution.now_s()))
            if event is not None:
                execution.handle(event)
        # Agents report some time after the last packet.
        time.sleep(_TICK_S)
    return matrix_of(datagrams, list(where), where, fleet.hosts)


@contextmanager
def _datagrams(port: int) -> Iterator[list[Datagram]]:
    """Collects the datagrams that arrive at a port."""
    result: list[Datagram] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        try:
            receiver.bind(("0.0.0.0", port))
        except OSError as error:
            raise InputError.about("profile", f"port {port}: {error.strerror}") from None
        receiver.settimeout(_TICK_S)
        stopped = threading.Event()

        def collect() -> None:
            while not stopped.is_set():
                try:
                    payload, (address, _) = receiver.recvfrom(MOST_PORT)
                except TimeoutError:
                    continue
                result.append((time.time(), address, payload))

        thread = threading.Thread(target=collect)
        thread.start()
        try:
            yield result
        finally:
            stopped.set()
            thread.join()


def matrix_of(
    datagrams: Sequence[Datagram], tasks: list[str], where: Mapping[str, str], hosts: Mapping[str, Host]
) -> list[list[float]]:
    """Bytes from each task to each, from sFlow datagrams.

    Args:
        datagrams: Datagrams, in order of arrival.
        tasks: Tasks in the order of rows.
        where: Host of each task, each a different one.
        hosts: Hosts by name.

    Raises:
        InputError: No traffic between the hosts was reported.
    """
    from leeward.matrix import capture

    at = {where[task]: number for number, task in enumerate(tasks)}
    with tempfile.TemporaryDirectory(prefix="leeward-profile-") as folder:
        pcap, mapping = Path(folder, "sflow.pcap"), Path(folder, "hosts.csv")
        pcap.write_bytes(_pcap(datagrams))
        rows = "".join(f"{hosts[name].address},{name}\n" for name in at)
        mapping.write_text(f"address,host\n{rows}", encoding="utf-8")
        cells = []
        if datagrams:
            cells = capture(pcap, mapping=mapping, content="exports").total().to_pylist()
    result = [[0.0] * len(tasks) for _ in tasks]
    for cell in cells:
        if cell["src"] != cell["dst"]:
            result[at[cell["src"]]][at[cell["dst"]]] += float(cell["bytes"])
    if not any(map(any, result)):
        message = f"no traffic between the hosts in {len(datagrams)} sFlow datagrams"
        raise InputError.about("profile", message)
    return result


def _pcap(datagrams: Sequence[Datagram]) -> bytes:
    """A capture of the datagrams, with the headers that they arrived in."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, MOST_PORT, _RAW_IP)]
    for seconds, address, payload in datagrams:
        udp = struct.pack("!HHHH", _SFLOW_PORT, _SFLOW_PORT, 8 + len(payload), 0)
        size = 20 + len(udp) + len(payload)
        source, target = socket.inet_aton(address), socket.inet_aton("127.0.0.1")
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, size, 0, 0, 64, socket.IPPROTO_UDP, 0, source, target)
        whole, part = divmod(seconds, 1)
        parts.append(struct.pack("<IIII", int(whole), int(1e6 * part), size, size))
        parts.append(header + udp + payload)
    return b"".join(parts)
