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
    return {row["reason"] for row in document["discards"]} - {"no-rate", "no-flow-time", "recognized-export"}


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


def netflow_5(records: Sequence[bytes]) -> bytes:
    return struct.pack(">HHIIIIHH", 5, len(records), 3000, START, 0, 0, 0, 0x4001) + b"".join(records)


def v5_record(octets: int, packets: int) -> bytes:
    ends = IPv4Address("192.0.2.1").packed + IPv4Address("192.0.2.2").packed
    return ends + bytes(8) + struct.pack(">IIIIHHBBBB", packets, octets, 0, 3000, 1, 2, 0, 0, 6, 0) + bytes(8)


def sflow(samples: Sequence[tuple[int, int, bytes, int]]) -> bytes:
    """A datagram of samples: source, output interface, header, length of the frame; one in 100 packets."""
    data = struct.pack(">IIIIIII", 5, 1, 0xC6336401, 0, 1, 1000, len(samples))
    for source, output, header, length in samples:
        record = struct.pack(">IIII", 1, length, 4, len(header)) + header + bytes(-len(header) % 4)
        body = struct.pack(">IIIIIII", 1, source, 100, 100, 0, 1, output)
        body += struct.pack(">III", 1, 1, len(record)) + record
        data += struct.pack(">II", 1, len(body)) + body
    return data


HEADER = bytes(12) + b"\x08\x00" + struct.pack(">BBHHHBBH", 69, 0, 1500, 0, 0, 64, 6, 0)
HEADER += IPv4Address("192.0.2.1").packed + IPv4Address("192.0.2.2").packed + bytes(94)
"""First 128 bytes of a frame with an IP packet of 1,500 bytes."""


@pytest.mark.parametrize("port", [2055, 9995, 30_001])
def test_exports_are_recognized_on_any_port(document: Document, port: int) -> None:
    result = document(pcap([udp_frame(netflow_5([v5_record(3_000_000, 3000)]), port)]))
    assert (total(result), result["sources"][0]["protocol"]) == (3_042_000, "netflow 5")


def test_exports_beside_traffic_are_reported_above_the_table(run: Run, tmp_path: Path) -> None:
    traffic = udp_frame(bytes(100), 9)
    export = udp_frame(netflow_5([v5_record(3_000_000, 3000)]), 9995)
    (tmp_path / "mixed.pcap").write_bytes(pcap([traffic, export, export]))
    process = run("matrix", "capture", "mixed.pcap")
    assert process.returncode == 0
    lines = process.stdout.splitlines()
    assert lines[0] == f"incomplete, without: 2 export ({2 * len(export)} B)"
    assert [line.split()[-2:] for line in lines[2:]] == [["B", "1"], ["B", "1"]]
    assert "export, netflow 5 to port 9995" in process.stderr
    assert "--content exports reads their records" in process.stderr


def test_one_direction_of_a_switch_that_samples_both_is_a_choice(document: Document) -> None:
    data = pcap([udp_frame(sflow([(1, 2, HEADER, 1518), (2, 2, HEADER, 1518)]), 6343)])
    both = document(data)
    assert (total(both), doubts(both)) == (302_800, {"both-directions"})
    for direction in ("ingress", "egress"):
        one = document(data, "--direction", direction)
        assert (total(one), doubts(one)) == (151_400, {"other-direction"})


def test_a_frame_length_below_the_length_of_its_packet_is_a_doubt(document: Document) -> None:
    result = document(pcap([udp_frame(sflow([(1, 2, HEADER, 132)]), 6343)]))
    assert (total(result), doubts(result)) == (151_400, {"length-mismatch"})
    [row] = result["discards"]
    assert (row["kept"], row["doubt"], row["bytes"]) == (True, True, 151_400)


def test_sampled_discards_are_no_traffic(document: Document) -> None:
    data = pcap([udp_frame(sflow([(1, 2, HEADER, 1518), (1, 0x40000101, HEADER, 1518)]), 6343)])
    result = document(data)
    assert (total(result), doubts(result)) == (151_400, {"discarded-packet"})
    [row] = result["discards"]
    assert (row["count"], row["bytes"], row["doubt"]) == (1, 151_400, False)


def test_packets_in_tunnels_count_for_their_own_ends_by_choice(document: Document) -> None:
    inner = HEADER[:54]
    outer = udp_frame(b"\x08" + bytes(7) + inner, 4789)
    ends = [(row["src"], row["dst"], row["bytes"]) for row in document(pcap([outer]))["cells"]]
    assert ends == [("198.51.100.1", "198.51.100.2", len(outer))]
    result = document(pcap([outer]), "--tunnels", "inner")
    assert (total(result), result["discards"]) == (len(outer), [])


@pytest.mark.parametrize(("link", "head"), [(9, b"\0\x21"), (50, b"\xff\3\0\x21"), (104, b"\x0f\0\x08\0")])
def test_links_of_ppp_and_hdlc_are_read(document: Document, link: int, head: bytes) -> None:
    packet = HEADER[14:18].replace(struct.pack(">H", 1500), struct.pack(">H", 40)) + HEADER[18:54]
    result = document(pcap([head + packet], link))
    assert (total(result), result["discards"]) == (len(head) + 40, [])


def test_appended_captures_and_lost_exports_are_known(document: Document) -> None:
    def numbered(number: int) -> bytes:
        data = bytearray(netflow_5([v5_record(1000, 1)]))
        data[16:20] = number.to_bytes(4, "big")
        return udp_frame(bytes(data), 2055)

    data = pcap([numbered(7), numbered(8)]) + pcap([numbered(9), numbered(12)])
    result = document(data)
    assert (total(result), doubts(result)) == (4 * 1014, {"lost-exports"})
    [row] = result["discards"]
    assert (row["count"], row["detail"], row["doubt"]) == (2, "records", True)


def test_files_of_messages_of_two_exporters_do_not_share_a_rate(run: Run, tmp_path: Path) -> None:
    rate = set_of(3, struct.pack(">HHHHH", 257, 1, 0, 34, 4)) + set_of(257, struct.pack(">I", 1000))
    (tmp_path / "a.ipfix").write_bytes(ipfix(template(FLOW), rate, set_of(256, flow())))
    (tmp_path / "b.ipfix").write_bytes(ipfix(template(FLOW), set_of(256, flow())))
    process = run("matrix", "capture", "a.ipfix", "b.ipfix", "-o", "json")
    result = json.loads(process.stdout)
    assert total(result) == 1_014_000 + 1014
    assert [row["name"] for row in result["sources"]] == ["a.ipfix", "b.ipfix"]
    [doubt] = [row for row in result["discards"] if row["reason"] == "no-rate"]
    assert (doubt["count"], doubt["examples"]) == (1, "b.ipfix: packet 1: ipfix")
