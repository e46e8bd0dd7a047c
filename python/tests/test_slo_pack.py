"""Packing of volumes onto servers, and its bounds in a replay, from Python and on the command line."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from pyarrow import parquet

from leeward.errors import InputError
from leeward.slo import LIMITS, ORDERS, SERVER_ORDERS, apply_packing, check, dump_packing, pack

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples" / "slo"
VOLUMES, SERVERS = str(EXAMPLES / "volumes.yaml"), str(EXAMPLES / "servers.yaml")
FILE, CLUSTER = str(EXAMPLES / "w.yaml"), str(EXAMPLES / "cluster.yaml")


def file(tmp_path: Path, workloads: str, head: str = "") -> str:
    """A file of workloads beside the examples' traces."""
    path = tmp_path / "volumes.yaml"
    path.write_text(f"device: {EXAMPLES}/ssd.json\n{head}\nworkloads:\n{workloads}")
    return str(path)


def mail(name: str, latency: str, more: str = "") -> str:
    """A mail volume."""
    slo = f"slo: {{percentile: 99, latency: {latency}}}"
    return f"  - {{name: {name}, client: clientsh0, trace: {EXAMPLES}/mail.csv.gz, {slo}{more}}}\n"


def test_servers_are_tried_in_an_order(run: Run) -> None:
    servers = {
        order: [one["server"] for one in pack(VOLUMES, SERVERS, method="dnc", servers_by=order)["workloads"]]
        for order in SERVER_ORDERS
    }
    assert all(len(packed) == len(servers["first"]) for packed in servers.values())
    result = run(
        "slo",
        "pack",
        VOLUMES,
        "--cluster",
        SERVERS,
        "--method",
        "dnc",
        "--servers-by",
        "least-load",
        "-o",
        "json",
    )
    assert [one["server"] for one in json.loads(result.stdout)["workloads"]] == servers["least-load"]
    wrong = run("slo", "pack", VOLUMES, "--cluster", SERVERS, "--servers-by", "load")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: --servers-by: `load`: expected one of first, fewest-workloads")


def test_packed_volumes_meet_their_slos_in_the_check_and_the_replay(run: Run, tmp_path: Path) -> None:
    packed = tmp_path / "packed.yaml"
    arguments = (VOLUMES, "--cluster", SERVERS, "--method", "dnc")
    result = run("slo", "pack", *arguments, "--out", str(packed), "-o", "json")
    assert result.returncode == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["refused"] == []
    assert len(record["workloads"]) == 8
    assert 1 <= record["servers_used"] <= 6
    assert all(0 < one["share"] <= 1 for one in record["reserved"])
    assert {stage["stage"] for stage in record["workloads"][0]["stages"]} == {
        "network-in",
        "storage",
        "network-out",
    }
    held, rows = check(packed, SERVERS, method="dnc", rows=True)
    promised = {one["workload"]: one for one in record["workloads"]}
    for one in held["workloads"]:
        assert (one["met"], one["kept"], one["broken"]) == (True, True, [])
        assert one["bound_s"] == pytest.approx(promised[one["workload"]]["bound_s"], rel=1e-3)
        assert one["seen"]["worst_s"] <= one["bound_s"]
    assert rows is not None
    assert rows.num_rows == sum(one["seen"]["requests"] for one in held["workloads"])
    worst = max(one["seen"]["worst_s"] for one in held["workloads"])
    assert max(rows["latency_s"].to_pylist()) == pytest.approx(worst, abs=1e-9)


def test_placements_do_not_depend_on_the_number_of_threads() -> None:
    assert pack(VOLUMES, SERVERS, threads=2) == pack(VOLUMES, SERVERS)


def test_progress_is_reported_for_every_workload() -> None:
    updates: list[int] = []
    pack(VOLUMES, SERVERS, limits="average", progress=updates.append)
    assert updates == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("limits", LIMITS)
def test_each_method_of_choosing_limits_places_or_refuses_with_a_reason(limits: str) -> None:
    record = pack(VOLUMES, SERVERS, limits=limits, fast=True)
    names = [one["workload"] for one in record["workloads"]] + [one["workload"] for one in record["refused"]]
    assert len(names) == len(set(names)) == 8
    assert all(one["why"] for one in record["refused"])


def test_a_refused_workload_exits_with_1_and_is_left_out_of_the_output(run: Run, tmp_path: Path) -> None:
    workload_file = file(tmp_path, mail("first", "200ms") + mail("never", "9ms"), "fit: {interval: 20ms}")
    result = run("slo", "pack", workload_file, "--cluster", SERVERS, "-o", "yaml")
    assert result.returncode == 1
    assert "error: never is refused: " in result.stderr
    assert [one["name"] for one in yaml.safe_load(result.stdout)["workloads"]] == ["first"]


NAMES = ("yes", "off", "1_000", "1.10", "010", "12", "0x1f", "1e3", "2020-01-01", "2020-13-45")


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_workload_names_are_kept_as_the_text_in_the_file(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"names.{ending}"
    if ending == "yaml":
        first, *others = NAMES
        slo = "slo: {percentile: 99, latency: 2s}, stages: [storage]"
        lines = [f"  - &it {{name: {first}, client: clientsh0, trace: {EXAMPLES}/mail.csv.gz, {slo}}}\n"]
        lines += [f"  - {{<<: *it, name: {name}}}\n" for name in others]
        path.write_text(
            f"device: {EXAMPLES}/ssd.json\nname: ~\nbounds: {{fifo: true}}\nworkloads:\n{''.join(lines)}"
        )
    else:
        promised = {"percentile": 99, "latency": "2s"}
        one = {"client": "clientsh0", "trace": f"{EXAMPLES}/mail.csv.gz", "slo": promised}
        workloads = [{"name": name, "stages": ["storage"], **one} for name in NAMES]
        # Tabs are whitespace in JSON, but not in YAML.
        path.write_text(json.dumps({"device": f"{EXAMPLES}/ssd.json", "workloads": workloads}, indent="\t"))
    record = pack(path, SERVERS)
    assert tuple(one["workload"] for one in record["workloads"]) == NAMES
    again = tmp_path / "packed.yaml"
    again.write_text(dump_packing(record, tmp_path))
    assert "percentile: 99\n" in again.read_text()
    held, _ = check(again, SERVERS, method="dnc")
    assert tuple(one["workload"] for one in held["workloads"]) == NAMES
    assert all(one["met"] and one["kept"] for one in held["workloads"])


def test_a_file_that_changed_after_packing_is_an_input_error(tmp_path: Path) -> None:
    workload_file = file(tmp_path, mail("first", "200ms") + mail("second", "200ms"))
    record = pack(workload_file, SERVERS, limits="average")
    file(tmp_path, mail("first", "200ms"))
    with pytest.raises(InputError, match="workload `second` was packed and is not in the file"):
        apply_packing(record)
    for text in ("", "[1]", "workloads: 1", "workloads: [{}]", "a: [", "a: &a [*a"):
        Path(workload_file).write_text(text)
        with pytest.raises(InputError, match="cannot be read again"):
            apply_packing(record)


def test_no_file_is_written_when_every_workload_is_refused(run: Run, tmp_path: Path) -> None:
    workload_file = file(tmp_path, mail("never", "9ms"), "fit: {interval: 20ms}")
    packed = tmp_path / "packed.yaml"
    packed.write_text("as it was")
    result = run("slo", "pack", workload_file, "--cluster", SERVERS, "--out", str(packed))
    assert (result.returncode, packed.read_text()) == (1, "as it was")
    assert "wrote nothing: no workload was placed" in result.stderr
    result = run("slo", "pack", workload_file, "--cluster", SERVERS, "-o", "yaml")
    assert (result.returncode, result.stdout) == (1, "")


def test_the_result_may_overwrite_the_input_file(run: Run, tmp_path: Path) -> None:
    workload_file = Path(file(tmp_path, mail("first", "200ms")))
    result = run("slo", "pack", str(workload_file), "--cluster", SERVERS, "--out", str(workload_file))
    assert result.returncode == 0, result.stderr
    assert "server: serversh0:ssd" in workload_file.read_text()
    assert [path.name for path in tmp_path.iterdir()] == [workload_file.name]


@pytest.mark.parametrize(
    "arguments",
    [
        ("pack", VOLUMES, "--cluster", SERVERS, "--out"),
        ("check", FILE, "--cluster", CLUSTER, "--replay", "--out"),
    ],
)
def test_an_output_path_in_a_missing_folder_is_rejected_before_the_work(
    run: Run, arguments: tuple[str, ...]
) -> None:
    result = run("slo", *arguments, "nodir/x")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"error: {arguments[-1]}: `nodir/x`: there is no folder `nodir`\n"


def test_settings_follow_the_limits_and_the_former_flag_works_alone(run: Run) -> None:
    command = ("slo", "pack", VOLUMES, "--cluster", SERVERS, "-o", "json")
    now = run(*command, "--limits", "compactor:slack=0.2")
    former = run(*command, "--settings", "{slack: 0.2}")
    assert now.stdout == former.stdout
    assert "warning: --settings is now a part of --limits" in former.stderr
    both = run(*command, "--limits", "compactor:slack=0.1", "--settings", "{slack: 0.2}")
    assert both.returncode == 2
    assert "error: --settings: given twice" in both.stderr


def test_deep_nesting_and_exponential_merges_are_errors_without_a_traceback(run: Run, tmp_path: Path) -> None:
    deep = "[" * 5000
    settings = run("slo", "pack", VOLUMES, "--cluster", SERVERS, "--limits", f"compactor:slack={deep}")
    assert (settings.returncode, settings.stdout) == (2, "")
    assert settings.stderr == "error: settings of compactor:1:74: nested too deeply\n"
    path = tmp_path / "deep.yaml"
    path.write_text(f"workloads: {deep}")
    result = run("slo", "pack", str(path), "--cluster", SERVERS)
    assert result.returncode == 2
    assert "workloads: nested too deeply" in result.stderr.splitlines()[0]
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n + 1}: &a{n + 1} {{<<: [{', '.join(10 * [f'*a{n}'])}]}}" for n in range(30)]
    path.write_text("\n".join([*lines, "workloads: []"]))
    assert run("slo", "pack", str(path), "--cluster", SERVERS).returncode == 2


@pytest.mark.parametrize("margin", ["5", "-1%", "nan%", "10%%", "1e300%", "ten"])
def test_a_margin_outside_0_to_1e9_percent_is_rejected(run: Run, margin: str) -> None:
    trace = str(EXAMPLES / "mail.csv.gz")
    for arguments in (("pack", VOLUMES, "--cluster", SERVERS), ("curve", trace)):
        result = run("slo", *arguments, "--margin", margin)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"error: --margin: `{margin}`: expected a percentage from 0% to 1e9%")


def test_packing_on_a_cluster_without_priorities_is_an_error(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "fifo.yaml"
    cluster.write_text(Path(SERVERS).read_text().replace("priorities: 8\n", ""))
    result = run("slo", "pack", VOLUMES, "--cluster", str(cluster))
    assert result.returncode == 2
    assert "give the cluster `priorities`" in result.stderr


def test_a_server_in_the_file_is_an_error_unless_again_is_given(tmp_path: Path) -> None:
    workload_file = file(tmp_path, mail("first", "200ms", ", server: serversh2"), "fit: {interval: 20ms}")
    with pytest.raises(InputError, match="packing chooses it") as caught:
        pack(workload_file, SERVERS)
    assert caught.value.field == "workloads[0].server"
    assert pack(workload_file, SERVERS, again=True)["workloads"][0]["server"] == "serversh0:ssd"


def test_packing_a_packed_file_hints_at_the_again_option(run: Run, tmp_path: Path) -> None:
    workload_file = file(tmp_path, mail("first", "200ms", ", server: serversh2"), "fit: {interval: 20ms}")
    result = run("slo", "pack", workload_file, "--cluster", SERVERS)
    assert result.returncode == 2
    assert result.stderr.endswith("hint: --again discards servers, priorities and limits of the file\n")
    assert result.stderr.count("hint:") == 1


RACK = """
racks: 1
hosts_per_rack: 8
priorities: 8
nic: 1Gbps
rack_link: 8Gbps
devices: [{name: ssd, read: 450MB/s, write: 330MB/s}]
"""


def own(name: str, client: str, more: str = "") -> str:
    """A mail volume whose client is also a server."""
    return mail(name, "200ms", more).replace("clientsh0", client)


def test_clients_that_are_servers_are_packed_and_meet_their_slos_in_the_replay(tmp_path: Path) -> None:
    cluster = tmp_path / "rack.yaml"
    cluster.write_text(RACK)
    workload_file = file(tmp_path, own("near", "r0h0") + own("far", "r0h1"), "fit: {interval: 20ms}")
    record = pack(workload_file, cluster)
    near, far = record["workloads"]
    assert (near["server"], far["server"]) == ("r0h0:ssd", "r0h0:ssd")
    assert [(stage["queues"] == [], stage["bound_s"] == 0) for stage in near["stages"]] == [
        (True, True),
        (False, False),
        (True, True),
    ]
    packed = tmp_path / "packed.yaml"
    packed.write_text(dump_packing(record, tmp_path))
    held, _ = check(packed, cluster)
    for one, planned in zip(held["workloads"], record["workloads"], strict=True):
        assert (one["met"], one["kept"], one["broken"]) == (True, True, [])
        assert one["bound_s"] == pytest.approx(planned["bound_s"], rel=1e-3)
    assert any("near: `r0h0` is its client and its server" in note for note in held["notes"])
    # With another client, the workload has all of its stages again.
    moved = yaml.safe_load(packed.read_text())
    moved["workloads"][0]["client"] = "r0h5"
    packed.write_text(yaml.safe_dump(moved))
    again = pack(packed, cluster, again=True)["workloads"][0]
    assert all(stage["queues"] and stage["bound_s"] > 0 for stage in again["stages"])


def test_a_network_only_workload_on_its_own_client_has_a_bound_of_zero(run: Run, tmp_path: Path) -> None:
    cluster, workload_file, packed = (tmp_path / name for name in ("rack.yaml", "self.yaml", "packed.yaml"))
    cluster.write_text(RACK)
    bucket = "[{rate: 1MB/s, burst: 10kB}]"
    workload_file.write_text(
        "stages: [network-in, network-out]\nworkloads:\n  - name: a\n    client: r0h0\n"
        "    slo: {percentile: 99, latency: 100ms}\n"
        f"    curves: {{network-in: {bucket}, network-out: {bucket}}}\n"
    )
    result = run(
        "slo", "pack", str(workload_file), "--cluster", str(cluster), "--out", str(packed), "-o", "json"
    )
    assert result.returncode == 0, result.stderr
    (one,) = json.loads(result.stdout)["workloads"]
    assert (one["server"], one["bound_s"], one["met"]) == ("r0h0:ssd", 0, True)
    for command in (("bound",), ("check", "--replay")):
        result = run("slo", command[0], str(packed), "--cluster", str(cluster), *command[1:])
        assert result.returncode == 0, result.stderr
        assert "it crosses no link" in result.stderr


def test_a_workload_file_from_a_pipe_is_packed_written_and_replayed(tmp_path: Path) -> None:
    leeward = Path(sys.executable).with_name("leeward")
    packed = tmp_path / "packed.yaml"
    text = (
        Path(VOLUMES)
        .read_text()
        .replace(": mail", f": {EXAMPLES}/mail")
        .replace(": ssd", f": {EXAMPLES}/ssd")
    )
    (tmp_path / "v.yaml").write_text(text)
    line = (
        f"{leeward} slo pack <(cat {tmp_path}/v.yaml) --cluster {SERVERS} --limits several --write {packed}"
    )
    line += f" && {leeward} slo check <(cat {packed}) --cluster {SERVERS} --replay --method dnc"
    result = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert f"wrote {packed}" in result.stderr


def test_a_margin_below_the_margin_of_the_file_is_rejected() -> None:
    with pytest.raises(InputError, match=r"^margin: 5 %: expected at least 10 %, the margin of the curves"):
        pack(VOLUMES, SERVERS, margin=0.05)
    assert pack(VOLUMES, SERVERS, limits="average", margin=0.5)["margin"] == 0.5


def test_file_paths_in_the_result_are_relative_to_its_folder(tmp_path: Path) -> None:
    written = apply_packing(pack(VOLUMES, SERVERS, limits="average"), tmp_path)
    assert (tmp_path / written["device"]).resolve() == EXAMPLES / "ssd.json"
    assert (tmp_path / written["workloads"][0]["trace"]).resolve() == EXAMPLES / "mail.csv.gz"


def test_a_replay_names_workloads_without_a_trace_and_writes_request_latencies(
    run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "requests.parquet"
    options = ("--replay", "--method", "dnc", "--out", str(out))
    result = run("slo", "check", FILE, "--cluster", CLUSTER, *options)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("WORKLOAD")
    assert "note: backup: no trace, so the workload sent nothing" in result.stderr
    table = parquet.read_table(out)
    assert table.column_names[:3] == ["workload", "arrival_s", "latency_s"]
    assert set(table["workload"].to_pylist()) == {f"mail{number}" for number in range(6)}


def test_check_without_a_replay_prints_the_same_as_bound(run: Run) -> None:
    checked = run("slo", "check", FILE, "--cluster", CLUSTER, "--method", "dnc")
    bounds = run("slo", "bound", FILE, "--cluster", CLUSTER, "--method", "dnc")
    assert (checked.stdout, checked.returncode) == (bounds.stdout, bounds.returncode)
    result = run("slo", "check", FILE, "--cluster", CLUSTER, "--over", "held")
    assert (result.returncode, "--over requires --replay" in result.stderr) == (2, True)


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_replays_every_request(order: str) -> None:
    record, rows = check(FILE, CLUSTER, method="dnc", order=order)
    assert rows is None
    assert len({one["seen"]["requests"] for one in record["workloads"] if one["traced"]}) == 1


@pytest.mark.parametrize("options", [("--order", "fifo"), ("--over", "demoted")])
def test_bounds_are_not_confirmed_by_a_replay_of_another_queueing_order(
    run: Run, options: tuple[str, str]
) -> None:
    result = run("slo", "check", FILE, "--cluster", CLUSTER, "--replay", "--method", "dnc", *options)
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert {row[-1] for row in rows} <= {"-", "EXCEEDED"}
    assert "note: bounds assume strict priorities and requests held at limits" in result.stderr


def test_bounds_and_replays_take_the_requests_at_once_from_the_device(tmp_path: Path) -> None:
    def device(reads: int) -> str:
        profile = json.loads((Path(FILE).parent / "ssd.json").read_text())
        del profile["outstanding"]
        profile |= {"outstanding_reads": reads, "outstanding_writes": 1}
        (tmp_path / "ssd.json").write_text(json.dumps(profile))
        (tmp_path / "mail.csv.gz").write_bytes((Path(FILE).parent / "mail.csv.gz").read_bytes())
        (tmp_path / "w.yaml").write_text(Path(FILE).read_text())
        return str(tmp_path / "w.yaml")

    few, _ = check(device(1), CLUSTER, method="dnc")
    many, _ = check(device(31), CLUSTER, method="dnc")
    for record, at_once in ((few, 2), (many, 32)):
        assert {queue["outstanding"] for queue in record["queues"]} == {1, at_once}
        assert all(workload["broken"] == [] for workload in record["workloads"])
    assert many["workloads"][0]["bound_s"] > few["workloads"][0]["bound_s"]
    contradicting = Path(device(31)).read_text() + "\nbounds: {outstanding: 8}\n"
    (tmp_path / "w.yaml").write_text(contradicting)
    message = r"bounds.outstanding: 8, but ssd.json was measured with 32 requests at once"
    with pytest.raises(InputError, match=message):
        check(str(tmp_path / "w.yaml"), CLUSTER)


@pytest.mark.parametrize("argument", ["method", "over", "order"])
def test_an_unknown_choice_is_rejected_with_the_list_of_choices(argument: str) -> None:
    with pytest.raises(InputError, match="expected one of"):
        check(FILE, CLUSTER, **{argument: "best-of-all"})  # type: ignore[arg-type]


def test_drawn_tails_repeat_with_the_seed_and_lengthen_the_worst_latency() -> None:
    alone, _ = check(FILE, CLUSTER, method="dnc")
    one, rows = check(FILE, CLUSTER, method="dnc", tails=True, seed=3, rows=True)
    again, same = check(FILE, CLUSTER, method="dnc", tails=True, seed=3, rows=True)
    other, _ = check(FILE, CLUSTER, method="dnc", tails=True, seed=4)
    assert (one, rows) == (again, same)
    assert one["workloads"] != other["workloads"]
    assert (alone["tails_seed"], one["tails_seed"], other["tails_seed"]) == (None, 3, 4)
    for drawn, worked in zip(one["workloads"], alone["workloads"], strict=True):
        assert drawn["bound_s"] == worked["bound_s"]
        if drawn["traced"]:
            assert drawn["seen"]["requests"] == worked["seen"]["requests"]
            assert drawn["seen"]["worst_s"] > worked["seen"]["worst_s"]


def test_the_tails_and_seed_flags_control_drawn_tails(run: Run) -> None:
    replay = ("slo", "check", FILE, "--cluster", CLUSTER, "--replay", "--method", "dnc")
    result = run(*replay, "--tails", "--seed", "3", "-o", "json")
    assert json.loads(result.stdout) == check(FILE, CLUSTER, method="dnc", tails=True, seed=3)[0]
    assert "times without queueing are drawn with seed 1" in run(*replay, "--tails").stderr
    unseeded = run(*replay, "--seed", "3")
    assert (unseeded.returncode, "--seed requires --tails" in unseeded.stderr) == (2, True)
    unreplayed = run("slo", "check", FILE, "--cluster", CLUSTER, "--tails")
    assert (unreplayed.returncode, "--tails requires --replay" in unreplayed.stderr) == (2, True)


def test_tails_without_measured_device_times_are_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bare.json").write_text(
        '{"table": [{"size_bytes": 4096, "read_iops": 60000, "write_iops": 40000}]}'
    )
    workload_file = tmp_path / "w.yaml"
    where = f"client: r0h0, server: r0h7, trace: {EXAMPLES / 'mail.csv.gz'}"
    workload_file.write_text(
        f"device: bare.json\nfit: {{interval: 20ms}}\nworkloads:\n  - {{name: a, {where}}}\n"
    )
    result = run("slo", "check", str(workload_file), "--cluster", CLUSTER, "--replay", "--tails")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: --tails: no workload with a trace has a device file with times")
