"""UTP's tables in Kubernetes: scenarios, measurements, rows from runs of this file, the demo, a small run."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest

from leeward import Cluster
from leeward.errors import InputError
from leeward.simulation import read_scenario
from leeward_reproduce import drawing
from leeward_reproduce.hotspots.kubernetes import demo, measures, pairs, program, run, scenario
from leeward_reproduce.hotspots.kubernetes.measures import COLUMNS, Measures, simulate
from leeward_reproduce.hotspots.kubernetes.perform import FIGURES
from leeward_reproduce.hotspots.kubernetes.run import Links, Outcome, Step
from leeward_reproduce.hotspots.kubernetes.scenario import POLICIES, Size
from leeward_reproduce.hotspots.sweeps import HERE
from leeward_reproduce.perform import reproduce
from leeward_reproduce.real.rows import Pair
from leeward_reproduce.real.scenario_files import read_csv

SMALL = Size(
    replace(scenario.CELL, uplinks=((5, 0.7), (5, 1.4)), hosts_per_rack=4, processors=0.5, most_tasks=10),
    horizon_s=1200.0,
    warmup_s=300.0,
)
"""Forty nodes in ten racks, for twenty minutes."""
BUSY = Size(replace(SMALL.cell, batch_s=600.0, network=0.9), horizon_s=3600.0, warmup_s=300.0)
"""An hour in which tasks come often, and find hot racks."""


def test_the_racks_are_those_of_the_pilot_cell(tmp_path: Path) -> None:
    ours = Cluster(scenario.write(tmp_path, 1, Size()).parent / "cluster.yaml")
    pilot = Cluster(HERE / "clusters" / "compute.yaml")
    assert ours.host_table().to_pylist() == pilot.host_table().to_pylist()
    assert ours.links().select(["name", "capacity_bps"]) == pilot.links().select(["name", "capacity_bps"])
    assert ours.pods == 0


def test_equal_seeds_give_equal_scenarios_and_most_tasks_come_at_the_start(tmp_path: Path) -> None:
    texts = [
        scenario.write(tmp_path / name, seed, Size()).with_name("tasks.csv").read_text()
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert texts[0] == texts[1] != texts[2]
    tasks = read_csv(tmp_path / "a" / "tasks.csv")
    arrivals = [float(task["arrive_s"]) for task in tasks]
    assert arrivals == sorted(arrivals)
    assert max(arrivals) < Size().horizon_s
    first = [task for task in tasks if float(task["arrive_s"]) == 0]
    assert len(first) > len(tasks) / 2
    used = sum(int(task["cpus"]) for task in first) / (1000 * scenario.CELL.cpus)
    assert used == pytest.approx(scenario.CELL.processors, rel=0.1)


def steps_of(file: Path, policy: str, seed: int) -> tuple[Links, list[Step]]:
    """Steps of a run of the simulator without moves, as the control plane's program prints them."""
    settings = file.read_text().replace(
        f"sample: {scenario.SAMPLE_S:g}s", f"sample: {scenario.INTERVAL_S:g}s"
    )
    each = file.with_name("each-interval.yaml")
    each.write_text(settings.replace("warmup: 300s", "warmup: 0s"))
    (simulated,) = read_scenario(each).run([policy], [seed])
    rows = simulated.links().to_pylist()
    cluster = Cluster(file.parent / "cluster.yaml")
    racks = [rack["rack"] for rack in cluster.rack_table().to_pylist()]
    capacity = {link["name"]: link["capacity_bps"] for link in cluster.links().to_pylist()}
    names = [[f"{rack}:{way}" for rack in racks] for way in ("uplink", "downlink")]
    loads = {(row["start_s"], row["link"]): row["load_bps"] for row in rows}
    placed: dict[float, list[tuple[int, str]]] = {}
    for number, task in enumerate(simulated.tasks().to_pylist()):
        if task["placed_s"] is not None:
            placed.setdefault(task["placed_s"], []).append((number, task["host"]))
    cell = simulated.cell()
    steps = [
        Step(
            numpy.array([[loads[start, name] for name in way] for way in names]),
            placed.get(start, []),
            [],
            running,
            waiting,
        )
        for start, running, waiting in zip(
            *(cell[name].to_pylist() for name in ("start_s", "running", "waiting")), strict=True
        )
    ]
    capacities = numpy.array([[capacity[name] for name in way] for way in names], dtype=float)
    return Links(racks, capacities, scenario.INTERVAL_S), steps


@pytest.mark.parametrize("policy", ["borg", "utp-proactive"])
def test_a_run_of_the_simulator_measures_as_its_own_table_says(tmp_path: Path, policy: str) -> None:
    file = scenario.write(tmp_path, 4, BUSY)
    links, steps = steps_of(file, policy, 4)
    outcome = Outcome(links, steps, 0, 0)
    ours = measures.measure(outcome, file, BUSY.warmup_s)
    (arm,) = (arm for arm, name in POLICIES.items() if name == policy)
    theirs = simulate(file, 4)[arm]
    assert ours.cell.keys() == theirs.cell.keys() == set(COLUMNS)
    for name, values in theirs.cell.items():
        assert ours.cell[name] == pytest.approx(values, rel=1e-9), name
    assert sum(theirs.cell["intensive"]) > sum(theirs.cell["intensive_on_hot"]) > 0
    assert ours.window.mean("p98") > 0


def test_the_steps_of_the_program_are_read_and_an_early_end_is_noticed() -> None:
    lines = [
        {"racks": ["r0", "r1"], "capacity_bps": [[10, 20], [10, 20]], "interval_s": 60},
        {
            "step": 0,
            "load_bps": [[1, 2], [3, 4]],
            "placed": [[0, "r0h0"]],
            "evicted": [],
            "running": 1,
            "waiting": 0,
        },
        {
            "step": 1,
            "load_bps": [[0, 0], [0, 0]],
            "placed": [],
            "evicted": [[0, "r0h0"]],
            "running": 0,
            "waiting": 1,
        },
        {"ranked": 1, "placements": 1, "ticks_per_step": 1.5},
    ]
    texts = [json.dumps(line) for line in lines]
    seen: list[int] = []
    outcome = run.read(texts, lambda links, step: seen.append(step.running))
    assert outcome is not None
    assert (outcome.links.racks, outcome.ranked, seen) == (["r0", "r1"], 1, [1, 0])
    assert outcome.ticks_per_step == 1.5
    assert outcome.steps[0].placed == [(0, "r0h0")]
    assert outcome.steps[1].evicted == [(0, "r0h0")]
    assert outcome.steps[0].loads_bps.tolist() == [[1, 2], [3, 4]]
    assert run.read(texts[:-1], lambda links, step: None) is None


@pytest.mark.parametrize(
    ("arm", "ranked", "message"),
    [
        ("both", 90, "arm both: the network ranked the nodes of 90% of the pods"),
        ("network-load", 0, "arm network-load: the network ranked the nodes of 0% of the pods"),
        ("default", 1, "arm default: the network ranked the nodes of 1 pods without the plugin"),
        ("both", 97, None),
        ("evictor", 0, None),
    ],
)
def test_a_run_in_which_the_network_had_no_say_is_an_error(
    arm: str, ranked: int, message: str | None
) -> None:
    outcome = Outcome(Links([], numpy.zeros((2, 0)), 60.0), [], ranked, 100)
    if message is None:
        run.check(arm, outcome)
        return
    with pytest.raises(OSError, match=message):
        run.check(arm, outcome)


def example(hot: float, moved: float, on_hot: float, ticks: float | None) -> Measures:
    """Measurements of two samples of a cell of ten racks."""
    values: dict[str, list[float]] = {name: [0.0, 0.0] for name in COLUMNS}
    values |= {"start_s": [0.0, 300.0], "length_s": [300.0, 300.0], "tors": [10.0, 10.0]}
    values |= {"hot_uplinks": [hot, hot], "hot_tors": [hot, hot], "tor_p98": [hot / 10, hot / 10]}
    values |= {"utilization": [0.5, 0.5], "intensive": [10.0, 10.0], "intensive_on_hot": [on_hot, on_hot]}
    return Measures(values | {"moved": [moved, moved]}, ticks_per_step=ticks)


def example_pair(seed: int) -> Pair[Measures]:
    """Runs in which both parts leave half of the hot racks, and a tenth of the moves of the evictor alone."""

    def runs(scale: float, ticks: float | None) -> dict[str, Measures]:
        return {
            "default": example(4.0 * scale + 0.01 * seed, 0.0, 8.0, ticks),
            "network-load": example(3.0 * scale, 0.0, 2.0, ticks),
            "evictor": example(3.0 * scale, 20.0, 4.0 + 0.01 * seed, ticks),
            "both": example(2.0 * scale + 0.005 * seed, 2.0, 1.0, ticks),
        }

    return Pair(seed, runs(1.5, None), runs(1.0, 1.25))


@pytest.mark.parametrize("name", FIGURES)
def test_a_table_has_rows_of_its_name_with_values_of_simulator_and_control_plane(name: str) -> None:
    of_seeds = [example_pair(seed) for seed in range(1, 5)]
    rows = FIGURES[name].rows(of_seeds)
    assert {row.figure for row in rows} == {name}
    assert len({row.quantity for row in rows}) == len(rows)
    for row in rows:
        assert row.ours is not None
        assert (row.simulator is None) == row.quantity.startswith("ticks")
    assert drawing.render(FIGURES[name].draw(of_seeds, rows))["svg"]


def test_rows_have_changes_and_levels_of_arms() -> None:
    of_seeds = [example_pair(1), example_pair(2)]
    rows = {row.quantity: row for figure in FIGURES.values() for row in figure.rows(of_seeds)}
    both = "NetworkLoad and the evictor"
    hot = rows[f"ToRs hot outbound: change, kube-scheduler as it is to {both}"]
    assert hot.paper == -44.6
    assert hot.ours == pytest.approx(-50.0, abs=0.2)
    assert rows["ToRs hot outbound, NetworkLoad"].ours == pytest.approx(30.0)
    moves = rows[f"tasks moved: change, the evictor alone to {both}"]
    assert moves.paper == -41.0
    assert moves.ours == pytest.approx(-90.0)
    assert rows["tasks moved, the evictor alone"].ours == pytest.approx(20 * 24 * 12)
    assert "tasks moved, NetworkLoad" not in rows
    assert rows["network-intensive tasks put on hot ToRs, NetworkLoad"].ours == pytest.approx(20.0)
    (p,) = (
        row for name, row in rows.items() if name.startswith("tasks moved: p of a paired test over seeds")
    )
    assert p.ours is not None
    assert p.ours < 0.01


def test_invalid_arguments_are_errors_before_anything_runs() -> None:
    fields: Sequence[tuple[dict[str, Any], str]] = (
        ({"horizon": "10min"}, "`10min`: expected at least"),
        ({"jobs": 2}, "2: real runs would disturb each other"),
        ({"lab": True}, "leave out `lab` and `real`"),
        ({"figures": ["15"]}, "unknown figure `15`; there are: table-2, table-3"),
    )
    for more, message in fields:
        with pytest.raises(InputError, match=message):
            reproduce("hotspots", kubernetes=True, **more)
    with pytest.raises(
        InputError, match="`sinbad` has no figures in Kubernetes; these papers have: hotspots"
    ):
        reproduce("sinbad", kubernetes=True)


def test_a_machine_without_go_is_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(program, "_GO", tmp_path / "go")
    monkeypatch.setenv("PATH", str(tmp_path))
    expected = "missing for the control plane: Go 1.26 (https://go.dev/dl)"
    assert program.missing() == expected
    with pytest.raises(OSError, match="missing for the control plane"):
        program.build()
    assert demo.main([]) == 1
    assert capsys.readouterr().err == f"error: {expected}\n"
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go version go1.21.5 linux/amd64\n")
    old.chmod(0o755)
    assert program.missing() == "missing for the control plane: Go 1.26 (`go` is version 1.21)"


def test_runs_of_seeds_are_stored_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[int, str]] = []
    steps: dict[str, tuple[Links, list[Step]]] = {}

    def simulated(
        _program: Path, file: Path, arm: str, seed: int, size: Size, on_step: run.OnStep
    ) -> Outcome:
        ran.append((seed, arm))
        links, all_steps = steps.setdefault(str(file), steps_of(file, "borg", seed))
        for step in all_steps:
            on_step(links, step)
        return Outcome(links, all_steps, 7, 7)

    monkeypatch.setattr(program, "build", lambda: Path("program"))
    monkeypatch.setattr(pairs, "run", simulated)
    shares: list[float] = []
    made = pairs.make_pairs(tmp_path, SMALL, (1, 2), shares.append)
    assert sorted(ran) == sorted((seed, arm) for seed in (1, 2) for arm in POLICIES)
    assert [arm for seed, arm in ran if seed == 1] != [arm for seed, arm in ran if seed == 2]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert made[0].real["both"].ranked == 7
    again = pairs.make_pairs(tmp_path, SMALL, (1, 2), shares.append)
    assert len(ran) == 2 * len(POLICIES)
    assert again == made


def test_the_comparison_has_the_first_run_beside_the_second_at_the_same_step() -> None:
    links = Links(["r0", "r1"], numpy.full((2, 2), 10.0), 60.0)

    def step(*loads: float) -> Step:
        return Step(numpy.array([loads, (0.0, 0.0)]), [], [], 5, 0)

    comparison = demo.Comparison()
    for loads in ((9.0, 1.0), (9.0, 8.0)):
        shown = comparison.add("default", links, step(*loads))
    assert [arm["name"] for arm in shown["arms"]] == ["default"]
    assert shown["history"]["arms"] == [{"name": "default", "hot_share": [0.5, 1.0]}]
    shown = comparison.add("leeward", links, step(1.0, 1.0))
    assert shown["speed"] == 120
    assert [(arm["name"], arm["hot_racks"]) for arm in shown["arms"]] == [("default", 1), ("leeward", 0)]
    assert [len(arm["hot_share"]) for arm in shown["history"]["arms"]] == [1, 1]
    assert shown["arms"][0]["racks"][0] == {"rack": "r0", "up": 0.9, "down": 0.0}


def test_lines_of_the_demo_have_the_state_of_the_run() -> None:
    links = Links(["r0", "r1"], numpy.full((2, 2), 10.0), 60.0)
    step = Step(numpy.array([[9.0, 0.0], [0.0, 0.0]]), [], [(3, "r0h0")], 5, 1)
    lines: list[str] = []
    now = iter([0.0, 1.0, 2.0, 30.0])
    watch = demo.Watch(Size(horizon_s=7200.0), lines.append, lambda: next(now))
    for _ in range(3):
        watch(links, step)
    assert lines == [
        "0.0 of 2.0 h: 1 of 2 racks hot, 5 pods run, 1 wait, 1 were evicted",
        "0.1 of 2.0 h: 1 of 2 racks hot, 5 pods run, 1 wait, 3 were evicted",
    ]


def test_the_table_of_the_demo_has_a_column_for_each_run() -> None:
    pair = example_pair(1)
    rows = demo.table({"default": pair.real["default"], "leeward": pair.real["both"]})
    assert ("racks hot outbound", "40.1 %", "20.0 %") in rows
    assert ("pods evicted", "0", "4") in rows
    assert ("network-intensive pods put on hot racks", "80.0 %", "10.0 %") in rows


def test_the_demo_rejects_a_run_without_a_counted_part(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        demo.main(["--hours", "0.5"])
    assert "--hours 0.5: expected 1 to 24" in capsys.readouterr().err


def test_a_small_demo_runs_both_arms_on_a_control_plane_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lacks = program.missing()
    if lacks is None and not program.BINARY.is_file():
        lacks = "the control plane is not built: make kubernetes-demo builds it"
    if lacks is not None:
        pytest.skip(lacks)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    lines: list[str] = []
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr("leeward.client.client.Client.set_demo", lambda self, one: shown.append(dict(one)))
    found = demo.show(SMALL, 1, lines.append)
    assert list(found) == ["default", "leeward"]
    steps = round(SMALL.horizon_s / scenario.INTERVAL_S)
    assert len(shown) == 2 * steps
    assert [len(one["arms"]) for one in shown] == [1] * steps + [2] * steps
    default, leeward = (found[arm] for arm in demo.ARMS)
    assert default.ranked == 0
    assert leeward.ranked > 0.95 * leeward.placements > 0
    # The tasks are the same, and so are nearly all of the loads, which full links cut.
    running = [one.cell["running"][-1] for one in (default, leeward)]
    assert running[0] == pytest.approx(running[1], rel=0.1)
    simulated = simulate(scenario.write(tmp_path / "again", 1, SMALL), 1)
    assert running[0] == pytest.approx(simulated["default"].cell["running"][-1], rel=0.1)
    assert leeward.window.mean("p98") < default.window.mean("p98")
    assert any("dashboard: http://127.0.0.1:" in line for line in lines)
    assert [path.name for path in tmp_path.iterdir()] == ["again"]
