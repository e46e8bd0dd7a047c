"""Utilization in intervals, from clean samples."""

from collections.abc import Iterable

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.telemetry import Engine, Samples, windows
from leeward.telemetry.samples import COLUMNS

Row = tuple[int, int, int, int, int]
NONE = pyarrow.table({})
ENGINE = Engine.duckdb(threads=1)


def samples(rows: Iterable[Row]) -> Samples:
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in COLUMNS.items()])
    table = pyarrow.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema)
    return Samples(ENGINE, ENGINE.table(table), NONE, NONE, 30_000)


def rows(table: pyarrow.Table) -> list[dict[str, int]]:
    return sorted(table.to_pylist(), key=lambda row: (row["link"], row["start_ms"]))


@pytest.mark.hypothesis
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40), st.integers(0, 30 * 10**9)), min_size=1))
def test_windows_count_every_bit_once(drawn: list[tuple[int, int, int]]) -> None:
    once = {(link, t): bits for link, t, bits in drawn}
    given_rows = [(link, 30_000 * t, 30_000, bits, 10**9) for (link, t), bits in once.items()]
    every = windows(samples(given_rows), interval_ms=300_000, coverage=0.0)
    actual = rows(ENGINE.arrow(every.table))
    assert sum(row["bits"] for row in actual) == sum(once.values())
    for row in actual:
        interval = (row["link"], row["start_ms"] // 300_000)
        within = sum((link, (30 * t - 1) // 300) == interval for link, t in once)
        assert row["covered_ms"] == 30_000 * within
        assert row["ppm"] == row["bits"] * 10**6 // (10**9 * row["covered_ms"] // 1000)


def test_a_sample_that_ends_at_an_edge_belongs_before_it() -> None:
    every = windows(samples([(0, 300_000, 300_000, 10, 1000), (0, 300_001, 300_000, 20, 1000)]))
    actual = rows(ENGINE.arrow(every.table))
    assert [(row["start_ms"], row["bits"]) for row in actual] == [(0, 10), (300_000, 20)]


def test_a_capacity_change_within_an_interval_is_averaged_over_time() -> None:
    half = windows(samples([(0, 150_000, 150_000, 75_000, 1000), (0, 300_000, 150_000, 75_000, 500)]))
    assert rows(ENGINE.arrow(half.table))[0]["ppm"] == 666_666


def test_intervals_observed_for_less_than_half_are_not_judged() -> None:
    few = windows(samples([(0, 30_000 * t, 30_000, 1, 1000) for t in (1, 2, 3, 4)]))
    assert (ENGINE.arrow(few.table).num_rows, ENGINE.arrow(few.thin).num_rows) == (0, 1)
