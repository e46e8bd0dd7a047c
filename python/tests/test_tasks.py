"""Tasks: placement by the command and from Python, advised moves, and apps on the fluid network."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

import leeward
from leeward import InputError, _native

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples"

TENANT = """\
shape: hose
nic: 800Mbps
hosts: 4
cpus: 2
"""
APP = """\
name: pair
tasks:
  - {name: a, cpus: 2}
  - {name: b, cpus: 2}
  - {name: c, cpus: 500m}
transfers:
  - {from: a, to: b, bytes: 100MB}
  - {from: b, to: c, bytes: 1MB}
"""


@pytest.fixture
def tenant(tmp_path: Path) -> Path:
    (tmp_path / "app.yaml").write_text(APP)
    (tmp_path / "tenant.yaml").write_text(TENANT)
    return tmp_path / "tenant.yaml"


def test_an_app_is_placed_with_the_link_that_limits_each_transfer(run: Run, tenant: Path) -> None:
    result = run(
        "place", "tasks", "--cluster", str(tenant), "--app", "app.yaml", "--policy", "choreo", "--explain"
    )
    assert result.returncode == 0, result.stderr
    header, *rows = result.stdout.splitlines()
    assert header.split() == ["TASK", "HOST"]
    hosts = dict(row.split() for row in rows[:3])
    assert len({hosts["a"], hosts["b"], hosts["c"]}) == 3
    assert f"{hosts['a']}:egress" in result.stdout
    assert "transfers end after 1 s" in result.stdout


def test_each_refused_task_has_a_reason(tenant: Path) -> None:
    large = leeward.place_tasks(tenant, matrix=[[0]], cpus="3", policy="choreo")
    assert isinstance(large["refused"], list)
    assert len(large["refused"]) == 1
    assert "task0" in large["refused"][0]
    app = tenant.with_name("alone.yaml")
    app.write_text("tasks:\n  - {name: a, cpus: 3}\n  - {name: b, cpus: 1}\n  - {name: c, cpus: 3}\n")
    alone = leeward.place_tasks(tenant, app, policy="borg", together=False)
    assert len(alone["refused"] or ()) == 2
    assert [task["host"] is None for task in alone["tasks"]] == [True, False, True]


def test_json_equals_the_python_decision(run: Run, tenant: Path) -> None:
    options = ["--cluster", str(tenant), "--app", "app.yaml", "--policy", "choreo-exact", "-o", "json"]
    decision = json.loads(run("place", "tasks", *options).stdout)
    assert decision["refused"] is None
    assert (decision["completion_s"], decision["time_gap"], decision["proven"]) == (1.0, 0.0, True)
    assert [one["limit"].endswith(":egress") for one in decision["transfers"]] == [True, True]
    assert decision == leeward.place_tasks(
        tenant, tenant.parent / "app.yaml", policy="choreo-exact", explain=0
    )


def test_a_task_that_fits_nowhere_is_named_with_reason_and_host_count(run: Run, tenant: Path) -> None:
    (tenant.parent / "app.yaml").write_text("tasks: [{name: big, cpus: 3}]\n")
    result = run("place", "tasks", "--cluster", str(tenant), "--app", "app.yaml")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "error: task big fits nowhere: 4 hosts (too few processors are left)\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("tasks: []\n", "app.yaml: tasks: an empty list; expected at least one"),
        ("tasks: [{name: a}, {name: a}]\n", "app.yaml:1:20: tasks[1].name: `a`: two tasks have this name"),
        ("tasks: [{name: a, cpus: -1}]\n", "app.yaml:1:25: tasks[0].cpus: `-1`: must not be negative"),
        (
            "tasks: [{name: a, egress: {mean: 2Mbps, peak: 1Mbps}}]\n",
            "app.yaml:1:9: tasks[0].egress: a mean of 2Mbps above the peak of 1Mbps",
        ),
        (
            "tasks: [{name: a}, {name: b}]\ntransfers: [{from: a, to: z, bytes: 1MB}]\n",
            "app.yaml:2:13: transfers[0].to: `z`: no task has this name",
        ),
        (
            "tasks: [{name: a}, {name: b}]\nmatrix: m.csv\n",
            "m.csv: 1 rows of 2 numbers: not a square; is the file complete?",
        ),
        (
            "tasks: [{name: a, count: 9999},{name: b, count: 999}]\ntransfers: [{from: a, to: b, bytes: 1B}]",
            "app.yaml:2:13: transfers[0].to: more than 2000000 transfers in one app",
        ),
        ("tasks: [{name: a, count: 0}]\n", "app.yaml:1:9: tasks[0].count: 0: expected at least 1"),
    ],
)
def test_invalid_app_files_are_rejected_with_the_position(
    run: Run, tenant: Path, text: str, error: str
) -> None:
    (tenant.parent / "app.yaml").write_text(text)
    (tenant.parent / "m.csv").write_text("0,1\n")
    result = run("place", "tasks", "--cluster", str(tenant), "--app", "app.yaml")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {error}"), result.stderr
    assert len(result.stderr.splitlines()) <= 2


@pytest.mark.parametrize(
    ("matrix", "error"),
    [
        ([[0, 1, 2], [0, 0, 0]], "matrix: 2 rows, but there are 3 tasks"),
        ([[0, 1], [0, 0], [0, 0]], "matrix: row 1: 2 numbers in 3 rows: not a square"),
        ([[0, -1, 0], [0, 0, 0], [0, 0, 0]], "matrix: row 1, column 2: -1"),
        ([[0, float("nan"), 0], [0, 0, 0], [0, 0, 0]], "matrix: row 1, column 2: NaN"),
        ([1, 2, 3], "matrix: expected a square of numbers"),
        ("none.npy", "none.npy: no such file"),
    ],
)
def test_invalid_matrices_are_rejected_with_the_position(tenant: Path, matrix: object, error: str) -> None:
    with pytest.raises(InputError) as raised:
        leeward.place_tasks(tenant, tenant.parent / "app.yaml", matrix=matrix)
    assert str(raised.value).startswith(error)


def test_a_matrix_replaces_the_transfers(tenant: Path) -> None:
    matrix = numpy.zeros((3, 3))
    matrix[2, 0] = 200e6
    numpy.save(tenant.parent / "m.npy", matrix)
    for given in (matrix, matrix.tolist(), tenant.parent / "m.npy"):
        decision = leeward.place_tasks(tenant, tenant.parent / "app.yaml", matrix=given)
        assert [(one["from"], one["to"], one["bytes"]) for one in decision["transfers"]] == [
            ("c", "a", 200_000_000)
        ]


def test_the_tasks_of_a_job_are_decided_one_by_one(run: Run) -> None:
    options = [
        "--job",
        str(EXAMPLES / "apps/indexer.yaml"),
        "--cluster",
        str(EXAMPLES / "clusters/racks.yaml"),
    ]
    result = run("place", "tasks", *options, "--policy", "utp")
    assert result.returncode == 1
    assert "error: no telemetry" in result.stderr
    assert "hint: --telemetry" in result.stderr
    telemetry = ["--telemetry", str(EXAMPLES / "telemetry/racks.csv")]
    result = run("place", "tasks", *options, *telemetry, "--policy", "utp", "--explain")
    assert result.returncode == 0, result.stderr
    placed = dict(row.split() for row in result.stdout.splitlines()[1:5])
    # Spread ranks before balance, and r0 is the busiest rack.
    assert len({host.split("h")[0] for host in placed.values()}) == 4
    assert not any(host.startswith("r0") for host in placed.values())
    assert "LOAD WITH TASK" in result.stdout


def test_migrate_lists_tasks_that_move_and_tasks_that_stay(run: Run) -> None:
    options = [
        *("--cluster", str(EXAMPLES / "clusters/racks.yaml")),
        *("--telemetry", str(EXAMPLES / "telemetry/racks.csv")),
        *("--running", str(EXAMPLES / "apps/running.yaml")),
    ]
    decision = json.loads(run("migrate", *options, "-o", "json").stdout)
    assert [one["link"] for one in decision["hot"]] == ["r0:uplink", "r0:downlink"]
    assert all(one["after"] < one["utilization"] for one in decision["hot"])
    moved = {one["task"]: one for one in decision["moves"]}
    assert set(moved) == {"backup", "crawl1"}
    assert moved["crawl1"]["link"] == "r0:downlink"
    assert decision["kept"] == []
    result = run("migrate", *options, "--hot", "50%")
    assert result.stdout == run("migrate", *options, "--hot", "0.5").stdout
    assert "it is sensitive to latency" in result.stdout
    assert "its job's budget is spent" in result.stdout


@pytest.mark.parametrize(
    ("hot", "error"),
    [
        ("hot", "`hot`: expected a percentage, such as 75%"),
        ("x%", "`x%`: expected a percentage, such as 75%"),
        ("75", "75.0: expected a share above 0 and at most 1"),
    ],
)
def test_migrate_rejects_invalid_hot_thresholds(run: Run, hot: str, error: str) -> None:
    options = ("--telemetry", str(EXAMPLES / "telemetry/racks.csv"), "--running", "none.yaml", "--hot", hot)
    result = run("migrate", "--cluster", str(EXAMPLES / "clusters/racks.yaml"), *options)
    assert (result.returncode, result.stderr) == (2, f"error: --hot: {error}\n")


def test_apps_run_until_their_last_transfer_finishes() -> None:
    cluster = leeward.Cluster(TENANT)
    app = (0.0, [(2.0, 0), (2.0, 0)], [(0, 1, 100_000_000)])
    (first,) = _native.simulate_apps(cluster, "choreo", [app])
    assert (first["seconds"], first["forecast_s"], first["refused"]) == (1.0, 1.0, None)
    with pytest.raises(InputError, match="expected two different tasks of 2"):
        _native.simulate_apps(cluster, "choreo", [(0.0, [(1.0, 0)] * 2, [(0, 5, 1)])])


def test_stale_telemetry_is_rejected_with_its_age(run: Run, tmp_path: Path) -> None:
    lines = (EXAMPLES / "telemetry" / "racks.csv").read_text().splitlines()
    stamped = tmp_path / "loads.csv"
    times = [f"{time.time() - age:.0f}" for age in (7200 + len(lines) - numpy.arange(len(lines) - 1))]
    stamped.write_text("\n".join([f"{lines[0]},t_s", *map(",".join, zip(lines[1:], times, strict=True))]))
    cluster = ["--cluster", str(EXAMPLES / "clusters" / "racks.yaml"), "--telemetry", str(stamped)]
    job = ["--job", str(EXAMPLES / "apps" / "indexer.yaml"), "--policy", "utp"]
    commands = (
        ["place", "tasks", *cluster, *job],
        ["place", "replicas", *cluster, "--size", "256MiB"],
        ["migrate", *cluster, "--running", str(EXAMPLES / "apps" / "running.yaml")],
    )
    for command in commands:
        refused = run(*command)
        assert refused.returncode == 2
        assert refused.stderr.startswith(f"error: {stamped}: t_s: "), refused.stderr
        assert " links are stale: r" in refused.stderr
        assert " was measured 2 h" in refused.stderr
        assert refused.stderr.splitlines()[0].endswith(" ago; at most 5 min")
        assert len(refused.stderr.splitlines()) <= 2
        allowed = run(*command, "--max-age", "3h")
        assert "stale" not in allowed.stderr


def replicas_at(path: Path, now_s: float, max_age_s: float = 300.0) -> dict[str, object]:
    """Places a block at the wall-clock time `now_s`."""
    cluster = leeward.Cluster(EXAMPLES / "clusters" / "racks.yaml")
    return _native.place_replicas(
        cluster, "uniform", "1MiB", telemetry=path, seed=1, clock=(now_s, max_age_s)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "link,load_bps,t_s\nr0:uplink,1,100",
            "t_s: 1 of 1 links is stale: r0:uplink was measured 15 min ago",
        ),
        ("link, load_bps, t_s\nr0:uplink, 1, 100", "r0:uplink was measured 15 min ago; at most 5 min"),
        (
            "link,load_bps,t_s\nr0:uplink,1,990\nr1:uplink,1,990\nr2:uplink,1,600\nr3:uplink,1,500",
            "t_s: 2 of 4 links are stale: r3:uplink was measured 8 min 20 s ago; at most 5 min",
        ),
        ("link,load_bps,t_s\nr0:uplink,1,5000", "t_s: r0:uplink was measured 1 h 7 min in the future"),
        ("link,load_bps,t_s\nr0:uplink,1,soon", ":2: t_s: `soon`: not a number; expected seconds since 1970"),
        ("link,load_bps,t_s\nr0:uplink,1,", ":2: t_s: ``: not a number; expected seconds since 1970"),
        ("link,load_bps,t_s\nr0:uplink,1,inf", ":2: t_s: `inf`: not a finite number"),
        ("link,load_bps,t_s,t_s\nr0:uplink,1,990,990", ":1: t_s: two columns have this name"),
    ],
)
def test_invalid_times_in_telemetry_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "loads.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        replicas_at(path, 1000.0)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "link,load_bps\nr0:uplink,1",
        "link,load_bps,t_s\nr0:uplink,1,950",
        "link,load_bps,t_s\nr0:uplink,1,100\nr0:uplink,1,950",
        "link,load_bps,t_s\nr0:uplink,1,1050",
    ],
)
def test_telemetry_without_times_or_recent_for_each_link_is_accepted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "loads.csv"
    path.write_text(text)
    assert replicas_at(path, 1000.0)["hosts"]


@pytest.mark.parametrize("age", ["-5min", "soon", "5"])
def test_an_invalid_maximum_age_is_rejected_even_without_telemetry(run: Run, age: str) -> None:
    cluster = ["--cluster", str(EXAMPLES / "clusters" / "racks.yaml"), f"--max-age={age}"]
    matrix = ["--matrix", str(EXAMPLES / "apps" / "stencil.csv")]
    for command in (["replicas", *cluster, "--size", "1MiB"], ["tasks", *cluster, *matrix]):
        refused = run("place", *command)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith(f"error: --max-age: `{age}`: ")


def test_a_job_with_transfers_or_a_matrix_is_rejected(run: Run, tenant: Path) -> None:
    numpy.save(tenant.parent / "m.npy", numpy.zeros((3, 3)))
    for options, name in (([], "app.yaml: transfers"), (["--matrix", "m.npy"], "--matrix")):
        result = run("place", "tasks", "--cluster", str(tenant), "--job", "app.yaml", *options)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"error: {name}: a job's tasks are placed one by one; transfers")


def test_migrate_on_a_mesh_is_rejected(run: Run, tenant: Path) -> None:
    folder = tenant.parent
    (folder / "loads.csv").write_text("link,load_bps\nh0:egress,799e6\n")
    (folder / "running.yaml").write_text("tasks: [{host: h0, task: {name: a}}]\n")
    options = ["--cluster", str(tenant), "--telemetry", "loads.csv", "--running", "running.yaml"]
    result = run("migrate", *options)
    assert (result.returncode, result.stdout) == (1, "")
    assert "a mesh has none" in result.stderr
    assert "a mesh has none" in json.loads(run("migrate", *options, "-o", "json").stdout)["refused"]


def test_an_app_file_reads_its_matrix_from_the_traces(tenant: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tenant.parent / "traces" / "set").mkdir(parents=True)
    (tenant.parent / "traces" / "set" / "m.csv").write_text("0,5\n0,0\n")
    (tenant.parent / "app.yaml").write_text("tasks: [{name: a}, {name: b}]\nmatrix: 'data:set/m.csv'\n")
    monkeypatch.setenv("LEEWARD_DATA", str(tenant.parent / "traces"))
    decision = leeward.place_tasks(tenant, tenant.parent / "app.yaml", policy="choreo")
    assert [one["bytes"] for one in decision["transfers"]] == [5]


def test_tasks_that_fit_nowhere_for_one_reason_are_merged_into_one_line(run: Run, tenant: Path) -> None:
    (tenant.parent / "app.yaml").write_text("tasks: [{name: a, cpus: 1, count: 20}, {name: b, cpus: 3}]\n")
    result = run("place", "tasks", "--cluster", str(tenant), "--job", "app.yaml", "--policy", "borg")
    assert result.returncode == 1
    assert result.stderr == ("error: a8 to b (13 tasks) fit nowhere: 4 hosts (too few processors are left)\n")


def test_a_running_task_of_an_unlisted_job_is_rejected(run: Run, tmp_path: Path) -> None:
    (tmp_path / "running.yaml").write_text(
        "jobs: [{name: indexer, budget: {down: 1}}]\n"
        "tasks:\n"
        "  - {host: r0h0, job: indexer, task: {name: a}}\n"
        "  - {host: r0h1, job: indexr, task: {name: b}}\n"
    )
    options = [
        *("--cluster", str(EXAMPLES / "clusters" / "racks.yaml")),
        *("--telemetry", str(EXAMPLES / "telemetry" / "racks.csv")),
    ]
    result = run("migrate", *options, "--running", "running.yaml")
    assert result.returncode == 2
    assert "running.yaml:4:5: tasks[1].job: `indexr`: `jobs` lists no job of this name" in result.stderr


def test_numbers_in_errors_are_short(run: Run, tenant: Path) -> None:
    (tenant.parent / "loads.csv").write_text("link,load_bps\nh0:egress,1e300\n")
    options = ["--cluster", str(tenant), "--app", "app.yaml"]
    result = run("place", "tasks", *options, "--telemetry", "loads.csv")
    assert "loads.csv:2: load_bps: 1e300: more than any link carries" in result.stderr
    (tenant.parent / "m.csv").write_text("0,1e300,0\n0,0,0\n0,0,0\n")
    result = run("place", "tasks", *options, "--matrix", "m.csv")
    assert "1e300: too much for one app" in result.stderr


@pytest.mark.parametrize(
    ("shape", "kind", "error"),
    [
        ((100_000, 100_000), "<f8", "m.npy: not readable as a NumPy array: "),
        ((3, 3), "<c16", "m.npy: an array of complex128; expected numbers"),
        ((3,), "<f8", "m.npy: expected a square of numbers"),
        ((3, 2), "<f8", "m.npy: row 1: 2 numbers in 3 rows"),
    ],
)
def test_invalid_numpy_files_are_rejected_with_the_reason(
    run: Run, tenant: Path, shape: tuple[int, ...], kind: str, error: str
) -> None:
    with (tenant.parent / "m.npy").open("wb") as file:
        header = {"descr": kind, "fortran_order": False, "shape": shape}
        numpy.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(9 * 16))
    result = run("place", "tasks", "--cluster", str(tenant), "--app", "app.yaml", "--matrix", "m.npy")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {error}"), result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("separator", [";", "\t", "  "])
def test_a_matrix_places_alike_with_any_separator(run: Run, tmp_path: Path, separator: str) -> None:
    square = (Path(__file__).parents[2] / "examples/apps/stencil.csv").read_text()
    cluster = str(Path(__file__).parents[2] / "examples/clusters/tenant.yaml")
    printed = []
    for name, text in (("a", square), ("b", square.replace(",", separator))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stencil.csv").write_text(text)
        printed.append(
            run("place", "tasks", "--cluster", cluster, "--matrix", f"{name}/stencil.csv", "-o", "csv")
        )
    assert [one.returncode for one in printed] == [0, 0]
    assert printed[0].stdout == printed[1].stdout


SHARED = """\
shape: hose
nic: 60Mbps
cpus: 1
racks:
  - {name: r0, hosts: [{name: a}, {name: b}]}
  - {name: r1, hosts: [{name: c}, {name: d}]}
shared_links:
  - {name: up, rate: 60Mbps, out_of: [r0]}
"""


def test_a_shared_link_limits_transfers_together(run: Run, tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(SHARED)
    senders: list[list[float]] = [[0, 0, 30e6, 0], [0, 0, 0, 30e6], [0] * 4, [0] * 4]
    (tmp_path / "app.csv").write_text("\n".join(",".join(str(int(cell)) for cell in row) for row in senders))
    command = ("place", "tasks", "--cluster", "net.yaml", "--matrix", "app.csv", "--policy", "choreo-exact")
    result = run(*command)
    assert result.returncode == 0, result.stderr
    # One transfer stays in its rack or begins in the other one: 30 MB at 60 Mb/s.
    assert (
        result.stdout.splitlines()[-1] == "transfers end after 4 s, and no placement has a shorter forecast"
    )
    links = leeward.Cluster(tmp_path / "net.yaml").links().to_pylist()
    assert [(row["name"], row["cross_section"]) for row in links[-1:]] == [("up:shared", "shared")]


def test_cross_traffic_lengthens_forecasts_and_moves_transfers(run: Run, tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(TENANT.replace("hosts: 4", "hosts: 3").replace("cpus: 2", "cpus: 1"))
    (tmp_path / "app.csv").write_text("0,1e8\n0,0\n")
    command = ("place", "tasks", "--cluster", "net.yaml", "--matrix", "app.csv", "-o", "json")

    def sender(*options: str) -> tuple[str, float]:
        result = run(*command, *options)
        assert result.returncode == 0, result.stderr
        decision = json.loads(result.stdout)
        return decision["transfers"][0]["from_host"], decision["completion_s"]

    first, seconds = sender()
    assert seconds == 1
    (tmp_path / "others.csv").write_text(f"link,connections\n{first}:egress,1\n")
    other, seconds = sender("--cross-traffic", "others.csv")
    assert (other != first, seconds) == (True, 1)
    (tmp_path / "all.csv").write_text("link,connections\nh0:egress,1\nh1:egress,1.5\nh2:egress,1.5\n")
    assert sender("--cross-traffic", "all.csv") == ("h0", 2)
    # The same numbers in the cluster file; those of a file replace them.
    text = (tmp_path / "net.yaml").read_text()
    lines = "".join(f"  - {{link: h{host}:egress, connections: 3}}\n" for host in range(3))
    (tmp_path / "net.yaml").write_text(f"{text}cross_traffic:\n{lines}")
    assert sender()[1] == 4
    assert sender("--cross-traffic", "all.csv") == ("h0", 2)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("h9:egress,1", "others.csv:2: link: `h9:egress`: the cluster has no such link"),
        ("h0:egress,-1", "others.csv:2: connections: `-1`: must not be negative"),
        ("h0:egress,x", "others.csv:2: connections: "),
        ("h0:egress,1\nh0:egress,2", "others.csv:3: link: `h0:egress`: this link has a line above"),
    ],
)
def test_invalid_cross_traffic_is_rejected_with_its_line(
    run: Run, tenant: Path, line: str, error: str
) -> None:
    (tenant.parent / "others.csv").write_text(f"link,connections\n{line}\n")
    options = ("--cluster", str(tenant), "--app", "app.yaml", "--cross-traffic", "others.csv")
    result = run("place", "tasks", *options)
    assert (result.returncode, error in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("nics", "megabytes", "measurements", "hint"),
    [
        (("800Mbps", "800Mbps"), 100_000, "uniform", "so this app needs no measurements of the network"),
        (("800Mbps", "8Mbps"), 1, "short", "to measure the network takes longer than this saves, 14 s"),
        (("800Mbps", "8Mbps"), 1_000, "worthwhile", ""),
    ],
)
def test_apps_that_need_no_measurements_are_named(
    run: Run, tmp_path: Path, nics: tuple[str, str], megabytes: int, measurements: str, hint: str
) -> None:
    hosts = ", ".join(f"{{name: h{at}, nic: {nics[at > 0]}}}" for at in range(8))
    (tmp_path / "net.yaml").write_text(f"shape: hose\ncpus: 1\nhosts: [{hosts}]\n")
    (tmp_path / "app.csv").write_text(f"0,{megabytes}e6\n0,0\n")
    options = ("place", "tasks", "--cluster", "net.yaml", "--matrix", "app.csv")
    assert json.loads(run(*options, "-o", "json").stdout)["gain"]["measurements"] == measurements
    table = run(*options)
    assert (table.returncode, hint in table.stderr, "hint" in table.stderr) == (0, True, bool(hint))


def test_groups_of_tasks_stay_apart() -> None:
    cluster = leeward.Cluster(str(EXAMPLES / "clusters/racks.yaml"))
    for policy in ("choreo", "leeward", "random", "round-robin", "minimum-machines"):
        placed = leeward.place_tasks(cluster, EXAMPLES / "apps/quorum.yaml", policy=policy)
        hosts = {task["task"]: str(task["host"]) for task in placed["tasks"]}
        racks = {hosts[f"log{copy}"].split("h")[0] for copy in range(3)}
        assert len(racks) == 3, policy
        assert hosts["writer0"] != hosts["writer1"], policy
    few = {"racks": 2, "hosts_per_rack": 4, "nic": "1Gbps", "oversubscription": 1, "cpus": 8}
    refused = leeward.place_tasks(few, EXAMPLES / "apps/quorum.yaml", policy="choreo")["refused"]
    assert "a task from which it must stay apart is there" in (refused or [""])[0]


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("{tasks: [a]}", "one task"),
        ("{tasks: [a, z]}", "`z`: no task has this name"),
        ("{tasks: [a, b], level: pod}", "level"),
    ],
)
def test_an_invalid_group_is_rejected(tenant: Path, group: str, message: str) -> None:
    app = tenant.with_name("app.yaml")
    app.write_text(APP + f"apart:\n  - {group}\n")
    with pytest.raises(InputError, match=message):
        leeward.place_tasks(tenant, app)


def test_a_job_with_groups_is_rejected(tenant: Path) -> None:
    job = tenant.with_name("job.yaml")
    job.write_text("tasks: [{name: t, count: 2, cpus: 1}]\napart: [{tasks: [t]}]\n")
    with pytest.raises(InputError, match="without groups"):
        leeward.place_tasks(tenant, job, together=False)
