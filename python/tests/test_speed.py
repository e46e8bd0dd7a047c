"""The file of figures has what the page of speed prints; each figure has a name of its own."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "benchmarks"))

import collect  # noqa: E402 (the module is not part of the package)
import tables  # noqa: E402


def test_the_file_has_a_figure_for_each_row() -> None:
    figures = json.loads(tables.FIGURES.read_text())["figures"]
    rows = {figure for table in tables.ROWS.values() for _, figure in table}
    rows |= {f"{figure}, {racks} racks" for _, figure in tables.CIRCUITS for racks in tables.RACKS}
    assert not rows - figures.keys()


def test_a_figure_has_the_median_and_the_ends_of_its_runs() -> None:
    runs = [[{"name": "time", "unit": "ms", "value": value}] for value in (3.0, 1.0, 2.0)]
    figure = collect.summarize(runs)["time"]
    assert figure == {"unit": "ms", "median": 2.0, "least": 1.0, "most": 3.0}


def test_two_figures_of_one_name_in_a_run_are_an_error() -> None:
    run = [{"name": "time", "unit": "ms", "value": value} for value in (1.0, 100.0)]
    with pytest.raises(ValueError, match=r"^time: 2 figures of one run have this name$"):
        collect.summarize([run])


@pytest.mark.parametrize(
    ("unit", "values", "expected"),
    [
        ("us", (1500.0, 1500.0, 1500.0), "1.5 ms"),
        ("s", (0.0021, 0.002, 0.0025), "2.1 (2 to 2.5) ms"),
        ("placements/s", (12_345.0, 12_000.0, 13_000.0), "12,300 (12,000 to 13,000)"),
        ("events/s", (1.35e6, 9e5, 1.4e6), "1.35 (0.9 to 1.4) million"),
    ],
)
def test_a_figure_shows_three_digits_in_a_readable_unit(
    unit: str, values: tuple[float, float, float], expected: str
) -> None:
    figure = {"unit": unit, **dict(zip(("median", "least", "most"), values, strict=True))}
    assert tables.display(figure) == expected
