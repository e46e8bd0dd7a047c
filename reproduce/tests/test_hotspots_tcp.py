"""Figures of Hotspots over TCP: the load of racks, joins in time, and queries."""

import numpy
import pyarrow
import pytest
from pyarrow import compute

from leeward import operations
from leeward.operations.logs import START_MS
from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import FIGURES, paper, rack_storage
from leeward_reproduce.hotspots.latency import matching_rows
from leeward_reproduce.hotspots.tcp import chunks, gains, incidents, latency, load, queries, rack
from leeward_reproduce.hotspots.tcp.rack import Logs, ObservedOperation
from leeward_reproduce.rows import row_key

FEW = (
    ObservedOperation("file-read hdd", "read", rack_storage.CHUNK, 20),
    ObservedOperation("file-write hdd", "write", rack_storage.CHUNK, 20),
)


@pytest.fixture(scope="module")
def logs() -> Logs:
    """A nearly idle link and a busy one, for a window each."""
    return rack.observe(1, FEW, (0.1, 0.8), intervals=1)


def utilizations(logs: Logs, link: str) -> list[float]:
    rows = logs.loads.filter(compute.equal(logs.loads["link"], link))
    sums = rows.group_by("t_ms").aggregate([("bytes", "sum")]).sort_by("t_ms")
    return [8 * carried / logs.interval_s / rack.LINK_BPS for carried in sums["bytes_sum"].to_pylist()]


@pytest.mark.parametrize("workers", [1, 5, 40])
@pytest.mark.parametrize("target", [0.05, 0.5, 0.9])
def test_the_think_time_gives_the_utilization(workers: int, target: float) -> None:
    think = load.think_s(target, workers, 3e6, 3e9, 10e9)
    assert load.utilization(workers, think, 3e6, 3e9, 10e9) == pytest.approx(target, rel=1e-6)


def test_the_utilization_of_workers_is_that_of_mean_value_analysis() -> None:
    # One server, exponential or not: the recursion of mean value analysis for closed networks.
    service, think, queue, carried = 1e-3, 20e-3, 0.0, 0.0
    for count in range(1, 31):
        response = service * (1 + queue)
        carried = count / (think + response)
        queue = carried * response
    assert load.utilization(30, think, 3e6, 3e9, 10e9) == pytest.approx(carried * service)


def test_a_transfer_is_not_faster_than_an_interface() -> None:
    alone = load.utilization(1, 1e-9, 1e6, 20e9, 10e9)
    assert alone == pytest.approx(0.5, rel=1e-3)
    assert load.mean_bytes((5, 5)) == 5


def test_a_link_has_the_requested_utilization_in_both_directions(logs: Logs) -> None:
    for side in ("uplink", "downlink"):
        assert utilizations(logs, f"r0:{side}") == pytest.approx([0.1, 0.8], abs=0.1)
    assert max(utilizations(logs, "r1:uplink")) < 0.85


def test_operations_are_named_and_slower_at_a_busy_link(logs: Logs) -> None:
    rows = rack.with_names(logs)
    assert set(rows["operation"].to_pylist()) == {"file-read", "file-write"}
    assert set(rows["medium"].to_pylist()) == {"hdd"}
    assert set(rows["links"].to_pylist()) == {"r0:uplink", "r0:downlink"}
    assert rows["class"].null_count == len(rows)
    end = rows["t_ms"].to_numpy() - START_MS
    network = rows["network_s"].to_numpy()
    assert 0 <= end.min() <= end.max() <= 2000 * rack.INTERVAL_S
    idle, busy = (numpy.percentile(network[(end > low) & (end <= low + 30_000)], 95) for low in (0, 30_000))
    assert busy > 2 * idle


def test_impact_finds_all_operations_in_buckets(logs: Logs) -> None:
    tables = latency.files(logs)
    counted = sum(row["latencies"] for row in tables.buckets.to_pylist() if row["part"] == "total")
    assert counted == len(matching_rows(rack.with_names(logs), "hdd", rack_storage.CHUNK))


def test_seeds_follow_each_other_in_time(logs: Logs) -> None:
    both = rack.concatenate([logs, logs])
    assert len(both.operations) == 2 * len(logs.operations)
    assert utilizations(both, "r0:uplink") == 2 * utilizations(logs, "r0:uplink")
    assert rack.length_ms(both) == 2 * rack.length_ms(logs)


def test_classes_have_their_share_of_the_traffic() -> None:
    one = rack.scenario(1, 0.8, rack.BY_SIZE, intervals=1, mix=0.2)
    run = operations.simulate(one | {"horizon": "8s", "warmup": "3s", "sample": "5s"})
    table = run.links()
    rows = table.filter(compute.equal(table["link"], "r0:uplink"))
    carried = dict(zip(rows["class"].to_pylist(), rows["bytes"].to_pylist(), strict=True))
    share = carried["PC"] / sum(carried.values())
    assert share == pytest.approx(0.2, abs=0.1)


def test_computation_has_its_ratio_at_idle_links() -> None:
    computes = queries.calibrate(1)
    scenario = queries.scenario(1, None, computes)
    run = operations.simulate(scenario)
    storage = queries.storage_s(run)
    for one in queries.QUERIES:
        total = sum(float(stage.mean()) for stage in storage[one.name])
        share = sum(computes[one.name]) / (sum(computes[one.name]) + total)
        assert share == pytest.approx(one.ratio, abs=0.05)
        assert len(storage[one.name][0]) > 1
    chunk = 3 * 11e-3 / (2 * sum(computes["aggregation"]))
    # The paper: chunk reads are about 30 % of an aggregation.
    assert 0.2 < chunk < 0.45


def test_the_time_of_a_query_is_storage_and_computation() -> None:
    run = operations.simulate(queries.scenario(2, None, queries.calibrate(2)))
    jobs, storage = run.jobs(), queries.storage_s(run)
    computes = queries.calibrate(2)
    for one in queries.QUERIES:
        mine = jobs.filter(compute.equal(jobs["job"], one.name))
        times = mine["ended_s"].to_numpy() - mine["began_s"].to_numpy()
        assert times == pytest.approx(sum(storage[one.name]) + sum(computes[one.name]), abs=1e-6)


def test_draws_come_from_the_nearest_bucket_with_queries() -> None:
    loads = pyarrow.table(
        {
            "t_ms": [START_MS + 20_000, START_MS + 40_000] * 2,
            "link": ["r0:uplink"] * 2 + ["r0:downlink"] * 2,
            "class": ["all"] * 4,
            "bytes": [int(0.1 * 50e9), int(0.1 * 50e9), int(0.2 * 50e9), int(0.8 * 50e9)],
        }
    )
    rows = pyarrow.table(
        {
            "t_ms": [START_MS + 1000.0, START_MS + 20_001.0],
            "latency_s": [1.0, 5.0],
            "operation": ["streaming", "streaming"],
        }
    )
    empty = pyarrow.table({"t_ms": pyarrow.array([], pyarrow.float64())})
    pools = gains.Pools(queries.QueryRuns(Logs(empty, loads, queries.cluster(), 20), rows, {}))
    drawn = pools.draw("streaming", numpy.array([0.0, 0.3, 0.7, 1.0]), numpy.random.default_rng(1))
    assert drawn.tolist() == [1.0, 1.0, 5.0, 5.0]


def test_ccp_moves_reads_to_racks_with_more_uplink() -> None:
    scenario = chunks.scenario(1, "ccp", 12e9, 2.25, True) | {"horizon": "6s", "warmup": "1s", "sample": "1s"}
    run = operations.simulate(scenario)
    servers = run.operations()["server"].to_pylist()
    racks = numpy.array([int(name.partition("h")[0][1:]) for name in servers])
    low, high = (racks < 6).mean(), ((racks >= 12) & (racks < 18)).mean()
    assert high > 1.5 * low
    assert (racks < 18).all()


def test_disks_of_a_server_share_its_rates() -> None:
    for count in (1, 4, 8):
        disks = rack.disks(count)
        assert count * float(disks["read"].removesuffix("bps")) == pytest.approx(rack.READ_BPS)
        assert count * float(disks["write"].removesuffix("bps")) == pytest.approx(rack.WRITE_BPS)
    scenario = chunks.scenario(1, "uniform", 12e9, chunks.USUAL, False)
    run = operations.simulate(scenario | {"horizon": "3s", "warmup": "1s", "sample": "1s"})
    rows = run.operations()
    server_s = rows["latency_s"].to_numpy() - rows["network_s"].to_numpy()
    # 8 MiB at an eighth of 600 MB/s after a seek, and the server's own time.
    alone = rack.read_s(chunks.DISKS, chunks.BYTES) + 50e-6 + 8 * chunks.BYTES / 2e9
    assert rack.read_s(chunks.DISKS, chunks.BYTES) == pytest.approx(0.008 + 0.112, abs=1e-3)
    assert server_s.min() == pytest.approx(alone, rel=1e-3)


def test_incidents_are_compared_with_their_range_at_every_load() -> None:
    keys = [f"{kind} {load:g}" for kind in ("halved", "crowded") for load in incidents.LOADS]
    keys += ["herding", "spread load", "packed load", "incast waits", "incast degraded", "hot waits"]
    outcome = dict.fromkeys([*keys, "hot degraded", "replication"], 1.3)
    results = Results()
    results.outcomes[incidents.TCP_INCIDENTS] = [outcome, outcome]
    rows = {row_key(row.figure, row.quantity): row for row in incidents.rows(results)}
    halved = [row for row in rows.values() if row.quantity.startswith("uplinks halved")]
    assert len(halved) == 2 * len(incidents.LOADS)
    assert all((row.paper, row.paper_high, row.holds) == (2.0, 3.0, False) for row in halved)
    assert all(row.reason for row in rows.values() if row.holds is False)
    assert {row.variant for row in rows.values()} <= set(rows) | {""}
    assert sum(bool(row.variant) for row in halved) == 2 * len(incidents.LOADS) - 1


def test_changes_of_reads_are_compared_in_points_with_their_range() -> None:
    def run(total: float) -> chunks.Chunks:
        return chunks.Chunks({}, {"total": total, "network": total}, 1e9)

    spreads = {
        (policy, chunks.LOADS_BPS[1], spread): run(0.9 if policy == "ccp" else 1.0)
        for policy in chunks.POLICIES
        for spread in chunks.UPLINKS_BPS
    }
    usual = {
        (policy, load, chunks.USUAL): run(0.9 if policy == "ccp" else 1.0)
        for policy in chunks.POLICIES
        for load in chunks.LOADS_BPS
    }
    results = Results()
    results.outcomes[chunks.TCP_CHUNKS] = [usual]
    results.outcomes[chunks.TCP_SPREADS] = [spreads]
    rows = {row_key(row.figure, row.quantity): row for row in chunks.read_rows(results)}
    compared = [row for row in rows.values() if row.paper is not None]
    assert {(row.paper, row.paper_high) for row in compared} == set(paper.READ_GAINS.values())
    assert all(row.holds is False and row.deviation_percent is None and row.reason for row in compared)
    widest = [row for row in compared if f"spread {max(chunks.UPLINKS_BPS):g}-fold" in row.quantity]
    assert [row for row in compared if not row.variant] == widest
    assert {row.variant for row in rows.values()} <= set(rows) | {""}


def test_halved_uplinks_slow_tasks_down() -> None:
    whole, halved = (incidents._halved(1, 0.8, incidents.SLOTS, one) for one in (False, True))
    assert 1.2 < halved / whole < 3


def test_every_figure_of_latency_has_its_experiment_over_tcp() -> None:
    names = ("11", "12b", "13", "14", "19", "20", "21", "22", "23", "table-1", "incidents")
    for name in names:
        assert any("over TCP" in one.name for one in FIGURES[name].experiments), name
    assert set(latency.TABLES) == {"11", "12a", "12b", "13", "21", "22", "23"}


def test_rows_over_tcp_are_marked(logs: Logs) -> None:
    results = Results()
    results.outcomes[rack.TCP_RACK] = results.outcomes[rack.TCP_ARRIVALS] = [logs]
    rows = latency.file_rows(results)
    assert all("over TCP" in row.quantity for row in rows)
    assert len({row.quantity for row in rows}) == len(rows)
    assert any(row.paper == 4.0 for row in rows)
    assert {row.variant for row in rows} <= {row_key(row.figure, row.quantity) for row in rows} | {""}
