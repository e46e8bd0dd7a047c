"""Decisions of a client alone, and the breaker that decides when it makes them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward import Cluster, ProblemError, RefusedError, UnreachableError
from leeward.client.alone import Request, State, choose
from leeward.client.breaker import Breaker
from leeward.client.http import is_away
from leeward.client.problems import NotControllerError, parse_problem
from leeward.placement import place_replicas
from support.fixtures import Run
from support.outages import CLUSTER

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
    body: dict[str, Any] = {"size": "1MiB", "writer": writer, "replicas": replicas, "fault_domains": domains}
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


def test_the_chunks_of_a_stripe_need_less_room_than_copies() -> None:
    gib = 2**30
    state = State(TAGGED, storage=dict.fromkeys(HOSTS, (7 * gib, 8 * gib)))
    body = {"size": "6GiB", "exclude": [], "tags": []}
    chunks = choose(state, Request("replicas", body | {"coding": "6+3"}, None, None, "k"), "uniform", 1).hosts
    assert len(set(chunks)) == 9
    assert max(sum(host[:2] == rack for host in chunks) for rack in {host[:2] for host in chunks}) <= 3
    with pytest.raises(RefusedError):
        choose(state, Request("replicas", body, None, None, "k"), "uniform", 1)
    for coding in ("6", "0+3", "six+3", ""):
        with pytest.raises((ProblemError, RefusedError)):
            choose(state, Request("replicas", body | {"coding": coding}, None, None, "k"), "uniform", 1)


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
