"""`leeward reproduce slo` on small generated traces."""

import json
import math
from pathlib import Path
from typing import Any

import numpy
import pytest

from leeward._native import published_workloads, simulate_contention
from leeward.errors import InputError
from leeward_reproduce import results_folder
from leeward_reproduce.perform import reproduce, runs
from leeward_reproduce.rows import Row
from leeward_reproduce.slo import (
    admission,
    analyses,
    bottleneck,
    bursty,
    caches,
    cake,
    contention,
    gaps,
    held_out,
    misbehaving,
    optimum,
    packing,
    paper,
    perform,
    schedulers,
    store,
    workloads,
)

SECONDS = 20
TRACES = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of traces: bursts of reads and writes, drawn by a seed, and a synthetic SSD."""
    folder = tmp_path_factory.mktemp("data")
    (folder / workloads.SET).mkdir()
    random = numpy.random.default_rng(5)
    for number in range(TRACES):
        times = numpy.sort(random.uniform(0, SECONDS * 1e9, 200 + 40 * number).astype(int))
        kinds = random.choice(["DiskRead", "DiskWrite"], len(times))
        sizes = random.choice([4096, 65536], len(times))
        lines = [f"{at},{size:#010x},{kind}\n" for at, size, kind in zip(times, sizes, kinds, strict=True)]
        (folder / workloads.SET / f"trace{number:04}.txt").write_text("".join(lines))
    table = [
        {"requestSize": 4096, "readBandwidth": 1e6, "writeBandwidth": 5e5},
        {"requestSize": 65536, "readBandwidth": 1.1e7, "writeBandwidth": 7e6},
    ]
    (folder / workloads.SET / workloads.PROFILE).write_text(json.dumps({"bandwidthTable": table}))
    return folder


@pytest.fixture
def small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses these traces and few workloads."""
    monkeypatch.setenv("LEEWARD_DATA", str(folder))
    monkeypatch.setattr(workloads, "COUNTS", (6, 6, 6, 6, 6))
    monkeypatch.setattr(workloads, "RANDOM", 8)
    monkeypatch.setattr(packing, "MANY", 12)
    monkeypatch.setattr(packing, "BESIDE", 12)
    monkeypatch.setattr(packing, "WHOLE", 20)
    monkeypatch.setattr(packing, "TIMED", (4, 8))
    monkeypatch.setattr(admission, "STORED", 8)
    monkeypatch.setattr(admission, "SETS", 1)
    monkeypatch.setattr(caches, "TRACES", 3)
    monkeypatch.setattr(caches, "SMALL", 2)
    monkeypatch.setattr(caches, "SECONDS", 20.0)
    monkeypatch.setattr(caches, "WORKLOADS", 8)
    monkeypatch.setattr(analyses, "ON_PATH", (2, 3))
    monkeypatch.setattr(analyses, "SEVEN", 3)
    monkeypatch.setattr(analyses, "DEPENDENT", (0, 2, 3))
    monkeypatch.setattr(analyses, "NINES", (1, 3, 8, 33))
    monkeypatch.setattr(analyses, "SIZES", (3, 6))
    monkeypatch.setattr(optimum, "SMALL", 2)
    monkeypatch.setattr(optimum, "LARGE", 3)
    monkeypatch.setattr(optimum, "SCALES", (1, 2))
    monkeypatch.setattr(gaps, "WINDOW", 2.0)
    monkeypatch.setattr(optimum, "LENGTHS", (30.0, 40.0))
    short(monkeypatch)


def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes contention experiments last about a minute, with a setting of Cake for each upper bound."""
    for name in ("SECONDS", "ORDERED"):
        monkeypatch.setattr(schedulers, name, 60)
    monkeypatch.setattr(bursty, "SECONDS", 60)
    few = {
        name: one
        for name, one in cake.SETTINGS.items()
        if (one["step"], one["interval_s"]) == (cake.STEPS[0], cake.INTERVALS[0])
    }
    assert len(few) == len(cake.UPPERS)
    monkeypatch.setattr(cake, "SETTINGS", few)
    monkeypatch.setattr(misbehaving, "SECONDS", 60)
    monkeypatch.setattr(misbehaving, "BEGINS", 20)
    monkeypatch.setattr(misbehaving, "LASTS", 10)
    monkeypatch.setattr(misbehaving, "ISOLATED", 60)
    monkeypatch.setattr(bottleneck, "SECONDS", 20)


@pytest.mark.usefixtures("small")
def test_every_figure_has_rows_with_values_and_intervals(tmp_path: Path) -> None:
    rows = reproduce("slo", seeds=2, out=tmp_path)
    assert [*dict.fromkeys(row.figure for row in rows)] == list(perform.FIGURES)
    for row in rows:
        reasons = ("nothing of this kind", "the released profile has none")
        assert row.ours is not None or any(words in row.note for words in reasons), row
        assert row.ours is None or "first look" in row.note
    for name, figure in perform.FIGURES.items():
        assert (tmp_path / "pictures" / f"{name}.svg").is_file() == (figure.draw is not None)
    assert "ANCHOR: figure_5_4" in (tmp_path / "results.md").read_text()


@pytest.mark.usefixtures("small")
def test_a_stopped_reproduction_resumes_with_the_same_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first() -> list[Row]:
        return reproduce("slo", ["5.4", "5.10"], seeds=2, out=tmp_path / "kept", jobs=1)

    rows = first()

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was run again")

    with monkeypatch.context() as patched:
        patched.setattr(workloads, "pack", never)
        assert first() == rows
    assert reproduce("slo", ["5.4", "5.10"], seeds=2, out=tmp_path / "two", jobs=2) == rows


@pytest.mark.usefixtures("small")
def test_outcomes_are_computed_again_for_other_inputs(tmp_path: Path) -> None:
    calls: list[int] = []

    def make(seed: int) -> int:
        calls.append(seed)
        return len(calls)

    assert [store.load_or_make(tmp_path, "x", 1, inputs, make) for inputs in ([1], [1], [2])] == [1, 1, 2]
    (tmp_path / "x-1.json").write_text('{"of"')
    assert store.load_or_make(tmp_path, "x", 1, [2], make) == 3


@pytest.mark.usefixtures("small")
def test_packing_methods_get_the_same_workloads_and_refuse_none() -> None:
    ways = tuple(workloads.WAYS)
    drawn = workloads.draws(1, 8, workloads.SLOS, ways=ways)
    assert (
        drawn
        == workloads.draws(1, 8, workloads.SLOS, ways=ways)
        != workloads.draws(2, 8, workloads.SLOS, ways=ways)
    )
    assert {(trace, slo) for trace, _, slo in drawn} <= set(workloads.feasible(workloads.SLOS, ways))
    for name, way in workloads.WAYS.items():
        packed = workloads.pack(drawn, way)
        assert (packed["refused"], packed["placed"]) == ([], list(range(8))), name


@pytest.mark.usefixtures("small")
def test_thirty_workloads_take_at_most_thirty_servers() -> None:
    drawn = workloads.draws(1, 30, (1.0,), ways=tuple(workloads.WAYS))
    for way in workloads.WAYS.values():
        assert 1 <= workloads.pack(drawn, way)["servers"] <= 30


@pytest.mark.usefixtures("small")
def test_more_devices_per_server_never_need_more_servers() -> None:
    outcome = packing.devices(1)
    counts = [outcome[str(count)] for count in packing.DEVICES]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.usefixtures("small")
def test_admission_repeats_and_never_exceeds_the_number_of_workloads() -> None:
    outcome = admission.network(1)
    assert outcome == admission.network(1)
    for by_policy in outcome.values():
        assert by_policy[admission.NONE]["admitted"] == caches.WORKLOADS
        for name in admission.POLICIES:
            assert 0 <= by_policy[name]["missed"] <= by_policy[name]["admitted"] <= caches.WORKLOADS
            assert (by_policy[name]["bytes"] > 0) == (by_policy[name]["admitted"] > 0)


@pytest.mark.usefixtures("small")
def test_more_nines_never_lower_a_bound_or_change_the_worst_case() -> None:
    for by_nines in analyses.nines(1).values():
        tails = [by_nines[str(nines)] for nines in analyses.NINES]
        stochastic = [one["bipartite"] for one in tails]
        assert stochastic == sorted(stochastic)
        assert len({one["dnc"] for one in tails}) == 1


@pytest.mark.usefixtures("small")
def test_workloads_admitted_by_the_optimum_miss_no_slo() -> None:
    outcome = optimum.optimum(1)
    best = outcome[optimum.OPT]["admitted"]
    drawn, on = caches.draws(1), caches.links(1)
    assert caches.admit("none", drawn[:best], on[:best])["missed"] == 0


@pytest.mark.usefixtures("small")
def test_the_worst_case_is_the_same_at_any_percentile() -> None:
    outcome = admission.percentiles(1)
    assert outcome["90 DNC"] == outcome["99.9 DNC"] | {"missed": outcome["90 DNC"]["missed"]}
    assert 0 <= outcome["90 SNC"]["admitted"] <= outcome["count"]


def test_figures_without_traces_are_marked_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEEWARD_DATA", str(tmp_path))
    rows = reproduce("slo", ["5.4", "4.16"])
    assert [row.figure for row in rows] == ["4.16", "5.4"]
    for row in rows:
        assert row.ours is None
        assert row.note.startswith("not measured: there is no zhu-workloadcompactor")


def test_figures_with_random_workloads_need_no_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEEWARD_DATA", str(tmp_path))
    short(monkeypatch)
    names = ["2.3", "3.5", "3.5-correlated", "3.5-released", "gaps", "5.4"]
    rows = reproduce("slo", names, seeds=2)
    missing = [row.figure for row in rows if row.ours is None]
    assert missing == ["2.3", "3.5-released", "gaps", "5.4"]
    assert {row.figure for row in rows} == set(names)


@pytest.mark.parametrize(
    "name",
    [
        *("3.1", "3.2", "3.3", "3.5", "3.6", "3.8"),
        *("3.1-correlated", "3.2-correlated", "3.3-correlated", "3.6-correlated", "3.7-correlated"),
    ],
)
def test_a_contention_experiment_repeats_with_its_seed_and_changes_with_another(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(monkeypatch)
    experiment = perform.FIGURES[name].experiment
    assert experiment(1) == experiment(1)
    assert experiment(1) != experiment(2)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["3.1-released", "3.3-released", "3.5-released"])
def test_an_experiment_on_released_traces_repeats_with_its_seed_and_starts_elsewhere_with_another(
    name: str,
) -> None:
    experiment = perform.FIGURES[name].experiment
    assert experiment(1) == experiment(1)
    assert experiment(1) != experiment(2)


def test_every_figure_of_chapter_3_has_each_input_that_it_can_have() -> None:
    chapter = [name for name in perform.FIGURES if name.startswith("3.")]
    plain = [name for name in chapter if "-" not in name]
    assert plain == ["3.1", "3.2", "3.3", "3.5", "3.6", "3.7", "3.8", "3.9"]
    with_all = {f"{name}{suffix}" for name in plain for suffix in ("", "-correlated", "-released")}
    assert set(chapter) == with_all - {"3.7-released"}
    needs_traces = {name for name in chapter if perform.FIGURES[name].released}
    assert needs_traces == {name for name in chapter if name.endswith("-released")}


def test_each_workload_has_the_free_trace_of_the_closest_c2() -> None:
    known = {"a": 1.2, "b": 1.0, "c": 9.0, "d": 90.0}
    assert gaps.closest(known, {"A": 1.3, "B": 14.0, "F": 1.0}) == {"A": "a", "B": "c", "F": "b"}
    # Ratios count: 30 is closer to 90 than to 9. A taken trace is not taken again.
    assert gaps.closest(known, {"G": 30.0, "H": 40.0}) == {"G": "d", "H": "c"}
    # With fewer traces than workloads, each trace stands for as few as possible.
    assert gaps.closest({"a": 2.0}, {"A": 1.0, "B": 5.0}) == {"A": "a", "B": "a"}
    assert gaps.closest({"b": 4.0, "a": 4.0}, {"A": 4.0}) == {"A": "a"}


def test_correlated_gaps_have_the_stated_dispersion() -> None:
    assert gaps.bursts(1.0) is None
    for gap_c2, (stated, height) in gaps.STATED.items():
        drawn = gaps.bursts(gap_c2)
        assert drawn is not None
        persistence = drawn["persistence"]
        assert 0 < persistence < 1
        dispersion = gap_c2 + (gap_c2 - 1) * persistence / (1 - persistence)
        assert dispersion == pytest.approx(stated * gap_c2)
        assert drawn["height"] == height > 1
    of_table = {row["gap_c2"] for letter, row in published_workloads().items() if letter != "E"}
    assert {gap_c2 for gap_c2 in of_table if gap_c2 > 1} == set(gaps.STATED)


def test_medians_are_over_the_traces_of_the_closest_c2() -> None:
    def trace(c2: float, dispersion: float, median: float) -> dict[str, float]:
        return {"c2": c2, "dispersion": c2 * dispersion, "median": math.log(2) / median}

    near = [trace(2.0 + 0.1 * at, at, 10.0 * at) for at in range(1, gaps.CLOSEST + 1)]
    far = [trace(100.0, 1000.0, 1000.0), trace(0.01, 1000.0, 1000.0), trace(0.0, 0.0, 1.0)]
    assert gaps.local([*far, *near], 2.0) == pytest.approx((3.0, 30.0))


def test_the_stated_statistics_are_those_of_the_released_traces() -> None:
    if workloads.absent():
        pytest.skip(f"LEEWARD_DATA names no folder with {workloads.SET}")
    every = gaps.released(1)["traces"]
    for gap_c2, stated in gaps.STATED.items():
        assert gaps.local(every, gap_c2) == pytest.approx(stated, rel=0.01)
    traces = list(gaps.assignment().values())
    assert len(set(traces)) == len(gaps.LETTERS) == len(traces)


def test_the_best_setting_of_cake_has_the_greatest_score_over_all_seeds() -> None:
    first, second, *others = cake.SETTINGS
    seeds = [
        dict.fromkeys(others, (0.0, 0.0)) | {first: (1.0, -5.0), second: (0.0, -1.0)},
        dict.fromkeys(others, (0.0, 0.0)) | {first: (0.0, -1.0), second: (1.0, -1.0)},
    ]
    assert cake.key(cake.NAME, seeds, lambda score: score) == second
    assert cake.key("pm", seeds, lambda score: score) == "pm"
    equal = [dict.fromkeys(cake.SETTINGS, (1.0, 0.0))]
    assert cake.best(equal, lambda score: score) == first
    for upper in cake.UPPERS:
        assert cake.SETTINGS[cake.best(equal, lambda score: score, upper)]["upper"] == upper
    assert second in cake.note(second)
    assert cake.note("pm") == ""


def test_cake_runs_with_each_setting_and_other_schedulers_as_they_are() -> None:
    members = contention.own_clients([contention.storage_member("F", 0.1), contention.copy()])
    fared = contention.contend(1, members, 60, [99.0], schedulers=("cake", "pm"), percentile=99.0)
    assert set(fared) == {*cake.SETTINGS, "pm"}
    assert len({json.dumps(of) for of in fared.values()}) > len(cake.UPPERS)
    setting = next(iter(cake.SETTINGS.values()))
    request: dict[str, Any] = {
        "members": [],
        "shape": {"clients": 1, "slots": None, "servers": 1, "devices": 1, "bytes_per_second": 1e6},
        "device": json.dumps({"disk": contention.DISK}),
        "packet_bytes": 65536,
        "seconds": 60,
        "from_seconds": 0,
        "percentile": 99,
        "percentiles": [99],
        "schedulers": ["ps"],
    }
    with pytest.raises(InputError, match="cakes: `ps`: expected a name that no scheduler has"):
        simulate_contention(1, json.dumps(request | {"cakes": {"ps": setting}}))
    with pytest.raises(InputError, match=r"none\.csv"):
        simulate_contention(1, json.dumps(request | {"traces": ["none.csv"]}))


@pytest.mark.usefixtures("small")
def test_held_out_halves_have_rows_with_and_without_demotion_on_links() -> None:
    outcomes = [held_out.random(seed) for seed in (1, 2)]
    rows = {row.quantity: row for row in held_out.rows_random(outcomes)}
    for words in held_out.OVERRUNS.values():
        for margin in ("margin of 10%", "no margin"):
            assert rows[f"{margin}, {words}: workloads within their SLO"].ours is not None
    # Limits on links that demote are never worse for the workloads together.
    kept = [
        rows[f"margin of 10%, {words}: workloads within their SLO"].ours
        for words in held_out.OVERRUNS.values()
    ]
    assert kept[0] is not None
    assert kept[1] is not None
    assert kept[0] <= kept[1]


def test_each_workload_of_the_table_has_its_load() -> None:
    seconds = 600.0
    for letter, (load, gap_c2) in contention.TABLE.items():
        alone = contention.own_clients([contention.storage_member(letter, 1.0), contention.copy()])
        fared = contention.contend(1, alone, seconds, [50.0], schedulers=("pm",), measured=1.0)["pm"]
        # The copy uses the rest of the disk's time, with a seek of 9 ms for each MiB.
        copied = fared[1]["requests"] * (0.009 + (1 << 20) / 150e6) / seconds
        assert abs(1 - copied - load) < 0.02 + 3 * (gap_c2 * load * 0.01 / seconds) ** 0.5, letter


def test_priorities_by_slo_put_the_tightest_first() -> None:
    members = contention.own_clients(
        [
            contention.storage_member("A", 0.3),
            contention.storage_member("C", 0.1),
            contention.storage_member("B", 0.2),
        ]
    )
    fared = contention.contend(1, members, 60, [99.0], schedulers=("by-slo",))["by-slo"]
    assert [one["priorities"]["storage"] for one in fared] == [2, 0, 1]


def test_invalid_contention_settings_are_input_errors() -> None:
    alone = contention.own_clients([contention.storage_member("A", 0.3)])
    with pytest.raises(InputError, match="`fifo`: expected one of ps, cake, edf, by-slo, pm"):
        contention.contend(1, alone, 60, [99.0], schedulers=("fifo",))
    with pytest.raises(InputError, match="workload A: SLO -1: must be finite and above 0"):
        contention.contend(1, contention.own_clients([contention.storage_member("A", -1.0)]), 60, [99.0])
    with pytest.raises(InputError, match="unknown field"):
        simulate_contention(1, '{"more": 1}')


def test_a_horizon_is_rejected() -> None:
    with pytest.raises(InputError, match="replayed to its end"):
        reproduce("slo", ["5.4"], horizon="5min")


@pytest.mark.usefixtures("small")
def test_invalid_experiment_arguments_are_input_errors() -> None:
    experiment = workloads.experiment()
    with pytest.raises(InputError, match="trace 99: there are 6"):
        workloads.pack([(99, 0.0, 0.1)], workloads.WAYS["knee"])
    with pytest.raises(InputError, match="expected whole, first or second"):
        experiment.payload(0, "third")
    with pytest.raises(InputError, match="unknown policy"):
        workloads.pack([(0, 0.0, 0.1)], ("none", ""))
    with pytest.raises(InputError):
        experiment.pack([], "{}")
    assert results_folder.SEEDS == 10


def test_a_combined_figure_selects_its_parts() -> None:
    for figure, those in perform.ALIASES.items():
        assert figure not in perform.FIGURES
        assert runs("slo", figure, 2) == runs("slo", those, 2) > 0
        assert all(figure in perform.FIGURES[name].title for name in those if name != "5.9")
    assert perform.ALIASES["5.1"] == ("5.8", "5.9")


@pytest.mark.usefixtures("small")
def test_longer_traces_are_of_the_same_workloads() -> None:
    usual, longer = caches.experiment(), caches.experiment(seconds=4 * caches.SECONDS)
    assert len(usual) == len(longer) == caches.SMALL + caches.TRACES
    for trace in range(len(usual)):
        grown = longer.payload(trace, "whole") / usual.payload(trace, "whole")
        assert grown == pytest.approx(4, rel=0.25)
    assert caches.experiment(seconds=caches.SECONDS) is usual


@pytest.mark.usefixtures("small")
def test_small_requests_have_rows_for_each_length_and_only_that_of_the_thesis_is_compared() -> None:
    outcomes = [optimum.small_longer(seed) for seed in (1, 2)]
    rows = {row.quantity: row for row in optimum.rows_longer(outcomes)}
    first, second = (f"traces of {seconds / 60:g} min: " for seconds in optimum.LENGTHS)
    label = "SNC over the best as published: bytes"
    assert (rows[first + label].paper, rows[second + label].paper) == (paper.SMALL_BYTES, None)
    assert {row.figure for row in rows.values()} == {"4.12-long"}
    assert len(rows) == 2 * len(optimum.rows_small([one[f"{optimum.LENGTHS[0]:g}"] for one in outcomes]))
    assert optimum.small(1) == optimum.small(1, caches.SECONDS)
