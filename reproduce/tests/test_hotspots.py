import math
from pathlib import Path

import numpy
import pyarrow
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from leeward.errors import InputError
from leeward.simulation import read_scenario
from leeward_reproduce.hotspots import FIGURES, paper
from leeward_reproduce.hotspots.many_cells import change_of_mean
from leeward_reproduce.hotspots.sweeps import (
    CELL,
    INCIDENTS,
    LEAST_S,
    MONTH_FILE,
    PILOT,
    PILOT_MANY,
    UPLINKS_FILE,
    UPLINKS_TOLD,
    check_horizon,
)
from leeward_reproduce.hotspots.windows import (
    METRICS,
    change,
    half,
    paired_p_value,
    student_p_value,
    window_of,
)
from leeward_reproduce.perform import reproduce
from leeward_reproduce.rows import Row

INTERVAL_S = 300.0


def table(hot: list[int], intensive: list[int], on_hot: list[int], moved: list[int]) -> pyarrow.Table:
    """Intervals of five minutes of a cell of ten racks."""
    count = len(hot)
    constant = {"tors": 10, "tor_p98": 0.5, "utilization": 0.25, "length_s": INTERVAL_S}
    records = {name: numpy.full(count, value) for name, value in constant.items()}
    records |= {"start_s": 7200 + INTERVAL_S * numpy.arange(count), "hot_uplinks": numpy.array(hot)}
    records |= {"intensive": numpy.array(intensive), "intensive_on_hot": numpy.array(on_hot)}
    return pyarrow.table(records | {"moved": numpy.array(moved)})


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """A slice of the reproduction: one seed, two windows of an hour."""
    out = tmp_path_factory.mktemp("hotspots")
    result = reproduce("hotspots", ["table-3", "leeward"], seeds=1, out=out, horizon=f"{LEAST_S:.0f}s")
    assert (out / "pictures" / "table-3.svg").is_file()
    return result


counts = some.lists(some.integers(0, 10), min_size=1, max_size=60)


@given(counts)
def test_samples_of_a_metric_average_to_its_mean_if_equally_long(hot: list[int]) -> None:
    none = [0] * len(hot)
    window = window_of(table(hot, none, none, hot))
    assert window.mean("hot") == pytest.approx(10 * sum(hot) / len(hot))
    assert window.mean("moves") == pytest.approx(sum(hot) * 86_400 / (len(hot) * INTERVAL_S))
    samples = window.samples("hot")
    assert len(samples) == min(len(hot), 5)
    if len(hot) % 5 == 0:
        assert float(samples.mean()) == pytest.approx(window.mean("hot"))
    for metric in METRICS:
        assert numpy.isfinite(window.samples(metric)).all()


@given(some.lists(some.tuples(some.integers(0, 9), some.integers(0, 9)), min_size=1, max_size=40))
def test_violations_are_a_share_of_intensive_placements(pairs: list[tuple[int, int]]) -> None:
    intensive = [max(pair) for pair in pairs]
    on_hot = [min(pair) for pair in pairs]
    none = [0] * len(pairs)
    window = window_of(table(none, intensive, on_hot, none))
    expected = 100 * sum(on_hot) / sum(intensive) if sum(intensive) else 0.0
    assert window.mean("violations") == pytest.approx(expected)
    assert (window.samples("violations") <= 100).all()


def test_windows_are_halves_and_hours_are_complete() -> None:
    count = 30
    window = window_of(table(list(range(count)), [0] * count, [0] * count, [0] * count))
    first, second = half(window, 0), half(window, 1)
    assert first.mean("hot") == pytest.approx(70)
    assert second.mean("hot") == pytest.approx(220)
    # Two hours and a half of five-minute intervals.
    assert window.hourly("hot") == pytest.approx([55, 175])
    assert len(window_of(table([], [], [], [])).hourly("hot")) == 0


def test_changes_and_significance_tests_match_a_calculation_by_hand() -> None:
    before, after = numpy.array([1.0, 2.0, 3.0]), numpy.array([2.0, 4.0, 6.0])
    assert change(before, after) == [100.0]
    assert change(numpy.zeros(3), after) == []
    # Pooled variance (1 + 4) / 2: t = 2 / sqrt(2.5 * 2 / 3) = 1.549193 with 4 degrees of freedom.
    assert student_p_value(before, after) == pytest.approx(0.196253, abs=1e-5)
    # Differences 1, 2, 3: t = 2 sqrt(3) = 3.464102 with 2 degrees of freedom.
    assert paired_p_value(list(before), list(after)) == pytest.approx(0.074180, abs=1e-5)
    assert (student_p_value(before, before), paired_p_value([1.0, 2.0], [1.0, 2.0])) == (1.0, 1.0)
    assert paired_p_value([1.0, 2.0], [2.0, 3.0]) == 0.0


def test_a_slice_has_a_row_for_each_claim_of_table_3(rows: list[Row]) -> None:
    claims = {row.paper for row in rows if row.paper is not None}
    assert claims == {paper.MOVES, paper.VIOLATIONS, paper.MOVES_FACTOR, paper.VIOLATIONS_FACTOR}
    for row in rows:
        assert row.ours is None or math.isfinite(row.ours)
        assert "a first look" in row.note or row.ours is None


def test_leeward_is_no_worse_than_utp_in_hot_tors_and_in_moves(rows: list[Row]) -> None:
    ours = {row.quantity: row.ours for row in rows if row.figure == "leeward"}
    assert len(ours) == 4
    for quantity, value in ours.items():
        if quantity.startswith(("ToRs hot", "tasks moved")):
            assert value is not None
            assert value <= 0


def test_the_incidents_and_the_cell_are_readable_and_described() -> None:
    files = [path for path in sorted(INCIDENTS.glob("*.yaml")) if not path.stem.endswith("-cluster")]
    assert len(files) == 4
    for path in [CELL, MONTH_FILE, *files]:
        assert read_scenario(path).policies
        assert path.read_text(encoding="utf-8").startswith("# ")


def test_announced_and_unannounced_uplink_failures_are_the_same_events() -> None:
    events = yaml.safe_load(UPLINKS_FILE.read_text(encoding="utf-8"))["events"]
    (announced,) = (yaml.safe_load(value) for path, value in UPLINKS_TOLD.fixed if path == "events")
    assert [event | {"told": False} for event in announced] == events
    assert all(event["told"] for event in announced)


@pytest.mark.parametrize("horizon", ["2d", "1h", "soon", "-1d"])
def test_horizons_without_two_windows_are_rejected(horizon: str) -> None:
    with pytest.raises(InputError, match="horizon"):
        check_horizon(horizon)


def test_the_change_of_a_mean_has_the_interval_of_the_jackknife() -> None:
    for pairs, expected, values in (
        # Each cell has the same change, so nothing is uncertain.
        ([(2.0, 1.0), (20.0, 10.0), (4.0, 2.0)], -50.0, [-50.0] * 3),
        # With equal values before, the jackknife is the interval of the mean.
        ([(2.0, 1.0), (2.0, 2.0), (2.0, 3.0)], 0.0, [-50.0, 0.0, 50.0]),
    ):
        found = change_of_mean(pairs)
        assert found is not None
        assert found[0] == pytest.approx(expected)
        assert found[1] == pytest.approx(values)
    # A cold cell hardly counts: the mean of the changes would be 425 %.
    found = change_of_mean([(10.0, 5.0), (1.0, 10.0)])
    assert found is not None
    assert found[0] == pytest.approx(100 * (15 / 11 - 1))
    assert change_of_mean([(4.0, 3.0)]) == (-25.0, [])
    assert (
        change_of_mean([]) is change_of_mean([(0.0, 1.0)]) is change_of_mean([(0.0, 1.0), (1.0, 1.0)]) is None
    )


def test_ten_times_the_cells_contain_those_of_the_pilot() -> None:
    assert (PILOT_MANY.name, PILOT_MANY.scenario) == (PILOT.name, PILOT.scenario)
    assert PILOT_MANY.settings("3d") == PILOT.settings("3d")
    assert list(PILOT_MANY.seeds(10)) == list(range(1, 101))
    assert set(PILOT.seeds(10)) <= set(PILOT_MANY.seeds(10))
    assert PILOT_MANY.cells(10) == 300


def test_the_measured_incidents_are_the_examples() -> None:
    examples = Path(__file__).parents[2] / "examples" / "incidents"
    assert examples.resolve() == INCIDENTS.resolve()


def test_every_figure_has_a_title_and_its_sweeps_or_experiments() -> None:
    assert {"14", "15", "table-2", "table-3", "incidents", "leeward"} <= set(FIGURES)
    without_runs = {"9"}
    for name, figure in FIGURES.items():
        assert figure.title
        assert bool(figure.sweeps or figure.experiments) == (name not in without_runs)
