"""Traffic matrices from captures, by the Python API and by `leeward matrix capture`."""

import gzip
import json
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from leeward import Cluster
from leeward.errors import InputError
from leeward.matrix import capture, read

Run = Callable[..., subprocess.CompletedProcess[str]]
Packet = tuple[int, str, str, int]
"""Time in seconds, source, destination, length."""
EXAMPLES = Path(__file__).parents[2] / "examples"
START = 1_767_225_600


def pcap_bytes(packets: Sequence[Packet]) -> bytes:
    """Capture file of UDP packets, with a snap length of 42 bytes."""
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 42, 1)
    for second, source, target, length in packets:
        ends = ip_address(source).packed + ip_address(target).packed
        header = struct.pack(">BBHHHBBH", 0x45, 0, length - 14, 0, 0, 64, 17, 0) + ends
        frame = bytes(12) + b"\x08\x00" + header + struct.pack(">HHHH", 1, 2, length - 34, 0)
        data += struct.pack("<IIII", second, 0, len(frame), length) + frame
    return data


@pytest.fixture
def capture_file(tmp_path: Path) -> Path:
    path = tmp_path / "two.pcap"
    path.write_bytes(
        pcap_bytes([(START, "10.0.0.1", "10.0.1.1", 1000), (START + 7200, "10.0.1.1", "10.0.0.1", 60)])
    )
    return path


packet_strategy = st.tuples(
    st.integers(START, START + 600),
    *[st.sampled_from([f"10.0.0.{host}" for host in range(4)])] * 2,
    st.integers(42, 1500),
)


@given(st.lists(packet_strategy, min_size=1, max_size=30), st.sampled_from(["1s", "1min", "1h"]))
def test_a_matrix_has_the_bytes_of_all_packets(sent: list[Packet], interval: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sent.pcap"
        path.write_bytes(pcap_bytes(sent))
        result = capture(path, interval=interval)
    expected: Counter[tuple[int, str, str]] = Counter()
    for second, source, target, length in sent:
        expected[second // result.interval_s * result.interval_s, source, target] += length
    rows = [tuple(row[name] for name in ("t_s", "src", "dst", "bytes")) for row in result.cells.to_pylist()]
    assert rows == sorted((*key, length) for key, length in expected.items())
    series = result.series()
    assert series.bytes.sum() == sum(length for *_, length in sent)
    assert result.total()["bytes"].to_pylist() == sorted(result.total()["bytes"].to_pylist(), reverse=True)


def test_the_predictor_reads_the_written_matrix_unchanged(
    run: Run, capture_file: Path, tmp_path: Path
) -> None:
    expected = capture(capture_file).series()
    for name in ("m.csv", "m.parquet", "m.npy"):
        process = run("matrix", "capture", "two.pcap", "--out", name)
        assert (process.returncode, f"wrote {name}" in process.stderr) == (0, True), process.stderr
        series = read(tmp_path / name, tasks=expected.tasks if name == "m.npy" else None)
        assert (series.tasks, series.intervals) == (expected.tasks, 3)
        assert (series.bytes == expected.bytes).all()
        assert (series.pairs == expected.pairs).all()
    process = run("matrix", "predict", "m.csv", "-o", "json")
    assert json.loads(process.stdout)["intervals"] == 3


def test_the_total_matrix_is_accepted_by_place_tasks(run: Run, capture_file: Path, tmp_path: Path) -> None:
    names = "10.0.1.1,10.0.0.1,10.9.9.9"
    for name in ("m.npy", "m.csv"):
        assert (
            run("matrix", "capture", "two.pcap", "--total", "--only-tasks", names, "--out", name).returncode
            == 0
        )
    square = numpy.load(tmp_path / "m.npy")
    assert square.tolist() == [[0, 60, 0], [1000, 0, 0], [0, 0, 0]]
    assert numpy.loadtxt(tmp_path / "m.csv", delimiter=",").tolist() == square.tolist()
    cluster = EXAMPLES / "clusters" / "tenant.yaml"
    placed = run("place", "tasks", "--cluster", str(cluster), "--matrix", "m.npy", "-o", "json")
    assert len(json.loads(placed.stdout)["tasks"]) == 3


def test_host_and_rack_names_are_from_the_cluster_and_service_names_from_the_map() -> None:
    path, mapping = EXAMPLES / "captures" / "shuffle.pcap.gz", EXAMPLES / "captures" / "hosts.yaml"
    cluster = Cluster(EXAMPLES / "clusters" / "small.yaml")
    racks = capture(path, mapping=mapping, cluster=cluster, by="rack").total()
    hosts = capture(path, mapping=mapping, cluster=cluster).total()
    services = capture(path, mapping=mapping, by="service").total()
    assert {*racks["src"].to_pylist()} == {"r0", "r1", "r2", "r3"}
    assert {*hosts["src"].to_pylist()} == {"r0h0", "r1h0", "r1h1", "r2h0"}
    assert {*services["src"].to_pylist()} == {"split", "map", "reduce", "others"}
    # The matrix by service has all traffic. The matrix by rack leaves out clients outside the cluster.
    everything = capture(path).total()["bytes"].to_pylist()
    assert sum(services["bytes"].to_pylist()) == sum(everything) > sum(racks["bytes"].to_pylist())


def test_a_map_without_hosts_or_with_unknown_places_is_rejected(tmp_path: Path) -> None:
    path, mapping = EXAMPLES / "captures" / "shuffle.pcap.gz", tmp_path / "map.yaml"
    racks = {"racks": 2, "hosts_per_rack": 2, "nic": "10Gbps", "rack_link": "10Gbps"}
    cluster = Cluster(racks | {"pods": 1, "pod_link": "10Gbps"})
    mapping.write_text("addresses: {10.0.0.0/16: r0}\n")
    with pytest.raises(InputError, match="it names racks but no hosts: use it for a matrix by rack"):
        capture(path, mapping=mapping, cluster=cluster)
    assert len(capture(path, mapping=mapping, cluster=cluster, by="rack").total())
    mapping.write_text("addresses: {10.0.0.0/16: r0, 10.0.0.1: p0}\n")
    with pytest.raises(InputError, match="`p0`: no host or rack of the cluster has this name"):
        capture(path, mapping=mapping, cluster=cluster, by="rack")


def test_sflow_counter_samples_are_written_as_telemetry(run: Run, tmp_path: Path) -> None:
    record = struct.pack(">IIQIIQ6IQ6I", 7, 6, 10**11, 1, 3, 1 << 40, *range(6), 9, *range(6))
    sample = struct.pack(">IIIII", 1, 3, 1, 1, len(record)) + record
    datagram = struct.pack(">IIIIIIIII", 5, 1, 0x0A000009, 0, 1, 1, 1, 2, len(sample)) + sample
    frame = pcap_bytes([(START, "10.0.0.9", "10.0.0.8", 42)])
    packet = bytearray(frame[40:] + datagram)
    packet[16:18] = struct.pack(">H", 28 + len(datagram))
    packet[36:40] = struct.pack(">HH", 6343, 8 + len(datagram))
    head = struct.pack("<IIII", START, 0, len(packet), len(packet))
    (tmp_path / "s.pcap").write_bytes(frame[:24] + head + packet)
    process = run("matrix", "capture", "s.pcap", "--counters", "c.parquet")
    assert (process.returncode, "no traffic" in process.stderr) == (2, True)
    [row] = parquet.read_table(tmp_path / "c.parquet").to_pylist()
    assert row == {
        "t_ms": START * 1000,
        "device": "10.0.0.9",
        "interface": "7",
        "in_octets": 1 << 40,
        "out_octets": 9,
        "speed_bps": 10**11,
    }


def test_the_table_and_the_json_list_discarded_packets(run: Run, capture_file: Path, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("10.0.0.1 a\n10.0.1.1 b\n")
    whole = capture_file.read_bytes()
    capture_file.write_bytes(whole + pcap_bytes([(START, "10.0.0.1", "10.7.7.7", 500)])[24:] + b"cut")
    process = run("matrix", "capture", "two.pcap", "--addresses", "hosts")
    assert process.returncode == 0
    assert [line.split() for line in process.stdout.splitlines()] == [
        ["incomplete,", "without:", "1", "cut-off-record", "(3", "B)"],
        ["FROM", "TO", "BYTES", "PACKETS", "95", "%"],
        ["a", "b", "1", "kB", "1"],
        ["b", "a", "60", "B", "1"],
        ["all", "pairs", "1.06", "kB", "2"],
    ]
    assert "not counted: 1 no-place, destination, 500 B" in process.stderr
    assert "not counted: 1 cut-off-record, 3 B" in process.stderr
    assert "addresses outside of the mapping: 10.7.7.7 (500 B)" in process.stderr
    document = json.loads(run("matrix", "capture", "two.pcap", "--addresses", "hosts", "-o", "json").stdout)
    assert [row["bytes"] for row in document["cells"]] == [1000, 60]
    assert {row["reason"] for row in document["discards"]} == {"no-place", "cut-off-record"}
    assert document["unknown"] == [{"address": "10.7.7.7", "bytes": 500}]


def test_sampled_packets_are_scaled_and_have_a_standard_error(run: Run, capture_file: Path) -> None:
    result = capture(capture_file, sampling=100).cells.to_pylist()
    assert [row["bytes"] for row in result] == [100_000, 6000]
    assert result[0]["stderr"] == pytest.approx((100 * 99) ** 0.5 * 1000)
    assert "±195 %" in run("matrix", "capture", "two.pcap", "--sampling", "100").stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["none.pcap"], "none.pcap: no such file"),
        (["."], ".: is a directory; expected a file"),
        (
            ["hosts.csv"],
            "hosts.csv: first bytes 61646472 (text); expected pcap, pcapng or a file of IPFIX messages",
        ),
        (["two.pcap", "--by", "pod"], "--by: `pod`: expected one of address, host, rack, service"),
        (["two.pcap", "--by", "rack"], "--addresses: required for a matrix by rack: a file with the owner"),
        (
            ["two.pcap", "--addresses", "hosts.csv", "--by", "service"],
            "hosts.csv: no services: a matrix by service needs at least one",
        ),
        (["two.pcap", "--count", "wire"], "--count: `wire`: expected one of frame, ip"),
        (["two.pcap", "--content", "all"], "--content: `all`: expected one of auto, packets, exports"),
        (["two.pcap", "--port", "0"], "--port: 0: expected ports from 1 to 65535"),
        (["two.pcap", "--sampling", "0"], "--sampling: 0: expected one packet in 1 to 4294967295"),
        (["two.pcap", "--interval", "7min"], "--interval: `7min`: expected a time that divides a day"),
        (
            ["two.pcap", "--out", "m.txt"],
            "--out: `m.txt`: expected a name that ends in .csv or .parquet or .npy",
        ),
        (["two.pcap", "--total", "--out", "m.parquet"], "expected a name that ends in .csv or .npy"),
        (
            ["two.pcap", "--total", "--out", "m.npy", "--only-tasks", "a"],
            "not one of the 1 tasks that were named",
        ),
        (["two.pcap", "./two.pcap"], "FILE: `./two.pcap`: the same file as `two.pcap`"),
        (["two.pcap", "--cluster", "c.yaml"], "--cluster: only valid with a mapping"),
        (
            ["two.pcap", "--addresses", "hosts.csv", "--by", "address"],
            "--addresses: a matrix by address uses no mapping",
        ),
        (["two.pcap", "--total"], "--total: requires --out, the file for the matrix"),
        (
            ["two.pcap", "--only-tasks", "a,b"],
            "--only-tasks: only valid for square matrices, with --out NAME.npy or --total",
        ),
        (
            ["two.pcap", "--only-tasks", "a,b", "--out", "m.csv"],
            "--only-tasks: only valid for square matrices",
        ),
        (["two.pcap", "--content", "exports", "--out", "m.npy"], "no traffic between known places"),
        (
            ["two.pcap", "--addresses", "wrong.csv", "--cluster", "c.yaml"],
            "no host or rack of the cluster has this name",
        ),
    ],
)
def test_invalid_captures_and_options_are_reported_and_leave_no_files(
    run: Run, capture_file: Path, tmp_path: Path, arguments: list[str], error: str
) -> None:
    (tmp_path / "hosts.csv").write_text("address,host\n10.0.0.1,a\n")
    (tmp_path / "wrong.csv").write_text("address,host\n10.0.0.1,nobody\n")
    (tmp_path / "c.yaml").write_text("racks: 1\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 1\n")
    before = {*tmp_path.iterdir()}
    process = run("matrix", "capture", *arguments)
    assert (process.returncode, process.stdout) == (2, "")
    assert error in process.stderr
    assert "Traceback" not in process.stderr
    assert {*tmp_path.iterdir()} == before


def test_compressed_and_several_captures_give_one_matrix(capture_file: Path, tmp_path: Path) -> None:
    packed = tmp_path / "two.pcap.gz"
    packed.write_bytes(gzip.compress(capture_file.read_bytes()))
    updates: list[int] = []
    both = capture([capture_file, packed], progress=updates.append)
    assert both.cells["bytes"].to_pylist() == [2000, 120]
    assert sum(updates) == 2 * len(capture_file.read_bytes())
    assert both.sources["name"].to_pylist() == [str(capture_file), str(packed)]


def test_invalid_arguments_are_named(capture_file: Path) -> None:
    cases: list[dict[str, Any]] = [
        {"ports": [70_000]},
        {"sampling": 0},
        {"interval": "1"},
        {"by": "x"},
        {"size": "x"},
    ]
    for arguments in cases:
        with pytest.raises(InputError) as raised:
            capture(capture_file, **arguments)
        assert raised.value.file == next(iter(arguments))
    assert isinstance(capture(capture_file).cells, pyarrow.Table)
