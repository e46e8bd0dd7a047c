"""`leeward tenant run`: an app runs as placed, and the command compares it with the forecast."""

import json
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from leeward import InputError, tenant
from leeward.cli.tenant.run import _print
from leeward.tenant import network, runs
from leeward.tenant.fleet import Fleet
from leeward.tenant.network import survey_s
from leeward.tenant.profile import matrix_of
from support.fixtures import LEEWARD
from support.tenant import APP, app_file, here
from test_capture_exports import sflow

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_an_app_runs_under_several_policies(tmp_path: Path) -> None:
    result = tenant.run(app_file(tmp_path), here("", ""), policies=["choreo", "random"], port=0)
    assert not result["network"]["measured"]
    assert [one["policy"] for one in result["runs"]] == ["choreo", "random"]
    for one in result["runs"]:
        (transfer,) = one["transfers"]
        assert {transfer["from_host"], transfer["to_host"]} == {"h0", "h1"}
        assert (transfer["bytes"], transfer["pieces"]) == (3_000_000, 1)
        assert 0 < transfer["ended_s"] <= one["wall_s"]


def test_phases_and_costs_are_reported(tmp_path: Path) -> None:
    text = (
        "tasks: [{name: a, cpus: 1}, {name: b, cpus: 1}]\ngoal: cost\n"
        "phases: [{transfers: [{from: a, to: b, bytes: 1MB}]}, {transfers: [{from: b, to: a, bytes: 2MB}]}]\n"
    )
    hosts = [
        replace(host, cpus="2", cost=cost) for host, cost in zip(here("", ""), ("2", "0.5"), strict=True)
    ]
    result = tenant.run(app_file(tmp_path, text), hosts, port=0, again="60s")
    (one,) = result["runs"]
    assert one["cost"] == 0.5
    assert {task["host"] for task in one["tasks"]} == {"h1"}
    first, second = one["transfers"]
    assert (first["phase"], second["phase"], second["bytes"]) == (0, 1, 2_000_000)
    assert 0 < first["ended_s"] <= second["ended_s"] <= one["wall_s"]
    assert [look["reason"] for look in one["looks"]] == ["phase 1 begins"]


def test_a_bound_that_no_hosts_meet_is_named_before_any_host_works(tmp_path: Path) -> None:
    path = app_file(tmp_path, APP + "latency: [{from: a, to: b, max: 1ms}]\n")
    cluster: dict[str, Any] = {"shape": "hose", "nic": "1Gbps", "hosts": [{"name": "h0"}, {"name": "h1"}]}
    cluster["rtt"] = {"network": "2ms"}
    settings: dict[str, Any] = {"policies": "choreo", "port": 0}
    with pytest.raises(InputError, match=r"app\.yaml: .*task b .*; too far from task a, under choreo$"):
        tenant.run(path, here("false", "false"), cluster=cluster, **settings)
    with pytest.raises(InputError, match="measure: `never`: bounds on round-trip times need a measurement"):
        tenant.run(path, here("false", "false"), measure="never", **settings)
    cluster["rtt"] = {"network": "1ms"}
    result = tenant.run(path, here("", ""), cluster=cluster, **settings)
    assert result["runs"][0]["wall_s"] > 0


def test_commands_get_the_addresses_of_the_others(tmp_path: Path) -> None:
    text = "tasks: [{name: a, count: 2, cpus: 1, command: 'echo $LEEWARD_TASK of $LEEWARD_PEERS'}]\n"
    lines: list[tuple[str, str]] = []
    result = tenant.run(
        app_file(tmp_path, text), here("", ""), port=0, on_output=lambda *line: lines.append(line)
    )
    peers = "a0=127.0.0.1,a1=127.0.0.1"
    assert sorted(lines) == [("a0", f"a0 of {peers}"), ("a1", f"a1 of {peers}")]
    assert result["runs"][0]["wall_s"] > 0


def frame(source: str, target: str) -> bytes:
    """First bytes of a frame with an IP packet of 1,500 bytes."""
    header = struct.pack(">BBHHHBBH", 69, 0, 1500, 0, 0, 64, 6, 0)
    ends = IPv4Address(source).packed + IPv4Address(target).packed
    return bytes(12) + b"\x08\x00" + header + ends + bytes(94)


def test_sflow_datagrams_become_the_matrix_of_tasks() -> None:
    hosts = {host.name: host for host in tenant.listed(["x=192.0.2.1", "y=192.0.2.2", "z=192.0.2.3"])}
    one = sflow([(1, 2, frame("192.0.2.1", "192.0.2.2"), 1514)] * 2)
    other = sflow(
        [(1, 2, frame("192.0.2.3", "192.0.2.1"), 1514), (1, 2, frame("8.8.8.8", "192.0.2.1"), 1514)]
    )
    datagrams = [(1e9, "192.0.2.9", one), (1e9 + 90_000, "192.0.2.9", other)]
    rows = matrix_of(datagrams, ["a", "b", "c"], {"a": "x", "b": "y", "c": "z"}, hosts)
    # Each sample stands for 100 packets.
    assert rows == [[0, 302_800, 0], [0, 0, 0], [151_400, 0, 0]]
    with pytest.raises(InputError, match="no traffic between the hosts in 1 sFlow datagrams"):
        matrix_of(datagrams[1:], ["a", "b"], {"a": "y", "b": "z"}, hosts)


def test_an_app_of_commands_is_profiled_before_it_is_placed(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # In place of an agent, the command itself reports its traffic.
    datagram = sflow([(1, 2, frame("127.0.0.2", "127.0.0.3"), 1514)])
    (tmp_path / "datagram").write_bytes(datagram)
    (tmp_path / "send.py").write_text(
        f"import pathlib, socket\ndata = pathlib.Path('{tmp_path}/datagram').read_bytes()\n"
        f"socket.socket(type=socket.SOCK_DGRAM).sendto(data, ('127.0.0.1', {port}))\n"
    )
    text = (
        f"tasks:\n  - {{name: a, cpus: 1, command: '{sys.executable} {tmp_path}/send.py'}}\n"
        "  - {name: b, cpus: 1, command: 'true'}\n"
    )
    hosts = tenant.listed(["h0=127.0.0.2", "h1=127.0.0.3"], "", str(LEEWARD), cpus="1")
    result = tenant.run(app_file(tmp_path, text), hosts, port=0, profile=f"sflow:{port}")
    assert result["matrix"] == [[0, 151_400], [0, 0]]
    assert result["runs"][0]["forecast_s"] > 0
    with pytest.raises(InputError, match="profile_for: it is the time of `profile`; give both"):
        tenant.run(app_file(tmp_path, text), hosts, port=0, profile_for="1s")
    with pytest.raises(InputError, match="profile: expected tasks with commands"):
        tenant.run(app_file(tmp_path), hosts, port=0, profile="sflow:6343")
    with pytest.raises(InputError, match="profile: `pcap:eth0`: expected capture, or sflow:PORT"):
        tenant.run(app_file(tmp_path, text), hosts, port=0, profile="pcap:eth0")


def test_tasks_without_commands_beside_commands_are_an_error(tmp_path: Path) -> None:
    text = "tasks: [{name: a, command: 'true'}, {name: b}]\n"
    with pytest.raises(InputError, match="task `b` has no command"):
        tenant.run(app_file(tmp_path, text), here("", ""), port=0)


def test_a_task_that_fits_on_no_host_is_named_before_any_host_works(tmp_path: Path) -> None:
    path = app_file(tmp_path, APP.replace("cpus: 1", "cpus: 2"))
    with pytest.raises(InputError, match=r"app\.yaml: .*fits nowhere.*, under choreo$"):
        tenant.run(path, here("false", "false"), policies="choreo", port=0)


def test_the_command_prints_the_comparison(run: Run, tmp_path: Path) -> None:
    hosts = ("--hosts", "x=127.0.0.1,y=127.0.0.1", "--run", "", "--host-cpus", "1", "--data-port", "0")
    arguments = ("tenant", "run", str(app_file(tmp_path)), *hosts, "--policy", "choreo,random")
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    assert "did not measure the network: " in result.stdout
    assert "SAVED BY CHOREO" in result.stdout
    document = json.loads(run(*arguments, "-o", "json").stdout)
    assert [one["policy"] for one in document["runs"]] == ["choreo", "random"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "--hosts, --hosts-file, --lab: expected exactly one of them"),
        (("--hosts", "a=b,c=d", "--lab", "x"), "expected exactly one of them"),
        (("--lab", "no-such-lab"), "--lab: lab `no-such-lab`: not up"),
        (("--hosts-file", "x", "--host-cpus", "1"), "--host-cpus: only valid with --hosts or --lab"),
        (("--hosts", "a=b,c=d", "--policy", "no"), "--policy"),
        (("--hosts", "a=b,c=d", "--assume", "fast"), "--assume"),
        (("--hosts", "a=b,c=d", "--state", "much"), "--state"),
        (("--hosts", "a=b,c=d", "--again", "often"), "--again"),
        (("--hosts", "a=b,c=d", "--again", "0s"), "--again"),
        (("--hosts", "a=b,c=d", "--bottlenecks"), "--bottlenecks: 2 hosts"),
        (("--hosts", "a=b,c=d", "--out", "no/such/folder/x"), "--out"),
        (("--hosts", "a=b,c=d", "--out", "x", "--cluster", "y"), "--out: the cluster file has the rates"),
    ],
)
def test_invalid_arguments_are_named(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    result = run("tenant", "run", str(app_file(tmp_path)), *arguments)
    assert result.returncode == 2, result
    assert expected in result.stderr


def test_no_task_starts_on_a_host_of_the_cluster_file_that_is_not_the_tenants(tmp_path: Path) -> None:
    hosts = [{"name": name, "nic": nic} for name, nic in (("h0", "1Gbps"), ("h1", "1Gbps"), ("big", "9Gbps"))]
    cluster: dict[str, Any] = {"shape": "hose", "hosts": hosts}
    text = (
        "tasks: [{name: a}, {name: b}]\napart: [{tasks: [a, b]}]\nphases:\n"
        "  - transfers: [{from: a, to: b, bytes: 1MB}]\n  - transfers: [{from: b, to: a, bytes: 1MB}]\n"
    )
    policies = ["choreo", "leeward", "random", "round-robin", "choreo-exact"]
    own = [replace(host, cpus=None) for host in here("", "")]
    result = tenant.run(
        app_file(tmp_path, text), own, cluster=cluster, policies=policies, again="60s", port=0
    )
    for one in result["runs"]:
        assert {task["host"] for task in one["tasks"]} == {"h0", "h1"}, one["policy"]
        assert [look["reason"] for look in one["looks"]] == ["phase 1 begins"]


SPREAD = (
    "tasks: [{name: sink, cpus: 1}, {name: a, count: 4, cpus: 1}]\n"
    "transfers: [{from: a, to: sink, bytes: 3MB}]\n"
)
"""Only the sink may be on the one host of five that is slow."""


def test_a_measurement_is_judged_by_the_policy_that_gains_most(tmp_path: Path) -> None:
    def gain(*policies: str) -> dict[str, Any]:
        hosts = here("", "", "", "", "")
        result = tenant.run(app_file(tmp_path, SPREAD), hosts, policies=policies, measure="never", port=0)
        found: dict[str, Any] = result["network"]["gain"]
        return found

    alone = [gain("round-robin"), gain("leeward")]
    ends = [one["completion_s"] for one in alone]
    assert ends[0] > ends[1]
    for policies in (("round-robin", "leeward"), ("leeward", "round-robin")):
        assert gain(*policies) == alone[1]
    assert alone[1]["policy"] == "leeward"


def test_a_search_for_bottlenecks_needs_three_hosts_and_counts_in_what_a_measurement_takes(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match=r"^bottlenecks: 2 hosts: expected at least 3"):
        tenant.run(app_file(tmp_path), here("false", "false"), bottlenecks=True)
    assert survey_s(10) == 18
    assert survey_s(10, alone=True) == 90
    # 40 pairs, and the first path of each alone.
    assert survey_s(10, alone=True, bottlenecks=True) == 90 + 80 * 3.5
    # Each host has one pair of paths.
    assert survey_s(3, alone=True, bottlenecks=True) == 6 + 6 * 3.5


def test_trains_run_alone_once_a_shared_link_is_found_and_the_measurement_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    surveys: list[dict[str, Any]] = []
    hosts = here("", "", "")
    shared = [{"name": "out-of-h0", "rate": "1Gbps", "out_of": ["h0", "h1"]}]

    def measure(fleet: Fleet, secret: str | None, **arguments: Any) -> tenant.Survey:
        surveys.append(arguments)
        cluster = network.assumed(hosts)
        if arguments.get("bottlenecks"):
            cluster["shared_links"] = shared
        return tenant.Survey(cluster, "inside", 1.0, 5)

    monkeypatch.setattr(network, "measure", measure)
    monkeypatch.setattr(network, "start_listeners", lambda fleet: "secret")
    out = tmp_path / "measured.yaml"
    path = app_file(tmp_path)
    result = tenant.run(path, hosts, measure="always", bottlenecks=True, out=out, port=0)
    assert result["network"]["shared_links"] == shared
    assert (surveys[0]["bottlenecks"], surveys[0]["at_once"]) == (True, 1)
    again = tenant.run(path, hosts, cluster=out, port=0)
    assert again["runs"][0]["forecast_s"] == result["runs"][0]["forecast_s"]
    with Fleet(hosts, port=0) as fleet:
        surveyor = runs._Surveyor(fleet, None, None, 1)
        assert surveyor.measure().cluster.get("shared_links") is None
        assert "at_once" not in surveys[-1]
        surveyor.measure(bottlenecks=True)
        assert surveyor.measure().cluster["shared_links"] == shared
        assert surveys[-1]["at_once"] == 1
        assert surveyor.expected_s() == survey_s(3, alone=True)


def test_shared_links_and_costs_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    shared = {"name": "out-of-h0", "rate": "66955520bps", "out_of": ["h0", "h1"]}
    one = {"policy": "choreo", "forecast_s": 2.0, "wall_s": 2.2, "cost": 1.5, "looks": []}
    one |= {"tasks": [{"task": "a", "host": "h0"}], "transfers": []}
    network = {"measured": True, "kind": "inside", "seconds": 4.0, "bytes": 10, "shared_links": [shared]}
    _print({"network": network, "runs": [one]})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["out-of-h0", "66.96", "Mbps", "h0,", "h1"] in lines
    assert lines[-2:] == [
        ["POLICY", "FORECAST", "TOOK", "OFF", "BY", "COST", "PER", "HOUR", "SAVED", "BY", "CHOREO"],
        ["choreo", "2", "s", "2.2", "s", "10", "%", "1.5"],
    ]
