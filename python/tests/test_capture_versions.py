"""Captures in the forms of several versions of tcpdump, and exports in those of versions of softflowd."""

import gzip
import struct
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from leeward import InputError
from leeward.matrix import capture

START = 1_767_225_600
ENDS = IPv4Address("192.0.2.1").packed + IPv4Address("192.0.2.2").packed
UDP = struct.pack(">BBHHHBBH", 69, 0, 1000, 0, 0, 64, 17, 0) + ENDS + struct.pack(">HHHH", 4000, 5000, 980, 0)
"""The first bytes of an IP packet of 1000 bytes."""
ETHERNET = bytes(12) + b"\x08\x00"
SLL = struct.pack(">HHH8sH", 0, 1, 6, bytes(8), 0x800)
SLL2 = struct.pack(">HHIHBB8s", 0x800, 0, 2, 1, 0, 6, bytes(8))


def pcap(order: str, magic: int, link: int, head: bytes, fraction: int = 500_000) -> bytes:
    file = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 262_144, link)
    lengths = len(head + UDP), len(head) + 1000
    return file + struct.pack(f"{order}IIII", START, fraction, *lengths) + head + UDP


def block(kind: int, body: bytes) -> bytes:
    length = 12 + len(body)
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def pcapng(resolution: int, minor: int) -> bytes:
    """A file as dumpcap and the tcpdump of macOS write it, with names of the program and the interface."""

    def options(*pairs: tuple[int, bytes]) -> bytes:
        padded = (struct.pack("<HH", code, len(text)) + text + bytes(-len(text) % 4) for code, text in pairs)
        return b"".join(padded) + bytes(4)

    head = struct.pack("<IHHq", 0x1A2B3C4D, 1, minor, -1) + options((3, b"Darwin"), (4, b"tcpdump"))
    interface = struct.pack("<HHI", 1, 0, 524_288) + options((2, b"en0"), (9, bytes([resolution])))
    time = START * 10**resolution + 5 * 10 ** (resolution - 1)
    frame = ETHERNET + UDP
    lengths = struct.pack("<IIIII", 0, time >> 32, time % 2**32, len(frame), 1014)
    # Apple's option 32769 names the process of a packet.
    packet = lengths + frame + bytes(-len(frame) % 4) + options((32_769, struct.pack("<I", 7)))
    return block(0x0A0D0D0A, head) + block(1, interface) + block(6, packet)


PCAP, NANO = 0xA1B2C3D4, 0xA1B23C4D


@pytest.mark.parametrize(
    "data",
    [
        pcap("<", PCAP, 1, ETHERNET),
        pcap(">", PCAP, 1, ETHERNET),
        pcap("<", NANO, 1, ETHERNET, 500_000_000),
        # -i any: up to tcpdump 4.9, and since 4.99.
        pcap("<", PCAP, 113, SLL),
        pcap("<", PCAP, 276, SLL2),
        pcapng(6, 0),
        pcapng(9, 2),
        gzip.compress(pcap("<", PCAP, 1, ETHERNET)),
    ],
    ids=["usual", "big-endian", "nanoseconds", "any", "any, 4.99", "pcapng", "pcapng 1.2", "gzip"],
)
def test_a_packet_has_the_same_bytes_and_time_in_every_form_of_capture(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "file").write_bytes(data)
    result = capture(tmp_path / "file", interval="1s")
    [row] = result.cells.to_pylist()
    assert (row["src"], row["dst"], row["bytes"], row["t_s"]) == ("192.0.2.1", "192.0.2.2", 1014, START)
    assert result.discards.num_rows == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"00:00:00.000000 IP 192.0.2.1.4000 > 192.0.2.2.5000: UDP, length 972\n", "(text); expected pcap"),
        (b"snoop\0\0\0\0\0\0\2\0\0\0\4", "(a file of snoop); expected pcap"),
        (struct.pack("<HHIIII", 0xA50C, 2, 0, 0, 0, 0), "(a file of nfdump); expected pcap"),
        (struct.pack("<IHHiIII", PCAP, 3, 0, 0, 0, 65_535, 1), "pcap version 3.0; expected pcap 2.3 or 2.4"),
        (block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 2, 0, -1)), "pcapng version 2.0; expected"),
    ],
)
def test_a_file_of_another_form_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(InputError) as raised:
        capture(tmp_path / "file")
    assert message in str(raised.value)


BOOT_MS = 1000 * START + 10_000
"""Start of softflowd, which reads packets of ten seconds before from a file."""
UPTIME = 2**32 - 10_000
V9_0 = [8, 12, 21, 22, 1, 2, 10, 14, (7, 2), (11, 2), (4, 1), (6, 1), (60, 1), (5, 1), (32, 2), (58, 2)]
"""Fields of softflowd 0.9; without a length they have four bytes."""
V1_0 = [8, 12, 22, 21, 1, 2, 10, 14, (61, 1), (136, 1), (7, 2), (11, 2), (4, 1), (6, 1), (60, 1), (5, 1)]
MILLI = [8, 12, (152, 8), (153, 8), *V1_0[4:]]
"""With `-A milli`."""
VALUES = {8: int.from_bytes(ENDS[:4], "big"), 12: int.from_bytes(ENDS[4:], "big"), 1: 10_000, 2: 10} | {
    **dict.fromkeys((21, 22), UPTIME),
    **dict.fromkeys((152, 153), BOOT_MS - 10_000),
    7: 4000,
    11: 5000,
    4: 17,
    60: 4,
}
OPTIONS = [(143, 4), (160, 8), (305, 4), (306, 4), (304, 2), (82, 16)]
"""Options of IPFIX: process, start of softflowd, rate in two numbers, kind of sampling, interface."""


def set_of(number: int, body: bytes) -> bytes:
    return struct.pack(">HH", number, 4 + len(body)) + body


def fields_of(layout: list[Any]) -> list[tuple[int, int]]:
    return [one if isinstance(one, tuple) else (one, 4) for one in layout]


def template(layout: list[Any], *head: int) -> bytes:
    fields = b"".join(struct.pack(">HH", *field) for field in fields_of(layout))
    return struct.pack(f">{len(head)}H", *head) + fields


def record(layout: list[Any], values: dict[int, int]) -> bytes:
    return b"".join(values.get(number, 0).to_bytes(length, "big") for number, length in fields_of(layout))


def netflow_9(layout: list[Any]) -> bytes:
    """A message, sent a second after softflowd started."""
    sets = set_of(0, template(layout, 1024, len(layout))) + set_of(1024, record(layout, VALUES))
    return struct.pack(">HHIIII", 9, 2, 1000, BOOT_MS // 1000 + 1, 0, 0) + sets


def ipfix(layout: list[Any], rate: int) -> bytes:
    values = {160: BOOT_MS, 305: 1, 306: rate - 1, 304: 1}
    sets = [
        set_of(2, template(layout, 1024, len(layout))),
        set_of(3, template(OPTIONS, 256, len(OPTIONS), 1)),
        set_of(256, record(OPTIONS, values)),
        set_of(1024, record(layout, VALUES)),
    ]
    body = b"".join(sets)
    return struct.pack(">HHIII", 10, 16 + len(body), BOOT_MS // 1000 + 1, 0, 0) + body


def netflow_5() -> bytes:
    head = struct.pack(">HHIIIIBBH", 5, 1, 1000, BOOT_MS // 1000 + 1, 0, 0, 0, 0, 0x4001)
    flow = struct.pack(">4xHHIIIIHHxBBB8x", 0, 0, 10, 10_000, UPTIME, UPTIME, 4000, 5000, 0, 17, 0)
    return head + ENDS + flow


def exported(datagram: bytes) -> bytes:
    """A capture of an exported datagram."""
    udp = struct.pack(">HHHH", 30_000, 2055, 8 + len(datagram), 0) + datagram
    ends = IPv4Address("198.51.100.1").packed + IPv4Address("198.51.100.2").packed
    frame = ETHERNET + struct.pack(">BBHHHBBH", 69, 0, 20 + len(udp), 0, 0, 64, 17, 0) + ends + udp
    head = struct.pack("<IHHiIII", PCAP, 2, 4, 0, 0, 262_144, 1)
    return head + struct.pack("<IIII", START + 11, 0, len(frame), len(frame)) + frame


@pytest.mark.parametrize(
    ("datagram", "rate"),
    [
        (netflow_5(), 1),
        (netflow_9(V9_0), 1),
        (netflow_9(V1_0), 1),
        (ipfix(V1_0, 10), 10),
        (ipfix(MILLI, 1), 1),
    ],
    ids=["NetFlow 5", "0.9", "1.0", "IPFIX", "IPFIX -A milli"],
)
def test_exports_of_every_version_of_softflowd_have_the_packets_at_their_time(
    tmp_path: Path, datagram: bytes, rate: int
) -> None:
    (tmp_path / "file").write_bytes(exported(datagram))
    result = capture(tmp_path / "file", interval="1s", size="ip", sampling=1)
    [row] = result.cells.to_pylist()
    assert (row["src"], row["dst"], row["t_s"]) == ("192.0.2.1", "192.0.2.2", START)
    assert (row["bytes"], row["packets"]) == (10_000 * rate, 10 * rate)
    assert result.discards.num_rows == 0


def test_netflow_of_a_version_that_is_not_read_is_named(tmp_path: Path) -> None:
    datagram = struct.pack(">HHIII", 1, 1, 1000, START, 0) + ENDS + bytes(44)
    (tmp_path / "file").write_bytes(exported(datagram))
    [row] = capture(tmp_path / "file").discards.to_pylist()
    assert (row["reason"], row["examples"]) == ("unknown-version", "packet 1: first bytes 00010001")
