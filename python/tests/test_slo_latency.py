"""SLO files with latencies of links and devices: bounds, admission, packing and replays."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
RACKS = """
racks: 2
hosts_per_rack: 2
nic: 1Gbps
rack_link: 1Gbps
priorities: 8
devices: [{name: ssd, read: 500MB/s, write: 500MB/s}]
"""
LINK = 125e6
"""Bytes per second of each link."""
FLUID = "margin: 0%\nbounds: {unit: fluid}\n"


def write(folder: Path, workloads: list[str], head: str = FLUID, name: str = "w.yaml") -> list[str]:
    """Arguments for a file of workloads on two racks."""
    (folder / "cluster.yaml").write_text(RACKS)
    (folder / name).write_text(head + "workloads:\n" + "".join(f"  - {{{one}}}\n" for one in workloads))
    return [str(folder / name), "--cluster", str(folder / "cluster.yaml")]


def workload(name: str = "a", latency: str = "1s", server: str | None = "r1h1", more: str = "") -> str:
    """A workload that sends 200 kB at once, and then 1 MB/s, over four links."""
    place = f"server: {server}, " if server else ""
    curve = "curves: {network-in: [{rate: 1MB/s, burst: 200kB}]}"
    return f"name: {name}, client: r0h0, {place}slo: {{percentile: 99, latency: {latency}}}, {curve}{more}"


def bound(run: Run, *arguments: str) -> dict[str, Any]:
    """The JSON of `leeward slo bound`."""
    record: dict[str, Any] = json.loads(run("slo", "bound", *arguments, "-o", "json").stdout)
    return record


@pytest.mark.parametrize("method", ["dnc", "plp", "priority-meister"])
def test_latencies_of_a_path_add_up_and_the_burst_counts_once(run: Run, tmp_path: Path, method: str) -> None:
    seconds = 200e3 / LINK
    for latency, added in (
        ("", 0.0),
        ("latency: {links: 5us}\n", 20e-6),
        ("latency: {links: 5us, devices: 1s, queues: {'r0:uplink': 50us}}\n", 65e-6),
    ):
        record = bound(run, *write(tmp_path, [workload()], FLUID + latency), "--method", method)
        assert record["workloads"][0]["bound_s"] == pytest.approx(seconds + added, rel=2e-6)
    latencies = {queue["queue"]: queue["latency_s"] for queue in record["queues"]}
    assert latencies == {
        "r0h0:egress": 5e-6,
        "r0:uplink": 50e-6,
        "r1:downlink": 5e-6,
        "r1h1:ingress": 5e-6,
    }


def test_a_lower_priority_makes_up_for_the_latency_at_what_is_left(run: Run, tmp_path: Path) -> None:
    curve = "stages: [storage], unloaded: 0s, curves: {storage: [{rate: 50%, burst: 10ms}]}"
    workloads = [
        f"name: {name}, client: r0h0, server: r1h1, slo: {{percentile: 99, latency: {latency}}}, {curve}"
        for name, latency in (("first", "100ms"), ("second", "200ms"))
    ]
    head = FLUID + "latency: {devices: 4ms}\n"
    first, second = bound(run, *write(tmp_path, workloads, head), "--method", "dnc")["workloads"]
    assert first["bound_s"] == pytest.approx(0.004 + 0.010)
    assert second["bound_s"] == pytest.approx((0.004 + 0.020) / 0.5)
    result = run("slo", "prioritize", *write(tmp_path, workloads, head), "--method", "dnc", "-o", "json")
    bounds = [one["bound_s"] for one in json.loads(result.stdout)["workloads"]]
    assert sorted(bounds) == pytest.approx([0.014, 0.048])


def test_results_name_the_latency_and_a_missed_slo_because_of_it(run: Run, tmp_path: Path) -> None:
    for head, code in (("", 0), ("latency: {links: 1ms}\n", 1)):
        result = run("slo", "bound", *write(tmp_path, [workload(latency="5ms")], FLUID + head))
        assert result.returncode == code
    assert "latency: 4 of 4 queues have one, at most 1 ms" in result.stderr
    assert "error: a: a bound of 5.6 ms, above its SLO of 5 ms" in result.stderr


def test_admission_counts_latencies_of_the_existing_file(run: Run, tmp_path: Path) -> None:
    new = write(tmp_path, [workload("b", "5ms")], "margin: 0%\n", "new.yaml")[0]
    for method in ("dnc", "plp", "priority-meister"):
        policy = "dnc" if method == "dnc" else f"dnc:method={method}"
        for latency, admitted in (("10us", True), ("1ms", False)):
            there = write(tmp_path, [workload()], f"{FLUID}latency: {{links: {latency}}}\n")
            options = ("--arriving", new, "--method", policy, "-o", "json")
            record = json.loads(run("slo", "admit", *there, *options).stdout)
            assert record["arrivals"][0]["admitted"] == admitted
            assert {queue["latency_s"] for queue in record["queues"]} == {1e-5 if admitted else 1e-3}
    for policy in ("silo++", "qjump++"):
        result = run("slo", "admit", *there, "--arriving", new, "--method", policy, "-o", "json")
        decided = json.loads(result.stdout)
        assert [decided["residents"][0]["admitted"], decided["arrivals"][0]["admitted"]] == [True, False]
    other = write(tmp_path, [workload("b")], "latency: {links: 2us}\n", "new.yaml")[0]
    result = run("slo", "admit", *there, "--arriving", other)
    assert result.returncode == 2
    assert "new.yaml: latency: differs from the value in " in result.stderr


def test_packing_avoids_a_server_behind_a_slow_link(run: Run, tmp_path: Path) -> None:
    volume = workload(latency="7500us", server=None).replace("r0h0", "r1h1")
    chosen = []
    for head in ("", "latency: {links: 5us, queues: {'r0h0:ingress': 6ms}}\n"):
        result = run("slo", "pack", *write(tmp_path, [volume], FLUID + head), "-o", "json")
        assert (result.returncode, result.stderr) == (0, "")
        packed = json.loads(result.stdout)["workloads"][0]
        chosen.append(packed["server"])
        there = volume.replace("client", f"server: '{packed['server']}', client")
        placed = write(tmp_path, [there], FLUID + head)
        assert bound(run, *placed)["workloads"][0]["bound_s"] <= packed["bound_s"] * (1 + 1e-6)
    assert chosen == ["r0h0:ssd", "r0h1:ssd"]


def test_a_replay_takes_the_latency_once_at_each_queue_and_keeps_the_bound(run: Run, tmp_path: Path) -> None:
    rows = "".join(f"{at / 100},read,{4096 * (1 + at % 3)}\n" for at in range(200))
    (tmp_path / "t.csv").write_text(f"seconds,kind,size\n{rows}")
    table = [{"size_bytes": 4096, "read_iops": 8000, "write_iops": 8000}]
    (tmp_path / "dev.json").write_text(json.dumps({"table": table, "unloaded": []}))
    traced = "name: a, client: r0h0, server: r1h1, slo: {percentile: 99, latency: 1s}, trace: t.csv"
    seen = []
    for latency in ("", "latency: {links: 70us, devices: 3ms, queues: {'r1:uplink': 1ms}}\n"):
        file = write(tmp_path, [traced], f"device: dev.json\n{latency}")
        for method in ("dnc", "plp", "priority-meister", "snc"):
            result = run("slo", "check", *file, "--replay", "--method", method, "-o", "json")
            assert result.returncode == 0, result.stderr
            one = json.loads(result.stdout)["workloads"][0]
            assert one["broken"] == []
            assert one["seen"]["tail_s"] <= one["bound_s"]
        seen.append(one["seen"]["worst_s"])
    assert seen[1] - seen[0] == pytest.approx(7 * 70e-6 + 1e-3 + 3e-3)


@pytest.mark.parametrize(
    ("head", "error"),
    [
        ("latency: 5us\n", "latency: "),
        ("latency: {links: 5}\n", "latency.links: "),
        ("latency: {all: 5us}\n", "latency.all: unknown field; expected one of links, devices, queues"),
        (
            "latency: {queues: {'r7:uplink': 5us}}\n",
            "latency.queues.r7:uplink: `r7:uplink`: the cluster has no such link or device",
        ),
        (
            "congestion: hosts\nlatency: {queues: {'r0:uplink': 5us}}\n",
            "with `congestion: hosts`, this link is no queue: leave it out",
        ),
    ],
)
def test_an_invalid_latency_is_an_error_with_its_field(
    run: Run, tmp_path: Path, head: str, error: str
) -> None:
    result = run("slo", "bound", *write(tmp_path, [workload()], head))
    assert (result.returncode, result.stdout) == (2, "")
    assert error in result.stderr


def test_the_schema_has_latencies(run: Run) -> None:
    schema = json.loads(run("schema", "slo").stdout)
    assert "latency" in schema["properties"]
    assert set(schema["$defs"]["LatencyFile"]["properties"]) == {"links", "devices", "queues"}
