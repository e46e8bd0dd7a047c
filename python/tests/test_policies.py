"""Policies of the user: their answers, the errors about wrong ones, and their settings."""

import json
import traceback
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leeward
from leeward import InputError, policy
from leeward.policy import BlockRequest, View
from support.policies import CLUSTER, HOSTS, Counting, place, spread


@pytest.mark.parametrize(
    "answer",
    [
        [0, 3, 6],
        (0, 3, 6),
        ["r0h0", "r1h0", "r2h0"],
        numpy.array([0, 3, 6]),
        numpy.array([0, 3, 6], dtype=numpy.int32),
        numpy.array([0, 3, 6], dtype=numpy.uint8),
        numpy.array([6, 3, 0])[::-1],
        numpy.array([[0, 1], [3, 4], [6, 7]])[:, 0],
        numpy.array(["r0h0", "r1h0", "r2h0"]),
        [numpy.int64(0), 3, "r2h0"],
        (host for host in (0, 3, 6)),
        {0: "a", 3: "b", 6: "c"},
    ],
)
def test_hosts_are_numbers_or_names_in_any_sequence(answer: Any) -> None:
    assert place(lambda request, view: answer)["hosts"] == ["r0h0", "r1h0", "r2h0"]


@pytest.mark.parametrize("kind", [numpy.float64, numpy.float32, list])
def test_scores_choose_the_best_hosts_that_keep_the_constraints(kind: Any) -> None:
    scores = numpy.arange(HOSTS, dtype=numpy.float64)
    answer = scores.tolist() if kind is list else scores.astype(kind)
    # The writer keeps a copy, and no host of rack 3 may hold one.
    assert place(lambda request, view: answer, exclude="r3")["hosts"] == ["r0h0", "r2h2", "r2h1"]


@given(
    scores=st.lists(st.floats(allow_nan=True), min_size=HOSTS, max_size=HOSTS),
    excluded=st.sets(st.integers(0, HOSTS - 1), max_size=6),
    replicas=st.integers(1, 4),
    fault_domains=st.integers(0, 3),
)
@settings(max_examples=50)
def test_scores_of_any_kind_keep_the_constraints(
    scores: list[float], excluded: set[int], replicas: int, fault_domains: int
) -> None:
    names = leeward.Cluster(CLUSTER).host_names()
    decision = leeward.place_replicas(
        CLUSTER,
        "64MiB",
        policy=lambda request, view: numpy.array(scores),
        replicas=replicas,
        fault_domains=fault_domains,
        exclude=[names[host] for host in excluded],
    )
    allowed = [host for host in range(HOSTS) if host not in excluded and scores[host] > -numpy.inf]
    racks = {host // 3 for host in allowed}
    possible = fault_domains < replicas <= len(allowed) and len(racks) > fault_domains
    assert (decision["hosts"] is not None) == possible, decision
    if decision["hosts"] is not None:
        hosts = [names.index(name) for name in decision["hosts"]]
        assert len(set(hosts)) == replicas
        assert set(hosts) <= set(allowed)
        assert len({host // 3 for host in hosts}) > fault_domains


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0, 3], "2 hosts: expected 3"),
        ([], "0 hosts: expected 3"),
        ([0, 3, 12], "position 2: expected a host from 0 to 11"),
        ([0, -1, 3], "position 1: expected a host from 0 to 11"),
        ([0, 3, 2**40], "position 2: expected a host from 0 to 11"),
        ([0, 3, 3], "position 2: r1h0: it holds a copy already"),
        ([0, 1, 2], "position 2: r0h2: it fails together with another copy"),
        ([0, 3, 11], "position 2: r3h2: excluded by the request"),
        (["r0h0", "r1h0", "r9h9"], "`r9h9`: the cluster has no such host"),
        ([0.5, 1.5], "2 scores: expected 12"),
        (numpy.zeros(13), "13 scores: expected 12"),
        ("r0h0", "returned `str`: expected numbers or names of hosts, 12 scores (floats), or None"),
        (b"\x00\x03\x06", "returned `bytes`: expected"),
        (7, "returned `int`: expected"),
        (numpy.int64(7), "returned `int`: expected"),
        (object(), "returned `object`: expected"),
        ([True, False, True], "returned `bool`: expected"),
        ([[0], [3], [6]], "returned `list`: expected"),
        ([None, 3, 6], "returned `NoneType`: expected"),
    ],
)
def test_a_wrong_answer_is_one_error_that_names_the_policy_and_the_request(answer: Any, message: str) -> None:
    def wrong(request: BlockRequest, view: View) -> Any:
        return answer

    with pytest.raises(InputError) as caught:
        place(wrong, exclude="r3h2")
    error = caught.value
    assert (error.file, error.field) == ("policy `wrong`", "request 0")
    assert message in error.message
    assert "\n" not in str(error)


def test_none_declines_a_request() -> None:
    decision = place(lambda request, view: None)
    assert (decision["hosts"], decision["refused"]) == (None, "`lambda` declined the request")


def test_an_exception_comes_through_whole() -> None:
    class OwnError(Exception):
        pass

    def inner() -> None:
        raise OwnError("no idea")

    def failing(request: BlockRequest, view: View) -> None:
        inner()

    with pytest.raises(OwnError, match="no idea") as caught:
        place(failing)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-2:] == ["failing", "inner"]


def test_an_exception_of_an_answer_comes_through_whole() -> None:
    def endless(request: BlockRequest, view: View) -> Any:
        yield 0
        raise ArithmeticError("no more hosts")

    with pytest.raises(ArithmeticError, match="no more hosts"):
        place(endless)


def test_settings_are_keyword_arguments_of_a_function() -> None:
    def chosen(request: BlockRequest, view: View, first: int, step: int = 3) -> list[int]:
        return [first + step * at for at in range(request.count)]

    own = policy.own(chosen, first=1)
    assert own.label == "chosen:first=1"
    assert place(own)["hosts"] == ["r0h1", "r1h1", "r2h1"]
    assert place(policy.own(chosen, "mine", first=0))["policy"] == "mine"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: policy.own(spread, racks=2), "policies: `spread`: got an unexpected keyword argument"),
        (lambda: policy.own(lambda request: None), "policies: `lambda`: too many positional arguments"),
        (lambda: policy.own(Counting, first=1), "policies: `Counting`: got an unexpected keyword argument"),
        (lambda: policy.own(Counting(), start=1), "policies: `Counting`: an object has its settings already"),
        (lambda: policy.own(3), "policies: `int`: expected a function of a request and a view"),
        (lambda: policy.own(dict), "policies: `dict`: expected a function of a request and a view"),
        (lambda: policy.own(json), "policies: `json`: expected a function of a request and a view"),
        (lambda: policy.own(spread, interval="1s"), "policies: `spread`: without `place_batch`"),
        (lambda: place(Counting), None),
        (lambda: place("nowhere:policy"), "policy: `nowhere:policy`: there is no module `nowhere`"),
        (lambda: place("json:nothing"), "policy: `json:nothing`: `json` has no `nothing`"),
        (lambda: place("json:decoder"), "policy: `json.decoder`: expected a function"),
    ],
)
def test_objects_that_are_no_policies_are_rejected(make: Callable[[], Any], message: str | None) -> None:
    if message is None:
        make()
        return
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value).startswith(message)
