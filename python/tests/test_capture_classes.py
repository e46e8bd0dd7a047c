"""Loads of links by class of service, from captures, and what `leeward impact` makes of them."""

import csv
import json
import struct
import subprocess
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path

import pytest
from pyarrow import parquet

from leeward import Cluster
from leeward.errors import InputError
from leeward.matrix import capture, class_loads

Run = Callable[..., subprocess.CompletedProcess[str]]
Packet = tuple[int, str, str, int, int]
"""Time in seconds, source, destination, DSCP, length."""
START = 1_767_225_600
RACKS = {"racks": 2, "hosts_per_rack": 2, "nic": "1Gbps", "rack_link": "1Gbps"}
HOSTS = "10.0.0.1 r0h0\n10.0.0.2 r0h1\n10.0.1.1 r1h0\n10.0.1.2 r1h1\n"
PC, NC, BE = 46, 34, 0


def pcap_bytes(packets: Sequence[Packet]) -> bytes:
    """Capture file of UDP packets with their DSCP, with a snap length of 42 bytes."""
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 42, 1)
    for second, source, target, dscp, length in packets:
        ends = ip_address(source).packed + ip_address(target).packed
        header = struct.pack(">BBHHHBBH", 0x45, dscp << 2 | 1, length - 14, 0, 0, 64, 17, 0) + ends
        frame = bytes(12) + b"\x08\x00" + header + struct.pack(">HHHH", 1, 2, length - 34, 0)
        data += struct.pack("<IIII", second, 0, len(frame), length) + frame
    return data


@pytest.fixture
def three_minutes(tmp_path: Path) -> Path:
    """Ten seconds of packets in each of five half minutes, and the files of the cluster."""
    path = tmp_path / "three.pcap"
    packets: list[Packet] = []
    for half in range(5):
        for second in range(10):
            at = START + 30 * half + second
            packets.append((at, "10.0.0.1", "10.0.1.1", PC, 1500))
            packets += [(at, "10.0.0.2", "10.0.1.1", BE, 1000)] * half
            packets.append((at, "10.0.0.1", "10.0.0.2", NC, 300))
    path.write_bytes(pcap_bytes(packets))
    (tmp_path / "hosts").write_text(HOSTS)
    (tmp_path / "c.yaml").write_text("\n".join(f"{name}: {value}" for name, value in RACKS.items()) + "\n")
    return path


CLASSES: dict[str, str | int | Sequence[str | int]] = {"PC": "ef", "NC": ["af41", 36], "BE": "*"}
BY_CLASS = ("--by", "class", "--cluster", "c.yaml", "--addresses", "hosts", "--interval", "30s")
NAMED = ("--classes", "PC=ef,NC=af41+36,BE=*")


def test_each_link_has_the_load_of_each_class_in_each_whole_interval(three_minutes: Path) -> None:
    result = class_loads(
        three_minutes,
        mapping=three_minutes.parent / "hosts",
        cluster=Cluster(RACKS),
        classes=CLASSES,
        interval="30s",
    )
    assert result.classes == ("PC", "NC", "BE")
    loads = {
        (row["t_s"], row["link"], row["class"]): row["load_bps"] * 30 / 8 for row in result.loads.to_pylist()
    }
    # Four hosts and two racks have two links each; the first and the last half minute are left out.
    assert len(loads) == 3 * 12 * 3
    for half in (1, 2, 3):
        end = START + 30 * half + 30
        for link in ("r0:uplink", "r1:downlink", "r1h0:ingress"):
            assert loads[end, link, "PC"] == pytest.approx(15_000)
            assert loads[end, link, "BE"] == pytest.approx(10_000 * half)
            assert loads[end, link, "NC"] == 0
        assert loads[end, "r0h1:ingress", "NC"] == pytest.approx(3000)
        assert loads[end, "r1h1:ingress", "PC"] == loads[end, "r1:uplink", "BE"] == 0
    total = {(row["link"], row["class"]): row for row in result.total().to_pylist()}
    assert total["r0:uplink", "BE"]["bytes"] == 60_000
    assert total["r0:uplink", "BE"]["most_bps"] == pytest.approx(30_000 * 8 / 30)
    assert total["r0:uplink", "BE"]["mean_bps"] == pytest.approx(20_000 * 8 / 30)
    assert result.of("PC").column_names == ["t_s", "link", "load_bps"]
    with pytest.raises(InputError, match="`XX`: expected one of PC, NC, BE"):
        result.of("XX")


def test_without_names_each_code_point_is_a_class(three_minutes: Path) -> None:
    folder = three_minutes.parent
    result = class_loads(
        three_minutes, mapping=folder / "hosts", cluster=Cluster(RACKS), interval="30s", sampling=100
    )
    assert result.classes == ("default", "af41", "ef")
    row = result.total().to_pylist()[0]
    assert (row["link"], row["class"], row["bytes"]) == ("r0:uplink", "default", 6_000_000)
    assert row["stderr"] == pytest.approx((100 * 99 * 60) ** 0.5 * 1000)


def test_the_files_of_classes_are_telemetry_for_effective_utilizations(
    run: Run, three_minutes: Path, tmp_path: Path
) -> None:
    names = "PC=pc.parquet,NC=nc.csv,BE=be.parquet"
    result = run("matrix", "capture", "three.pcap", *BY_CLASS, *NAMED, "--class-out", names, "--out", "a.csv")
    assert result.returncode == 0, result.stderr
    assert [line.split()[:2] for line in result.stdout.splitlines()][:2] == [
        ["LINK", "CLASS"],
        ["r0:uplink", "BE"],
    ]
    assert parquet.read_table(tmp_path / "pc.parquet").column_names == ["t_s", "link", "load_bps"]
    with (tmp_path / "a.csv").open(newline="") as file:
        assert len([*csv.DictReader(file)]) == 3 * 12 * 3
    rows = [
        f"{START + 30 * half + 20},{5 + at},file-read,r0h0,r1h0,{name}"
        for half in (1, 2)
        for at in range(4)
        for name in ("PC", "BE")
    ]
    (tmp_path / "l.csv").write_text("\n".join(["t_s,latency_ms,operation,src,dst,class", *rows]) + "\n")
    # Links of 50 kbit/s, so that the few packets of the capture fill a part of them.
    slow = "racks: 2\nhosts_per_rack: 2\nnic: 1Mbps\nrack_link: 50kbps\n"
    (tmp_path / "slow.yaml").write_text(slow)
    effective = run(
        *("impact", "--cluster", "slow.yaml", "--latency", "l.csv", "--class-telemetry", names),
        *("--weights", "PC=8,NC=4,BE=1", "--by", "class", "--least", "2", "--resamples", "0", "-o", "json"),
    )
    assert effective.returncode == 0, effective.stderr
    document = json.loads(effective.stdout)
    low = {curve["split"]["class"]: curve["buckets"][0]["from"] for curve in document["curves"]}
    # PC sends 4 kbit/s, 8 % of the link, and BE at first 2.7 kbit/s, 5.3 %. Then the effective utilization of
    # BE is 8 x 8 % + 5.3 %, and that of PC 8 % + 5.3 % / 8.
    assert low["PC"] == pytest.approx(0.05)
    assert low["BE"] == pytest.approx(0.65)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((*BY_CLASS[:4], "--interval", "30s"), "--addresses: required with --by class"),
        (("--by", "class", "--addresses", "hosts"), "--cluster: required with --by class"),
        ((*BY_CLASS, "--total", "--out", "m.csv"), "--total: not valid with --by class"),
        ((*BY_CLASS, "--out", "m.npy"), "--out: `m.npy`: expected a name that ends in .csv or .parquet"),
        ((*BY_CLASS, "--class-out", "PC=pc.npy"), "--class-out: `pc.npy`: expected a name that ends in .csv"),
        ((*BY_CLASS, "--class-out", "PC"), "--class-out: `PC`: expected CLASS=FILE"),
        ((*BY_CLASS, "--class-out", "PC=a.csv,NC=a.csv"), "--class-out: PC: `a.csv`: expected another file"),
        ((*BY_CLASS, *NAMED, "--class-out", "XX=a.csv"), "--class-out: `XX`: expected one of PC, NC, BE"),
        ((*BY_CLASS, "--classes", "PC=fast"), "--classes: PC: `fast`: expected a code point from 0 to 63"),
        ((*BY_CLASS, "--classes", "PC=ef,PC=cs1"), "--classes: PC: given twice"),
        ((*BY_CLASS, "--classes", "PC=ef,NC=46"), "--classes: NC: `46`: also a code point of PC"),
        ((*BY_CLASS, "--interval", "2min"), "--interval: expected at least three intervals"),
        ((*BY_CLASS, "--classes", "XX=cs7"), "three.pcap: no traffic of these classes between known places"),
        (("--classes", "PC=ef"), "--classes: only valid with --by class"),
        (("--class-out", "PC=a.csv"), "--class-out: only valid with --by class"),
    ],
)
def test_invalid_options_are_named_and_leave_no_files(
    run: Run, three_minutes: Path, tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    before = {*tmp_path.iterdir()}
    result = run("matrix", "capture", three_minutes.name, *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"error: {error}" in result.stderr
    assert "Traceback" not in result.stderr
    assert {*tmp_path.iterdir()} == before


def test_intervals_of_classes_last_a_minute_by_default(run: Run, three_minutes: Path) -> None:
    given = ("matrix", "capture", three_minutes.name, *BY_CLASS[:-2], "-o", "json")
    assert json.loads(run(*given).stdout)["interval_s"] == 60


def test_packets_without_a_class_are_listed(run: Run, three_minutes: Path) -> None:
    given = ("matrix", "capture", three_minutes.name, *BY_CLASS, "--classes", "PC=ef", "-o", "json")
    document = json.loads(run(*given).stdout)
    lost = {row["detail"]: row["count"] for row in document["discards"] if row["reason"] == "no-class"}
    assert lost == {"default": 100, "af41": 50}
    assert {row["class"] for row in document["loads"]} == {"PC"}


def test_a_matrix_of_pairs_has_no_classes(three_minutes: Path) -> None:
    with pytest.raises(InputError, match="by: `class`: loads of links by class are read by `class_loads`"):
        capture(three_minutes, by="class")
