"""The agent: a real controller, a real agent, and traffic between network namespaces."""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from leeward import Client
from leeward._quantities import read_bytes
from support.labs import ADDRESSES, DEVICE, two_hosts

Run = Callable[..., subprocess.CompletedProcess[str]]
Serve = Callable[..., AbstractContextManager[str]]

LEEWARD = str(Path(sys.executable).with_name("leeward"))
CLUSTER = "{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1}\n"
SECONDS = 8.0
SEND = """\
import socket, sys, time
address, rate, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
socket_ = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
began = time.monotonic()
sent = 0
while (passed := time.monotonic() - began) < seconds:
    while sent * 8 < rate * passed:
        socket_.sendto(bytes(1400), (address, 9))
        # On the wire, each packet also has headers of Ethernet, IP and UDP.
        sent += 1400 + 14 + 20 + 8
    time.sleep(0.002)
print(sent * 8 / passed)
"""
ASK = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())"


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """Namespaces of two hosts of a lab."""
    with two_hosts() as names:
        # Nobody receives the packets of these tests; an answer to each would be traffic too.
        limit = ("sysctl", "-qw", "net.ipv4.icmp_ratelimit=1000")
        subprocess.run(inside(names[1], *limit), check=True)
        yield names


def inside(namespace: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", namespace, *command]


class Controller:
    """A controller in a namespace. A test may kill it and start it again on the same port."""

    def __init__(self, namespace: str, folder: Path) -> None:
        self.namespace = namespace
        self.folder = folder
        (folder / "c.yaml").write_text(CLUSTER)
        self.start()

    def start(self) -> None:
        serve = [LEEWARD, "serve", "--cluster", "c.yaml", "--listen", "127.0.0.1:7600", "--store", "memory"]
        command = inside(self.namespace, *serve, "--interval", "200ms")
        self.process = subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        assert self.process.stderr.readline().startswith("listening on ")

    def kill(self) -> None:
        with self.process:
            self.process.kill()

    def link(self, name: str) -> Any:
        url = f"http://127.0.0.1:7600/v1/links/{name}"
        result = subprocess.run(
            inside(self.namespace, sys.executable, "-c", ASK, url), capture_output=True, text=True, check=True
        )
        return json.loads(result.stdout)


def wait_for_line(agent: subprocess.Popen[str], part: str) -> str:
    """Returns the next line of an agent's log that contains a text."""
    assert agent.stderr is not None
    for line in agent.stderr:
        if part in line:
            return line
    raise AssertionError(f"the agent ended without a line with {part!r}")


def test_reported_egress_is_within_10_percent_and_resumes_after_a_restart(
    namespaces: tuple[str, str], tmp_path: Path
) -> None:
    here, _ = namespaces
    controller = Controller(here, tmp_path)
    options = ["--controller", "http://127.0.0.1:7600", "--host", "r0h1", "--interface", DEVICE]
    command = inside(here, LEEWARD, "agent", *options, "--interval", "200ms")
    agent = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        wait_for_line(agent, "reports accepted")
        send = inside(here, sys.executable, "-c", SEND, ADDRESSES[1], "40e6", str(SECONDS))
        with subprocess.Popen(send, stdout=subprocess.PIPE, text=True) as sending:
            time.sleep(1.5)
            # A window of 200 ms on a busy machine may show any rate.
            rates = []
            for _ in range(7):
                rates.append(controller.link("r0h1:egress")["measured_bps"])
                time.sleep(0.3)
            sent = float(sending.communicate(timeout=30)[0])
        assert abs(statistics.median(rates) / sent - 1) < 0.1, (rates, sent)
        assert controller.link("r0h1:ingress")["measured_bps"] < 0.1 * sent
        assert controller.link("r1h0:egress")["measured_bps"] is None, "no agent reports it"
        controller.kill()
        wait_for_line(agent, "report failed: ")
        time.sleep(1)
        controller.start()
        line = wait_for_line(agent, "reports accepted")
        assert 1 <= int(line.split()[-1]) <= 100, line
        assert controller.link("r0h1:egress")["measured_bps"] is not None
        # The links of a stopped agent are unknown, not idle, so they take no work.
        agent.send_signal(signal.SIGTERM)
        agent.wait(20)
        time.sleep(1)
        silent = controller.link("r0h1:egress")
        assert silent["seen"] is False, silent
        assert not silent.get("residual_bps"), silent
    finally:
        with agent:
            agent.kill()
        controller.kill()


def test_absurd_or_missing_reports_leave_links_loaded_or_unknown_never_idle(
    serve: Serve, tmp_path: Path
) -> None:
    cluster = {"racks": 2, "hosts_per_rack": 2, "nic": "1Gbps", "oversubscription": 1}
    links = [f"r{number // 2}h{number % 2}:{way}" for number in range(4) for way in ("egress", "ingress")]

    def ask(url: str, body: object = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    with serve(tmp_path, cluster, "--interval", "1s") as url:

        def report(load: object) -> int:
            until = datetime.now(UTC)
            window = {"from": (until - timedelta(seconds=1)).isoformat(), "until": until.isoformat()}
            loads = [{"link": link, "load_bps": load} for link in links]
            return ask(url + "/v1/reports", window | {"links": loads})[0]

        def states() -> list[tuple[bool, int]]:
            return [(link["seen"], link["residual_bps"]) for link in ask(url + "/v1/links")[1]["items"]]

        assert report(0) == 200
        assert all(seen and residual > 0 for seen, residual in states())
        assert [report(absurd) for absurd in (-1, 1e19, None, "1Gbps")] == [422] * 4
        # A report above the capacity of a link counts as one of a full link, and so in the sums of the racks.
        before = states()
        assert report(1e18) == 200
        assert all(0 < now < then for (_, now), (_, then) in zip(states(), before, strict=True))
        # All agents have stopped.
        end = time.monotonic() + 30
        while any(seen for seen, _ in states()):
            assert time.monotonic() < end, states()
            time.sleep(0.2)
        assert all(residual == 0 for _, residual in states())
        assert ask(url + "/v1/place/replicas", {"size": "256MiB"})[0] == 409


def test_the_storage_of_volumes_reaches_the_controller(serve: Serve, tmp_path: Path) -> None:
    cluster = {"racks": 2, "hosts_per_rack": 2, "nic": "1Gbps", "oversubscription": 1}
    with serve(tmp_path, cluster, "--interval", "200ms") as url:
        client = Client(url)
        assert client.host("r0h1")["storage"] is None
        volumes = ["--volume", str(tmp_path), "--volume", "/", "--dscp", "cs6"]
        options = [
            "--controller",
            url,
            "--host",
            "r0h1",
            "--interface",
            "lo",
            "--interval",
            "200ms",
            *volumes,
        ]
        with subprocess.Popen([LEEWARD, "agent", *options], stderr=subprocess.PIPE, text=True) as agent:
            try:
                wait_for_line(agent, "reports accepted")
                host = client.host("r0h1")
            finally:
                agent.kill()
        assert host["storage"] is not None
        stored, storage = read_bytes("stored", host["stored"]), read_bytes("storage", host["storage"])
        systems = {os.stat(path).st_dev: os.statvfs(path) for path in (tmp_path, Path("/"))}
        blocks = sum(one.f_blocks * one.f_frsize for one in systems.values())
        assert 0 < stored <= storage <= blocks
        assert client.host("r0h0")["storage"] is None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--controller", "leeward:7600"], "error: --controller: `leeward:7600`: expected a URL such as "),
        (["--controller", "http://a", "--interval", "1"], "error: --interval: `1`: the unit is missing"),
        (["--controller", "http://a", "--token-file", "none"], "error: none: no such file"),
        (["--controller", "http://a", "--ca", "none"], "error: --ca: no controller URL is https"),
        (["--controller", "https://a", "--probe-listen", "0.0.0.0:1"], "error: --probe-listen: "),
        (
            ["--controller", "http://a", "--volume", "data"],
            "error: --volume: `data`: expected an absolute path",
        ),
        (["--controller", "http://a", "--volume", "/a,/a/"], "error: --volume: `/a/`: given twice"),
        (
            ["--controller", "http://a", "--dscp", "64"],
            "error: --dscp: `64`: expected a code point from 0 to 63",
        ),
    ],
)
def test_invalid_agent_options_print_an_error_and_exit_with_2(
    run: Run, arguments: list[str], error: str
) -> None:
    result = run("agent", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(error)
