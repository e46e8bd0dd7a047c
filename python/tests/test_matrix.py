"""Series of traffic matrices: prediction and scores."""

import json
import math
import subprocess
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays

from leeward._arrays import Floats
from leeward.errors import InputError
from leeward.matrix import PREDICTORS, Series, predict, read, score
from leeward.matrix.history import look_back
from leeward.matrix.scoring import held_out

Run = Callable[..., subprocess.CompletedProcess[str]]
HEADER = "t_s,src,dst,bytes\n"

# A day has six intervals of four hours, so that series of several days are short.
INTERVAL, DAY = "4h", 6
AMOUNTS = some.just(0.0) | some.floats(0, 1e18) | some.floats(1e-9, 10)


@some.composite
def series(draw: some.DrawFn, least: int = 1, most: int = 5 * DAY) -> Floats:
    shape = (draw(some.integers(least, most)), 2, 2)
    return numpy.asarray(draw(arrays(numpy.float64, shape, elements=AMOUNTS)))


@given(series())
def test_a_prediction_is_between_the_least_and_the_most_bytes_of_the_pair(sent: Floats) -> None:
    result = predict(Series.of(sent, INTERVAL)).matrix
    assert numpy.isfinite(result).all()
    assert (result >= numpy.where(sent < 1e-9, 0, sent).min(axis=0)).all()
    assert (result <= sent.max(axis=0)).all()


@given(series())
def test_the_same_series_gives_the_same_bits(sent: Floats) -> None:
    first, second = (predict(Series.of(sent.copy(), INTERVAL)) for _ in range(2))
    assert first.matrix.tobytes() == second.matrix.tobytes()


@given(arrays(numpy.float64, (2, 2), elements=AMOUNTS), some.integers(1, 4 * DAY))
def test_a_constant_series_is_predicted_exactly(each: Floats, intervals: int) -> None:
    result = predict(Series.of(numpy.repeat(each[None], intervals, axis=0), INTERVAL)).matrix
    assert result == pytest.approx(numpy.where(each < 1e-9, 0, each), rel=1e-9)


@given(arrays(numpy.float64, (DAY, 2, 2), elements=some.floats(1, 1e12)), some.integers(2 * DAY, 5 * DAY))
def test_a_periodic_series_is_predicted_exactly_after_a_full_period(day: Floats, intervals: int) -> None:
    whole = numpy.tile(day, (6, 1, 1))
    result = predict(Series.of(whole[:intervals], INTERVAL)).matrix
    assert result == pytest.approx(whole[intervals], rel=1e-6)


@given(series(least=2), some.data())
def test_later_intervals_do_not_change_earlier_predictions(sent: Floats, data: some.DataObject) -> None:
    learnt = data.draw(some.integers(1, len(sent) - 1))
    from_here = data.draw(some.integers(learnt, len(sent) - 1))
    other = sent.copy()
    other[from_here:] = data.draw(arrays(numpy.float64, sent[from_here:].shape, elements=AMOUNTS))
    for name in PREDICTORS:
        seen = []
        for one in (Series.of(sent, INTERVAL), Series.of(other, INTERVAL)):
            # Predictions are equal up to that of the first interval that differs.
            rows = held_out(one, learnt)[1][name][: from_here - learnt + 1]
            seen.append([one.square(row).tolist() for row in rows])
        assert seen[0] == seen[1]


@given(series(least=2))
def test_scores_are_finite_and_within_their_confidence_intervals(
    sent: Floats,
) -> None:
    try:
        result = score(Series.of(sent, INTERVAL))
    except InputError as error:
        assert "nothing was sent" in str(error)  # noqa: PT017
        return
    for one in result.scored:
        for value, within in astuple(one)[1:]:
            assert math.isfinite(value)
            assert within is None or (within[0] <= within[1] and all(map(math.isfinite, within)))
    assert result.scored[0].above_combination.value == 0


def test_a_pair_without_an_earlier_day_is_predicted_by_its_last_interval() -> None:
    sent = numpy.zeros((3 * DAY + 2, 2, 2))
    sent[:, 0, 1] = 10 + numpy.arange(len(sent)) % DAY
    sent[-2:, 1, 0] = 7, 9
    result = predict(Series.of(sent, INTERVAL))
    assert result.matrix == pytest.approx(numpy.array([[0, 12], [9, 0]]))
    assert result.model.last_hour[0] == pytest.approx(0)
    short = predict(Series.of(sent[: DAY - 1], INTERVAL))
    assert (short.matrix[0, 1], short.model.learnt_hours, short.model.validation) == (14, 0, None)


def test_days_before_the_first_traffic_of_a_pair_are_ignored() -> None:
    values = numpy.array([[0.0], [0.0], [6.0], [0.0], [2.0], [4.0]])
    past = look_back(values, 2)
    assert past.last[:, 0].tolist() == [0, 0, 0, 6, 0, 2, 4]
    nothing = [math.nan] * 4
    assert past.day_before[:, 0].tolist() == pytest.approx([*nothing, 6, 0, 2], nan_ok=True)
    assert past.earlier_days[:, 0].tolist() == pytest.approx([*nothing, 6, 0, 4], nan_ok=True)
    assert past.mean[:, 0].tolist() == [0, 0, 0, 6, 3, 8 / 3, 3]


def test_scores_match_a_calculation_by_hand() -> None:
    # Pair a sends 10, 20, 10, 40, and pair b sends 0, 5, 5, 0. The first two intervals are learnt from; they
    # have no earlier day.
    sent = numpy.zeros((4, 2, 2))
    sent[:, 0, 1], sent[:, 1, 0] = (10, 20, 10, 40), (0, 5, 5, 0)
    result = score(Series.of(sent, "4h"), train=0.5)
    last = result.scored[1]
    # Predictions by the last interval are off by 10 and 0 of 15 bytes, and then by 30 and 5 of 40 bytes.
    assert last.wrong_bytes.value == pytest.approx(45 / 55)
    assert last.total.value == pytest.approx((10 / 15 + 25 / 40) / 2)
    assert last.median.value == pytest.approx(((1 + 0) / 2 + 30 / 40) / 2)
    assert last.p90.value == pytest.approx((0.9 + 30 / 40) / 2)
    assert (result.learnt, result.pairs) == (2, 2)
    # The mean of pair a is 15, then 40 / 3. The mean of pair b since its first traffic is 5 both times.
    past = result.scored[3]
    assert past.wrong_bytes.value == pytest.approx((5 + 0 + (40 - 40 / 3) + 5) / 55)


def test_each_pair_has_its_own_weight_if_that_validates_better() -> None:
    # One pair repeats the previous day, the other pair repeats the previous interval.
    random = numpy.random.default_rng(1)
    sent = numpy.zeros((20 * DAY, 2, 2))
    sent[:, 0, 1] = numpy.tile(random.uniform(1, 9, DAY), 20)
    sent[:, 1, 0] = numpy.repeat(random.uniform(1, 9, 2 * DAY), 10)
    model = predict(Series.of(sent, INTERVAL)).model
    assert model.scope == "each pair"
    assert model.last_hour[0] == pytest.approx(0)
    assert model.last_hour[1] > 0.8


def test_a_series_that_cannot_be_scored_is_rejected_with_the_reason() -> None:
    sent = numpy.ones((10, 2, 2))
    for train in (0.0, 1.0, math.nan):
        with pytest.raises(InputError, match=r"^train: `.*`: expected a share above 0 and below 1"):
            score(Series.of(sent), train)
    with pytest.raises(InputError, match=r"^series: 1 interval; expected at least two"):
        score(Series.of(sent[:1]))
    sent[7:] = 0
    with pytest.raises(InputError, match=r"nothing was sent in the 3 intervals after the first 7"):
        score(Series.of(sent))
    with pytest.raises(InputError, match=r"^tasks: 3 names, but the matrices are of 2 tasks"):
        Series.of(sent, tasks=["a", "b", "c"])


@pytest.fixture
def transfers(tmp_path: Path) -> Path:
    """Five days of an app of three tasks, with the same traffic in the same hour of each day."""
    lines = [
        f"{3600 * hour},{source},{target},{1e8 * (1 + hour % 24) * share:.0f}\n"
        for hour in range(120)
        for source, target, share in (("a", "b", 2), ("b", "c", 1))
    ]
    path = tmp_path / "transfers.csv"
    path.write_text(HEADER + "".join(lines))
    return path


def test_the_command_writes_a_matrix_that_place_tasks_accepts(run: Run, transfers: Path) -> None:
    folder = transfers.parent
    for name in ("next.npy", "next.csv"):
        result = run("matrix", "predict", "transfers.csv", "--only-tasks", "c,b,a", "--out", name)
        assert result.returncode == 0, result.stderr
        assert result.stderr.endswith(f"wrote {name}\n")
    header, first, *_, last = result.stdout.splitlines()
    assert header.split() == ["FROM", "TO", "LAST", "NEXT"]
    assert first.split() == ["a", "b", "4.8", "GB", "200", "MB"]
    assert last.split() == ["all", "pairs", "7.2", "GB", "300", "MB"]
    expected = numpy.array([[0, 0, 0], [1e8, 0, 0], [0, 2e8, 0]])
    assert numpy.load(folder / "next.npy") == pytest.approx(expected)
    assert (
        numpy.loadtxt(folder / "next.csv", delimiter=",").tolist() == numpy.load(folder / "next.npy").tolist()
    )
    (folder / "app.yaml").write_text("tasks: [{name: c, cpus: 2}, {name: b, cpus: 2}, {name: a, cpus: 2}]\n")
    (folder / "tenant.yaml").write_text("{shape: hose, nic: 800Mbps, hosts: 4, cpus: 2}\n")
    options = ["--cluster", "tenant.yaml", "--app", "app.yaml", "--matrix", "next.npy", "-o", "json"]
    placed = json.loads(run("place", "tasks", *options).stdout)
    assert [(one["from"], one["to"], one["bytes"]) for one in placed["transfers"]] == [
        ("b", "c", 100_000_000),
        ("a", "b", 200_000_000),
    ]


def test_the_json_output_equals_the_python_results(run: Run, transfers: Path) -> None:
    history = read(transfers)
    document = json.loads(run("matrix", "predict", "transfers.csv", "-o", "json").stdout)
    assert document["matrix"] == predict(history).matrix.tolist()
    assert (document["tasks"], document["intervals"], document["interval_s"]) == (["a", "b", "c"], 120, 3600)
    document = json.loads(run("matrix", "score", "transfers.csv", "--train", "0.5", "-o", "json").stdout)
    result = score(history, 0.5)
    assert [row["predictor"] for row in document["predictors"]] == list(PREDICTORS)
    assert document["learnt"] == result.learnt == 60
    for row, one in zip(document["predictors"], result.scored, strict=True):
        assert row["wrong_bytes"] == one.wrong_bytes.value
        assert (row["total_low"], row["total_high"]) == one.total.within
    completed = run("matrix", "score", "transfers.csv")
    assert [line.split("  ")[0] for line in completed.stdout.splitlines()] == ["PREDICTOR", *PREDICTORS]
    assert "36 of 120 intervals scored, 2 pairs" in completed.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("predict", "none.csv"), "error: none.csv: no such file"),
        (("predict", ""), "error: FILE: expected a path"),
        (("predict", "."), "error: .: Is a directory"),
        (("predict", "transfers.csv", "--out", "next.txt"), "error: --out: `next.txt`: expected a name that"),
        (
            ("predict", "transfers.csv", "--out", "no/next.csv"),
            "error: --out: `no/next.csv`: there is no folder",
        ),
        (("predict", "transfers.csv", "--interval", "5"), "error: --interval: `5`: the unit is missing"),
        (
            ("score", "transfers.csv", "--only-tasks", "a,b"),
            "error: transfers.csv: `c`: not one of the 2 tasks",
        ),
        (("score", "transfers.csv", "--only-tasks", "a,a"), "error: --only-tasks: `a` is given twice"),
        (
            ("score", "transfers.csv", "--train", "2"),
            "error: --train: `2`: expected a percentage, such as 75%",
        ),
    ],
)
def test_invalid_options_exit_with_2_and_leave_no_files(
    run: Run, transfers: Path, arguments: tuple[str, ...], error: str
) -> None:
    result = run("matrix", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(error), result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert [path.name for path in transfers.parent.iterdir()] == ["transfers.csv"]
