"""Programs in virtual time: rates and latencies that they read, beside those of the virtual network.

They run at two hosts of a lab that stands. Its links are slow and long, so that delays of the machine itself
are small beside theirs.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from leeward.lab.checks.values import Check, about, check_of
from leeward.lab.standing import StandingLab, stand_up

DILATION = 10
PART = "programs"
_PERCENT = 3
_RATE_BPS, _DELAY_S, _NIC_BPS = 250e6, 1e-3, 10e9
"""Packet rate of the switch, delay of each of its two links, and rate of hosts."""
_MTU, _PAYLOAD, _HEADERS = 9000, 8948, 52
"""Bytes of a full packet, of its payload, and of the headers of a TCP packet."""
_PING_BYTES, _SOCKPERF_BYTES, _REQUEST_BYTES = 84, 14, 1
"""Bytes of an echo request with its headers, and of the messages of sockperf and netperf."""
_CLIENT, _SERVER = "r0h0", "r1h0"
_BYTES = 25_000_000
"""Bytes of a transfer, which takes 8 seconds of real time."""
_PINGS, _REQUESTS = 100, 200
_LONGEST_S = 180.0
"""Real time after which a program is stopped."""
_START_S = 10.0
"""Real time within which a server listens."""


class _ProgramError(Exception):
    """A program did not give a value."""


@dataclass(frozen=True)
class _Probe:
    programs: tuple[str, ...]
    quantity: str
    unit: str
    expected: float
    read: Callable[[StandingLab, str], float]
    """Runs the program against an address and returns the value that it prints."""


def check_programs(*, progress: Callable[[float], object] | None = None) -> list[Check]:
    """Compares what iperf3, netperf, ping and sockperf read in the lab with its virtual rate and latency.

    A program that is not on the path has a check without a value, and so has one that fails.

    Args:
        progress: Called with the share of the programs that have ended.

    Raises:
        OSError: No root, no TUN devices, or a program of iproute2 failed.
    """
    scenario = {
        "network": {
            "racks": 2,
            "hosts_per_rack": 1,
            "nic": f"{_NIC_BPS:.0f}bps",
            "packet_rate": f"{_RATE_BPS:.0f}bps",
            "uplink_delay": f"{1e9 * _DELAY_S:.0f}ns",
            "downlink_delay": f"{1e9 * _DELAY_S:.0f}ns",
            "voq_capacity": 512,
        },
        # The queue has room for the whole window, so that no packet is lost. A machine that stands still for
        # a moment causes no timeout.
        "tcp": {"receive_window": 2_000_000, "initial_window": 16, "min_timeout": "100ms"},
        "workload": {"long": {"from": 0, "to": 1, "flows": 1}},
        "horizon": "1s",
    }
    checks: list[Check] = []
    if not any(map(_is_installed, _PROBES)):
        return [_check(probe, None, "not installed") for probe in _PROBES]
    with stand_up(scenario, name=f"check-{os.getpid()}", dilation=DILATION) as lab:
        sees = lab.run(_CLIENT, ["printenv", "LEEWARD_VT_FACTOR"], check=False)
        reason = "" if sees.returncode == 0 else "; ".join(lab.notes)
        for probe in _PROBES:
            checks.append(_run(lab, probe, reason))
            if progress:
                progress(len(checks) / len(_PROBES))
    return checks


def _is_installed(probe: _Probe) -> bool:
    return all(shutil.which(program) for program in probe.programs)


def _run(lab: StandingLab, probe: _Probe, reason: str) -> Check:
    if not _is_installed(probe):
        return _check(probe, None, "not installed")
    if reason:
        return _check(probe, None, reason)
    try:
        return _check(probe, probe.read(lab, lab.machine(_SERVER).address), "")
    except _ProgramError as error:
        return _check(probe, None, str(error))


def _check(probe: _Probe, value: float | None, note: str) -> Check:
    accepted = about(probe.expected, _PERCENT)
    return check_of(
        PART, probe.quantity, probe.unit, DILATION, value, accepted, expected=probe.expected, note=note
    )


def _output(lab: StandingLab, command: Sequence[str]) -> str:
    """Output of a program at the client."""
    try:
        result = lab.run(_CLIENT, command, check=False, timeout=_LONGEST_S)
    except subprocess.TimeoutExpired:
        raise _ProgramError(f"{command[0]} did not end within {_LONGEST_S:.0f} s") from None
    if result.returncode:
        lines = (result.stderr or result.stdout).strip().splitlines() or [f"status {result.returncode}"]
        raise _ProgramError(f"{command[0]}: {lines[-1]}")
    return result.stdout


@contextmanager
def _server(lab: StandingLab, command: Sequence[str], port: int) -> Iterator[None]:
    """Runs a program at the server, while it listens to a TCP port."""
    process = lab.start(_SERVER, command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + _START_S
        while not _listens(lab, port):
            if process.poll() is not None or time.monotonic() > until:
                raise _ProgramError(f"{command[0]} does not listen")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def _listens(lab: StandingLab, port: int) -> bool:
    # A line has the local address, the remote one, and the state, of which 0A is LISTEN.
    sockets = lab.run(_SERVER, ["cat", "/proc/net/tcp", "/proc/net/tcp6"], check=False).stdout
    return re.search(rf":{port:04X} [0-9A-F]+:0000 0A ", sockets) is not None


def _number(program: str, pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    if found is None:
        raise _ProgramError(f"{program} printed no value")
    return float(found[1])


def _iperf3(lab: StandingLab, address: str) -> float:
    """Rate of TCP, in Mb/s."""
    with _server(lab, ["iperf3", "-s"], 5201):
        text = _output(lab, ["iperf3", "-c", address, "-n", str(_BYTES), "-J"])
    return 1e-6 * float(json.loads(text)["end"]["sum_received"]["bits_per_second"])


def _netperf(lab: StandingLab, address: str, *, test: str, count: int, output: str) -> float:
    with _server(lab, ["netserver", "-D"], 12865):
        options = ["-P", "0", "-H", address, "-t", test, "-l", str(-count)]
        text = _output(lab, ["netperf", *options, "--", "-o", output])
    return _number("netperf", r"([0-9.]+)", text)


def _netperf_rate(lab: StandingLab, address: str) -> float:
    """Rate of TCP, in Mb/s, which netperf prints."""
    return _netperf(lab, address, test="TCP_STREAM", count=_BYTES, output="THROUGHPUT")


def _ping(lab: StandingLab, address: str) -> float:
    """Median of round trips, in us; ping prints ms."""
    text = _output(lab, ["ping", "-c", str(_PINGS), "-i", "0.002", address])
    trips = [float(trip) for trip in re.findall(r"time=([0-9.]+) ms", text)]
    if not trips:
        raise _ProgramError("ping printed no value")
    return 1e3 * statistics.median(trips)


def _sockperf(lab: StandingLab, address: str) -> float:
    """Median of half round trips, in us."""
    to = ["--tcp", "-i", address]
    with _server(lab, ["sockperf", "server", *to], 11111):
        text = _output(lab, ["sockperf", "ping-pong", *to, "-t", "1", "--dontwarmup"])
    return _number("sockperf", r"percentile 50\.000 = +([0-9.]+)", text)


def _one_way_us(packet_bytes: int) -> float:
    """Virtual time of a packet from host to host: three links and two delays."""
    sending = 8 * packet_bytes * (1 / _NIC_BPS + 2 / _RATE_BPS)
    return 1e6 * (2 * _DELAY_S + sending)


_TCP_MBPS = 1e-6 * _RATE_BPS * _PAYLOAD / _MTU
_PROBES = (
    _Probe(("iperf3",), "iperf3: rate of TCP", "Mb/s", _TCP_MBPS, _iperf3),
    _Probe(("netperf", "netserver"), "netperf: rate of TCP", "Mb/s", _TCP_MBPS, _netperf_rate),
    _Probe(("ping",), "ping: round trip", "us", 2 * _one_way_us(_PING_BYTES), _ping),
    _Probe(
        ("netperf", "netserver"),
        "netperf: round trip of a request",
        "us",
        2 * _one_way_us(_HEADERS + _REQUEST_BYTES),
        partial(_netperf, test="TCP_RR", count=_REQUESTS, output="P50_LATENCY"),
    ),
    _Probe(
        ("sockperf",),
        "sockperf: half a round trip",
        "us",
        _one_way_us(_HEADERS + _SOCKPERF_BYTES),
        _sockperf,
    ),
)
