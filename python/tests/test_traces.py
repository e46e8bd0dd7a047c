"""Traces, their curves and models: from Python and on the command line."""

import bz2
import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pyarrow
import pytest
from pyarrow import parquet

from leeward.errors import InputError
from leeward.traces import DIALECTS, open_trace

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples" / "slo"
MAIL, SSD, DISK = (str(EXAMPLES / name) for name in ("mail.csv.gz", "ssd.json", "disk.yaml"))


def mail() -> list[list[str]]:
    """Cells of the example trace, row by row."""
    return [line.split(",") for line in gzip.decompress(Path(MAIL).read_bytes()).decode().splitlines()[1:]]


def test_the_example_trace_has_the_statistics_of_the_guide() -> None:
    described = open_trace(MAIL, device=SSD).statistics(percentile=99.9)
    assert described["dialect"] == "leeward"
    assert described["device"] == "example SSD"
    assert described["seconds"] == pytest.approx(300, rel=0.01)
    # Gaps are drawn with the C^2 of workload B of the thesis; five minutes are a small sample of such gaps.
    assert described["gap_c2"] == pytest.approx(14, rel=0.15)
    assert [stage["unit"] for stage in described["stages"]] == ["bytes", "s", "bytes"]
    # The largest requests have 128 KiB, which is a fifteenth of the way from 64 KiB to 1 MiB in the profile.
    assert described["unloaded_s"] == pytest.approx(0.003 + (0.01 - 0.003) / 15)


def test_no_bucket_of_a_curve_ever_overflows() -> None:
    trace = open_trace(MAIL)
    rows = mail()
    arrivals = [(float(row[0]), 200 + (1.1 if row[1] == "read" else 0.025) * int(row[2])) for row in rows]
    for bucket in trace.curve("network-out", prune=5)["buckets"]:
        content, before, most = 0.0, 0.0, 0.0
        for at, work in arrivals:
            content = max(0.0, content - bucket["rate"] * (at - before)) + work
            most, before = max(most, content), at
        assert most <= bucket["burst"] * (1 + 1e-9)
        # Each bucket touches the curve: a smaller burst would overflow.
        assert most == pytest.approx(bucket["burst"], rel=1e-6)


def test_a_parquet_file_gives_the_same_trace(tmp_path: Path) -> None:
    rows = mail()
    table = pyarrow.table(
        {
            "size": pyarrow.array([int(row[2]) for row in rows], pyarrow.int32()),
            "seconds": [float(row[0]) for row in rows],
            "kind": pyarrow.array([row[1] for row in rows]).dictionary_encode(),
            "host": ["h"] * len(rows),
        }
    )
    path = tmp_path / "mail.parquet"
    parquet.write_table(table, path, row_group_size=1000)
    expected, actual = open_trace(MAIL), open_trace(path)
    assert actual.curve("network-in") == expected.curve("network-in")
    assert actual.statistics() == {**expected.statistics(), "file": str(path)}

    parquet.write_table(table.drop_columns(["kind"]), path)
    with pytest.raises(InputError, match=r"mail.parquet:1: dialect: `seconds,size`: a line of no known"):
        open_trace(path).statistics()
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="not readable as a table"):
        open_trace(path).statistics()


def test_the_mean_work_of_a_model_matches_the_trace() -> None:
    trace = open_trace(MAIL)
    model = trace.model("network-in")
    mean = next(one["rate"] for one in trace.statistics()["stages"] if one["stage"] == "network-in")
    assert model["mean_work_per_s"] >= mean * (1 - 1e-6)
    assert model["mean_work_per_s"] == pytest.approx(mean * (1 + model["misfit"]["work"]), rel=0.01)
    assert sum(state["share"] for state in model["states"]) == pytest.approx(1)
    for row in model["transitions"]:
        assert sum(row) == pytest.approx(1)


def test_a_constant_seek_takes_longer_than_a_seek_by_distance(tmp_path: Path) -> None:
    rows = "".join(f"{at},read,65536,{at * 65536}\n" for at in range(100))
    (tmp_path / "stream.csv").write_text(f"seconds,kind,size,offset\n{rows}")
    file = tmp_path / "stream.csv"
    by_distance, constant = open_trace(file, device=DISK), open_trace(file, device=DISK, seek_s=0.009)
    assert by_distance.curve("storage")["total"] == pytest.approx(0.015 + 100 * 65536 / 150e6)
    assert constant.curve("storage")["total"] == pytest.approx(100 * (0.009 + 65536 / 150e6))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dialect": "zip"}, "dialect: `zip`: expected one of leeward, compactor, msr, spc, blktrace"),
        ({"event": "C"}, "event: `C`: expected Q or D"),
        ({"seek_s": 0.01}, "seek_s: expected a disk as the device"),
        ({"device": DISK, "seek_s": -1.0}, "seek_s: -1: expected seconds from 0 to 1e6"),
        ({"network": (1.0, -1.0, 0.0)}, "network: payload -1: expected a number from 0 to 1e9"),
        ({"largest": "4"}, "largest: `4`: the unit is missing; expected a size with its unit"),
    ],
)
def test_an_invalid_setting_is_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as refused:
        open_trace(MAIL, **settings)  # type: ignore[arg-type]
    assert str(refused.value).startswith(message)


def test_a_curve_is_printed_as_a_table_with_figures_of_burstiness(run: Run) -> None:
    result = run("slo", "curve", MAIL, "--device", SSD, "--percentile", "99.9", "--slo", "20ms")
    assert result.returncode == 0, result.stderr
    for word in ("C^2 of gaps", "KNEE", "BURST AT 1.5 MEAN", "EFFECTIVE AT 20 ms", "99.9 %"):
        assert word in result.stdout
    for stage in ("network-in", "storage", "network-out"):
        # One line is among the figures, and each of at most twelve buckets has a line.
        assert 3 <= sum(line.startswith(stage) for line in result.stdout.splitlines()) <= 13


def test_csv_and_json_have_every_bucket(run: Run) -> None:
    arguments = ("slo", "curve", MAIL, "--stage", "network-out")
    (curve,) = json.loads(run(*arguments, "-o", "json").stdout)["curves"]
    lines = run(*arguments, "-o", "csv").stdout.splitlines()
    assert lines[0] == "stage,unit,rate,burst"
    assert len(lines) - 1 == len(curve["buckets"]) == curve["vertices"] > 12
    assert [float(cell) for cell in lines[1].split(",")[2:]] == list(curve["buckets"][0].values())
    pruned = json.loads(run(*arguments, "--error", "0.05", "-o", "json").stdout)["curves"][0]
    assert len(pruned["buckets"]) < len(curve["buckets"])
    assert 0 < pruned["error"] <= 0.05


def test_a_plot_is_an_svg(run: Run, tmp_path: Path) -> None:
    assert run("slo", "curve", MAIL, "--device", SSD, "--picture", "curve.svg").returncode == 0
    assert ElementTree.parse(tmp_path / "curve.svg").getroot().tag.endswith("svg")


def test_a_trace_of_one_request_has_null_rates(run: Run, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("1,0x1000,Get\n")
    result = run("slo", "curve", "one.csv", "--slo", "1s")
    assert (result.returncode, "nan" in result.stdout.lower()) == (0, False)
    document = json.loads(run("slo", "curve", "one.csv", "--slo", "1s", "-o", "json").stdout)
    assert document["trace"]["requests_per_s"] is document["trace"]["gap_c2"] is None
    assert document["curves"][0]["knee"] is document["curves"][0]["at_mean"] is None
    assert run("slo", "model", "one.csv").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["curve", "none.csv"], "none.csv: no such file"),
        (
            ["curve", MAIL, "--stage", "cpu"],
            "--stage: `cpu`: expected one of network-in, storage, network-out",
        ),
        (["curve", MAIL, "--stage", "storage"], "--stage: storage: requires --device"),
        (
            ["curve", MAIL, "--percentile", "99"],
            "--percentile: requires --device",
        ),
        (
            ["curve", MAIL, "--device", SSD, "--percentile", "99.99"],
            "--percentile: percentile 99.99: the profile's latencies without queueing go up to 99.9;",
        ),
        (["curve", MAIL, "--slo", "20"], "--slo: `20`: the unit is missing"),
        (["curve", MAIL, "--slo", "0s"], "--slo: "),
        (["curve", MAIL, "--multiple", "0.5"], "--multiple: "),
        (["curve", MAIL, "--margin", "1.1"], "--margin: `1.1`: expected a percentage"),
        (["curve", MAIL, "--window", "0s"], "--window: "),
        (["curve", MAIL, "--prune", "3", "--error", "0.1"], "--prune: expected one of --prune and --error"),
        (["curve", MAIL, "--network", "1,2"], "--network: `1,2`: expected three numbers"),
        (
            ["curve", MAIL, "--picture", "curve.png"],
            "--picture: `curve.png`: expected a name that ends in .svg",
        ),
        (["model", MAIL, "--interval", "0s"], "--interval: 0: expected positive and finite"),
        (["model", MAIL, "--size-model", "pareto"], "--size-model: `pareto`: expected one of empirical"),
        (["model", MAIL, "--device", MAIL], f"{MAIL}:"),
        (["model", MAIL, "--deviations", "3"], "--deviations: expected only with `published`"),
    ],
)
def test_invalid_options_are_named_in_the_first_line(run: Run, arguments: list[str], message: str) -> None:
    result = run("slo", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines()[0].startswith(f"error: {message}")


def test_a_margin_scales_the_rates_and_bursts_of_a_curve(run: Run) -> None:
    trace = open_trace(MAIL)
    plain, more = trace.curve("network-out", prune=3), trace.curve("network-out", prune=3, margin=0.1)
    for one, other in zip(plain["buckets"], more["buckets"], strict=True):
        assert other["rate"] == pytest.approx(1.1 * one["rate"])
        assert other["burst"] == pytest.approx(1.1 * one["burst"])
    arguments = ("slo", "curve", MAIL, "--stage", "network-out", "--prune", "3", "-o", "json")
    assert json.loads(run(*arguments, "--margin", "10%").stdout)["curves"] == [more]
    for margin, message in ((-0.1, "expected a share from 0"), (float("nan"), "expected a share from 0")):
        with pytest.raises(InputError, match=message):
            trace.curve("network-out", margin=margin)
    with pytest.raises(InputError, match="1e308: the scaled work exceeds the range of numbers"):
        trace.curve("network-out", margin=1e308)


def test_an_overflowing_value_is_printed_with_few_digits(run: Run) -> None:
    result = run("slo", "curve", MAIL, "--stage", "network-out", "--multiple", "1e308")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: --multiple: 1e308 times the mean rate: must be finite")


def test_outputs_of_blkparse_one_after_the_other_are_read_and_every_line_is_counted(
    run: Run, tmp_path: Path
) -> None:
    events = "  8,{0} 0 1 {1}.0 100 Q W 1000 + 8 [a]\n  8,{0} 0 2 {1}.5 100 C W 2000 + 8 [a]\n"
    sums = "CPU0 (sda):\n Reads Queued: 0, 0KiB\t Writes Queued: 1, 4KiB\n\nSkips: 1 forward (3 - 0.1%)\n"
    path = tmp_path / "t.txt"
    path.write_text(events.format(0, 0) + sums + events.format(16, 1))
    result = run("slo", "curve", str(path), "-o", "json")
    trace = json.loads(result.stdout)["trace"]
    assert (trace["requests"], trace["bytes"], trace["lines"], trace["lost_events"]) == (2, 8192, 7, 3)
    assert trace["left_out"] == [
        {"reason": "other events", "lines": 2},
        {"reason": "sums of blkparse", "lines": 3},
    ]
    text = run("slo", "curve", str(path)).stdout
    assert "2 other events, 3 sums of blkparse" in text
    assert "3: the trace is incomplete" in text
    second = run("slo", "curve", str(path), "--volume", "8,16", "-o", "json")
    assert json.loads(second.stdout)["trace"]["requests"] == 1


def test_a_trace_out_of_order_is_sorted_on_request_and_says_so(run: Run, tmp_path: Path) -> None:
    lines = ["419,W,8192,4096,20", "419,R,0,4096,10", "419,R,0,0,30", "419,R,0,512,40"]
    (tmp_path / "t.csv.bz2").write_bytes(bz2.compress(("\n".join(lines) + "\n").encode()))
    refused = run("slo", "curve", "t.csv.bz2")
    assert refused.returncode == 2
    assert "t.csv.bz2:2: timestamp: 0.00001 s is before the request above it" in refused.stderr
    found = json.loads(run("slo", "curve", "t.csv.bz2", "--sort", "-o", "json").stdout)["trace"]
    assert (found["dialect"], found["requests"], found["moved"], found["disorder_s"]) == (
        "alibaba",
        3,
        1,
        1e-5,
    )
    assert found["left_out"] == [{"reason": "of 0 bytes", "lines": 1}]
    shown = run("slo", "curve", "t.csv.bz2", "--sort").stdout
    assert "1 request before the one above, by 10 us at most" in shown


def test_python_the_help_and_the_reference_name_the_dialects_of_the_engine(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("419,W,8192,4096,20\n")
    refused = run("slo", "curve", "t.csv", "--dialect", "nope").stderr
    engine = " ".join(refused.split("hint:")[0].split()).split("expected one of ")[1].split(", ")
    assert tuple(engine) == DIALECTS
    shown = " ".join(run("slo", "curve", "--help").stdout.split())
    listed = ", ".join(DIALECTS[:-1]) + f" or {DIALECTS[-1]}"
    assert listed in shown.replace("│ │ ", "")
    page = Path(__file__).parents[2] / "docs" / "reference" / "trace-files.md"
    rows = [line.split("`")[1] for line in page.read_text().splitlines() if line.startswith("| `")]
    assert [name for name in rows if name in DIALECTS] == list(DIALECTS)
