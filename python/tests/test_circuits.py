"""Schedules of circuits from Python and from the command line."""

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward import InputError, circuits

Run = Callable[..., subprocess.CompletedProcess[str]]

RING = [[0, 9_000_000, 0], [0, 0, 9_000_000], [9_000_000, 300_000, 0]]
EXAMPLE = Path(__file__).parents[2] / "examples/circuits/demand.csv"
NAMES = [one["name"] for one in circuits.schedulers()]


@pytest.fixture
def demand(tmp_path: Path) -> str:
    (tmp_path / "demand.csv").write_text("\n".join(",".join(map(str, row)) for row in RING))
    return "demand.csv"


def squares() -> st.SearchStrategy[list[list[int]]]:
    entry = st.one_of(st.just(0), st.integers(0, 20_000_000))

    def rows(racks: int) -> st.SearchStrategy[list[list[int]]]:
        drawn = st.lists(st.lists(entry, min_size=racks, max_size=racks), min_size=racks, max_size=racks)
        return drawn.map(
            lambda rows: [
                [0 if source == to else row[to] for to in range(racks)] for source, row in enumerate(rows)
            ]
        )

    return st.integers(2, 9).flatmap(rows)


@given(squares())
def test_served_and_remaining_bytes_add_up_to_the_demand(rows: list[list[int]]) -> None:
    for name in NAMES:
        result = circuits.schedule(rows, name)
        left = numpy.array(rows)
        for day in result.days:
            sources = [circuit.source for circuit in day.circuits]
            destinations = [circuit.destination for circuit in day.circuits]
            assert len(set(sources)) == len(sources)
            assert len(set(destinations)) == len(destinations)
            assert day.served_bytes == sum(circuit.bytes for circuit in day.circuits)
            for circuit in day.circuits:
                left[circuit.source, circuit.destination] -= circuit.bytes
        assert (left == result.left).all()
        assert result.served_bytes + result.left_bytes == result.demand_bytes == sum(map(sum, rows))
        if name not in ("solstice-paper", "rotor", "opera"):
            assert result.length_s <= result.week_s * (1 + 1e-12)


def _known(days: Any, demand: Any, network: circuits.Network) -> Any:
    return days


@given(squares())
def test_a_python_scheduler_is_measured_like_a_built_in_one(rows: list[list[int]]) -> None:
    for name in ("solstice", "eclipse", "rotor"):
        result = circuits.schedule(rows, name)
        if result.days:
            days = [
                (day.length_s, [(one.source, one.destination) for one in day.circuits]) for day in result.days
            ]
            again = circuits.schedule(rows, partial(_known, days))
            assert [day.circuits for day in again.days] == [day.circuits for day in result.days]
            assert again.left.tolist() == result.left.tolist()


def test_a_demand_may_be_rows_an_array_or_a_file(demand: str, tmp_path: Path) -> None:
    numpy.save(tmp_path / "demand.npy", numpy.array(RING, dtype=float))
    records = [
        circuits.schedule(one, "eclipse").record()
        for one in (RING, numpy.array(RING), tmp_path / demand, tmp_path / "demand.npy")
    ]
    assert records[0]["served_bytes"] == 27_300_000
    assert all(record == records[0] for record in records)
    assert circuits.read(tmp_path / demand).tolist() == RING


@pytest.mark.parametrize("separator", [",", ", ", ";", " ; ", "\t", " ", "   "])
@pytest.mark.parametrize("form", ["d", ".18e"])
def test_numbers_may_be_separated_in_any_usual_way(tmp_path: Path, separator: str, form: str) -> None:
    lines = (separator.join(format(number, form) for number in row) for row in RING)
    (tmp_path / "demand.txt").write_text("".join(f"{line}\r\n" for line in lines))
    assert circuits.read(tmp_path / "demand.txt").tolist() == RING
    circuits.schedule(tmp_path / "demand.txt")


@pytest.mark.parametrize("scheduler", ["solstice", "eclipse", "rotor", lambda demand, _: []])
def test_the_diagonal_changes_no_schedule_and_is_reported(scheduler: Any) -> None:
    with_diagonal = numpy.array(RING) + numpy.diag([5, 0, 7_000_000])
    between, whole = (circuits.schedule(demand, scheduler).record() for demand in (RING, with_diagonal))
    assert (between.pop("within_bytes"), whole.pop("within_bytes")) == (0, 7_000_005)
    assert whole == between


def test_the_command_reports_the_diagonal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "demand.txt").write_text("4000000 9000000\n0 0\n")
    result = run("circuits", "schedule", "demand.txt")
    assert result.returncode == 0
    text = "warning: 4 MB on the diagonal of the demand are within racks and use no circuit"
    assert result.stderr.splitlines()[0] == text


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        ([[0, 1], [1]], "demand: row 1: 1 columns: must be 2, as many as there are rows"),
        ([[0, -1], [1, 0]], "demand: row 0, column 1: -1 bytes: must be 0 or more and finite"),
        ([[0, float("nan")], [1, 0]], "demand: row 0, column 1: NaN bytes: must be 0 or more and finite"),
        ([[0, 1], [1, -5]], "demand: row 1, column 1: -5 bytes: must be 0 or more and finite"),
        ([[0, "much"], [1, 0]], "demand: row 0: expected numbers of bytes"),
        ([[0]], "demand: a demand of 1 racks: must be 2 to 2048"),
        (7, "demand: row 0: expected numbers of bytes"),
    ],
)
def test_an_invalid_demand_is_rejected_with_row_and_column(invalid: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        circuits.schedule(invalid)
    assert str(caught.value).startswith(message)


def test_invalid_arguments_are_named() -> None:
    def error_of(scheduler: object = "solstice", **network: str) -> str:
        with pytest.raises(InputError) as caught:
            circuits.schedule(RING, scheduler, circuits.Network(**network))  # type: ignore[arg-type]
        return str(caught.value)

    assert error_of(night="2ms") == "night: 2ms: must be shorter than the week of 2ms"
    assert error_of(min_day="5ms").startswith(
        "min_day: 5ms: does not fit after a night of 20us in a week of 2ms"
    )
    assert error_of(circuit="0bps") == "circuit: 0bps: must be above 0 and at most 100Tbps"
    assert error_of(packet="0bps") == "packet: 0bps: must be above 0 and at most 100Tbps"
    assert error_of(week="soon").startswith("week: `soon`: not a number")
    assert error_of("sunflow").startswith("scheduler: unknown scheduler `sunflow`; there are: solstice,")
    assert error_of("opera:uplinks=0") == "scheduler: opera.uplinks: 0: expected 1 to 64"
    assert error_of("eclipse:quick=1").startswith("scheduler: eclipse")
    twice = [("1ms", [(0, 1)]), ("1ms", [(0, 1), (0, 2)])]
    assert error_of(lambda *_: twice) == "days: day 1: source 0 has circuits to 1 and 2: a port has one"
    assert error_of(lambda *_: [("1ms", [(0, 1), (2, 2)])]).startswith(
        "days: day 0: a circuit from rack 2 to itself"
    )
    assert error_of(lambda *_: [("0s", [(0, 1)])]) == "days: day 0: a length of 0: must be above 0"
    assert error_of("fixed:days=[]") == "scheduler: fixed.days: empty: expected at least one"
    assert error_of("fixed:rings=[]") == "scheduler: fixed.rings: empty: expected at least one"
    assert error_of(lambda *_: [("long", [])]).startswith("days: day 0: expected a length such as 180us")
    assert error_of(lambda *_: [(-1.0, [(0, 1)])]).startswith("days: day 0: expected a length from 0")


@pytest.mark.parametrize(
    ("days", "message"),
    [
        (None, "days: `mine` returned NoneType: expected a list of days"),
        (7, "days: `mine` returned int: expected a list of days"),
        ("1ms", "days: `mine` returned str: expected a list of days"),
        ([None], "days: day 0: expected a length such as 180us and circuits as (source, destination)"),
        (["1ms"], "days: day 0: expected a length such as 180us"),
        ([("1ms",)], "days: day 0: expected a length such as 180us"),
        ([("1ms", [(0, 1)], 3)], "days: day 0: expected a length such as 180us"),
        ([("1ms", [(0, 1)]), ("1ms", 5)], "days: day 1: expected a length such as 180us"),
        ([("1ms", [(0, 1, 2)])], "days: day 0: expected a length such as 180us"),
        ([("1ms", [(0, 1.5)])], "days: day 0: expected a length such as 180us"),
        ([("1ms", ["01"])], "days: day 0: expected a length such as 180us"),
        ([(float("nan"), [(0, 1)])], "days: day 0: expected a length such as 180us"),
        ([(float("inf"), [(0, 1)])], "days: day 0: expected a length such as 180us"),
        ([("1ms", [(0, -1)])], "days: day 0: expected a length from 0 and racks numbered from 0"),
        ([("1ms", [(0, 9)])], "days: day 0: circuit to rack 9: there are 3 racks, numbered from 0"),
    ],
)
def test_invalid_days_from_a_python_scheduler_are_rejected(days: Any, message: str) -> None:
    def mine(demand: Any, network: circuits.Network) -> Any:
        return days

    with pytest.raises(InputError) as caught:
        circuits.schedule(RING, mine)
    assert str(caught.value).startswith(message)


def test_a_scheduler_may_return_no_days_and_a_function_takes_no_settings() -> None:
    idle = circuits.schedule(RING, lambda *_: [])
    assert (idle.days, idle.served_bytes, idle.left_bytes) == ((), 0, idle.demand_bytes)
    # A built-in scheduler also returns no days if the demand is zero.
    assert circuits.schedule([[0, 0], [0, 0]], "solstice").days == ()
    with pytest.raises(InputError, match="settings: the function"):
        circuits.schedule(RING, lambda *_: [], settings="fair: true")
    with pytest.raises(InputError, match="settings: `solstice:fair=true` has settings already"):
        circuits.schedule(RING, "solstice:fair=true", settings="fair: false")
    given = circuits.schedule(RING, "solstice", settings="fair: true").record()
    assert given == circuits.schedule(RING, "solstice:fair=true").record() | {"scheduler": "solstice"}


def test_names_and_settings_of_all_schedulers_are_listed() -> None:
    schedulers = {one["name"]: one for one in circuits.schedulers()}
    assert schedulers["rotor"]["aliases"] == ["strobe"]
    assert set(schedulers["solstice"]["settings"]["properties"]) == {"fair", "unit"}
    assert circuits.schedule(RING, "strobe").scheduler == "rotor"
    assert circuits.schedule(RING, "rotor:day=90us").scheduler == "rotor:day=90us"


def test_the_command_compares_schedulers(run: Run, demand: str) -> None:
    result = run("circuits", "schedule", demand, "--scheduler", "eclipse,rotor", "--picture", "week.svg")
    assert (result.returncode, result.stderr.splitlines()[-1]) == (0, "wrote week.svg")
    header, eclipse, rotor, blank, *rest = result.stdout.splitlines()
    assert " ".join(header.split()) == "SCHEDULER DAYS WEEK UP PAIRS SERVED OF DEMAND LEFT PACKETS TAKE"
    assert " ".join(eclipse.split()) == "eclipse 2 970 us 95.9 % 4 27.3 MB 100 % 0 B 0 s"
    assert rotor.split()[:3] == ["rotor", "2", "400"]
    assert not blank
    assert rest[0].split() == ["ECLIPSE", "FROM", "LENGTH", "CIRCUITS", "SERVED", "USED"]
    assert " ".join(rest[1].split()) == "day 0 20 us 900 us 3 27 MB 100 %"


def test_the_command_writes_json_and_a_reproducible_picture(run: Run, tmp_path: Path) -> None:
    arguments = (
        "circuits",
        "schedule",
        str(EXAMPLE),
        "--scheduler",
        "solstice,fixed:rings=[1,2]",
        "-o",
        "json",
    )
    result = run(*arguments, "--picture", "one.svg")
    solstice, fixed = json.loads(result.stdout)
    assert fixed["scheduler"] == "fixed:rings=[1,2]"
    assert solstice["served_bytes"] > 0.9 * solstice["demand_bytes"]
    assert numpy.array(solstice["left"]).sum() == solstice["left_bytes"]
    assert run(*arguments, "--picture", "two.svg").returncode == 0
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert ElementTree.parse(tmp_path / "one.svg").getroot().tag.endswith("svg")


def test_the_command_measures_days_from_a_file(run: Run, demand: str, tmp_path: Path) -> None:
    (tmp_path / "days.yaml").write_text("days: [{length: 900us, circuits: [[0, 1], [1, 2], [2, 0]]}]")
    result = run("circuits", "schedule", demand, "--days", "days.yaml", "-o", "json")
    assert [one["left_bytes"] for one in json.loads(result.stdout)] == [0, 300_000]
    (tmp_path / "days.yaml").write_text("days: [{length: 900us, circuits: [[0, 1], [2, 1]]}]")
    result = run("circuits", "schedule", demand, "--days", "days.yaml")
    message = "error: days.yaml: day 0: destination 1 has circuits from 0 and 2: a port has one\n"
    assert (result.returncode, result.stderr) == (2, message)
    # Invalid files are rejected before any measurement.
    for text, message in (
        ("days: []", "days.yaml: days: empty: expected at least one"),
        ("{}", "days.yaml:1:1: days: missing"),
        ("rings: [1]", "days.yaml:1:1: rings: unknown field"),
        ("", "days.yaml: the file is empty"),
    ):
        (tmp_path / "days.yaml").write_text(text)
        result = run("circuits", "schedule", demand, "--days", "days.yaml")
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"error: {message}"), result.stderr


def test_the_command_names_the_invalid_option_or_field(run: Run, demand: str, tmp_path: Path) -> None:
    def error_of(*arguments: str) -> str:
        result = run("circuits", "schedule", *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        return result.stderr.splitlines()[0]

    assert error_of(demand, "--night", "3ms") == "error: --night: 3ms: must be shorter than the week of 2ms"
    assert error_of(demand, "--min-day", "3ms").startswith(
        "error: --min-day: 3ms: does not fit after a night"
    )
    assert error_of(demand, "--scheduler", "x").startswith("error: --scheduler: unknown scheduler `x`")
    assert error_of(demand, "--picture", "week.png").startswith(
        "error: --picture: `week.png`: expected a name"
    )
    assert error_of("none.csv") == "error: none.csv: no such file"
    (tmp_path / "bad.csv").write_text("0,1\n-5,0\n")
    assert error_of("bad.csv").startswith("error: bad.csv:2: column 1: `-5`: must not be negative")
    (tmp_path / "bad.csv").write_text("0,1\n5,0\n1,2\n")
    assert error_of("bad.csv").startswith(
        "error: bad.csv:3: rows: more rows than the 2 columns: not a square"
    )
    (tmp_path / "bad.csv").write_text("0,1\n5,nan\n")
    assert error_of("bad.csv").startswith("error: bad.csv:2: column 2: `nan`: not a finite number")
    (tmp_path / "bad.csv").write_text("0 1\n5\n")
    assert error_of("bad.csv").startswith("error: bad.csv:2: columns: 1 numbers, but the first line has 2")
    (tmp_path / "bad.csv").write_text("0 1\n5,0 0\n")
    assert error_of("bad.csv").startswith("error: bad.csv:2: column 1: `5,0`: not a number")
    (tmp_path / "bad.csv").write_text("0\t1\n\t0\n")
    assert error_of("bad.csv").startswith("error: bad.csv:2: column 1: ``: not a number")
