"""Samples from raw counters: planted counts are recovered despite resets, losses, duplicates and disorder."""

from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from leeward import Cluster
from leeward.telemetry import Engine, Samples, read, windows

T = 1_700_000_000_000
CLUSTER = Cluster({"racks": 2, "hosts_per_rack": 2, "nic": "10Gbps", "rack_link": "10Gbps"})
SLOW = Cluster({"racks": 2, "hosts_per_rack": 2, "nic": "1Gbps", "rack_link": "1Gbps"})
"""At 1 Gb/s, three steps carry less than 2^32 octets, so a 32-bit counter is not ambiguous."""
STEP = 10_000
MOST = 10**9
"""Greatest number of octets in a step: a 32-bit counter wraps at most once in three steps."""

Steps = list[tuple[int, str]]
"""For each step: the octets of a link, and the fault of the reading at the end of the step."""
steps = st.lists(
    st.tuples(st.integers(0, MOST), st.sampled_from(["", "", "", "", "lost", "twice", "restart", "order"])),
    min_size=4,
    max_size=40,
)


class Planted:
    """Readings of a counter, and the expected bits."""

    def __init__(self, drawn: Steps, start: int, top: int) -> None:
        self.rows = [(T, start)]
        self.bits = self.resets = self.twice = self.wraps = 0
        value, seen, carried, restarted, lost = start, start, 0, False, 0
        for number, (octets, fault) in enumerate(drawn, 1):
            if fault == "restart":
                value, restarted = 0, True
            else:
                value += octets
                carried += octets
            # At most two successive steps have no reading: three would be a gap.
            if fault == "lost" and lost < 2 and not restarted:
                lost += 1
                continue
            lost = 0
            reading = value % top
            self.rows.append((T + STEP * number, reading))
            if fault == "twice":
                self.rows.append(self.rows[-1])
                self.twice += 1
            if restarted and reading < seen:
                self.resets += 1
            elif restarted:
                # The restart is not visible, because the reading is not below the previous one.
                self.bits += 8 * (reading - seen)
            else:
                self.bits += 8 * carried
                self.wraps += reading < seen
            seen, carried, restarted = reading, 0, False
        if any(fault == "order" for _, fault in drawn):
            self.rows.reverse()


def read_samples(
    engine: Engine,
    folder: Any,
    planted: list[Planted],
    width: int | None = None,
    cluster: Cluster = CLUSTER,
) -> Samples:
    links = ["r0:uplink", "r1:downlink"]
    name = "ifInOctets" if width == 32 else "rx_octets"
    rows = [(link, *row) for link, one in zip(links, planted, strict=False) for row in one.rows]
    columns = {
        "link": [row[0] for row in rows],
        "t_ms": [row[1] for row in rows],
        name: [row[2] for row in rows],
    }
    parquet.write_table(pyarrow.table(columns), folder / "a.parquet")
    (folder / "map.yaml").write_text("links:\n  - {match: {link: '(?P<name>.*)'}, in: '{name}'}\n")
    return read(cluster, [folder / "a.parquet"], map=folder / "map.yaml", engine=engine, cadence="10s")


def every(samples: Samples) -> list[dict[str, int]]:
    table = samples.table.select("link", "t_ms", "span_ms", "bits", "capacity_bps").order_by("link", "t_ms")
    return list(samples.engine.arrow(table).to_pylist())


@pytest.mark.hypothesis
@settings(max_examples=settings().max_examples // 5)
@given(drawn=st.lists(steps, min_size=1, max_size=2), start=st.integers(5 * 10**9, 2**60))
def test_bits_survive_resets_losses_duplicates_and_reordering(
    tmp_path_factory: Any, drawn: list[Steps], start: int
) -> None:
    planted = [Planted(one, start, 2**63) for one in drawn]
    samples = read_samples(Engine.duckdb(threads=1), tmp_path_factory.mktemp("counters"), planted)
    actual = every(samples)
    assert sum(row["bits"] for row in actual) == sum(one.bits for one in planted)
    counts = samples.discards.counts
    assert counts.get("reset", 0) == sum(one.resets for one in planted)
    assert counts.get("duplicate", 0) == sum(one.twice for one in planted)
    assert set(counts) <= {"reset", "duplicate"}
    ends: dict[int, int] = {}
    for row in actual:
        assert row["t_ms"] - row["span_ms"] >= ends.get(row["link"], 0), "samples overlap"
        ends[row["link"]] = row["t_ms"]


@pytest.mark.hypothesis
@settings(max_examples=settings().max_examples // 5)
@given(drawn=steps, start=st.integers(0, 2**32 - 1))
def test_32_bit_counters_wrap_without_losing_bits(tmp_path_factory: Any, drawn: Steps, start: int) -> None:
    # A restart of a 32-bit counter may look like a wrap, so this test has no restarts.
    once = [(octets, "" if fate == "restart" else fate) for octets, fate in drawn]
    planted = Planted(once, start, 2**32)
    samples = read_samples(Engine.duckdb(threads=1), tmp_path_factory.mktemp("narrow"), [planted], 32, SLOW)
    assert sum(row["bits"] for row in every(samples)) == planted.bits
    assert samples.discards.counts.get("wrap-32", 0) == planted.wraps


def test_a_32_bit_reset_is_distinguished_from_a_wrap_by_the_speed(tmp_path: Any) -> None:
    def counts(step_ms: int) -> dict[str, int]:
        planted = Planted([], 0, 2**32)
        planted.rows = [(T + step_ms * at, value) for at, value in enumerate([10**6, 10**6 + 10, 0, 10, 20])]
        return dict(read_samples(Engine.duckdb(threads=1), tmp_path, [planted], 32).discards.counts)

    # At 10 Gbit/s, 2^32 octets take 3.4 s. In four seconds the counter may wrap once, but not twice.
    assert counts(1000) == {"reset": 1}
    assert counts(4000) == {"wrap-32": 1, "ambiguous-32": 3}
    assert counts(STEP) == {"ambiguous-32": 4}


@pytest.mark.hypothesis
@settings(max_examples=settings().max_examples // 5)
@given(
    octets=st.lists(st.integers(0, 9 * MOST), min_size=3, max_size=20),
    start=st.integers(0, 2**32 - 1),
)
def test_a_32_bit_reading_that_may_hide_a_wrap_has_no_value(
    tmp_path_factory: Any, octets: list[int], start: int
) -> None:
    # Each sample is right, whatever the counter carried; where it cannot be known, there is none.
    planted = Planted([], start, 2**32)
    values = [start]
    for grown in octets:
        values.append(values[-1] + grown)
    planted.rows = [(T + STEP * at, value % 2**32) for at, value in enumerate(values)]
    samples = read_samples(Engine.duckdb(threads=1), tmp_path_factory.mktemp("wraps"), [planted], 32)
    carried = {T + STEP * (at + 1): 8 * grown for at, grown in enumerate(octets)}
    assert all(row["bits"] in (0, carried[row["t_ms"]]) for row in every(samples))
    unknown = sum(grown > 0 for grown in octets)
    assert samples.discards.counts.get("ambiguous-32", 0) <= unknown


@pytest.mark.parametrize("repeats", [1, 2, 4, 9])
@pytest.mark.parametrize("load", [0.2, 0.8, 1.0])
def test_a_cached_counter_that_catches_up_stays_one_steady_load(
    tmp_path: Any, repeats: int, load: float
) -> None:
    octets = round(load * 10e9 / 8 * STEP / 1000)
    planted = Planted([], 0, 2**63)
    # Every reading but one of `repeats` + 1 repeats the one before.
    planted.rows = [(T + STEP * at, 10**12 + octets * (at - at % (repeats + 1))) for at in range(361)]
    samples = read_samples(Engine.duckdb(threads=1), tmp_path, [planted])
    table = windows(samples, 300_000).table.order_by("start_ms")
    ppm = samples.engine.arrow(table)["ppm"].to_pylist()[:-1]
    assert len(ppm) == 11 or len(ppm) == 12
    if load * (repeats + 1) > 1.05:
        assert set(ppm) <= {round(1e6 * load), round(1e6 * load) - 1}
        # At the end, the last readings only repeat.
        assert samples.discards.counts == {"cached": 360 - 360 // (repeats + 1) - 360 % (repeats + 1)}
    else:
        assert samples.discards.counts == {}


def test_gaps_and_jumps_of_a_counter_give_no_samples(tmp_path: Any) -> None:
    rows = [(T + STEP * step, 10**6 * step) for step in range(30) if not 10 < step < 20]
    planted = Planted([], 0, 2**63)
    planted.rows = [
        *rows,
        (T + STEP * 30, 10**15),
        *((T + STEP * step, 10**15 + step) for step in range(31, 40)),
    ]
    samples = read_samples(Engine.duckdb(threads=1), tmp_path, [planted])
    assert samples.discards.counts == {"gap": 1, "too-fast": 1}
    # Ten samples are before the gap, nine after it, and nine after the jump.
    assert len(every(samples)) == 10 + 9 + 9


def test_a_series_that_is_always_too_fast_is_not_discarded(tmp_path: Any) -> None:
    planted = Planted([], 0, 2**63)
    planted.rows = [(T + STEP * step, 10**11 * step) for step in range(40)]
    samples = read_samples(Engine.duckdb(threads=1), tmp_path, [planted])
    assert not samples.discards.counts
    ppm = samples.engine.arrow(windows(samples).table)["ppm"].to_pylist()
    assert set(ppm) == {8_000_000}


def test_a_jump_beyond_the_range_of_bits_is_discarded_in_a_too_fast_series(
    tmp_path: Any,
) -> None:
    lines, value = ["link,counter_octets,t_s"], 0
    for step in range(12):
        value += 7 * 10**17 if step % 4 == 3 else 10**12
        lines.append(f"r0:uplink,{value},{T // 1000 + 30 * step}")
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    samples = read(CLUSTER, [tmp_path / "a.csv"], engine=Engine.duckdb(threads=1))
    assert samples.discards.counts == {"too-fast": 3}
    assert len(every(samples)) == 12 - 1 - 3


def test_both_engines_read_the_same_samples_from_counters(spark: Engine, tmp_path: Any) -> None:
    faults = ["", "twice", "", "lost", "", "restart", "order"]
    planted = [
        Planted(
            [(number * 7919 % MOST, faults[(number * seed) % 7]) for number in range(1, 60)], 10**10, 2**63
        )
        for seed in (1, 3)
    ]
    narrow = Planted([(number * 10**7 % MOST, "") for number in range(1, 60)], 2**32 - 5, 2**32)
    for given_planted, width in ((planted, None), ([narrow], 32)):
        ours, theirs = (
            read_samples(engine, tmp_path, given_planted, width)
            for engine in (Engine.duckdb(threads=1), spark)
        )
        assert every(ours) == every(theirs)
        assert ours.discards.counts == theirs.discards.counts
        tables = [
            one.samples.engine.arrow(one.table.order_by("link", "start_ms")).to_pylist()
            for one in (windows(ours), windows(theirs))
        ]
        assert tables[0] == tables[1]


def test_both_engines_read_the_same_samples_from_csv(spark: Engine, tmp_path: Any) -> None:
    lines = [f"r{step % 2}:uplink,{step * 1e6},{T // 1000 + 15 * (step // 2)}" for step in range(200)]
    lines += [
        "r0:uplink,x,1700000000",
        "r0:uplink,1,never",
        "r9:uplink,1,1700000000",
        "r1:uplink,-1,1700000000",
    ]
    lines += [lines[7], lines[8]]
    (tmp_path / "a.csv").write_text("\n".join(["link,load_bps,t_s", *lines]) + "\n")
    ours, theirs = (read(CLUSTER, [tmp_path / "a.csv"], engine=one) for one in (Engine.duckdb(), spark))
    assert every(ours) == every(theirs)
    assert ours.discards.counts == theirs.discards.counts
