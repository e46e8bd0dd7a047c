"""Tables in files with unusual names, compressions, delimiters or types. An invalid cell discards its row."""

import gzip
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from leeward import Cluster, InputError, matrix
from leeward.hotspots.causes.tables import TASKS
from leeward.hotspots.causes.tables import read as read_fleet
from leeward.impact import Settings, measure
from leeward.telemetry import Discards, Engine, Samples, read

T = 1_700_000_000
CLUSTER = Cluster({"racks": 3, "hosts_per_rack": 2, "nic": "10Gbps", "rack_link": "40Gbps"})
RACKS = ["r0", "r1", "001"]
LOADS = "t_s,link,load_bps\n" + "".join(f"{T + 30 * step},r0:uplink,1e9\n" for step in range(20))
TIMES = [T + 30 * step for step in range(20)]
LATENCIES = "t_s,latency_ms,operation,src,dst\n" + f"{T + 200},8,file-read,r0,r1\n" * 3
TASK_ROWS = f"t_s,rack,job,cpus,tx_bps,rx_bps\n{T},001,a,4,1e9,1e9\n{T},r1,b,4,1e9,1e9\n"
TRANSFERS = "t_s,src,dst,bytes\n0,a,b,5\n3600,b,a,7\n"


def telemetry(path: Path, engine: Engine | None = None) -> Samples:
    return read(CLUSTER, [path], engine=engine or Engine.duckdb(threads=1))


def count(samples: Samples) -> int:
    return int(samples.engine.arrow(samples.table.agg(n=samples.table.count()))["n"][0].as_py())


def read_tasks(path: Path, discards: Discards | None = None) -> list[dict[str, Any]]:
    engine = Engine.duckdb(threads=1)
    table = read_fleet(engine, path, TASKS, RACKS, discards or Discards())
    actual: list[dict[str, Any]] = engine.arrow(table.order_by("job")).to_pylist()
    return actual


def latency_count(path: Path) -> int:
    (path.parent / "loads.csv").write_text(LOADS)
    return measure(path, telemetry(path.parent / "loads.csv"), Settings(least=2, resamples=0)).latencies


@pytest.mark.parametrize(
    "form",
    [
        lambda text: text.encode(),
        lambda text: gzip.compress(text.encode()),
        lambda text: text.replace(",", ";").encode(),
        lambda text: b"\xef\xbb\xbf" + text.replace(",", "\t").replace("\n", "\r\n").encode(),
    ],
    ids=["plain", "gzip without .gz", "semicolons", "tabs, with a mark of UTF-8"],
)
def test_all_table_readers_accept_the_same_csv_dialects(tmp_path: Path, form: Any) -> None:
    for name, text in (("t", LOADS), ("l", LATENCIES), ("k", TASK_ROWS), ("m", TRANSFERS)):
        (tmp_path / f"{name}.csv").write_bytes(form(text))
    assert count(telemetry(tmp_path / "t.csv")) == 20
    assert latency_count(tmp_path / "l.csv") == 3
    # A name that consists of digits stays a string.
    assert [row["rack"] for row in read_tasks(tmp_path / "k.csv")] == ["001", "r1"]
    assert matrix.read(tmp_path / "m.csv").bytes.sum() == 12


def test_glob_characters_in_a_file_name_are_literal(tmp_path: Path) -> None:
    for name in ("a1", "a[1]", "b*", "bc", "d?", "de", "f{g,h}", "fg"):
        (tmp_path / f"{name}.csv").write_text(LOADS.replace("r0", "r1" if len(name) == 2 else "r0"))
        (tmp_path / f"{name}.parquet").write_bytes(b"")
    for name in ("a[1]", "b*", "d?", "f{g,h}"):
        (tmp_path / f"{name}.csv").write_text(LOADS + f"{T + 999},r0:uplink,2e9\n")
        assert count(telemetry(tmp_path / f"{name}.csv")) == 21
        table = pyarrow.table({"t_s": TIMES, "link": ["r0:uplink"] * 20, "load_bps": [1.0] * 20})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
        assert count(telemetry(tmp_path / f"{name}.parquet")) == 20


def test_glob_characters_in_a_file_name_are_literal_in_spark(tmp_path: Path, spark: Engine) -> None:
    for name in ("a[1].csv", "a1.csv", "f{g,h}.csv", "fg.csv"):
        (tmp_path / name).write_text(LOADS if "[" in name or "{" in name else LOADS * 2)
    assert count(telemetry(tmp_path / "a[1].csv", spark)) == 20
    assert count(telemetry(tmp_path / "f{g,h}.csv", spark)) == 20
    (tmp_path / "b.csv").write_bytes(gzip.compress(LOADS.encode()))
    with pytest.raises(InputError, match="gzip, but its name does not end in"):
        telemetry(tmp_path / "b.csv", spark)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("load_bps", [True] * 20),
        ("load_bps", [[1.0]] * 20),
        ("link", [["r0:uplink"]] * 20),
        ("time", [True] * 20),
        ("time", [[1]] * 20),
        ("time", [{"a": 1}] * 20),
        ("time", pyarrow.array([1] * 20, pyarrow.time64("us"))),
    ],
)
def test_a_column_of_an_unsupported_type_is_an_error_with_file_and_column(
    tmp_path: Path, field: str, values: Any
) -> None:
    table = {"time": TIMES, "link": ["r0:uplink"] * 20, "load_bps": [1.0] * 20} | {field: values}
    parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="expected numbers, texts") as error:
        telemetry(tmp_path / "a.parquet")
    assert (error.value.file, error.value.field) == (str(tmp_path / "a.parquet"), field)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", "number", "text"])
def test_a_time_outside_the_calendar_is_counted(tmp_path: Path, unit: str) -> None:
    far = {"s": 2**40, "ms": 2**50, "us": 2**62, "ns": 2**62, "number": 2**62, "text": 10**25}[unit]
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.get(unit, 1)
    stated: Any = [factor * at for at in TIMES[1:]] + [far]
    if unit == "text":
        times = pyarrow.array([str(at) for at in stated])
    else:
        times = pyarrow.array(stated, pyarrow.int64() if unit == "number" else pyarrow.timestamp(unit))
    table = pyarrow.table({"t_s": times, "link": ["r0:uplink"] * 20, "load_bps": [1.0] * 20})
    parquet.write_table(table, tmp_path / "a.parquet")
    samples = telemetry(tmp_path / "a.parquet")
    assert (count(samples), samples.discards.total) == (19, 1)
    assert set(samples.discards.counts) <= {"no-time", "future"}


def test_each_file_of_a_folder_has_its_own_time_unit(tmp_path: Path) -> None:
    forms: list[Callable[[int], object]] = [
        lambda at: 1000 * at,
        lambda at: at,
        lambda at: time.strftime("%FT%TZ", time.gmtime(at)),
    ]
    for rack, form in enumerate(forms):
        text = "".join(f"{form(at)},r{rack}:uplink,{rack}\n" for at in TIMES)
        (tmp_path / f"{rack}.csv").write_text("time,link,load_bps\n" + text)
    samples = telemetry(tmp_path)
    table = samples.table.group_by("link").agg(first=lambda t: t.t_ms.min(), last=lambda t: t.t_ms.max())
    ends = {(row["first"], row["last"]) for row in samples.engine.arrow(table).to_pylist()}
    assert ends == {(1000 * TIMES[0], 1000 * TIMES[-1])}
    assert count(samples) == 60


def test_one_absurd_time_discards_only_that_latency(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LATENCIES + f"{T * 10**6},8,file-read,r0,r1\n")
    assert latency_count(tmp_path / "a.csv") == 3
    (tmp_path / "a.csv").write_text(LATENCIES.replace(str(T + 200), f"{T}000"))
    with pytest.raises(InputError, match="is it in milliseconds"):
        latency_count(tmp_path / "a.csv")
    times = pyarrow.array([T + 200, 2**40], pyarrow.timestamp("s"))
    columns = {"latency_ms": [8, 8], "operation": ["file-read"] * 2, "src": ["r0"] * 2, "dst": ["r1"] * 2}
    parquet.write_table(pyarrow.table({"t": times, **columns}), tmp_path / "a.parquet")
    assert latency_count(tmp_path / "a.parquet") == 1


@pytest.mark.parametrize("field", ["operation", "latency_ms", "medium"])
def test_list_columns_are_rejected_outside_the_ends_of_operations(tmp_path: Path, field: str) -> None:
    columns: dict[str, Any] = {"t_s": [T + 200], "latency_ms": [8], "operation": ["file-read"]}
    columns |= {"medium": ["hdd"], "src": [["r0"]], "dst": [["r1"]]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    assert latency_count(tmp_path / "a.parquet") == 1
    parquet.write_table(pyarrow.table(columns | {field: [["x"]]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=f"{field}: a column of `list<.*expected numbers or texts"):
        latency_count(tmp_path / "a.parquet")


def test_a_cell_of_a_fleet_table_without_a_number_discards_its_row(tmp_path: Path) -> None:
    discards = Discards()
    (tmp_path / "a.csv").write_text(f"{TASK_ROWS}{T},r0,c,abc,1,1\n{T},r0,d,,1,1\n{T},r0,e,nan,1,1\n")
    assert [row["job"] for row in read_tasks(tmp_path / "a.csv", discards)] == ["a", "b"]
    assert discards.counts == {"not-a-number": 3}


def test_numbers_of_a_fleet_table_too_large_to_sum_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TASK_ROWS.replace(",4,", ",1e15,") + f"{T},r0,c,1e15,1,1\n" * 3)
    with pytest.raises(InputError, match="cpus: the numbers of this column add up to 5e"):
        read_tasks(tmp_path / "a.csv")
