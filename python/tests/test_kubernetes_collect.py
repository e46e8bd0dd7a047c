"""Recordings of clusters: kubectl, a fake API server that accepts reads only, and a real Prometheus."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from leeward import InputError
from leeward.kubernetes import Recording, collect, read_recording
from leeward.kubernetes.cluster import LISTS, read_cluster
from leeward.kubernetes.collect import steps
from leeward.kubernetes.kubectl import Kubectl
from leeward.kubernetes.objects import RACK_LABELS, node_of, template_of, workload_of
from leeward.kubernetes.quantities import amount, rate, time_ms
from leeward.kubernetes.recording import REASONS, Expression
from leeward.kubernetes.series import SOURCES, Period, Queries
from leeward.telemetry.http import server
from support.parts import require
from support.prometheus import END as UNTIL
from support.prometheus import good

G = 10**9
MINUTE = 60
INTERVAL = 600
HOURS = 6
END = UNTIL - UNTIL % INTERVAL
BEGIN = END - HOURS * 3600
PERIOD = Period(1000 * BEGIN, 1000 * INTERVAL, HOURS * 6)
NODES = {"a1": "ra", "a2": "ra", "b1": "rb", "b2": "rb", "x1": None}


def time(at: float) -> str:
    """A time in seconds after the beginning, as in objects."""
    return datetime.fromtimestamp(BEGIN + at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def node(name: str, rack: str | None) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name} | ({} if rack is None else {"leeward.dev/rack": rack})
    return {
        "metadata": {
            "name": name,
            "labels": labels,
            "creationTimestamp": "2025-01-01T00:00:00Z",
            "annotations": {"leeward.dev/rack-link": "10G"} if name == "a1" else {},
        },
        "spec": {},
        "status": {
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
            "addresses": [
                {"type": "InternalIP", "address": f"10.0.0.{len(name) + ord(name[0]) + int(name[1])}"}
            ],
        },
    }


def a_pod(name: str, on: str, at: float, owner: tuple[str, str] = ("", ""), **spec: Any) -> dict[str, Any]:
    kind, owner_name = owner
    owners = [{"kind": kind, "name": owner_name, "controller": True}] if kind else []
    return {
        "metadata": {
            "name": name,
            "namespace": "prod",
            "uid": f"uid-{name}",
            "creationTimestamp": time(at),
            "ownerReferences": owners,
            "labels": {"pod-template-hash": "abc"} if kind == "ReplicaSet" else {},
            "annotations": {"leeward.dev/peak-egress": "4G", "leeward.dev/peak-ingress": "1G"},
        },
        "spec": {"nodeName": on, "containers": [{"resources": {"requests": {"cpu": "500m"}}}], **spec},
        "status": {"phase": "Running"},
    }


def world() -> dict[str, list[dict[str, Any]]]:
    """A cluster of two racks, the first of which is hot. `loud` came to it in the third hour."""
    template = a_pod("", "", 0)
    del template["spec"]["nodeName"]
    template["metadata"] = {
        "labels": {"pod-template-hash": "abc"},
        "annotations": {"leeward.dev/peak-egress": "1G"},
    }
    logs = a_pod("logs", "b1", 3 * 3600, ("DaemonSet", "logs"))
    logs["metadata"]["annotations"] = {}
    owner = {"metadata": {"name": "web-abc", "namespace": "prod"}, "spec": {"template": template}}
    return {
        "/api/v1/nodes": [node(name, rack) for name, rack in NODES.items()],
        "/api/v1/pods": [
            a_pod("loud", "a1", 3 * 3600, ("StatefulSet", "loud")),
            logs,
            a_pod("lost", "x1", 3 * 3600),
            a_pod("waits", "", 3 * 3600),
        ],
        "/apis/apps/v1/replicasets": [owner],
        "/apis/apps/v1/statefulsets": [],
        "/apis/batch/v1/jobs": [],
    }


@contextmanager
def api_server(
    lists: dict[str, list[dict[str, Any]]], folder: Path, page: int = 2
) -> Iterator[tuple[str, list[str]]]:
    """An API server that fails on every request that is no GET; yields a kubeconfig and the requests."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            requests.append(f"{self.command} {self.path}")
            parts = urlsplit(self.path)
            if self.command != "GET":
                self.answer(405, {"kind": "Status", "message": "this server accepts reads only"})
            elif parts.path == "/version":
                self.answer(200, {"major": "1", "minor": "36", "gitVersion": "v1.36.4"})
            elif parts.path in lists:
                start = int(parse_qs(parts.query).get("continue", ["0"])[0])
                items, after = lists[parts.path], start + page
                rest = {"continue": str(after)} if after < len(items) else {}
                self.answer(200, {"kind": "List", "metadata": rest, "items": items[start:after]})
            else:
                message = f'User "x" cannot list resource in API group at {parts.path}: forbidden'
                self.answer(
                    403, {"kind": "Status", "status": "Failure", "message": message, "reason": "Forbidden"}
                )

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = respond  # noqa: N815

        def answer(self, status: int, content: Any) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    config = folder / "kubeconfig"
    config.write_text(kubeconfig(f"http://127.0.0.1:{listener.server_port}"))
    try:
        yield str(config), requests
    finally:
        listener.shutdown()
        listener.server_close()


def kubeconfig(address: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
    )


def openmetrics(left_out: str = "") -> Iterator[str]:
    """Six hours of metrics: traffic of nodes and pods, and pods that have ended."""
    pods = [
        # name, node, kind and name of the owner, beginning and end in hours, completed
        ("loud", "a1", "StatefulSet", "loud", 3.0, 99.0, False),
        ("web-abc-1", "a2", "ReplicaSet", "web-abc", 2.0, 4.0, False),
        ("job-1", "a1", "Job", "job", 2.0, 4.0, True),
        ("old", "b1", "<none>", "<none>", -5.0, 1.0, False),
    ]

    def lines() -> Iterator[str]:
        for at in range(BEGIN - 1800, END + MINUTE, MINUTE):
            hours = (at - BEGIN) / 3600
            for name, bps in {"a1": 3.9, "a2": 3.6, "b1": 0.4, "b2": 0.6}.items():
                total = round((at - BEGIN + 3600) * bps * G / 8)
                port = f'instance="{name}:9100",device="eth0"'
                yield f"node_network_transmit_bytes_total{{{port}}} {total} {at}"
                yield f"node_network_receive_bytes_total{{{port}}} {total // 4} {at}"
                # Traffic of containers is in that of the port.
                other = f'instance="{name}:9100",device="veth12"'
                yield f"node_network_transmit_bytes_total{{{other}}} {total * 7} {at}"
            for name, on, kind, owner, begin, end, completed in pods:
                if not begin <= hours < end:
                    continue
                ids = f'namespace="prod",pod="{name}",uid="uid-{name}"'
                info = f'{ids},node="{on}",created_by_kind="{kind}",created_by_name="{owner}"'
                yield f"kube_pod_info{{{info}}} 1 {at}"
                yield f"kube_pod_created{{{ids}}} {BEGIN + begin * 3600:.0f} {at}"
                if completed and hours > end - 0.5:
                    yield f"kube_pod_completion_time{{{ids}}} {BEGIN + (end - 0.5) * 3600:.0f} {at}"
                requests = f'{ids},container="c",node="{on}",resource="cpu",unit="core"'
                yield f"kube_pod_container_resource_requests{{{requests}}} 0.25 {at}"
                total = round((hours - begin) * 3600 * 2 * G / 8)
                place = f'namespace="prod",pod="{name}",interface="eth0"'
                yield f"container_network_transmit_bytes_total{{{place}}} {total} {at}"
                yield f"container_network_receive_bytes_total{{{place}}} {total // 2} {at}"

    # Series of a metric stand together in this format.
    for line in sorted(lines(), key=lambda one: one.partition(" ")[0]):
        if not left_out or not line.startswith(left_out):
            yield line


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: Any, backfill: Any) -> Iterator[str]:
    with backfill(tmp_path_factory.mktemp("prometheus"), openmetrics()) as address:
        yield address


@pytest.fixture
def kubectl() -> None:
    require("kubectl", package="kubernetes-client")


def record(config: str, url: str, **given: Any) -> Recording:
    return collect(Kubectl(config), server(url), PERIOD, **{"rack_bps": 10 * G} | given)


@pytest.mark.usefixtures("kubectl")
def test_a_cluster_and_its_past_become_a_recording(prometheus: str, tmp_path: Path) -> None:
    done: list[int] = []
    with api_server(world(), tmp_path) as (config, requests):
        data = record(config, prometheus, advance=done.append)
    assert sum(done) == steps(PERIOD)
    assert {request.partition(" ")[0] for request in requests} == {"GET"}
    assert dict(data.rack_bps) == {"ra": 10 * G, "rb": 10 * G}
    pods = {pod.name: pod for pod in data.pods}
    # `waits` has no node, and `old` ended before the first interval of the trial did.
    assert {*pods} == {"loud", "logs", "lost", "web-abc-1", "job-1", "old"}
    unfit = {name: data.templates[pod.template].unfit for name, pod in pods.items()}
    assert unfit == {
        **dict.fromkeys(("loud", "lost", "web-abc-1"), None),
        "logs": "bound_to_node",
        **dict.fromkeys(("job-1", "old"), "owner_gone"),
    }
    assert (pods["web-abc-1"].workload, pods["old"].workload) == ("Deployment/web", "Pod/old")
    assert data.templates[pods["web-abc-1"].template].peak_bps == (G, None)
    assert data.templates[pods["job-1"].template].requests == {"cpu": 250}
    ends = {
        name: None if pod.ended_ms is None else (pod.ended_ms / 1000 - BEGIN) / 3600
        for name, pod in pods.items()
    }
    assert (ends["loud"], ends["job-1"]) == (None, 3.5)
    # A pod without a known end ended after it was last seen, by the length of an interval at most.
    assert ends["web-abc-1"] == pytest.approx(4.1, abs=0.2)
    assert data.out["ra"] == pytest.approx([7.5 * G] * PERIOD.count, rel=1e-3)
    assert data.into["rb"] == pytest.approx([0.25 * G] * PERIOD.count, rel=1e-3)
    loud = data.traffic[next(at for at, pod in enumerate(data.pods) if pod.name == "loud")]
    assert loud.first in (18, 19)
    assert loud.out[1:] == pytest.approx([2 * G] * (len(loud.out) - 1), rel=1e-3)
    assert "nodes without the label of a rack take no part: x1" in data.notes


@pytest.mark.usefixtures("kubectl")
def test_the_command_records_a_cluster_and_replays_it_without_one(
    run: Callable[..., Any], prometheus: str, tmp_path: Path
) -> None:
    with api_server(world(), tmp_path) as (config, requests):
        options = ["--since", f"{HOURS}h", "--until", str(END), "--interval", "10min", "--hot", "70%"]
        options += ["--kubeconfig", config, "--prometheus", prometheus, "--rack-link", "10Gbps"]
        live = run("kubernetes", "trial", *options, "--record", "week", "-o", "json", HOME=str(tmp_path))
        assert live.returncode == 0, live.stderr
        assert {request.partition(" ")[0] for request in requests} == {"GET"}
    again = run("kubernetes", "trial", "week", "--hot", "70%", "-o", "json")
    assert json.loads(again.stdout) == json.loads(live.stdout)
    document = json.loads(live.stdout)
    assert [(move["pod"], move["to_rack"]) for move in document["moves"]] == [
        ("web-abc-1", "rb"),
        ("loud", "rb"),
    ]
    assert (document["before"]["hot_h"], document["after"]["hot_h"]) == (6.0, pytest.approx(2, abs=0.4))
    assert document["pods"]["not_judged"] == {"bound_to_node": 1, "node_unknown": 1, "owner_gone": 1}
    assert read_recording(tmp_path / "week").rack_bps == {"ra": 10 * G, "rb": 10 * G}


@pytest.mark.parametrize("metric", [query.partition("{")[0] for query in SOURCES])
@pytest.mark.usefixtures("kubectl")
def test_a_missing_metric_is_an_error_that_names_its_exporter(
    fake: Callable[..., str], tmp_path: Path, metric: str
) -> None:
    def answer(_: int, request: str) -> Any:
        return good([] if metric in request else ["a_metric"])

    with api_server(world(), tmp_path) as (config, _), pytest.raises(InputError, match=metric) as error:
        record(config, fake(answer))
    (note,) = error.value.__notes__
    assert next(exporter for query, exporter in SOURCES.items() if query.startswith(metric)) in note


def test_a_query_with_too_much_data_is_split(fake: Callable[..., str]) -> None:
    def answer(_: int, request: str) -> Any:
        fields = {name: values[0] for name, values in parse_qs(request.split()[1]).items()}
        if "query_range" in request:
            first, last = float(fields["start"]), float(fields["end"])
            if last - first > INTERVAL:
                return 422, {}, b'{"status": "error", "error": "too many points", "errorType": "execution"}'
            points = [[at, "5"] for at in (first, last)]
            return good({"resultType": "matrix", "result": [{"metric": {"pod": "a"}, "values": points}]})
        reach = re.search(r"\[(\d+)ms\]", fields["query"])
        assert reach is not None
        if int(reach[1]) > 3_600_000:
            return 422, {}, b'{"status": "error", "error": "too many samples", "errorType": "execution"}'
        return good(
            {"resultType": "vector", "result": [{"metric": {"pod": "a"}, "value": [0, fields["time"]]}]}
        )

    done: list[int] = []
    queries = Queries(server(fake(answer)), PERIOD, done.append)
    values = [value for _, value in queries.largest("pod", lambda length: f"max_over_time(x[{length}])")]
    assert values == [BEGIN + hours * 3600 * HOURS / 8 for hours in range(1, 9)]
    ((labels, rates),) = queries.rates("pod", "y")
    assert (labels, rates.tolist()) == ({"pod": "a"}, [5.0] * PERIOD.count)
    assert sum(done) == 2


def test_answers_that_may_lack_series_are_counted(fake: Callable[..., str]) -> None:
    def answer(_number: int, _request: str) -> Any:
        status, headers, _ = good(None)
        data = {"resultType": "vector", "result": []}
        return (
            status,
            headers,
            json.dumps({"status": "success", "data": data, "warnings": ["no store"]}).encode(),
        )

    queries = Queries(server(fake(answer)), PERIOD, lambda _: None)
    assert not list(queries.largest("pod", lambda length: f"max_over_time(x[{length}])"))
    assert queries.warnings == {"no store": 1}


@pytest.mark.usefixtures("kubectl")
def test_labels_of_the_exporter_itself_are_an_error(fake: Callable[..., str], tmp_path: Path) -> None:
    url = fake(lambda _number, _request: good(["anything"]))
    with api_server(world(), tmp_path) as (config, _), pytest.raises(InputError) as error:
        record(config, url)
    assert "its label `pod` is the pod of kube-state-metrics" in str(error.value)
    assert "honor_labels" in error.value.__notes__[0]


@pytest.mark.usefixtures("kubectl")
def test_counters_of_other_nodes_are_an_error(backfill: Any, tmp_path: Path) -> None:
    lines = (line.replace(":9100", "-other:9100") for line in openmetrics())
    (tmp_path / "prometheus").mkdir()
    with (
        backfill(tmp_path / "prometheus", lines) as url,
        api_server(world(), tmp_path) as (config, _),
        pytest.raises(InputError, match="no series is of a node of the cluster"),
    ):
        record(config, url)


@pytest.mark.usefixtures("kubectl")
def test_a_node_is_found_by_its_address_and_by_its_label(backfill: Any, tmp_path: Path) -> None:
    names = {
        node["metadata"]["name"]: node["status"]["addresses"][0]["address"]
        for node in world()["/api/v1/nodes"]
    }

    def renamed() -> Iterator[str]:
        for line in openmetrics():
            text = line.replace('instance="a1:9100"', f'instance="{names["a1"]}:9100"')
            yield text.replace('instance="b1:9100"', 'instance="exporter:9100",node="b1"')

    (tmp_path / "prometheus").mkdir()
    with backfill(tmp_path / "prometheus", renamed()) as url, api_server(world(), tmp_path) as (config, _):
        data = record(config, url)
    assert data.out["ra"] == pytest.approx([7.5 * G] * PERIOD.count, rel=1e-3)
    assert data.out["rb"] == pytest.approx([G] * PERIOD.count, rel=1e-3)


# Errors of the API server.


def without_racks(lists: dict[str, list[dict[str, Any]]]) -> None:
    for item in lists["/api/v1/nodes"]:
        item["metadata"]["labels"] = {}


def without_rates(lists: dict[str, list[dict[str, Any]]]) -> None:
    for item in lists["/api/v1/nodes"]:
        item["metadata"]["annotations"] = {}


def with_odd_room(lists: dict[str, list[dict[str, Any]]]) -> None:
    lists["/api/v1/nodes"][0]["status"]["allocatable"] = {"cpu": "lots"}


@pytest.mark.parametrize(
    ("spoil", "problem", "hint"),
    [
        (without_racks, "none of 5 has a label leeward.dev/rack or", "--rack-label"),
        (without_rates, "the rate of the links of ra, rb is unknown", "--rack-link"),
        (with_odd_room, "lots", None),
        (lambda lists: lists.pop("/api/v1/nodes"), "forbidden", "the verb `list`"),
    ],
)
@pytest.mark.usefixtures("kubectl")
def test_a_cluster_without_a_part_is_an_error(
    tmp_path: Path, spoil: Callable[[Any], Any], problem: str, hint: str | None
) -> None:
    lists = world()
    spoil(lists)
    with api_server(lists, tmp_path) as (config, _), pytest.raises(InputError) as error:
        read_cluster(Kubectl(config))
    assert problem in str(error.value)
    assert hint is None or any(hint in note for note in error.value.__notes__)


@pytest.mark.usefixtures("kubectl")
def test_a_list_of_many_pages_is_read_whole(tmp_path: Path) -> None:
    lists = world()
    lists["/api/v1/pods"] = [a_pod(f"p{number}", "a1", 0) for number in range(7)]
    with api_server(lists, tmp_path) as (config, requests):
        items = list(Kubectl(config).items("/api/v1/pods"))
    assert [item["metadata"]["name"] for item in items] == [f"p{number}" for number in range(7)]
    assert sum("continue=" in request for request in requests) == 3


@pytest.mark.usefixtures("kubectl")
def test_a_wrong_kubeconfig_is_one_line(run: Callable[..., Any], prometheus: str, tmp_path: Path) -> None:
    (tmp_path / "refuses").write_text(kubeconfig("http://127.0.0.1:1"))
    (tmp_path / "broken").write_text("{]")
    for options, problem in (
        (["--kubeconfig", "missing"], "--kubeconfig: missing: /api/v1/nodes:"),
        (["--kubeconfig", "broken"], "--kubeconfig: broken: /api/v1/nodes:"),
        (["--kubeconfig", "refuses"], "refused"),
        (["--kubeconfig", "refuses", "--context", "other"], "other"),
    ):
        result = run("kubernetes", "trial", "--prometheus", prometheus, *options)
        assert (result.returncode, result.stdout) == (2, "")
        assert problem in result.stderr.splitlines()[0]


def test_a_prometheus_that_does_not_answer_is_one_line(run: Callable[..., Any], tmp_path: Path) -> None:
    program(tmp_path, f"cat {tmp_path}/$(basename ${{!#%%\\?*}}).json")
    for path in LISTS.values():
        items = {"metadata": {}, "items": world()[path]}
        (tmp_path / f"{path.rpartition('/')[2]}.json").write_text(json.dumps(items))
    options = ["--prometheus", "http://127.0.0.1:1", "--rack-link", "10Gbps"]
    result = run("kubernetes", "trial", *options, PATH=f"{tmp_path}:/usr/bin:/bin")
    assert result.returncode == 2
    assert "http://127.0.0.1:1: cannot be reached" in result.stderr


def program(folder: Path, script: str) -> None:
    """A program that stands for kubectl."""
    (folder / "kubectl").write_text(f"#!/bin/bash\n{script}\n")
    (folder / "kubectl").chmod(0o755)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 'error: You must be logged in' >&2; exit 1", "You must be logged in"),
        ("exit 1", "kubectl failed"),
        ("echo hello", "it does not answer as an API server would: `hello`"),
        ("echo '[]'", "it does not answer as an API server would"),
        ("echo '{\"items\": 7}'", "expected a list of objects"),
    ],
)
def test_an_answer_that_is_no_list_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    program(tmp_path, script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(InputError, match="/api/v1/pods") as error:
        list(Kubectl().items("/api/v1/pods"))
    assert problem in str(error.value)


def test_a_missing_kubectl_is_an_error_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(InputError, match="no such program") as error:
        list(Kubectl().items("/api/v1/pods"))
    assert error.value.__notes__ == ["install kubectl, or give the folder of a recording"]


# Objects.


def template(kind: str = "", **spec: Any) -> Any:
    return template_of({"spec": spec}, kind)


@pytest.mark.parametrize(
    ("kind", "spec", "reason"),
    [
        ("", {}, None),
        ("DaemonSet", {}, "bound_to_node"),
        ("Node", {}, "bound_to_node"),
        ("", {"hostNetwork": True}, "host_network"),
        (
            "",
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            "pod_affinity",
        ),
        ("", {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}}, None),
        ("", {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, "topology_spread"),
        ("", {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, None),
        ("", {"volumes": [{"persistentVolumeClaim": {"claimName": "x"}}]}, "volumes"),
        ("", {"volumes": [{"emptyDir": {}}]}, None),
        ("", {"containers": [{"ports": [{"containerPort": 1}]}]}, None),
        ("", {"containers": [{"ports": [{"hostPort": 1}]}]}, "host_ports"),
        ("", {"resourceClaims": [{"name": "gpu"}]}, "resource_claims"),
        ("", {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}, "invalid_spec"),
        (
            "",
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
            "invalid_spec",
        ),
        ("", {"containers": 7, "volumes": "x", "tolerations": {}}, None),
    ],
)
def test_a_constraint_that_the_trial_does_not_know_is_a_reason(
    kind: str, spec: dict[str, Any], reason: str | None
) -> None:
    assert template(kind, **spec).unfit == reason
    assert reason is None or reason in REASONS


def needs(**amounts: str) -> dict[str, Any]:
    return {"resources": {"requests": amounts}}


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        ({"containers": [needs(cpu="500m"), needs(cpu="1", memory="1Gi")]}, {"cpu": 1500, "memory": 2**30}),
        ({"containers": [needs(cpu="1")], "initContainers": [needs(cpu="3"), needs(cpu="2")]}, {"cpu": 3000}),
        (
            {
                "containers": [needs(cpu="1")],
                "initContainers": [needs(cpu="1") | {"restartPolicy": "Always"}, needs(cpu="2")],
            },
            {"cpu": 3000},
        ),
        ({"containers": [needs(cpu="1")], "overhead": {"cpu": "250m"}}, {"cpu": 1250}),
        ({"containers": [needs(cpu="1")], "resources": {"requests": {"cpu": "4"}}}, {"cpu": 4000}),
        ({"containers": [{"resources": {"limits": {"nvidia.com/gpu": 2}}}]}, {"nvidia.com/gpu": 2}),
        ({"containers": [needs(cpu="0")]}, {}),
    ],
)
def test_requests_of_a_pod_are_those_that_kube_scheduler_counts(
    spec: dict[str, Any], requests: dict[str, int]
) -> None:
    assert template(**spec).requests == requests


def test_a_selector_and_an_affinity_must_both_hold() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}, {}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    found = template(nodeSelector={"disk": "ssd"}, affinity={"nodeAffinity": required})
    assert found.terms == ((Expression("disk", "In", ("ssd",)), Expression("zone", "In", ("a",))),)


@pytest.mark.parametrize(
    ("kind", "name", "labels", "workload"),
    [
        ("ReplicaSet", "web-7d4b9c", {"pod-template-hash": "7d4b9c"}, "Deployment/web"),
        ("ReplicaSet", "web", {}, "ReplicaSet/web"),
        ("Job", "nightly-1", {}, "Job/nightly-1"),
        ("", "", {}, "Pod/alone"),
    ],
)
def test_a_workload_is_that_of_the_scheduler(kind: str, name: str, labels: Any, workload: str) -> None:
    assert workload_of(kind, name, "alone", labels) == workload


def test_quantities_and_times_of_objects() -> None:
    assert [amount("cpu", one) for one in ("1", "250m", 2, None, "0.0001")] == [1000, 250, 2000, 0, 1]
    assert [amount("memory", one) for one in ("1Gi", "1500m", "2k")] == [2**30, 2, 2000]
    annotations: list[Any] = ["2G", " 500M ", "fast", "-1", "1E", None, 7, []]
    rates = [rate(one) for one in annotations]
    assert rates == [2 * G, 500 * 10**6, None, None, None, None, 7, None]
    assert [time_ms(one) for one in ("1970-01-01T00:00:01Z", "now", None, 7)] == [1000, None, None, None]


def test_a_taint_of_the_lifecycle_of_a_node_does_not_count() -> None:
    item = node("a1", "ra")
    keys = ("node.kubernetes.io/not-ready", "gpu")
    item["spec"] = {
        "taints": [{"key": key, "effect": "NoSchedule"} for key in keys] + [{"effect": "PreferNoSchedule"}]
    }
    assert [taint.key for taint in node_of(item, RACK_LABELS).taints] == ["gpu"]
