"""Sinbad's figures on real bytes: scenarios, rows from measurements of this file, and a short pair."""

from pathlib import Path

import pytest

from leeward.errors import InputError
from leeward_reproduce.hdfs import missing
from leeward_reproduce.perform import reproduce
from leeward_reproduce.sinbad.real import pairs, scenario
from leeward_reproduce.sinbad.real.pairs import Measures, Pair
from leeward_reproduce.sinbad.real.perform import FIGURES
from support.parts import lack


def test_the_cluster_reads_the_writes_and_rates_of_the_scenario(tmp_path: Path) -> None:
    load = scenario.read(scenario.write(tmp_path, 3, "60s"))
    assert load.seconds == 60
    assert len(load.writes) == round(scenario.FILES_PER_S * 40)
    assert all(5 <= one.at_s <= 45 for one in load.writes)
    assert {one.bytes // scenario.SHAPE.block for one in load.writes} <= set(scenario.SIZES)
    # Each rack has a rate in each of four epochs, and in each one rack is hot.
    assert len(load.streams) == 4 * scenario.SHAPE.racks
    for at in (0.0, 15.0, 30.0, 45.0):
        shares = sorted(one.rate_bps / scenario.LINK_BPS for one in load.streams if one.at_s == at)
        assert shares[-1] >= 0.7
        assert shares[-2] <= 0.4
        assert {one.until_s for one in load.streams if one.at_s == at} == {at + 15}


def test_equal_seeds_give_equal_scenarios(tmp_path: Path) -> None:
    first, again, other = (
        scenario.read(scenario.write(tmp_path / name, seed, "60s"))
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == again != other


def test_the_simulator_runs_the_scenario_under_both_policies(tmp_path: Path) -> None:
    file = scenario.write(tmp_path, 1, "60s")
    load, measures = scenario.read(file), pairs.simulated(file)
    for one in measures.values():
        assert one.blocks == [each.bytes // scenario.SHAPE.block for each in load.writes]
        # A block takes at least its time on a link of a rack.
        least = 8 * scenario.SHAPE.block / scenario.LINK_BPS
        assert all(seconds is None or seconds > 0.99 * least for seconds in one.seconds)
        assert all(0 < one.cv[way] < 2 for way in pairs.WAYS)
    assert measures["default"].seconds != measures["sinbad"].seconds


def test_short_runs_and_several_at_once_are_errors() -> None:
    for fields, message in (
        ({"horizon": "20s"}, "`20s`: expected at least 40s"),
        ({"horizon": "x"}, "horizon"),
        ({"lab": True}, "leave out `lab`"),
        ({"jobs": 2}, "2: real runs would disturb each other"),
    ):
        with pytest.raises(InputError, match=message):
            reproduce("sinbad", real=True, **fields)
    with pytest.raises(InputError, match="`choreo` has no figures on real bytes; these papers have: sinbad"):
        reproduce("choreo", real=True)


def made_up(seed: int) -> Pair:
    """A pair in which `sinbad` takes half of the time. Times of the simulator are longer by a tenth."""
    blocks = [1, 2, 4, 1]
    cv = {"downlink": 0.8, "uplink": 0.5}
    less = {"downlink": 0.5, "uplink": 0.5}

    def measures(scale: float, last: float | None) -> dict[str, Measures]:
        times = [scale * (seed + count) for count in blocks[:3]]
        return {
            "default": Measures(blocks, [*times, last], cv),
            "sinbad": Measures(blocks, [*(0.5 * time for time in times), 1.0], less),
        }

    return Pair(seed, measures(1.1, None), measures(1.0, 2.0))


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_rows_of_its_name_with_values_of_paper_simulator_and_cluster(name: str) -> None:
    rows = FIGURES[name].rows([made_up(seed) for seed in range(1, 5)])
    assert {row.figure for row in rows} == {name}
    assert all(row.ours is not None for row in rows)
    ratios = [row for row in rows if row.unit == "x"]
    assert all(row.ours == row.simulator == pytest.approx(2.0) for row in ratios)
    assert all(row.ci_low is not None for row in rows if row.simulator is not None)


def test_rows_of_figure_8_have_the_decrease_of_the_variation() -> None:
    rows = {row.quantity: row for row in FIGURES["8"].rows([made_up(1), made_up(2)])}
    row = rows["decrease of the median Cv, links into racks: default - sinbad"]
    assert row.paper == 0.33
    assert row.ours == pytest.approx(0.3)


def test_the_agreement_with_the_simulator_counts_against_its_value() -> None:
    rows = {row.quantity: row for row in FIGURES["6"].rows([made_up(1), made_up(2)])}
    row = rows["time of a file: largest difference of cluster and simulator"]
    assert row.expected == "at most 20 %"
    assert row.met is True
    assert row.ours is not None
    assert 0 < row.ours < 20


@pytest.mark.whole
def test_a_pair_of_short_runs_has_all_rows_and_a_second_call_reads_it(tmp_path: Path) -> None:
    lacks = missing()
    if lacks is not None:
        lack(lacks)
    rows = reproduce("sinbad", real=True, seeds=1, horizon="40s", out=tmp_path / "out")
    assert all(row.ours is not None for row in rows if row.unit == "s")
    again = reproduce("sinbad", real=True, seeds=1, horizon="40s", out=tmp_path / "out")
    assert again == rows
    assert "| real |" in (tmp_path / "out" / "results.md").read_text()
