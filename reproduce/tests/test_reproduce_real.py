"""Parts that experiments on real bytes share: rows, results of stopped reproductions, runs on clusters."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy
import pytest

from leeward.errors import InputError
from leeward_reproduce.bars import bars
from leeward_reproduce.hdfs import Shape
from leeward_reproduce.hdfs.usage import RejectedRunError
from leeward_reproduce.real import bench, results, rows, scenario_files
from leeward_reproduce.real.rows import Pair, Values, values
from leeward_reproduce.rows import INSIDE, WIDE, Reason, Row
from leeward_reproduce.table import table

NAN = math.nan


@dataclass(frozen=True)
class Times:
    """Measurements of this test."""

    seconds: float


def test_a_factor_is_a_geometric_mean_with_the_interval_of_its_logarithm() -> None:
    row = rows.row("6", "it", "x", Values([1.0, 1.0, 8.0], [2.0, 4.0, 8.0], 3), 4.0)
    assert [row.ours, row.simulator] == pytest.approx([4.0, 2.0])
    assert row.ci_low is not None
    assert row.ci_high is not None
    # The interval is as wide on both sides of the logarithm.
    assert row.ci_low * row.ci_high == pytest.approx(16.0)
    inverse = rows.row("6", "it", "x", Values([], [1 / 2, 1 / 4, 1 / 8], 3))
    assert inverse.ours == pytest.approx(1 / 4)
    assert inverse.ci_high == pytest.approx(1 / row.ci_low)


def test_other_quantities_have_means_and_both_columns_their_intervals() -> None:
    row = rows.row("6", "it", "s", Values([2.0, 4.0], [1.0, 2.0], 2))
    assert (row.ours, row.simulator) == (1.5, 3.0)
    for mean, low, high in (
        (1.5, row.ci_low, row.ci_high),
        (3.0, row.simulator_low, row.simulator_high),
    ):
        assert low is not None
        assert high is not None
        assert (low + high) / 2 == pytest.approx(mean)


def test_a_seed_counts_for_both_columns_or_for_none_and_the_note_has_their_number() -> None:
    pairs = [
        Pair(seed, {"a": Times(simulator)}, {"a": Times(real)})
        for seed, (simulator, real) in enumerate([(1.0, 10.0), (2.0, NAN), (NAN, 30.0), (4.0, 40.0)])
    ]
    found = values(lambda runs: runs["a"].seconds, pairs)
    assert found == Values([1.0, 4.0], [10.0, 40.0], 4)
    assert rows.row("6", "it", "s", found, note="a note").note == "a note; 2 of 4 pairs have a value"
    # The simulator does not have each quantity.
    alone = [Pair(one.seed, {"a": Times(NAN)}, one.real) for one in pairs]
    assert values(lambda runs: runs["a"].seconds, alone) == Values([], [10.0, 30.0, 40.0], 4)
    assert rows.row("6", "it", "s", Values([], [], 4)).note.startswith("not measured")


def test_a_difference_from_the_paper_has_its_reason_unless_the_interval_includes_the_value() -> None:
    def of(reported: float, unit: str = "s", is_change: bool = False) -> Row:
        of_seeds, reason = Values([], [1.0, 2.0, 3.0], 3), Reason("a reason", "a sweep")
        return rows.row("6", "it", unit, of_seeds, reported, "a note", reason, is_change)

    def text(reported: float) -> tuple[str, str, str]:
        row = of(reported)
        return row.note, row.reason, row.tested

    # The mean is 2, and the interval goes from -0.5 to 4.5.
    assert text(2.1) == ("a note", "", "")
    assert text(4.0) == ("a note", f"{INSIDE.text}; a reason", INSIDE.tested)
    assert text(1.5) == ("a note", f"{WIDE.text}; a reason", "")
    assert text(40.0) == ("a note", "a reason", "a sweep")
    change = of(30.0, "%", is_change=True)
    assert (change.deviation_percent, change.deviation_points, change.holds) == (None, -28.0, False)


@pytest.mark.parametrize(
    ("simulator", "real", "difference", "met"),
    [
        ([1.0, 2.0, 4.0], [1.1, 2.2, 4.4], 10.0, True),
        ([1.0, 2.0, 4.0], [1.1, 3.0, 2.0], None, False),
        ([1.0, 2.0, 4.0], [1.3, 2.6, 5.2], 30.0, False),
        ([1.0], [1.0], 0.0, None),
    ],
)
def test_agreement_is_that_of_pairs_and_met_if_its_interval_is_within_20_percent(
    simulator: list[float], real: list[float], difference: float | None, met: bool | None
) -> None:
    row = rows.agreement("6", "it", Values(simulator, real, len(real)))
    assert row.met is met
    if difference is not None:
        assert row.ours == pytest.approx(difference)


def test_the_table_has_the_intervals_of_both_columns() -> None:
    factor = rows.row("6", "it", "x", Values([1.0, 2.0, 4.0], [1.0, 1.0, 1.0], 3))
    seconds = rows.row("6", "it", "s", Values([2.0, 4.0], [1.0, 2.0], 2))
    cells = [row[2:5] for row in table([factor, seconds], "real").cells]
    assert cells[0] == ("", "2.00x (0.36 to 11.19)", "1.00x ± 0.00x")
    assert cells[1] == ("", "3.0 s ± 12.7 s", "1.5 s ± 6.4 s")


def test_bars_have_the_intervals_of_the_simulator_and_of_the_measurement() -> None:
    row = rows.row("6", "it", "s", Values([2.0, 4.0], [1.0, 2.0], 2), 3.0)
    lines = bars([row], "real").axes[0].lines
    ends = [numpy.asarray(line.get_xdata()).tolist() for line in lines]
    assert ends == [[row.simulator_low, row.simulator_high], [row.ci_low, row.ci_high]]


def test_the_share_of_hdfs_is_that_of_the_decisions_that_are_not_ranked() -> None:
    assert rows.placed_by_hdfs({"ranked": 15, "stale": 4, "no_candidate": 1}) == 25.0
    assert math.isnan(rows.placed_by_hdfs({}))
    assert rows.busy(0.5) == 50.0
    assert math.isnan(rows.busy(None))


class FakeCluster:
    """Notes the policies that it uses."""

    def __init__(self, policy: str, properties: Mapping[str, str]) -> None:
        self.policy = policy
        self.properties = properties
        self.used = [policy]

    def use(self, policy: str) -> None:
        self.policy = policy
        self.used.append(policy)


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> list[FakeCluster]:
    """The clusters that are brought up in the place of real ones."""
    brought_up: list[FakeCluster] = []

    @contextmanager
    def up(_: Shape, policy: str, *, properties: Mapping[str, str]) -> Iterator[FakeCluster]:
        brought_up.append(FakeCluster(policy, properties))
        yield brought_up[-1]

    monkeypatch.setattr(bench, "up", up)
    return brought_up


def task(folder: Path, policies: tuple[str, ...], shape: Shape) -> bench.Task[Times]:
    folder.mkdir(parents=True, exist_ok=True)
    scenario_files.write_csv(folder / "blocks.csv", ("a", "b"), [(1, folder.name)])
    return bench.Task(folder, shape, policies, lambda cluster, policy, _: Times(float(len(cluster.policy))))


def test_runs_share_a_cluster_by_shape_and_are_read_by_a_second_call(
    clusters: list[FakeCluster], tmp_path: Path
) -> None:
    small, large = Shape(racks=2), Shape(racks=4)
    tasks = [
        task(tmp_path / "1", ("default", "ccp"), small),
        task(tmp_path / "2", ("ccp",), large),
        task(tmp_path / "3", ("ccp", "default"), small),
    ]
    shares: list[float] = []
    found = bench.perform(tasks, Times, shares.append)
    assert [one.used for one in clusters] == [["default", "ccp", "default"], ["ccp"]]
    assert found[0] == {"default": Times(7.0), "ccp": Times(3.0)}
    assert found[1] == {"ccp": Times(3.0)}
    assert shares == [0.0]
    assert bench.perform(tasks, Times, shares.append) == found
    assert (len(clusters), shares) == (2, [0.0, 1.0])


def test_runs_with_further_properties_of_the_namenode_have_a_cluster_of_their_own(
    clusters: list[FakeCluster], tmp_path: Path
) -> None:
    properties = {"dfs.leeward.sinbad.missing": "sinbad"}
    tasks = [task(tmp_path / str(at), ("ccp",), Shape()) for at in range(4)]
    tasks[1:3] = [replace(one, properties=dict(properties)) for one in tasks[1:3]]
    bench.perform(tasks, Times, lambda _: None)
    assert [one.properties for one in clusters] == [{}, properties]
    assert all(results.read(one.folder, Times) is not None for one in tasks)


def test_results_of_another_scenario_or_of_another_form_are_errors_before_a_cluster_starts(
    clusters: list[FakeCluster], tmp_path: Path
) -> None:
    mine = task(tmp_path / "1", ("default",), Shape())
    bench.perform([mine], Times, lambda _: None)
    scenario_files.write_csv(tmp_path / "1" / "blocks.csv", ("a", "b"), [(2, "1")])
    with pytest.raises(InputError, match=r"1/real\.json` is of another scenario; delete it, or use"):
        bench.perform([mine], Times, lambda _: None)
    for text in ("{}", "[", '{"scenario": "", "runs": {"default": {"minutes": 1}}}'):
        (tmp_path / "1" / results.RESULT).write_text(text)
        with pytest.raises(InputError, match=r"1/real\.json` is no valid result"):
            bench.perform([mine], Times, lambda _: None)
    assert len(clusters) == 1


def test_a_failed_run_leaves_no_result_and_those_before_it_count(
    clusters: list[FakeCluster], tmp_path: Path
) -> None:
    def fail(*_: object) -> Times:
        raise OSError("a process failed")

    good, bad = task(tmp_path / "1", ("default",), Shape()), task(tmp_path / "2", ("default",), Shape())
    bad = bench.Task(bad.folder, bad.shape, bad.policies, fail)
    with pytest.raises(OSError, match="a process failed"):
        bench.perform([good, bad], Times, lambda _: None)
    assert results.read(good.folder, Times) == {"default": Times(7.0)}
    assert results.read(bad.folder, Times) is None
    assert len(clusters) == 1


def test_a_rejected_run_is_made_again_and_its_reason_is_in_the_folder(
    clusters: list[FakeCluster], tmp_path: Path
) -> None:
    attempts: list[str] = []

    def busy(_: object, policy: str, __: object) -> Times:
        attempts.append(policy)
        if len(attempts) < 3:
            raise RejectedRunError(f"attempt {len(attempts)}: too busy")
        return Times(5.0)

    mine = replace(task(tmp_path / "1", ("ccp",), Shape()), measure=busy)
    assert bench.perform([mine], Times, lambda _: None) == [{"ccp": Times(5.0)}]
    content = json.loads((mine.folder / results.RESULT).read_text())
    assert content["rejected"] == ["attempt 1: too busy", "attempt 2: too busy"]
    assert len(clusters) == 1


def test_a_run_that_is_always_rejected_is_an_error(clusters: list[FakeCluster], tmp_path: Path) -> None:
    attempts: list[str] = []

    def busy(_: object, policy: str, __: object) -> Times:
        attempts.append(policy)
        raise RejectedRunError("too busy")

    mine = replace(task(tmp_path / "1", ("ccp",), Shape()), measure=busy)
    with pytest.raises(RejectedRunError, match="too busy"):
        bench.perform([mine], Times, lambda _: None)
    assert len(attempts) == bench.ATTEMPTS
    assert results.read(mine.folder, Times) is None


def test_the_hash_of_a_scenario_has_the_names_and_the_content_of_its_files(tmp_path: Path) -> None:
    def content(**files: str) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for name, text in files.items():
            (folder / name.replace("_", ".")).write_text(text)
        return scenario_files.content_hash(folder)

    first = content(a_csv="1", b_yaml="2")
    assert content(a_csv="1", b_yaml="2", real_json="3") == first
    others = [content(a_csv="1", b_yaml="3"), content(a_csv="1", c_yaml="2"), content(a_csv="12", b_yaml="")]
    assert len({first, *others}) == 4
