"""The collector of figures: records of benchmarks, peers, spread, load and parts. No benchmark runs here."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "benchmarks"))

import collect  # noqa: E402 (the module is not part of the package)
import record  # noqa: E402
import results  # noqa: E402
from collect import Program  # noqa: E402
from results import Run  # noqa: E402


def lines(*recorded: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in recorded)


def runs(*values: float) -> list[Run]:
    return [results.read_run(lines({"name": "time", "unit": "ms", "value": value})) for value in values]


def test_recorded_figures_and_peers_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "figures"
    monkeypatch.setenv("LEEWARD_BENCH", str(path))
    record.record("time", "ms", 1.5)
    record.record_peer("DuckDB", "1.4.5")
    record.record("over", "ratio", 2, peer="DuckDB")
    record.record_missing("SimGrid", "not installed")
    run = results.read_run(path.read_text())
    assert run.figures["over"] == {"unit": "ratio", "value": 2, "peer": "DuckDB"}
    assert run.figures["time"] == {"unit": "ms", "value": 1.5}
    assert run.peers == {"DuckDB": {"version": "1.4.5"}, "SimGrid": {"missing": "not installed"}}


def test_nothing_is_recorded_without_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LEEWARD_BENCH", raising=False)
    monkeypatch.chdir(tmp_path)
    record.record("time", "ms", 1.5)
    assert not list(tmp_path.iterdir())


FIGURE = {"name": "a", "unit": "s", "value": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense\n", "line 1: not JSON"),
        (lines(FIGURE) + '{"name": "b", "unit": "s", "value": inf}\n', "line 2: not JSON"),
        ('{"name": "b", "unit": "s", "value": NaN}\n', "line 1: b: nan is not finite"),
        ('{"name": "b", "unit": "s", "value": 1e999}\n', "line 1: b: inf is not finite"),
        (lines({"name": "b", "value": 1}), "line 1: neither a figure nor a peer"),
        (lines({"name": "b", "unit": "s", "value": "1"}), "line 1: neither a figure nor a peer"),
        ("[1]\n", "line 1: neither a figure nor a peer"),
        (lines(FIGURE, FIGURE), "line 2: a: two figures of one run have this name"),
        (lines({**FIGURE, "peer": "SimGrid"}), "a: no version of SimGrid"),
        (
            lines({**FIGURE, "peer": "SimGrid"}, {"peer": "SimGrid", "missing": "why"}),
            "a: no version of SimGrid",
        ),
    ],
)
def test_wrong_lines_are_errors_with_their_place(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        results.read_run(text)


def test_a_figure_has_the_median_the_ends_and_the_spread_of_its_runs() -> None:
    assert results.summarize("x", runs(3.0, 1.0, 2.0))["time"] == {
        "part": "x",
        "unit": "ms",
        "median": 2.0,
        "least": 1.0,
        "most": 3.0,
        "spread": 1.0,
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [((2.0,), 0.0), ((0.0, 0.0), 0.0), ((0.0, 0.0, 1.0), None), ((9.0, 10.0, 12.0), 0.3)],
)
def test_a_spread_is_relative_to_the_median(values: tuple[float, ...], expected: float | None) -> None:
    assert results.summarize("x", runs(*values))["time"]["spread"] == expected


def test_a_figure_with_two_units_is_an_error() -> None:
    other = results.read_run(lines({"name": "time", "unit": "s", "value": 1}))
    with pytest.raises(ValueError, match=r"^time: the units ms, s$"):
        results.summarize("x", [*runs(1.0), other])


def document(**parts: dict[str, float]) -> dict[str, Any]:
    made = results.empty()
    for part, values in parts.items():
        figures = {name: {"part": part, "median": value} for name, value in values.items()}
        results.replace_part(made, part, {"date": part}, figures)
    return made


def test_a_part_that_is_measured_again_loses_its_earlier_figures_and_no_others() -> None:
    made = document(a={"one": 1, "two": 2}, b={"three": 3})
    results.replace_part(made, "a", {"date": "later"}, {"two": {"part": "a", "median": 5}})
    assert made["figures"] == {"two": {"part": "a", "median": 5}, "three": {"part": "b", "median": 3}}
    assert made["parts"] == {"a": {"date": "later"}, "b": {"date": "b"}}


def test_a_figure_in_two_parts_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^one: in the parts a and b$"):
        results.replace_part(document(a={"one": 1}), "b", {}, {"one": {"part": "b"}})


def test_a_written_file_has_a_line_for_each_part_and_figure(tmp_path: Path) -> None:
    made = document(a={"one": 1}, b={"two": 2})
    results.write(made, tmp_path / "new" / "speed.json")
    text = (tmp_path / "new" / "speed.json").read_text()
    assert json.loads(text) == made
    assert len(text.splitlines()) == 2 + 2 * 2 + 2 + 2


def test_the_conditions_name_the_machine_the_commit_and_the_greatest_loads() -> None:
    peers = Run(peers={"DuckDB": {"version": "1.4.5"}})
    found = results.conditions([peers], [0.11, 0.46], [1.2, 0.9])
    assert found["runs"] == 2
    assert (found["load_before"], found["load_after"]) == (0.5, 1.2)
    assert found["peers"] == {"DuckDB": {"version": "1.4.5"}}
    assert found["machine"]["cores"] >= 1


PROGRAMS = [Program("a", ("one",), ("--small",)), Program("b", ("two",), None), Program("c", ("three",))]


def names(chosen: list[Program]) -> list[str]:
    return [program.command[0] for program in chosen]


def test_parts_select_programs_and_a_quick_run_leaves_long_ones_out() -> None:
    assert names(collect.selected(PROGRAMS, None, False)) == ["one", "two", "three"]
    assert names(collect.selected(PROGRAMS, ["b", "c"], False)) == ["two", "three"]
    assert names(collect.selected(PROGRAMS, None, True)) == ["one", "three"]
    with pytest.raises(ValueError, match=r"^--parts: no part 'd'; expected some of a, b, c$"):
        collect.selected(PROGRAMS, ["d"], False)
    with pytest.raises(ValueError, match=r"^--quick: has nothing of b; measure it without --quick$"):
        collect.selected(PROGRAMS, ["b"], True)


def test_a_quick_run_has_all_parts() -> None:
    programs = collect.programs(10_000_000, "4GB")
    full, quick = (collect.selected(programs, None, kind) for kind in (False, True))
    assert {program.part for program in full} == {program.part for program in quick}
    assert len(quick) < len(full)


def test_each_program_of_the_repository_exists() -> None:
    for program in collect.programs(1, "1GB"):
        match program.command:
            case ("cargo", "bench", _, _, crate, _, name, *_):
                folder = ROOT / "crates" / crate.removeprefix("leeward-") / "benches"
                assert (folder / f"{name}.rs").exists() or (folder / name / "main.rs").exists(), program
            case (_, path, *_):
                assert (ROOT / path).exists(), program


def loads(*values: float) -> Callable[[], float]:
    """A load average that has these values in turn, and then stays."""
    turn: Iterator[float] = chain(values, repeat(values[-1]))
    return lambda: next(turn)


def execute(program: Program, file: str) -> None:
    with Path(file).open("a") as out:
        out.write(lines({"name": program.command[0], "unit": "s", "value": 1}))


def measure(*values: float, count: int = 2, any_load: bool = False) -> tuple[Any, Any, list[float]]:
    waits: list[float] = []
    measured, busy = collect.measure(
        PROGRAMS, count, execute, load=loads(*values), wait=waits.append, any_load=any_load
    )
    return measured, busy, waits


def test_an_idle_machine_is_measured_without_a_wait() -> None:
    measured, busy, waits = measure(0.1, 0.4, 0.3, 0.9)
    assert busy is None
    assert not waits
    assert (measured.before, measured.after) == ([0.1, 0.3], [0.4, 0.9])
    assert {part: len(found) for part, found in measured.runs.items()} == {"a": 2, "b": 2, "c": 2}


def test_the_load_of_the_run_before_is_waited_out() -> None:
    measured, busy, waits = measure(0.1, 2.0, 1.5, 0.4, 1.0)
    assert busy is None
    assert waits == [collect.POLL_S]
    assert measured.before == [0.1, 0.4]


def test_a_busy_machine_is_refused_before_the_first_run() -> None:
    measured, busy, waits = measure(3.5)
    assert str(busy) == "the load average before run 1 is 3.5; expected at most 0.5"
    assert sum(waits) == collect.SETTLE_S
    assert measured.before == []


def test_runs_before_the_machine_became_busy_are_kept() -> None:
    measured, busy, _ = measure(0.1, 3.5)
    assert str(busy).startswith("the load average before run 2 is 3.5")
    assert {part: len(found) for part, found in measured.runs.items()} == {"a": 1, "b": 1, "c": 1}


def test_a_busy_machine_is_measured_on_request_and_its_load_recorded() -> None:
    measured, busy, waits = measure(3.5, any_load=True)
    assert busy is None
    assert not waits
    made = results.empty()
    measured.put_into(made)
    assert made["parts"]["a"]["load_before"] == 3.5
    assert made["figures"]["one"]["part"] == "a"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Path]:
    """Files of the collector in a folder, programs that record a figure, and no build."""
    paths = {name: tmp_path / f"{name}.json" for name in ("FIGURES", "QUICK", "REFUSED")}
    results.write(document(kept={"old": 1}), paths["FIGURES"])
    monkeypatch.setattr(results, "FIGURES", paths["FIGURES"])
    monkeypatch.setattr(results, "read", lambda: json.loads(paths["FIGURES"].read_text()))
    for name in ("QUICK", "REFUSED"):
        monkeypatch.setattr(collect, name, paths[name])
    monkeypatch.setattr(collect, "ROOT", tmp_path)
    monkeypatch.setattr(collect, "programs", lambda rows, memory: PROGRAMS)
    monkeypatch.setattr(collect, "build", lambda chosen: None)
    monkeypatch.setattr(collect, "execute", lambda program, quick, file: execute(program, file))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return paths


def main(monkeypatch: pytest.MonkeyPatch, load: Callable[[], float], *words: str) -> int:
    monkeypatch.setattr("os.getloadavg", lambda: (load(), 0.0, 0.0))
    monkeypatch.setattr(sys, "argv", ["collect.py", *words])
    return collect.main()


def figures(path: Path) -> set[str]:
    return set(json.loads(path.read_text())["figures"])


def test_a_run_writes_the_file_and_keeps_other_parts(
    written: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(monkeypatch, loads(0.1)) == 0
    assert figures(written["FIGURES"]) == {"old", "one", "two", "three"}
    assert not written["QUICK"].exists()


def test_a_quick_run_writes_another_file_of_the_same_form_whatever_the_load(
    written: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(monkeypatch, loads(9.0), "--quick") == 0
    assert figures(written["FIGURES"]) == {"old"}
    assert figures(written["QUICK"]) == {"one", "three"}
    quick = json.loads(written["QUICK"].read_text())
    assert quick["parts"]["a"]["runs"] == 1
    assert quick["parts"]["a"]["load_before"] == 9.0


def test_a_busy_machine_leaves_the_file_as_it_is(
    written: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(monkeypatch, loads(3.5)) == 1
    assert figures(written["FIGURES"]) == {"old"}
    assert not written["REFUSED"].exists()
    error = capsys.readouterr().err
    assert error.startswith("error: the load average before run 1 is 3.5; expected at most 0.5\nhint: ")
    assert "--load-ok" in error


def test_runs_of_a_machine_that_became_busy_go_to_another_file(
    written: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(monkeypatch, loads(0.1, 3.5)) == 1
    assert figures(written["FIGURES"]) == {"old"}
    assert figures(written["REFUSED"]) == {"one", "two", "three"}


def test_a_busy_machine_is_written_on_request(
    written: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(monkeypatch, loads(3.5), "--load-ok", "--parts", "a,b", "--runs", "1") == 0
    assert figures(written["FIGURES"]) == {"old", "one", "two"}
    assert json.loads(written["FIGURES"].read_text())["parts"]["b"]["load_before"] == 3.5


def test_a_benchmark_that_fails_leaves_the_file_as_it_is(
    written: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(program: Program, quick: bool, file: str) -> None:
        raise subprocess.CalledProcessError(101, program.command)

    monkeypatch.setattr(collect, "execute", fail)
    assert main(monkeypatch, loads(0.1)) == 1
    assert figures(written["FIGURES"]) == {"old"}
    assert "returned non-zero exit status 101" in capsys.readouterr().err


def test_no_runs_at_all_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(monkeypatch, loads(0.1), "--runs", "0")
    assert "--runs 0: expected at least 1" in capsys.readouterr().err
