"""Figures 3 to 5 and 8 from a month of cells, on tables written by hand."""

from typing import Any

import numpy
import pyarrow
import pytest

from leeward import Cluster
from leeward.simulation import read_scenario
from leeward_reproduce import drawing
from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import fleet, paper, prevalence
from leeward_reproduce.hotspots.sweeps import (
    FLEET_LOADS,
    MONTH,
    MONTH_CLUSTER,
    MONTH_FILE,
    MONTH_LOADS,
    MONTH_PLAIN,
    MONTH_STEADY,
)

INTERVAL_S, HOUR = 300.0, 12
FROM_S = 172_800.0
INTERVALS = 40 * HOUR
HOT = {"r0:uplink": (0, 6), "r1:downlink": (12, 2 * HOUR), "r80:uplink": (5, 30 * HOUR)}
"""First hot interval of hot links, and number of them. Racks 0 and 1 are for tasks, and rack 80 for disks."""


class Month:
    """The tables of every cell of a month: links in `HOT` are at 90 %, and all others at 20 %."""

    seeds = (1,)

    def __init__(self) -> None:
        links = [
            row for row in Cluster(MONTH_CLUSTER).links().to_pylist() if row["cross_section"] == "ToR-pod"
        ]
        self.names = [row["name"] for row in links]
        times = numpy.arange(INTERVALS)
        columns: dict[str, list[Any]] = {"start_s": [], "link": [], "load_bps": [], "utilization": []}
        for row in links:
            start, count = HOT.get(row["name"], (0, 0))
            utilization = numpy.where((times >= start) & (times < start + count), 0.9, 0.2)
            # A link of disks has lost half of its capacity while it is hot.
            lost = numpy.where((utilization > 0.5) & (row["name"] == "r80:uplink"), 0.5, 1.0)
            columns["start_s"] += (FROM_S + INTERVAL_S * times).tolist()
            columns["link"] += [row["name"]] * INTERVALS
            columns["load_bps"] += (utilization * lost * row["capacity_bps"]).tolist()
            columns["utilization"] += utilization.tolist()
        self.links = pyarrow.table(columns)
        self.tasks = pyarrow.table(
            {
                "placed_s": [0.0, 0.0, 0.0],
                "finished_s": [None, 1e9, 1e9],
                "intensive": [True, True, False],
                "host": ["r0h0", "r40h3", "r2h1"],
            },
            pyarrow.schema(
                [
                    ("placed_s", pyarrow.float64()),
                    ("finished_s", pyarrow.float64()),
                    ("intensive", pyarrow.bool_()),
                    ("host", pyarrow.string()),
                ]
            ),
        )

    def table(self, name: str, policy: str, seed: int, value: str) -> pyarrow.Table:
        assert (policy, seed) == ("borg", 1)
        assert value in MONTH_LOADS
        return {"links": self.links, "tasks": self.tasks}[name]


@pytest.fixture(scope="module")
def results() -> Results:
    month: Any = Month()
    results = Results()
    results.update(dict.fromkeys((MONTH, MONTH_PLAIN, MONTH_STEADY), month))
    results.outcomes[fleet.FLEET] = [fleet.plant_hotspots(1, 1)[0]]
    return results


def test_the_month_is_readable_and_its_load_is_that_of_the_fleet() -> None:
    text = MONTH_FILE.read_text(encoding="utf-8")
    assert text.startswith("# ")
    scenario = read_scenario(MONTH_FILE)
    # The paper's figures are of a month, after the warm-up.
    assert scenario.horizon_s == (30 + 2) * 86_400
    storage = 0.75
    assert f"storage: {storage}" in text
    for load, average in zip(MONTH_LOADS, FLEET_LOADS, strict=True):
        assert float(load) * (1 + storage) == pytest.approx(float(average), rel=0.01)


def test_racks_for_tasks_and_for_storage_are_in_proportion_to_their_traffic() -> None:
    racks = Cluster(MONTH_CLUSTER).rack_table().to_pylist()
    cpus, disks = (sum(row[name] for row in racks) for name in ("cpus", "storage_bytes"))
    largest = [max(row[name] for row in racks) for name in ("cpus", "storage_bytes")]
    assert (disks / largest[1]) / (cpus / largest[0]) == pytest.approx(0.75, rel=0.02)


def test_durations_are_counted_over_the_cells_of_all_loads(results: Results) -> None:
    rows = {row.quantity: row for row in prevalence.duration_rows(results)}
    third = 100 / 3
    for words, reported in paper.DURATIONS.items():
        row = rows[f"hotspots that last {words}, borg"]
        assert row.ours == pytest.approx(third)
        assert (row.paper, row.holds) == (reported, None)
    hours = [0.5, 2, 30]
    long = 100 * hours[2] / sum(hours)
    assert rows["hot time in hotspots that last a day or more, borg"].ours == pytest.approx(long)
    # Three ranges and the hot time, of the month and of its two variants.
    assert len(rows) == 3 * 4


def test_rates_and_kinds_are_counted_over_the_cells_of_all_loads(results: Results) -> None:
    counts = {name: count for name, (_, count) in HOT.items()}
    total = sum(counts.values())
    links = 2 * len(Cluster(MONTH_CLUSTER).rack_table())
    rate, upwards, *_ = prevalence.section_rows(results)
    assert rate.ours == pytest.approx(100 * total / links / INTERVALS)
    assert upwards.ours == pytest.approx(100 * (total - counts["r1:downlink"]) / total)
    kinds = {row.quantity: row.ours for row in prevalence.kind_rows(results)}
    shares = {"disk": counts["r80:uplink"], "compute": total - counts["r80:uplink"], "mixed": 0}
    for kind, count in shares.items():
        assert kinds[f"share of hot link-intervals, {kind} racks, borg"] == pytest.approx(100 * count / total)


def test_crowding_is_of_compute_racks(results: Results) -> None:
    across, up = prevalence._crowding(results[MONTH], 1, MONTH_LOADS[0])
    kinds = Cluster(MONTH_CLUSTER).rack_table()["kind"].to_pylist()
    assert len(across) == len(up) == kinds.count("compute")
    # The first rack has 14 Gb/s. The task on a mixed rack does not count.
    assert across.tolist() == pytest.approx([1 / 14] + [0.0] * (len(across) - 1))
    assert up[0] == pytest.approx(0.2 + 0.7 * HOT["r0:uplink"][1] / INTERVALS, abs=1e-5)
    (row,) = prevalence.crowding_rows(results)
    assert row.ours is not None
    assert -1 <= row.ours <= 1


def test_figures_of_the_month_are_drawn_without_hotspots_too(results: Results) -> None:
    cold: Any = Month()
    cold.links = cold.links.set_column(3, "utilization", pyarrow.array([0.1] * len(cold.links)))
    without = Results()
    without.update(dict.fromkeys((MONTH, MONTH_PLAIN, MONTH_STEADY), cold))
    for each in (results, without):
        for draw in (prevalence.lasting, prevalence.crowding):
            with drawing.settings():
                assert b"</svg>" in drawing.render(draw(each, []))["svg"]
