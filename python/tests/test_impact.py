"""Latencies joined with utilizations: planted inflation is found, and each invalid row is counted."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import leeward
from leeward import InputError
from leeward.impact import Impact, Settings, measure, tables
from leeward.impact.bins import ERROR, MOST, bins, middles
from leeward.impact.synthetic import START_MS, Kind, plant
from leeward.telemetry import Engine, Samples
from leeward.telemetry.samples import COLUMNS

CLUSTER = leeward.Cluster("racks: 4\nhosts_per_rack: 2\nnic: 10Gbps\nrack_link: 10Gbps\n")
LINKS = CLUSTER.links()
NUMBER = dict(zip(LINKS["name"].to_pylist(), LINKS["link"].to_pylist(), strict=True))
ENGINE = Engine.duckdb(threads=1)
GROWTH = [1 + 5 * (at / 19) ** 3 for at in range(20)]
SPAN = 30_000
CAPACITY = 10**10


def samples(table: pyarrow.Table, engine: Engine = ENGINE) -> Samples:
    return Samples(engine, engine.table(table), LINKS, CLUSTER.rack_table(), SPAN)


def telemetry(levels: Mapping[str, Sequence[float]], engine: Engine = ENGINE) -> Samples:
    """Telemetry of links: the utilization of each interval, in order."""
    rows = [
        (NUMBER[name], START_MS + SPAN * (at + 1), SPAN, round(share * CAPACITY * 30), CAPACITY)
        for name, shares in levels.items()
        for at, share in enumerate(shares)
    ]
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in COLUMNS.items()])
    result = pyarrow.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema)
    return samples(result, engine)


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a latency file of a header and rows, and returns its path."""

    def write(header: str, *rows: str, name: str = "latencies.csv") -> Path:
        path = tmp_path / name
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    return write


HEADER = "t_ms,latency_ms,operation,src,dst"
FEW = Settings(least=2, resamples=50)


def at(seconds: float) -> int:
    return START_MS + round(1000 * seconds)


def in_buckets(impact: Impact) -> dict[float, int]:
    (curve,) = impact.curves
    return {bucket.low_ppm / 10_000: bucket.latencies for bucket in curve.buckets}


@pytest.mark.hypothesis
@given(st.lists(st.integers(1, MOST - 1), min_size=1))
def test_the_middle_of_a_bin_is_within_the_stated_error(drawn: list[int]) -> None:
    latency = numpy.array(sorted(drawn))
    actual = bins(latency)
    assert (numpy.diff(actual) >= 0).all()
    assert (numpy.abs(middles(actual) - latency) <= ERROR * latency).all()


@pytest.mark.parametrize("operation", ["chunk-read", "shuffle-write", "file-read", "file-write"])
def test_a_planted_curve_is_recovered_within_the_error_of_bins(tmp_path: Path, operation: str) -> None:
    kind = Kind(operation, GROWTH, share=0.4)
    generated = plant(LINKS, [kind], per_bucket=100)
    parquet.write_table(generated.latencies, tmp_path / "l.parquet")
    actual = measure(tmp_path / "l.parquet", samples(generated.samples), Settings(resamples=0))
    assert (actual.rows, actual.latencies, actual.discards.total, actual.warnings) == (2000, 2000, 0, [])
    for curve, planted in zip(actual.curves, (kind.inflation(), GROWTH), strict=True):
        for name in ("p95", "median"):
            values = [bucket.inflation[name].value for bucket in curve.buckets]
            # Latencies are written to the nanosecond.
            assert values == pytest.approx(planted, rel=2.01 * ERROR)
            assert curve.hotspot[name].value == values[15]
        for tolerance in curve.tolerances:
            first = next((at for at, growth in enumerate(planted) if growth >= tolerance.factor), None)
            assert tolerance.utilization.value == (None if first is None else first / 20)


def test_a_curve_of_random_latencies_is_recovered_within_its_intervals(tmp_path: Path) -> None:
    kind = Kind("file-write", GROWTH)
    outside = judged = 0
    for seed in range(5):
        generated = plant(LINKS, [kind], per_bucket=150, even=False, seed=seed)
        parquet.write_table(generated.latencies, tmp_path / "l.parquet")
        actual = measure(tmp_path / "l.parquet", samples(generated.samples), Settings(seed=seed))
        for bucket, planted in zip(actual.curves[0].buckets[1:], kind.inflation()[1:], strict=True):
            inflation = bucket.inflation["median"]
            assert inflation.low is not None
            assert inflation.high is not None
            judged += 1
            outside += not inflation.low <= planted <= inflation.high
    # On average, 5 % are outside. A seed may have more: all its intervals depend on the same lowest bucket.
    assert outside / judged < 0.15


def test_an_operation_has_the_highest_utilization_of_its_links_and_intervals(write: Write) -> None:
    levels = {
        "r0:uplink": (0.12, 0.32, 0.12),
        "r1:downlink": (0.22, 0.22, 0.62),
        "r0:downlink": (0.99,) * 3,
        "r1:uplink": (0.99,) * 3,
    }
    rows = [
        f"{at(20)},5000,shuffle-read,r0,r1",  # first interval: the downlink is higher
        f"{at(30)},5000,shuffle-read,r0,r1",  # end of the first interval
        f"{at(50)},5000,shuffle-read,r0h1,r1h0",  # second interval: the uplink of the host's rack is higher
        f"{at(61)},5000,shuffle-read,r0,r1",  # second and third interval
        f"{at(61)},55000,shuffle-read,r0,r1",  # all three intervals
        f"{at(61)},5000,file-read,r0,r1",  # a file read crosses the uplink only
    ]
    result = measure(write(HEADER, *rows), telemetry(levels), Settings(by=(), least=2, resamples=0))
    assert in_buckets(result) == {20: 2, 30: 2, 60: 2}


def test_operations_with_named_links_need_no_rule(write: Write) -> None:
    path = write(
        "t_s,latency_s,operation,links",
        f"{START_MS // 1000 + 20},1,backup,r0:uplink r2:downlink",
        f"{START_MS // 1000 + 20},1,backup,r0:uplink",
    )
    result = measure(path, telemetry({"r0:uplink": [0.1], "r2:downlink": [0.5]}), FEW)
    assert in_buckets(result) == {10: 1, 50: 1}


def test_transfers_within_a_rack_cross_none_of_its_links(write: Write) -> None:
    rows = [f"{at(20)},5,shuffle-read,r0h0,r0h1", f"{at(20)},5,shuffle-read,r0h0,r1h0"]
    result = measure(write(HEADER, *rows), telemetry({"r0:uplink": [0.1], "r1:downlink": [0.1]}), FEW)
    assert result.discards.counts == {"within": 1}
    assert in_buckets(result) == {10: 1}


def test_a_missing_server_is_accepted_if_the_rule_allows_it(write: Write) -> None:
    rows = [f"{at(20)},5,chunk-read,,r1", f"{at(20)},5,chunk-read,r0,r1", f"{at(20)},5,shuffle-read,,r1"]
    result = measure(write(HEADER, *rows), telemetry({"r0:uplink": [0.5], "r1:downlink": [0.1]}), FEW)
    assert result.discards.counts == {"no-place": 1}
    assert [in_curve.buckets[0].low_ppm for in_curve in result.curves] == [100_000]
    assert in_buckets(result) == {10: 1, 50: 1}


CLEAN = f"{at(20)},5,file-read,r0,r1"
BAD = {
    "not-a-number": [f"{at(20)},nan,file-read,r0,r1", f"{at(20)},fast,file-read,r0,r1"],
    "negative": [f"{at(20)},-1,file-read,r0,r1"],
    "zero": [f"{at(20)},0,file-read,r0,r1"],
    "no-latency": [f"{at(20)},,file-read,r0,r1"],
    "no-time": [",5,file-read,r0,r1"],
    "no-operation": [f"{at(20)},5,,r0,r1"],
    "too-long": [f"{at(20)},1e12,file-read,r0,r1"],
    "unknown-place": [f"{at(20)},5,file-read,r77,r1", f"{at(20)},5,file-read,r0,r77"],
    "no-place": [f"{at(20)},5,file-read,,r1"],
    "within": [f"{at(20)},5,file-read,r0,r0"],
    "no-telemetry": [f"{at(20)},5,file-read,r1,r0", f"{at(20_000)},5,file-read,r0,r1"],
    "above-105%": [f"{at(50)},5,file-read,r0,r1"],
    "thin": [f"{at(80)},5,file-read,r0,r1"],
}


def of_one_link() -> Samples:
    table = ENGINE.arrow(telemetry({"r0:uplink": (0.1, 8.0)}).table)
    thin = {
        "link": NUMBER["r0:uplink"],
        "t_ms": at(70),
        "span_ms": 10_000,
        "bits": 1,
        "capacity_bps": CAPACITY,
    }
    return samples(pyarrow.concat_tables([table, pyarrow.Table.from_pylist([thin], table.schema)]))


@pytest.mark.hypothesis
@settings(max_examples=settings().max_examples // 10)
@given(st.lists(st.sampled_from([CLEAN, *(row for rows in BAD.values() for row in rows)])))
def test_every_latency_is_used_or_counted(tmp_path_factory: Any, drawn: list[str]) -> None:
    path = tmp_path_factory.mktemp("drawn") / "latencies.csv"
    path.write_text("\n".join([HEADER, *drawn, CLEAN]) + "\n")
    result = measure(path, of_one_link(), FEW)
    expected = {reason: sum(drawn.count(row) for row in rows) for reason, rows in BAD.items()}
    assert result.discards.counts == {reason: count for reason, count in expected.items() if count}
    assert result.latencies == drawn.count(CLEAN) + 1
    assert result.rows == len(drawn) + 1 == result.latencies + result.discards.total


WRONG_UNIT = (
    "a link was above 105 % of capacity, `r0:uplink` at 800 %; "
    "bytes were taken for bits, or the reverse (a factor of 8)"
)


def test_utilization_far_above_capacity_is_reported_with_the_likely_factor(write: Write) -> None:
    result = measure(write(HEADER, CLEAN, *BAD["above-105%"]), of_one_link(), FEW)
    assert result.warnings[0] == WRONG_UNIT


def test_latencies_too_short_for_their_bytes_give_a_warning(write: Write) -> None:
    path = write(f"{HEADER},size_bytes", f"{CLEAN},1000", f"{CLEAN},100000000")
    result = measure(path, of_one_link(), FEW)
    assert result.latencies == 2
    assert result.warnings[1].startswith("1 latencies are too short for their bytes")


def test_a_bucket_with_too_few_latencies_is_listed_but_not_judged(write: Write) -> None:
    levels = {"r0:uplink": (0.02, 0.12, 0.22, 0.32)}
    rows = [
        f"{at(30 * number + 20)},{latency},file-read,r0,r1"
        for number, latency, count in ((0, 1, 5), (1, 100, 1), (2, 1, 5), (3, 4, 5))
        for _ in range(count)
    ]
    result = measure(write(HEADER, *rows), telemetry(levels), Settings(least=5, resamples=20))
    (curve,) = result.curves
    assert [bucket.enough for bucket in curve.buckets] == [True, False, True, True]
    assert curve.buckets[1].inflation["p95"].value is None
    tolerance = curve.tolerances[0]
    assert (tolerance.utilization.value, tolerance.gap) == (0.3, True)
    assert tables.buckets(result)["p95_inflation"].to_pylist() == [
        1,
        None,
        1,
        pytest.approx(4, rel=2 * ERROR),
    ]


def test_load_tolerance_is_interpolated_between_the_middles_of_buckets(write: Write) -> None:
    rows = [
        f"{at(30 * number + 20)},{latency},file-read,r0,r1"
        for number, latency in ((0, 100), (1, 100), (2, 300))
        for _ in range(5)
    ]
    source = telemetry({"r0:uplink": (0.02, 0.07, 0.12)})
    options = Settings(least=5, resamples=0, interpolate=True)
    (curve,) = measure(write(HEADER, *rows), source, options).curves
    actual = {one.factor: one.utilization.value for one in curve.tolerances if one.of == "p95"}
    assert actual == {1.5: pytest.approx(0.0875, abs=1e-3), 2.0: pytest.approx(0.1, abs=1e-3)}


def test_latencies_in_a_single_bucket_give_a_warning_and_no_inflation(write: Write) -> None:
    result = measure(write(HEADER, *[CLEAN] * 5), of_one_link(), FEW)
    assert result.curves[0].tolerances == []
    assert result.warnings == [
        WRONG_UNIT,
        "file-read: only the bucket 10 to 15 % has 2 latencies: no inflation",
    ]


def test_latencies_are_split_by_size_and_ratio_with_missing_values_apart(write: Write) -> None:
    path = write(
        f"{HEADER},size_bytes,compute_ratio",
        f"{CLEAN},9999,0.05",
        f"{CLEAN},10000,0.1",
        f"{CLEAN},,1",
        f"{CLEAN},99999999999,",
    )
    result = measure(path, of_one_link(), Settings(by=("size", "compute"), least=2, resamples=0))
    assert [tuple(curve.split.values()) for curve in result.curves] == [
        (None, "0.9 to 1"),
        ("0 to 10kB", "0 to 0.1"),
        ("10kB to 100kB", "0.1 to 0.2"),
        ("from 10MB", None),
    ]


def test_compute_ratio_is_of_the_ten_slowest_workers_of_each_stage(write: Write) -> None:
    stages = write(
        "query,stage,worker,compute_ms,total_ms",
        *(f"q1,1,w{worker},{worker},100" for worker in range(10)),
        "q1,1,fast,90,99",
        "q1,2,w0,155,1000",
        "q2,1,w0,1,",
        name="stages.csv",
    )
    path = write(f"{HEADER},query", f"{CLEAN},q1", f"{CLEAN},q2")
    result = measure(path, of_one_link(), Settings(by=("compute",), least=2, resamples=0), stages=stages)
    # (45 + 155) / (1000 + 1000)
    assert [tuple(curve.split.values()) for curve in result.curves] == [(None,), ("0.1 to 0.2",)]
    assert result.discards.counts == {"stage-without-time": 1}


def test_lower_classes_weigh_less_and_higher_ones_more(write: Write) -> None:
    sources = {
        name: telemetry({"r0:uplink": [share]}) for name, share in (("PC", 0.1), ("NC", 0.2), ("BE", 0.4))
    }
    rows = [f"{CLEAN},{name}" for name in ("PC", "NC", "BE", "other", "")]
    weights = {"PC": 8, "NC": 4, "BE": 1}
    path = write(f"{HEADER},class", *rows)
    result = measure(path, sources, Settings(by=("class",), least=2, resamples=0), weights=weights)
    actual = {curve.split["class"]: curve.buckets[0].low_ppm / 10_000 for curve in result.curves}
    # (8 x 10 + 4 x 20 + 1 x 40) / weight: 25 %, 50 %, 200 %
    assert actual == {"PC": 25, "NC": 50, "BE": 200}
    assert result.discards.counts == {"no-weight": 2}
    with pytest.raises(InputError, match=r"^weights: telemetry is by class of service: expected the weights"):
        measure(path, sources)
    with pytest.raises(InputError, match=r"^weights: BE: no weight"):
        measure(path, sources, weights={"PC": 8, "NC": 4})


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("t_ms,latency,operation,src", [], "latency: expected a column with its unit: one of latency_s"),
        ("t_ms,latency_ms,latency_s,operation,src", [], "latency_s: beside `latency_s`|beside `latency_s`"),
        (
            "when,latency_ms,operation,src",
            [],
            "expected the end of operations in one of t_s, t_ms, t; it has",
        ),
        ("t_ms,latency_ms,op,src", [], "operation: no such column"),
        ("t_ms,latency_ms,operation", [], "the links of operations are unknown"),
        (HEADER, [], "no latencies: the file has a header and no row"),
        (
            HEADER,
            [f"{at(20)},5,chunk-reed,r0,r1"],
            "row 0: `chunk-reed`: no rule for the links of this operation",
        ),
        (HEADER, BAD["negative"], "none of 1 latencies is valid: 1 negative"),
        (HEADER.replace("t_ms", "t_s"), [CLEAN], "too large for seconds; is it in milliseconds"),
        (
            HEADER,
            [f"{START_MS // 1000 + 20},5,file-read,r0,r1"],
            "no overlap in time: latencies are of 1970-01-21",
        ),
        (HEADER, [f"{at(20)},5,file-read,r2,r1"], "none of 1 latencies has a utilization: 1 no-telemetry"),
        (HEADER, ["1,2"], "latencies.csv:2: `1,2`: 2 columns; expected 5"),
        (f"{HEADER},t_ms", [f"{CLEAN},1"], "t_ms: this column is given twice"),
        (HEADER.replace("t_ms", "t"), [CLEAN], "a number without a unit; expected a date and time"),
    ],
)
def test_unusable_latency_files_are_rejected_with_the_position(
    write: Write, header: str, rows: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        measure(write(header, *rows), of_one_link(), FEW)


@pytest.mark.parametrize(
    "kind", [pyarrow.struct([("a", pyarrow.int64())]), pyarrow.binary(), pyarrow.bool_()]
)
def test_columns_that_are_neither_numbers_nor_texts_are_rejected(tmp_path: Path, kind: Any) -> None:
    table = {"t_ms": [at(20)], "latency_ms": [5.0], "operation": ["file-read"], "src": pyarrow.nulls(1, kind)}
    parquet.write_table(pyarrow.table(table), tmp_path / "l.parquet")
    with pytest.raises(InputError, match=r"^.*: src: a column of `.*`; expected numbers, texts or lists"):
        measure(tmp_path / "l.parquet", of_one_link(), FEW)


@pytest.mark.hypothesis
@given(st.binary(max_size=200), st.sampled_from(["l.csv", "l.parquet", "l.csv.gz"]))
def test_random_bytes_are_rejected_as_input_errors(tmp_path_factory: Any, drawn: bytes, name: str) -> None:
    path = tmp_path_factory.mktemp("bytes") / name
    path.write_bytes(HEADER.encode() + b"\n" + drawn)
    with pytest.raises(InputError):
        measure(path, of_one_link(), FEW)


def test_missing_overlap_in_time_names_both_ranges_and_the_likely_unit(write: Write) -> None:
    with pytest.raises(InputError) as caught:
        measure(write(HEADER, f"{START_MS // 1000 + 20},5,file-read,r0,r1"), of_one_link(), FEW)
    assert str(caught.value) == (
        "latency: no overlap in time: latencies are of 1970-01-21T10:53:45Z to 1970-01-21T10:53:45Z, and"
        " telemetry of 2026-01-01T00:00:00Z to 2026-01-01T00:01:30Z"
    )
    assert caught.value.__notes__ == ["times of latencies look like seconds where milliseconds are expected"]


def test_intervals_finer_than_telemetry_are_rejected(write: Write) -> None:
    with pytest.raises(InputError, match=r"^interval: `10s`: telemetry has a sample every 30s only"):
        measure(write(HEADER, CLEAN), of_one_link(), Settings(interval_ms=10_000))


def test_parquet_with_timestamps_dictionaries_and_lists_is_read(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "t": pyarrow.array([at(20), at(20)], pyarrow.timestamp("ms", "UTC")),
            "latency_us": [5000, 6000],
            "operation": pyarrow.array(["query", "query"]).dictionary_encode(),
            "dst": [["r0", "r1h1"], ["r2"]],
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    text = (
        "t,latency_us,operation,dst\n2026-01-01T00:00:20Z,5000,query,r0 r1\n2026-01-01 00:00:20,1,query,r2\n"
    )
    (tmp_path / "b.csv").write_text(text)
    links = {f"r{rack}:{side}": [0.1 + 0.2 * rack] for rack in range(3) for side in ("uplink", "downlink")}
    result = measure(tmp_path, telemetry(links), FEW)
    assert in_buckets(result) == {30: 2, 50: 2}


def test_the_bootstrap_matches_resampled_latencies(write: Write) -> None:
    random = numpy.random.default_rng(3)
    base, slow = random.lognormal(0, 1, 60), 2 * random.lognormal(0, 1, 60)
    rows = [
        f"{at(30 * number + 20)},{latency},file-read,r0,r1"
        for number, some in enumerate((base, slow))
        for latency in some
    ]
    options = Settings(least=2, resamples=20_000)
    (curve,) = measure(write(HEADER, *rows), telemetry({"r0:uplink": (0.1, 0.5)}), options).curves
    rank = math.ceil(0.95 * 60) - 1
    drawn = [numpy.sort(random.choice(some, (20_000, 60)), axis=1)[:, rank] for some in (base, slow)]
    low, high = numpy.quantile(drawn[1] / drawn[0], [0.025, 0.975])
    actual = curve.buckets[1].inflation["p95"]
    assert [actual.low, actual.high] == pytest.approx([low, high], rel=0.05)


def test_duckdb_and_spark_agree_on_every_digit(tmp_path: Path, spark: Engine) -> None:
    kinds = [Kind("chunk-read", GROWTH, 0.4), Kind("shuffle-write", GROWTH, medium="ram")]
    planted = plant(LINKS, kinds, per_bucket=40, even=False)
    rows = planted.latencies.num_rows
    ratio = numpy.random.default_rng(1).integers(0, 11, rows) / 10
    latencies = planted.latencies.append_column("compute_ratio", pyarrow.array(ratio))
    parquet.write_table(latencies, tmp_path / "l.parquet")
    options = Settings(by=("operation", "compute"), least=5)
    actual = [
        measure(tmp_path / "l.parquet", samples(planted.samples, engine), options)
        for engine in (ENGINE, spark)
    ]
    assert actual[0].counts.equals(actual[1].counts)
    assert json.dumps(tables.record(actual[0])) == json.dumps(tables.record(actual[1]))
