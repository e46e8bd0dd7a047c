"""The trial of the scheduler plugin on a recorded week: properties, tables of decisions, and the command."""

import csv
import io
import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from leeward import InputError
from leeward.kubernetes import Outcome, Recording, read_recording, replay, write_recording
from leeward.kubernetes.demand import LEAST_OBSERVATIONS, Peaks, peaks_of
from leeward.kubernetes.engine import points_of
from leeward.kubernetes.filters import Room, accepts
from leeward.kubernetes.recording import REASONS, Expression, Node, Taint, Template, Toleration
from support.kubernetes import G, nodes, pod, recording, traffic, week

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLE = Path(__file__).parents[2] / "examples/kubernetes/week"
HOT: tuple[list[float], list[float]] = ([8 * G, 8 * G, 8 * G, 8 * G], [G, G, G, G])
"""Rates of a rack that is hot without the pod."""
COLD: tuple[list[float], list[float]] = ([G, G, G, G], [G, G, G, G])


# Properties.


@given(seed=st.integers(0, 10**6), pods=st.integers(0, 60))
@settings(max_examples=25)
def test_a_trial_counts_every_pod_once_and_moves_traffic_without_loss(seed: int, pods: int) -> None:
    data = week(seed, hours=30, pods=pods)
    result = replay(data, seed=seed)
    assert result.ran_before + result.stayed + len(result.moves) + sum(result.not_judged.values()) == pods
    assert set(result.not_judged) <= REASONS.keys()
    assert sum(result.peaks.values()) == result.stayed + len(result.moves)
    for way in ("out_bps", "into_bps"):
        racks = result.record()["racks"]
        total = {when: sum(rack[when][way] for rack in racks) for when in ("before", "after")}
        assert total["after"] == pytest.approx(total["before"])
        assert min(rack["after"][way] for rack in racks) >= 0
    assert {rack.known_h for rack in result.racks} == {30}
    before, after = result.record()["before"], result.record()["after"]
    assert before["hot_h"] == pytest.approx(sum(rack.before.hot_h for rack in result.racks))
    assert after["hot_h"] == pytest.approx(sum(rack.after.hot_h for rack in result.racks))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10)
def test_a_trial_never_overfills_a_node_or_breaks_a_filter(seed: int) -> None:
    data = week(seed, hours=40, pods=80)
    result = replay(data)
    where = {(one.namespace, one.pod): one.target for one in result.moves}
    by_name = {node.name: node for node in data.nodes}
    target = {at: where.get((one.namespace, one.name), one.node) for at, one in enumerate(data.pods)}
    moved = {at for at, one in enumerate(data.pods) if (one.namespace, one.name) in where}
    for at in moved:
        one = data.pods[at]
        assert accepts(by_name[target[at]], data.templates[one.template])
        beside = [
            other
            for other, of in enumerate(data.pods)
            if target[other] == target[at]
            and (of.created_ms, other) <= (one.created_ms, at)
            and (of.ended_ms is None or of.ended_ms > one.created_ms)
        ]
        used = sum(data.templates[data.pods[other].template].requests["cpu"] for other in beside)
        assert used <= by_name[target[at]].room["cpu"]


@given(seed=st.integers(0, 100))
@settings(max_examples=5)
def test_a_trial_repeats_its_result(seed: int) -> None:
    data = week(seed, hours=24, pods=40)
    assert replay(data, seed=seed).record() == replay(data, seed=seed).record()


@given(seed=st.integers(0, 10**6), pods=st.integers(0, 30))
@settings(max_examples=10)
def test_a_recording_survives_its_files(
    seed: int, pods: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = week(seed, hours=12, pods=pods)
    folder = tmp_path_factory.mktemp("recordings") / "week"
    write_recording(data, folder)
    again = read_recording(folder)
    assert again.pods == data.pods
    assert again.nodes == data.nodes
    assert again.templates == data.templates
    assert replay(again).record() == replay(data).record()


# Tables of decisions: a pod of 2 Gb/s out and 1 Gb/s in on a rack r1, beside a rack r2.


def judged(data: Recording) -> str:
    """Result of the one pod that came: `stays`, a rack, or the reason without a judgment."""
    result = replay(data)
    if result.moves:
        return result.moves[0].target_rack
    return "stays" if result.stayed else next(iter(result.not_judged), "ran_before")


@pytest.mark.parametrize(
    ("loads", "result"),
    [
        ({"r1": HOT, "r2": COLD}, "r2"),
        ({"r1": COLD, "r2": HOT}, "stays"),
        ({"r1": COLD, "r2": COLD}, "stays"),
        # Within a point, the plugin does not prefer a rack.
        ({"r1": ([1.005 * G] * 4, [G] * 4), "r2": COLD}, "stays"),
        ({"r1": ([1.2 * G] * 4, [G] * 4), "r2": COLD}, "r2"),
        # The fuller direction counts: r2 has more room out, and less in.
        ({"r1": ([4 * G] * 4, [G] * 4), "r2": ([G] * 4, [7 * G] * 4)}, "stays"),
        # Both are full: a link above its rate has no points left.
        ({"r1": ([11 * G] * 4, [G] * 4), "r2": ([12 * G] * 4, [G] * 4)}, "stays"),
        ({"r1": ([numpy.nan] * 4, [G] * 4), "r2": COLD}, "no_telemetry"),
        ({"r1": HOT, "r2": ([numpy.nan] * 4, [G] * 4)}, "stays"),
    ],
)
def test_a_pod_goes_to_a_rack_with_more_room_and_else_stays(loads: Any, result: str) -> None:
    data = recording([pod("r1-n1", 1.5)], loads, {0: traffic(1, G, G, G)})
    assert judged(data) == result


@pytest.mark.parametrize(("hour", "result"), [(0.5, "ran_before"), (1.0, "r2"), (3.9, "r2")], ids=str)
def test_a_decision_needs_a_whole_interval_before_it(hour: float, result: str) -> None:
    data = recording([pod("r1-n1", hour)], {"r1": HOT, "r2": COLD}, {0: traffic(3, G)})
    assert judged(data) == result


@pytest.mark.parametrize("reason", sorted(REASONS.keys() - {"filters_changed"}))
def test_a_pod_that_cannot_be_judged_stays_and_says_why(reason: str) -> None:
    loads: dict[str, tuple[list[float], list[float]]] = {"r1": HOT, "r2": COLD}
    template = Template({"cpu": 1000}, peak_bps=(2 * G, G), unfit=reason)
    one, rates, some_nodes = pod("r1-n1", 1.5), {0: traffic(1, G, G, G)}, nodes()
    if reason == "node_unknown":
        template, one = Template(peak_bps=(G, G)), pod("gone", 1.5)
    elif reason == "no_demand":
        template = Template({"cpu": 1000})
    elif reason == "no_traffic":
        template, rates = Template(peak_bps=(G, G)), {}
    elif reason == "no_telemetry":
        template, loads = Template(peak_bps=(G, G)), {"r1": ([numpy.nan] * 4,) * 2, "r2": COLD}
    elif reason == "no_room":
        template = Template({"cpu": 17_000_000}, peak_bps=(G, G))
    data = recording([one], loads, rates, (template,), nodes=some_nodes)
    result = replay(data)
    assert (dict(result.not_judged), result.moves) == ({reason: 1}, ())


def test_a_pod_stays_if_its_node_has_other_labels_today() -> None:
    template = Template(peak_bps=(G, G), terms=((Expression("disk", "In", ("tape",)),),))
    data = recording([pod("r1-n1", 1.5)], {"r1": HOT, "r2": COLD}, {0: traffic(1, G, G, G)}, (template,))
    assert judged(data) == "filters_changed"


def test_pods_that_come_together_do_not_herd_to_the_coldest_rack() -> None:
    loads: dict[str, tuple[list[float], list[float]]] = {
        "r1": HOT,
        "r2": COLD,
        "r3": ([1.5 * G] * 4, COLD[1]),
    }
    pods = [pod("r1-n1", 1.5 + at / 1000, name=f"shuffle-{at}") for at in range(4)]
    data = recording(pods, loads, {at: traffic(1, G, G, G) for at in range(4)})
    targets = Counter(move.target_rack for move in replay(data).moves)
    # Each counts with its peak of 2 Gb/s at once: 1, 1.5, 3, 3.5 Gb/s is the order of the racks.
    assert targets == {"r2": 2, "r3": 2}


def test_the_traffic_of_a_pod_is_on_its_new_rack_for_later_pods() -> None:
    loads = {"r1": ([9 * G] * 4, [G] * 4), "r2": ([4 * G] * 4, [G] * 4)}
    pods = [pod("r1-n1", 1.0), pod("r1-n1", 3.5, name="later", workload="Job/later")]
    # The first pod takes 4 Gb/s along, so r2 has 8 of 10 then, and r1 has 5.
    data = recording(pods, loads, {0: traffic(1, 4 * G, 4 * G, 4 * G), 1: traffic(3, G)})
    result = replay(data)
    assert [(move.pod, move.target_rack) for move in result.moves] == [("shuffle-0", "r2")]
    after = {rack.rack: rack.after.p98 for rack in result.racks}
    assert after == {"r1": 0.9, "r2": 0.8}
    assert {rack.rack: (rack.before.hot_h, rack.after.hot_h) for rack in result.racks} == {
        "r1": (4.0, 1.0),
        "r2": (0.0, 3.0),
    }


def test_a_measured_peak_is_of_earlier_intervals_only() -> None:
    template = (Template({"cpu": 1000}),)
    pods = [pod("r1-n1", 0.0), pod("r1-n1", 1.5, name="shuffle-1"), pod("r1-n1", 3.5, name="shuffle-2")]
    rates = {0: traffic(2, G, 3 * G), 1: traffic(2, G, G), 2: traffic(3, G)}
    result = replay(recording(pods, {"r1": HOT, "r2": COLD}, rates, template))
    # The second pod came before any measurement, and the third one sees the rate of the third hour.
    assert dict(result.not_judged) == {"no_demand": 1}
    assert [(move.pod, move.egress_bps) for move in result.moves] == [("shuffle-2", G)]


@pytest.mark.parametrize(
    ("interval_min", "rates", "peak"),
    [
        (5, [], None),
        (5, [G] * (LEAST_OBSERVATIONS - 1), None),
        (5, [G] * LEAST_OBSERVATIONS, G),
        # One observation of 51 is above the percentile, and one of three of 101 is the percentile.
        (5, [G] * 25 + [2 * G] * 25 + [9 * G], 2 * G),
        (5, [2 * G] * 98 + [9 * G] * 3, 9 * G),
        # The mean counts if it is more.
        (5, [0] * 99 + [100 * G], G),
        (5, [9 * G] * 12 + [G] * 288, G),
        (5, [G] * 11 + [numpy.nan], None),
        # One observation in five minutes: of 56 minutes, those of the minutes 0, 5, 10 and so on.
        (1, [G] * 55, None),
        (1, [G] * 56, G),
        (1, ([G] + [9 * G] * 4) * 12, G),
        (60, [G], G),
        (60, [9 * G] + [G] * 24, G),
    ],
)
def test_a_measured_peak_is_the_percentile_of_a_day_once_there_are_enough_observations(
    interval_min: int, rates: list[float], peak: int | None
) -> None:
    template = (Template({"cpu": 1000}),)
    pods = [pod("r1-n1", 0.0), pod("r1-n1", 0.0, name="shuffle-1")]
    data = recording(pods, {"r1": HOT, "r2": COLD}, {0: traffic(0, *rates)}, template)
    data = replace(data, interval_ms=interval_min * 60_000)
    expected = None if peak is None else (peak, peak)
    assert Peaks(data).before(pods[1], len(rates)) == expected


@given(
    pods=st.lists(st.tuples(st.integers(0, 400), st.lists(st.integers(0, 10**9), max_size=300)), max_size=5),
    interval=st.integers(0, 700),
)
@settings(max_examples=50)
def test_a_measured_peak_is_that_of_all_pods_of_the_workload(
    pods: list[tuple[int, list[int]]], interval: int
) -> None:
    own = [pod("r1-n1", 0.0, name=f"shuffle-{at}") for at in range(len(pods) + 1)]
    seen = {at: traffic(first, *map(float, rates)) for at, (first, rates) in enumerate(pods)}
    data = recording(own, {"r1": HOT, "r2": COLD}, seen, (Template({"cpu": 1000}),))
    peak = Peaks(replace(data, interval_ms=300_000)).before(own[-1], interval)
    counted = sorted(
        rate
        for first, rates in pods
        for at, rate in enumerate(rates, first)
        if interval - 288 <= at < interval
    )
    if len(counted) < LEAST_OBSERVATIONS:
        assert peak is None
        return
    rank = -(-98 * len(counted) // 100)
    expected = max(counted[rank - 1], sum(counted) / len(counted))
    assert peak is not None
    assert peak[0] == peak[1] == pytest.approx(expected, abs=1)


def test_a_scheduler_without_measured_peaks_leaves_pods_without_annotation_where_they_were(run: Run) -> None:
    document = json.loads(run("kubernetes", "trial", str(EXAMPLE), "--no-measured", "-o", "json").stdout)
    assert document["pods"]["peaks"] == {"annotation": 57}
    assert document["pods"]["not_judged"]["no_demand"] == 108
    assert 0 < document["after"]["hot_h"] < document["before"]["hot_h"]


@pytest.mark.parametrize(
    ("annotation", "measured", "limit", "peak"),
    [
        (2 * G, (G, G), None, (2 * G, "annotation")),
        (None, (G, G), None, (G, "history")),
        (None, None, 3 * G, (3 * G, "limit")),
        (2 * G, (G, G), G // 2, (G // 2, "limit")),
        (0, (G, G), None, (0, "annotation")),
        (None, None, None, None),
    ],
)
def test_the_peak_of_a_pod_is_found_as_in_the_scheduler(
    annotation: int | None, measured: tuple[int, int] | None, limit: int | None, peak: Any
) -> None:
    template = Template(peak_bps=(annotation, None), limit_bps=(limit, None))
    assert peaks_of(template, measured)[0] == peak


@pytest.mark.parametrize(
    ("utilization", "points"), [(0, 100), (0.25, 75), (0.255, 74), (0.999, 0), (1, 0), (7, 0), (-1, 100)]
)
def test_points_are_those_of_the_plugin(utilization: float, points: int) -> None:
    assert points_of(utilization) == points


# Filters.

NODE = Node("n1", "r1", 0, labels={"disk": "ssd", "cores": "16"}, taints=(Taint("gpu", "a", "NoSchedule"),))
TOLERATES = (Toleration("gpu", "Exists", "", ""),)


@pytest.mark.parametrize(
    ("toleration", "result"),
    [
        (Toleration("gpu", "Exists", "", ""), True),
        (Toleration("gpu", "Equal", "a", "NoSchedule"), True),
        (Toleration("gpu", "Equal", "b", ""), False),
        (Toleration("gpu", "Exists", "", "NoExecute"), False),
        (Toleration("", "Exists", "", ""), True),
        (Toleration("", "Equal", "a", ""), False),
        (Toleration("gpu", "Gt", "a", ""), False),
        (Toleration("other", "Exists", "", ""), False),
    ],
    ids=str,
)
def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(toleration: Toleration, result: bool) -> None:
    assert accepts(NODE, Template(tolerations=(toleration,))) is result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (Expression("disk", "In", ("hdd", "ssd")), True),
        (Expression("disk", "In", ("hdd",)), False),
        (Expression("disk", "NotIn", ("hdd",)), True),
        (Expression("other", "NotIn", ("hdd",)), True),
        (Expression("other", "Exists"), False),
        (Expression("other", "DoesNotExist"), True),
        (Expression("cores", "Gt", ("8",)), True),
        (Expression("cores", "Lt", ("8",)), False),
        (Expression("disk", "Gt", ("8",)), False),
        (Expression("other", "Lt", ("8",)), False),
        (Expression("metadata.name", "In", ("n1",), True), True),
        (Expression("metadata.name", "In", ("n2",), True), False),
    ],
    ids=str,
)
def test_a_node_selector_holds_as_in_kubernetes(expression: Expression, result: bool) -> None:
    assert accepts(NODE, Template(terms=((expression,),), tolerations=TOLERATES)) is result
    # One of several terms is enough, and all conditions of a term must hold.
    never = Expression("disk", "DoesNotExist")
    assert accepts(NODE, Template(terms=((never,), (expression,)), tolerations=TOLERATES)) is result
    assert accepts(NODE, Template(terms=((never, expression),), tolerations=TOLERATES)) is False


def test_a_node_takes_no_pods_before_it_exists_while_it_is_cordoned_or_without_room() -> None:
    room = {"cpu": 1000, "pods": 2}
    some_nodes = (
        Node("old", "r1", 0, room=room),
        Node("new", "r1", 1000, room=room),
        Node("cordoned", "r1", 0, cordoned=True, room=room),
    )
    templates = (Template({"cpu": 400}), Template({"nvidia.com/gpu": 1}))
    place = Room(some_nodes, templates)
    assert place.candidates(0, 0, 999).tolist() == [True, False, False]
    # The node where the pod ran took it, whatever its state is today.
    assert place.candidates(0, 2, 1000).tolist() == [True, True, True]
    assert place.candidates(1, 0, 1000).tolist() == [False] * 3
    place.take(0, 0)
    place.take(0, 0)
    assert place.candidates(0, 0, 0).tolist() == [False, False, False]
    place.take(0, 0, -1)
    assert place.candidates(0, 0, 0).tolist() == [True, False, False]


# The command.


def test_the_example_is_the_drawn_week() -> None:
    example = read_recording(EXAMPLE)
    assert replay(example).record() == replay(week()).record()
    assert example.pods == week().pods


def test_the_command_prints_hot_racks_before_and_after(run: Run) -> None:
    result = run("kubernetes", "trial", str(EXAMPLE))
    assert (result.returncode, "drawn at random" in result.stderr) == (0, True)
    assert result.stdout.splitlines()[2:5] == [
        "With the plugin, 0 racks are hot instead of 1, for 0.00 hours instead of 32.00 in total.",
        "The 98th percentile of their utilization is 63.1 % instead of 81.5 %.",
        "Of 240 pods that came, 125 go to another node, 37 stay, and 78 cannot be judged.",
    ]
    document = json.loads(run("kubernetes", "trial", str(EXAMPLE), "-o", "json").stdout)
    before = document["before"]
    assert (before["hot_racks"], before["hot_h"]) == (1, 32.0)
    assert before["out_bps"] == pytest.approx(document["after"]["out_bps"])
    assert document["pods"]["elsewhere"] == len(document["moves"]) == 125
    assert set(document["moves"][0]) >= {"namespace", "pod", "workload", "from", "from_rack", "to", "to_rack"}
    rows = list(csv.DictReader(io.StringIO(run("kubernetes", "trial", str(EXAMPLE), "-o", "csv").stdout)))
    assert [row["rack"] for row in rows] == [rack["rack"] for rack in document["racks"]]
    assert float(rows[0]["before.hot_h"]) == 32


def test_a_higher_threshold_has_fewer_hot_racks() -> None:
    data = read_recording(EXAMPLE)

    def hot_h(share: float) -> float:
        outcome: Outcome = replay(data, share)
        return outcome.before.hot_h

    assert hot_h(0.5) > hot_h(0.75) > hot_h(0.95)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "--prometheus: missing"),
        (["week", "--since", "7d"], "--since: without effect on a recording"),
        (["week", "--record", "other"], "--record: without effect on a recording"),
        (["missing"], "missing/recording.json: No such file"),
        (["week", "--hot", "5"], "--hot: `5`: expected a percentage"),
        (["--prometheus", "http://127.0.0.1:1", "--since", "soon"], "--since: `soon`"),
        (["--prometheus", "http://127.0.0.1:1", "--since", "6min"], "at least two intervals"),
        (["--prometheus", "http://127.0.0.1:1", "--interval", "5s"], "expected at least 1min"),
        (["--prometheus", "http://127.0.0.1:1", "--rack-link", "fast"], "--rack-link: `fast`"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_an_invalid_argument_is_one_line(
    run: Run, tmp_path: Path, arguments: list[str], problem: str
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "week")
    result = run("kubernetes", "trial", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert problem in result.stderr.splitlines()[0]


def change(folder: Path, **fields: Any) -> None:
    about = json.loads((folder / "recording.json").read_text())
    for name, value in fields.items():
        about = {key: one for key, one in about.items() if key != name} | (
            {} if value is None else {name: value}
        )
    (folder / "recording.json").write_text(json.dumps(about))


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"format": 9}, "format 9: expected 1"),
    ({"pods": None}, "not a recording"),
    ({"pods": [{"name": "x"}]}, "not a recording"),
    ({"intervals": 0}, "expected 1 to"),
    ({"intervals": 100}, "not in recording.json"),
    ({"intervals": "many"}, "expected a whole number"),
    ({"rack_bps": {"r1": 0}}, "not in recording.json"),
    ({"rack_bps": dict.fromkeys(("r1", "r2", "r3", "r4"), 0)}, "each with a positive rate"),
    ({"nodes": [{"name": "n", "rack": "r9", "created_ms": 0}]}, "node n: no such rack: r9"),
    ({"nodes": [{"name": "n", "rack": "r1", "created_ms": 0}] * 2}, "listed twice"),
    ({"nodes": [{"name": "n", "rack": "r1", "created_ms": 0, "room": {"cpu": -1}}]}, "cpu: `-1`"),
    ({"templates": []}, "no such template"),
    ({"templates": [{"unfit": "bored"}] * 5}, "no such reason: bored"),
    ({"templates": [{"terms": 7}] * 5}, "not a recording"),
]


@pytest.mark.parametrize(("fields", "problem"), BROKEN, ids=[text for _, text in BROKEN])
def test_a_broken_recording_is_an_error_that_names_the_file(
    tmp_path: Path, fields: dict[str, Any], problem: str
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "week")
    change(tmp_path / "week", **fields)
    with pytest.raises(InputError, match="week") as error:
        read_recording(tmp_path / "week")
    assert problem in str(error.value)


@pytest.mark.parametrize("name", ["racks.parquet", "pods.parquet"])
def test_rates_that_are_no_table_are_an_error(tmp_path: Path, name: str) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "week")
    (tmp_path / "week" / name).write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match=name):
        read_recording(tmp_path / "week")
    (tmp_path / "week" / name).unlink()
    with pytest.raises(InputError, match="no such file"):
        read_recording(tmp_path / "week")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (("r1", 168, 1.0, 1.0), "interval 168: not in"),
        (("r1", -1, 1.0, 1.0), "interval -1: not in"),
        (("r9", 1, 1.0, 1.0), "rack r9, interval 1: not in"),
        (("r1", 1, -1.0, 1.0), "expected rates of at least 0"),
        (("r1", 1, 1.0, float("inf")), "expected rates of at least 0"),
        ((None, 1, 1.0, 1.0), "rack or interval is null"),
        (("r1", None, 1.0, 1.0), "rack or interval is null"),
    ],
    ids=str,
)
def test_a_row_of_rates_that_cannot_be_true_is_an_error(tmp_path: Path, row: Any, problem: str) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "week")
    file = tmp_path / "week/racks.parquet"
    table = parquet.read_table(file)
    more = pyarrow.Table.from_pylist([dict(zip(table.column_names, row, strict=True))], schema=table.schema)
    parquet.write_table(pyarrow.concat_tables([table, more]), file)
    with pytest.raises(InputError, match=r"racks\.parquet") as error:
        read_recording(tmp_path / "week")
    assert problem in str(error.value)


def test_a_written_recording_replaces_only_a_recording(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").touch()
    options = ["--prometheus", "http://127.0.0.1:1", "--record", "mine"]
    result = run("kubernetes", "trial", *options)
    assert (result.returncode, "thesis.tex" in result.stderr) == (2, True)
    write_recording(week(hours=3, pods=2), tmp_path / "week")
    write_recording(week(hours=4, pods=2), tmp_path / "week")
    assert read_recording(tmp_path / "week").intervals == 4
