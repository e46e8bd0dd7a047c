"""The command `leeward impact`: output, files and errors."""

import csv
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import parquet

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples"
GIVEN = (
    "impact",
    "--cluster",
    str(EXAMPLES / "clusters" / "racks.yaml"),
    "--latency",
    str(EXAMPLES / "telemetry" / "latencies.csv.gz"),
    "--telemetry",
    str(EXAMPLES / "telemetry" / "links.parquet"),
)


def error_lines(result: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines on stderr without progress notices."""
    return [line for line in result.stderr.splitlines() if not line.endswith(" ...")]


def test_the_command_prints_a_table_and_a_glossary(run: Run) -> None:
    result = run(*GIVEN, "--resamples", "0")
    assert result.returncode == 0, result.stderr
    header, *rows = result.stdout.splitlines()
    assert header.split("  ")[0] == "OPERATION"
    assert [row.split()[0] for row in rows] == ["chunk-read", "file-read", "file-write"]
    assert "7,200 of 7,200 latencies have a utilization" in result.stderr
    assert "load-tolerance: the utilization at which p95 is" in result.stderr


def test_json_tables_and_report_agree(run: Run, tmp_path: Path) -> None:
    result = run(*GIVEN, "--out", "tables", "--report", "page.html", "-o", "json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    rows = parquet.read_table(tmp_path / "tables" / "buckets.parquet").to_pylist()
    buckets = [bucket for curve in document["curves"] for bucket in curve["buckets"]]
    assert [row["p95_inflation"] for row in rows] == [
        bucket["p95"]["inflation"]["value"] for bucket in buckets
    ]
    tolerance = parquet.read_table(tmp_path / "tables" / "tolerance.parquet").to_pylist()
    assert [row["value"] for row in tolerance if row["figure"] == "load-tolerance"] == [
        one["value"] for curve in document["curves"] for one in curve["load_tolerance"]
    ]
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 1
    assert "nan" not in page.lower().replace("<svg", "")
    assert "http" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    ).replace("https://matplotlib.org", "")
    again = run(*GIVEN, "--out", "tables", "--report", "page.html", "-o", "json")
    assert (again.stdout, (tmp_path / "page.html").read_text()) == (result.stdout, page)


def test_a_folder_with_other_files_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    result = run(*GIVEN, "--out", "mine")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: --out: `mine`: holds `letter.txt`")
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--hot", "7.5"), "error: --hot: `7.5`: expected a percentage, such as 75%"),
        (("--bucket-width", "0%"), "error: --bucket-width: `0%`: expected from 0.1 % to 100 %"),
        (("--interval", "10"), "error: --interval: `10`: the unit is missing"),
        (("--factors", "1"), "error: --factors: `1`: expected factors above 1"),
        (("--factors", "x"), "error: --factors: `x`: expected a number"),
        (("--by", "rack"), "error: --by: `rack`: expected some of operation, medium"),
        (("--by", "size"), "error: --by: `size`: latencies have no column `size_bytes`"),
        (("--size-edges", "1MB,1KB"), "error: --size-edges: `1e+06,1000`: expected edges"),
        (("--links", "scan"), "error: --links: `scan`: expected OPERATION=LINKS"),
        (("--links", "scan=up"), "error: --links: scan: `up`: expected one of src, dst, a colon, and one of"),
        (("--weights", "PC=1"), "error: --weights: only valid with telemetry by class of service"),
        (("--weights", "PC=x"), "error: --weights: PC: `x`: expected a whole number from 1"),
        (("--class-telemetry", "PC=a.csv"), "error: --class-telemetry: cannot be combined with --telemetry"),
        (("--latency", GIVEN[4]), f"error: --latency: `{GIVEN[4]}`: given twice; expected each file once"),
        (("--latency", "none.csv"), "error: none.csv: no such file or folder"),
        (("--report", "none/page.html"), "error: --report: `none/page.html`: there is no folder"),
    ],
)
def test_invalid_options_are_named(run: Run, options: tuple[str, ...], error: str) -> None:
    result = run(*GIVEN, *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert error_lines(result)[0].startswith(error)
    assert "Traceback" not in result.stderr


def test_missing_telemetry_names_the_telemetry_option(run: Run) -> None:
    result = run(*GIVEN[:5])
    assert (result.returncode, result.stdout) == (2, "")
    assert error_lines(result)[0].startswith("error: --telemetry: expected ")


def test_an_operation_without_a_rule_hints_at_the_rule_option(run: Run, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("t_ms,latency_ms,operation,src,dst\n1767225620000,5,file-raed,r0,r1\n")
    result = run(*GIVEN[:3], "--latency", "l.csv", *GIVEN[5:])
    operations = "chunk-read, shuffle-write, shuffle-read, file-read, file-write, query"
    unknown = "`file-raed`: no rule for the links of this operation"
    assert error_lines(result) == [
        f"error: l.csv: operation: row 0: {unknown}; expected one of {operations}",
        "hint: did you mean `file-read`?",
        "hint: --links 'file-raed=src:uplink,dst:downlink' adds a rule",
    ]
    completed = run(*GIVEN[:3], "--latency", "l.csv", *GIVEN[5:], "--links", "file-raed=src:uplink")
    assert completed.returncode == 0
    assert "warning: file-raed: no bucket has 100 latencies (the fullest has 1)" in completed.stderr


def test_each_class_may_have_telemetry_of_its_own(run: Run, tmp_path: Path) -> None:
    rows = [f"1767225620000,{5 + at},file-read,r0,r1,{name}" for at in range(9) for name in ("PC", "NC")]
    (tmp_path / "l.csv").write_text("\n".join(["t_ms,latency_ms,operation,src,dst,class", *rows]) + "\n")
    links = GIVEN[-1]
    result = run(
        *GIVEN[:3], "--latency", "l.csv", "--by", "class", "--least", "2", "-o", "json",
        "--class-telemetry", f"PC={links}", "--class-telemetry", f"NC={links}", "--weights", "PC=3,NC=1",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["weights"] == {"PC": 3, "NC": 1}
    low = {curve["split"]["class"]: curve["buckets"][0]["from"] for curve in document["curves"]}
    # Both classes have the same load, and effective utilizations of 4/3 and 4 times this load.
    assert low["NC"] == pytest.approx(3 * low["PC"], abs=0.15)


def test_csv_has_a_row_for_each_estimate(run: Run) -> None:
    document = json.loads(run(*GIVEN, "-o", "json").stdout)
    rows = list(csv.DictReader(io.StringIO(run(*GIVEN, "-o", "csv", "-q").stdout)))
    values = [
        estimate["value"]
        for curve in document["curves"]
        for measure in ("load_tolerance", "hotspot_inflation")
        for estimate in curve[measure]
    ]
    assert [row["value"] for row in rows] == ["" if value is None else str(value) for value in values]
    assert {row["measure"] for row in rows} == {"load_tolerance", "hotspot_inflation"}
