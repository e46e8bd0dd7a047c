"""Series of traffic matrices from files: lists of transfers as CSV and Parquet, and NumPy arrays."""

import gzip
import json
import math
import subprocess
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays
from pyarrow import parquet

from leeward._arrays import Floats
from leeward.errors import InputError
from leeward.matrix import Series, read

Run = Callable[..., subprocess.CompletedProcess[str]]
HEADER = "t_s,src,dst,bytes\n"
# One to three days in intervals of four hours.
SERIES = arrays(
    numpy.float64,
    some.tuples(some.integers(6, 18), some.just(2), some.just(2)),
    elements=some.just(0.0) | some.floats(0, 1e18),
)


def read_text(text: str | bytes, name: str = "list.csv", **options: Any) -> Series:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        try:
            return read(path, **options)
        except InputError as error:
            # Each call has a folder of another name.
            file = error.file.replace(f"{folder}/", "")
            raise InputError(file, error.line, error.column, error.field, error.message) from None


@given(SERIES, some.randoms(use_true_random=False))
def test_the_order_of_lines_does_not_matter(sent: Floats, random: Any) -> None:
    whole = numpy.floor(numpy.minimum(sent, 1e12))
    lines = [
        f"{14_400 * at + 60 * half},{a},{b},{int(whole[at, a, b] // 2 + half * (whole[at, a, b] % 2))}\n"
        for at, a, b in numpy.ndindex(*whole.shape)
        for half in (0, 1)
    ]
    lines += [f"{14_400 * at},1,0,0\n" for at in range(len(whole))]
    random.shuffle(lines)
    whole = whole // 2 * 2 + whole % 2
    result = read_text(HEADER + "".join(lines), interval="4h")
    assert result.intervals == len(whole)
    assert [result.square(row).tolist() for row in result.bytes] == whole.tolist()


def test_names_are_sorted_naturally_and_numbers_have_no_gaps() -> None:
    names = read_text(HEADER + "0,map10,reduce,1\n0,map2,reduce,2\n5,b,map2,1e9\n")
    assert names.tasks == ("b", "map2", "map10", "reduce")
    assert names.square(names.bytes[0])[1:3, 3].tolist() == [2, 1]
    numbers = read_text(HEADER + "0,1,4,8\n3600,04,1,9\n")
    assert numbers.tasks == ("0", "1", "2", "3", "4")
    assert [float(numbers.square(row).sum()) for row in numbers.bytes] == [8, 9]
    ordered = read_text(HEADER + "0,b,a,8\n", tasks=["a", "b", "idle"])
    assert ordered.square(ordered.bytes[0]).tolist() == [[0, 0, 0], [8, 0, 0], [0, 0, 0]]


def test_gzip_parquet_and_numpy_files_give_the_same_series() -> None:
    text = "note," + HEADER + "".join(f'"x, y",{3600 * at},0,1,{at * 5}\n' for at in range(1, 30))
    plain = read_text(text)
    buffer = BytesIO()
    columns = {"t_s": [3600.0 * at for at in range(1, 30)], "src": [0] * 29, "dst": [1] * 29}
    parquet.write_table(pyarrow.table(columns | {"bytes": [5 * at for at in range(1, 30)]}), buffer)
    square = BytesIO()
    numpy.save(square, numpy.array([plain.square(row) for row in plain.bytes]))
    for other in (gzip.compress(text.encode()), buffer.getvalue(), square.getvalue()):
        result = read_text(other)
        assert (result.tasks, result.interval_s) == (plain.tasks, plain.interval_s)
        assert result.bytes.tolist() == plain.bytes.tolist()


def parquet_bytes(columns: dict[str, Any]) -> bytes:
    """A list in Parquet, in row groups of two rows."""
    buffer = BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer, row_group_size=2)
    return buffer.getvalue()


def csv_text(columns: dict[str, Any]) -> str:
    """The same list in CSV."""
    rows = zip(*(column.cast("string").to_pylist() for column in columns.values()), strict=True)
    lines = (",".join(cell or "" for cell in row) for row in rows)
    return "\n".join([",".join(columns), *lines]) + "\n"


def table(time: Any, src: Any, dst: Any, size: Any) -> dict[str, Any]:
    """Columns of a list."""
    cells = {"t_s": time, "src": src, "dst": dst, "bytes": size}
    return {name: pyarrow.array(column) for name, column in cells.items()}


@pytest.mark.parametrize(
    "columns",
    [
        table([0, 3600, -1, 7200], [" b", "map10", "b", "map2"], ["map2", "b ", "map10", "b"], [5, 0, 1, 2]),
        table([0.5, 1e9, 1e9], ["7", "07", "a"], ["a", "a", "7"], ["1e3", " 2 ", "0.1"]),
        table(["0", "3600.5", "1"], [7, 0, 7], [0, 7, 7], numpy.array([1, 2, 3], dtype="f4")),
        table([0, 0, 0], pyarrow.array(["x", "y", "x"]).dictionary_encode(), [1, 2, 1], [0.1, 0.2, 0.7]),
        table(numpy.array([0, 1, 2], dtype="u1"), [1.0, 2.0, 3.0], [2, 3, 1], [1 / 3, 1e17, 1e-12]),
    ],
)
def test_a_list_in_parquet_is_read_like_the_same_list_in_csv(columns: dict[str, Any]) -> None:
    actual, expected = (
        read_text(text, interval="12h") for text in (parquet_bytes(columns), csv_text(columns))
    )
    assert (actual.tasks, actual.interval_s) == (expected.tasks, expected.interval_s)
    assert actual.pairs.tolist() == expected.pairs.tolist()
    assert actual.bytes.tolist() == expected.bytes.tolist()


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (table([0, 0, 0], ["a"] * 3, ["b"] * 3, [1.5, 1, -1.5]), ":4: bytes: `-1.5`: expected bytes, 0 to"),
        (table([0, 0], ["a"] * 2, ["b"] * 2, [1, math.nan]), ":3: bytes: `nan`: expected bytes, 0 to 1e+18"),
        (table([0, 0], ["a"] * 2, ["b"] * 2, [None, 1]), ":2: bytes: ``: expected bytes, 0 to 1e+18"),
        (table([0, 0], ["a"] * 2, ["b"] * 2, ["1", "1_0"]), ":3: bytes: `1_0`: expected bytes, 0 to 1e+18"),
        (table([0, 10**13], ["a"] * 2, ["b"] * 2, [1, 1]), ":3: t_s: `10000000000000`: expected"),
        (table(["0", "noon"], ["a"] * 2, ["b"] * 2, [1, -1]), ":3: t_s: `noon`: expected seconds, at most"),
        (table([0, 0, 0], ["a", "a", None], ["b"] * 3, [1, 1, 1]), ":4: src: empty; expected the name"),
        (table([0, 0], ["a", " "], ["b", "\a"], [1, -1]), ":3: src: empty; expected the name"),
        (table([0, 0], ["a", "b"], ["b", "\a"], [1, -1]), ":3: dst: `'\\x07'`; expected the name"),
        (table([0, 0], ["a", "\a"], ["b", "b"], [-1, 1]), ":2: bytes: `-1`: expected bytes"),
        (table([], [], [], []), ": no lines; expected at least one transfer"),
        (
            {"t_s": pyarrow.array([1]), "note": pyarrow.array([1])},
            ":1: src: this column is missing; there are: t_s",
        ),
        ({"note": pyarrow.array([1])}, ":1: t_s: this column is missing; there are: note"),
    ],
)
def test_an_invalid_list_in_parquet_has_the_error_of_csv(columns: dict[str, Any], error: str) -> None:
    for text in (parquet_bytes(columns), csv_text(columns)):
        with pytest.raises(InputError) as caught:
            read_text(text)
        assert str(caught.value).startswith(f"list.csv{error}")


def test_a_list_in_parquet_with_too_many_tasks_names_them() -> None:
    names = [f"task{number}" for number in range(5_001)]
    columns = table([0] * 5_001, names, names, [1] * 5_000 + [-1])
    with pytest.raises(InputError, match=r"^list\.csv: 5,001 tasks: more than 5,000$"):
        read_text(parquet_bytes(columns))


def npy(array: Any) -> bytes:
    out = BytesIO()
    numpy.save(out, array)
    return out.getvalue()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "list.csv: empty; expected a header"),
        (HEADER, "list.csv: no lines; expected at least one transfer"),
        ("t_s,src,dst\n", "list.csv:1: bytes: this column is missing; there are: t_s, src, dst"),
        ("t_s,src,dst,bytes,src\n", "list.csv:1: src: this column is given twice"),
        (HEADER + "0,a,b,-1\n", "list.csv:2: bytes: `-1`: expected bytes, 0 to 1e+18"),
        (HEADER + "0,a,b,1\n\n0,a,b,nan\n", "list.csv:4: bytes: `nan`: expected bytes"),
        (HEADER + "0,a,b,inf\n", "list.csv:2: bytes: `inf`: expected bytes"),
        (HEADER + "0,a,b,1_0\n", "list.csv:2: bytes: `1_0`: expected bytes"),
        (HEADER + "0,a,b,2e18\n", "list.csv:2: bytes: `2e18`: expected bytes"),
        (HEADER + "noon,a,b,1\n", "list.csv:2: t_s: `noon`: expected seconds"),
        (HEADER + "1e300,a,b,1\n", "list.csv:2: t_s: `1e300`: expected seconds"),
        (HEADER + "0,,b,1\n", "list.csv:2: src: empty; expected the name or number of a task"),
        (HEADER + "0,a,b\n", "list.csv:2: 3 columns, but the header has 4"),
        (HEADER + '0,"a,b,1\n', "list.csv:2: not readable as CSV: "),
        (HEADER + "0,a\0,b,1\n", "list.csv:2: src: `'a\\x00'`; expected the name"),
        (HEADER + "0,0,99999999,1\n", "list.csv: 100,000,000 tasks: more than 5,000"),
        (
            HEADER + "0,a,b,1\n1e12,a,b,1\n",
            "list.csv: 277,777,778 intervals of 1 pairs: more than 10,000,000",
        ),
        (HEADER + "0,a,b,1e18\n0,a,b,1e18\n", "list.csv: a to b, at 0 s: more than 1e+18 bytes"),
        (HEADER + "0,a,b,1\n" + "x" * 70_000, "list.csv:3: longer than 65,536 characters"),
        (HEADER.encode() + b"0,a,\xff,1\n", "list.csv: neither Parquet nor text in UTF-8"),
        (
            gzip.compress((HEADER + "0,a,b,1\n" * 999).encode(), mtime=0)[:-20],
            "list.csv: the gzip data ends early",
        ),
        (b"\x1f\x8b" + b"x" * 50, "list.csv: not readable as gzip: "),
        (b"PAR1 no", "list.csv: not readable as a table: "),
        (b"\x93NUMPY" + b"\xff" * 50, "list.csv: not readable as a NumPy array: "),
        (npy(numpy.ones((9, 2, 2)))[:-8], "list.csv: not readable as a NumPy array: "),
        (npy(numpy.array([[{}]])), "list.csv: not readable as a NumPy array: "),
        (npy(numpy.ones((2, 2))), "list.csv: 2 x 2; expected intervals x tasks x tasks"),
        (npy(numpy.ones((4, 2, 3))), "list.csv: 4 x 2 x 3; expected intervals x tasks x tasks"),
        (npy(numpy.array(1.0)), "list.csv: a single number; expected"),
        (npy(numpy.ones((4, 2, 2), dtype=complex)), "list.csv: an array of complex128; expected numbers"),
        (npy(numpy.full((1, 2, 2), numpy.nan)), "list.csv: interval 0, row 0, column 0: nan: expected bytes"),
        (npy(-numpy.ones((1, 2, 2))), "list.csv: interval 0, row 0, column 0: -1: expected bytes"),
        (npy(numpy.zeros((1, 5_001, 5_001), dtype=bool)), "list.csv: an array of bool; expected numbers"),
        (npy(numpy.zeros((1, 5_001, 5_001), dtype="i1")), "list.csv: 5,001 tasks: more than 5,000"),
    ],
)
def test_invalid_files_are_rejected_with_the_position(text: str | bytes, error: str) -> None:
    with pytest.raises(InputError) as caught:
        read_text(text)
    assert str(caught.value).startswith(error)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"interval": "60"}, "interval: `60`: the unit is missing"),
        ({"interval": "1 week"}, "interval: `1 week`: unknown unit; expected a time with its unit"),
        ({"interval": "7h"}, "interval: `7h`: expected a time that divides a day"),
        ({"interval": "1d"}, "interval: `1d`: expected a time that divides a day"),
        ({"interval": "0s"}, "interval: `0s`: expected a time that divides a day"),
        ({"interval": "1.5s"}, "interval: `1.5s`: expected whole seconds"),
        ({"tasks": ["a", "a"]}, "tasks: `a` is given twice"),
        ({"tasks": ["a", ""]}, "tasks: an empty name"),
        ({"tasks": ["a"]}, "list.csv: `b`: not one of the 1 tasks that were named"),
    ],
)
def test_invalid_arguments_are_named(options: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError) as caught:
        read_text(HEADER + "0,a,b,1\n", **options)
    assert str(caught.value).startswith(error)


def test_the_diagonal_is_predicted_and_reported(run: Run, tmp_path: Path) -> None:
    text = "t_s,src,dst,bytes\n0,a,a,3e6\n0,a,b,5e6\n3600,a,b,5e6\n"
    (tmp_path / "own.csv").write_text(text)
    assert read(tmp_path / "own.csv").within_bytes == 3e6
    result = run("matrix", "predict", "own.csv", "-o", "json")
    assert result.returncode == 0
    assert json.loads(result.stdout)["within_bytes"] == 3e6
    said = "warning: 3 MB of 13 MB are on the diagonal: from a task to itself, which crosses no link"
    assert said in result.stderr.splitlines()
