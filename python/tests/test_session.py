"""Sessions: place, report, commit, release, and the same decisions as those of single calls."""

import json
import threading
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leeward
from leeward import InputError, Session
from leeward.session import Batch
from support.graphs import drawn

CLUSTER = {"racks": 4, "hosts_per_rack": 3, "nic": "1Gbps", "oversubscription": 2}
HOSTS = 12
IDLE = {f"r{rack}:{way}": 0.0 for rack in range(4) for way in ("uplink", "downlink")} | {
    f"r{host // 3}h{host % 3}:{way}": 0.0 for host in range(HOSTS) for way in ("egress", "ingress")
}
APP = {
    "name": "pair",
    "tasks": [{"name": "a", "cpus": 1, "memory": 2**30}, {"name": "b", "cpus": 1}],
    "transfers": [{"from": "a", "to": "b", "bytes": 10**9}],
}


def reported(session: Session, loads: dict[str, float] | None = None) -> Session:
    """The session after enough reports that its estimates are the loads."""
    for _ in range(40):
        assert session.report(IDLE | (loads or {})) == 0
    return session


def load(session: Session, link: str) -> float:
    rows = {row["link"]: row["load_bps"] for row in session.links().to_pylist()}
    return float(rows[link])


def test_a_block_counts_until_its_release() -> None:
    session = reported(Session(CLUSTER))
    block = session.place_replicas("256MiB", writer="r0h0")
    assert block["hosts"] is not None
    assert block["hosts"][0] == "r0h0"
    assert (block["policy"], block["refused"], session.placements) == ("sinbad", None, 1)
    assert load(session, "r0:uplink") > 0
    assert session.release(block) == []
    assert (session.placements, load(session, "r0:uplink")) == (0, 0)
    assert session.release(block) == [block["id"]]


def test_loads_change_the_choice() -> None:
    busy = {f"r{rack}:downlink": 1.4e9 for rack in (1, 3)}
    session = reported(Session(CLUSTER), busy)
    block = session.place_replicas(2**28, writer="r0h0")
    assert block["hosts"] is not None
    assert {host[:2] for host in block["hosts"][1:]} == {"r2"}


def test_the_decision_is_that_of_a_single_call(tmp_path: Path) -> None:
    file = tmp_path / "loads.csv"
    loads = IDLE | {"r1:downlink": 5e8}
    file.write_text("link,load_bps\n" + "".join(f"{link},{bps}\n" for link, bps in loads.items()))
    expected = leeward.place_replicas(CLUSTER, "256MiB", telemetry=file, writer="r0h0")
    names, rates = pyarrow.array([*loads]), pyarrow.array([*loads.values()])
    for telemetry in (
        loads,
        pyarrow.table({"link": names, "load_bps": rates}),
        pyarrow.table({"load_bps": rates, "link": names.dictionary_encode()}),
    ):
        assert leeward.place_replicas(CLUSTER, 2**28, telemetry=telemetry, writer="r0h0") == expected
    session = Session(CLUSTER, explain=65_535, ledger={"unknown_after": 100})
    session.report(loads)
    block = session.place_replicas("256MiB", writer="r0h0")
    assert {key: value for key, value in block.items() if key != "id"} == expected


def test_unknown_loads_refuse_and_refusals_have_no_number() -> None:
    session = Session(CLUSTER)
    block = session.place_replicas("256MiB", writer="r0h0")
    assert (block["id"], block["hosts"]) == (None, None)
    assert "telemetry" in (block["refused"] or "")
    assert session.placements == 0
    assert session.release(block) == []


def test_loads_age_with_the_time_of_the_session() -> None:
    session = reported(Session(CLUSTER))
    now_s = session.now_s
    assert now_s == 40 * session.interval_s
    session.advance(now_s + 60)
    assert {row["load_bps"] for row in session.links().to_pylist()} == {None}
    assert session.place_replicas("256MiB")["refused"]
    with pytest.raises(InputError, match=r"now_s: 1 s: expected a time from 100 s on"):
        session.advance(1.0)


def test_a_batch_has_a_row_for_each_block() -> None:
    session = reported(Session(CLUSTER, replicas="uniform"))
    sizes = [2**20] * 50
    names = ["r1h1", None] * 25
    batch = session.place_batch(sizes, names, replicas=2)
    assert isinstance(batch, Batch)
    assert (len(batch), batch.hosts.shape, batch.refused) == (50, (50, 2), [])
    assert set(batch.hosts[::2, 0].tolist()) == {4}
    assert session.placements == 50
    numbers = session.place_batch(numpy.array(sizes), numpy.full(50, 4))
    assert numbers.hosts.shape == (50, 3)
    assert session.release([batch, numbers]) == []
    assert session.placements == 0


def test_refused_blocks_of_a_batch_are_marked() -> None:
    session = Session(CLUSTER)
    batch = session.place_batch([1, 2])
    assert batch.ids.tolist() == [-1, -1]
    assert batch.hosts.tolist() == [[-1, -1, -1]] * 2
    assert len(batch.refused) == 2
    assert len(session.place_batch([])) == 0


def test_an_app_holds_its_processors_until_its_release() -> None:
    session = reported(Session(CLUSTER | {"cpus": 1}, tasks="choreo"))
    first = session.place_tasks(APP)
    assert [task["task"] for task in first["tasks"]] == ["a", "b"]
    used = {task["host"] for task in first["tasks"]}
    assert len(used) == 2
    others = [session.place_tasks(APP) for _ in range(5)]
    assert all(app["refused"] is None for app in others)
    full = session.place_tasks(APP)
    assert full["refused"] is not None
    assert [task["host"] for task in full["tasks"]] == [None, None]
    session.release(first)
    again = session.place_tasks(APP)
    assert {task["host"] for task in again["tasks"]} == used


def test_a_choice_of_the_caller_counts_with_its_objections() -> None:
    session = reported(Session(CLUSTER))
    session.set_host("r1h0", up=False)
    block = session.commit_replicas(["r0h0", "r1h0"], "64MiB", writer="r0h0")
    assert (block["policy"], block["hosts"]) == ("caller", ["r0h0", "r1h0"])
    assert [reason["because"] for reason in block["why"]] == [None, "the host is down"]
    app = session.commit_tasks(["r0h0", "r2h0"], APP)
    assert [task["host"] for task in app["tasks"]] == ["r0h0", "r2h0"]
    assert [one["task"] for one in app["why"]] == ["a", "b"]
    assert session.release([block, app["id"] or 0]) == []


def test_draining_hosts_take_no_work() -> None:
    session = reported(Session(CLUSTER, replicas="uniform"))
    for host in range(3):
        session.set_host(f"r2h{host}", draining=True)
    batch = session.place_batch([2**20] * 100)
    assert not {6, 7, 8} & set(batch.hosts.ravel().tolist())


def test_a_policy_of_the_user_decides_and_its_exceptions_come_through() -> None:
    def first(request: Any, view: Any) -> Any:
        if request.size > 2**30:
            raise LookupError("too large for me")
        return [3 * rack for rack in range(request.count)]

    session = Session(CLUSTER, replicas=first)
    assert session.place_replicas("1MiB")["hosts"] == ["r0h0", "r1h0", "r2h0"]
    with pytest.raises(LookupError, match="too large for me"):
        session.place_replicas("2GiB")
    assert session.place_replicas("1MiB")["policy"] == "first"
    assert session.placements == 2


def test_a_policy_cannot_use_its_session() -> None:
    def again(request: Any, view: Any) -> Any:
        return session.place_replicas("1MiB")["hosts"]

    session = Session(CLUSTER, replicas=again)
    with pytest.raises(RuntimeError, match="cannot use the session"):
        session.place_replicas("1MiB")


def test_threads_share_a_session() -> None:
    session = reported(Session(CLUSTER, replicas="uniform"))
    numbers: list[int] = []

    def place() -> None:
        numbers.extend(session.place_replicas("1MiB")["id"] or -1 for _ in range(200))

    threads = [threading.Thread(target=place) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(numbers)) == 800
    assert session.placements == 800


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Session(CLUSTER, replicas="nobody"), "replicas: "),
        (lambda: Session(CLUSTER, tasks="sinbad"), "tasks: "),
        (lambda: Session(CLUSTER, ledger={"alpha": 2}), "ledger: "),
        (lambda: Session(CLUSTER, ledger={"speed": 2}), "ledger: "),
        (lambda: Session(CLUSTER).place_replicas("1"), "size: "),
        (lambda: Session(CLUSTER).place_replicas(-1), "size: `-1`: expected bytes, not negative"),
        (lambda: Session(CLUSTER).place_replicas(0), "size: "),
        (lambda: Session(CLUSTER).place_replicas("1MiB", writer="x"), "writer: `x`"),
        (lambda: Session(CLUSTER).place_replicas("1MiB", replicas=3, coding="6+3"), "replicas: give"),
        (lambda: Session(CLUSTER).place_replicas("1MiB", replicas=256), "replicas: `256`"),
        (lambda: Session(CLUSTER).report({"r9:uplink": 1.0}), "loads: link: row 0: unknown link `r9:uplink`"),
        (lambda: Session(CLUSTER).report({"r0:uplink": -1.0}), "loads: load_bps: row 0: -1: expected bits"),
        (lambda: Session(CLUSTER).report({"r0:uplink": float("nan")}), "loads: load_bps: row 0: NaN"),
        (lambda: Session(CLUSTER).report({"r0:uplink": "x"}), "loads: r0:uplink: `x`: expected a number"),
        (lambda: Session(CLUSTER).report({}, since_s=2.0, until_s=1.0), "until_s: the window from 2 s"),
        (lambda: Session(CLUSTER).place_batch([1.5]), "sizes: expected whole numbers"),
        (lambda: Session(CLUSTER).place_batch([1, 2], [0]), "writers: 1: expected one for each of 2"),
        (lambda: Session(CLUSTER).place_batch([1], [12]), "writers: 12: expected a host from 0 to 11"),
        (lambda: Session(CLUSTER).place_batch([1], ["x"]), "writers: `x`"),
        (lambda: Session(CLUSTER).place_batch([0]), "sizes: 0: expected more than nothing"),
        (lambda: Session(CLUSTER).place_tasks({"tasks": [{"name": "a", "cpus": "x"}]}), "app: tasks[0].cpus"),
        (lambda: Session(CLUSTER).place_tasks(APP, apart="pod"), "apart: `pod`"),
        (lambda: Session(CLUSTER).commit_tasks(["r0h0"], APP), "hosts: 1 hosts: expected one for each of 2"),
        (lambda: Session(CLUSTER).commit_replicas(["r0h0"] * 2, 1), "hosts: `r0h0` has two copies"),
        (lambda: Session(CLUSTER).commit_replicas(["r9h0"], 1), "hosts: `r9h0`"),
        (lambda: Session(CLUSTER).set_host("x", up=True), "host: `x`"),
    ],
)
def test_invalid_arguments_are_named(call: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(message), str(caught.value)


def test_tables_and_graphs_are_taken_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "app.json"
    text = {**APP, "tasks": [{"name": "a", "cpus": 1, "memory": "1GiB"}, {"name": "b", "cpus": 1}]}
    text["transfers"] = [{"from": "a", "to": "b", "bytes": "1GB"}]
    file.write_text(json.dumps(text))
    tables = {
        "name": "pair",
        "tasks": pyarrow.table({"name": ["a", "b"], "cpus": [1, 1], "memory": [2**30, None]}),
        "transfers": pyarrow.table({"from": ["a"], "to": ["b"], "bytes": [10**9]}),
    }
    expected = leeward.place_tasks(CLUSTER | {"cpus": 1}, file, policy="choreo")
    for app in (APP, tables):
        assert leeward.place_tasks(CLUSTER | {"cpus": 1}, app, policy="choreo") == expected
    a = {"cpus": 1, "memory": 2**30, "color": "red"}
    graph = drawn([("a", "b", 10**9)], True, "bytes", a=a, b={"cpus": 1})
    placed = leeward.place_tasks(CLUSTER | {"cpus": 1}, graph, policy="choreo")
    assert placed["tasks"] == expected["tasks"]
    with pytest.raises(InputError, match="app: expected a directed graph"):
        leeward.place_tasks(CLUSTER, drawn([("a", "b", 1)], False, "bytes"))
    with pytest.raises(InputError, match="app: the edge from a to b has no attribute `bytes`"):
        leeward.place_tasks(CLUSTER, drawn([("a", "b", 1)], True, "weight"))
    with pytest.raises(InputError, match="app: int: expected a file"):
        leeward.place_tasks(CLUSTER, 7)  # type: ignore[arg-type]
    networkx = pytest.importorskip("networkx")
    same = networkx.DiGraph()
    same.add_node("a", **a)
    same.add_node("b", cpus=1)
    same.add_edge("a", "b", bytes=10**9)
    assert leeward.place_tasks(CLUSTER | {"cpus": 1}, same, policy="choreo") == placed


def test_a_table_of_hosts_is_a_cluster() -> None:
    cluster = leeward.Cluster(CLUSTER | {"pods": 2, "pod_oversubscription": 1})
    speeds = {"nic": "1Gbps", "oversubscription": 2, "pod_oversubscription": 1}
    table = cluster.host_table()
    same = leeward.Cluster({**speeds, "hosts": table})
    assert same.host_table() == table
    assert same.links() == cluster.links()
    nameless = table.drop_columns(["rack"]).append_column("rack", pyarrow.nulls(HOSTS, pyarrow.string()))
    with pytest.raises(InputError):
        leeward.Cluster({**speeds, "hosts": nameless})


def test_cross_traffic_and_running_tasks_may_be_mappings(tmp_path: Path) -> None:
    mesh = {"shape": "hose", "hosts": 4, "nic": "1Gbps", "cpus": 1}
    file = tmp_path / "cross.csv"
    file.write_text("link,connections\nh0:egress,3\n")
    expected = leeward.place_tasks(mesh, APP, policy="choreo", cross_traffic=file)
    for cross in ({"h0:egress": 3}, pyarrow.table({"link": ["h0:egress"], "connections": [3]})):
        assert leeward.place_tasks(mesh, APP, policy="choreo", cross_traffic=cross) == expected
    twice = pyarrow.table({"link": ["h0:egress"] * 2, "connections": [1, 2]})
    with pytest.raises(InputError, match="cross_traffic: link: row 1: `h0:egress`"):
        leeward.place_tasks(mesh, APP, cross_traffic=twice)
    with pytest.raises(InputError, match="cross_traffic: connections: row 0: -1"):
        leeward.place_tasks(mesh, APP, cross_traffic={"h0:egress": -1})


@settings(deadline=None, max_examples=25)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["place", "batch", "commit", "release", "report"]), st.integers(0, 11)),
        max_size=30,
    )
)
def test_after_the_release_of_everything_only_reported_loads_are_left(steps: list[tuple[str, int]]) -> None:
    session = reported(Session(CLUSTER, replicas="uniform"))
    names = session.cluster.host_names()
    placed: list[int] = []
    for action, number in steps:
        if action == "place":
            placed.append(session.place_replicas(2**20 * (number + 1), writer=names[number])["id"] or 0)
        elif action == "batch":
            placed += session.place_batch([2**24] * number).ids.tolist()
        elif action == "commit":
            placed.append(session.commit_replicas([names[number]], 2**20)["id"] or 0)
        elif action == "release" and placed:
            assert session.release(placed.pop(number % len(placed))) == []
        elif action == "report":
            session.report(IDLE)
    assert session.placements == len(placed)
    assert session.release(placed, stored=False) == []
    assert {row["load_bps"] for row in session.links().to_pylist()} == {0.0}
