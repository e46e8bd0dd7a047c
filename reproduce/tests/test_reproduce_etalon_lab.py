"""Rows of Etalon's figures in the lab, from measurements that this file makes up."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pytest

from leeward import lab, packets
from leeward.lab.checks.values import about, check_of
from leeward_reproduce.etalon.kernels import figures
from leeward_reproduce.etalon.kernels.bench import Bench, Both
from leeward_reproduce.etalon.kernels.perform import FIGURES

T = TypeVar("T")
TIMING = {"dilation": 40, "days_s": [180e-6, 181e-6], "weeks_s": [1400e-6], "lost_packets": 1}


class MadeUp(Bench):
    """A bench whose lab measures what the simulator does."""

    def __init__(self, keeps_up: bool) -> None:
        super().__init__(lambda: None)
        self.keeps_up = keeps_up
        self.scenarios: set[str] = set()
        self.calls = 0

    def both(
        self, scenario: Mapping[str, Any], dilation: int, measure: Callable[[packets.PacketRun], T]
    ) -> Both[T]:
        self.scenarios.add(json.dumps(scenario))
        self.calls += 1
        value = measure(packets.simulate(dict(scenario)))
        if self.keeps_up:
            return Both(value, value, TIMING, f"dilation {dilation}")
        return Both(value, None, {}, "late")


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of which one is installed."""
    expected = about(4000, 3)
    checks = [
        check_of("programs", "ping: round trip", "us", 10, 4010.0, expected, expected=4000.0),
        check_of("programs", "netperf", "us", 10, None, expected, expected=4000.0, note="not installed"),
    ]
    monkeypatch.setattr(lab, "check_programs", lambda: checks)


def test_figure_1_has_table_1_of_the_lab_and_programs_in_virtual_time() -> None:
    bench = MadeUp(keeps_up=True)
    rows = {row.quantity: row for row in figures.checks(bench, "20ms")}
    assert len(bench.scenarios) == FIGURES["1"].scenarios
    assert {row.figure for row in rows.values()} == {"1"}
    met = {name: row.met for name, row in rows.items()}
    assert met == {
        "day of a circuit: mean": True,
        "day of a circuit: standard deviation": True,
        "week: mean": True,
        "week: standard deviation": True,
        "rate of the packet path": True,
        "rate of a circuit": True,
        "packets lost outside the switch": False,
        "ping: round trip": True,
        "netperf": None,
    }
    week = rows["week: mean"]
    assert week.paper == 1400.02
    assert week.ours == pytest.approx(1400)
    assert week.simulator == pytest.approx(1400)
    assert (rows["packets lost outside the switch"].ours, rows["netperf"].note) == (3, "not installed")
    assert rows["ping: round trip"].expected == "4000 us within 3 %"


def test_figure_1_of_a_lab_that_is_late_has_the_reason_and_no_values() -> None:
    rows = figures.checks(MadeUp(keeps_up=False), "20ms")[:6]
    assert {(row.ours, row.met, row.note) for row in rows} == {(None, None, "late")}
    assert all(row.simulator is not None for row in rows)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_asks_for_as_many_scenarios_as_it_says_and_has_rows_of_its_name(name: str) -> None:
    # Progress counts the scenarios, and results have the rows of figures by their names.
    bench = MadeUp(keeps_up=True)
    figure = FIGURES[name]
    rows = figure.rows(bench, figure.horizon if figure.of_size else "4ms")
    assert bench.calls == figure.scenarios
    assert {row.figure for row in rows} == {name}


def test_a_scenario_begins_with_the_dilation_that_the_machine_needed_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needed, late_s = 90, 3e-6
    tried: list[int] = []

    class Run:
        run = "a run"
        notes = ("a note",)

        @property
        def timing(self) -> dict[str, Any]:
            return {"packets": {"p99_s": late_s}}

    def run(_: dict[str, Any], dilation: int) -> Run:
        tried.append(dilation)
        if dilation < needed:
            raise TimeoutError("the lab fell behind")
        return Run()

    monkeypatch.setattr(lab, "run", run)
    monkeypatch.setattr(packets, "simulate", lambda _: "a run")
    bench = Bench(lambda: None)

    def both(seed: int) -> Both[str]:
        return bench.both({"seed": seed}, 60, str)

    first = both(1)
    assert first.note == "dilation 90; a run under dilation 60 was rejected: the lab fell behind; a note"
    assert (both(1), tried) == (first, [60, 90])
    late_s = 0.5e-6
    both(2)
    assert tried == [60, 90, 90]
    # The machine has time to spare, so that the next scenario tries a smaller dilation.
    needed = 60
    both(3)
    assert tried == [60, 90, 90, 60]
    needed = 1000
    assert both(4).lab is None
    assert tried[4:] == [60, 90, 120, 180, 240]
