"""`leeward matrix capture` beside nfpcapd (of nfdump) and tshark, on the same capture in one run.

All programs read a file of complete UDP packets between 1,000 hosts and count bytes by pair of addresses:
nfpcapd writes flow records, tshark prints its list of IP conversations. They take turns. Times are elapsed
seconds from start to end of the process, with its start-up, which is also measured alone on a capture of a
few packets; processor seconds of all threads stand beside them.

    python python/benchmarks/beside_captures.py [--megabytes 256]
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
from peers import Times, program_version, timed
from record import record, record_missing, record_peer

LEEWARD = str(Path(sys.executable).with_name("leeward"))
HOSTS = 1000
START_S = 1_700_000_000
MIXES = {"64 to 1500 bytes": (64, 594, 1500), "64 bytes": (64,)}
"""Sizes of packets, in turn. The names are those of the benchmark of captures in Rust."""
SLOW = ("tshark", "64 bytes")
"""Left out: it would take minutes."""


def write_capture(path: Path, sizes: Sequence[int], megabytes: int) -> int:
    """Writes a pcap file of UDP packets of these sizes in turn, and returns the number of packets."""
    unit = b"".join(_packet(size) for size in sizes)
    turns = max(1, megabytes * 1_000_000 // len(unit))
    rows = numpy.tile(numpy.frombuffer(unit, dtype=numpy.uint8), (turns, 1))
    random, place = numpy.random.default_rng(1), 0
    for number, size in enumerate(sizes):
        at = numpy.arange(number, turns * len(sizes), len(sizes), dtype=numpy.int64)
        _put(rows, place, "<u4", START_S + at // 1_000_000)
        _put(rows, place + 4, "<u4", at % 1_000_000)
        for offset in (42, 46):
            _put(rows, place + offset, ">u4", 0x0A000000 + random.integers(0, HOSTS, turns))
        place += 16 + size
    head = [0xA1B2C3D4, 0x00040002, 0, 0, 0x00040000, 1]
    path.write_bytes(numpy.array(head, dtype="<u4").tobytes() + rows.tobytes())
    return turns * len(sizes)


def _put(rows: Any, offset: int, form: str, values: Any) -> None:
    """Writes a number of four bytes into each row."""
    rows[:, offset : offset + 4] = values.astype(form).view(numpy.uint8).reshape(-1, 4)


def _packet(size: int) -> bytes:
    """Record of a packet: Ethernet, IPv4 and UDP, without its time and addresses."""
    ethernet = bytes([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0])
    ip = bytes([0x45, 0]) + (size - 14).to_bytes(2, "big") + bytes([0, 0, 0x40, 0, 64, 17]) + bytes(10)
    udp = bytes([0x13, 0x88, 0x13, 0x89]) + (size - 34).to_bytes(2, "big")
    packet = ethernet + ip + udp
    return bytes(8) + size.to_bytes(4, "little") * 2 + packet + bytes([7]) * (size - len(packet))


def commands(capture: Path, out: Path) -> dict[str, list[str]]:
    """Command of each program."""
    return {
        "Leeward": [LEEWARD, "matrix", "capture", str(capture), "--out", str(out / "matrix.csv")],
        "nfdump": ["nfpcapd", "-r", str(capture), "-w", str(out)],
        "tshark": ["tshark", "-n", "-q", "-r", str(capture), "-z", "conv,ip"],
    }


def installed() -> list[str]:
    """Programs that can run; versions of the others' and reasons of missing ones are recorded."""
    result = ["Leeward"]
    for peer, command, package in (
        ("nfdump", ("nfpcapd", "-V"), "nfdump"),
        ("tshark", ("tshark", "--version"), "tshark"),
    ):
        if version := program_version(command):
            record_peer(peer, version)
            result.append(peer)
        else:
            record_missing(peer, f"the package {package} is not installed")
    return result


def main() -> None:
    """Prints a line for each program and mix."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=256, help="size of a capture")
    options = parser.parse_args()
    programs = installed()
    print(f"{'packets':<18} {'program':<8} {'s':>8} {'CPU s':>8} {'MB/s':>8} {'over Leeward':>13}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        capture = folder / "capture.pcap"
        write_capture(capture, MIXES["64 bytes"], 0)
        start = timed(commands(capture, folder)["Leeward"])
        record("beside captures, start of Leeward", "s", start.elapsed)
        print(f"{'a few':<18} {'Leeward':<8} {start.elapsed:>8.3f} {start.cpu:>8.3f}")
        for mix, sizes in MIXES.items():
            write_capture(capture, sizes, options.megabytes)
            found: dict[str, Times] = {}
            for program in programs:
                if (program, mix) == SLOW:
                    continue
                found[program] = times = timed(commands(capture, folder)[program])
                peer = None if program == "Leeward" else program
                record(f"beside captures, {mix}, {program}", "s", times.elapsed, peer)
                record(f"beside captures, {mix}, {program}, processor", "s", times.cpu, peer)
                ratio = times.elapsed / found["Leeward"].elapsed
                if peer:
                    record(f"beside {peer}, {mix}", "ratio", ratio, peer)
                rate = capture.stat().st_size / 1e6 / times.elapsed
                print(
                    f"{mix:<18} {program:<8} {times.elapsed:>8.3f} {times.cpu:>8.3f} {rate:>8.0f}"
                    f" {ratio:>13.2f}"
                )


if __name__ == "__main__":
    main()
