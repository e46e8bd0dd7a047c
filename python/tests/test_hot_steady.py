"""Imbalance, stability and forecasts of links, compared with calculations by hand."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leeward
from leeward.hotspots import Settings
from leeward.hotspots.durations import hot_intervals
from leeward.hotspots.forecast import Forecast, forecast
from leeward.hotspots.hot import hours
from leeward.hotspots.imbalance import imbalance
from leeward.telemetry import Engine, Samples, windows
from leeward.telemetry.samples import COLUMNS

MIN = 60_000
SMALL = {"racks": 3, "hosts_per_rack": 1, "nic": "1Gbps", "oversubscription": 1}
UPLINKS = {"r0:uplink": 6, "r1:uplink": 8, "r2:uplink": 10}
BPS = 10**9
Loads = Mapping[int, Sequence[float | None]]
"""Utilizations of each link in successive intervals; None is a missing sample."""


def samples(loads: Loads, cadence_ms: int, start_ms: int = 0) -> Samples:
    cluster, engine = leeward.Cluster(SMALL), Engine.duckdb(threads=1)
    rows = [
        (link, start_ms + (at + 1) * cadence_ms, cadence_ms, round(load * BPS * cadence_ms / 1000), BPS)
        for link, several in loads.items()
        for at, load in enumerate(several)
        if load is not None
    ]
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in COLUMNS.items()])
    table = pyarrow.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema)
    return Samples(engine, engine.table(table), cluster.links(), cluster.rack_table(), cadence_ms)


def uneven(loads: Loads, cadence_ms: int = 5 * MIN) -> Any:
    every = windows(samples(loads, cadence_ms))
    return imbalance(every, hours(every), Settings())


@pytest.mark.hypothesis
@settings(max_examples=settings().max_examples // 12)
@given(st.lists(st.tuples(*3 * [st.integers(0, 100)]), min_size=1, max_size=20))
def test_cv_is_the_standard_deviation_over_the_mean(percents: list[tuple[int, int, int]]) -> None:
    loads: Loads = {link: [row[at] / 100 for row in percents] for at, link in enumerate(UPLINKS.values())}
    result = uneven(loads)
    cvs = [int(1000 * numpy.std(row) / numpy.mean(row) + 1e-9) for row in percents if any(row)]
    (row,) = result.unevenness.to_pylist()
    assert (row["cross_section"], row["direction"], row["links"]) == ("ToR-pod", "up", 3)
    assert (row["intervals"], row["idle"]) == (len(cvs), len(percents) - len(cvs))
    hist = {one["permille"]: one["intervals"] for one in result.cv.to_pylist()}
    # A Cv on the edge of a bin may fall to either side of it.
    assert sum(hist.values()) == len(cvs)
    assert sorted(one for at, count in hist.items() for one in count * [at]) == pytest.approx(
        sorted(cvs), abs=1
    )
    if cvs:
        assert row["cv_p50"] == pytest.approx(sorted(cvs)[-(-len(cvs) // 2) - 1] / 1000, abs=0.0011)
        assert row["above_one"] == pytest.approx(sum(cv > 1000 for cv in cvs) / len(cvs), abs=0.3)
    # With three links, the 95th percentile is the utilization of the busiest link.
    assert row["busy"] == sum(max(one) > 75 for one in percents) / len(percents)


def test_alternating_imbalance_averages_out_over_longer_times() -> None:
    turns = [[0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.1, 0.9]]
    loads: Loads = {link: 24 * [turn[at] for turn in turns] for at, link in enumerate(UPLINKS.values())}
    result = uneven(loads)
    (row,) = result.unevenness.to_pylist()
    assert row["cv_p50"] == int(1000 * numpy.std([9, 1, 1]) / numpy.mean([9, 1, 1])) / 1000
    assert {one["average_ms"]: one["cv_p50"] for one in result.longer.to_pylist()} == {
        0: 0.0,
        60 * MIN: 0.0,
        360 * MIN: 0.0,
        1440 * MIN: 0.0,
    }


def test_intervals_with_doubtful_units_are_left_out_and_counted() -> None:
    result = uneven({6: [8.0, 0.5], 8: [0.5, 0.5], 10: [0.5, 0.5]})
    (row,) = result.unevenness.to_pylist()
    assert (row["doubtful"], row["links"], row["cv_p95"]) == (1, 3, 0.0)


def test_cv_uses_ten_second_intervals_if_samples_are_frequent_enough() -> None:
    assert uneven({6: 60 * [0.5], 8: 60 * [0.1]}, 5_000).interval_ms == 10_000
    assert uneven({6: 60 * [0.5], 8: 60 * [0.1]}, 30_000).interval_ms == 5 * MIN


@pytest.mark.hypothesis
@settings(max_examples=settings().max_examples // 12)
@given(
    st.lists(st.one_of(st.none(), st.integers(0, 40)), min_size=3, max_size=30),
    st.sampled_from([5_000, 10_000, 20_000]),
)
def test_stability_matches_a_direct_count(loads: list[int | None], cadence: int) -> None:
    result = uneven({6: [None if one is None else one / 40 for one in loads] + [0.5]}, cadence)
    every = [*loads, 20]
    rows = {row["horizon_ms"]: row for row in result.stability.to_pylist()}
    assert list(rows) == [one for one in (5_000, 10_000, 20_000, 40_000) if one % cadence == 0]
    for horizon, row in rows.items():
        steps = horizon // cadence
        judged = []
        for at, now in enumerate(every[: len(every) - steps]):
            after = every[at + 1 : at + 1 + steps]
            if now is not None and None not in after:
                judged.append(20 * abs(sum(one or 0 for one in after) - steps * now) <= steps * now)
        assert row["pairs"] == len(judged)
        if judged:
            assert row["all"] == row["worst"] == sum(judged) / len(judged)


def test_infrequent_samples_give_no_stability() -> None:
    assert uneven({6: 20 * [0.5]}, 30_000).stability.num_rows == 0


def forecast_of(loads: Loads, **chosen: Any) -> Forecast:
    every = windows(samples(loads, 5 * MIN))
    forecast_settings = Settings(**chosen)
    return forecast(every, hot_intervals(every, forecast_settings), forecast_settings)


def test_hotspots_of_equal_length_are_forecast_better_than_by_persistence() -> None:
    # Each link is hot for half an hour and then not for an hour and a half; each starts later than the last.
    loads: Loads = {
        link: [0.9 if (at + shift) % 24 < 6 else 0.2 for at in range(24 * 12 * 6)]
        for shift, link in enumerate(UPLINKS.values())
    }
    result = forecast_of(loads)
    persistence, base, hazard = result.scores
    assert result.used == "hazard"
    assert persistence.brier == pytest.approx(0.5, abs=0.01)
    assert persistence.recall == 1.0
    assert persistence.precision == pytest.approx(0.5, abs=0.01)
    assert base.brier == pytest.approx(0.25, abs=0.01)
    assert hazard.brier < 0.15
    assert hazard.skill is not None
    assert hazard.skill[0] == pytest.approx(1 - hazard.brier / persistence.brier)
    assert hazard.skill[1] > 0.5


def test_random_hotspots_are_forecast_with_the_base_rate() -> None:
    # Each interval is hot at random, so that a hotspot predicts nothing.
    random = numpy.random.default_rng(5)
    loads: Loads = {
        link: [0.9 if one < 0.3 else 0.2 for one in random.random(3000)] for link in UPLINKS.values()
    }
    loads = {link: [*several, 0.9] for link, several in loads.items()}
    result = forecast_of(loads)
    assert result.used == "base rate"
    assert {row["chance"] for row in result.now.to_pylist()} == {result.base_rate}
    assert result.base_rate == pytest.approx(0.3, abs=0.03)
    assert {row["name"] for row in result.now.to_pylist()} == set(UPLINKS)


def test_a_link_that_is_always_hot_is_forecast_by_persistence() -> None:
    result = forecast_of({6: 600 * [0.9]})
    assert result.used == "persistence"
    assert result.scores[0].brier == 0.0
    assert all(score.skill is None for score in result.scores)
    (row,) = result.now.to_pylist()
    assert (row["chance"], row["since_ms"], row["ppm"]) == (1.0, 0, 900_000)


def test_too_little_training_data_gives_no_forecast() -> None:
    result = forecast_of({6: [*100 * [0.2], 0.9, 0.9]})
    assert (result.scores, result.used) == ((), None)
    assert [row["chance"] for row in result.now.to_pylist()] == [None]


def test_intervals_across_the_split_are_neither_learned_nor_scored() -> None:
    result = forecast_of({6: 100 * [0.9]}, train=0.5, ahead_ms=20 * MIN)
    # Learned intervals and their successors end before the split; 4 scored intervals have no successor.
    assert (result.learnt, result.scored) == (50 - 4, 50 - 4)
