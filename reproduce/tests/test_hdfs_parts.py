"""Parts of HDFS in a lab that need neither root nor Java."""

import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest

from leeward.errors import InputError
from leeward.lab import Machine
from leeward_reproduce.hdfs import class_path, namenode, settings, up
from leeward_reproduce.hdfs.__main__ import main as lab_main
from leeward_reproduce.hdfs.demo import Watch, draw, main, order, summary, table
from leeward_reproduce.hdfs.load import Load, Stream, check_background, in_order
from leeward_reproduce.hdfs.observed import is_newer
from leeward_reproduce.hdfs.outcome import FileTime, Outcome, median_cv, quantile
from leeward_reproduce.hdfs.processes import Process, ProcessError, ended_by_signals, kill
from leeward_reproduce.hdfs.stored import StoredFiles
from leeward_reproduce.hdfs.usage import Usage, by_hdfs, check_decisions
from leeward_reproduce.hdfs.workers import COMMAND, Worker, pipes


def test_missing_parts_are_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda _: None)
    text = class_path.missing()
    assert text is not None
    for part in ("root", "Java 17", "Maven", "iproute2"):
        assert part in text
    assert "\n" not in text


def test_a_user_with_sudo_lacks_no_root_for_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(class_path, "java_version", lambda: 17)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert class_path.missing(needs_root=False) is None
    monkeypatch.setattr("shutil.which", lambda name: None if name == "sudo" else f"/bin/{name}")
    assert class_path.missing(needs_root=False) == (
        "missing for HDFS in a lab: sudo (or run the command as root)"
    )
    assert class_path.missing() == "missing for HDFS in a lab: root (run the command with sudo)"


@pytest.mark.parametrize(("process", "owner", "user"), [(0, 4711, 4711), (0, 0, None), (4711, 4711, None)])
def test_root_runs_maven_as_the_owner_of_the_sources(
    monkeypatch: pytest.MonkeyPatch, process: int, owner: int, user: int | None
) -> None:
    def run(_: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert options.get("user") == user
        if user is not None:
            assert options["env"]["HOME"] == "/home/a"
        return subprocess.CompletedProcess([], 1, "no network", "")

    account = SimpleNamespace(pw_dir="/home/a", pw_name="a", pw_gid=owner)
    monkeypatch.setattr(class_path, "_is_current", lambda _: False)
    monkeypatch.setattr(Path, "stat", lambda _: SimpleNamespace(st_uid=owner))
    monkeypatch.setattr("os.geteuid", lambda: process)
    monkeypatch.setattr("pwd.getpwuid", lambda _: account)
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(OSError, match="Maven failed with status 1"):
        class_path.class_path()


def test_a_silent_namenode_is_a_failure_and_no_invalid_input() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert not namenode.is_ready(url, 1)
    for read in (namenode.has_pending_deletions, namenode.policy_state, namenode.decisions):
        with pytest.raises(OSError, match=r"127\.0\.0\.1") as failure:
            read(url)
        assert not isinstance(failure.value, ValueError)


def test_the_demo_without_its_parts_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert main([]) == 1
    assert capsys.readouterr().err.startswith("error: missing for HDFS in a lab: root")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--racks", "0"], "--racks 0: expected at least 1"),
        (["--racks", "9", "--hosts-per-rack", "9"], "81 hosts: expected at most 32"),
        (["--block", "64kB"], "--block 64kB: expected at least 1MiB"),
        (["--block", "much"], "--block: "),
        (["--policy", "best"], "--policy"),
    ],
)
def test_the_lab_of_hdfs_rejects_other_shapes(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        lab_main(arguments)
    assert ended.value.code == 2
    assert error in capsys.readouterr().err


def test_the_lab_of_hdfs_without_its_parts_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert lab_main([]) == 1
    assert capsys.readouterr().err.startswith("error: missing for HDFS in a lab: root")


def test_an_unknown_policy_is_an_error_before_anything_starts() -> None:
    with (
        pytest.raises(InputError, match="unknown policy `best`; there are: default, sinbad"),
        up(policy="best"),
    ):
        pass


def test_configuration_files_have_the_racks_by_address_and_escaped_values(tmp_path: Path) -> None:
    hosts = [Machine("a1", "r0h0", "10.0.0.2", "ns", [], True, [])]
    settings.write(tmp_path / "namenode", "172.31.0.1", hosts, {"a1": "left"}, {"x": "a<b&c"})
    assert (tmp_path / "namenode" / "topology.table").read_text() == "10.0.0.2 /left\n"
    site = ElementTree.parse(tmp_path / "namenode" / "hdfs-site.xml")
    values = {one.findtext("name"): one.findtext("value") for one in site.getroot()}
    assert values["x"] == "a<b&c"
    assert values["dfs.namenode.rpc-address"] == "172.31.0.1:8020"


@pytest.mark.parametrize("policy", settings.POLICIES)
def test_only_policies_of_leeward_have_properties(policy: str) -> None:
    properties = settings.policy_properties(policy, 1 << 20)
    assert bool(properties) == (policy != "default")
    assert properties.get("dfs.leeward.policy", "default") == policy


def test_loads_and_their_variation_are_those_of_the_counters() -> None:
    samples = [
        (10.0 + at, {"r0:downlink": 1000 * at, "r1:downlink": 3000 * at, "r0:uplink": 0}) for at in range(12)
    ]
    outcome = Outcome([], samples, 10.5, 10.0)
    assert outcome.links("downlink") == ["r0:downlink", "r1:downlink"]
    assert outcome.carried("r1:downlink") == pytest.approx(30_000)
    assert outcome.loads("downlink", 5.0) == pytest.approx(numpy.array([[8e3, 24e3]] * 2))
    assert outcome.cv("downlink", 5.0) == pytest.approx(0.5)
    assert numpy.isnan(outcome.cv("uplink", 5.0))


def test_the_variation_of_equal_loads_is_zero() -> None:
    assert median_cv(numpy.full((3, 4), 7.0)) == 0


def test_intervals_in_which_links_are_idle_have_no_variation() -> None:
    loads = numpy.array([[0.0, 40.0], [1.0, 1.0], [1.0, 1.0]])
    assert median_cv(loads) == 0
    assert median_cv(loads, idle_bps=1.0) == pytest.approx(1.0)
    assert numpy.isnan(median_cv(loads, idle_bps=20.0))


def test_the_table_of_the_demo_has_a_column_for_each_policy() -> None:
    samples = [
        (float(at), {f"r{rack}:{way}": at * 10**6 for rack in (0, 1) for way in ("uplink", "downlink")})
        for at in range(31)
    ]
    one = Outcome([FileTime("r0h0", 1, 2.0), FileTime("r0h0", 1, 4.0)], samples, 0.0, 30.0)
    rows = {name: values for name, *values in table({"default": [one], "leeward": [one]}, 16e6)}
    assert rows["bytes into r0"] == ["30 MB", "30 MB"]
    assert rows["utilization of the link into r1"] == ["50%", "50%"]
    assert rows["block time, median"] == ["3.00 s", "3.00 s"]
    assert quantile(one.files, 1.0) == 4.0
    slow = Outcome([FileTime("r0h0", 1, 5.0)], samples, 0.0, 20.0)
    rows = {name: values for name, *values in table({"default": [one, slow], "leeward": [one, one]}, 16e6)}
    assert rows["bytes into r0"] == ["25 MB (20 MB to 30 MB)", "30 MB (30 MB to 30 MB)"]
    assert rows["block time, median"][0] == "4.00 s (3.00 s to 5.00 s)"


def full(percent: float) -> Outcome:
    """A run in which a link of 8 Mb/s into r1 is full by a percentage."""
    return Outcome(
        [], [(float(at), {"r1:downlink": round(at * percent * 1e4)}) for at in range(31)], 0.0, 30.0
    )


@pytest.mark.parametrize(
    ("default", "sinbad", "expected"),
    [
        (
            [90],
            [75],
            "90% full, and with those of sinbad 75%: it is cooler by 15 points (-15 to -15 in 1 pair).",
        ),
        (
            [75, 80],
            [90, 84],
            "78% full, and with those of sinbad 87%: it is hotter by 10 points (+4 to +15 in",
        ),
        (
            [90, 88],
            [87, 88],
            "89% full, and with those of sinbad 88%: no clear difference (-3 to +0 in 2 pairs).",
        ),
        (
            [90, 80],
            [70, 83],
            "85% full, and with those of sinbad 76%: no clear difference (-20 to +3 in 2 pairs)",
        ),
    ],
)
def test_the_demo_calls_the_hot_link_cooler_only_if_all_pairs_agree(
    default: list[float], sinbad: list[float], expected: str
) -> None:
    text = summary({"default": [*map(full, default)], "sinbad": [*map(full, sinbad)]}, 8e6)
    assert expected in text


def test_each_pair_of_the_demo_begins_with_the_policy_of_the_one_before() -> None:
    assert order(["default", "ccp"], 3) == [
        (0, "default"),
        (0, "ccp"),
        (1, "ccp"),
        (1, "default"),
        (2, "default"),
        (2, "ccp"),
    ]


@pytest.mark.parametrize(
    ("option", "value"), [("--pairs", "0"), ("--seconds", "nan"), ("--seconds", "1e9"), ("--seed", "-1")]
)
def test_the_demo_rejects_options_out_of_bounds(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([option, value])
    assert f"{option} {value}" in capsys.readouterr().err.replace("1e+09", "1e9")


def test_a_line_about_the_links_has_the_loads_since_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now, carried, lines = [100.0], [0], list[str]()
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    watch = Watch(lambda: {"r1:downlink": carried[0], "r1:uplink": 7}, 8e6, lines.append)
    for seconds, count in ((100.0, 0), (110.0, 5_000_000), (120.0, 10_000_000), (140.0, 15_000_000)):
        now[0], carried[0] = seconds, count
        watch(0.0)
    assert lines == ["links into racks: r1 50%", "links into racks: r1 25%"]


def test_the_demo_draws_the_same_writes_for_a_seed_and_others_for_another() -> None:
    hosts = [f"r{rack}h{host}" for rack in range(4) for host in range(3)]
    first, again, other = (draw(hosts, 1e8, 60.0, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert all(5 <= one.at_s <= 50 for one in first.writes)
    assert first.streams[0].rate_bps == pytest.approx(7e7)
    assert first.streams[0].host == "r1h0"


def helper(tmp_path: Path) -> Worker:
    log = tmp_path / "log"
    with log.open("w") as out:
        process = subprocess.Popen(COMMAND, text=True, stderr=out, **pipes())
    return Worker(Process("helper", process, log))


class DataNode(http.server.BaseHTTPRequestHandler):
    """Accepts files, except those whose name is `full`."""

    def do_PUT(self) -> None:
        size = len(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(500 if "full" in self.path else 201)
        text = json.dumps({"size": size}).encode()
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "150000")
        self.end_headers()
        self.wfile.write(bytes(150_000))

    def log_message(self, *_: object) -> None:
        pass


def test_a_helper_writes_files_at_their_times_and_reports_errors(tmp_path: Path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), DataNode)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    worker = helper(tmp_path)
    fields = {"port": server.server_port, "bytes": 200_000, "timeout_s": 10}
    try:
        at = time.monotonic() + 0.5
        file = worker.order("write", at=at, target="/file", **fields)
        full = worker.order("write", at=0.0, target="/full", **fields)
        with pytest.raises(ProcessError, match="helper failed: RuntimeError: status 500"):
            full.result(10)
        answer = file.result(10)
        assert at <= answer["began_s"] < answer["ended_s"]
    finally:
        kill([worker.process])
        worker.close()
        server.shutdown()
        server.server_close()


def test_a_helper_reads_files_and_a_file_of_another_size_is_an_error(tmp_path: Path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), DataNode)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    worker = helper(tmp_path)
    fields = {"at": 0.0, "port": server.server_port, "target": "/file", "timeout_s": 10}
    try:
        answer = worker.order("read", bytes=150_000, **fields).result(10)
        assert 0 < answer["began_s"] < answer["ended_s"]
        with pytest.raises(ProcessError, match="status 200, 150000 bytes; expected 150001 bytes"):
            worker.order("read", bytes=150_001, **fields).result(10)
    finally:
        kill([worker.process])
        worker.close()
        server.shutdown()
        server.server_close()


def test_a_helper_sends_background_at_its_rate(tmp_path: Path) -> None:
    worker = helper(tmp_path)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
            receiver.bind(("127.0.0.1", 0))
            at = time.monotonic() + 0.5
            order = {"address": "127.0.0.1", "port": receiver.getsockname()[1], "rate_bps": 8e6}
            sent = worker.order("send", name="a", at=at, until=at + 1.0, **order).result(10)["sent"]
        assert sent == pytest.approx(1e6, rel=0.1)
    finally:
        kill([worker.process])
        worker.close()


def test_a_helper_stops_background_of_a_name(tmp_path: Path) -> None:
    worker = helper(tmp_path)
    order = {"address": "127.0.0.1", "port": 9, "rate_bps": 1e3}
    try:
        start = time.monotonic()
        waiting = [worker.order("send", name=name, at=start, until=start + 60, **order) for name in "ab"]
        worker.order("stop", name="a").result(10)
        assert waiting[0].result(10)["sent"] < 1e6
        assert not waiting[1].done()
    finally:
        kill([worker.process])
        worker.close()


def test_orders_to_a_helper_that_ends_fail(tmp_path: Path) -> None:
    worker = helper(tmp_path)
    waiting = worker.order(
        "send", name="a", at=time.monotonic() + 60, until=0.0, address="127.0.0.1", port=9, rate_bps=1
    )
    kill([worker.process])
    with pytest.raises(ProcessError, match="helper ended"):
        waiting.result(10)
    worker.close()


class Controller(http.server.BaseHTTPRequestHandler):
    """Takes reports; the last part of a report is its number."""

    protocol_version = "HTTP/1.1"
    reports: list[tuple[float, int, str | None]]

    def do_POST(self) -> None:
        number = int(self.rfile.read(int(self.headers["content-length"])))
        self.reports.append((time.monotonic(), number, self.headers["authorization"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(("delay_s", "loss"), [(0.5, 0.0), (0.0, 0.5), (0.0, 1.0)])
def test_reports_are_acknowledged_at_once_and_arrive_late_or_not_at_all(delay_s: float, loss: float) -> None:
    count, taken = 40, list[tuple[float, int, str | None]]()

    class Taking(Controller):
        reports = taken

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    values = map(str, (port, server.server_port, delay_s, loss, 7))
    script = class_path.PROJECT.parents[1] / "reproduce" / "leeward_reproduce" / "hdfs" / "reports.py"
    process = subprocess.Popen([sys.executable, "-I", str(script), *values], text=True)
    sent = {}
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connect(connection)
        for number in range(count):
            sent[number] = time.monotonic()
            headers = {"authorization": "Bearer secret"}
            connection.request("POST", "/v1/reports", body=str(number), headers=headers)
            response = connection.getresponse()
            assert (response.status, json.load(response)) == (200, {"links": 2})
        connection.close()
        deadline = time.monotonic() + (20 if loss == 0 else 2)
        while len(taken) < count and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
        server.shutdown()
        server.server_close()
    assert all(at - sent[number] >= delay_s for at, number, _ in taken)
    assert {token for _, _, token in taken} <= {"Bearer secret"}
    # A share of the drawn reports arrives, each once.
    assert len({number for _, number, _ in taken}) == len(taken)
    assert abs(len(taken) - (1 - loss) * count) <= (0 if loss in (0.0, 1.0) else 10)


def connect(connection: http.client.HTTPConnection) -> None:
    """Waits until a program listens."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return connection.connect()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


class FewFiles(namenode.Files):
    """Files whose last copies the NameNode learns of at the second look."""

    def __init__(self, places: dict[str, dict[str, int]]) -> None:
        super().__init__("")
        self.places = places
        self.seen: set[str] = set()
        self.deleted: list[str] = []

    def stored(self, path: str) -> dict[str, int]:
        late = path not in self.seen
        self.seen.add(path)
        places = list(self.places[path].items())
        return dict(places[:-1] if late else places)

    def delete(self, path: str) -> None:
        self.deleted.append(path)


def test_stored_bytes_are_those_of_all_files_with_copies_that_the_namenode_knows_later() -> None:
    files = FewFiles({"/a": {"h0": 8, "h1": 8}, "/b": {"h1": 4, "h2": 4}})
    stored = StoredFiles(files, replicas=2)
    stored.add("/a", 8)
    stored.add("/b", 4)
    stored.update()
    assert stored.by_host() == {"h0": 8, "h1": 4}
    stored.settle(5)
    assert stored.by_host() == {"h0": 8, "h1": 12, "h2": 4}
    assert files.deleted == []


def test_a_copy_that_the_namenode_never_knows_is_an_error() -> None:
    files = FewFiles({"/a": {"h0": 8, "h1": 8}})
    stored = StoredFiles(files, replicas=3)
    stored.add("/a", 8)
    with pytest.raises(OSError, match=r"^/a: 16 of 24 bytes stored after 0\.1 s$"):
        stored.settle(0.1)


def test_written_files_are_in_the_order_of_their_ends() -> None:
    ends = [5.0, 2.0, 4.0, 3.0]
    files = [Future[dict[str, Any]]() for _ in ends]
    for file, end in zip(files, ends, strict=True):
        file.set_result({"ended_s": end})
    assert in_order(set(files)) == [files[1], files[3], files[2], files[0]]


def test_a_link_that_carries_less_than_its_background_is_an_error() -> None:
    streams = [Stream(0.0, 10.0, "r1h0", 8e6), Stream(10.0, None, "r1h1", 16e6)]
    assert [one.bytes(30.0) for one in streams] == [10e6, 40e6]
    load, racks = Load([], streams, 30.0), {"r1h0": "r1", "r1h1": "r1"}
    for carried in (48_000_000, 47_000_000):
        outcome = Outcome([], [(0.0, {"r1:downlink": 0}), (30.0, {"r1:downlink": carried})], 0.0, 30.0)
        if carried > 0.95 * 50e6:
            check_background("seed-1", load, racks, outcome)
        else:
            with pytest.raises(OSError, match="seed-1: the link into r1 carried 47 MB, less than its backgr"):
                check_background("seed-1", load, racks, outcome)


def test_decisions_of_a_run_are_those_since_its_start_and_few_are_of_hdfs() -> None:
    counts = iter([{"ranked": 12, "stale": 1}, {"ranked": 50, "stale": 3, "off": 0}])
    usage = Usage(lambda: next(counts))
    decisions = usage.decisions()
    assert decisions == {"ranked": 38, "stale": 2}
    assert by_hdfs(decisions) == 2
    assert 0 <= usage.busy() <= 1
    check_decisions("seed-1", decisions)
    with pytest.raises(OSError, match=r"seed-1: 3 of 41 blocks placed by HDFS's default policy \(3 stale\)"):
        check_decisions("seed-1", {"ranked": 38, "stale": 3})
    with pytest.raises(OSError, match=r"0 of 0 blocks .* \(no decision\)"):
        check_decisions("seed-1", {})


def test_a_report_is_newer_only_if_its_window_ends_after_the_moment() -> None:
    def link(until: str | None) -> Any:
        return {"link": "r0h0:ingress", "until": until}

    since = datetime(2026, 3, 2, 9, 0, 0, tzinfo=UTC)
    assert is_newer(link("2026-03-02T09:00:00.5Z"), since)
    assert not any(is_newer(one, since) for one in (link("2026-03-02T08:59:59.9Z"), link(None), None))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_block_after_its_cleanup_and_a_second_one_does_not_disturb_it(number: int) -> None:
    script = (
        "import signal, subprocess, sys, time\n"
        "from leeward_reproduce.hdfs.processes import ended_by_signals\n"
        # Children of `nohup` ignore SIGHUP.
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "with ended_by_signals():\n"
        "    child = subprocess.Popen(['sleep', '60'])\n"
        "    try:\n"
        "        print(child.pid, flush=True)\n"
        "        time.sleep(60)\n"
        "    finally:\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "        child.kill()\n"
        "        child.wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_signal_that_is_ignored_stays_so_and_handlers_return() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    term = signal.getsignal(signal.SIGTERM)
    try:
        with ended_by_signals():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != term
        assert signal.getsignal(signal.SIGTERM) == term
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_full_cache_evicts_the_oldest_files_until_every_host_fits() -> None:
    files = FewFiles({f"/{at}": {"h0": 10, f"h{1 + at}": 10} for at in range(4)})
    stored = StoredFiles(files, replicas=2, cache=25)
    for at in range(4):
        stored.add(f"/{at}", 10)
        stored.settle(5)
        assert max(stored.by_host().values()) <= 25
    assert files.deleted == ["/0", "/1"]
    assert stored.evicted == 2
    assert stored.by_host() == {"h0": 20, "h3": 10, "h4": 10}


def test_a_relay_joins_a_port_of_this_machine_with_another(tmp_path: Path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), DataNode)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    script = class_path.PROJECT.parents[1] / "reproduce" / "leeward_reproduce" / "hdfs" / "relay.py"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pair = f"{listener.fileno()}:{server.server_port}"
        process = subprocess.Popen(
            [sys.executable, str(script), pair], pass_fds=[listener.fileno()], text=True
        )
        port = listener.getsockname()[1]
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("PUT", "/file", body=bytes(300_000))
        assert json.load(connection.getresponse()) == {"size": 300_000}
        connection.close()
    finally:
        process.kill()
        process.wait()
        server.shutdown()
        server.server_close()


def test_a_process_that_ends_or_is_late_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first\nlast words\n")
    with subprocess.Popen(["sh", "-c", "exit 3"], text=True) as short:
        ended = Process("DataNode r0h0", short, log)
        short.wait()
        with pytest.raises(
            ProcessError, match="DataNode r0h0 ended with status 3; its log ends:\nfirst\nlast words"
        ):
            ended.wait_until("answer", 5, lambda: False)
    slow = Process("NameNode", subprocess.Popen(["sleep", "60"], text=True), log)
    with pytest.raises(ProcessError, match=r"NameNode did not answer within 0\.2 s"):
        slow.wait_until("answer", 0.2, lambda: False)
    kill([slow])
    assert slow.process.returncode == -9
