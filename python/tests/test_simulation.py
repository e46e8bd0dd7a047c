"""Scenarios and single decisions, by the command line and the Python API."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

import leeward
from leeward import simulation

Run = Callable[..., subprocess.CompletedProcess[str]]

CLUSTER = """\
racks: 4
hosts_per_rack: 4
nic: 1Gbps
oversubscription: 4
devices: [{read: 50MB/s, write: 50MB/s}]
"""
SCENARIO = """\
name: small
cluster: cluster.yaml
workloads:
  - swim: {file: jobs.tsv}
  - flows: {file: flows.csv}
horizon: 3min
"""
BLOCK = 256 * 2**20
SIZES = [(i % 3 + 1) * BLOCK // 2 for i in range(20)]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Scenario in its own folder, with jobs that write files, and background flows."""
    jobs = [f"job{i}\t{5 + 4 * i}\t0\t0\t0\t{size}" for i, size in enumerate(SIZES)]
    flows = [f"{10 + i},r{i % 4}h0,r{(i + 1) % 4}h1,50000000" for i in range(30)]
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "jobs.tsv").write_text("\n".join(jobs) + "\n")
    (tmp_path / "flows.csv").write_text("\n".join(["t_arrival_s,src,dst,size_bytes", *flows]) + "\n")
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def loads(tmp_path: Path) -> Path:
    """Telemetry of every link. Rack 2 is the least loaded rack, and host 3 is the least loaded host in it."""
    cluster = leeward.Cluster.from_text(CLUSTER)
    least_loads = {"r2:downlink": 1e6, "r2h3:ingress": 1e6, "r2h1:ingress": 2e6}
    lines = ["link,load_bps"]
    for resource in cluster.resources().to_pylist():
        if resource["kind"] != "device":
            load = least_loads.get(resource["name"], 0.9 * resource["capacity"])
            lines.append(f"{resource['name']},{load:.0f}")
    path = tmp_path / "loads.csv"
    path.write_text("\n".join(lines) + "\n")
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    return path


def test_all_policies_see_the_same_arrivals(scenario: Path) -> None:
    uniform, sinbad = leeward.simulate(scenario, ["uniform", "sinbad"])
    for name in ("file", "block", "writer", "bytes"):
        keys = [("file", "ascending"), ("block", "ascending")]
        assert uniform.blocks().sort_by(keys)[name] == sinbad.blocks().sort_by(keys)[name]
    assert uniform.jobs()["start_s"] == sinbad.jobs()["start_s"]


def test_a_simulation_is_deterministic_for_any_number_of_jobs(scenario: Path) -> None:
    serial, parallel = (leeward.simulate(scenario, ["uniform", "sinbad"], [1, 2], jobs=n) for n in (1, 2))
    assert [(run.policy, run.seed) for run in serial] == [
        ("uniform", 1),
        ("sinbad", 1),
        ("uniform", 2),
        ("sinbad", 2),
    ]
    for a, b in zip(serial, parallel, strict=True):
        assert all(getattr(a, name)() == getattr(b, name)() for name in TABLES)


TABLES = (
    *("blocks", "files", "jobs", "links", "balance", "hotspots", "hosts"),
    *("tasks", "moves", "cell", "reads", "repairs"),
    *("apps", "migrations", "coflows"),
)


def test_results_are_arrow_tables_that_add_up(scenario: Path) -> None:
    (run,) = leeward.simulate(scenario, ["uniform"])
    assert all(isinstance(getattr(run, name)(), pyarrow.Table) for name in TABLES)
    blocks, hosts = run.blocks(), run.hosts()
    written = sum(blocks["bytes"].to_pylist())
    assert (
        written == sum(run.files()["bytes"].to_pylist()) == sum((i % 3 + 1) * BLOCK // 2 for i in range(20))
    )
    assert sum(hosts["bytes"].to_pylist()) == 3 * written
    assert sum(hosts["blocks"].to_pylist()) == 3 * len(blocks)
    assert run.summary()["blocks"] == len(blocks)
    assert run.compare(run)["blocks"]["same"] == 1


def test_runs_of_different_seeds_are_not_compared(scenario: Path) -> None:
    one, two = leeward.simulate(scenario, ["uniform"], [1, 2])
    with pytest.raises(leeward.InputError, match="same seed"):
        one.compare(two)


def test_the_command_prints_a_table_with_a_column_for_each_policy(run: Run, scenario: Path) -> None:
    result = run("simulate", str(scenario), "--policy", "uniform,sinbad:remote_racks=2")
    assert result.returncode == 0, result.stderr
    header, *rows = result.stdout.splitlines()
    assert header.split() == ["uniform", "sinbad:remote_racks=2"]
    assert rows[0].split() == ["blocks", "written", "26", "26"]
    assert "\x1b" not in result.stdout
    assert "20 of 20 jobs" in result.stderr


def test_results_are_written_completely(run: Run, scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    result = run(
        "simulate", str(scenario), "-o", "json", "--out", str(out), "--policy", "uniform,sinbad:threshold=1MB"
    )
    assert result.returncode == 0, result.stderr
    printed = json.loads(result.stdout)
    assert json.loads((out / "summary.json").read_text()) == printed
    assert [one["policy"] for one in printed["runs"]] == ["uniform", "sinbad:threshold=1MB"]
    assert printed["runs"][0]["against_baseline"] is None
    assert printed["runs"][1]["against_baseline"]["blocks"]["count"] == 26
    for folder in ("uniform", "sinbad,threshold=1MB"):
        assert {path.stem for path in (out / folder).iterdir()} == set(TABLES)
        assert len(parquet.read_table(out / folder / "blocks.parquet")) == 26
    page = (out / "report.html").read_text()
    assert page.count("<svg") == 4
    # The report works offline: it links to no page and loads no file. URLs of XML namespaces are only names.
    assert not re.search(r"""(src|href)=["']https?:|url\(["']?https?:""", page)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("horizon: 3min", "horizon: 3"), "error: scenario.yaml:6:10: horizon: `3`: the unit is missing"),
        (("jobs.tsv", "none.tsv"), "error: none.tsv: no such file"),
        (("horizon: 3min", "policies: [best]"), "error: scenario.yaml:6:11: policies: unknown policy `best`"),
        (
            ("- swim: {file", "- swim: {fil"),
            "error: scenario.yaml:4:12: workloads[0].swim.fil: unknown field",
        ),
        (("cluster.yaml", "racks.yaml"), "error: scenario.yaml:2:10: cluster: no such file (racks.yaml)"),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_an_invalid_scenario_prints_an_error_and_exits_with_2(
    run: Run, scenario: Path, change: tuple[str, str], error: str
) -> None:
    scenario.write_text(SCENARIO.replace(*change))
    result = run("simulate", "scenario.yaml", "--out", "results")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(error), result.stderr
    assert not (scenario.parent / "results").exists()


def test_a_block_goes_to_the_least_loaded_rack_and_hosts(run: Run, loads: Path) -> None:
    arguments = (
        "place",
        "replicas",
        "--cluster",
        "cluster.yaml",
        "--telemetry",
        loads.name,
        "--size",
        "256MiB",
    )
    options = ("--policy", "sinbad:disk_write_cap=10Gbps", "--writer", "r0h1")
    result = run(*arguments, *options)
    assert (result.returncode, result.stderr) == (0, "")
    writer, *others = result.stdout.split()
    assert writer == "r0h1"
    assert {host[:2] for host in others} == {"r2"}
    explained = json.loads(run(*arguments, *options, "--explain", "-o", "json").stdout)
    assert explained["hosts"] == [writer, *others]
    first, rack, *_ = explained["why"]
    assert (first["candidate"], first["verdict"], first["limit"], first["sight"]) == (
        writer,
        "chosen",
        None,
        None,
    )
    assert (rack["candidate"], rack["verdict"]) == ("r2", "chosen")
    # The downlink of rack 2 has 999 Mb/s left. The disks write at most 400 Mb/s, although the cap is higher.
    assert (rack["limit"], rack["value_bps"], rack["sight"]) == ("disk", 400_000_000, "counter")
    chosen = [reason["candidate"] for reason in explained["why"] if reason["verdict"] == "chosen"]
    assert chosen == [writer, "r2", *others]


def test_an_explanation_names_the_limit_and_the_source_of_the_load(run: Run, loads: Path) -> None:
    # Telemetry is missing for the downlink of rack 1, and for all of rack 3.
    lines = [line for line in loads.read_text().splitlines() if not line.startswith(("r1:downlink", "r3"))]
    loads.write_text("\n".join(lines) + "\n")
    arguments = (
        "place",
        "replicas",
        "--cluster",
        "cluster.yaml",
        "--telemetry",
        loads.name,
        "--writer",
        "r0h1",
    )
    printed = run(*arguments, "--size", "256MiB", "--explain", "--exclude", "r2").stdout
    header, *rows = printed.splitlines()[2:]
    assert re.split(" {2,}", header) == ["CANDIDATE", "EXPECTED", "LIMITED BY", "LOAD KNOWN BY", "VERDICT"]
    by_name = {row.split()[0]: row for row in rows}
    assert "its counter" in by_name["r0"]
    assert "sum of hosts" in by_name["r1"]
    small = run(*arguments, "--size", "64MiB", "--explain").stdout
    assert "64MiB is smaller than the policy's threshold: placed as uniform does" in small
    uniform = run(*arguments, "--size", "256MiB", "--explain", "--policy", "uniform").stdout
    assert uniform.splitlines()[2].split() == ["CANDIDATE", "VERDICT"]
    assert len(uniform.splitlines()) == 6


def test_excluded_hosts_and_racks_get_no_copy(loads: Path) -> None:
    cluster = leeward.Cluster.from_file(loads.with_name("cluster.yaml"))
    decision = leeward.place_replicas(
        cluster, "256MiB", telemetry=loads, writer="r0h1", exclude=["r2", "r1h0", "r3"]
    )
    assert decision["hosts"] is not None
    assert {host[:2] for host in decision["hosts"][1:]} == {"r1"}
    assert "r1h0" not in decision["hosts"]


def test_sinbad_without_telemetry_is_refused_with_a_hint(run: Run, loads: Path) -> None:
    arguments = ("place", "replicas", "--cluster", "cluster.yaml", "--size", "256MiB")
    refused = run(*arguments)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.splitlines() == [
        "error: no telemetry: no candidate's load was ever reported",
        "hint: --telemetry FILE gives the loads of links",
        "hint: --policy sinbad:without_telemetry=default places without load information",
    ]
    assert run(*arguments, "--policy", "sinbad:without_telemetry=default").returncode == 0
    assert run(*arguments, "--policy", "uniform").returncode == 0


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "loads.csv: the file is empty"),
        ("link\n", "loads.csv:1: load_bps: no such column"),
        ("link,load_bps\nr9:downlink,1\n", "loads.csv:2: link: `r9:downlink`: the cluster has no such link"),
        ("link,load_bps\nr0:downlink,-1\n", "loads.csv:2: load_bps: `-1`: must not be negative"),
        ("link,load_bps\nr0:downlink,nan\n", "loads.csv:2: load_bps: `nan`: not a finite number"),
        ("link,load_bps\nr0:downlink\n", "loads.csv:2: link: 1 cells, but the header has 2"),
    ],
)
def test_invalid_telemetry_is_rejected_with_line_and_column(
    run: Run, loads: Path, text: str, error: str
) -> None:
    loads.write_text(text)
    result = run(
        "place", "replicas", "--cluster", "cluster.yaml", "--telemetry", "loads.csv", "--size", "256MiB"
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {error}"), result.stderr


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--size", "256"), "error: --size: `256`: the unit is missing"),
        (("--size", "256MiB", "--writer", "h9"), "error: --writer: `h9`: the cluster has no such host"),
        (("--size", "256MiB", "--policy", "best"), "error: --policy: unknown policy `best`"),
        (("--size", "256MiB", "--policy", "sinbad:foo=1"), "error: --policy: sinbad.foo: unknown field"),
        (
            ("--size", "256MiB", "--policy", "sinbad:interval=1"),
            "error: --policy: sinbad.interval: `1`: the unit",
        ),
        (("--size", "256MiB", "--policy", "ccp:sample=0"), "error: --policy: ccp.sample: 0: expected"),
        (
            ("--size", "256MiB", "--exclude", "x"),
            "error: --exclude: `x`: the cluster has no such host, rack or pod",
        ),
        (("--size", "256MiB", "--tag", "ssd"), "error: --tag: no host has the tag `ssd`"),
        (
            ("--size", "256MiB", "--replicas", "0"),
            "error: Invalid value for '--replicas': `0`: expected a whole",
        ),
        (("--size", "256MiB", "--fault-domains", "256"), "error: Invalid value for '--fault-domains'"),
        (("--size", "256MiB", "--seed", "9" * 23), "error: Invalid value for '--seed'"),
        (("--size", "256MiB", "--seed", "9" * 5000), "error: Invalid value for '--seed'"),
        (("--size", "256MiB", "--seed", "-1"), "error: Invalid value for '--seed'"),
    ],
)
def test_invalid_requests_name_the_option(
    run: Run, loads: Path, options: tuple[str, ...], error: str
) -> None:
    result = run("place", "replicas", "--cluster", "cluster.yaml", *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(error), result.stderr


def test_a_refusal_for_another_reason_gives_no_telemetry_hint(run: Run, loads: Path) -> None:
    arguments = ("place", "replicas", "--cluster", "cluster.yaml", "--size", "256MiB", "--fault-domains", "9")
    refused = run(*arguments)
    assert refused.returncode == 1
    assert "telemetry" not in refused.stderr


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--seed", "9" * 23), "error: Invalid value for '--seed': `"),
        (("--jobs", "9" * 23), "error: Invalid value for '--jobs': `"),
        (("--seeds", "9" * 23), "error: Invalid value for '--seeds': `"),
        (("--policy", "uniform,uniform"), "error: --policy: `uniform` is given twice"),
        (("--policy", "uniform,sinbad:foo=1"), "error: --policy: sinbad.foo: unknown field"),
        (("--policy", "best"), "error: --policy: unknown policy `best`"),
        (("--policy", ""), "error: --policy: ``: expected the name of a policy"),
        (
            ("--policy", "rehdfs:offsets=[1,0.5]"),
            "error: --policy: rehdfs.offsets[1]: `0.5`: expected a whole number from 0 to 4294967295",
        ),
    ],
)
def test_invalid_options_are_named(run: Run, scenario: Path, options: tuple[str, ...], error: str) -> None:
    result = run("simulate", "scenario.yaml", *options, "--out", "results")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(error), result.stderr
    assert not (scenario.parent / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"seeds": [-1]}, "seeds: `-1`: expected a whole number from 0 to 18446744073709551615"),
        ({"seeds": [2**64]}, "seeds: `18446744073709551616`: expected"),
        ({"seeds": []}, "seeds: expected at least one"),
        ({"jobs": -1}, "jobs: `-1`: expected a whole number of at least 1"),
        ({"jobs": 0}, "jobs: `0`: expected"),
        ({"policies": []}, "policies: expected at least one"),
        ({"policies": "best"}, "policies: unknown policy `best`"),
        ({"policies": ["sinbad:foo=1"]}, "policies: sinbad.foo: unknown field"),
        ({"policies": ["uniform", "uniform"]}, "policies: `uniform` is given twice"),
    ],
)
def test_invalid_arguments_of_a_simulation_are_named(
    scenario: Path, arguments: dict[str, Any], error: str
) -> None:
    with pytest.raises(leeward.InputError) as caught:
        leeward.simulate(scenario, **arguments)
    assert str(caught.value).startswith(error)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"replicas": 300}, "replicas: `300`: expected a whole number from 1 to 255"),
        ({"fault_domains": -1}, "fault_domains: `-1`: expected"),
        ({"seed": -1}, "seed: `-1`: expected"),
        ({"explain": -1}, "explain: `-1`: expected"),
        ({"writer": "h9"}, "writer: `h9`: the cluster has no such host"),
        ({"tags": "ssd"}, "tags: no host has the tag `ssd`"),
        ({"exclude": "x"}, "exclude: `x`: the cluster has no such host, rack or pod"),
        ({"policy": "sinbad:foo=1"}, "policy: sinbad.foo: unknown field"),
        ({"size": "1"}, "size: `1`: the unit is missing"),
    ],
)
def test_invalid_arguments_of_a_request_are_named(arguments: dict[str, Any], error: str) -> None:
    with pytest.raises(leeward.InputError) as caught:
        leeward.place_replicas(CLUSTER, **({"size": "256MiB", "policy": "uniform"} | arguments))
    assert str(caught.value).startswith(error)


def test_copies_are_collocated_or_balanced_on_request(run: Run, loads: Path) -> None:
    arguments = (
        "place",
        "replicas",
        "--cluster",
        "cluster.yaml",
        "--telemetry",
        loads.name,
        "--size",
        "256MiB",
    )
    related = ("r0h1", "r2h0", "r3h1")
    options = [word for host in related for word in ("--collocate", host)]
    placed = run(*arguments, *options, "-o", "json")
    assert set(json.loads(placed.stdout)["hosts"]) == set(related)
    unknown = run(*arguments, "--collocate", "r9h9")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("error: --collocate: `r9h9`: the cluster has no such host")
    result = run(*arguments, "--max-imbalance", "2")
    assert result.returncode == 2
    assert result.stderr.startswith("error: --max-imbalance: `2`: expected a percentage from 0% to 100%")


def test_a_string_is_accepted_as_a_single_name(scenario: Path, loads: Path) -> None:
    (run,) = leeward.simulate(scenario, "uniform")
    assert run.policy == "uniform"
    decision = leeward.place_replicas(CLUSTER, "256MiB", telemetry=loads, writer="r0h1", exclude="r2")
    assert decision["hosts"] is not None
    assert "r2" not in {host[:2] for host in decision["hosts"]}


def test_a_single_copy_needs_no_second_fault_domain(run: Run, loads: Path) -> None:
    arguments = ("place", "replicas", "--cluster", "cluster.yaml", "--size", "256MiB", "--policy", "uniform")
    assert len(run(*arguments, "--replicas", "1").stdout.split()) == 1


def test_concurrent_runs_use_the_cpu_count_without_affinity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert simulation.runs_at_once(None) == 3
    assert simulation.runs_at_once(7) == 7


def test_policies_are_listed_with_their_sources(run: Run) -> None:
    header, *rows = run("policies").stdout.splitlines()
    assert header.split() == ["POLICY", "FOR", "WHAT", "IT", "DOES", "FROM", "SETTINGS"]
    assert [row.split()[0] for row in rows] == [policy["name"] for policy in leeward.policies()]
    assert all(policy["source"] in row for policy, row in zip(leeward.policies(), rows, strict=True))


def test_policies_are_listed_with_their_settings(run: Run) -> None:
    listed = json.loads(run("policies", "-o", "json").stdout)
    assert listed == leeward.policies()
    by_kind_and_name = {(policy["kind"], policy["name"]): policy for policy in listed}
    assert len(by_kind_and_name) == len(listed)
    assert "remote_racks" in by_kind_and_name["replicas", "sinbad"]["settings"]["properties"]
    assert all(policy["source"] and policy["summary"] for policy in listed)
