import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, is_typeddict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward import Client, InputError, ProblemError, RefusedError, UnreachableError, decisions
from leeward.client import promise_types, types
from leeward.client.events import Event, events
from leeward.client.http import Answer, Http

Serve = Callable[..., AbstractContextManager[str]]

CLUSTER = {
    "racks": 4,
    "hosts_per_rack": 3,
    "nic": "1Gbps",
    "oversubscription": 3,
    "cpus": 8,
    "devices": [{"read": "200MB/s", "write": "120MB/s"}],
}
LOADS = {f"r{rack}:{way}": 1e8 * (rack + 1) for rack in range(4) for way in ("uplink", "downlink")}
HOSTS = {f"r{rack}h{host}:ingress": 5e7 for rack in range(4) for host in range(3)}
TASKS = {"tasks": [{"name": "web", "count": 2, "cpus": 1, "egress": {"mean": "100Mbps"}}]}


@pytest.fixture(scope="module")
def service(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("service"), CLUSTER, "--interval", "5s") as url:
        yield url


def report(client: Client) -> None:
    until = datetime.now(UTC)
    assert client.report(until - timedelta(seconds=1), until, links=LOADS | HOSTS)["links"] == 20


# ---- every operation --------------------------------------------------------------------------------

WHEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
CALLS: list[Callable[[Client], Any]] = [
    lambda client: client.report(WHEN, WHEN + timedelta(seconds=1), links={"r0:uplink": 1e8}),
    lambda client: client.place_replicas("256MiB"),
    lambda client: client.place_tasks(TASKS),
    lambda client: client.promise({"name": "mail"}),
    lambda client: client.place_volume({"name": "mail"}),
    lambda client: client.name_pods([{"pod": "0" * 32, "host": "r0h0", "job": "web"}]),
    lambda client: next(client.peaks(), None),
    lambda client: next(client.workloads(), None),
    lambda client: client.workload("mail"),
    lambda client: client.workloads_page(since=1, wait_s=1.0),
    lambda client: client.change_workload({"name": "mail"}, size="1GiB", dry_run=True),
    lambda client: next(client.enforcers(), None),
    lambda client: client.enforcer("net@r0h0"),
    lambda client: client.enforcer_promises("net@r0h0", since=1, wait_s=1.0),
    lambda client: client.acknowledge("net@r0h0", "net", "r0h0"),
    lambda client: client.remove_enforcer("net@r0h0"),
    lambda client: client.score_hosts(["r0h0"], egress_bps=1_000_000),
    lambda client: client.place_batch([{"replicas": {"size": "1MiB"}}, {"tasks": {"app": TASKS}}]),
    lambda client: client.confirm("0"),
    lambda client: client.release_batch(["0", "1"]),
    lambda client: client.choose_read(["r0h0", "r1h0"], reader="r0h1", key="block 7"),
    lambda client: client.choose_delete(["r0h0", "r1h0"]),
    lambda client: client.what_if("0", "uniform"),
    lambda client: client.policies(),
    lambda client: next(client.decisions(), None),
    lambda client: client.decision("0"),
    lambda client: next(client.commitments(), None),
    lambda client: client.commit(["r0h0"], replicas={"size": "1MiB", "replicas": 1}),
    lambda client: client.commit_batch([{"hosts": ["r0h0"], "replicas": {"size": "1MiB", "replicas": 1}}]),
    lambda client: client.release("0"),
    lambda client: client.cluster(),
    lambda client: client.set_cluster(CLUSTER),
    lambda client: client.change_cluster({"name": "other"}),
    lambda client: next(client.racks(), None),
    lambda client: client.rack("r0"),
    lambda client: next(client.links(hot=True, sort="utilization"), None),
    lambda client: client.link("r0:uplink"),
    lambda client: client.link_history("r0:uplink", since=WHEN),
    lambda client: client.history("host"),
    lambda client: next(client.hosts(), None),
    lambda client: client.host("r0h0"),
    lambda client: client.host_history("r0h0"),
    lambda client: next(client.hotspots(), None),
    lambda client: next(client.labs(), None),
    lambda client: client.summary(),
    lambda client: next(client.decisions(ref="blk_1", host="r0h0", fallback=False), None),
    lambda client: client.reevaluate("1", remaining=[], move_cost="30s", dry_run=True),
    lambda client: next(client.migrations("advised"), None),
    lambda client: client.answer_migration("0", "refused", "no"),
    lambda client: client.answer_migration("0", "taken", executor="evictor"),
    lambda client: client.set_job("web", down=1),
    lambda client: client.forget_job("web"),
    lambda client: client.begin_probe("path", ["r0h0", "r0h1"], times=2),
    lambda client: next(client.probes(), None),
    lambda client: client.probe("1"),
    lambda client: client.cancel_probe("1"),
    lambda client: client.snapshot(0, 1.0),
    lambda client: client.status(),
    lambda client: client.modes(),
    lambda client: client.set_modes("off", moves="on", reason="a test", dry_run=True),
    lambda client: client.reload(),
    lambda client: client.demo(),
    lambda client: client.set_demo({}),
]
"""One call of each method."""
NO_METHOD = {
    ("GET", "/metrics"): "Prometheus reads it",
    ("GET", "/healthz"): "for the supervisor of the service, not for its clients",
    ("GET", "/readyz"): "likewise",
    ("GET", "/v1/openapi.json"): "for generated clients",
    ("GET", "/v1/events"): "it is a stream, and is tested below",
}
"""Operations without a method, or with a method of another form, and the reasons."""


def test_client_methods_cover_the_openapi_operations_and_match_their_parameters(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = Http(service).ask("GET", "/v1/openapi.json").body["paths"]
    operations = {
        (method.upper(), path): operation
        for path, methods in paths.items()
        for method, operation in methods.items()
        if method in ("get", "put", "post", "delete", "patch")
    }
    requests: list[tuple[str, str, dict[str, Any], Any]] = []

    def ask(
        _: Http, method: str, path: str, query: Any = None, body: Any = None, *__: Any, **___: Any
    ) -> Answer:
        requests.append((method, path, query or {}, body))
        return Answer({"items": [], "next": None, "results": []}, {})

    monkeypatch.setattr(Http, "ask", ask)
    client = Client()
    for call in CALLS:
        call(client)
    called = set()
    for method, path, query, body in requests:
        actual = [one for one in operations if one[0] == method and _template(one[1]).fullmatch(path)]
        assert actual, f"{method} {path}: no such operation"
        operation = operations[min(actual, key=lambda one: one[1].count("{"))]
        called.add(min(actual, key=lambda one: one[1].count("{")))
        known = {one["name"] for one in operation.get("parameters", []) if one["in"] == "query"}
        assert {name for name, value in query.items() if value is not None} <= known, path
        assert (body is not None) == ("requestBody" in operation), path
    missing = operations.keys() - called - NO_METHOD.keys()
    assert not missing, f"no method of Client: {sorted(missing)}"
    assert not NO_METHOD.keys() - operations.keys(), "NO_METHOD names operations that do not exist"


def test_typed_dicts_have_the_fields_of_the_openapi_schemas(service: str) -> None:
    schemas = Http(service).ask("GET", "/v1/openapi.json").body["components"]["schemas"]
    schema_names = {f"{name}Report": f"{name}Body" for name in ("Device", "Host", "Pod", "Task")} | {
        "Score": "HostScore",
        "BatchResult": "ItemResult",
        "WorkloadReport": "AcknowledgedBody",
    }
    # A host's report is keyed by its name; a decision has its request by kind, and may be the client's.
    differences = {"HostReport": {"host"}, "Decision": {"kind", "request", "fallback"}}
    known = vars(types) | vars(promise_types) | {"Reason": decisions.Reason}
    records = {name: shape for name, shape in known.items() if is_typeddict(shape)}
    # Parts of a decision.
    del records["Alone"], records["DecisionFields"]
    assert decisions.DecisionFields.__annotations__.keys() < types.Decision.__annotations__.keys()
    for name, shape in records.items():
        described = schemas[schema_names.get(name, name)]["properties"].keys()
        assert shape.__annotations__.keys() ^ described == differences.get(name, set()), name
    assert len(records) > 20


def _template(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))


# ---- a real service ---------------------------------------------------------------------------------


def test_rates_of_named_pods_are_the_peak_of_their_job(service: str) -> None:
    client = Client(service, patience_s=0)
    uid = "5f0c9b9e-1d3a-4f43-9a53-9b0c2f1b7d5e"

    def report_pod() -> None:
        until = datetime.now(UTC)
        rates: types.PodReport = {"pod": uid, "host": "r1h0", "egress_bps": 300_000_000, "ingress_bps": 0}
        client.report(until - timedelta(seconds=1), until, pods=[rates])

    report_pod()
    assert client.name_pods()["unnamed"] == [{"pod": uid, "host": "r1h0"}]
    named = client.name_pods([{"pod": uid, "host": "r1h0", "job": "shop/Deployment/web"}])
    assert named == {"named": 1, "unnamed": []}
    report_pod()
    peaks = {peak["job"]: peak for peak in client.peaks()}
    assert peaks["shop/Deployment/web"]["observations"] == 1
    assert 3e8 <= peaks["shop/Deployment/web"]["egress_peak_bps"] <= 3e8 * 17 / 16


def test_placements_are_listed_and_released(service: str) -> None:
    client = Client(service, patience_s=0)
    report(client)
    decision = client.place_replicas("256MiB", writer="r0h1")
    assert decision["hosts"][0] == "r0h1"
    assert client.decision(decision["id"]) == decision
    assert decision["id"] in [one["id"] for one in client.decisions("replicas")]
    tasks = client.place_tasks(TASKS, job="web")
    assert len(tasks["hosts"]) == 2
    assert [one["kind"] for one in client.commitments()][:1] == ["tasks"]
    assert client.release(tasks["id"])["released"] is not None
    assert client.release(tasks["id"])["released"] is not None
    assert client.link("r3:uplink")["measured_bps"] == 4e8
    assert next(client.links(sort="utilization"))["link"].startswith("r3:")
    assert [rack["rack"] for rack in client.racks()] == ["r0", "r1", "r2", "r3"]
    assert len(list(client.hosts())) == 12
    assert client.rack("r0")["hosts"][0]["host"] == "r0h0"
    cluster, version = client.cluster()
    assert cluster["racks"] == 4
    with pytest.raises(ProblemError) as caught:
        client.change_cluster({"name": "other"}, version='"99"')
    assert (caught.value.word, caught.value.status) == ("version", 412)
    assert version == client.cluster()[1]


def test_a_repeated_idempotency_key_returns_the_first_decision(service: str) -> None:
    client = Client(service, new_key=lambda: "the same", patience_s=0)
    report(client)
    first, again = client.place_replicas("64MiB"), client.place_replicas("64MiB")
    assert (first["id"], first["key"]) == (again["id"], "the same")
    assert Client(service).place_replicas("64MiB")["id"] != first["id"]
    numbered = client.place_replicas("64MiB", client="test", sequence=1)
    assert (numbered["client"], numbered["key"]) == ("test", None)


def test_problem_documents_become_exceptions_with_their_fields(service: str) -> None:
    client = Client(service, patience_s=0)
    with pytest.raises(RefusedError, match=r"fits|hosts"):
        client.place_tasks({"tasks": [{"name": "huge", "cpus": 1000}]})
    with pytest.raises(ProblemError) as caught:
        client.report(datetime.now(UTC), datetime.now(UTC) + timedelta(seconds=1), links={"r9:uplink": 1.0})
    assert (caught.value.word, caught.value.status, caught.value.field) == ("invalid", 422, "links[0].link")
    assert str(caught.value).startswith("links[0].link: `r9:uplink`: the cluster has no such link")
    with pytest.raises(ProblemError) as none:
        client.decision("../status")
    assert none.value.word == "not-found"


def test_a_snapshot_request_waits_for_a_newer_epoch(service: str) -> None:
    client = Client(service, patience_s=0)
    epoch = client.snapshot()["epoch"]
    assert client.snapshot(epoch, 0.05)["epoch"] == epoch, "no newer epoch came meanwhile"
    later = threading.Timer(0.1, report, [client])
    later.start()
    assert client.snapshot(epoch, 30)["epoch"] > epoch
    later.join()


def test_events_resume_after_the_last_received_event(service: str) -> None:
    client = Client(service, patience_s=0)
    report(client)
    first = next(event for event in client.events() if event.name == "racks")
    assert len(first.data["items"]) == 4
    placed = [client.place_replicas("64MiB")["id"] for _ in range(3)]
    since = (event for event in client.events(first.id) if event.name == "decision")
    assert [next(since).data["id"] for _ in placed] == placed
    since.close()
    quiet = (event for event in client.events(first.id, racks=False))
    assert [next(quiet).data["id"] for _ in placed] == placed, "without racks, only decisions came since"
    quiet.close()


# ---- failures ---------------------------------------------------------------------------------------


@pytest.fixture
def flaky() -> Iterator[tuple[str, list[tuple[int, dict[str, str], Any]], list[dict[str, str]]]]:
    """A server with given answers, one for each request. The body `None` closes the connection."""
    answers: list[tuple[int, dict[str, str], Any]] = []
    requests: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.do_GET()

        def do_GET(self) -> None:
            requests.append(
                {name.lower(): value for name, value in self.headers.items()} | {"path": self.path}
            )
            status, headers, body = answers.pop(0)
            if body is None:
                self.close_connection = True
                return
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in ({"content-length": str(len(data))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", answers, requests
        server.shutdown()
        thread.join()


class FakeClock:
    """A clock that advances only during waits."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def clock(self) -> float:
        return sum(self.waits)


BUSY = {
    "type": "urn:leeward:problem:busy",
    "title": "Too many requests wait",
    "status": 503,
    "detail": "later",
}


def test_a_retry_sends_the_same_idempotency_key(flaky: Any) -> None:
    url, answers, requests = flaky
    waits = FakeClock()
    answers += [(0, {}, None), (503, {"retry-after": "3"}, BUSY), (429, {}, BUSY), (201, {}, {"id": "7"})]
    client = Client(url + "/", token="leeward_1", sleep=waits.sleep, clock=waits.clock)
    assert client.place_replicas("1MiB")["id"] == "7"
    assert len({one["idempotency-key"] for one in requests}) == 1
    assert {one["authorization"] for one in requests} == {"Bearer leeward_1"}
    assert waits.waits == [0.1, 3.0, 0.4]


def test_retries_stop_when_the_patience_is_used_up(flaky: Any) -> None:
    url, answers, _ = flaky
    waits = FakeClock()
    client = Client(url, patience_s=10, sleep=waits.sleep, clock=waits.clock)
    answers += [(503, {"retry-after": "4"}, BUSY)] * 3
    with pytest.raises(ProblemError) as busy:
        client.status()
    assert (busy.value.word, busy.value.after_s, waits.waits) == ("busy", 4.0, [4.0, 4.0])
    answers += [(503, {"retry-after": "4"}, BUSY)]
    with pytest.raises(ProblemError):
        Client(url, patience_s=0).status()


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (302, b"", "the answer is 302"),
        (404, b"<html>nothing\n here</html>", "the answer is 404: <html>nothing here</html>"),
        (500, {"type": ["no"], "title": 1}, "1"),
        (422, {"type": "urn:leeward:problem:invalid", "detail": "wrong", "field": "size"}, "size: wrong"),
    ],
)
def test_any_unsuccessful_response_is_a_problem_and_redirects_are_not_followed(
    flaky: Any, status: int, body: Any, message: str
) -> None:
    url, answers, requests = flaky
    answers += [(status, {"location": "http://elsewhere.invalid/"}, body)]
    with pytest.raises(ProblemError) as problem:
        Client(url, patience_s=0, token="secret").status()
    assert (str(problem.value), problem.value.status) == (message, status)
    assert len(requests) == 1, "no request follows the redirect"


def test_unreachable_hosts_and_servers_other_than_a_controller_are_reported(flaky: Any) -> None:
    url, answers, requests = flaky
    answers += [(200, {}, b"hello\x1b[2J\n there")]
    with pytest.raises(
        UnreachableError, match=r"not a controller: the answer begins with `hello \[2J there`"
    ):
        Client(url).status()
    assert len(requests) == 1, "a retry would get the same answer"
    with pytest.raises(UnreachableError, match=r"^http://127.0.0.1:1: no answer: Connection refused$"):
        Client("http://127.0.0.1:1", patience_s=0).status()
    with pytest.raises(UnreachableError, match="does not speak TLS"):
        Client(url.replace("http", "https"), patience_s=0).status()


@pytest.mark.parametrize("handled", [KeyError("mine"), OSError("mine"), UnreachableError("mine", "mine")])
def test_an_exception_the_caller_handles_does_not_hide_the_cause(handled: Exception) -> None:
    def ask() -> None:
        try:
            raise handled
        except type(handled):
            Client("http://127.0.0.1:1", patience_s=0).status()

    with pytest.raises(UnreachableError, match=r"no answer: Connection refused$"):
        ask()


def test_a_follower_is_asked_once_and_names_the_leader(flaky: Any) -> None:
    url, answers, requests = flaky
    follower = {"type": "urn:leeward:problem:follower", "status": 503, "leader": "http://b:7600"}
    answers += [(503, {"retry-after": "1"}, follower)]
    with pytest.raises(ProblemError) as caught:
        Client(url).place_replicas("1MiB")
    assert (caught.value.word, caught.value.leader, len(requests)) == ("follower", "http://b:7600", 1)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:7600",
        "ftp://a",
        "http://",
        "http://a:b",
        "http://a/?x",
        "http://a b",
        "http://u:p@a",
        "http://u:p@a:b",
    ],
)
def test_an_invalid_url_is_rejected_without_repeating_a_password(url: str) -> None:
    with pytest.raises(InputError) as caught:
        Client(url)
    assert "u:p" not in str(caught.value), "a password is not repeated"


def test_an_interrupted_event_stream_is_resumed(flaky: Any) -> None:
    url, answers, requests = flaky
    waits = FakeClock()
    stream = {"content-type": "text/event-stream"}
    answers += [
        (200, stream, b'retry: 1\n\nevent: racks\nid: 5\ndata: {"items": []}\n\n: nothing new\n\nevent: ra'),
        (0, {}, None),
        (200, stream, b'event: missed\ndata: {"after": "5"}\n\nevent: racks\nid: 9\ndata: {"items": []}\n\n'),
        (403, {}, {"type": "urn:leeward:problem:forbidden"}),
    ]
    event_stream = Client(url, sleep=waits.sleep, clock=waits.clock).events()
    assert [next(event_stream) for _ in range(3)] == [
        Event("racks", {"items": []}, "5"),
        Event("missed", {"after": "5"}, None),
        Event("racks", {"items": []}, "9"),
    ]
    with pytest.raises(ProblemError):
        next(event_stream)
    assert [one.get("last-event-id") for one in requests] == [None, "5", "5", "9"]
    assert waits.waits == [0.1, 0.2, 0.4]


STREAM = b'event: a\nid: 1\ndata: {"x":\ndata: 1}\n\n: comment\n\nid: 2\ndata: []\n\nevent: c\n\n'


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_events_do_not_depend_on_the_chunks_of_the_stream(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[one:other] for one, other in pairwise(places)]
    assert list(events(pieces)) == [Event("a", {"x": 1}, "1"), Event("message", [], "2")]


@pytest.mark.parametrize(
    "pieces",
    [
        [b"data: {\n\n"],
        [b"data: " + b"[" * 100_000 + b"\n\n"],
        [b"data: " + b" " * 2**20 + b"\n"] * 65,
        [b" " * 2**20] * 65,
    ],
    ids=["no JSON", "too deep", "an event without an end", "a line without an end"],
)
def test_an_invalid_event_stream_is_reported(pieces: list[bytes]) -> None:
    with pytest.raises(UnreachableError, match=r"^/v1/events: no answer: (an event|a line)"):
        list(events(pieces))


def test_a_slash_in_a_name_is_percent_encoded_in_the_path(flaky: Any) -> None:
    url, answers, requests = flaky
    answers += [(200, {}, {})]
    Client(url, patience_s=0).link("a/b:uplink")
    assert requests[0]["path"] == "/v1/links/a%2Fb%3Auplink"


def test_a_missing_ca_file_and_a_ca_without_https_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ca: .*nothing.pem"):
        Client("https://127.0.0.1:1", ca=tmp_path / "nothing.pem", patience_s=0).status()
    with pytest.raises(InputError, match="ca: the address is not https"):
        Client("http://127.0.0.1:1", ca=tmp_path / "nothing.pem")
