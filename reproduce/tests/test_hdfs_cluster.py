"""HDFS as separate processes in a lab: placement with real blocks, a controller that ends, and removal.

The whole tests take minutes; the other one shows in half a minute that a cluster works.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leeward import lab
from leeward.hdfs import NameNode
from leeward_reproduce.hdfs import ObservedCluster, ProcessError, Shape, missing, namenode, up
from leeward_reproduce.hdfs.load import Load, Stream, Write, open_sinks, order, run, send
from leeward_reproduce.hdfs.machine import MEMORY_FOLDER
from leeward_reproduce.hdfs.processes import kill
from support.labs import left
from support.parts import lack

SHAPE = Shape(racks=4, hosts_per_rack=2, block=1 << 20)
HOT = {"r1": "r1h0", "r3": "r3h0"}
"""Racks with background, and the hosts that receive it. Writers are in r0, so r2 is the only cool choice."""
EXACT = {"dfs.namenode.redundancy.considerLoad": "false"}
"""HDFS leaves its rules for racks where DataNodes are busy; blocks of this test follow them exactly."""


@pytest.fixture(autouse=True)
def parts() -> None:
    lacks = missing()
    if lacks is not None:
        lack(lacks)


def write(cluster: ObservedCluster, folder: str, writers: list[str]) -> list[list[namenode.Replica]]:
    """Writes a block by each writer at once, checks the rules of HDFS for racks, and returns the copies."""
    now = time.monotonic()
    paths = [f"/{folder}/{at}" for at in range(len(writers))]
    files = [
        order(cluster, Write(0.0, host, SHAPE.block), now, path)
        for host, path in zip(writers, paths, strict=True)
    ]
    for file in files:
        file.result(60)
    blocks = []
    for writer, path in zip(writers, paths, strict=True):
        replicas = copies(cluster, path)
        assert len({one.host for one in replicas}) == 3, replicas
        assert all(one.rack == cluster.racks[one.host] for one in replicas)
        others = [one for one in replicas if one.host != writer]
        assert len(others) == 2, f"the first copy of {path} is not on {writer}: {replicas}"
        assert len({one.rack for one in others}) == 1, replicas
        assert others[0].rack != cluster.racks[writer], replicas
        blocks.append(others)
    return blocks


def copies(cluster: ObservedCluster, path: str) -> list[namenode.Replica]:
    """The copies of a file of one block. A file is complete before the NameNode knows its last copy."""
    deadline = time.monotonic() + 20
    while True:
        (replicas,) = cluster.files.replicas(path)
        if len(replicas) >= 3 or time.monotonic() > deadline:
            return replicas
        time.sleep(0.2)


def decisions(cluster: ObservedCluster) -> dict[str, int]:
    """Numbers of decisions of the policy by reason."""
    state = namenode.policy_state(cluster.namenode_url)
    assert state is not None
    return state.decisions


def stored(cluster: ObservedCluster) -> int:
    """Number of copies of blocks on the disks of all hosts."""
    disks = [Path(disk) for host in cluster.network.hosts for disk in host.disks]
    files = [file for disk in disks for file in disk.glob("dfs/current/BP-*/current/finalized/**/blk_*")]
    return len([file for file in files if file.suffix != ".meta"])


def explained(cluster: ObservedCluster, folder: str) -> list[dict[str, Any]]:
    """Decisions of the policy about the files of a folder."""
    found = NameNode(cluster.namenode_url).decisions("replicated blocks", f"/{folder}/")
    return [one for one in found if one["path"].startswith(f"/{folder}/")]


def use_and_check_sinbad(cluster: ObservedCluster) -> None:
    """Blocks of `sinbad` follow the same rules, and go where links have more room than a full one."""
    cluster.use("sinbad")
    seconds, rate = 14.0, 80e6
    writes = [Write(6.0 + 0.7 * at, f"r0h{at % 2}", SHAPE.block) for at in range(8)]
    before = stored(cluster)
    background = [Stream(0.0, seconds, host, rate) for host in HOT.values()]
    outcome = run(cluster, Load(writes, background, seconds), "hot")
    deadline = time.monotonic() + 20
    while stored(cluster) != before:
        assert time.monotonic() < deadline, "DataNodes delete the blocks of a run"
        time.sleep(0.5)
    assert all(outcome.carried(f"{rack}:downlink") > 0.9 * rate / 8 * seconds for rack in HOT)
    choices = explained(cluster, "hot")
    assert [one["reason"] for one in choices] == ["ranked"] * len(writes)
    best = [one["steps"][0]["racks"][0]["name"].strip("/") for one in choices]
    assert [cluster.racks[one["hosts"][1]] for one in choices] == best
    # Estimates lag on a busy machine, so that single blocks may go to a hot rack.
    assert best.count("r2") > len(writes) / 2, best
    write(cluster, "sinbad", cluster.hosts)


def check_outage(cluster: ObservedCluster) -> None:
    """Blocks are placed while the controller is away, by HDFS's default policy."""
    kill([cluster.controller])
    write(cluster, "outage", cluster.hosts)
    deadline = time.monotonic() + 30
    while not any(
        count for reason, count in decisions(cluster).items() if reason in ("stale", "unreachable")
    ):
        assert time.monotonic() < deadline, decisions(cluster)
        write(cluster, f"outage-{time.monotonic():.0f}", ["r0h0"])
        time.sleep(1.1)


def test_blocks_go_around_a_hot_link_by_leeward_and_the_end_leaves_nothing() -> None:
    rate = 80e6
    with up(SHAPE, "leeward", properties=EXACT) as cluster:
        heat(cluster, rate, 120.0)
        for at in range(3):
            # Agents report each second, and the policy reads as often: then it knows of the block before.
            time.sleep(2.5)
            wait_for_loads(cluster, 0.5 * rate)
            ((other, _),) = write(cluster, f"hot/{at}", ["r0h0"])
            assert other.rack == "r2", explained(cluster, "hot")
        assert [one["reason"] for one in explained(cluster, "hot")] == ["ranked"] * 3
        write(cluster, "rules", cluster.hosts)
        name, folder = cluster.network.name, cluster.folder
        pids = [process.pid for process in cluster.processes]
    assert_gone(name, pids, folder)


def heat(cluster: ObservedCluster, rate: float, seconds: float) -> None:
    """Sends background into the hot racks for a time, or until the cluster ends."""
    open_sinks(cluster, list(HOT.values()))
    for rack, host in HOT.items():
        send(cluster, Stream(0.0, None, host, rate), time.monotonic(), seconds, f"hot-{rack}")


def wait_for_loads(cluster: ObservedCluster, rate: float) -> None:
    """Waits until the controller knows that the hot racks have a load, and knows the load of r2."""
    deadline = time.monotonic() + 30
    while True:
        loads = {rack: cluster.client().link(f"{rack}:downlink")["measured_bps"] for rack in (*HOT, "r2")}
        hot = all((loads[rack] or 0.0) >= rate for rack in HOT)
        if hot and loads["r2"] is not None:
            return
        assert time.monotonic() < deadline, loads
        time.sleep(0.2)


@pytest.mark.whole
def test_blocks_follow_the_rules_for_racks_under_both_policies_and_without_the_controller() -> None:
    with up(SHAPE, "default", properties=EXACT) as cluster:
        processes, folder = cluster.processes, cluster.folder
        names = {process.name for process in processes}
        assert {"NameNode", "controller", "DataNode r2h1", "agent r2h1"} <= names
        assert namenode.policy_state(cluster.namenode_url) is None
        blocks = write(cluster, "default", cluster.hosts * 4)
        assert len({others[0].rack for others in blocks}) == SHAPE.racks, "each rack has some blocks"
        use_and_check_sinbad(cluster)
        check_outage(cluster)
        name = cluster.network.name
        processes = [*processes, *cluster.processes]
    assert_gone(name, [process.pid for process in processes], folder)


@pytest.mark.whole
def test_blocks_go_around_a_hot_link_although_reports_are_late_or_half_of_them_lost() -> None:
    rate = 80e6
    with up(SHAPE, "leeward", properties=EXACT) as cluster:
        heat(cluster, rate, 600.0)
        # With half of the reports lost, the links of a host are unknown for an eighth of the time.
        for name, delay_s, loss, blocks, around in (("late", 1.0, 0.0, 6, 5), ("lost", 0.0, 0.5, 20, 14)):
            with cluster.reports_impaired(delay_s, loss):
                time.sleep(3.0)
                racks = []
                for at in range(blocks):
                    time.sleep(2.5)
                    wait_for_loads(cluster, 0.5 * rate)
                    ((other, _),) = write(cluster, f"{name}/{at}", ["r0h0"])
                    racks.append(other.rack)
                assert racks.count("r2") >= around, explained(cluster, name)
        # Agents report to the controller again.
        before = cluster.client().link("r2h0:ingress")["until"]
        time.sleep(3.0)
        assert cluster.client().link("r2h0:ingress")["until"] != before


@pytest.mark.whole
def test_a_full_cache_in_memory_evicts_the_oldest_files() -> None:
    with up(replace(SHAPE, in_memory=True), "default") as cluster:
        writes = [Write(0.5 * at, f"r{at % SHAPE.racks}h0", 2 * SHAPE.block) for at in range(12)]
        outcome = run(cluster, Load(writes, [], 10.0), "cached", cache=6 * SHAPE.block)
        folder = cluster.folder
        assert folder.parent == MEMORY_FOLDER
    assert outcome.evicted > 0
    assert 0 < max(outcome.stored.values()) <= 6 * SHAPE.block
    assert not folder.exists()


@pytest.mark.whole
def test_an_error_names_the_process_with_its_log_and_leaves_nothing() -> None:
    before = folders()
    wrong = {"dfs.leeward.policy": "no-such-policy"}
    with pytest.raises(ProcessError) as failure, up(SHAPE, "leeward", properties=wrong):
        pass
    text = str(failure.value)
    assert text.startswith("NameNode ended with status 1; its log ends:\n"), text
    assert "dfs.leeward.policy" in text
    assert folders() == before
    assert [each for each in lab.labs() if each.process == os.getpid()] == []


@pytest.mark.whole
def test_a_signal_to_the_process_of_a_cluster_leaves_nothing() -> None:
    script = (
        "import time\n"
        "from leeward_reproduce.hdfs import Shape, up\n"
        "with up(Shape(racks=4, hosts_per_rack=2)) as cluster:\n"
        "    print(cluster.network.name, cluster.folder, *(p.pid for p in cluster.processes), flush=True)\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name, folder, *pids = process.stdout.readline().split()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    assert_gone(name, [int(pid) for pid in pids], Path(folder))


@pytest.mark.whole
def test_the_command_brings_a_cluster_up_for_other_programs_and_removes_it(tmp_path: Path) -> None:
    before = folders()
    (tmp_path / "file").write_bytes(b"content" * 1000)
    command = [sys.executable, "-m", "leeward_reproduce.hdfs", "--racks", "3", "--hosts-per-rack", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = dict(process.stdout.readline().rstrip().split(maxsplit=1) for _ in range(4))
        assert (printed["hosts"], printed["policy"]) == ("r0h0 r1h0 r2h0", "leeward")
        client = (
            process.stdout.readline().partition("sudo leeward ")[2].replace("FILE", str(tmp_path / "file"))
        )
        stored = subprocess.run(
            [Path(sys.executable).with_name("leeward"), *client.split()],
            capture_output=True,
            text=True,
            check=False,
        )
        assert stored.returncode == 0, stored.stderr
        (decision,) = NameNode(printed["NameNode"]).decisions("replicated blocks", "/file")
        assert decision["writer"] == "r0h0"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert folders() == before
    assert [each for each in lab.labs() if each.process == process.pid] == []


def folders() -> set[Path]:
    """Folders of clusters."""
    return set(Path(tempfile.gettempdir()).glob("leeward-hdfs-*"))


def assert_gone(name: str, pids: list[int], folder: Path) -> None:
    """Nothing of a lab and of its processes is left."""
    assert left(name) == []
    assert not folder.exists()
    assert list(running(pids)) == []


def running(pids: list[int]) -> Iterator[int]:
    for pid in pids:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            continue
        yield pid
