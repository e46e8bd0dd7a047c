"""The file of figures has what the pages of speed print; a table shows what the file lacks."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "benchmarks"))

import results  # noqa: E402 (the module is not part of the package)
import tables  # noqa: E402

UNMEASURED = re.compile(
    r"hotspots, leeward over polars|beside (SimGrid|nfdump|tshark|SciPy), .*"
    r"|(operations|policy|shaping), .*"
    r"|hdfs, (parse of 10000|(whole|difference) of 3000) hosts, p99"
)
"""Figures of benchmarks that are newer than the file. The next `make bench` measures them."""


def test_the_file_has_a_figure_for_each_row_whose_benchmark_is_not_newer() -> None:
    figures = results.read()["figures"]
    rows = {figure for name in tables.TABLES for figure in tables.figures_of(name)}
    assert not [row for row in sorted(rows - figures.keys()) if not UNMEASURED.fullmatch(row)]


def test_a_figure_has_a_part_whose_conditions_are_known_and_lies_between_its_ends() -> None:
    document = results.read()
    for name, figure in document["figures"].items():
        assert figure["part"] in document["parts"], name
        assert figure["least"] <= figure["median"] <= figure["most"], name
        assert figure["spread"] == results.spread(figure["median"], figure["least"], figure["most"]), name
        if "peer" in figure:
            assert "version" in document["parts"][figure["part"]]["peers"][figure["peer"]], name
    for part, conditions in document["parts"].items():
        assert {"machine", "date", "commit", "runs", "load_before", "load_after", "peers"} == (
            set(conditions) - {"note"}
        )
        assert any(figure["part"] == part for figure in document["figures"].values()), part


def test_the_file_is_as_the_collector_writes_it(tmp_path: Path) -> None:
    results.write(results.read(), tmp_path / "speed.json")
    assert (tmp_path / "speed.json").read_text() == results.FIGURES.read_text()


def test_a_constant_has_a_program_a_machine_and_a_date_and_is_no_figure_of_the_file() -> None:
    figures = results.read()["figures"]
    for name, constant in tables.CONSTANTS["figures"].items():
        assert name not in figures
        assert {"program", "machine", "date"} == set(tables.CONSTANTS["sources"][constant["source"]])
    for comparison in tables.CONSTANTS["comparisons"]:
        assert {"work", "program", "result", "machine", "date"} == set(comparison)


def part(**conditions: Any) -> dict[str, Any]:
    fields = {"date": "2026-11-26", "commit": "abc", "runs": 5, "load_before": 0.2, "load_after": 1.5}
    return {"machine": {"cores": 2}, **fields, "peers": {}} | conditions


def figure(median: float, unit: str = "s", **fields: Any) -> dict[str, Any]:
    return {"part": "x", "unit": unit, "median": median, "least": median, "most": median, **fields}


def written(folder: Path, parts: dict[str, Any], figures: dict[str, Any]) -> Path:
    path = folder / "speed.json"
    path.write_text(json.dumps({"parts": parts, "figures": figures}))
    return path


def test_a_figure_that_the_file_lacks_is_shown_as_not_measured(tmp_path: Path) -> None:
    path = written(tmp_path, {}, {})
    for name in set(tables.TABLES) - {"released", "etalon"}:
        # The circuits have a row of constants.
        rows = tables.table(name, path).splitlines()[2:]
        assert rows
        assert all(tables.NOT_MEASURED in row or "constants" in row for row in rows)


@pytest.mark.parametrize(
    ("peers", "figures", "expected"),
    [
        ({}, {}, "| not measured with this version | DuckDB |"),
        (
            {"DuckDB": {"missing": "the package is not installed"}},
            {},
            "| not measured: the package is not installed | DuckDB |",
        ),
        ({"DuckDB": {"version": "1.4.5"}}, {"median": 2.0}, "| 2 times | DuckDB 1.4.5 |"),
        ({"DuckDB": {"version": None}}, {"median": 2.0}, "| 2 times | DuckDB, version not recorded |"),
    ],
)
def test_a_row_beside_another_program_has_its_version_or_why_it_is_missing(
    tmp_path: Path, peers: dict[str, Any], figures: dict[str, float], expected: str
) -> None:
    measured = {"hotspots, leeward over by hand": figure(figures["median"], "ratio")} if figures else {}
    text = tables.table("beside", written(tmp_path, {"x": part(peers=peers)}, measured))
    assert next(line for line in text.splitlines() if "DuckDB" in line).endswith(expected)


def test_parts_with_the_same_conditions_share_a_row(tmp_path: Path) -> None:
    other = part(load_after=None, machine={"processor": "P", "cores": 4, "memory_gb": 8, "kernel": "6.1"})
    text = tables.table("conditions", written(tmp_path, {"a": part(), "b": part(), "c": other}, {}))
    assert text.splitlines()[2:] == [
        "| a, b | 2026-11-26 | abc | 5 | 0.2 | 1.5 | 2 cores |",
        "| c | 2026-11-26 | abc | 5 | 0.2 | not recorded | P, 4 cores, 8 GB, Linux 6.1 |",
    ]


def test_an_unknown_table_is_an_error() -> None:
    with pytest.raises(KeyError, match="nothing"):
        tables.table("nothing")


@pytest.mark.parametrize(
    ("unit", "values", "expected"),
    [
        ("us", (1500.0, 1500.0, 1500.0), "1.5 ms"),
        ("s", (0.0021, 0.002, 0.0025), "2.1 (2 to 2.5) ms"),
        ("placements/s", (12_345.0, 12_000.0, 13_000.0), "12,300 (12,000 to 13,000)"),
        ("events/s", (1.35e6, 9e5, 1.4e6), "1.35 (0.9 to 1.4) million"),
        ("%", (0.1, -0.3, 0.5), "0.1 (-0.3 to 0.5) %"),
    ],
)
def test_a_figure_shows_three_digits_in_a_readable_unit(
    unit: str, values: tuple[float, float, float], expected: str
) -> None:
    figure = {"unit": unit, **dict(zip(("median", "least", "most"), values, strict=True))}
    assert tables.display(figure) == expected
