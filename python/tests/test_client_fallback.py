"""Decisions of a client while the service is away: killed, or behind a proxy that passes nothing."""

import logging
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from leeward import Client, Fallback, InputError, ProblemError, RefusedError, UnreachableError
from support.outages import CLUSTER, Proxy, Service

TASKS = {"tasks": [{"name": "web", "count": 2, "cpus": 1}]}
QUICK = Fallback(wait_s=0.3, retry_s=0.05, hand_over=False)
HANDS_OVER = Fallback(wait_s=0.3, retry_s=0.05)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(tmp_path)
    yield service
    service.kill()


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
    client.prepare_fallback()
    assert not is_alone(client.place_replicas("256MiB"))
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

    assert client.release(first["id"], dry_run=True)["id"] == first["id"]
    assert first in client.made_alone, "a dry run releases nothing"
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


def test_guarantees_and_dry_runs_are_not_made_alone(service: Service) -> None:
    client = Client(service.start(), fallback=QUICK, patience_s=0)
    client.prepare_fallback()
    service.kill()
    with pytest.raises(UnreachableError):
        client.promise({"name": "mail"})
    with pytest.raises(UnreachableError):
        client.place_volume({"name": "mail"})
    assert is_alone(client.place_replicas("1MiB"))
    with pytest.raises(UnreachableError):
        client.place_replicas("1MiB", dry_run=True)
    assert client.fallbacks == 1


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
    with ThreadPoolExecutor(8) as threads:
        same = list(threads.map(lambda _: client.place_replicas("1MiB", key="same"), range(100)))
    assert all(decision == same[0] for decision in same), "one request has one answer"


# ---- the hand-over -----------------------------------------------------------------------------------


def test_decisions_made_alone_are_handed_over_once_the_service_answers_again(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(service.start(), fallback=HANDS_OVER)
    client.prepare_fallback()
    service.kill()
    block = client.place_replicas("256MiB", writer="r0h1", lasts="2h", key="block")
    tasks = client.place_tasks(TASKS, client="scheduler", sequence=1, job="web")
    other = client.place_replicas("1MiB")
    assert client.release(other["id"])["released"] is not None
    over = client.place_replicas("1MiB", lasts="1ms")
    assert all(map(is_alone, (block, tasks, over)))
    service.start()
    # Nothing is placed meanwhile: the client finds the service by itself.
    until(lambda: client.made_alone == [])
    until(lambda: "2 decisions made alone were handed over to the service" in caplog.messages)
    held = {decision["kind"]: decision for decision in client.commitments()}
    assert len(held) == 2, "a decision that was released or has expired is not handed over"
    assert (held["replicas"]["hosts"], held["tasks"]["hosts"]) == (block["hosts"], tasks["hosts"])
    assert held["replicas"]["policy"] == "caller"
    expires = [datetime.fromisoformat(one["expires"] or "") for one in (held["replicas"], block)]
    assert abs(expires[0] - expires[1]) < timedelta(seconds=1), "the duration begins at the choice"

    until(lambda: not is_alone(client.place_replicas("64MiB")))
    assert client.place_replicas("256MiB", writer="r0h1", lasts="2h", key="block") == block
    assert client.release(block["id"], dry_run=True)["id"] == held["replicas"]["id"]
    assert client.release(block["id"])["released"] is not None
    assert client.decision(held["replicas"]["id"])["released"] is not None


def test_the_choice_of_the_service_is_released_if_the_client_has_made_another(proxy: Proxy) -> None:
    client = Client(proxy.url, fallback=HANDS_OVER)
    client.prepare_fallback()
    first = client.place_replicas("1MiB", client="a", sequence=1)
    assert not is_alone(first)
    proxy.mute = True
    unknown = client.place_replicas("256MiB", key="mine")
    lost = client.place_replicas("256MiB", key="lost")
    assert [one["fallback"]["outcome_unknown"] for one in (unknown, lost)] == [True, False]
    proxy.mute = False
    until(lambda: client.made_alone == [])
    decided = {(one["key"] == "mine", one["policy"]): one for one in client.decisions()}
    held = [one["hosts"] for one in client.commitments() if one["policy"] == "caller"]
    assert sorted(held) == sorted([unknown["hosts"], lost["hosts"]])
    if (ghost := decided.get((True, "uniform"))) is not None:
        assert ghost["released"] is not None


def test_a_decision_that_the_service_refuses_stays_with_the_client(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    other = CLUSTER | {"racks": 9}
    client = Client(service.start(), fallback=Fallback(cluster=other, wait_s=0.3, retry_s=0.05))
    service.kill()
    wrong = client.place_replicas("1MiB", writer="r8h0", replicas=1)
    right = client.place_replicas("1MiB", writer="r1h0", replicas=1)
    service.start()
    until(lambda: client.made_alone == [wrong])
    assert [decision["hosts"] for decision in client.commitments()] == [right["hosts"]]
    refused = f"the service does not accept decision {wrong['id']}, made alone: "
    assert any(message.startswith(refused) for message in caplog.messages)


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
    message = "the client cannot read the state of the cluster for outage decisions: the token may not read"
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
