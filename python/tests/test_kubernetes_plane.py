"""A trial of a real control plane: etcd and kube-apiserver, behind kubectl, with a Prometheus beside them."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.parts import lack, require

SCHEDULER = Path(__file__).parents[2] / "integrations/kubernetes/scheduler"
G = 10**9
INTERVAL, INTERVALS = 60, 30
RACKS = {"ra": ("a1", "a2"), "rb": ("b1", "b2")}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder of a running control plane, with its kubeconfig and its log of requests."""
    require("kubectl")
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        lack("no go: https://go.dev/dl has it")
    folder = tmp_path_factory.mktemp("plane")
    program = folder / "testplane"
    subprocess.run([go, "build", "-o", str(program), "./testplane"], cwd=SCHEDULER, check=True)
    (folder / "data").mkdir()
    command = [str(program), "-folder", str(folder / "data")]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n", (folder / "log").read_text()
        yield folder / "data"
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()


def create(plane: Path, items: list[dict[str, Any]], *arguments: str) -> None:
    command = ["kubectl", f"--kubeconfig={plane / 'kubeconfig'}", "create", *arguments, "-f", "-"]
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    subprocess.run(command, input=json.dumps(document), text=True, check=True, capture_output=True)


def node(name: str, rack: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"leeward.dev/rack": rack},
            "annotations": {"leeward.dev/rack-link": "10G"},
        },
        "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "600"}},
    }


def pod(name: str, on: str, egress: str = "2G") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {"leeward.dev/peak-egress": egress, "leeward.dev/peak-ingress": "0"},
        },
        "spec": {
            "nodeName": on,
            "containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "10m"}}}],
        },
    }


def openmetrics(begin: int, loud: str) -> Iterator[str]:
    """Metrics of half an hour around the creation of the pods: rack ra is hot, and a pod adds to it."""
    lines = []
    for at in range(begin - 300, begin + INTERVAL * INTERVALS + 15, 15):
        for name, bps in {"a1": 4.0, "a2": 4.0, "b1": 1.0, "b2": 1.0}.items():
            total = round((at - begin + 600) * bps * G / 8)
            for way in ("transmit", "receive"):
                lines.append(
                    f'node_network_{way}_bytes_total{{instance="{name}:9100",device="eth0"}} {total} {at}'
                )
        ids = f'namespace="default",pod="loud",uid="{loud}"'
        lines.append(f'kube_pod_info{{{ids},node="a1",created_by_kind="",created_by_name=""}} 1 {at}')
        lines.append(f"kube_pod_created{{{ids}}} {begin} {at}")
        total = round((at - begin + 600) * G / 8)
        for way in ("transmit", "receive"):
            lines.append(
                f'container_network_{way}_bytes_total{{namespace="default",pod="loud"}} {total} {at}'
            )
    return iter(sorted(lines, key=lambda one: one.partition(" ")[0]))


@pytest.mark.whole
def test_a_trial_of_a_real_control_plane_reads_all_pages_and_writes_nothing(
    run: Callable[..., Any], plane: Path, backfill: Any, tmp_path: Path
) -> None:
    create(
        plane, [node(name, rack) for rack, names in RACKS.items() for name in names], "--save-config=false"
    )
    # More than a page of pods, and one on the hot rack.
    quiet = [pod(f"quiet-{number}", "b1", "1M") for number in range(520)]
    create(plane, [*quiet, pod("loud", "a1")], "--save-config=false")
    query = ["kubectl", f"--kubeconfig={plane / 'kubeconfig'}", "get", "pod", "loud", "-o", "json"]
    loud = json.loads(subprocess.run(query, check=True, capture_output=True).stdout)["metadata"]
    created = round(datetime.fromisoformat(loud["creationTimestamp"]).replace(tzinfo=UTC).timestamp())
    begin = (created // INTERVAL - 10) * INTERVAL
    (tmp_path / "prometheus").mkdir()
    audit = plane / "audit"
    before = len(audit.read_text().splitlines())
    with backfill(tmp_path / "prometheus", openmetrics(begin, loud["uid"])) as url:
        end = begin + INTERVAL * INTERVALS
        options = ["--since", str(begin), "--until", str(end), "--interval", "1min", "--prometheus", url]
        options += ["--kubeconfig", str(plane / "kubeconfig"), "-o", "json"]
        result = run("kubernetes", "trial", *options, HOME=str(tmp_path))
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert [(move["pod"], move["from_rack"], move["to_rack"]) for move in document["moves"]] == [
        ("loud", "ra", "rb")
    ]
    assert document["pods"]["not_judged"] == {"no_traffic": 520}
    assert document["after"]["hot_h"] < document["before"]["hot_h"]
    # The server writes its log a moment after the answer.
    time.sleep(1)
    requests = [json.loads(line) for line in audit.read_text().splitlines()[before:]]
    of_kubectl = [one for one in requests if one["userAgent"].startswith("kubectl")]
    assert {one["verb"] for one in of_kubectl} <= {"get", "list"}
    assert sum("/api/v1/pods" in one["requestURI"] for one in of_kubectl) == 2
