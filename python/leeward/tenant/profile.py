"""Profiles an app of commands (Choreo, section 2.1): runs it once, and counts what its tasks send each other.

Either each host captures what it sends to the others; or agents on the hosts or switches of the network send
sFlow datagrams to this machine. Each task needs a host of its own, because packets have addresses of hosts.
"""

import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leeward.errors import InputError
from leeward.probe import MOST_PORT
from leeward.tenant.execution import Execution
from leeward.tenant.fleet import Fleet
from leeward.tenant.hosts import Host

_SFLOW_PORT = 6343
_RAW_IP = 101
"""Link type of a capture whose packets begin with the IP header."""
_TICK_S = 0.2
_LATE_S = 1.5
"""Time after which tcpdump has read every packet that was sent."""
_READ_S = 300.0
"""Time in which a host must read its capture."""
Datagram = tuple[float, str, bytes]
"""Time of arrival in seconds since 1970, address of the sender, payload."""


def read_source(text: str) -> int | None:
    """The port of `sflow:PORT`; None for `capture`.

    Raises:
        InputError: The text has another form.
    """
    if text == "capture":
        return None
    kind, _, port = text.partition(":")
    if kind != "sflow" or not port.isdecimal() or not 0 < int(port) <= MOST_PORT:
        message = f"`{text}`: expected capture, or sflow:PORT, such as sflow:6343"
        raise InputError.about("profile", message)
    return int(port)


def profile(
    fleet: Fleet,
    app: Mapping[str, Any],
    where: Mapping[str, str],
    port: int | None,
    most_s: float,
    note: Callable[[str], object],
) -> list[list[float]]:
    """Runs an app of commands until its end, but at most for a time, and returns its traffic matrix.

    Commands that still run end with the fleet.

    Args:
        fleet: Helpers of the hosts.
        app: Tasks with their commands, as `leeward._native.app_file` returns them.
        where: Host of each task.
        port: Port for sFlow datagrams; None to capture on the hosts.
        most_s: Longest time of the run.
        note: Called with a text for each host whose capture is not complete.

    Raises:
        InputError: Two tasks share a host, the port is in use, or no traffic between the hosts was seen.
        HostError: A host cannot capture.
    """
    if len(set(where.values())) < len(where):
        message = f"{len(where)} tasks on {len(set(where.values()))} hosts: expected a host for each task"
        raise InputError.about("profile", message)
    if port is None:
        return _captured(fleet, app, where, most_s, note)
    with _datagrams(port) as datagrams:
        _run(fleet, app, where, most_s)
        # Agents report some time after the last packet.
        time.sleep(_TICK_S)
    return matrix_of(datagrams, list(where), where, fleet.hosts)


def _run(fleet: Fleet, app: Mapping[str, Any], where: Mapping[str, str], most_s: float) -> None:
    execution = Execution(fleet, app, where)
    execution.begin()
    while execution.ended_s is None and execution.now_s() < most_s:
        event = fleet.event(min(_TICK_S, most_s - execution.now_s()))
        if event is not None:
            execution.handle(event)


def _captured(
    fleet: Fleet,
    app: Mapping[str, Any],
    where: Mapping[str, str],
    most_s: float,
    note: Callable[[str], object],
) -> list[list[float]]:
    """Bytes from each task to each, from captures on their hosts."""
    addresses = {name: fleet.hosts[name].address for name in where.values()}
    for name, own in addresses.items():
        others = [address for address in addresses.values() if address != own]
        fleet.order(name, "capture", own=own, others=others)
    fleet.answers("capturing", list(addresses))
    _run(fleet, app, where, most_s)
    time.sleep(_LATE_S)
    for name in addresses:
        fleet.order(name, "captured")
    tasks = list(where)
    at = {addresses[where[task]]: number for number, task in enumerate(tasks)}
    result = [[0.0] * len(tasks) for _ in tasks]
    for event in fleet.answers("captured", list(addresses), _READ_S):
        if event["lost"]:
            note(f"host {event['host']}: the kernel lost {event['lost']} packets of the capture")
        for address, count in event["bytes"].items():
            result[at[addresses[event["host"]]]][at[address]] = float(count)
    if not any(map(any, result)):
        raise InputError.about("profile", "no traffic between the hosts in the captures")
    return result


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
