"""The lab: a scenario on kernels of this machine, through the command and the library."""

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leeward import lab, packets
from leeward.errors import InputError
from support.fixtures import LEEWARD
from support.labs import BOUND, DILATION, kept_up, nothing_left, scenario
from support.parts import require_root

Run = Callable[..., subprocess.CompletedProcess[str]]


def namespaces() -> set[str]:
    """Namespaces of runs on this machine."""
    names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in names.splitlines() if line.startswith("leeward-run-")}


@pytest.fixture
def clean() -> Iterator[None]:
    """Requires root, and checks that a test leaves nothing behind."""
    with nothing_left():
        yield


def test_flows_on_kernels_deliver_all_bytes_over_circuits(clean: None) -> None:
    result = kept_up(lambda: lab.run(scenario(), dilation=DILATION, bound=BOUND))
    totals = result.run.totals()
    assert totals["finished"] == totals["flows"] == 1
    flow = result.run.flows().to_pylist()[0]
    assert flow["delivered_bytes"] == flow["written_bytes"] == 8_000_000
    assert totals["circuit_bytes"] > 0
    assert totals["packet_bytes"] > 0
    # Whatever hosts sent was delivered, dropped by the switch, or is in it.
    carried = ("packet_bytes", "circuit_bytes", "local_bytes", "dropped_bytes", "held_bytes")
    assert totals["sent_bytes"] == sum(totals[name] for name in carried)
    assert result.timing["refused_packets"] == result.timing["nic_drops_packets"] == 0
    bins = result.timing["packets"]["bins"]
    assert sum(bins["count"]) == result.timing["packets"]["count"] > 0
    assert bins["time_s"] == sorted(set(bins["time_s"]))
    assert bins["time_s"][-1] == result.timing["packets"]["max_s"]
    days = result.timing["days_s"]
    assert days
    assert statistics.median(days) == pytest.approx(180e-6, rel=0.2)
    # Two days with their nights are a week.
    weeks = result.timing["weeks_s"]
    assert len(days) / 6 - 1 <= len(weeks) + 1 <= len(days) / 6 + 2
    assert statistics.median(weeks) == pytest.approx(400e-6, rel=0.1)


def test_demand_of_applications_gives_circuits_to_the_pairs_that_send(clean: None) -> None:
    weekly = scenario(scheduler={"name": "solstice", "demand": "adu"})
    result = kept_up(lambda: lab.run(weekly, dilation=DILATION, bound=BOUND))
    assert result.run.totals()["finished"] == 1
    pairs = {(day["source"], day["destination"]) for day in result.run.days().to_pylist() if day["bytes"]}
    assert (0, 1) in pairs
    assert result.timing["schedules"]["count"] > 0


def test_a_block_of_a_file_crosses_a_chain_of_hosts(clean: None) -> None:
    files = {"mappers": 1, "bytes": "2MB", "block": "1MB", "replication": 2, "copies": "uniform"}
    wanted = scenario(workload={"dfsio": files}, horizon="100ms")
    result = kept_up(lambda: lab.run(wanted, dilation=100, bound=BOUND))
    copies = result.run.copies().to_pylist()
    assert len(copies) == 2
    assert all(copy["finished_s"] is not None for copy in copies)


def test_an_exception_of_a_scheduler_stops_the_lab_and_is_raised(clean: None) -> None:
    def broken(demand: Any, network: Any) -> Any:
        raise KeyError("no idea")

    with pytest.raises(KeyError, match="no idea"):
        lab.run(
            scenario(scheduler={"name": broken, "demand": "adu"}),
            dilation=DILATION,
            bound=BOUND,
        )


def test_frames_leave_their_hosts_while_a_slow_scheduler_computes(clean: None) -> None:
    def slow(demand: Any, network: Any) -> list[tuple[float, list[tuple[int, int]]]]:
        # A quarter of a week, in real time.
        time.sleep(0.01)
        return [(180e-6, [(0, 1), (1, 0)])]

    busy = scenario(
        scheduler={"name": slow, "demand": "adu"},
        workload={"long": {"from": 0, "to": 1, "flows": 4}},
        network={"racks": 3, "hosts_per_rack": 4},
        horizon="20ms",
    )
    result = lab.run(busy, dilation=DILATION, bound="1s")
    assert result.timing["schedules"]["count"] > 10
    assert result.run.totals()["circuit_bytes"] > 0


def test_a_late_run_is_rejected(clean: None) -> None:
    with pytest.raises(OSError, match=r"fell behind.*larger dilation than 10,"):
        lab.run(scenario(), dilation=10, bound="1ns")


def test_a_run_that_falls_behind_is_rejected_before_its_end(clean: None) -> None:
    begin = time.monotonic()
    late = scenario(workload={"long": {"from": 0, "to": 1, "flows": 1}}, horizon="10s")
    with pytest.raises(OSError, match=r"fell behind: in the first [0-9]+ % of 10s"):
        lab.run(late, dilation=10, bound="1ns")
    assert time.monotonic() - begin < 50, "the whole run takes 100 s"


def test_a_stopped_run_removes_everything(clean: None) -> None:
    seen = threading.Event()

    def stop(share: float) -> None:
        seen.set()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lab.run(scenario(horizon="10s"), dilation=DILATION, bound=BOUND, progress=stop)
    assert seen.is_set()


def test_what_kernels_cannot_run_is_named(clean: None) -> None:
    with pytest.raises(InputError, match="trains: the lab runs flows"):
        lab.run(scenario(trains=[{"from": [0, 0], "to": [1, 0]}]), dilation=DILATION)
    with pytest.raises(InputError, match="dilation: 0: must be 1 to"):
        lab.run(scenario(), dilation=0)


def test_a_killed_lab_is_removed_by_down(clean: None, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "long.json"
    file.write_text(json.dumps(scenario(workload={"long": {"from": 0, "to": 1, "flows": 1}}, horizon="10s")))
    command = [str(LEEWARD), "lab", "run", str(file), "--dilation", str(DILATION)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        name = f"run-{process.pid}-0"
        try:
            for _ in range(1200):
                if len({each for each in namespaces() if each.startswith(f"leeward-{name}-")}) == 2:
                    break
                threading.Event().wait(0.05)
            result = run("lab", "down", "--name", name)
            assert result.returncode == 1
            assert f"lab `{name}` is up" in result.stderr
        finally:
            process.kill()
            process.wait()
    result = run("lab", "down", "--name", name)
    assert (result.returncode, f"removed lab {name}" in result.stderr) == (0, True)
    assert not {each for each in namespaces() if each.startswith(f"leeward-{name}-")}
    result = run("lab", "down", "--name", name)
    assert (result.returncode, f"lab `{name}`: not up" in result.stderr) == (1, True)


def test_a_comparison_has_the_simulator_beside_the_lab(clean: None, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(scenario()))
    options = ("--dilation", str(DILATION), "--bound", BOUND, "-o", "json")
    result = run("lab", "compare", str(file), *options)
    assert result.returncode == 0, result.stderr
    rows = {row["figure"]: row for row in json.loads(result.stdout)["figures"]}
    assert rows["class 0 finished"]["simulator"] == rows["class 0 finished"]["lab"] == 1
    # The same queues and circuits, and a TCP of the same kind.
    completion = rows["class 0 completion median"]
    assert 0.3 < completion["lab"] / completion["simulator"] < 5


@pytest.mark.whole
@pytest.mark.parametrize(("queue", "tau"), [(16, None), (32, None), (16, "600us"), (16, "1000us")])
def test_kernels_fill_circuits_that_come_and_go_as_the_simulator_does(
    clean: None, queue: int, tau: str | None
) -> None:
    # A week of 1.4 ms has one circuit of 180 us: rates and round trips of all flows change twice in a week.
    # Kernels since Linux 6.17 detect losses by time alone.
    flipping = {
        "network": {"voq_capacity": queue},
        "scheduler": {"name": "strobe"},
        "workload": {"long": {"from": 0, "to": 1}},
        "tcp": {"rack": "always"},
        "horizon": "200ms",
    }
    if tau is not None:
        flipping["resize"] = {"small": queue, "big": 128, "tau": tau}
    simulated = packets.simulate(flipping)
    measured = kept_up(lambda: lab.run(flipping, dilation=60)).run
    used = [100 * (run.utilization(0, 1) or 0.0) for run in (simulated, measured)]
    assert used[1] == pytest.approx(used[0], abs=8)
    medians = [run.latency("all", 0.5) for run in (simulated, measured)]
    assert medians[1] == pytest.approx(medians[0], rel=0.2)


def test_without_root_the_error_says_so() -> None:
    require_root()
    code = (
        "import os; from leeward import lab, packets;"
        "scenario = packets.read({'workload': {'long': {'from': 0, 'to': 1}}, 'horizon': '1ms'});"
        "os.setuid(65534); lab.run(scenario)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert "require root" in result.stderr


def test_a_simulated_run_compares_with_itself_without_difference() -> None:
    run = packets.simulate(scenario())
    rows = lab.compare(run, run)
    assert rows
    assert all(row.difference in {0, None} for row in rows)
