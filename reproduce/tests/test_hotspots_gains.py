"""Telemetry of simulated links, and latencies before and after placement."""

from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest

from leeward.telemetry import windows
from leeward_reproduce import drawing
from leeward_reproduce.figures import Experiment, Results, runs
from leeward_reproduce.hotspots import FIGURES, fleet, gains, prevalence, queries, rack_storage
from leeward_reproduce.hotspots.rack_storage import CHUNK, Operation
from leeward_reproduce.links import START_MS, samples

RACKS = "racks: 2\nhosts_per_rack: 2\nnic: 10Gbps\nrack_link: 20Gbps\n"
READS = (
    Operation("hdd-read", "read", "hdd", CHUNK, 10),
    Operation("ram-read", "read", "ram", CHUNK, 10),
    Operation("hdd-write", "write", "ram", CHUNK, 10),
)


class Tables:
    """Tables of a run, written by hand."""

    def __init__(self, **tables: pyarrow.Table) -> None:
        self._tables = tables
        self.seeds = [1]

    def table(self, name: str, *_: object) -> pyarrow.Table:
        return self._tables[name]


def links(loads: dict[str, list[float]]) -> pyarrow.Table:
    """Links of 20 Gb/s by interval of 300 s."""
    rows = [
        {"start_s": 300.0 * at, "link": link, "load_bps": 2e10 * load, "utilization": load}
        for link, values in loads.items()
        for at, load in enumerate(values)
    ]
    return pyarrow.Table.from_pylist(rows)


def test_links_of_a_run_become_telemetry_with_the_same_utilization(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(RACKS)
    telemetry = samples(links({"r0:uplink": [0.25, 0.8], "r1:downlink": [0.5, 0.0]}), cluster)
    names = telemetry.links["name"].to_pylist()
    actual = telemetry.engine.arrow(windows(telemetry).table)
    seen = {
        (names[row["link"]], (row["start_ms"] - START_MS) // 300_000): row["ppm"]
        for row in actual.to_pylist()
    }
    assert seen == {
        ("r0:uplink", 0): 250_000,
        ("r0:uplink", 1): 800_000,
        ("r1:downlink", 0): 500_000,
        ("r1:downlink", 1): 0,
    }


def test_a_link_that_lost_capacity_is_as_full_as_the_run_says(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(RACKS)
    rows = [
        {"start_s": 300.0 * at, "link": "r0:uplink", "load_bps": load, "utilization": utilization}
        for at, (load, utilization) in enumerate([(8e9, 0.4), (8e9, 0.8), (0.0, 0.0)])
    ]
    telemetry = samples(pyarrow.Table.from_pylist(rows), cluster)
    seen = telemetry.engine.arrow(windows(telemetry).table).sort_by("start_ms").to_pylist()
    assert [row["ppm"] for row in seen] == [400_000, 800_000, 0]
    assert [row["capacity_bits"] for row in seen] == [6e12, 3e12, 6e12]


def test_workers_use_the_links_of_their_rack_before_and_after_a_move() -> None:
    # The first task is on rack 0 until 300 s, and then on rack 1. The second task is not network-intensive.
    columns: dict[str, list[Any]] = {
        "placed_s": [0.0, 0.0],
        "finished_s": [600.0, 600.0],
        "intensive": [True, False],
        "host": ["r1h0", "r0h1"],
    }
    cells: Any = Tables(
        links=links(
            {
                "r0:uplink": [0.9, 0.1, 0.1, 0.1],
                "r0:downlink": [0.8, 0.1, 0.1, 0.1],
                "r1:uplink": [0.1, 0.3, 0.3, 0.3],
                "r1:downlink": [0.1, 0.2, 0.2, 0.2],
            }
        ),
        tasks=pyarrow.table(columns),
        moves=pyarrow.table({"time_s": [300.0], "task": [0], "from": ["r0h0"]}),
    )
    down, up = gains._workers(cells, "borg", 1, 0)
    first = up == 0.9
    assert 0.4 < first.mean() < 0.6
    assert set(down[first]) == {0.8}
    assert set(up[~first]) == {0.3}
    assert set(down[~first]) == {0.2}


def test_queries_behind_busy_links_take_longer() -> None:
    served = rack_storage.serve(2, 1, levels=(0.1, 0.8), link_bps=1e9, operations=READS)
    worker = queries.Worker(served)
    idle, busy = (numpy.full((2, 400), load) for load in (0.1, 0.8))
    for benchmark in queries.BENCHMARKS:
        assert (
            gains._p95(worker, benchmark, busy, 1)
            > gains._p95(worker, benchmark, idle, 1)
            > benchmark.compute * queries.BASE_S
        )


def test_experiments_count_as_runs_and_are_shared_by_figures() -> None:
    ran: list[tuple[int, bool]] = []
    one = Experiment("one", lambda seed, short: ran.append((seed, short)))
    assert Results().outcomes == {}
    assert one.run(1, True) is None
    assert ran == [(1, True)]
    latencies = {name: FIGURES[name] for name in ("11", "13", "23")}
    # Queries, the rack, the rack with arrivals, and the rack of the request simulator.
    assert runs(latencies, 10) == 40
    assert runs({"22": FIGURES["22"], **latencies}, 10) == 60


def test_hotspots_planted_in_a_synthetic_fleet_are_found_exactly() -> None:
    truth, samples, tables = fleet.plant_hotspots(1, 1)
    actual = fleet.analyze_fleet(samples, tables)
    assert (actual.hot, actual.owned) == (truth.hot, truth.owned)
    assert actual.storage == pytest.approx(truth.storage)
    assert actual.jobs == pytest.approx(truth.jobs)
    # Hotspots of each cross-section and owner are planted, and seeds differ.
    assert all(hot for hot, _ in truth.hot.values())
    assert all(truth.owned.values())
    assert fleet.plant_hotspots(2, 1)[0].owned != truth.owned


def test_figures_of_a_synthetic_fleet_are_marked_and_have_no_deviation() -> None:
    results = Results()
    results.outcomes[fleet.FLEET] = [fleet.plant_hotspots(1, 1)[0]]
    rows = [
        row
        for make_rows in (fleet.section_rows, fleet.split_rows, fleet.job_rows)
        for row in make_rows(results)
    ]
    assert [row.paper for row in rows] == [10, 2, None, None, None, 45, 10, None]
    assert all("a made-up fleet" in row.note for row in rows)
    assert all(row.ours is not None and row.deviation_percent is None for row in rows)
    for draw in (fleet.owners, fleet.needs):
        with drawing.settings():
            assert "planted in a made-up fleet" in drawing.render(draw(results, rows))["svg"].decode()


def test_figure_9_uses_the_cluster_of_the_month() -> None:
    (row,) = prevalence.provision_rows(Results())
    assert row.ours == pytest.approx(31.5 / 14)
