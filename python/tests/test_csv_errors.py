"""Every reader names an irregular line of CSV, and the expected content."""

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward import Cluster, InputError
from leeward._csv_errors import find_error
from leeward._table_head import head
from leeward.hotspots.causes.tables import Column
from leeward.hotspots.causes.tables import read as read_table
from leeward.impact import columns
from leeward.telemetry import Discards, Engine, read

T = 1_700_000_000
CLUSTER = Cluster({"racks": 3, "hosts_per_rack": 2, "nic": "10Gbps", "rack_link": "40Gbps"})
WRONG = [
    (f"{T},r0:uplink", "2 columns; expected 3 as in the header: t_s, link, load_bps"),
    (f"{T},r0:uplink,1,2,3", "5 columns; expected 3 as in the header: t_s, link, load_bps"),
    (f'{T},"r0:uplink,1', "a quoted cell begins here and does not end; expected a closing quote"),
    (f'{T},"r0:"uplink",1', "a quote within a cell; expected a doubled quote, in a quoted cell"),
    (f"{T},{'x' * 2_000_000},1", "a line of 2,000,014 bytes; expected 2,000,000 at most"),
]
IDS = ["too few", "too many", "open quote", "quote within", "too long"]


def write_telemetry(folder: Path, row: str, name: str = "a.csv") -> Path:
    """Telemetry whose line 2,002 is wrong."""
    good = [f"{T + 30 * step},r0:uplink,1e9" for step in range(4000)]
    data = "\n".join(["t_s,link,load_bps", *good[:2000], row, *good[2000:]]).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder / name


@pytest.mark.parametrize(("row", "expected"), WRONG, ids=IDS)
@pytest.mark.parametrize("name", ["a.csv", "a b.csv.gz"])
def test_a_ragged_telemetry_row_is_reported_with_file_and_line(
    tmp_path: Path, name: str, row: str, expected: str
) -> None:
    path = write_telemetry(tmp_path, row, name)
    with pytest.raises(InputError) as raised:
        read(CLUSTER, [path], engine=Engine.duckdb(threads=1))
    text = row if len(row) <= 60 else f"{row[:60]}..."
    assert str(raised.value) == f"{path}:2002: `{text}`: {expected}"


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize(("first", "later"), [("LF", "CR LF"), ("CR LF", "LF")])
def test_lines_that_end_in_different_ways_are_reported_with_the_first(
    tmp_path: Path, name: str, first: str, later: str
) -> None:
    ends = {"LF": "\n", "CR LF": "\r\n"}
    rows = ["t_s,link,load_bps", *(f"{T + 30 * step},r0:uplink,1e9" for step in range(100))]
    data = "".join(row + ends[first if at < 50 else later] for at, row in enumerate(rows)).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(InputError) as raised:
        read(CLUSTER, [tmp_path / name], engine=Engine.duckdb(threads=1))
    message = f"this line ends in {later}, and the lines before it in {first}; expected one of them"
    assert str(raised.value) == f"{tmp_path / name}:51: {message}"


def test_the_file_with_the_ragged_row_is_named(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    for name in ("a.csv", "b.csv", "c.csv"):
        write_telemetry(
            tmp_path / "all", WRONG[name == "b.csv"][0] if name == "b.csv" else f"{T},r0:uplink,1", name
        )
    with pytest.raises(InputError) as raised:
        read(CLUSTER, [tmp_path / "all"], engine=Engine.duckdb(threads=1))
    assert str(raised.value).startswith(f"{tmp_path}/all/b.csv:2002: ")


@pytest.mark.parametrize(("row", "expected"), WRONG[:2], ids=IDS[:2])
def test_a_ragged_row_is_reported_with_file_and_line_in_spark(
    spark: Engine, tmp_path: Path, row: str, expected: str
) -> None:
    path = write_telemetry(tmp_path, row, "a b.csv")
    with pytest.raises(InputError) as raised:
        read(CLUSTER, [path], engine=spark)
    assert str(raised.value) == f"{path}:2002: `{row}`: {expected}"


@pytest.mark.parametrize(("row", "expected"), WRONG[:2], ids=IDS[:2])
def test_a_ragged_row_of_latencies_is_reported_with_file_and_line(
    tmp_path: Path, row: str, expected: str
) -> None:
    path = write_telemetry(tmp_path, row)
    with pytest.raises(InputError) as raised:
        list(columns.batches(head(path), ["t_s", "link"]))
    assert str(raised.value) == f"{path}:2002: `{row}`: {expected}"


@pytest.mark.parametrize(("row", "expected"), WRONG[:2], ids=IDS[:2])
def test_a_ragged_row_of_a_fleet_table_is_reported_with_file_and_line(
    tmp_path: Path, row: str, expected: str
) -> None:
    path = write_telemetry(tmp_path, row)
    path.write_text(path.read_text().replace("t_s,link", "t_s,rack"))
    wanted = [Column("rack", "text"), Column("load_bps", "number")]
    with pytest.raises(InputError) as raised:
        read_table(Engine.duckdb(threads=1), path, wanted, ["r0"], Discards())
    assert str(raised.value) == f"{path}:2002: `{row}`: {expected.replace('link', 'rack')}"


def test_invalid_utf8_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,2\n\n3,\xff\n")
    assert str(find_error(tmp_path / "a.csv")) == f"{tmp_path}/a.csv:4: `3,?`: not text in UTF-8"


def test_only_the_first_of_many_columns_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(",".join(f"c{at}" for at in range(1200)) + "\n1\n")
    expected = "expected 1,200 as in the header: c0, c1, c2, c3, c4, c5, c6, c7 and 1,192 more"
    assert str(find_error(tmp_path / "a.csv")) == f"{tmp_path}/a.csv:2: `1`: 1 columns; {expected}"


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=6)


@pytest.mark.hypothesis
@given(
    st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=12),
    st.integers(0, 11),
    st.sampled_from([2, 4]),
    st.sampled_from([",", ";", "\t"]),
    st.booleans(),
)
def test_the_reported_line_is_the_start_of_the_row(
    tmp_path_factory: Any, rows: list[list[str]], at: int, width: int, delimiter: str, known: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "drawn.csv"
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([["a", "b", "c"], *rows[:at]])
    line = text.getvalue().count("\n") + 1
    path.write_text(text.getvalue() + "\n".join(['"1"']), encoding="utf-8", newline="")
    assert str(find_error(path, line if known else None)).startswith(f'{path}:{line}: `"1"`: 1 columns')
    writer.writerow(["x"] * width)
    writer.writerows(rows[at:])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    assert str(find_error(path, line if known else None)).startswith(f"{path}:{line}: ")
    if known:
        assert find_error(path, 1) is None
