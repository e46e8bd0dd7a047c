"""Other programs beside Leeward: missing ones are skipped with a reason, and their inputs are right."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "benchmarks"))

import beside_captures  # noqa: E402 (the module is not part of the package)
import beside_scipy  # noqa: E402
import beside_simgrid  # noqa: E402
import fluid  # noqa: E402
import peers  # noqa: E402

from leeward import circuits  # noqa: E402


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "figures"
    monkeypatch.setenv("LEEWARD_BENCH", str(path))
    return path


def test_a_program_has_a_version_or_is_not_installed() -> None:
    assert peers.program_version([sys.executable, "--version"]) == sys.version.split()[0]
    assert peers.program_version(["no-such-program", "--version"]) is None
    with pytest.raises(ValueError, match="no version in its output"):
        peers.program_version([sys.executable, "-c", "print('none')"])


def test_a_package_has_a_version_or_is_not_installed() -> None:
    assert peers.package_version("numpy") == numpy.__version__
    assert peers.package_version("no-such-package") is None


def test_times_are_of_the_whole_process_and_a_failure_is_an_error() -> None:
    times = peers.timed([sys.executable, "-c", "import time; time.sleep(0.05)"])
    assert times.elapsed >= 0.05
    assert 0 < times.cpu < times.elapsed
    with pytest.raises(subprocess.CalledProcessError):
        peers.timed([sys.executable, "-c", "raise SystemExit(3)"])


def test_missing_readers_of_captures_are_recorded_with_a_reason(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert beside_captures.installed() == ["Leeward"]
    assert [json.loads(line) for line in recorded.read_text().splitlines()] == [
        {"peer": "nfdump", "missing": "the package nfdump is not installed"},
        {"peer": "tshark", "missing": "the package tshark is not installed"},
    ]


def test_a_missing_simgrid_is_recorded_with_a_reason(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(beside_simgrid, "HEADER", tmp_path / "s4u.hpp")
    monkeypatch.setattr(sys, "argv", ["beside_simgrid.py"])
    beside_simgrid.main()
    reason = "libsimgrid-dev or g++ is not installed"
    assert json.loads(recorded.read_text()) == {"peer": "SimGrid", "missing": reason}


def test_a_capture_has_packets_of_all_sizes_in_turn(tmp_path: Path) -> None:
    path, sizes = tmp_path / "capture.pcap", (64, 594, 1500)
    count = beside_captures.write_capture(path, sizes, 1)
    data, at = path.read_bytes(), 24
    found: list[int] = []
    assert struct.unpack("<I", data[:4]) == (0xA1B2C3D4,)
    while at < len(data):
        seconds, micros, captured, length = struct.unpack("<4I", data[at : at + 16])
        source, target = struct.unpack(">2I", data[at + 42 : at + 50])
        assert (seconds, micros, captured) == (beside_captures.START_S, len(found), length)
        assert all(0 <= address - 0x0A000000 < beside_captures.HOSTS for address in (source, target))
        found.append(length)
        at += 16 + captured
    assert found == [*sizes] * (count // 3)
    assert at == len(data)
    assert 0.99e6 < len(data) <= 1e6 + 24


def test_flows_for_simgrid_are_between_racks_and_have_whole_bytes() -> None:
    flows = beside_simgrid.between_racks(2_000, 0.7)
    source, target = (flows[name].to_numpy() // fluid.HOSTS_PER_RACK for name in ("src", "dst"))
    sizes = flows["size_bytes"].to_numpy()
    assert (source != target).all()
    assert (target < fluid.RACKS).all()
    assert (sizes == numpy.floor(sizes)).all()
    assert sizes.min() >= 1
    assert flows.num_rows == 2_000


def test_the_schedule_by_hand_fits_a_week_and_serves_about_as_much() -> None:
    demand = beside_scipy.skewed(8)
    by_hand, ours = (beside_scipy.fastest(one, demand)[1] for one in (beside_scipy.eclipse, "eclipse"))
    made = circuits.schedule(demand, beside_scipy.eclipse)
    assert made.length_s <= made.week_s * (1 + 1e-9)
    assert by_hand == pytest.approx(ours, abs=0.03)
