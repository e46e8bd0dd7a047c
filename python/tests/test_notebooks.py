"""The examples of the papers run as notebooks, and show pictures."""

from pathlib import Path

import matplotlib
import pytest
from matplotlib import pyplot

from support.notebooks import cells, is_picture, results

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples" / "papers").glob("*.py"))


def test_each_paper_has_an_example() -> None:
    papers = {path.stem for path in (ROOT / "docs" / "papers").glob("*.md")}
    assert {path.stem for path in EXAMPLES} == papers


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_cells_run_in_order_and_show_pictures(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    matplotlib.use("Agg")
    monkeypatch.chdir(ROOT)
    before = set(ROOT.iterdir())
    shown = list(results(path))
    pyplot.close("all")
    assert sum(map(is_picture, shown)) >= 2
    assert capsys.readouterr().out
    assert set(ROOT.iterdir()) == before, "an example writes no file"


def test_cells_are_separated_by_their_marks() -> None:
    text = '"""Doc."""\n# %% [markdown]\n# Text\n# %%\na = 1\n# %% second\na\n'
    assert [cell.strip() for cell in cells(text)] == ['"""Doc."""', "a = 1", "a"]
