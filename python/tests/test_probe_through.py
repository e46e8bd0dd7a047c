"""Measurements through a controller: the requests to it, and output equal to that of local measurements."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from leeward import probe

Run = Callable[..., subprocess.CompletedProcess[str]]
Requests = list[tuple[str, str, Any]]


def path(source: str, destination: str, rate: float | None) -> dict[str, Any]:
    """Result of a train on a path."""
    measured = {"rate_bps": rate, "train_bps": rate, "bound_bps": None, "sent_bps": 3e9, "loss": 0.0}
    counts = {"rtt_s": 27e-6, "spread": 0.02, "sent": 2000, "received": 2000, "overrun": 0}
    flags = {"sender_limited": False, "overran": False, "error": None if rate else "nobody listens there"}
    return {"from": source, "to": destination} | measured | counts | flags


PAIR_RESULT = {
    "path": {"from": "a", "to": "b"},
    "beside": {"from": "a", "to": "c"},
    "alone_bps": 9e7,
    "beside_bps": 4e7,
    "noise_bps": 1e6,
    "fall": 0.55,
    "sum": 1.0,
    "shares": True,
}
MESH = {
    "hosts": [{"name": name, "address": f"10.0.0.{at}:7601"} for at, name in enumerate("ab")],
    "paths": [path("a", "b", 4e7), path("b", "a", 8e7)],
    "topology": None,
    "bottlenecks": None,
    "cluster": "shape: pipe\n",
}
BOTTLENECKS = {
    "between_four": [],
    "from_one": [PAIR_RESULT],
    "between_four_share": 0,
    "from_one_share": 1,
    "sum": 1.0,
    "kind": None,
    "uplinks": [],
    "subtrees": [],
    "shared_links": [{"name": "rack-of-a", "level": "rack", "hosts": ["a", "b"], "rate_bps": 5.7e7}],
    "errors": [],
    "topology": None,
}


@contextmanager
def controller(**over: Any) -> Iterator[tuple[str, Requests]]:
    """Yields the address and requests of a controller with one survey, which ends at the second query."""
    requests: Requests = []
    survey: dict[str, Any] = {"id": "7", "kind": "path", "hosts": [], "time": "", "done": 0}
    survey |= dict.fromkeys(("steps", "ended", "error", "cluster_version", "result"))
    survey["state"] = "running"

    class Answers(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def answer(self) -> None:
            length = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            requests.append((self.command, self.path, body))
            if len(requests) > 2:
                survey.update({"state": "done", "done": 3, "steps": 3} | over)
            text = json.dumps(survey).encode()
            self.send_response(201 if self.command == "POST" else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def do_DELETE(self) -> None:
            self.answer()

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()


@pytest.mark.parametrize(
    ("command", "function", "result", "body"),
    [
        (
            ("path", "a", "b", "--times", "2", "--bursts", "3"),
            "path",
            [path("a", "b", 4e7), path("a", "b", 4.1e7)],
            {"kind": "path", "hosts": ["a", "b"], "times": 2},
        ),
        (("mesh", "--hosts", "a,b"), "mesh", MESH, {"kind": "mesh", "hosts": ["a", "b"], "at_once": 64}),
        (
            ("mesh", "--hosts", "a,b,c", "--bottlenecks", "--pairs", "4", "--for", "2s"),
            "mesh",
            MESH | {"bottlenecks": BOTTLENECKS},
            {
                "kind": "mesh",
                "hosts": ["a", "b", "c"],
                "at_once": 64,
                "bottlenecks": {"duration": "2s", "pairs": 4, "seed": 1},
            },
        ),
        (
            ("bottlenecks", "--hosts", "a,b,c", "--pairs", "4"),
            "bottlenecks",
            BOTTLENECKS,
            {"kind": "bottlenecks", "hosts": ["a", "b", "c"], "pairs": 4, "duration": "3s"},
        ),
    ],
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_measurements_of_a_controller_are_printed_like_local_ones(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    function: str,
    result: Any,
    body: dict[str, Any],
    form: str,
) -> None:
    monkeypatch.setattr(probe, function, lambda *_, **__: result)
    local = run("probe", *command, "-o", form)
    assert local.returncode == 0, local.stderr
    with controller(result=result) as (url, requests):
        through = run("probe", *command, "-o", form, "--controller", url)
    assert (through.returncode, through.stdout) == (0, local.stdout), through.stderr
    assert requests[0][:2] == ("POST", "/v1/probes")
    assert body.items() <= requests[0][2].items()
    assert {(method, path) for method, path, _ in requests[1:]} == {("GET", "/v1/probes/7")}


def test_a_mesh_is_stored_in_the_controller_or_the_reason_is_printed(run: Run, tmp_path: Path) -> None:
    mesh = ("probe", "mesh", "--hosts", "a,b", "--keep")
    with controller(result=MESH, cluster_version="12") as (url, requests):
        kept = run(*mesh, "--controller", url, "--out", str(tmp_path / "measured.yaml"))
    assert kept.returncode == 0, kept.stderr
    assert "the rates are in version 12 of the cluster" in kept.stderr
    assert (tmp_path / "measured.yaml").read_text() == MESH["cluster"]
    assert requests[0][2]["keep"] is True
    with controller(result=MESH, error="not kept: no rate from a to b") as (url, _):
        unkept = run(*mesh, "--controller", url)
    assert (unkept.returncode, unkept.stderr.splitlines()[-1]) == (1, "error: not kept: no rate from a to b")


def test_failed_probes_and_conflicting_options_are_reported_in_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of ours\n")
    one = ("probe", "path", "a", "b")
    with controller(state="failed", error="10.0.0.1:7601: nobody listens there") as (url, _):
        failed = run(*one, "--controller", url)
        assert failed.returncode == 1
        assert failed.stderr.splitlines()[-1] == "error: 10.0.0.1:7601: nobody listens there"
    cases = [
        ((*one, "--controller", url, "--secret", str(tmp_path / "secret")), "error: --secret: "),
        (("probe", "mesh", "--hosts", "a=10.0.0.1,b", "--controller", url), "error: --hosts: `a=10.0.0.1`"),
        (("probe", "mesh", "--hosts", "a,b", "--keep"), "error: --keep: "),
        ((*one, "--controller", "here"), "error: --controller: "),
    ]
    for command, beginning in cases:
        result = run(*command)
        assert (result.returncode, result.stderr.startswith(beginning)) == (2, True), result.stderr


def test_an_interrupted_survey_is_cancelled_in_the_controller() -> None:
    from leeward import Client

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with controller() as (url, requests):
        with pytest.raises(KeyboardInterrupt):
            Client(url, sleep=interrupted).measure("path", ["a", "b"])
        assert [(method, path) for method, path, _ in requests[1:]] == [("DELETE", "/v1/probes/7")]
