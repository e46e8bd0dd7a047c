"""Operations over TCP from Python and from the command line."""

import json
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
import yaml
from pyarrow import compute, parquet
from typer.testing import CliRunner

from leeward import Cluster, cli, operations
from leeward.errors import InputError
from leeward.impact import Settings, measure
from leeward.telemetry import Engine, read

EXAMPLES = Path(__file__).parents[2] / "examples" / "operations"
SMALL: dict[str, Any] = {
    "cluster": {"racks": 2, "hosts_per_rack": 4, "nic": "10Gbps", "rack_link": "3Gbps"},
    "classes": [{"name": "PC", "weight": 8}, {"name": "NC", "weight": 4}],
    "media": [{"name": "hdd", "read": "600MB/s", "write": "500MB/s", "access": "8ms", "parallel": 4}],
    "operations": [
        {"name": "read", "kind": "read", "medium": "hdd", "size": ["100KB", "1MB"], "servers": "r0"},
        {
            "name": "write",
            "kind": "write",
            "medium": "hdd",
            "size": "200KB",
            "servers": "r0",
            "class": "NC",
        },
    ],
    "jobs": [
        {"name": "reads", "rate": 100, "hosts": "r1", "steps": [{"operation": "read"}]},
        {
            "name": "query",
            "rate": 10,
            "hosts": "r1",
            "stages": [
                {"workers": 3, "steps": [{"operation": "read", "count": 2}, {"compute": "20ms"}]},
                {"workers": 2, "steps": [{"operation": "write"}]},
            ],
        },
    ],
    "horizon": "2s",
    "sample": "1s",
}


def test_tables_logs_and_summary_agree() -> None:
    run = operations.simulate(SMALL)
    tables = operations.tables(run)
    assert set(tables) == set(operations.TABLES)
    table = tables["operations"]
    assert run.totals()["operations"] == len(table) > 200
    latency, network = table["latency_s"].to_numpy(), table["network_s"].to_numpy()
    assert (network > 0).all()
    assert (latency > network).all()
    assert numpy.allclose(table["ended_s"].to_numpy() - table["began_s"].to_numpy(), latency)
    figures = operations.summary(run)
    assert sum(row["count"] for row in figures["operations"]) == len(table)
    reads = table.filter(compute.equal(table["job"], "reads"))["latency_s"].to_numpy()
    (row,) = (row for row in figures["operations"] if row["job"] == "reads")
    assert row["p95_s"] == pytest.approx(numpy.percentile(reads, 95))
    logs = operations.latencies(run)
    assert len(logs) == len(table)
    assert set(logs["links"].to_pylist()) == {"r0:uplink r1:downlink", "r1:uplink r0:downlink"}
    jobs = operations.queries(run, ["query"])
    assert set(jobs["links"].to_pylist()) == {"r1:downlink r1:uplink"}
    stages = operations.stages(run, ["query"])
    # Workers of unfinished jobs have rows too.
    assert set(jobs["query"].to_pylist()) <= set(stages["query"].to_pylist())
    loads = operations.telemetry(run)
    by_class = [operations.telemetry(run, name) for name in run.classes]
    total = sum(loads["load_bps"].to_pylist())
    assert sum(sum(one["load_bps"].to_pylist()) for one in by_class) == pytest.approx(total)
    assert total > 8 * sum(table["bytes"].to_pylist()) / run.sample_s


def test_a_run_repeats_and_a_seed_changes_it() -> None:
    first, again, other = (operations.simulate(SMALL | {"seed": seed}) for seed in (1, 1, 2))
    assert first.operations() == again.operations()
    assert first.operations() != other.operations()


def test_impact_reads_a_run(tmp_path: Path) -> None:
    run = operations.simulate(EXAMPLES / "rack.yaml")
    for name, table in (("latencies", operations.latencies(run)), ("loads", operations.telemetry(run))):
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    samples = read(run.cluster, [tmp_path / "loads.parquet"], engine=Engine.duckdb())
    settings = Settings(interval_ms=2000, least=20, resamples=0)
    result = measure(tmp_path / "latencies.parquet", samples, settings)
    assert result.latencies > 0.9 * result.rows
    # Other workers read, so the uplink of the servers gets busier.
    reads = next(
        curve for curve in result.curves if curve.name.startswith("file-read") and curve.part == "network"
    )
    p95 = [bucket.ns["p95"] for bucket in reads.judged]
    assert p95[-1] > 2 * p95[0]


def test_the_command_prints_and_writes(tmp_path: Path) -> None:
    scenario = tmp_path / "a.yaml"
    scenario.write_text(json.dumps(SMALL))
    runner = CliRunner()
    printed = runner.invoke(cli.app, ["operations", str(scenario), "--out", str(tmp_path / "out")])
    assert printed.exit_code == 0, printed.output
    assert "reads" in printed.stdout
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"summary.json", "latencies.parquet", "telemetry-NC.parquet", "stages.parquet"}
    again = runner.invoke(cli.app, ["operations", str(scenario), "-o", "json"])
    assert json.loads(again.stdout) == json.loads((tmp_path / "out" / "summary.json").read_text())


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("[qr]*.yaml")), ids=lambda path: path.stem)
def test_the_examples_are_valid(example: Path) -> None:
    assert operations.read(example).horizon_s > 1


def test_an_invalid_scenario_is_named() -> None:
    for change, message in (
        ({"horizon": "0s"}, "<mapping>: horizon: 0s"),
        ({"sample": "3s"}, "<mapping>: sample: 3s: expected at most 2s"),
        ({"seed": object()}, "<mapping>: "),
        ({"cluster": "nowhere.yaml"}, "<mapping>: cluster: no such file"),
    ):
        with pytest.raises(InputError) as caught:
            operations.read(SMALL | change)
        assert str(caught.value).startswith(message), str(caught.value)
        assert caught.value.line is None


def test_a_scenario_of_objects_is_that_of_texts() -> None:
    texts = operations.simulate(SMALL)
    network = Cluster(SMALL["cluster"])
    reads, writes = SMALL["operations"]
    changed = {
        "cluster": network,
        "classes": pyarrow.table({"name": ["PC", "NC"], "weight": [8, 4]}),
        "operations": [reads | {"size": [100_000, numpy.int64(10**6)]}, writes | {"size": 200_000}],
    }
    objects = operations.simulate(SMALL | changed)
    assert objects.operations() == texts.operations()
    assert objects.cluster == network
    for source in (
        EXAMPLES / "cluster.yaml",
        str(EXAMPLES / "cluster.yaml"),
        (EXAMPLES / "cluster.yaml").read_text(),
    ):
        example = yaml.safe_load((EXAMPLES / "rack.yaml").read_text())
        assert operations.read(example | {"cluster": source}).cluster == Cluster(EXAMPLES / "cluster.yaml")


def test_operations_between_pods_cross_the_links_of_pods() -> None:
    pods = {
        "nic": "10Gbps",
        "pods": [{"name": name, "link": "10Gbps"} for name in "ab"],
        "racks": [
            {"name": name, "pod": pod, "hosts": 2, "link": "5Gbps"}
            for name, pod in (("x", "a"), ("y", "b"), ("z", "b"))
        ],
    }
    changes: dict[str, Any] = {
        "cluster": pods,
        "classes": [],
        "operations": [
            {"name": "read", "kind": "read", "medium": "hdd", "size": "100KB", "servers": ["x", "z"]},
        ],
        "jobs": [{"name": "reads", "rate": 100, "hosts": "y", "steps": [{"operation": "read"}]}],
    }
    logs = operations.latencies(operations.simulate(SMALL | changes))
    assert set(logs["links"].to_pylist()) == {
        "x:uplink y:downlink a:uplink b:downlink",
        "z:uplink y:downlink",
    }


def test_operations_and_jobs_that_did_not_end_are_counted() -> None:
    job = {
        "name": "reads",
        "concurrent": 3,
        "hosts": "r1",
        "steps": [{"compute": "1s"}, {"operation": "read"}],
    }
    background = job | {"name": "others", "record": False}
    totals = operations.simulate(SMALL | {"jobs": [job, background]}).totals()
    assert totals["unfinished_jobs"] == 3
    assert 0 <= totals["unfinished"] <= 3


def test_progress_may_stop_a_run() -> None:
    def stop(share: float) -> None:
        if share > 0.5:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        operations.simulate(SMALL, progress=stop)
