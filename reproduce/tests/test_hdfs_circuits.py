"""HDFS over the circuits of a lab: traces of DataNodes, views of the lab, TestDFSIO between three racks."""

import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from leeward_reproduce.hdfs import circuits, class_path, dfsio, memory, missing, traces
from leeward_reproduce.hdfs.machine import MEMORY_FOLDER
from leeward_reproduce.hdfs.processes import Process, kill
from leeward_reproduce.hdfs.views import Watch, watching
from support.labs import left
from support.parts import lack

AT = "2026-11-30 02:50:01,250"
WRITE = (
    f"{AT} INFO DataNode.clienttrace: src: /10.0.0.2:51234, dest: /10.1.0.2:9866, volume: null,"
    " bytes: 1048576, op: HDFS_WRITE, cliID: DFSClient_NONMAPREDUCE_-1_1, offset: 0, srvID: 1f-2e, blockid:"
    " BP-1-127.0.0.1-2:blk_1073741825_1001, duration(ns): 500000000"
)


def test_a_client_trace_has_addresses_bytes_and_times() -> None:
    read = WRITE.replace("HDFS_WRITE", "HDFS_READ").replace("/10.1.0.2", "r0h0/10.0.0.2")
    other = WRITE.replace("HDFS_WRITE", "REQUEST_SHORT_CIRCUIT_FDS")
    lines = ["Exception: duration(ns): none", WRITE, f"{AT} INFO NameNode: started", read, other]
    one, two = traces.read(lines)
    assert (one.operation, one.source, one.destination) == (traces.WRITE, "10.0.0.2", "10.1.0.2")
    assert (one.bytes, one.block, one.seconds) == (1 << 20, "blk_1073741825", 0.5)
    assert one.ended_s == datetime(2026, 11, 30, 2, 50, 1, 250_000).timestamp()
    assert one.began_s == one.ended_s - 0.5
    assert (one.crosses, two.crosses) == (True, False)
    assert (two.operation, two.destination) == (traces.READ, "10.0.0.2")


def test_only_datanodes_have_traces_and_only_later_ones_count(tmp_path: Path) -> None:
    ended = datetime.strptime(AT, "%Y-%m-%d %H:%M:%S,%f").timestamp()
    processes = []
    for name in ("DataNode r0h0", "NameNode"):
        log = tmp_path / name
        log.write_text(WRITE + "\n")
        processes.append(Process(name, subprocess.Popen([sys.executable, "-c", ""], text=True), log))
    assert len(traces.of_datanodes(processes, ended - 1)) == 1
    assert traces.of_datanodes(processes, ended - 0.4) == []
    kill(processes)


def test_a_watch_counts_bytes_since_its_start_and_late_views() -> None:
    late = iter([9.0, None, 1e-6, 8e-6, *[2e-6] * 1000])
    sent = iter(range(0, 1_000_000, 10))

    def view() -> dict[str, Any]:
        count = next(sent)
        return {
            "at_s": count / 10 * 0.25 / 640,
            "dilation": 640,
            "packet_bytes": [count, 5],
            "circuit_bytes": [100, 2 * count],
            "late_p99_s": next(late),
            "lost_packets": count // 10,
        }

    with watching(view) as watch:
        for _ in range(3):
            watch.look()
        assert watch.bytes == 3 * (10 + 20)
    carried = watch.carried(5e-6)
    views = carried.lost_packets
    assert views >= 4
    assert (carried.packet_bytes, carried.circuit_bytes) == (10 * views, 20 * views)
    # The first view is of the time before, and one without packets has no lateness.
    assert carried.late_share == pytest.approx(1 / (views - 1))
    assert carried.late_s == pytest.approx(2e-6)
    assert carried.missed_share == 0
    assert 0 <= carried.busy <= 1


def test_a_view_counts_once_and_gaps_between_views_are_missed_time() -> None:
    times = iter([0.0, 0.25, 0.25, 0.5, 1.0, 3.0, 4.0])
    watch = Watch(
        lambda: {
            "at_s": next(times) / 100,
            "dilation": 100,
            "packet_bytes": [0],
            "circuit_bytes": [0],
            "late_p99_s": 1.0,
            "lost_packets": 0,
        }
    )
    for _ in range(6):
        watch.look()
    # One missed view between two is no gap: the switch and the writer of its views are not in step.
    assert watch.carried(5e-6).missed_share == pytest.approx(3 / 4)
    assert watch.carried(5e-6).late_share == 1.0


def test_a_lab_that_ends_under_a_watch_is_an_error() -> None:
    begun = time.monotonic()

    def view() -> dict[str, Any]:
        if time.monotonic() > begun + 0.1:
            raise OSError("lab `x`: is not up")
        moment = {"at_s": time.monotonic(), "dilation": 1}
        return moment | {"packet_bytes": [0], "circuit_bytes": [0], "late_p99_s": None, "lost_packets": 0}

    with pytest.raises(OSError, match="is not up"), watching(view):
        time.sleep(0.5)


def blocks(folder: Path) -> dict[str, Path]:
    """Files of a DataNode: a complete block, one that is written, a small one, and checksums."""
    current = folder / "r0h0" / "dfs" / "current" / "BP-1-127.0.0.1-2" / "current"
    complete = current / "finalized" / "subdir0" / "subdir0"
    complete.mkdir(parents=True)
    (current / "rbw").mkdir()
    sizes = {
        current / "rbw" / "blk_1": 5 * memory.END,
        complete / "blk_2": 4 * memory.END,
        complete / "blk_3": 1000,
        complete / "blk_2_1002.meta": 30_000,
    }
    for path, size in sizes.items():
        path.write_bytes(b"a" * size)
    return {path.name: path for path in sizes}


def test_blocks_leave_their_ends_in_memory_and_keep_their_sizes() -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER) as name:
        files = blocks(Path(name))
        sizes = {path: path.stat().st_size for path in files.values()}
        assert memory.free(Path(name)) == (4 + 3) * memory.END
        assert {path: path.stat().st_size for path in files.values()} == sizes
        content = files["blk_1"].read_bytes()
        assert content == bytes(4 * memory.END) + b"a" * memory.END
        for small in ("blk_3", "blk_2_1002.meta"):
            assert set(files[small].read_bytes()) == {ord("a")}
        assert memory.free(Path(name)) == 0


def test_a_file_system_that_cannot_give_back_parts_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def free(_: Path) -> int:
        raise OSError(95, "Operation not supported", "/data/blk_1")

    monkeypatch.setattr(memory, "free", free)
    with pytest.raises(OSError, match="Operation not supported"), memory.freeing(Path("/data")):
        time.sleep(1.0)


def test_times_of_files_are_those_in_the_log_of_the_benchmark() -> None:
    lines = [
        "2026-11-30 02:50:01,250 INFO fs.TestDFSIO: Number of bytes processed = 104857600",
        "2026-11-30 02:50:01,250 INFO fs.TestDFSIO: Exec time = 51200",
        "2026-11-30 02:50:02,250 INFO fs.TestDFSIO:      Test exec time sec: 60.5",
        "2026-11-30 02:50:03,250 INFO fs.TestDFSIO: Exec time = 800",
    ]
    assert dfsio.times(lines) == [51.2, 0.8]


def test_maven_lists_the_jars_of_a_scope_in_a_file_of_its_own_beside_the_jar_of_this_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(class_path, "PROJECT", tmp_path)
    version = "<version>0.10.0</version>"
    (tmp_path / "pom.xml").write_text(
        f"<project xmlns='http://maven.apache.org/POM/4.0.0'>{version}</project>"
    )
    jar = tmp_path / "target" / "leeward-hdfs-0.10.0.jar"
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        listing = next(word.partition("=")[2] for word in command if word.startswith("-Dmdep.outputFile="))
        Path(listing).parent.mkdir(exist_ok=True)
        Path(listing).write_text(f"/jars/{Path(listing).name}.jar")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(OSError, match=r"leeward-hdfs-0\.10\.0\.jar: Maven did not make this jar"):
        class_path.class_path()
    commands.clear()
    for one in (jar, jar.with_name("leeward-hdfs-0.9.0.jar")):
        one.touch()
    assert class_path.class_path() == [jar, Path("/jars/class-path.jar")]
    assert class_path.class_path("test") == [jar, Path("/jars/class-path-test.jar")]
    assert ["-DincludeScope=compile" in command for command in commands] == [True, False]


@pytest.mark.whole
def test_testdfsio_writes_over_circuits_to_the_next_rack_and_leaves_nothing() -> None:
    lacks = missing()
    if lacks is not None:
        lack(lacks)
    scenario = {
        "network": {"racks": 3, "hosts_per_rack": 1, "nic": "100Gbps"},
        "scheduler": {"name": "solstice-etalon:prepare=element:small=8kB", "demand": "voq"},
        "workload": {"dfsio": {"mappers": 6, "bytes": "8MiB", "copies": "rehdfs"}},
        "horizon": "1s",
    }
    name, size = f"t{os.getpid()}-dfsio", 8 << 20
    before = set(MEMORY_FOLDER.glob("leeward-hdfs-*"))
    with circuits.up(scenario, 400, 4 << 20, "rehdfs", name=name) as cluster:
        job = dfsio.run(cluster, 2, size, "rehdfs", bound_s=1.0)
        racks = {address: int(host[1]) for address, host in cluster.addresses.items()}
        cluster.use("default")
        again = dfsio.run(cluster, 2, size, "default", bound_s=1.0)
        processes = cluster.processes
    for one in (job, again):
        assert len(one.files) == 6
        assert [block.bytes for block in one.writes] == [4 << 20] * 12
        assert len(one.copies) == 12
        # Each copy crosses the switch once, and headers and answers with it.
        assert 6 * size < one.carried.packet_bytes + one.carried.circuit_bytes < 1.5 * 6 * size
        assert one.carried.circuit_bytes > 0
    assert all(racks[copy.destination] == (racks[copy.source] + 1) % 3 for copy in job.copies)
    assert all(process.process.poll() is not None for process in processes)
    assert left(name) == []
    assert set(MEMORY_FOLDER.glob("leeward-hdfs-*")) == before
