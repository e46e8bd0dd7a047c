"""Captures and exports as tshark reads them: the same packets, records and bytes for each pair."""

import random
import struct
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path

import pytest

from leeward.matrix import capture
from support.parts import require

START = 1_767_225_600
VARIABLE = 65_535
Sums = Counter[tuple[str, str]]
SEEDS = range(2)
MANY = range(2, 30)


def pcap(frames: Sequence[bytes], link: int = 1) -> bytes:
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, link)
    for frame in frames:
        data += struct.pack("<IIII", START, 0, len(frame), len(frame)) + frame
    return data


def packet(source: str, target: str, protocol: int, payload: bytes) -> bytes:
    ends = ip_address(source).packed + ip_address(target).packed
    if ip_address(source).version == 6:
        return struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64) + ends + payload
    return struct.pack(">BBHHHBBH", 69, 0, 20 + len(payload), 0, 0, 64, protocol, 0) + ends + payload


def udp(source: str, target: str, port: int, payload: bytes) -> bytes:
    return packet(source, target, 17, struct.pack(">HHHH", 30_000, port, 8 + len(payload), 0) + payload)


def kind(inside: bytes) -> bytes:
    return b"\x08\x00" if inside[0] >> 4 == 4 else b"\x86\xdd"


def ethernet(inside: bytes, tags: bytes = b"") -> bytes:
    return b"\2\0\0\0\0\1\2\0\0\0\0\2" + tags + kind(inside) + inside


def dissect(path: Path, fields: Sequence[str], occurrence: str = "a", *arguments: str) -> list[list[str]]:
    """Fields of each frame as tshark prints them; several occurrences of a field are joined by commas."""
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", f"occurrence={occurrence}", *arguments]
    command += [part for field in fields for part in ("-e", field)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return [line.split("\t") for line in process.stdout.splitlines()]


def pairs(path: Path, column: str = "bytes", **settings: str | int) -> Sums:
    total = capture(path, **settings).total().to_pylist()  # type: ignore[arg-type]
    return Counter({(row["src"], row["dst"]): row[column] for row in total})


def exported(rng: random.Random) -> list[bytes]:
    """Datagrams of one exporter: a template with random fields, and records in several sets and messages."""
    is_ipfix, six = rng.random() < 0.7, rng.random() < 0.3
    fields: list[tuple[int, int, int]] = [(27, 16, 0), (28, 16, 0)] if six else [(8, 4, 0), (12, 4, 0)]
    fields += [(1, rng.choice([4, 8]), 0), (2, 4, 0)]
    for _ in range(rng.randrange(5)):
        # Names of interfaces, applications and users, whose lengths vary; and numbers of an enterprise.
        length = rng.choice([VARIABLE, VARIABLE, 3, 8]) if is_ipfix else rng.choice([3, 8])
        extra = (rng.choice([82, 83, 96, 371]), length, rng.choice([0, 0, 4242]) if is_ipfix else 0)
        fields.insert(rng.randrange(len(fields) + 1), extra)
    number = rng.randrange(256, 60_000)
    template = struct.pack(">HH", number, len(fields))
    for field, length, enterprise in fields:
        template += struct.pack(">HH", field | (0x8000 if enterprise else 0), length)
        template += struct.pack(">I", enterprise) if enterprise else b""

    def record() -> bytes:
        data = b""
        for field, length, enterprise in fields:
            if field in (8, 12) and not enterprise:
                data += bytes([10, 0, 0, rng.randrange(1, 5)])
            elif field in (27, 28) and not enterprise:
                data += ip_address(f"fd00::{rng.randrange(1, 5)}").packed
            elif field in (1, 2) and not enterprise:
                data += rng.randrange(1, 100_000).to_bytes(length, "big")
            elif length == VARIABLE:
                size = rng.choice([0, 0, 1, 7, 254, 255, 300])
                data += bytes([size]) if size < 255 else b"\xff" + struct.pack(">H", size)
                data += b"a" * size
            else:
                data += b"a" * length
        return data

    def message(*sets: tuple[int, bytes]) -> bytes:
        body = b""
        for at, data in sets:
            padded = data + bytes(-len(data) % 4 if len(data) % 4 and rng.random() < 0.5 else 0)
            body += struct.pack(">HH", at, 4 + len(padded)) + padded
        if is_ipfix:
            return struct.pack(">HHIII", 10, 16 + len(body), START, 0, 7) + body
        return struct.pack(">HHIIII", 9, len(sets), 3000, START, 0, 7) + body

    messages = [message((2 if is_ipfix else 0, template))]
    for _ in range(rng.randrange(1, 4)):
        sets = [
            (number, b"".join(record() for _ in range(rng.randrange(1, 6))))
            for _ in range(rng.randrange(1, 3))
        ]
        messages.append(message(*sets))
    return messages


def check_exports(seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    frames = [
        ethernet(udp(f"198.51.100.{exporter}", "203.0.113.1", 2055, datagram))
        for exporter in range(1, 40)
        for datagram in exported(rng)
    ]
    path = folder / "exports.pcap"
    path.write_bytes(pcap(frames))
    names = [
        "cflow.srcaddr",
        "cflow.srcaddrv6",
        "cflow.dstaddr",
        "cflow.dstaddrv6",
        "cflow.octets",
        "cflow.packets",
    ]
    octets, counts = Sums(), Sums()
    for row in dissect(path, names):
        four, six, to_four, to_six, sizes, numbers = ([] if not cell else cell.split(",") for cell in row)
        for source, target, size, number in zip(four + six, to_four + to_six, sizes, numbers, strict=True):
            octets[source, target] += int(size)
            counts[source, target] += int(number)
    assert len(octets) > 10
    assert pairs(path, size="ip", sampling=1) == octets
    assert pairs(path, "packets", size="ip", sampling=1) == counts
    reasons = {row["reason"] for row in capture(path, sampling=1).discards.to_pylist()}
    assert reasons <= {"no-flow-time"}


def tunneled(rng: random.Random, inside: bytes) -> bytes:
    """A packet in up to two tunnels."""
    for _ in range(rng.randrange(3)):
        ends = (f"192.0.2.{rng.randrange(1, 4)}", f"192.0.2.{rng.randrange(1, 4)}")
        vxlan, geneve = struct.pack(">II", 8 << 24, 5 << 8), struct.pack(">HHI", 0, 0x6558, 5 << 8)
        options = struct.pack(">HH", 0x0200, int.from_bytes(kind(inside), "big")) + struct.pack(">I", 5 << 8)
        number = 4 if inside[0] >> 4 == 4 else 41
        forms = [
            udp(*ends, 4789, vxlan + ethernet(inside)),
            udp(*ends, 6081, geneve + ethernet(inside)),
            udp(*ends, 6081, options + struct.pack(">HBBI", 0x0102, 3, 1, 7) + inside),
            packet(*ends, 47, b"\0\0" + kind(inside) + inside),
            packet(*ends, 47, b"\xb0\0" + kind(inside) + bytes(4) + struct.pack(">II", 9, 1) + inside),
            packet(*ends, number, inside),
        ]
        inside = rng.choice(forms)
    return inside


def check_packets(seed: int, folder: Path) -> None:
    rng = random.Random(seed)

    def inner() -> bytes:
        base = rng.choice(["10.0.0.", "fd00::"])
        ends = (f"{base}{rng.randrange(1, 4)}", f"{base}{rng.randrange(1, 4)}")
        return udp(*ends, 9, b"a" * rng.randrange(400))

    tags = [b"", b"\x81\0\0\5", b"\x88\xa8\0\5\x81\0\0\6"]
    links: dict[int, Callable[[bytes], bytes]] = {
        1: lambda inside: ethernet(inside, rng.choice(tags)),
        9: lambda inside: (
            rng.choice([b"", b"\xff\3"]) + (b"\0\x21" if inside[0] >> 4 == 4 else b"\0\x57") + inside
        ),
        50: lambda inside: b"\xff\3" + (b"\0\x21" if inside[0] >> 4 == 4 else b"\0\x57") + inside,
        101: lambda inside: inside,
        104: lambda inside: b"\x0f\0" + kind(inside) + inside,
    }
    for link, frame in links.items():
        path = folder / f"link-{link}.pcap"
        path.write_bytes(pcap([frame(tunneled(rng, inner())) for _ in range(60)], link))
        for tunnels in ("outer", "inner"):
            expected = Sums()
            names = ["frame.len", "frame.protocols", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst"]
            for length, protocols, *ends in dissect(path, names):
                layers = [layer for layer in protocols.split(":") if layer in ("ip", "ipv6")]
                at = 0 if tunnels == "outer" else -1
                first = 0 if layers[at] == "ip" else 2
                source, target = (cell.split(",")[at] for cell in ends[first : first + 2])
                expected[source, target] += int(length)
            assert pairs(path, tunnels=tunnels) == expected, (link, tunnels)


def check_samples(seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    datagrams = []
    for _ in range(40):
        samples = b""
        count = rng.randrange(1, 6)
        for _ in range(count):
            ends = (f"10.0.0.{rng.randrange(1, 4)}", f"10.0.0.{rng.randrange(1, 4)}")
            frame = ethernet(packet(*ends, 6, bytes(rng.randrange(20, 1400))))
            header = frame[:128] + bytes(-len(frame[:128]) % 4)
            record = struct.pack(">IIII", 1, len(frame) + 4, 4, len(frame[:128])) + header
            rate = rng.randrange(1, 1000)
            body = struct.pack(">IIIIIII", 1, 3, rate, rate, 0, 3, 4)
            body += struct.pack(">III", 1, 1, len(record)) + record
            samples += struct.pack(">II", 1, len(body)) + body
        datagrams.append(struct.pack(">IIIIIII", 5, 1, 0x0A090909, 0, 1, 1000, count) + samples)
    path = folder / "samples.pcap"
    path.write_bytes(pcap([ethernet(udp("198.51.100.1", "203.0.113.1", 6343, data)) for data in datagrams]))
    names = ["ip.src", "ip.dst", "sflow.flow_sample.sampling_rate", "sflow_245.header.frame_length"]
    expected = Sums()
    for row in dissect(path, names):
        sources, targets, rates, lengths = (cell.split(",") for cell in row)
        # The first addresses are those of the datagram.
        for source, target, each, size in zip(sources[1:], targets[1:], rates, lengths, strict=True):
            expected[source, target] += int(each) * (int(size) - 4)
    assert pairs(path) == expected


CHECKS = [check_exports, check_packets, check_samples]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_tshark_reads_the_same(check: Callable[[int, Path], None], seed: int, tmp_path: Path) -> None:
    require("tshark")
    check(seed, tmp_path)


@pytest.mark.whole
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_tshark_reads_the_same_of_many_more(check: Callable[[int, Path], None], tmp_path: Path) -> None:
    require("tshark")
    for seed in MANY:
        check(seed, tmp_path)
