"""Figures of predictors of traffic matrices, on generated and on public matrices."""

import gzip
import os
from pathlib import Path

import pytest

from leeward.errors import InputError
from leeward.matrix import PREDICTORS
from leeward_reproduce.choreo import predictor
from leeward_reproduce.perform import reproduce


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_combination_beats_either_predictor_on_a_daily_cycle(seed: int) -> None:
    combination, last, daily, _ = predictor.score_generated(seed).scored
    for alone in (last, daily):
        assert alone.above_combination.within is not None
        assert alone.above_combination.within[0] > 0
        assert alone.wrong_bytes.value > combination.wrong_bytes.value


def test_the_figure_names_the_missing_matrices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEEWARD_DATA", str(tmp_path))
    rows = reproduce("choreo", "predictor", seeds=2, out=tmp_path / "out", jobs=2)
    assert rows == reproduce("choreo", "predictor", seeds=2, jobs=1)
    absent = [row for row in rows if row.ours is None]
    assert [row.note for row in absent] == [
        f"not measured: there is no {predictor.ABILENE} in the folder of traces"
    ]
    above = {row.quantity: row.ci_low for row in rows if row.unit == "points"}
    assert len(above) == len(PREDICTORS) - 1
    assert sorted(path.name for path in (tmp_path / "out/pictures").iterdir()) == [
        "predictor.png",
        "predictor.svg",
    ]
    (tmp_path / predictor.ABILENE).parent.mkdir()
    (tmp_path / predictor.ABILENE).write_bytes(gzip.compress(b"1 2 3\n"))
    with pytest.raises(InputError, match=r"^data:abilene-tm/.*: expected lines of 144 numbers"):
        reproduce("choreo", "predictor", seeds=1)


def test_on_public_matrices_the_combination_beats_the_time_of_day_alone() -> None:
    folder = os.environ.get("LEEWARD_DATA")
    if not folder or not (Path(folder) / predictor.ABILENE).is_file():
        pytest.skip(f"LEEWARD_DATA is not set to a folder with {predictor.ABILENE}")
    result = predictor.abilene()
    assert result is not None
    assert (result.intervals, result.learnt, result.pairs) == (200, 140, 144)
    daily = result.scored[2].above_combination
    assert daily.within is not None
    assert daily.within[0] > 0
