"""The view of a policy of the user: its numbers, its end, its what-if, and the requests."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import leeward
from leeward import InputError
from leeward.policy import BlockRequest, View
from support.policies import BLOCK, CLUSTER, HOSTS, LOADS, place, spread, write_loads, write_scenario


@pytest.fixture
def loads(tmp_path: Path) -> Path:
    return write_loads(tmp_path)


def see(read: Callable[[BlockRequest, View], Any], **arguments: Any) -> Any:
    """Reads a view during a decision."""
    seen = []

    def look(request: BlockRequest, view: View) -> None:
        seen.append(read(request, view))

    assert place(look, **arguments)["hosts"] is None
    return seen[0]


def test_a_request_says_what_to_place() -> None:
    names = ("kind", "id", "file", "size", "count", "replicas", "writer", "fault_domains", "blocks_left")
    values = see(lambda request, _: [getattr(request, name) for name in names])
    assert values == ["replicas", 0, 0, BLOCK, 3, 3, 0, 1, 1]
    lists = ("existing", "preferred", "excluded", "storage", "max_imbalance", "parity")
    values = see(lambda request, _: [getattr(request, name) for name in lists], exclude="r3h1", prefer="r0h0")
    assert values == [[], [0], [10], None, None, None]
    assert see(lambda request, _: repr(request)) == "<BlockRequest 0: 3 hosts for 256MiB each>"


def test_seeds_of_requests_depend_on_the_seed_of_the_run() -> None:
    seeds = [see(lambda request, _: request.seed, seed=seed) for seed in (1, 1, 2)]
    assert seeds[0] == seeds[1] != seeds[2]


def test_the_view_has_numbers_of_hosts_racks_and_links(loads: Path) -> None:
    def read(request: BlockRequest, view: View) -> dict[str, Any]:
        return {name: getattr(view, name) for name in dir(view) if not name.startswith("_")}

    seen = see(read, telemetry=loads)
    links = leeward.Cluster(CLUSTER).links()
    assert seen["hosts"].tolist() == list(range(HOSTS))
    assert seen["rack_of"].tolist() == seen["fault_domain_of"].tolist() == [h // 3 for h in range(HOSTS)]
    assert seen["pod_of"].tolist() == [-1] * 4
    assert list(seen["host_names"]) == leeward.Cluster(CLUSTER).host_names()
    assert list(seen["link_names"]) == links["name"].to_pylist()
    assert seen["link_capacity"].tolist() == links["capacity_bps"].to_pylist()
    measured = [LOADS[name] for name in seen["link_names"]]
    assert seen["link_measured"].tolist() == seen["link_load"].tolist() == measured
    assert seen["link_residual"].tolist() == (seen["link_capacity"] - measured).tolist()
    assert seen["link_utilization"].tolist() == (measured / seen["link_capacity"]).tolist()
    # Into host 1 of rack 2, its own link limits; into all others of the rack too.
    assert seen["rack_residual_in"].tolist() == [5e8, 5e8, 9e8, 5e8]
    assert seen["residual_in"].tolist() == [5e8] * 6 + [6e8, 9e8, 6e8] + [5e8] * 3
    assert seen["residual_out"].tolist() == [5e8] * HOSTS
    assert numpy.allclose(seen["utilization_in"], [0.5] * 6 + [0.4, 0.1, 0.4] + [0.5] * 3)
    ingress, downlink = seen["ingress"], seen["downlink"]
    assert seen["link_names"][ingress[7]] == "r2h1:ingress"
    assert seen["link_names"][downlink[2]] == "r2:downlink"
    assert seen["link_kinds"][downlink[2]] == "rack_downlink"
    assert seen["is_open"].all()
    assert seen["free_bytes"].tolist() == [2.0**40] * HOSTS
    assert numpy.isinf(seen["free_cpus"]).all()
    assert numpy.isnan(seen["disk_residual"]).all()
    assert not seen["link_hot"].any()


def test_unknown_loads_are_nan_and_leave_no_rate() -> None:
    measured, residual, utilization = see(
        lambda _, view: (view.link_measured, view.residual_in, view.utilization_in)
    )
    assert numpy.isnan(measured).all()
    assert numpy.isnan(utilization).all()
    assert (residual == 0).all()


def test_arrays_are_read_only_memory_that_outlives_the_view(loads: Path) -> None:
    array, again, names = see(
        lambda _, view: (view.residual_in, view.residual_in, view.host_names), telemetry=loads
    )
    assert array is again
    assert not array.flags.writeable
    assert not array.flags.owndata
    assert isinstance(array.base, bytes)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True
    assert array.max() == 9e8
    assert names[0] == "r0h0"


def test_a_view_ends_with_its_call() -> None:
    request, view = see(lambda request, view: (request, view))
    uses: list[Callable[[], Any]] = [
        lambda: view.now_s,
        lambda: view.hosts,
        lambda: view.residual_in,
        lambda: view.host_names,
        lambda: view.eligible(request),
        lambda: view.path(0, 1),
        lambda: view.add(request, [0, 3, 6]),
        lambda: view.add_flow(0, 3, 1),
        lambda: view.add_rate(0, 3, 1.0),
        lambda: view.without(request),
        view.checkpoint,
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="the view ended with its call"):
            use()
    assert repr(view) == "<View of 12 hosts and 32 links, ended>"
    assert request.count == 3


def test_a_view_that_was_read_before_ends_too() -> None:
    def read(_: BlockRequest, view: View) -> View:
        assert len(view.residual_in) == len(view.host_names) == HOSTS
        return view

    view = see(read)
    for name in ("residual_in", "host_names"):
        with pytest.raises(RuntimeError, match="ended"):
            getattr(view, name)


def test_another_thread_may_use_the_view_during_the_call_only(loads: Path) -> None:
    seen: list[Any] = []
    released = threading.Event()

    def keep(view: View) -> None:
        seen.append(view.residual_in.sum())
        released.wait(60)
        try:
            view.now_s  # noqa: B018
        except RuntimeError as error:
            seen.append(str(error))

    def look(request: BlockRequest, view: View) -> list[int]:
        thread = threading.Thread(target=keep, args=(view,))
        thread.start()
        while not seen:
            pass
        threads.append(thread)
        return spread(request, view)

    threads: list[threading.Thread] = []
    place(look, telemetry=loads)
    released.set()
    threads[0].join(60)
    assert seen[0] == 6 * 5e8 + 2 * 6e8 + 9e8 + 3 * 5e8
    assert "ended" in seen[1]


def test_a_what_if_is_private_and_returns_to_its_states(loads: Path) -> None:
    def read(request: BlockRequest, view: View) -> list[list[float]]:
        states = [view.residual_in.tolist()]
        start = view.checkpoint()
        view.add_rate("r0h0", "r2h1", 2e8)
        states.append(view.residual_in.tolist())
        middle = view.checkpoint()
        view.add(request, [0, 7, 9])
        view.add_flow(0, "r2", 10**9, flows=2)
        states.append(view.residual_in.tolist())
        view.rollback(middle)
        states.append(view.residual_in.tolist())
        view.rollback(start)
        states.append(view.residual_in.tolist())
        with pytest.raises(InputError, match="no such state"):
            view.rollback(middle)
        return states

    start, added, more, middle, end = see(read, telemetry=loads)
    assert added[7] == start[7] - 2e8
    assert added[:6] + added[9:] == start[:6] + start[9:]
    assert more[7] < added[7]
    assert middle == added
    assert end == start
    # Another decision does not see it.
    assert see(lambda _, view: view.residual_in.tolist(), telemetry=loads) == start


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda view, request: view.add(request, []), "0 hosts: expected 1"),
        (lambda view, request: view.add(request, [12]), "expected hosts from 0 to 11"),
        (lambda view, request: view.add_rate(0, 12, 1.0), "12: expected a host from 0 to 11"),
        (lambda view, request: view.add_rate(0, "r9", 1.0), "r9"),
        (lambda view, request: view.add_rate(0, 3, float("nan")), "expected a rate"),
        (lambda view, request: view.add_rate(0, 3, 1e16), "expected a rate"),
        (lambda view, request: view.add_flow(0, 3, 2**63), "at most 2\\^62"),
    ],
)
def test_an_invalid_what_if_changes_nothing(
    use: Callable[[View, BlockRequest], None], message: str, loads: Path
) -> None:
    def read(request: BlockRequest, view: View) -> None:
        before = view.link_load.tolist()
        with pytest.raises(InputError, match=message):
            use(view, request)
        assert view.link_load.tolist() == before

    see(read, telemetry=loads)


def test_a_what_if_has_a_limit() -> None:
    def read(_: BlockRequest, view: View) -> None:
        for _ in range(30_000):
            view.add_rate(0, 3, 1e15)
        with pytest.raises(InputError, match="at most 30000"):
            view.add_rate(0, 3, 1e15)
        assert numpy.isfinite(view.link_residual).all()

    see(read)


def test_eligible_hosts_are_those_that_the_constraints_allow() -> None:
    mask = see(lambda request, view: view.eligible(request), exclude=["r1", "r3h2"], existing="r0h1")
    assert numpy.flatnonzero(~mask).tolist() == [1, 3, 4, 5, 11]


def test_a_path_is_a_list_of_links() -> None:
    names, path = see(lambda _, view: (view.link_names, view.path("r0h0", 7)))
    assert [names[link] for link in path] == ["r0h0:egress", "r0:uplink", "r2:downlink", "r2h1:ingress"]


def test_a_policy_sees_what_the_ledger_believes_and_not_the_true_state(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path)
    event = "events: [{at: 20s, link: 'r1:downlink', capacity: 1Mbps, told: false}]\n"
    scenario.write_text(scenario.read_text() + event)
    capacities = set()

    def look(request: BlockRequest, view: View) -> list[int]:
        capacities.add(view.link_capacity[view.downlink[1]])
        return [request.writer or 0, *[h for h in range(HOSTS) if h // 3 != (request.writer or 0) // 3][:2]]

    leeward.simulate(scenario, look)
    assert capacities == {1e9}
