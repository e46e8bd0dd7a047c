"""Lists in Parquet and CSV, and the columns of files and jobs."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

import leeward

Run = Callable[..., subprocess.CompletedProcess[str]]

CLUSTER = "racks: 4\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 4\n"
LISTS: dict[str, dict[str, list[Any]]] = {
    "flows": {
        "t_arrival_s": [0.1 * i for i in range(40)],
        "src": [f"r{i % 4}h{i % 3}" for i in range(40)],
        "dst": [f"r{(i + 1) % 4}" for i in range(40)],
        "size_bytes": [10_000_000 + i for i in range(40)],
    },
    "blocks": {
        "t_arrival_s": [float(i) for i in range(20)],
        "writer": [f"r{i % 4}h0" for i in range(20)],
        "size_bytes": [1e8 / (i + 1) for i in range(20)],
        "job": [None if i % 5 == 0 else f"job{i % 3}" for i in range(20)],
        "replicas": [None if i % 2 else 2 for i in range(20)],
        "note": [[i] for i in range(20)],
    },
    "rates": {
        "t_s": [0, 5, 10],
        "link": ["r0:downlink", "r1:uplink", "r0:downlink"],
        "rate_bps": [5e8, 1e9 / 3, 0.0],
    },
}


def scenario(folder: Path, workload: str) -> Path:
    """A scenario with one workload, in a folder."""
    (folder / "cluster.yaml").write_text(CLUSTER)
    path = folder / "scenario.yaml"
    path.write_text(f"cluster: cluster.yaml\nworkloads: [{workload}]\nhorizon: 1min\n")
    return path


@pytest.mark.parametrize("compression", ["snappy", "zstd", "none"])
@pytest.mark.parametrize("kind", LISTS)
def test_a_list_in_parquet_is_read_like_the_same_list_in_csv(
    tmp_path: Path, kind: str, compression: str
) -> None:
    table = pyarrow.table(LISTS[kind])
    parquet.write_table(table, tmp_path / "list.parquet", compression=compression, row_group_size=7)
    rows = [",".join("" if v is None else str(v) for v in row.values()) for row in table.to_pylist()]
    columns = [name for name in table.column_names if name != "note"]
    rows = [",".join(row.split(",")[: len(columns)]) for row in rows]
    (tmp_path / "list.csv").write_text("\n".join([",".join(columns), *rows]) + "\n")
    runs = [
        leeward.simulate(scenario(tmp_path, f"{{{kind}: {{file: list.{ending}}}}}"), ["uniform"])[0]
        for ending in ("csv", "parquet")
    ]
    assert runs[0].provenance[0].replace(".csv", "") == runs[1].provenance[0].replace(".parquet", "")
    for name in ("blocks", "files", "jobs", "links"):
        assert getattr(runs[0], name)() == getattr(runs[1], name)()


def test_dictionary_encoded_columns_are_decoded(tmp_path: Path) -> None:
    table = pyarrow.table(LISTS["blocks"])
    index = table.column_names.index("writer")
    parquet.write_table(
        table.set_column(index, "writer", table["writer"].dictionary_encode()), tmp_path / "list.parquet"
    )
    (run,) = leeward.simulate(scenario(tmp_path, "{blocks: {file: list.parquet}}"), ["uniform"])
    assert run.files()["writer"].to_pylist() == LISTS["blocks"]["writer"]


def test_the_command_reads_parquet_and_reports_the_row_of_an_invalid_value(run: Run, tmp_path: Path) -> None:
    invalid = LISTS["flows"] | {"src": ["r0h0", "nowhere", *["r0h0"] * 38]}
    parquet.write_table(pyarrow.table(invalid), tmp_path / "list.parquet")
    path = scenario(tmp_path, "{flows: {file: list.parquet}}")
    result = run("simulate", str(path))
    assert result.returncode == 2
    assert "list.parquet:3: src: `nowhere`: no host, rack or pod" in result.stderr
    parquet.write_table(pyarrow.table(LISTS["flows"]), tmp_path / "list.parquet")
    result = run("simulate", str(path))
    assert result.returncode == 0, result.stderr
    assert "40 of 40 flows" in result.stderr


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: path.write_bytes(b"PAR1 but no more of it"), "not readable as a table: "),
        (
            lambda path: parquet.write_table(pyarrow.table({"from": [1], "to": [2]}), path),
            "no such column; expected a header with t_arrival_s,src,dst,size_bytes, found `from,to`",
        ),
    ],
)
def test_an_invalid_parquet_table_is_rejected(
    tmp_path: Path, write: Callable[[Path], object], message: str
) -> None:
    write(tmp_path / "list.parquet")
    with pytest.raises(leeward.InputError, match=r"list\.parquet") as refused:
        leeward.simulate(scenario(tmp_path, "{flows: {file: list.parquet}}"), ["uniform"])
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_jobs_with_phases_have_their_times_in_the_tables_and_the_summary(tmp_path: Path) -> None:
    jobs = [f"job{i}\t{2 * i}\t0\t300000000\t{10**8}\t{10**8 * (i + 1)}" for i in range(10)]
    (tmp_path / "jobs.tsv").write_text("\n".join(jobs) + "\n")
    path = scenario(tmp_path, "{swim: {file: jobs.tsv, phases: {}}}")
    uniform, sinbad = leeward.simulate(path, ["uniform", "sinbad"])
    for row in uniform.files().to_pylist():
        assert row["start_s"] <= row["write_start_s"] < row["finished_s"]
        assert 0 < row["fetched"] <= 10**8
    for row in uniform.jobs().to_pylist():
        assert 0 < row["communication_s"] <= row["finished_s"] - row["start_s"]
        assert row["bin"] in range(1, 6)
        share = (row["finished_s"] - row["write_start_s"]) / (row["finished_s"] - row["start_s"])
        assert row["write_share"] == pytest.approx(share)
    weighted = sum(row["bytes"] * row["communication_s"] for row in uniform.jobs().to_pylist())
    total = sum(row["bytes"] for row in uniform.jobs().to_pylist())
    assert uniform.summary()["job_communication_by_bytes_s"] == pytest.approx(weighted / total)
    compared = sinbad.compare(uniform)
    ours = sum(row["bytes"] * row["communication_s"] for row in sinbad.jobs().to_pylist())
    assert compared["communication_by_bytes"] == pytest.approx(weighted / ours)
    assert sum(group["jobs"]["count"] for group in compared["by_write_share"]) == 10
    assert [group["jobs"]["count"] for group in compared["by_bytes"]] == [0, 9, 1, 0, 0]
