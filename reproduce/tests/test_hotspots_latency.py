"""Latencies of Hotspots by utilization: the effect of a loaded rack link on operations."""

import numpy
import pytest

from leeward.impact import OPERATIONS as KNOWN
from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import FIGURES, latency, queries, rack_storage, racks
from leeward_reproduce.hotspots.rack_storage import CHUNK, Operation, ServedOperations
from leeward_reproduce.hotspots.racks import RACK

READS = (Operation("hdd-read", "read", "hdd", CHUNK, 10),)
ALL = (
    *READS,
    Operation("ram-read", "read", "ram", CHUNK, 5),
    Operation("hdd-write", "write", "ram", CHUNK, 5),
)


@pytest.fixture(scope="module")
def served() -> ServedOperations:
    """A nearly idle link and a busy one, for half a minute each."""
    return rack_storage.serve(1, 1, levels=(0.1, 0.8), link_bps=1e9, operations=ALL)


def test_a_link_has_the_requested_utilization_in_both_directions(served: ServedOperations) -> None:
    for way in ("up", "down"):
        assert racks.utilization(served, way) == pytest.approx([0.1, 0.8], abs=0.12)


def test_the_same_seed_gives_the_same_operations() -> None:
    one, two = (rack_storage.serve(3, 1, levels=(0.3,), link_bps=5e8, operations=READS) for _ in range(2))
    assert numpy.array_equal(one.latency_s, two.latency_s)
    assert numpy.array_equal(one.carried["up"], two.carried["up"])


def test_network_time_has_the_link_rate_as_bound_and_grows_with_load(
    served: ServedOperations,
) -> None:
    assert (served.network_s >= 8 * served.bytes / served.link_bps - 1e-9).all()
    for name in served.operations:
        idle, busy = (
            numpy.percentile(served.network_s[served.of(name) & (served.interval == at)], 95) for at in (0, 1)
        )
        assert busy > 1.5 * idle


def test_device_times_do_not_depend_on_the_link_utilization(served: ServedOperations) -> None:
    idle, busy = (served.storage_s[served.of("hdd-read") & (served.interval == at)].mean() for at in (0, 1))
    assert busy == pytest.approx(idle, rel=0.25)


def test_the_class_served_first_waits_less() -> None:
    result = rack_storage.serve(1, 1, levels=(0.8,), link_bps=1e9, operations=READS, classes=True)
    first, second = (
        numpy.percentile(result.network_s[result.of(f"hdd-read-{name}")], 95) for name in rack_storage.CLASSES
    )
    assert first < second


def test_gaps_have_the_requested_burstiness() -> None:
    random = numpy.random.default_rng(1)
    for c2 in (1.0, 3.6, 20.0):
        gaps = numpy.diff(rack_storage._arrivals(random, 1000.0, c2, 400.0))
        assert gaps.mean() == pytest.approx(1e-3, rel=0.1)
        assert gaps.var() / gaps.mean() ** 2 == pytest.approx(c2, rel=0.15)


def test_impact_finds_the_latencies_at_the_utilization_of_their_link(served: ServedOperations) -> None:
    rows = racks.logs(served)
    assert set(rows["operation"].to_pylist()) <= set(KNOWN)
    tables = racks.inflation(served, rows, ("operation",))
    counted = sum(row["latencies"] for row in tables.buckets.to_pylist() if row["part"] == "total")
    assert counted == len(served.bytes)
    above = {row["from_utilization"] for row in tables.buckets.to_pylist()}
    assert min(above) < 0.2
    assert max(above) > 0.6


def test_queries_with_more_computation_have_less_inflation(served: ServedOperations) -> None:
    worker, random = queries.Worker(served), numpy.random.default_rng(1)
    (benchmark,) = (one for one in queries.BENCHMARKS if one.name == "aggregation")
    grown = []
    for ratio in (0.1, 0.5, 0.9):
        idle, busy = (
            ratio * queries.BASE_S
            + worker.storage_s(benchmark, ratio, numpy.full(200, at), numpy.full(200, at), random)
            for at in (0, 1)
        )
        assert idle.mean() == pytest.approx(queries.BASE_S, rel=0.1)
        grown.append(numpy.percentile(busy, 95) / numpy.percentile(idle, 95))
    assert grown[0] > grown[1] > grown[2] > 1


def test_storage_shares_of_every_benchmark_add_up_to_one() -> None:
    for benchmark in queries.BENCHMARKS:
        assert sum(benchmark.storage.values()) == pytest.approx(1)
        assert 0 < benchmark.compute < 1


def test_every_figure_of_latency_has_its_experiment() -> None:
    assert all(
        FIGURES[name].experiments for name in ("11", "12b", "13", "19", "20", "21", "22", "23", "table-1")
    )


def test_rows_with_only_a_bound_in_the_paper_have_no_deviation(served: ServedOperations) -> None:
    results = Results()
    results.outcomes[RACK] = [served]
    bounds = [row for row in latency.file_rows(results) if row.note.startswith("the paper: ")]
    notes = {row.note.partition("; ")[0].removeprefix("the paper: ") for row in bounds}
    assert {"less than 20 %", "30 to 40 %", "more than 50 %"} <= notes
    assert all(row.paper is None and row.deviation_percent is None for row in bounds)
