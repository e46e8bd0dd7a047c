"""Flow exports through `leeward matrix capture`: no record is lost in silence, and no export is traffic."""

import json
import struct
import subprocess
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
START = 1_767_225_600
VARIABLE = 65_535
Field = tuple[int, int]
"""Number and length of a field."""
FLOW: list[Field] = [(8, 4), (12, 4), (1, 4), (2, 4)]
"""Addresses, octets and packets."""


def ipfix(*sets: bytes) -> bytes:
    return struct.pack(">HHIII", 10, 16 + len(b"".join(sets)), START, 0, 1) + b"".join(sets)


def netflow_9(*sets: bytes) -> bytes:
    return struct.pack(">HHIIII", 9, len(sets), 3000, START, 0, 1) + b"".join(sets)


def set_of(number: int, body: bytes) -> bytes:
    return struct.pack(">HH", number, 4 + len(body)) + body


def template(fields: Sequence[Field], number: int = 2) -> bytes:
    body = struct.pack(">HH", 256, len(fields)) + b"".join(struct.pack(">HH", *field) for field in fields)
    return set_of(number, body)


def flow(octets: int = 1000, packets: int = 1) -> bytes:
    ends = IPv4Address("192.0.2.1").packed + IPv4Address("192.0.2.2").packed
    return ends + struct.pack(">II", octets, packets)


def udp_frame(payload: bytes, port: int, source: str = "198.51.100.1") -> bytes:
    udp = struct.pack(">HHHH", 30_000, port, 8 + len(payload), 0) + payload
    ends = IPv4Address(source).packed + IPv4Address("198.51.100.2").packed
    return (
        bytes(12) + b"\x08\x00" + struct.pack(">BBHHHBBH", 69, 0, 20 + len(udp), 0, 0, 64, 17, 0) + ends + udp
    )


def pcap(frames: Sequence[bytes], link: int = 1) -> bytes:
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, link)
    for frame in frames:
        data += struct.pack("<IIII", START, 0, len(frame), len(frame)) + frame
    return data


@pytest.fixture
def document(run: Run, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Reads bytes as a capture, and returns the JSON of the command."""

    def read(data: bytes, *flags: str) -> dict[str, Any]:
        (tmp_path / "exports").write_bytes(data)
        process = run("matrix", "capture", "exports", "-o", "json", *flags)
        assert process.returncode == 0, process.stderr
        result: dict[str, Any] = json.loads(process.stdout)
        return result

    return read


Document = Callable[..., dict[str, Any]]


def total(document: dict[str, Any]) -> int:
    assert {(row["src"], row["dst"]) for row in document["cells"]} <= {("192.0.2.1", "192.0.2.2")}
    return sum(row["bytes"] for row in document["cells"])


def doubts(document: dict[str, Any]) -> set[str]:
    return {row["reason"] for row in document["discards"]} - {"no-rate", "no-flow-time"}


@pytest.mark.parametrize(
    ("more", "records", "expected"),
    [
        ([], [flow()], 1014),
        ([(82, VARIABLE)], [flow() + b"\0"], 1014),
        ([(82, 0)], [flow()], 1014),
        ([(82, VARIABLE)], [flow() + b"\4eth0"] * 2 + [flow() + b"\0"] + [flow() + b"\4eth0"] * 2, 5070),
        ([(82, VARIABLE)], [flow() + b"\xff\x01\x00" + bytes(256)] * 2, 2028),
    ],
    ids=["plain", "empty", "no-length", "mixed", "long"],
)
def test_records_with_fields_of_any_length_are_counted(
    document: Document, more: list[Field], records: list[bytes], expected: int
) -> None:
    data = ipfix(template([*FLOW, *more])) + ipfix(set_of(256, b"".join(records)))
    result = document(data)
    assert (total(result), doubts(result)) == (expected, set())


def test_a_record_that_does_not_fit_is_named_with_its_packet_and_set(document: Document) -> None:
    data = ipfix(template([*FLOW, (82, VARIABLE)]), set_of(256, flow() + b"\0" + flow() + b"\x09eth"))
    result = document(data)
    assert total(result) == 1014
    [row] = [row for row in result["discards"] if row["reason"] == "broken-datagram"]
    assert (row["count"], row["bytes"]) == (1, 20)
    assert row["examples"] == "packet 1: 20 bytes of set 256, which do not fit its template"


def test_a_section_of_a_frame_has_addresses_and_a_rate(document: Document) -> None:
    frame = udp_frame(bytes(1472), 9, "192.0.2.1")[:60].replace(
        IPv4Address("198.51.100.2").packed, IPv4Address("192.0.2.2").packed
    )
    record = struct.pack(">HI", 1514, 1000) + bytes([len(frame)]) + frame
    result = document(ipfix(template([(312, 2), (305, 4), (315, VARIABLE)]), set_of(256, record)))
    assert (total(result), doubts(result)) == (1_514_000, set())


@pytest.mark.parametrize("first", [True, False])
def test_a_sampling_rate_applies_to_the_records_before_it(document: Document, first: bool) -> None:
    options = set_of(1, struct.pack(">HHHHHHHHH", 257, 4, 8, 1, 4, 48, 1, 50, 4) + bytes(2))
    rate = set_of(257, struct.pack(">IBI", 0, 1, 1000))
    flows = [netflow_9(set_of(256, flow(1_000_000, 1000) + b"\1"))] * 3
    sampling = [netflow_9(options, rate)]
    messages = [netflow_9(template([*FLOW, (48, 1)], 0)), *(sampling + flows if first else flows + sampling)]
    result = document(pcap([udp_frame(message, 2055) for message in messages]))
    assert (total(result), doubts(result)) == (3_042_000_000, set())
    assert "no-rate" not in {row["reason"] for row in result["discards"]}
