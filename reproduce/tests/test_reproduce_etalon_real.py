"""Etalon's files with HDFS: measures, rows and rules of runs, from jobs of this file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from leeward.errors import InputError
from leeward_reproduce.etalon import files, paper
from leeward_reproduce.etalon.files import FULL, GIB, WriteRun
from leeward_reproduce.etalon.kernels.bench import Both
from leeward_reproduce.etalon.real import bench, figures
from leeward_reproduce.etalon.real.perform import FIGURES
from leeward_reproduce.hdfs import circuits, dfsio
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


class FakeCluster:
    """A cluster in the place of a real one."""

    addresses = ADDRESSES
    circuits = SimpleNamespace(notes=[])

    def __init__(self, kind: str, dilation: int, policy: str) -> None:
        self.kind = kind
        self.dilation = dilation
        self.policy = policy

    def use(self, policy: str) -> None:
        self.policy = policy


Tried = list[tuple[str, str, int]]
"""Kind, system and dilation of each run."""


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Tried:
    """The runs that are made.

    Packets of reHDFS are late under 640 with queues that grow, and always with reTCP. Those of HDFS are late
    under 640 and 960 on the plain network.
    """
    made: Tried = []

    @contextmanager
    def up(scenario: dict[str, str], dilation: int, _: int, policy: str) -> Iterator[FakeCluster]:
        yield FakeCluster(scenario["kind"], dilation, policy)

    def run(
        cluster: FakeCluster,
        mappers: int,
        size: int,
        name: str,
        _: float,
        progress: Callable[[float], object],
    ) -> Job:
        assert (mappers, size, cluster.policy) == (8, 100 << 20, bench.SYSTEMS[name])
        made.append((cluster.kind, name, cluster.dilation))
        progress(0.5)
        least = {("+Resize", "reHDFS"): 960, ("", "HDFS"): 1280, ("+reTCP", "reHDFS"): 10_000}
        is_late = cluster.dilation < least.get((cluster.kind, name), 0)
        return job(1, 64.0, replace(CARRIED, late_share=0.2) if is_late else CARRIED)

    monkeypatch.setattr(circuits, "up", up)
    monkeypatch.setattr(dfsio, "run", run)
    monkeypatch.setattr(bench, "scenario_of", lambda _name, kind, _size: {"kind": kind})
    monkeypatch.setattr(files, "measure_writes", lambda _: example_run(2.0, 1.0))
    monkeypatch.setattr("leeward.packets.simulate", lambda _: None)
    return made


def test_runs_of_a_kind_count_if_both_systems_are_in_time_under_the_same_dilation(
    tried: Tried, tmp_path: Path
) -> None:
    shares: list[float] = []
    found = bench.Bench(tmp_path, "100MiB", shares.append).runs()
    assert list(found) == list(paper.FILES_SYSTEMS)
    both = [("", "reHDFS"), ("", "HDFS")]
    assert tried[:6] == [(*one, dilation) for dilation in (640, 960, 1280) for one in both]
    # A system that is rejected ends the runs under a dilation.
    resize = [("reHDFS", 640), ("reHDFS", 960), ("HDFS", 960)]
    assert tried[6:9] == [("+Resize", *one) for one in resize]
    assert tried[9:] == [("+reTCP", "reHDFS", dilation) for dilation in bench.DILATIONS]
    late = "packets late by 2.0 us at p99, processors 60% busy"
    rejected = f"reHDFS+Resize rejected: dilation 640: {late}, and 20% of the time over 5us"
    for name in bench.SYSTEMS:
        assert found[name + "+Resize"].note == f"dilation 960: {late}; {rejected}"
        assert found[name].note.startswith(f"dilation 1280: {late}; HDFS rejected: dilation 960: {late}")
        run = found[name].lab
        assert run is not None
        assert run.writes == pytest.approx(numpy.full(8, 50.0)), "64 s under dilation 1280"
        assert found[name + "+reTCP"].lab is None
        assert found[name + "+reTCP"].note.count("reHDFS+reTCP rejected: ") == len(bench.DILATIONS)
    assert shares[-1] == 1.0
    assert all(0 < share <= 1 for share in shares)


def test_the_bench_reads_what_it_has_and_does_not_try_a_rejected_dilation_again(
    tried: Tried, tmp_path: Path
) -> None:
    before = bench.Bench(tmp_path, "100MiB", lambda _: None).runs()
    tried.clear()
    again = bench.Bench(tmp_path, "100MiB", lambda _: None).runs()
    assert tried == []
    assert [one.note for one in again.values()] == [one.note for one in before.values()]
    assert again["reHDFS"].lab is not None
    assert again["reHDFS"].lab.gbps == pytest.approx(8 * (825 << 20) / GIB / 0.05 / 2)
    assert again["reHDFS+reTCP"].lab is None


def test_a_kind_without_the_runs_of_both_systems_runs_again(
    tried: Tried, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(cluster: FakeCluster, policy: str) -> None:
        raise OSError("a process failed")

    with monkeypatch.context() as broken:
        broken.setattr(FakeCluster, "use", fail)
        with pytest.raises(OSError, match="a process failed"):
            bench.Bench(tmp_path, "100MiB", lambda _: None).runs()
    assert tried == [("", "reHDFS", 640)]
    bench.Bench(tmp_path, "100MiB", lambda _: None).runs()
    assert tried[1:3] == [("", "reHDFS", 640), ("", "HDFS", 640)]


def test_lengths_and_several_runs_at_once_are_errors() -> None:
    assert runs("etalon", None, 1, real=True) == 6
    with pytest.raises(InputError, match="`1s`: these runs end when their files are written"):
        reproduce("etalon", real=True, seeds=1, horizon="1s")
    for seeds, jobs in ((1, 2), (2, None)):
        with pytest.raises(InputError, match="2: the lab makes one run at a time"):
            reproduce("etalon", real=True, seeds=seeds, jobs=jobs)
    with pytest.raises(InputError, match="unknown figure `16`; there are: 19, 20, 21, 22"):
        reproduce("etalon", ["16"], real=True, seeds=1)
