"""The traces that Leeward knows: commands that list, check and fetch them."""

import gzip
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import leeward
from leeward import data
from leeward.data import TraceFile
from leeward.data.fetch import FetchError, HostError, State, fetch, state, url

Run = Callable[..., subprocess.CompletedProcess[str]]

BODY = b"150 526\n" * 40_000
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Upstream(ThreadingHTTPServer):
    """A local file server; a test sets its fault."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files = {f"/owner/repo/{COMMIT}/some%20folder/trace.txt": BODY}
        self.fault = ""
        self.requests: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    server: Upstream

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        fault = self.server.fault
        if fault == "reset":
            self.close_connection = True
            return
        if fault == "silent":
            time.sleep(60)
        if fault.startswith(("http:", "/")):
            self.send_response(302)
            self.send_header("Location", fault)
            self.end_headers()
            return
        body = self.server.files.get(self.path)
        if body is None:
            self.send_error(404)
            return
        body = body[:-1] + b"?" if fault == "changed" else body + b"more" if fault == "long" else body
        self.send_response(200)
        if fault != "no length":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        half = len(body) // 2
        if fault in ("cut", "no length", "stuck"):
            self.wfile.write(body[:half])
            self.wfile.flush()
            if fault == "stuck":
                time.sleep(60)
        else:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with Upstream() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("LEEWARD_DATA_MIRROR", server.address + "/")
        yield server
        server.shutdown()


def trace(name: str = "trace.txt", body: bytes = BODY, path: str = "some folder/trace.txt") -> TraceFile:
    return TraceFile(name, len(body), hashlib.sha256(body).hexdigest(), "owner/repo", COMMIT, path)


def everything(folder: Path) -> list[str]:
    """Every file below a folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_fetched_file_is_complete_and_matches_its_checksum(upstream: Upstream, tmp_path: Path) -> None:
    received: list[int] = []
    fetch(tmp_path / "set", trace(), received.append)
    assert (tmp_path / "set" / "trace.txt").read_bytes() == BODY
    assert sum(received) == len(BODY)
    assert state(tmp_path / "set", trace()) is State.valid
    assert everything(tmp_path) == ["set/trace.txt"]


def test_gzip_compression_of_a_fetched_file_is_deterministic(upstream: Upstream, tmp_path: Path) -> None:
    for name in ("a", "b"):
        fetch(tmp_path / name, trace("trace.tsv.gz"))
    once, again = ((tmp_path / name / "trace.tsv.gz").read_bytes() for name in ("a", "b"))
    assert once == again
    assert gzip.decompress(once) == BODY
    assert state(tmp_path / "a", trace("trace.tsv.gz")) is State.valid


@pytest.mark.parametrize("name", ["trace.txt", "trace.tsv.gz"])
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("cut", "160,000 of 320,000 bytes; not kept|IncompleteRead"),
        ("no length", "ended after 160,000 of 320,000 bytes; not kept"),
        ("changed", "SHA-256 .* but expected .*; not kept"),
        ("long", "more than the 320,000 bytes expected; not kept"),
    ],
)
def test_a_truncated_or_changed_download_is_discarded(
    upstream: Upstream, tmp_path: Path, name: str, fault: str, message: str
) -> None:
    upstream.fault = fault
    with pytest.raises(FetchError, match=message):
        fetch(tmp_path, trace(name))
    assert everything(tmp_path) == []


def test_a_missing_file_is_reported_with_its_url(upstream: Upstream, tmp_path: Path) -> None:
    missing = trace(path="none.txt")
    with pytest.raises(FetchError, match=re.escape(f"{upstream.address}/owner/repo/{COMMIT}/none.txt: 404")):
        fetch(tmp_path, missing)
    assert everything(tmp_path) == []


def test_an_unreachable_host_is_reported(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.shutdown()
    upstream.server_close()
    with pytest.raises(HostError, match=r": Connection refused$"):
        fetch(tmp_path / "traces" / "set", trace())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("reset", "Remote end closed connection"),
        ("silent", "timed out"),
        ("/loop", "too many redirects"),
        ("http://127.0.0.1:1/", "Connection refused"),
    ],
)
def test_a_failure_after_the_connection_concerns_one_file(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream, tmp_path: Path, fault: str, message: str
) -> None:
    monkeypatch.setattr("leeward.data.fetch._TIMEOUT", 0.2)
    upstream.fault = fault
    with pytest.raises(FetchError, match=message) as caught:
        fetch(tmp_path, trace())
    assert not isinstance(caught.value, HostError)


def test_a_host_without_an_address_is_unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("LEEWARD_DATA_MIRROR", "http://mirror.invalid")
    with pytest.raises(HostError, match=r"^http://mirror\.invalid/owner/"):
        fetch(tmp_path, trace())


def test_the_files_of_a_set_are_tried_after_one_fails(upstream: Upstream, run: Run, tmp_path: Path) -> None:
    trace_set = data.find("swim-facebook")
    count = sum(bool(file.path) for file in trace_set.files)
    upstream.fault = "reset"
    variables = {"LEEWARD_DATA": "traces", "LEEWARD_DATA_MIRROR": upstream.address}
    result = run("data", "get", trace_set.name, **variables)
    assert result.returncode == 1
    assert len(upstream.requests) == result.stderr.count("Remote end closed connection") == count
    assert "not tried" not in result.stderr


def test_an_unreachable_host_is_reported_once_and_leaves_no_folder(
    upstream: Upstream, run: Run, tmp_path: Path
) -> None:
    names = ("swim-facebook", "fb2010-coflow", "flow-size-cdfs")
    counts = {name: sum(bool(file.path) for file in data.find(name).files) for name in names}
    assert counts["swim-facebook"] > 2
    assert counts["fb2010-coflow"] == 1
    upstream.shutdown()
    upstream.server_close()
    variables = {"LEEWARD_DATA": "traces", "LEEWARD_DATA_MIRROR": upstream.address}
    refused = run("data", "get", *names, **variables)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.count("Connection refused") == 1
    assert (
        f"swim-facebook: {counts['swim-facebook'] - 1} more files of this host were not tried\n"
        in refused.stderr
    )
    assert "fb2010-coflow: 1 more file of this host was not tried\n" in refused.stderr
    assert (
        f"flow-size-cdfs: {counts['flow-size-cdfs']} more files of this host were not tried\n"
        in refused.stderr
    )
    assert list(tmp_path.iterdir()) == []


def test_a_mirror_folder_and_a_proxy_are_used(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    trace_file = trace()
    # A client sends the whole URL to a proxy.
    monkeypatch.setenv("http_proxy", upstream.address)
    monkeypatch.setenv("LEEWARD_DATA_MIRROR", "http://mirror.invalid")
    upstream.files = {f"http://mirror.invalid{path}": body for path, body in upstream.files.items()}
    fetch(tmp_path / "proxy", trace_file)
    place = tmp_path / "mirror" / trace_file.repository / trace_file.commit / str(trace_file.path)
    place.parent.mkdir(parents=True)
    place.write_bytes(BODY)
    monkeypatch.setenv("LEEWARD_DATA_MIRROR", f"file://{tmp_path}/mirror")
    fetch(tmp_path / "file", trace_file)
    assert (tmp_path / "proxy" / trace_file.name).read_bytes() == BODY
    assert (tmp_path / "file" / trace_file.name).read_bytes() == BODY


def test_a_fetch_from_a_silent_host_times_out(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream, tmp_path: Path
) -> None:
    monkeypatch.setattr("leeward.data.fetch._TIMEOUT", 0.2)
    upstream.fault = "stuck"
    with pytest.raises(FetchError, match="timed out"):
        fetch(tmp_path, trace())
    assert everything(tmp_path) == []


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_fetch_leaves_no_file(
    upstream: Upstream, tmp_path: Path, stop: signal.Signals
) -> None:
    upstream.fault = "stuck"
    trace_set = data.find("fb2010-coflow")
    (file,) = trace_set.files
    upstream.files = {f"/{file.repository}/{file.commit}/{file.path}": BODY}
    command = [str(Path(sys.executable).with_name("leeward")), "data", "get", trace_set.name]
    environment = os.environ | {"LEEWARD_DATA": str(tmp_path)}
    fetching = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not everything(tmp_path):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    fetching.send_signal(stop)
    _, stderr = fetching.communicate(timeout=30)
    assert not (tmp_path / trace_set.name / file.name).exists()
    if stop is signal.SIGINT:
        assert fetching.returncode == 130
        assert "Traceback" not in stderr
        assert everything(tmp_path) == []


@pytest.mark.parametrize("damage", [lambda b: b[:-9], lambda b: b + b"x", lambda b: b[:50] + b"x" + b[51:]])
@pytest.mark.parametrize("name", ["trace.txt", "trace.tsv.gz"])
def test_a_damaged_file_fails_the_check(tmp_path: Path, name: str, damage: Callable[[bytes], bytes]) -> None:
    raw = gzip.compress(BODY) if name.endswith(".gz") else BODY
    (tmp_path / name).write_bytes(raw)
    assert state(tmp_path, trace(name)) is State.valid
    (tmp_path / name).write_bytes(damage(raw))
    assert state(tmp_path, trace(name)) is State.invalid


def test_the_get_command_reports_errors_and_never_overwrites_a_file(
    upstream: Upstream, run: Run, tmp_path: Path
) -> None:
    trace_set = data.find("ml-hpc-matrices")
    (file,) = (file for file in trace_set.files if file.path)
    variables = {"LEEWARD_DATA": "traces", "LEEWARD_DATA_MIRROR": upstream.address}
    refused = run("data", "get", trace_set.name, **variables)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"error: {upstream.address}/{file.repository}/{file.commit}/{file.path}: 404" in refused.stderr
    target = tmp_path / "traces" / trace_set.name / file.name
    assert not target.parent.exists()
    target.parent.mkdir(parents=True)
    target.write_bytes(b"mine")
    result = run("data", "get", trace_set.name, **variables)
    assert result.returncode == 1
    assert f"error: traces/{trace_set.name}/{file.name}: not the published file" in result.stderr
    assert target.read_bytes() == b"mine"
    assert "ml-hpc-matrices: no licence is stated: do not redistribute the files" in result.stderr
    assert "HPC-Mocfe-64.csv cannot be fetched: the pickled matrix" in result.stderr
    assert len(upstream.requests) == 1


def test_a_set_without_a_download_names_the_folder_to_put_it_in(run: Run, tmp_path: Path) -> None:
    result = run("data", "get", "projector-tor-matrix", XDG_CACHE_HOME=str(tmp_path / "cache"))
    place = tmp_path / "cache" / "leeward" / "projector-tor-matrix"
    assert (result.returncode, result.stdout) == (1, "")
    assert f"hint: put the file at {place}/projector_tors_128_probabilities.txt" in result.stderr
    path = run("data", "path", "projector-tor-matrix", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (path.returncode, path.stdout) == (0, f"{place}\n")


def test_the_data_folder_is_leeward_data_or_the_user_cache(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def path(**variables: str) -> str:
        return run("data", "path", "swim-facebook", **variables).stdout

    assert path(LEEWARD_DATA="/a", XDG_CACHE_HOME="/b", HOME="/c") == "/a/swim-facebook\n"
    assert path(XDG_CACHE_HOME="/b", HOME="/c") == "/b/leeward/swim-facebook\n"
    assert path(XDG_CACHE_HOME="b", HOME="/c") == "/c/.cache/leeward/swim-facebook\n"
    assert path(LEEWARD_DATA="", HOME="/c") == "/c/.cache/leeward/swim-facebook\n"


SCENARIO = """\
cluster: {cluster}
workloads: [{{flows: {{file: "data:flow-size-cdfs/mine.csv"}}}}]
horizon: 1min
"""


@pytest.mark.parametrize("sweep", [(), ("--seeds", "2")])
def test_scenarios_read_traces_from_the_cache(run: Run, tmp_path: Path, sweep: tuple[str, ...]) -> None:
    (tmp_path / "c.yaml").write_text("racks: 2\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 1\n")
    (tmp_path / "s.yaml").write_text(SCENARIO.format(cluster="c.yaml"))
    folder = tmp_path / "cache" / "leeward" / "flow-size-cdfs"
    cache = str(tmp_path / "cache")
    without = run("simulate", "s.yaml", "--policy", "uniform", *sweep, XDG_CACHE_HOME=cache)
    assert without.returncode == 2
    assert without.stderr.splitlines() == [
        "error: data:flow-size-cdfs/mine.csv: data folder unknown; set LEEWARD_DATA",
        "hint: leeward data get flow-size-cdfs checks the set and fetches missing files",
    ]
    folder.mkdir(parents=True)
    missing = run("simulate", "s.yaml", "--policy", "uniform", *sweep, XDG_CACHE_HOME=cache)
    assert missing.stderr.startswith(f"error: data:flow-size-cdfs/mine.csv: no such file ({folder}/mine.csv)")
    (folder / "mine.csv").write_text("t_arrival_s,src,dst,size_bytes\n1,r0h0,r1h1,1000\n")
    result = run("simulate", "s.yaml", "--policy", "uniform", *sweep, XDG_CACHE_HOME=cache)
    assert result.returncode == 0, result.stderr


def test_the_list_gives_the_source_and_checksum_of_each_file(run: Run, tmp_path: Path) -> None:
    described = json.loads(run("data", "list", "-o", "json", LEEWARD_DATA="traces").stdout)
    assert [trace_set["name"] for trace_set in described] == sorted(
        trace_set["name"] for trace_set in described
    )
    for trace_set in described:
        assert trace_set["licence"]
        assert trace_set["cite"]
        assert trace_set["redistributable"] == (trace_set["licence"] != "none stated")
        assert trace_set["bytes"] == sum(file["bytes"] for file in trace_set["files"])
        for file in trace_set["files"]:
            assert re.fullmatch("[0-9a-f]{64}", file["sha256"])
            assert (file["path"] is None) != (file["by_hand"] is None)
            assert file["path"] is None or re.fullmatch("[0-9a-f]{40}", file["commit"])
            assert file["checksum_of"] == ("content" if file["name"].endswith(".gz") else "file")
    table = run("data", "list").stdout
    assert table.splitlines()[0].split() == ["NAME", "LICENCE", "SIZE", "HERE", "GET", "WHAT"]
    assert len(table.splitlines()) == 1 + len(described)
    one = run("data", "list", "fb2010-coflow").stdout
    assert described[1]["files"][0]["sha256"] in one
    assert f"cite: {described[1]['cite']}" in one


@pytest.mark.parametrize("words", [("get", "none"), ("path", "none"), ("list", "none")])
def test_an_unknown_set_is_rejected_with_the_list_of_sets(run: Run, words: tuple[str, ...]) -> None:
    result = run("data", *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: none: no such set of traces; there are: facebook-tm-parsimon, ")


@pytest.mark.parametrize("mirror", ["mirror.example.org", "http://[::1", "ftp://mirror.example.org"])
def test_an_invalid_mirror_address_is_rejected(monkeypatch: pytest.MonkeyPatch, mirror: str) -> None:
    monkeypatch.setenv("LEEWARD_DATA_MIRROR", mirror)
    with pytest.raises(leeward.InputError, match="expected the address of a mirror"):
        url(trace())
    monkeypatch.delenv("LEEWARD_DATA_MIRROR")
    assert url(trace()) == f"https://raw.githubusercontent.com/owner/repo/{COMMIT}/some%20folder/trace.txt"


@pytest.mark.skipif("LEEWARD_DATA" not in os.environ, reason="LEEWARD_DATA is not set: no traces to check")
@pytest.mark.parametrize("trace_set", data.sets(), ids=lambda trace_set: trace_set.name)
def test_local_traces_match_their_checksums(trace_set: data.TraceSet) -> None:
    folder = Path(os.environ["LEEWARD_DATA"]) / trace_set.name
    if not folder.is_dir():
        pytest.skip(f"LEEWARD_DATA has no {trace_set.name}")
    assert {file.name: state(folder, file) for file in trace_set.files} == {
        file.name: State.valid for file in trace_set.files
    }
