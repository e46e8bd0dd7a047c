"""Decisions of a client while the service is away: killed, or behind a proxy that passes nothing."""

import json
import logging
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward import Client, Cluster, Fallback, InputError, ProblemError, RefusedError, UnreachableError
from leeward.client.alone import Request, State, choose
from leeward.client.breaker import Breaker
from leeward.client.problems import NotControllerError, parse_problem
from leeward.client.standby import is_away
from leeward.placement import place_replicas
from support.fixtures import LEEWARD, Run, read_address

CLUSTER = {
    "racks": 5,
    "hosts_per_rack": 4,
    "nic": "1Gbps",
    "oversubscription": 4,
    "cpus": 8,
    "devices": [{"read": "200MB/s", "write": "120MB/s", "capacity": "1TB"}],
}
TASKS = {"tasks": [{"name": "web", "count": 2, "cpus": 1}]}
QUICK = Fallback(wait_s=0.3, retry_s=0.05)


class Service:
    """A service of its own for one test, at an address that it keeps when it starts again."""

    def __init__(self, folder: Path) -> None:
        (folder / "c.json").write_text(json.dumps(CLUSTER))
        self.folder, self.port, self.process = folder, 0, None

    def start(self) -> str:
        listen = f"127.0.0.1:{self.port}"
        command = [LEEWARD, "serve", "--cluster", "c.json", "--listen", listen, "--store", "d.sqlite"]
        self.process: Any = subprocess.Popen(
            [*command, "--policy", "uniform", "--task-policy", "borg"],
            cwd=self.folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        url = read_address(self.process)
        self.port = int(url.rpartition(":")[2])
        return url

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)
        self.process.stderr.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(tmp_path)
    try:
        yield service
    finally:
        if service.process is not None and service.process.returncode is None:
            service.kill()


class Proxy:
    """Forwards connections to a service.

    Attributes:
        mute: While true, no byte of the service's answers passes.
    """

    def __init__(self, port: int) -> None:
        self.mute, self.port = False, port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.sockets = [self.listener]
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for each in self.sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.port))
                self.sockets += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=ends, daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not (self.mute and source.getpeername()[1] == self.port):
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy(service: Service) -> Iterator[Proxy]:
    proxy = Proxy(int(service.start().rpartition(":")[2]))
    yield proxy
    proxy.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.01)


def is_alone(decision: Any) -> bool:
    return "fallback" in decision


# ---- an outage ---------------------------------------------------------------------------------------


def test_placements_continue_while_a_killed_service_is_away_and_return_to_it(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "leeward.client")
    client = Client(service.start(), fallback=QUICK)
    assert not is_alone(client.place_replicas("256MiB"))
    client.prepare_fallback()
    service.kill()
    first = client.place_replicas("256MiB", writer="r0h1", lasts="2h")
    assert first["fallback"]["reason"].endswith("no answer: Connection refused")
    assert not first["fallback"]["outcome_unknown"], "no attempt reached the service"
    age_s = first["fallback"]["snapshot_age_s"]
    assert age_s is not None
    assert 0 < age_s < 60
    assert (first["policy"], first["hosts"][0], first["note"] is None) == ("uniform", "r0h1", False)
    lasts = datetime.fromisoformat(first["expires"] or "") - datetime.fromisoformat(first["time"])
    assert lasts == timedelta(hours=2)
    tasks = client.place_tasks(TASKS, client="scheduler", sequence=1)
    assert (tasks["policy"], len(tasks["hosts"]), tasks["sequence"]) == ("borg", 2, 1)

    begin = time.monotonic()
    made = [client.place_replicas("64MiB") for _ in range(100)]
    assert time.monotonic() - begin < 100 * 0.02
    assert len({tuple(decision["hosts"]) for decision in made}) > 50, "each request draws for itself"
    assert client.fallbacks == 102

    service.start()
    until(lambda: not is_alone(client.place_replicas("64MiB")))
    assert not is_alone(client.place_tasks(TASKS))
    begins, ends = caplog.messages
    assert begins.startswith(f"the service is away: {first['fallback']['reason']}; the client decides alone")
    assert re.match(r"the service is back after \d+\.\d s; \d+ decisions", ends)

    released = client.release(first["id"])
    assert (released["id"], released["hosts"]) == (first["id"], first["hosts"])
    assert released["released"] is not None
    assert client.release(first["id"])["released"] is not None, "a second release changes nothing"
    assert client.release("alone:key:of another client")["hosts"] == []
    assert client.made_alone[:101] == [tasks, *made]
    assert client.take_made_alone()[:101] == [tasks, *made]
    assert client.made_alone == []


def test_a_service_that_hangs_delays_one_placement_and_its_outcome_is_unknown(proxy: Proxy) -> None:
    client = Client(proxy.url, fallback=QUICK)
    client.prepare_fallback()
    proxy.mute = True
    begin = time.monotonic()
    first = client.place_replicas("256MiB", key="mine")
    assert 0.3 <= time.monotonic() - begin < 2
    assert first["fallback"]["reason"] == f"outcome unknown: {proxy.url}: no answer: no answer in time"
    assert first["fallback"]["outcome_unknown"]
    begin = time.monotonic()
    others = [client.place_replicas("256MiB") for _ in range(100)]
    assert time.monotonic() - begin < 100 * 0.02
    assert not any(one["fallback"]["outcome_unknown"] for one in others), "they were never sent"

    proxy.mute = False
    until(lambda: not is_alone(client.place_replicas("64MiB")))
    assert client.place_replicas("256MiB", key="mine") == first, "one request has one answer"
    assert first in client.take_made_alone()
    again = client.place_replicas("256MiB", key="mine")
    assert (is_alone(again), again["key"]) == (False, "mine")
    assert [one["key"] for one in client.decisions()].count("mine") == 1, "the service had placed it"


def test_hosts_that_were_down_draining_or_full_are_not_chosen(service: Service) -> None:
    client = Client(service.start(), fallback=QUICK)
    now = datetime.now(UTC)
    states: dict[str, Any] = {
        "r0h0": {"up": False},
        "r1h0": {"draining": True},
        "r2h0": {"stored": "999.9GB"},
        "r3h0": {"stored": "500GB"},
    }
    client.report(now - timedelta(seconds=1), now, hosts=states)
    client.prepare_fallback()
    service.kill()

    def chosen(**fields: Any) -> set[str]:
        made = [client.place_replicas("256MiB", key=f"{fields} {number}", **fields) for number in range(100)]
        return {host for decision in made for host in decision["hosts"]}

    every = {f"r{rack}h{host}" for rack in range(5) for host in range(4)}
    assert every - chosen() == {"r0h0", "r1h0", "r2h0"}
    assert every - chosen(max_imbalance=0.2) == states.keys()
    assert client.place_replicas("256MiB", writer="r0h0")["hosts"][0] in {"r0h1", "r0h2", "r0h3"}
    placed = {host for n in range(50) for host in client.place_tasks(TASKS, key=f"tasks {n}")["hosts"]}
    assert not placed & {"r0h0", "r1h0"}
    with pytest.raises(RefusedError, match="the client decided alone, because the service is away"):
        client.place_tasks({"tasks": [{"name": "huge", "cpus": 1000}]})


INVALID: list[Callable[[Client], Any]] = [
    lambda client: client.place_replicas("256"),
    lambda client: client.place_replicas("0B"),
    lambda client: client.place_replicas("1MiB", writer="nobody"),
    lambda client: client.place_replicas("1MiB", exclude="nowhere"),
    lambda client: client.place_replicas("1MiB", collocate="nobody"),
    lambda client: client.place_replicas("1MiB", tags="gold"),
    lambda client: client.place_replicas("1MiB", max_imbalance=2),
    lambda client: client.place_replicas("1MiB", lasts="long"),
    lambda client: client.place_replicas("1MiB", replicas=200),
    lambda client: client.place_replicas("1MiB", client="alone"),
    lambda client: client.place_tasks({"tasks": [{"name": "a", "cpus": "x"}]}),
    lambda client: client.place_tasks({"tasks": [{"name": "a"}], "matrix": "a.csv"}),
    lambda client: client.place_tasks(TASKS, key="first") and client.place_replicas("1MiB", key="first"),
]


def test_invalid_requests_are_the_same_problems_with_and_without_the_service(service: Service) -> None:
    client = Client(service.start(), fallback=QUICK, patience_s=0)
    client.prepare_fallback()
    problems = []
    for call in INVALID:
        with pytest.raises(ProblemError) as caught:
            call(client)
        problems.append(caught.value)
    service.kill()
    for call, expected in zip(INVALID, problems, strict=True):
        if expected.field == "sequence":
            with pytest.raises(UnreachableError):
                call(client)
            continue
        with pytest.raises(ProblemError) as caught:
            call(client)
        actual = caught.value
        assert (actual.word, actual.status) == (expected.word, expected.status)
        if expected.word == "invalid":
            assert (actual.field, actual.detail) == (expected.field, expected.detail)


def test_guarantees_are_not_made_alone(service: Service) -> None:
    client = Client(service.start(), fallback=QUICK, patience_s=0)
    client.prepare_fallback()
    service.kill()
    with pytest.raises(UnreachableError):
        client.promise({"name": "mail"})
    with pytest.raises(UnreachableError):
        client.place_volume({"name": "mail"})


def test_threads_share_a_client_through_an_outage(service: Service) -> None:
    client = Client(service.start(), fallback=QUICK)
    client.prepare_fallback()
    with ThreadPoolExecutor(8) as threads:
        placed = [threads.submit(client.place_replicas, "1MiB") for _ in range(100)]
        service.kill()
        placed += [threads.submit(client.place_replicas, "1MiB") for _ in range(300)]
        decisions = [one.result() for one in placed]
    alone = [decision for decision in decisions if is_alone(decision)]
    assert len({decision["id"] for decision in decisions}) == 400
    assert 300 <= client.fallbacks == len(alone) == len(client.made_alone)


# ---- the state of the cluster ------------------------------------------------------------------------

NOWHERE = "http://127.0.0.1:1"


def test_a_client_without_a_cluster_raises_as_one_without_a_fallback() -> None:
    client = Client(NOWHERE, patience_s=0, fallback=QUICK)
    for _ in range(2):
        with pytest.raises(UnreachableError, match="Connection refused"):
            client.place_replicas("1MiB")
    assert client.fallbacks == 0
    with pytest.raises(InputError, match="fallback: the client has none"):
        Client(NOWHERE).prepare_fallback()
    assert (Client(NOWHERE).fallbacks, Client(NOWHERE).made_alone) == (0, [])


def test_a_cluster_of_the_settings_serves_until_the_client_has_read_one(service: Service) -> None:
    other = CLUSTER | {"racks": 2}
    client = Client(service.start(), fallback=Fallback(cluster=other, wait_s=0.3, retry_s=0.05))
    service.kill()
    decision = client.place_replicas("1MiB")
    assert decision["fallback"]["snapshot_age_s"] is None
    assert {host[:2] for host in decision["hosts"]} == {"r0", "r1"}
    service.start()
    until(lambda: not is_alone(client.place_replicas("1MiB")))
    # The first placement by the service makes the client read its cluster, in the background.
    standby = client._standby
    until(lambda: standby is not None and standby._state is not None and standby._state.read_at is not None)
    service.kill()
    assert client.place_replicas("1MiB", writer="r4h0")["hosts"][0] == "r4h0"


def test_a_state_that_cannot_be_read_is_reported_once(
    service: Service, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    def fails(*_: Any) -> None:
        reads.append(1)
        raise ProblemError("forbidden", "no", 403, "the token may not read")

    monkeypatch.setattr("leeward.client.standby.read_state", fails)
    client = Client(service.start(), fallback=Fallback(refresh_s=0.01))
    until(lambda: bool(client.place_replicas("1MiB")) and len(reads) > 3)
    message = "the client cannot read the state of the cluster for its fallback: the token may not read"
    assert caplog.messages == [message]


def test_the_oldest_decisions_are_dropped_above_the_limit() -> None:
    client = Client(NOWHERE, fallback=Fallback(cluster=CLUSTER, wait_s=0.01, most=3))
    for number in range(5):
        client.place_replicas("1MiB", client="writer", sequence=number)
    assert [decision["sequence"] for decision in client.made_alone] == [2, 3, 4]
    assert client.fallbacks == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"replicas": "borg"}, r"^replicas: .*borg"),
        ({"tasks": "borg:spread=x"}, r"^tasks: borg.spread: `x`: expected"),
        ({"cluster": {"racks": 0}}, "racks"),
        ({"wait_s": 0}, "wait_s: 0: expected more than 0 seconds"),
        ({"retry_s": float("nan")}, "retry_s: nan: expected more than 0 seconds"),
        ({"seed": -1}, "seed: `-1`: expected a whole number"),
        ({"most": 0}, "most: `0`: expected a whole number of at least 1"),
    ],
)
def test_invalid_settings_are_rejected(settings: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Fallback(**settings)


# ---- decisions ---------------------------------------------------------------------------------------

TAGGED = Cluster(
    {
        "nic": "1Gbps",
        "racks": [
            {
                "name": f"r{rack}",
                "link": "2Gbps",
                "hosts": [
                    {"name": f"r{rack}h{host}", "tags": ["ssd"] if rack % 2 else []} for host in range(4)
                ],
            }
            for rack in range(6)
        ],
    }
)
HOSTS = [f"r{rack}h{host}" for rack in range(6) for host in range(4)]


@given(
    key=st.text("abc", min_size=1, max_size=3),
    writer=st.none() | st.sampled_from(HOSTS),
    replicas=st.integers(1, 4),
    domains=st.integers(0, 3),
    exclude=st.lists(st.sampled_from([*HOSTS, "r0", "r1"]), max_size=4),
    tags=st.sampled_from([[], ["ssd"]]),
    closed=st.frozensets(st.sampled_from(HOSTS), max_size=6),
)
def test_chosen_hosts_obey_the_request_and_depend_on_nothing_else(
    key: str,
    writer: str | None,
    replicas: int,
    domains: int,
    exclude: list[str],
    tags: list[str],
    closed: frozenset[str],
) -> None:
    body = {"size": "1MiB", "writer": writer, "replicas": replicas, "fault_domains": domains}
    body |= {"exclude": exclude, "tags": tags, "blocks_left": 1}
    request = Request("replicas", body, None, None, key)
    state = State(TAGGED, closed=closed)
    try:
        hosts = choose(state, request, "uniform", 1).hosts
    except RefusedError:
        return
    assert choose(State(TAGGED, closed=frozenset(sorted(closed))), request, "uniform", 1).hosts == hosts
    racks = [host[:2] for host in hosts]
    assert len(set(hosts)) == replicas
    assert not set(hosts) & (closed | set(exclude))
    assert not set(racks) & set(exclude)
    assert not tags or set(racks) <= {"r1", "r3", "r5"}
    assert len(set(racks)) > min(domains, replicas - 1)
    if (
        writer is not None
        and not {writer, writer[:2]} & (closed | set(exclude))
        and (not tags or writer[1] in "135")
    ):
        assert hosts[0] == writer


def test_a_decision_is_that_of_the_command_with_the_seed_of_its_request(run: Run, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(CLUSTER))
    seeds = []

    def place(*arguments: Any, **fields: Any) -> Any:
        seeds.append(fields["seed"])
        return place_replicas(*arguments, **fields)

    body = {"size": "256MiB", "writer": "r2h1", "replicas": 3, "exclude": ["r1"], "tags": []}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leeward.placement.place_replicas", place)
        state = State(Cluster(CLUSTER), closed=frozenset({"r3h0", "r2h1"}))
        choice = choose(state, Request("replicas", body, None, None, "k"), "uniform", 1)
    command = ["place", "replicas", "--cluster", "c.json", "--size", "256MiB", "--writer", "r2h1"]
    command += ["--policy", "uniform", "--exclude", "r1,r2h1,r3h0", "--seed", str(seeds[0])]
    assert run(*command).stdout.split() == choice.hosts


# ---- the breaker -------------------------------------------------------------------------------------


def test_the_breaker_sends_one_request_after_a_check_and_waits_longer_after_each_failure() -> None:
    now = [0.0]
    breaker = Breaker(1.0, lambda: now[0])
    assert breaker.admits()
    assert not breaker.must_check(), "a service that answers is not checked"
    assert (breaker.failed("refused"), breaker.failed("again")) == (True, False)
    times = []
    for _ in range(9):
        while not breaker.must_check():
            assert not breaker.admits()
            now[0] += 0.25
        assert not breaker.must_check(), "one check at a time"
        times.append(now[0])
        breaker.checked(ready=True)
        assert (breaker.admits(), breaker.admits()) == (True, False), "one request tries the service"
        assert not breaker.failed("no answer in time")
    waits = [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    now[0] += 60
    assert breaker.must_check()
    breaker.checked(ready=False)
    assert not breaker.admits()
    now[0] += 60
    assert breaker.must_check()
    breaker.checked(ready=True)
    assert breaker.admits()
    breaker.dropped()
    assert breaker.admits(), "an interrupted request leaves the turn to the next"
    assert breaker.succeeded() == now[0]
    assert (breaker.succeeded(), breaker.admits(), breaker.reason) == (None, True, "")


def problem(word: str, status: int, **fields: Any) -> ProblemError:
    return parse_problem(status, json.dumps({"type": f"urn:leeward:problem:{word}", **fields}).encode())


@pytest.mark.parametrize(
    ("error", "away", "unknown"),
    [
        (UnreachableError("u", "refused", False), True, False),
        (UnreachableError("u", "no answer in time"), True, True),
        (NotControllerError("u", "hello"), False, True),
        (problem("busy", 503), True, False),
        (problem("store", 503), True, True),
        (problem("follower", 503), True, False),
        (problem("follower", 503, leader="http://b"), False, False),
        (problem("broken", 500), True, True),
        (problem("too-many", 429), False, False),
        (problem("refused", 409), False, False),
        (problem("forbidden", 403), False, False),
        (parse_problem(502, b"<html>bad gateway"), True, True),
    ],
    ids=str,
)
def test_the_errors_of_a_service_that_is_away(
    error: ProblemError | UnreachableError, away: bool, unknown: bool
) -> None:
    assert (is_away(error), error.outcome_unknown) == (away, unknown)
