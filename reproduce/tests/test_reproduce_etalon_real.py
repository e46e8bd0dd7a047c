"""Etalon's files with HDFS: measures, rows and rules of runs, from jobs of this file."""

import json
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from leeward.errors import InputError
from leeward_reproduce.etalon import files, paper
from leeward_reproduce.etalon.files import FULL, GIB, WriteRun
from leeward_reproduce.etalon.kernels.bench import Both
from leeward_reproduce.etalon.real import bench, figures
from leeward_reproduce.etalon.real.perform import FIGURES
from leeward_reproduce.hdfs.dfsio import Job
from leeward_reproduce.hdfs.traces import WRITE, Trace
from leeward_reproduce.hdfs.views import Carried
from leeward_reproduce.perform import reproduce, runs

ADDRESSES = {f"10.{rack}.0.2": f"r{rack}h0" for rack in range(8)}
CARRIED = Carried(1 << 30, 3 << 30, 2e-6, 0.01, 0.02, 0, 0.6)


def job(step: int, seconds: float, carried: Carried = CARRIED) -> Job:
    """A job in which each rack writes a block of 100 MiB, with a copy `step` racks further."""
    size = 100 << 20
    hosts = list(ADDRESSES)
    writes = [Trace(WRITE, host, host, size, f"blk_{at}", 1000.0, seconds) for at, host in enumerate(hosts)]
    copies = [replace(one, destination=hosts[(at + step) % 8]) for at, one in enumerate(writes)]
    # The rest of a file is no full block.
    return Job([*writes, replace(writes[0], bytes=size // 4)], copies, [seconds] * 8, carried)


def test_times_and_rates_of_a_job_are_in_virtual_time() -> None:
    run = bench.measure(job(1, 64.0), ADDRESSES, 640)
    assert run.writes == pytest.approx([100.0] * 8)
    assert run.job == pytest.approx(100.0)
    assert run.gbps == pytest.approx(8 * (825 << 20) / GIB / 0.1 / 2)
    assert (run.packet_gib, run.circuit_gib, run.racks, run.worst) == (1.0, 3.0, 1.0, 100.0)
    assert FULL < 100 << 20


def test_a_run_whose_packets_are_late_or_lost_has_a_reason_and_no_values() -> None:
    good, note = bench.judge(job(1, 64.0), ADDRESSES, 640, ["tcp.ack_delay: 1ms"])
    assert good is not None
    assert note == "dilation 640: packets late by 2.0 us at p99, processors 60% busy; tcp.ack_delay: 1ms"
    for carried, reason in (
        (replace(CARRIED, late_share=0.2), "and 20% of the time over 5us"),
        (replace(CARRIED, lost_packets=3), "and 3 packets lost outside the switch"),
        (replace(CARRIED, missed_share=0.3), "and 30% of the time without views"),
        (replace(CARRIED, late_s=None), "no packets, processors 60% busy"),
    ):
        run, note = bench.judge(job(1, 64.0, carried), ADDRESSES, 640, [])
        assert run is None
        assert note.startswith("rejected: dilation 640")
        assert note.endswith(reason)


def example_run(milliseconds: float, packet_gib: float) -> WriteRun:
    return WriteRun(numpy.full(64, milliseconds), milliseconds, 8 / milliseconds, packet_gib, 3.0, 1.0, 100.0)


def results() -> dict[str, Both[WriteRun]]:
    """Runs of all systems. reHDFS is five times as fast in the lab, and four times in the simulator."""
    slow, fast = example_run(500.0, 2.0), example_run(100.0, 0.1)
    return {
        name: Both(example_run(125.0, 0.1), fast, {}, "a")
        if name.startswith("re")
        else Both(slow, slow, {}, "b")
        for name in paper.FILES_SYSTEMS
    }


def test_rows_have_the_targets_and_the_values_of_paper_simulator_and_cluster() -> None:
    rows = FIGURES["19"].rows(results())
    assert {row.figure for row in rows} == {"19"}
    by_name = {row.quantity: row for row in rows}
    median = by_name["writes faster under reHDFS: median"]
    assert median.paper == 4.7
    assert median.simulator == pytest.approx(4.0)
    assert median.ours == pytest.approx(5.0)
    assert (median.expected, median.met) == ("at least 3x", True)
    assert by_name["writes faster under reHDFS: p99"].met is True
    assert by_name["sent by packets: reHDFS against HDFS"].ours == pytest.approx(0.05)
    assert by_name["job shorter under reHDFS"].ours == pytest.approx(80.0)
    for system, value in zip(paper.FILES_SYSTEMS, paper.FILES_TAILS, strict=True):
        assert by_name[f"p99 of writes: {system}"].paper == value
    assert by_name["p99 of writes: largest difference of real and simulator"].met is True


def test_a_system_without_a_run_leaves_its_rows_without_values() -> None:
    runs = results() | {"reHDFS": Both(example_run(125.0, 0.1), None, {}, "rejected: late")}
    by_name = {row.quantity: row for row in figures.writes(runs)}
    for name in ("writes faster under reHDFS: p99", "job shorter under reHDFS", "p99 of writes: reHDFS"):
        assert (by_name[name].ours, by_name[name].met) == (None, None)
    assert "rejected: late" in by_name["writes faster under reHDFS: p99"].note


def test_the_bench_tries_larger_dilations_and_reads_what_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried: list[tuple[str, int]] = []

    def measure(self: bench.Bench, kind: str, names: list[str], dilation: int) -> None:
        for name in names:
            tried.append((name + kind, dilation))
            if kind == "+reTCP" or (name == "reHDFS" and dilation == bench.DILATIONS[0]):
                self._reject(name + kind, dilation, f"late under {dilation}")
            else:
                self._store(name + kind, example_run(1.0, 1.0), f"dilation {dilation}")

    monkeypatch.setattr(bench.Bench, "_measure", measure)
    monkeypatch.setattr(files, "measure_writes", lambda _: example_run(2.0, 1.0))
    monkeypatch.setattr("leeward.packets.simulate", lambda _: None)
    shares: list[float] = []
    found = bench.Bench(tmp_path, "100MiB", shares.append).runs()
    assert list(found) == list(paper.FILES_SYSTEMS)
    assert found["HDFS"].note == f"dilation {bench.DILATIONS[0]}"
    late = [f"late under {dilation}" for dilation in bench.DILATIONS]
    assert found["reHDFS"].note == f"dilation {bench.DILATIONS[1]}; {late[0]}"
    assert found["HDFS+reTCP"].lab is None
    assert found["HDFS+reTCP"].note == "; ".join(reversed(late))
    assert [dilation for name, dilation in tried if name == "HDFS+reTCP"] == list(bench.DILATIONS)
    assert shares[-1] == 1.0
    tried.clear()
    again = bench.Bench(tmp_path, "100MiB", shares.append).runs()
    assert tried == [], "a rejected dilation is not tried again"
    assert again["HDFS+reTCP"].note == found["HDFS+reTCP"].note
    assert again["reHDFS"].lab is not None
    assert again["reHDFS"].lab.writes == pytest.approx(numpy.ones(64))
    assert json.loads((tmp_path / "HDFS" / bench.RESULT).read_text())["run"]["gbps"] == 8.0


def test_lengths_and_several_runs_at_once_are_errors() -> None:
    assert runs("etalon", None, 1, real=True) == 6
    with pytest.raises(InputError, match="`1s`: these runs end when their files are written"):
        reproduce("etalon", real=True, seeds=1, horizon="1s")
    for seeds, jobs in ((1, 2), (2, None)):
        with pytest.raises(InputError, match="2: the lab makes one run at a time"):
            reproduce("etalon", real=True, seeds=seeds, jobs=jobs)
    with pytest.raises(InputError, match="unknown figure `16`; there are: 19, 20, 21, 22"):
        reproduce("etalon", ["16"], real=True, seeds=1)
