"""Checks of the lab: dilations of a machine, table 1 of Etalon, and programs in virtual time."""

import csv
import io
import json
import math
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward import lab, packets
from leeward.errors import InputError
from leeward.lab.checks import network, programs
from leeward.lab.checks.values import about, at_least, at_most, check_of
from support.parts import lack, require, require_root

Run = Callable[..., subprocess.CompletedProcess[str]]
TIMING = {
    "dilation": 40,
    "days_s": [180.5e-6, 179.5e-6],
    "weeks_s": [1400e-6, 1405e-6],
    "lost_packets": 3,
}


@given(st.floats(1, 1e6), st.floats(-0.2, 0.2), st.floats(0.1, 10))
def test_a_value_is_accepted_if_its_deviation_is_within_the_share(
    value: float, deviation: float, percent: float
) -> None:
    if abs(100 * abs(deviation) - percent) > 1e-6:
        assert about(value, percent).holds(value * (1 + deviation)) == (100 * abs(deviation) < percent)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False, allow_infinity=False))
def test_a_check_holds_if_the_value_is_measured_and_within_its_bound(value: float, bound: float) -> None:
    check = check_of("switch", "rate", "Gb/s", 1, value, at_least(bound, "bound"))
    assert check.holds == (value >= bound if math.isfinite(value) else None)
    check = check_of("switch", "rate", "Gb/s", 1, value, at_most(bound, "bound"))
    assert check.holds == (value <= bound if math.isfinite(value) else None)
    assert check_of("switch", "rate", "Gb/s", 1, math.nan, at_most(bound, "bound")).measured is None


def test_table_1_has_times_rates_and_losses_with_their_bounds() -> None:
    rows = {row.quantity: row for row in network.table_1(40, TIMING, 9.9, 70.0, [TIMING, TIMING])}
    measured = {name: (row.unit, row.measured, row.holds) for name, row in rows.items()}
    assert measured == {
        "day of a circuit: mean": ("us", pytest.approx(180), True),
        "day of a circuit: standard deviation": ("us", pytest.approx(0.5), True),
        "week: mean": ("us", pytest.approx(1402.5), False),
        "week: standard deviation": ("us", pytest.approx(2.5), False),
        "rate of the packet path": ("Gb/s", 9.9, True),
        "rate of a circuit": ("Gb/s", 70.0, False),
        "packets lost outside the switch": ("packets", 6, False),
    }


def test_table_1_without_a_run_has_no_values() -> None:
    rows = network.table_1(40, None, None, None, [])
    assert len(rows) == 7
    assert all(row.measured is None and row.holds is None for row in rows)


def test_the_simulator_has_the_rates_of_table_1() -> None:
    path = network.path_gbps(packets.simulate(network.path_scenario("20ms")))
    assert about(network.PACKET_GBPS, 2).holds(path)
    circuit = network.circuit_gbps(packets.simulate(network.circuit_scenario("20ms")))
    assert circuit is not None
    assert about(network.CIRCUIT_GBPS, 2).holds(circuit)
    assert network.circuit_gbps(packets.simulate(network.path_scenario("1ms"))) is None


def test_invalid_dilations_are_named() -> None:
    with pytest.raises(InputError, match="dilations: none"):
        lab.climb("all", dilations=[])
    with pytest.raises(InputError, match="dilation: 0: must be 1 to"):
        lab.climb("pair", dilations=[20, 0])
    with pytest.raises(InputError, match="bound"):
        lab.climb("pair", bound="soon")


def test_the_smallest_dilation_that_keeps_up_is_the_last_trial() -> None:
    require_root()
    done: list[float] = []
    # Other tests delay packets on this machine, so the bound accepts every lateness.
    trials = lab.climb("all", 3, 1, bound="1s", dilations=[400, 200], progress=done.append)
    assert [(trial.senders, trial.dilation, trial.kept_up) for trial in trials] == [("all", 200, True)]
    assert trials[0].day_s == pytest.approx(180e-6, rel=0.2)
    assert trials[0].rate_bps > 0
    assert done == [0.5]
    late = lab.climb("all", 3, 1, bound="1ns", dilations=[200])
    assert [trial.kept_up for trial in late] == [False]


def test_programs_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    rows = lab.check_programs()
    assert len(rows) == 5
    assert {(row.measured, row.holds, row.note) for row in rows} == {(None, None, "not installed")}


@pytest.fixture
def clean() -> Iterator[None]:
    """Requires root and virtual time, and checks that a test leaves no lab behind."""
    require_root()
    require("ping", package="iputils-ping")
    if not os.path.exists(f"{lab.kernel_parts.folder()}/libleeward_vt.so"):
        lack("libleeward_vt.so: make -C kernel")
    yield
    assert not [each for each in lab.labs() if each.name == f"check-{os.getpid()}"]


def test_a_program_reads_the_latency_of_the_virtual_network(
    clean: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: which(name) if name == "ping" else None)
    rows = {row.quantity: row for row in lab.check_programs()}
    ping = rows.pop("ping: round trip")
    assert ping.expected == pytest.approx(4011, abs=1)
    # In real time the round trip takes ten times as long. Other load on the machine delays packets.
    assert ping.measured == pytest.approx(ping.expected, rel=0.5)
    assert {row.note for row in rows.values()} == {"not installed"}


def test_a_program_that_fails_is_a_row_with_its_error(clean: None, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = programs._Probe(("sh",), "sh", "us", 1.0, lambda circuits, _: _fail(circuits))
    monkeypatch.setattr(programs, "_PROBES", (broken,))
    rows = lab.check_programs()
    assert [(row.measured, row.holds, row.note) for row in rows] == [(None, None, "sh: no luck")]


def _fail(circuits: lab.StandingLab) -> float:
    return float(programs._output(circuits, ["sh", "-c", "echo started; echo no luck >&2; exit 3"]))


def test_programs_use_the_congestion_control_of_the_scenario(clean: None) -> None:
    scenario: dict[str, Any] = {
        "network": {"racks": 2, "hosts_per_rack": 1},
        "tcp": {"control": "cubic"},
        "workload": {"long": {"from": 0, "to": 1, "flows": 1}},
        "horizon": "1ms",
    }
    code = (
        "import socket, sys\n"
        "listener = socket.create_server(('', 5001)); print('listens', flush=True)\n"
        "end, _ = listener.accept()\n"
        "print(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).strip(b'\\0').decode())"
    )
    client = "import socket, sys\nsocket.create_connection((sys.argv[1], 5001), timeout=60).recv(1)"
    with lab.stand_up(scenario, name=f"check-{os.getpid()}", dilation=40) as circuits:
        server = circuits.start("r1h0", ["python3", "-c", code], stdout=subprocess.PIPE)
        assert server.stdout is not None
        assert server.stdout.readline() == "listens\n"
        circuits.run("r0h0", ["python3", "-c", client, circuits.machine("r1h0").address])
        assert server.communicate(timeout=60)[0] == "cubic\n"


def _result(kept_up: bool) -> lab.LabCheck:
    late = 1e-6 if kept_up else math.inf
    trials = [
        lab.Trial("pair", 20, math.nan, math.nan, math.inf, 0, 0.0, False),
        lab.Trial("pair", 40, 180e-6, 1e-6, late, 0, 5e8, kept_up),
        lab.Trial("all", 120, 180e-6, 1e-6, late, 0, 1.3e9, kept_up),
    ]
    rows = network.table_1(40, TIMING, 9.9, 79.9, [TIMING])
    rows.append(check_of("switch", "real packets", "Gb/s of real time", 10, 3.4, at_least(3, "3 Gb/s")))
    rows.append(
        check_of("programs", "ping", "us", 10, None, about(10, 3), expected=10.0, note="not installed")
    )
    return lab.LabCheck(trials, rows)


def test_the_command_ends_with_the_dilations_to_use(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def check(racks: int, hosts_per_rack: int, **options: Any) -> lab.LabCheck:
        given.update(options, racks=racks, hosts_per_rack=hosts_per_rack)
        return _result(kept_up=True)

    monkeypatch.setattr(lab, "check", check)
    command = ("lab", "check", "--racks", "3", "--hosts-per-rack", "4", "--dilations", "20,40")
    result = run(*command, COLUMNS="200")
    assert (result.returncode, result.stderr) == (0, "")
    assert (given["racks"], given["hosts_per_rack"], given["dilations"]) == (3, 4, [20, 40])
    assert result.stdout.splitlines()[-2:] == [
        "Use a dilation of 40 for one pair of racks that sends: it carried 500 Mbps of real packets.",
        "Use a dilation of 120 for 3 racks that all send: it carried 1.3 Gbps of real packets.",
    ]
    assert "not installed" in result.stdout
    document = json.loads(run(*command, "-o", "json").stdout)
    assert document["dilations"] == {"pair": 40, "all": 120}
    assert [trial["kept_up"] for trial in document["trials"]] == [False, True, True]
    assert document["trials"][0]["day_s"] is None
    rows = list(csv.DictReader(io.StringIO(run(*command, "-o", "csv").stdout)))
    assert len(rows) == 2 * 3 + len(document["checks"])
    assert rows[-1]["note"] == "not installed"
    monkeypatch.setattr(lab, "check", lambda *_, **__: _result(kept_up=False))
    text = run("lab", "check", COLUMNS="200").stdout
    assert "No dilation up to 40 carries one pair of racks that sends" in text
    assert json.loads(run("lab", "check", "-o", "json").stdout)["dilations"] == {"pair": None, "all": None}


@pytest.mark.parametrize(("given_text", "problem"), [("0", "`0`"), ("20,x", "`x`"), ("", "expected")])
def test_invalid_options_are_one_line(run: Run, given_text: str, problem: str) -> None:
    result = run("lab", "check", "--dilations", given_text)
    assert result.returncode == 2
    assert "--dilations" in result.stderr
    assert problem in result.stderr
