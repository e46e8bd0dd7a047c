"""CCP's figures on real bytes: scenarios, requests, rows from runs of this file, a short pair."""

from pathlib import Path

import pytest
import yaml

from leeward import Cluster
from leeward.errors import InputError
from leeward_reproduce import drawing
from leeward_reproduce.hdfs import missing
from leeward_reproduce.hdfs.namenode import Replica
from leeward_reproduce.hdfs.outcome import Outcome
from leeward_reproduce.hdfs.traces import READ, WRITE, Trace
from leeward_reproduce.hotspots.real import measures, scenario
from leeward_reproduce.hotspots.real.measures import Measures
from leeward_reproduce.hotspots.real.perform import FIGURES
from leeward_reproduce.hotspots.real.run import ChunkRun, reader
from leeward_reproduce.hotspots.real.scenario import SHAPE
from leeward_reproduce.hotspots.requests import CLASSES, classes
from leeward_reproduce.perform import reproduce
from leeward_reproduce.real.rows import Pair
from support.parts import lack

RACKS = {f"r{rack}h{host}": f"r{rack}" for rack in range(6) for host in range(2)}
ADDRESSES = {f"10.{rack}.{host}.2": f"r{rack}h{host}" for rack in range(6) for host in range(2)}


def test_uplinks_differ_threefold_beside_equal_disks(tmp_path: Path) -> None:
    cluster = scenario.write(tmp_path, 1, "60s").parent / "cluster.yaml"
    links = Cluster(cluster).links().to_pylist()
    rates = {one["capacity_bps"] for one in links if one["name"].endswith(":uplink")}
    assert max(rates) == 3 * min(rates)
    assert list(classes(cluster).values()) == [2, 2, 1, 1, 0, 0]
    assert CLASSES == ("High", "Medium", "Low")


def test_the_cluster_reads_the_files_and_reads_of_the_scenario(tmp_path: Path) -> None:
    file = scenario.write(tmp_path, 3, "90s")
    plan = scenario.read(file)
    assert (plan.seconds, plan.reads_from_s) == (90.0, 44.0)
    assert len(plan.writes) == round(2.0 * 34)
    assert {one.bytes for one in plan.writes} == {SHAPE.block}
    assert all(5 <= one.at_s <= 39 for one in plan.writes)
    assert len(plan.reads) == round(3.0 * 41)
    assert all(44 <= one.at_s <= 85 for one in plan.reads)
    assert all(0 <= one.file < len(plan.writes) and 0 <= one.draw < 1 for one in plan.reads)
    reads = yaml.safe_load(file.read_text())["workloads"][1]["reads"]
    assert (reads["start"], reads["duration"]) == ("44s", "41s")


def test_equal_seeds_give_equal_scenarios(tmp_path: Path) -> None:
    first, again, other = (
        scenario.read(scenario.write(tmp_path / name, seed, "60s"))
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == again != other


def test_as_many_reads_cross_racks_in_the_simulator_as_on_the_cluster(tmp_path: Path) -> None:
    runs = [measures.simulate_pair(scenario.write(tmp_path / str(seed), seed, "90s")) for seed in range(1, 6)]
    simulated = [len(one.seconds) for run in runs for one in run.values()]
    assert sum(simulated) / len(simulated) == pytest.approx(round(3.0 * 41), rel=0.1)


def test_a_file_is_read_from_a_rack_without_a_copy() -> None:
    copies = [Replica("r0h0", "r0"), Replica("r4h0", "r4"), Replica("r4h1", "r4")]
    readers = {reader(RACKS, copies, draw / 100) for draw in range(100)}
    assert readers == {host for host, rack in RACKS.items() if rack not in ("r0", "r4")}


def test_the_simulator_runs_the_scenario_under_both_policies(tmp_path: Path) -> None:
    file = scenario.write(tmp_path, 1, "60s")
    plan, found = scenario.read(file), measures.simulate_pair(file)
    for one in found.values():
        assert sum(one.stored) == 3 * len(plan.writes)
        assert 0.6 * len(plan.reads) < len(one.kinds["reads"]) < 1.4 * len(plan.reads)
        # A read takes at least its time on the fastest link of a rack.
        assert min(one.seconds) > 0.99 * 8 * SHAPE.block / max(scenario.LINKS_BPS)
    high = [sum(one.stored[4:]) / sum(one.stored) for one in found.values()]
    assert high[1] > 1.5 * high[0], "ccp prefers racks with large uplinks"


def chunk_run() -> ChunkRun:
    """A block that r0h0 writes to r5 and reads of it, while the links of r5 are at half of their rate."""
    size, at = SHAPE.block, 1000.0
    host = {name: address for address, name in ADDRESSES.items()}
    chain = [("r0h0", "r0h0"), ("r0h0", "r5h0"), ("r5h0", "r5h1")]
    writes = [Trace(WRITE, host[one], host[two], size, "blk_1", at + 9.0, 1.0) for one, two in chain]
    reads = [
        Trace(READ, host["r5h1"], host["r1h0"], size, "blk_1", at + 22.0, 4.0),
        Trace(READ, host["r5h1"], host["r5h0"], size, "blk_1", at + 22.0, 4.0),
    ]
    rate = scenario.LINKS_BPS[-1] / 8 / 2
    samples = [
        (
            100.0 + second,
            {
                f"r{rack}:{way}": round(second * rate * (rack == 5))
                for rack in range(6)
                for way in ("uplink", "downlink")
            },
        )
        for second in range(31)
    ]
    stored = dict.fromkeys(RACKS.values(), 0) | {"r0": 1, "r5": 2}
    return ChunkRun([*writes, *reads], at, Outcome([], samples, 100.0, 30.0), [4.0], stored)


def test_requests_of_a_cluster_cross_racks_and_have_the_class_and_load_of_theirs(tmp_path: Path) -> None:
    cluster = scenario.write(tmp_path, 1, "60s").parent / "cluster.yaml"
    found = measures.measure(chunk_run(), cluster, ADDRESSES, RACKS)
    # Both copies in r5 are requests to it, and the first copy is none.
    assert found.kinds == {"reads": [0], "writes": [0, 0]}
    assert found.utilization["reads"] == pytest.approx([0.5])
    assert found.utilization["writes"] == pytest.approx([0.5, 0.5])
    assert (found.seconds, found.stored) == ([4.0], [1, 0, 0, 0, 0, 2])


def test_the_writer_is_the_machine_that_sends_a_block_and_takes_no_copy_from_another() -> None:
    def copies(*chain: tuple[str, str]) -> list[Trace]:
        return [Trace(WRITE, one, two, 1, "blk_1", 0.0, 1.0) for one, two in chain]

    assert measures.writers(copies(("a", "b"), ("a", "a"), ("b", "c"))) == {"blk_1": "a"}
    # HDFS found the writer's own DataNode too busy.
    assert measures.writers(copies(("a", "b"), ("b", "c"), ("c", "d"))) == {"blk_1": "a"}
    with pytest.raises(OSError, match="blk_1: DataNodes have logged 2 writers"):
        measures.writers(copies(("a", "b"), ("c", "d")))


def example_pair(seed: int) -> Pair[Measures]:
    """A pair in which reads take half of the time under `ccp`, and none goes to a hot rack.

    Reads of the simulator take longer by a tenth, and its racks store more unevenly.
    """
    hot, cool = [0.9, 0.8, 0.1, 0.5 + 0.01 * seed], [0.5, 0.4, 0.1, 0.3]

    def of(policy: str, scale: float, real: bool) -> Measures:
        kinds, loads = ([2, 2, 0, 1], hot) if policy == "default" else ([0, 0, 0, 1], cool)
        both = {"reads": kinds, "writes": kinds}, {"reads": loads, "writes": loads}
        decisions = {} if policy == "default" else {"ranked": 19, "stale": 1} if real else {"ranked": 20}
        stored = [1, 1, 2, 2, 3, 3] if real else [0, 0, 2, 2, 4, 4]
        seconds = [scale * (1 + seed), scale * 2]
        return Measures(*both, seconds, stored, decisions, 0.8 if real else None)

    def runs(scale: float, real: bool) -> dict[str, Measures]:
        return {"default": of("default", scale, real), "ccp": of("ccp", 0.5 * scale, real)}

    return Pair(seed, runs(1.1, False), runs(1.0, True))


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_rows_of_its_name_with_values_of_simulator_and_cluster(name: str) -> None:
    of_seeds = [example_pair(seed) for seed in range(1, 5)]
    rows = FIGURES[name].rows(of_seeds)
    assert {row.figure for row in rows} == {name}
    for row in rows:
        assert (row.ours is None) == (row.ci_low is None)
        if row.unit == "s":
            assert row.simulator == pytest.approx(1.1 * (row.ours or 0.0))
            assert row.simulator_low is not None
        elif row.quantity.startswith("Cv of copies"):
            assert (row.simulator or 0.0) > 1.5 * (row.ours or 0.0)
    assert drawing.render(FIGURES[name].draw(of_seeds, rows))["svg"]


def test_rows_have_the_requests_at_hot_racks_before_and_after() -> None:
    rows = {row.quantity: row.ours for row in FIGURES["14"].rows([example_pair(1), example_pair(2)])}
    assert rows["reads at ToRs over 75%, default"] == 50.0
    assert rows["reads at ToRs over 75%, ccp"] == 0.0
    assert rows["reads at ToRs over 75%: ccp - default"] == -50.0
    assert rows["writes at ToRs over 75%: ccp - default"] == -50.0
    assert rows["reads at ToRs over 75% that went to Low, default"] == 100.0
    assert rows["reads at ToRs over 75% that went to Low, ccp"] is None
    assert rows["writes that went to High, ccp"] == 75.0
    assert rows["blocks that HDFS's policy placed, ccp"] == 5.0
    (row, *_) = FIGURES["20"].rows([example_pair(1), example_pair(2)])
    assert (row.paper, row.paper_high) == (-60.0, -30.0)
    assert row.ours == pytest.approx(-50.0)
    used = FIGURES["20"].rows([example_pair(1), example_pair(2)])[-1]
    assert (used.quantity, used.ours, used.simulator) == ("processors in use, ccp", 80.0, None)


def test_short_runs_and_several_at_once_are_errors() -> None:
    for fields, message in (
        ({"horizon": "20s"}, "`20s`: expected at least 30s"),
        ({"jobs": 2}, "2: real runs would disturb each other"),
    ):
        with pytest.raises(InputError, match=message):
            reproduce("hotspots", real=True, **fields)


@pytest.mark.whole
def test_a_pair_of_short_runs_has_all_rows_and_a_second_call_reads_it(tmp_path: Path) -> None:
    lacks = missing()
    if lacks is not None:
        lack(lacks)
    rows = reproduce("hotspots", real=True, seeds=1, horizon="30s", out=tmp_path / "out")
    by_name = {row.quantity: row.ours for row in rows}
    assert all(by_name[f"p95 of reads, {policy}"] for policy in scenario.POLICIES)
    high = [by_name[f"writes that went to High, {policy}"] or 0.0 for policy in scenario.POLICIES]
    assert high[1] > 90 > high[0], "ccp sends copies to racks with large uplinks"
    again = reproduce("hotspots", real=True, seeds=1, horizon="30s", out=tmp_path / "out")
    assert again == rows
