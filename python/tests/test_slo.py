"""Files of workloads: bounds, priorities and admission, from Python and on the command line."""

import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
from pyarrow import csv, parquet

from leeward.errors import InputError
from leeward.slo import METHODS, load

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples" / "slo"
CLUSTER, FILE, NEW = (str(EXAMPLES / name) for name in ("cluster.yaml", "w.yaml", "new.yaml"))


def file(tmp_path: Path, workloads: str, head: str = "") -> str:
    """A file of workloads beside the examples' traces."""
    path = tmp_path / "w.yaml"
    path.write_text(f"device: {EXAMPLES}/ssd.json\n{head}\nworkloads:\n{workloads}")
    return str(path)


def test_the_bounds_of_the_example_match_the_guide(run: Run) -> None:
    bounds = {}
    for method in ("dnc", "snc"):
        result = run("slo", "bound", FILE, "--cluster", CLUSTER, "--method", method, "-o", "json")
        assert (result.returncode, result.stderr) == (0, "")
        record = json.loads(result.stdout)
        assert (record["margin"], record["congestion"], record["priorities"]) == (0.1, "everywhere", "by-slo")
        mail = record["workloads"][0]
        assert (mail["met"], mail["by"], mail["why"]) == (True, method, None)
        assert mail["bound_s"] == pytest.approx(sum(stage["bound_s"] for stage in mail["stages"]))
        bounds[method] = mail["bound_s"]
        backup = record["workloads"][-1]
        assert (backup["workload"], backup["best_effort"], backup["met"]) == ("backup", True, None)
    assert bounds["dnc"] == pytest.approx(0.053, abs=5e-4)
    assert bounds["snc"] == pytest.approx(0.0218, abs=5e-4)


def test_the_table_of_bounds_names_workloads_stages_queues_and_settings(run: Run) -> None:
    assert "\n\n" not in run("slo", "bound", FILE, "--cluster", CLUSTER).stdout
    result = run("slo", "bound", FILE, "--cluster", CLUSTER, "--stages")
    assert result.returncode == 0
    first, second = result.stdout.split("\n\n")
    assert "mail0     r0h0    r0h7:ssd  99 % in 55 ms" in first
    assert "best effort" in first
    assert "r0h0:egress, r0h7:ingress" in second
    for words in ("margin: curves are 10 % above", "congestion: all links", "priorities: the tightest SLO"):
        assert words in result.stderr


def test_a_missed_slo_exits_with_1_and_names_the_overloaded_queue(run: Run, tmp_path: Path) -> None:
    mail = f"client: r0h0, server: r0h7, trace: {EXAMPLES}/mail.csv.gz, slo: {{percentile: 99, latency: 5ms}}"
    path = file(tmp_path, f"  - {{name: a, {mail}}}\n")
    result = run("slo", "bound", path, "--cluster", CLUSTER, "--method", "dnc")
    assert result.returncode == 1
    assert "error: a: a bound of " in result.stderr
    assert "above its SLO of 5 ms" in result.stderr

    hog = "client: r0h1, server: r0h7, unloaded: 0s, slo: {percentile: 99, latency: 1s}"
    path = file(tmp_path, f"  - {{name: hog, {hog}, curves: {{storage: [{{rate: 150%, burst: 1ms}}]}}}}\n")
    result = run("slo", "bound", path, "--cluster", CLUSTER)
    assert result.returncode == 1
    assert "error: no bound: hog, storage: queue r0h7:ssd: " in result.stderr
    assert "Traceback" not in result.stderr


def test_snc_admits_a_workload_that_the_worst_case_refuses(run: Run) -> None:
    arriving = ("slo", "admit", FILE, "--cluster", CLUSTER, "--arriving", NEW)
    result = run(*arriving, "-o", "json")
    assert result.returncode == 1
    record = json.loads(result.stdout)
    mail, index = record["arrivals"]
    assert (mail["workload"], mail["admitted"], mail["refused"]) == ("mail6", True, None)
    assert (index["workload"], index["admitted"], index["runs"]) == ("index", False, True)
    assert result.stderr.startswith("error: index is refused: a bound of ")
    met = {one["workload"]: one["met"] for one in record["workloads"]}
    assert all(met[f"mail{number}"] for number in range(7))
    assert met["index"] is None
    assert "best effort, asked 99 % in 5 ms" in run(*arriving).stdout

    result = run(*arriving, "--method", "dnc")
    assert result.returncode == 1
    assert "error: mail6 is refused: " in result.stderr
    # In the worst case, one request of mail6 in service makes the six other workloads miss their SLOs.
    assert "it does not run" in result.stderr
    assert "error: mail6: even as best effort it would disturb mail0, mail1, mail2, mail3" in result.stderr
    assert "mail6 " not in result.stdout.split("\n\n")[1]


def test_a_search_for_priorities_meets_slos_that_the_order_by_slo_misses(run: Run, tmp_path: Path) -> None:
    def line(name: str, latency: str, rate: str, burst: str) -> str:
        curve = f"curves: {{storage: [{{rate: {rate}, burst: {burst}}}]}}"
        slo = f"slo: {{percentile: 99, latency: {latency}}}"
        return f"  - {{name: {name}, client: r0h0, server: r0h7, unloaded: 0s, {slo}, {curve}}}\n"

    # In the order by SLO, `bursty` has a bound of (5.3 + 0.6) / 0.9 = 6.6 ms and an SLO of 6 ms. In the other
    # order, `steady` has a bound of 5.9 / 0.999 = 5.91 ms and an SLO of 5.95 ms.
    workloads = line("steady", "5950us", "10%", "600us") + line("bursty", "6ms", "0.1%", "5300us")
    path = file(tmp_path, workloads, "margin: 0%\nbounds: {unit: fluid}")
    options = (path, "--cluster", CLUSTER, "-o", "json")
    by_slo = run("slo", "prioritize", *options, "--by-slo")
    result = run("slo", "prioritize", *options)
    assert [json.loads(one.stdout)["priorities"] for one in (by_slo, result)] == ["by-slo", "search"]
    assert "priorities: by PriorityMeister's search" in run("slo", "prioritize", *options[:3]).stderr
    ranks = [one["stages"][0]["priority"] for one in json.loads(result.stdout)["workloads"]]
    assert (by_slo.returncode, result.returncode) == (1, 0)
    assert ranks == [1, 0]
    assert "error: bursty: a bound of 6.56 ms, above its SLO of 6 ms" in by_slo.stderr


def test_priority_levels_merge_neighbouring_ranks_on_networks_only() -> None:
    workloads = load(FILE, CLUSTER)
    ranks = {
        levels: [
            {stage["priority"] for stage in one["stages"] if stage["unit"] == unit}
            for one in workloads.prioritize(levels=levels)["workloads"]
            for unit in ("bytes", "s")
        ]
        for levels in (2, 100)
    }
    assert len(set().union(*ranks[100][::2])) > 2 >= len(set().union(*ranks[2][::2]))
    assert ranks[100][1::2] == ranks[2][1::2]
    with pytest.raises(InputError, match="levels: `0`: expected a whole number from 1 to"):
        workloads.prioritize(levels=0)


def test_the_json_of_curves_and_models_gives_the_bounds_of_the_trace(run: Run, tmp_path: Path) -> None:
    trace, device = str(EXAMPLES / "mail.csv.gz"), str(EXAMPLES / "ssd.json")
    curves = run("slo", "curve", trace, "--device", device, "--percentile", "99", "-o", "json")
    model = run("slo", "model", trace, "--device", device, "-o", "json")
    (tmp_path / "curves.json").write_text(curves.stdout)
    (tmp_path / "model.json").write_text(model.stdout)
    where = "name: a, client: r0h0, server: r0h7, slo: {percentile: 99, latency: 1s}"
    bounds = []
    for source in (
        f"trace: {trace}",
        "curves: curves.json, model: model.json",
        "model: model.json, unloaded: 0s",
    ):
        workloads = load(file(tmp_path, f"  - {{{where}, {source}}}\n", "buckets: 100000"), CLUSTER)
        bounds.append([workloads.bound(method)["workloads"][0]["stages"] for method in METHODS])
    assert bounds[0] == bounds[1]
    # The file of a model has the curve, but no latencies without queueing. Another method may therefore be
    # the best one overall, so `best` is left out.
    single = [at for at, method in enumerate(METHODS) if method != "best"]
    network = [[bounds[0][at][stage]["bound_s"] for stage in (0, 2)] for at in single]
    assert network == [[bounds[2][at][stage]["bound_s"] for stage in (0, 2)] for at in single]


def test_a_trace_in_parquet_gives_the_same_bounds_as_in_csv(tmp_path: Path) -> None:
    parquet.write_table(
        csv.read_csv(pyarrow.input_stream(EXAMPLES / "mail.csv.gz")), tmp_path / "mail.parquet"
    )
    where = "name: a, client: r0h0, server: r0h7, slo: {percentile: 99, latency: 1s}"
    actual = [
        load(file(tmp_path, f"  - {{{where}, trace: {trace}}}\n"), CLUSTER).bound()["workloads"]
        for trace in (EXAMPLES / "mail.csv.gz", "mail.parquet")
    ]
    assert actual[0] == actual[1]


@pytest.mark.parametrize(
    ("text", "error", "hint"),
    [
        ("  - {name: a, client: nowhere}\n", "w.yaml:4:5: workloads[0].client: `nowhere`: ", False),
        (
            "  - {name: a, client: r0h0, trace: t.csv, colour: 1}\n",
            "workloads[0].colour: unknown field",
            True,
        ),
        ("  - {name: a, client: r0h0, server: r0h7, trace: none.csv}\n", "none.csv: no such file", False),
    ],
)
def test_an_invalid_workload_file_is_an_error_with_a_hint(
    run: Run, tmp_path: Path, text: str, error: str, hint: bool
) -> None:
    for command in ("bound", "prioritize"):
        result = run("slo", command, file(tmp_path, text), "--cluster", CLUSTER)
        assert (result.returncode, result.stdout) == (2, "")
        assert error in result.stderr.splitlines()[0]
        assert ("hint: leeward schema slo lists every field" in result.stderr) == hint


def test_a_changed_workload_is_decided_again_and_should_move_if_refused(run: Run, tmp_path: Path) -> None:
    arriving = ("slo", "admit", FILE, "--cluster", CLUSTER, "--arriving")
    record = json.loads(run(*arriving, FILE, "-o", "json").stdout)
    assert all(one["changed"] and one["admitted"] for one in record["arrivals"])
    assert record["residents"] == []

    where = "client: r0h0, server: r0h7, slo: {percentile: 99, latency: 55ms}, unloaded: 1ms"
    curves = ", ".join(
        f"{stage}: [{{rate: {rate}, burst: {burst}}}]"
        for stage, rate, burst in (
            ("network-in", "50kB/s", "8KiB"),
            ("storage", "90%", "60ms"),
            ("network-out", "2MB/s", "8KiB"),
        )
    )
    result = run(
        *arriving, file(tmp_path, f"  - {{name: mail0, {where}, curves: {{{curves}}}}}\n"), "--method", "dnc"
    )
    assert result.returncode == 1
    assert "its volume should move to a server that can keep its SLO" in result.stderr

    elsewhere = where.replace("r0h0", "r0h1")
    result = run(*arriving, file(tmp_path, f"  - {{name: mail0, {elsewhere}, curves: {{{curves}}}}}\n"))
    assert result.returncode == 2
    assert "workloads[0].server: the workload exists with another client" in result.stderr


def test_a_refused_resident_is_listed_beside_the_arrivals(run: Run) -> None:
    arriving = ("slo", "admit", FILE, "--cluster", CLUSTER, "--arriving", NEW)
    result = run(*arriving, "--method", "silo++")
    assert result.returncode == 1
    decided = [line.split()[:4] for line in result.stdout.split("\n\n")[0].splitlines()[1:]]
    assert decided[0][:3] == ["mail0", "present", "no"]
    assert decided[6] == ["mail6", "arrives", "no", "silo++"]
    assert len(decided) == 8
    assert (
        "note: silo++ bounds the frames of admitted workloads, paced at the rates of the method"
        in result.stderr
    )

    result = run(*arriving, "--method", "none")
    assert result.returncode == 0
    assert result.stdout.splitlines()[1].split() == ["mail6", "arrives", "yes"]
    assert "note: the method none computes no bounds; leeward slo bound" in result.stderr


def test_similar_notes_are_merged_with_a_count(run: Run, tmp_path: Path) -> None:
    where = "client: r0h0, server: r0h7, slo: {percentile: 99, latency: 1s}"
    curve = "curves: {storage: [{rate: 1%, burst: 1ms}]}"
    workloads = [f"  - {{name: a{number}, {where}, {curve}}}\n" for number in range(5)]
    result = run("slo", "bound", file(tmp_path, "".join(workloads)), "--cluster", CLUSTER)
    notes = [line for line in result.stderr.splitlines() if line.startswith("note: ")]
    assert len(notes) == 1
    assert notes[0].startswith("note: a0, a1, a2 and 2 more: the latency without queueing is unknown")


def test_unknown_admission_methods_and_settings_are_rejected(run: Run) -> None:
    arriving = ("slo", "admit", FILE, "--cluster", CLUSTER, "--arriving")
    result = run(*arriving, NEW, "--method", "first")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(
        "error: --method: unknown policy `first` for admission; there are: snc, dnc"
    )
    result = run(*arriving, NEW, "--method", "dnc:serch=false")
    assert (
        "error: --method: settings of dnc:1:2: serch: unknown field; expected one of bounds" in result.stderr
    )


def test_the_schema_of_slo_files_has_the_fields_of_the_examples(run: Run) -> None:
    schema = json.loads(run("schema", "slo").stdout)
    assert {"workloads", "device", "margin", "congestion", "fit"} <= schema["properties"].keys()
    workload = schema["$defs"]["WorkloadFile"]
    assert {"name", "client", "server", "slo", "trace", "curves", "limits"} <= workload["properties"].keys()
    assert set(workload["required"]) == {"name", "client"}


def test_pacing_policies_report_their_bounds_and_none_for_best_effort(run: Run, tmp_path: Path) -> None:
    def mail(name: str, client: str, latency: str) -> str:
        slo = f"slo: {{percentile: 99, latency: {latency}}}"
        curves = "curves: {network-out: [{rate: 2MB/s, burst: 1500B}]}"
        return f"  - {{name: {name}, client: {client}, server: r0h7, {slo}, {curves}}}\n"

    there = file(tmp_path, mail("a", "r0h0", "20ms"))
    (tmp_path / "new").mkdir()
    new = file(tmp_path / "new", mail("b", "r0h1", "10ms") + mail("c", "r0h2", "1us"))
    arriving = ("slo", "admit", there, "--cluster", CLUSTER, "--arriving", new, "--method")
    for policy in ("silo++", "qjump++:rates=[6250000]"):
        result = run(*arriving, policy, "-o", "json")
        record = json.loads(result.stdout)
        a, b, c = record["workloads"]
        assert (record["paced"], record["method"], record["bounds"]["unit"]) == (True, "dnc", "frames")
        assert (a["by"], b["by"], c["by"]) == ("dnc", "dnc", None)
        assert 0 < a["bound_s"] <= 0.02
        assert 0 < b["bound_s"] <= 0.01
        assert (a["met"], b["met"], c["bound_s"]) == (True, True, None)
        assert f"note: {policy} bounds the frames of admitted workloads" in run(*arriving, policy).stderr
    assert all(
        one["bound_s"] is None for one in json.loads(run(*arriving, "none", "-o", "json").stdout)["workloads"]
    )


TWO = """
racks: 2
hosts_per_rack: 4
nic: 1Gbps
rack_link: 100Mbps
priorities: 8
"""


def links(tmp_path: Path, name: str, workloads: str, head: str = "") -> str:
    """A file of workloads that use only links."""
    path = tmp_path / name
    path.write_text(f"{head}\nmargin: 0%\nstages: [network-in]\nworkloads:\n{workloads}")
    return str(path)


def link(name: str, latency: str | None, bucket: str, more: str = "") -> str:
    """A workload from one rack to the other."""
    slo = f", slo: {{percentile: 99, latency: {latency}}}" if latency else ""
    curves = f"curves: {{network-in: [{{{bucket}}}]}}"
    return f"  - {{name: {name}, client: r0h0, server: r1h0, {curves}{slo}{more}}}\n"


def test_arrivals_with_another_congestion_setting_are_rejected(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "two.yaml"
    cluster.write_text(TWO)
    there = links(tmp_path, "there.yaml", link("a", "50ms", "rate: 5MB/s, burst: 100kB"))
    new = links(tmp_path, "new.yaml", link("b", "50ms", "rate: 5MB/s, burst: 100kB"), "congestion: hosts")
    arguments = ("slo", "admit", there, "--cluster", str(cluster), "--method", "dnc", "--arriving", new)
    result = run(*arguments)
    assert result.returncode == 2
    assert f"error: {new}: congestion: differs from the value in {there}, which applies" in result.stderr
    links(tmp_path, "new.yaml", link("b", "50ms", "rate: 5MB/s, burst: 100kB"))
    record = json.loads(run(*arguments, "-o", "json").stdout)
    assert record["arrivals"][0]["admitted"]
    assert all("r0:uplink" in one["stages"][0]["queues"] for one in record["workloads"])


def test_best_effort_work_that_may_not_run_is_not_admitted(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "two.yaml"
    cluster.write_text(TWO)
    there = links(tmp_path, "there.yaml", link("a", "40ms", "rate: 5MB/s, burst: 100kB"))
    new = links(tmp_path, "new.yaml", link("bulk", None, "rate: 1MB/s, burst: 1MB"))
    arguments = ("slo", "admit", there, "--cluster", str(cluster), "--method", "dnc", "--arriving", new)
    result = run(*arguments)
    assert result.returncode == 1
    assert "bulk      arrives  no        it would disturb a" in result.stdout
    (bulk,) = json.loads(run(*arguments, "-o", "json").stdout)["arrivals"]
    assert (bulk["admitted"], bulk["runs"], bulk["refused"], bulk["disturbed"]) == (False, False, None, ["a"])


def test_admission_reports_merged_levels_order_and_margins(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "two.yaml"
    cluster.write_text(TWO)
    ranks = "".join(link(f"w{at}", f"{at + 1}00ms", "rate: 10kB/s, burst: 10kB") for at in range(10))
    there = links(tmp_path, "there.yaml", ranks)
    arriving = tmp_path / "new.yaml"
    arriving.write_text(
        "margin: 20%\nstages: [network-in]\nworkloads:\n" + link("x", "150ms", "rate: 10kB/s, burst: 10kB")
    )
    arguments = ("slo", "admit", there, "--cluster", str(cluster), "--arriving", str(arriving), "--method")
    result = run(*arguments, "dnc:levels=3")
    assert result.returncode == 0, result.stderr
    assert "priorities: the tightest SLO first; 11 ranks merged into 3 levels on networks" in result.stderr
    assert "margin: curves are 0 % above" in result.stderr
    assert "margin: 20 % for arriving workloads" in result.stderr
    record = json.loads(run(*arguments, "dnc:levels=3", "-o", "json").stdout)
    assert (record["levels"], record["merged_ranks"], record["priorities"]) == (3, 11, "by-slo")
    assert {stage["priority"] for one in record["workloads"] for stage in one["stages"]} == {0, 1, 2}
    actual = run("slo", "prioritize", there, "--cluster", str(cluster), "--levels", "4", "-o", "json").stdout
    assert (json.loads(actual)["levels"], json.loads(actual)["merged_ranks"]) == (4, 10)


def test_a_percentile_near_100_is_shown_with_all_its_digits(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "two.yaml"
    cluster.write_text(TWO)
    path = links(
        tmp_path, "w.yaml", link("a", "90ms", "rate: 5MB/s, burst: 100kB").replace("99,", "99.99999,")
    )
    result = run("slo", "bound", path, "--cluster", str(cluster))
    assert result.returncode == 0, result.stderr
    assert "99.99999 % in 90 ms" in result.stdout


def test_limits_below_a_request_enter_the_bounds_of_others_on_frame_links(run: Run, tmp_path: Path) -> None:
    cluster, big, small = (tmp_path / name for name in ("two.yaml", "big.csv", "small.csv"))
    cluster.write_text(TWO)
    big.write_text("seconds,kind,size\n" + "".join(f"{at / 2},write,500000\n" for at in range(100)))
    small.write_text("seconds,kind,size\n" + "".join(f"{at / 50},write,4096\n" for at in range(2500)))
    place = "client: r0h0, server: r1h0"
    path = links(
        tmp_path,
        "w.yaml",
        f"  - {{name: big, {place}, slo: {{percentile: 99, latency: 9s}}, trace: {big}, priority: 0,\n"
        "     limits: {network-in: [{rate: 5MB/s, burst: 1500B}]}}\n"
        f"  - {{name: small, {place}, slo: {{percentile: 99, latency: 1s}}, trace: {small}, priority: 1}}\n",
        "bounds: {unit: frames}",
    )
    result = run("slo", "check", path, "--cluster", str(cluster), "--replay", "--method", "dnc", "-o", "json")
    assert result.returncode == 0, result.stderr
    for one in json.loads(result.stdout)["workloads"]:
        assert one["seen"]["worst_s"] <= one["bound_s"]
        assert one["broken"] == []
    assert json.loads(result.stdout)["workloads"][1]["seen"]["worst_s"] > 0.04


def md1_tail(load: float, service: float, share: float) -> float:
    """Latency that this share of requests does not exceed in M/D/1, in seconds (Erlang, 1909)."""

    def within(wait: float) -> float:
        whole = int(wait / service)
        terms = []
        for jobs in range(whole + 1):
            early = load / service * (jobs * service - wait)
            terms.append((-1) ** jobs * abs(early) ** jobs / math.factorial(jobs) * math.exp(-early))
        return (1 - load) * math.fsum(terms)

    low, high = 0.0, 20 * service
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) < share else (low, middle)
    return high + service


def test_a_poisson_stream_has_a_stochastic_bound_near_that_of_erlang(run: Run, tmp_path: Path) -> None:
    expected = md1_tail(0.3, 1e-3, 0.999)
    assert expected == pytest.approx(4.03e-3, rel=0.01)
    times = numpy.cumsum(numpy.random.default_rng(7).exponential(1 / 300, 30_000))
    lines = "".join(f"{time:.9f},read,4096\n" for time in times)
    (tmp_path / "t.csv").write_text(f"seconds,kind,size\n{lines}")
    (tmp_path / "d.json").write_text(
        '{"table": [{"size_bytes": 4096, "read_iops": 1000, "write_iops": 1000}]}'
    )
    (tmp_path / "w.yaml").write_text(
        "{device: d.json, margin: 0%, stages: [storage], workloads: [{name: w, client: r0h0, server: r0h7, "
        "slo: {percentile: 99.9, latency: 1s}, trace: t.csv}]}"
    )
    cluster = str(EXAMPLES / "cluster.yaml")
    result = run("slo", "bound", "w.yaml", "--cluster", cluster, "--method", "snc", "-o", "json")
    assert result.returncode == 0, result.stderr
    bound = json.loads(result.stdout)["workloads"][0]["bound_s"]
    assert expected <= bound <= 1.7 * expected


def test_commands_assume_the_same_numbers(run: Run, tmp_path: Path) -> None:
    # The trace, and its curves as another command prints them, give the same demands to every command.
    device, trace = str(EXAMPLES / "ssd.json"), str(EXAMPLES / "mail.csv.gz")
    curves = run("slo", "curve", trace, "--device", device, "--percentile", "99", "-o", "json")
    (tmp_path / "curves.json").write_text(curves.stdout)
    assert json.loads(curves.stdout)["trace"]["outstanding"] == 4
    models = run("slo", "model", trace, "--device", device, "-o", "json")
    assert {one["stage"]: one.get("outstanding") for one in json.loads(models.stdout)}["storage"] == 4
    common = "client: r0h0, slo: {percentile: 99, latency: 80ms}"
    text = (
        f"margin: 25%\ndevice: {device}\nworkloads:\n- {{name: a, {common}, trace: {trace}SERVER}}\n"
        f"- {{name: b, {common}, curves: curves.jsonSERVER}}\n"
    )
    (tmp_path / "placed.yaml").write_text(text.replace("SERVER", ", server: r0h7"))
    (tmp_path / "free.yaml").write_text(text.replace("SERVER", ""))
    (tmp_path / "cluster.yaml").write_text((EXAMPLES / "cluster.yaml").read_text() + "\npriorities: 8\n")

    def numbers(*command: str) -> dict[str, Any]:
        result = run("slo", *command, "--cluster", "cluster.yaml", "-o", "json")
        assert result.returncode in (0, 1), result.stderr
        record = json.loads(result.stdout)
        found = {}
        for one in record["workloads"]:
            if one["workload"] in ("a", "b"):
                names = ("stage", "mean_rate", "largest", "unloaded_s", "outstanding")
                stages = [tuple(stage[name] for name in names) for stage in one["stages"]]
                found[one["workload"]] = (one["slo"], stages)
        return {"bounds": record["bounds"], "margin": record["margin"], **found}

    first = numbers("bound", "placed.yaml")
    assert first["a"][1] == first["b"][1]
    assert numbers("prioritize", "placed.yaml") == first
    assert numbers("pack", "free.yaml") == first


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "trace: mail.csv.gz, outstanding: 4",
            "workloads[0].outstanding: expected none: the device file states",
        ),
        (
            "curves: curves.json, outstanding: 3",
            "outstanding: 3, but its curve or model is of a device with 4 at once",
        ),
        (
            "model: model.json, outstanding: 3",
            "outstanding: 3, but its curve or model is of a device with 4 at once",
        ),
        (
            "curves: curves.json}], bounds: {outstanding: 3}, x: [{",
            "bounds.outstanding: 3, but a has 4 requests at once: leave one of the two out",
        ),
        ("curves: curves.json, outstanding: 0", "outstanding: `0`: expected a whole number from 1"),
        ("trace: mail.csv.gz}], bounds: {outstanding: 3}, x: [{", "bounds.outstanding: 3, but"),
    ],
)
def test_a_number_of_requests_at_once_that_contradicts_the_device_is_an_error(
    run: Run, tmp_path: Path, source: str, message: str
) -> None:
    (tmp_path / "mail.csv.gz").write_bytes((EXAMPLES / "mail.csv.gz").read_bytes())
    device = str(EXAMPLES / "ssd.json")
    curves = run("slo", "curve", "mail.csv.gz", "--device", device, "--percentile", "99", "-o", "json")
    (tmp_path / "curves.json").write_text(curves.stdout)
    models = run("slo", "model", "mail.csv.gz", "--device", device, "-o", "json")
    (tmp_path / "model.json").write_text(models.stdout)
    common = "name: a, client: r0h0, server: r0h7, slo: {percentile: 99, latency: 80ms}"
    (tmp_path / "w.yaml").write_text(
        f"{{device: {device}, workloads: [{{{common}, {source}}}]}}".replace(", x: [{}]", "")
    )
    result = run("slo", "bound", "w.yaml", "--cluster", CLUSTER)
    assert result.returncode == 2
    assert message in result.stderr
