"""`leeward hdfs check`: a real controller and a server for a NameNode."""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward import Client, importers
from leeward.hdfs import DataNode, Differences, differences
from support.namenode import BLOCK, DECISION, METRICS, RACKS, beans, live_nodes, namenode
from support.prometheus import Answer

Run = Callable[..., subprocess.CompletedProcess[str]]
Serve = Callable[..., AbstractContextManager[str]]

CLUSTER = {
    "racks": 4,
    "hosts_per_rack": 3,
    "nic": "1Gbps",
    "oversubscription": 3,
    "devices": [{"read": "200MB/s", "write": "120MB/s", "capacity": "4TB"}],
}
LINKS = {f"r{rack}:{way}": 2e8 * (rack + 1) for rack in range(4) for way in ("uplink", "downlink")}
LOADS = LINKS | {f"r{r}h{h}:{way}": 5e7 for r in range(4) for h in range(3) for way in ("ingress", "egress")}


@pytest.fixture(scope="module")
def controller(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("service"), CLUSTER, "--interval", "20s") as url:
        until = datetime.now(UTC)
        Client(url, patience_s=0).report(until - timedelta(seconds=1), until, links=LOADS)
        yield url


# ---- leeward hdfs check -----------------------------------------------------------------------------


def both_policies(policy: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Beans of a NameNode with one policy for replicated and for erasure-coded blocks."""
    answers = beans(live_nodes(RACKS), policy)
    return [*answers, answers[-1] | {"name": "Hadoop:service=NameNode,name=LeewardErasureCodedInfo"}]


def test_a_namenode_and_its_controller_pass_all_checks(run: Run, controller: str) -> None:
    with namenode(both_policies({})) as url:
        result = run("hdfs", "check", "--namenode", url, "--controller", controller, "--size", "256MiB")
        assert (result.returncode, result.stderr) == (0, "")
        lines = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
        states = [(name, state) for name, state, *_ in lines[1:13]]
        policy = ("policy", "snapshot", "decisions")
        names = ("NameNode", "controller", "topology", "agents", "storage", *policy, *policy, "decision")
        assert states == [(name, "ok") for name in names]
        assert "topology    ok     12 DataNodes in 4 racks, as in the controller\n" in result.stdout
        assert "snapshot    ok     320 ms old, from http://leeward:7600\n" in result.stdout
        decision = "256MiB of r0h0 to r0h0 r2h1 r2h0, by sinbad in the NameNode"
        assert f"decision    ok     {decision}\n" in result.stdout
        expected = "The NameNode would now place a block of 256MiB, written by r0h0, on these hosts. The"
        assert f"{expected} candidates of each copy:\n" in result.stdout
        assert "1. r2h1, outside /row1/r0: ranked" in result.stdout
        as_json = run("hdfs", "check", "-o", "json", LEEWARD_NAMENODE=url, LEEWARD_CONTROLLER=controller)
        document = json.loads(as_json.stdout)
        assert document["differences"]["hosts"]["r0h0"] == "r0h0"
        assert document["decided_by"] == "namenode"
        assert (document["decision"]["writer"], document["decision"]["bytes"]) == ("r0h0", 128 * 2**20)
        assert document["namenode"]["policies"][0]["decisions"] == {"ranked": 17, "stale": 0}
        rows = run("hdfs", "check", "-o", "csv", LEEWARD_NAMENODE=url, LEEWARD_CONTROLLER=controller).stdout
        assert rows.splitlines()[0] == "check,state,detail"
        assert len(rows.splitlines()) == 13
    assert list(Client(controller).decisions()) == [], "nothing is committed"


def test_the_namenode_is_asked_for_a_writer_and_a_code(run: Run, controller: str) -> None:
    arguments = ("--controller", controller, "--writer", "r1h2", "--coding", "6+3", "--size", "100MB")
    with namenode(both_policies({})) as url:
        result = run("hdfs", "check", "--namenode", url, *arguments, "-o", "json")
        assert (result.returncode, result.stderr) == (0, "")
    decision = json.loads(result.stdout)["decision"]
    assert (decision["writer"], decision["bytes"]) == ("r1h2", 16_666_667), "of one chunk"


def test_without_leeward_in_the_namenode_the_controller_decides(run: Run, controller: str) -> None:
    for arguments, policy in (([], None), (["--coding", "6+3"], {})):
        with namenode(beans(live_nodes(RACKS), policy)) as url:
            command = ("hdfs", "check", "--namenode", url, "--controller", controller, *arguments)
            assert json.loads(run(*command, "-o", "json").stdout)["decided_by"] == "controller"
            shown = run(*command).stdout
        assert "of the controller" in shown
        blocks = "erasure-coded blocks" if arguments else "replicated blocks"
        assert f"The NameNode has no Leeward policy for {blocks}, so HDFS's own policy decides." in shown
    assert list(Client(controller).decisions()) == [], "nothing is committed"


def test_without_its_controller_a_namenode_is_checked_alone(run: Run) -> None:
    away = {"SnapshotAgeMs": 61_000, "Failure": "timeout", "DecisionsByReason": STALE}
    with namenode(beans(live_nodes(RACKS), away)) as url:
        arguments = ("hdfs", "check", "--namenode", url, "--controller", "http://127.0.0.1:1")
        result = run(*arguments)
        document = json.loads(run(*arguments, "-o", "json").stdout)
        other = run(*arguments, "--writer", "r3h1", "-o", "json")
    assert (result.returncode, result.stderr) == (1, "")
    findings = [" ".join(line.split()) for line in result.stdout.splitlines()]
    failed = next(line for line in findings if line.startswith("controller failed"))
    assert failed.endswith("http://127.0.0.1:1: no answer: Connection refused")
    for name in ("topology", "agents", "storage"):
        assert f"{name} warning not checked: no controller" in findings
    snapshot = "61 s old, from http://leeward:7600; the last request failed: timeout"
    assert f"snapshot failed {snapshot}; dfs.leeward.snapshot.max-age is 5 s" in findings
    assert any(line.startswith("decisions warning replicated blocks: 9 decisions") for line in findings)
    assert "decision ok 128MiB of r0h0 to r0h0 r2h1 r2h0, by sinbad in the NameNode" in findings
    assert (document["differences"], document["decided_by"]) == (None, "namenode")
    assert json.loads(other.stdout)["decision"]["writer"] == "r3h1"
    with namenode(beans(live_nodes(RACKS), None)) as url:
        result = run("hdfs", "check", "--namenode", url, "--controller", "http://127.0.0.1:1", "-o", "json")
    assert result.returncode == 1
    assert json.loads(result.stdout)["decision"] is None


def test_a_saved_answer_stands_in_for_a_namenode_with_a_login(
    run: Run, controller: str, tmp_path: Path, fake: Callable[[Callable[[int, str], Answer]], str]
) -> None:
    (tmp_path / "jmx.json").write_text(json.dumps({"beans": beans(live_nodes(RACKS), {})}))
    result = run("hdfs", "check", "--jmx", "jmx.json", "--controller", controller)
    assert (result.returncode, result.stderr) == (0, "")
    findings = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "NameNode ok Hadoop 3.5.0, active, 12 live DataNodes" in findings
    assert "snapshot ok 320 ms old, from http://leeward:7600" in findings
    assert "of the controller" in next(line for line in findings if line.startswith("decision "))
    assert "The NameNode decides by sinbad, and was not asked: its own decision may differ." in findings
    login = run("hdfs", "check", "--controller", controller, "--namenode", fake(repeated((401, {}, b""))))
    assert "hint: curl --negotiate -u : http://127.0.0.1:" in login.stderr
    contents = {
        "absent.json": None,
        "page.json": "<html>",
        "empty.json": '{"beans": []}',
        "deep.json": "[" * 100_000,
        "other.json": '{"beans": [{"name": 7}]}',
    }
    for name, content in contents.items():
        if content is not None:
            (tmp_path / name).write_text(content)
        result = run("hdfs", "check", "--jmx", name, "--controller", controller)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"error: --jmx: `{name}`: "), result.stderr


def test_the_certificate_of_a_namenode_can_have_a_private_authority(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    for url, file, why in (
        ("http://127.0.0.1:1", "empty.pem", "only valid for an address with https"),
        ("https://127.0.0.1:1", "absent.pem", "No such file or directory"),
        ("https://127.0.0.1:1", "empty.pem", ""),
    ):
        for command in (("hdfs", "check"), ("explain", "--block", BLOCK)):
            result = run(*command, "--namenode", url, "--namenode-ca", file)
            assert (result.returncode, result.stdout) == (2, "")
            assert result.stderr.startswith(f"error: --namenode-ca: `{file}`: {why}")
    result = run("hdfs", "check", "--jmx", "empty.pem", "--namenode-ca", "empty.pem")
    assert result.returncode == 2
    assert "not valid with --jmx, which asks no NameNode" in result.stderr


OTHER_RACK = {**RACKS, "/row1/r0": ["r0h0", "r0h1"], "/row1/r1": [*RACKS["/row1/r1"], "r0h2"]}
STRANGERS = {"/row1/r0": ["r0h0"], "/row1/r9": ["dn1", "dn2", "dn3", "dn4"]}
LESS = {rack: hosts for rack, hosts in RACKS.items() if rack != "/row1/r3"}
HEALTHY = [
    {"key": reason, "value": count}
    for reason, count in {"ranked": 990, "small": 500, "off": 20, "stale": 5}.items()
]
LEFT_OUT = "5 stale, 20 off, 500 small"
LEFT: dict[str, Any] = {
    "time": "2026-03-02T10:00:00Z",
    "policy": "sinbad",
    "reason": "off",
    "hosts": [],
    "steps": [],
}
RANKED = LEFT | {"policy": "leeward", "reason": "ranked", "hosts": ["r0h0", "r2h1", "r2h0"]}
STALE = [{"key": "ranked", "value": 5}, {"key": "stale", "value": 3}, {"key": "no_candidate", "value": 1}]


MOVED = "in another rack than for the controller: r0h2 is in /row1/r1 and not in r0"
OTHER_CLUSTER = "it is the controller of another cluster, and HDFS's default policy places all blocks"
REASONS = "3 stale, 1 no_candidate"
FEW_DECISIONS = f"replicated blocks: 9 decisions since the start, 4 by HDFS's default policy ({REASONS})"
MANY_DECISIONS = (
    f"replicated blocks: 1,515 decisions since the start, 525 by HDFS's default policy ({LEFT_OUT})"
)
NO_CLASS = "dfs.block.placement.ec.classname names no policy of Leeward"
PROBLEMS: list[tuple[Mapping[str, list[str]], dict[str, Any] | None, dict[str, Any], str, str]] = [
    (
        RACKS | {"/row1/r4": ["dn17"]},
        {},
        {},
        "topology failed",
        "the controller lacks 1 of 13 DataNodes: dn17; their loads are unknown",
    ),
    (
        OTHER_RACK,
        {},
        {},
        "topology failed",
        f"1 of 12 DataNodes {MOVED}; their loads are unknown",
    ),
    (
        STRANGERS,
        {},
        {},
        "topology failed",
        f"the controller has fewer than half of 5 DataNodes: {OTHER_CLUSTER}",
    ),
    (
        LESS,
        {},
        {},
        "topology warning",
        "3 hosts of the controller without a live DataNode: r3h0, r3h1, r3h2",
    ),
    (
        RACKS,
        None,
        {},
        "policy failed",
        "the NameNode runs no Leeward policy: dfs.block.replicator.classname names another one",
    ),
    (
        RACKS,
        {"SnapshotAgeMs": -1, "Failure": "unauthorized", "FailureDetail": "401"},
        {},
        "snapshot failed",
        "the NameNode has no snapshot of http://leeward:7600; the last request failed: unauthorized: 401",
    ),
    (
        RACKS,
        {"SnapshotAgeMs": 61_000},
        {},
        "snapshot failed",
        "61 s old, from http://leeward:7600; dfs.leeward.snapshot.max-age is 5 s",
    ),
    (
        RACKS,
        {"SnapshotAgeMs": 61_000, "SnapshotMaxAgeMs": 120_000},
        {},
        "snapshot ok",
        "61 s old, from http://leeward:7600",
    ),
    (
        RACKS,
        {"Policy": "ccp", "SnapshotAgeMs": 61_000, "SnapshotMaxAgeMs": -1},
        {},
        "snapshot warning",
        "61 s old, from http://leeward:7600; ccp reads no loads, so a snapshot of any age serves it",
    ),
    (
        RACKS,
        {"DecisionsByReason": HEALTHY},
        {},
        "decisions ok",
        MANY_DECISIONS,
    ),
    (
        RACKS,
        {DECISION: LEFT},
        {},
        "decision ok",
        "128MiB of r0h0 is left to HDFS's default policy: off",
    ),
    (
        RACKS,
        {DECISION: LEFT | {"reason": "stale"}},
        {},
        "decision warning",
        "128MiB of r0h0 is left to HDFS's default policy: stale",
    ),
    (
        RACKS,
        {"Failure": "timeout"},
        {},
        "snapshot warning",
        "320 ms old, from http://leeward:7600; the last request failed: timeout",
    ),
    (
        RACKS,
        {"Policy": "", "Failure": "settings", "FailureDetail": "dfs.leeward.polcy: unknown property"},
        {},
        "policy failed",
        "Leeward is off for replicated blocks: dfs.leeward.polcy: unknown property",
    ),
    (
        RACKS,
        {"Policy": ""},
        {},
        "policy failed",
        "the NameNode runs no Leeward policy: dfs.block.replicator.classname names another one",
    ),
    (
        RACKS,
        {},
        {},
        "policy warning",
        f"HDFS's own policy places erasure-coded blocks: {NO_CLASS}",
    ),
    (
        RACKS,
        {DECISION: RANKED | {"mode": "shadow"}},
        {},
        "decision ok",
        "128MiB of r0h0 to r0h0 r2h1 r2h0, by leeward in the NameNode, if the mode were on; it is shadow",
    ),
    (
        RACKS,
        {DECISION: RANKED | {"mode": "canary:10%"}},
        {},
        "decision ok",
        "128MiB of r0h0 to r0h0 r2h1 r2h0, by leeward in the NameNode",
    ),
    (
        RACKS,
        {"DecisionsByReason": STALE, "DecisionsOfLastHour": HEALTHY},
        {},
        "decisions ok",
        f"{FEW_DECISIONS}; 1,515 in the last hour, 525 by HDFS's default policy ({LEFT_OUT})",
    ),
    (
        RACKS,
        {"DecisionsByReason": HEALTHY, "DecisionsOfLastHour": STALE},
        {},
        "decisions warning",
        f"{MANY_DECISIONS}; 9 in the last hour, 4 by HDFS's default policy ({REASONS})",
    ),
    (
        RACKS,
        {"Controller": "", "SnapshotAgeMs": -1},
        {},
        "snapshot failed",
        "the NameNode has no controller: dfs.leeward.controller names one",
    ),
    (
        RACKS,
        {"DecisionsByReason": STALE},
        {},
        "decisions warning",
        FEW_DECISIONS,
    ),
    (
        RACKS,
        {},
        {"Safemode": "Safe mode is ON."},
        "NameNode warning",
        "Hadoop 3.5.0, active, 12 live DataNodes, in safe mode: it places no blocks",
    ),
    (
        {},
        {},
        {},
        "NameNode failed",
        "Hadoop 3.5.0, active, 0 live DataNodes: blocks can be placed nowhere",
    ),
]


@pytest.mark.parametrize(("racks", "policy", "info", "check", "finding"), PROBLEMS)
def test_each_problem_has_a_finding(
    run: Run,
    controller: str,
    racks: Mapping[str, list[str]],
    policy: Mapping[str, Any] | None,
    info: Mapping[str, Any],
    check: str,
    finding: str,
) -> None:
    answers = beans(live_nodes(racks), policy)
    answers[0] |= info
    with namenode(answers) as url:
        result = run("hdfs", "check", "--namenode", url, "--controller", controller)
    findings = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert f"{check} {finding}" in findings
    failed = any(line.split()[1:2] == ["failed"] for line in findings)
    assert (result.returncode, result.stderr) == (int(failed), "")


def test_metrics_of_the_policy_stand_in_for_its_state(run: Run, controller: str) -> None:
    both = METRICS | {"name": "Hadoop:service=NameNode,name=Leeward", "tag.Policy": "rehdfs"}
    with namenode([*beans(live_nodes(RACKS), {}), METRICS, both]) as url:
        result = run("hdfs", "check", "--namenode", url, "--controller", controller)
    findings = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "policy ok sinbad places replicated blocks" in findings, "the state counts"
    assert "policy ok ccp places erasure-coded blocks" in findings
    assert "snapshot ok 410 ms old, from its controller" in findings
    coded = "erasure-coded blocks: 9 decisions since the start, 2 by HDFS's default policy (2 stale)"
    assert f"decisions warning {coded}" in findings


def test_silent_agents_and_unknown_storage_have_findings(run: Run, serve: Serve, tmp_path: Path) -> None:
    cluster = {name: value for name, value in CLUSTER.items() if name != "devices"}
    with serve(tmp_path, cluster, "--interval", "20s") as controller:
        until = datetime.now(UTC)
        silent = {name: load for name, load in LOADS.items() if not name.startswith("r2h1")}
        Client(controller, patience_s=0).report(until - timedelta(seconds=1), until, links=silent)
        with namenode(beans(live_nodes(RACKS), {})) as url:
            result = run("hdfs", "check", "--namenode", url, "--controller", controller)
    findings = [" ".join(line.split()) for line in result.stdout.splitlines()]
    silence = "agents warning 1 of 12 hosts without recent telemetry: r2h1; until it reports, sinbad and"
    silence += " leeward choose r2h1 for no further copies, and it counts with its full rate in the load of"
    silence += " its rack"
    assert silence in findings
    storage = "storage warning 12 of 12 hosts without known storage: r0h0, r0h1, r0h2 and 9 more"
    storage += "; leeward agent --volume reports it to the controller. The NameNode knows it by heartbeats"
    assert storage in findings
    assert result.returncode == 0


def repeated(answer: Answer) -> Callable[[int, str], Answer]:
    """A server's function that always gives the same answer."""
    return lambda _number, _text: answer


def test_invalid_options_and_answers_are_errors_of_one_line(
    run: Run, controller: str, fake: Callable[[Callable[[int, str], Answer]], str]
) -> None:
    def error(*arguments: str) -> str:
        result = run("hdfs", "check", "--controller", controller, *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        # A busy machine shows the name of the work first.
        first, *hints = [line for line in result.stderr.splitlines() if not line.endswith(" ...")]
        assert all(hint.startswith("hint: ") for hint in hints), result.stderr
        return first

    expected = "expected the address of the NameNode's web interface, such as http://127.0.0.1:9870"
    for url in ("namenode:9870", "hdfs://namenode:8020", "http://", "http://nn:9870/jmx", "http://a:b@nn"):
        assert error("--namenode", url) == f"error: --namenode: `{url}`: {expected}"
    assert "unavailable: Connection refused" in error("--namenode", "http://127.0.0.1:1")
    answers: list[tuple[Answer, str]] = [
        ((404, {}, b"<html>"), "404 Not Found"),
        ((401, {}, b""), "401 Unauthorized: its web interface asks for a login"),
        ((302, {"location": "http://other"}, b""), "302 Found"),
        ((200, {}, b"<html>"), "not the answer of a NameNode: no list of beans as JSON"),
        ((200, {}, b'{"beans": [7]}'), "not the answer of a NameNode: no list of beans as JSON"),
        ((200, {}, b'{"beans": []}'), "no bean Hadoop:service=NameNode,name=NameNodeInfo"),
        ((200, {}, b'{"beans": [{"name": "a"}]}'), "unknown form"),
        ((200, {}, b"[" * 100_000), "not the answer of a NameNode: no list of beans as JSON"),
    ]
    for answer, why in answers:
        assert why in error("--namenode", fake(repeated(answer)))
    with namenode(beans(live_nodes(RACKS), {"SnapshotAgeMs": "soon"})) as url:
        assert "bean LeewardInfo: unknown form" in error("--namenode", url)
    with namenode(beans("[" * 100_000, {})) as url:
        assert "unknown form of Hadoop:service=NameNode,name=NameNodeInfo" in error("--namenode", url)
    with namenode(beans(live_nodes(RACKS | {"/row1/r4": ["dn17"]}), {})) as url:
        assert "no live DataNode of this name" in error("--namenode", url, "--writer", "r9h9")
        assert "does not have this host" in error("--namenode", url, "--writer", "dn17")
        assert error("--namenode", url, "--size", "much").startswith("error: --size: ")
        expected = "expected DATA+PARITY, such as 6+3"
        assert error("--namenode", url, "--coding", "six") == f"error: --coding: `six`: {expected}"
    with namenode(beans(live_nodes(RACKS), {DECISION: {"reason": "ranked"}})) as url:
        assert "no decision of its Leeward policy" in error("--namenode", url)


@given(
    st.dictionaries(st.sampled_from([f"h{i}" for i in range(8)]), st.sampled_from(["a", "b", "c"])),
    st.dictionaries(st.sampled_from([f"h{i}" for i in range(8)]), st.sampled_from(["a", "b", "c"])),
)
def test_each_datanode_and_each_host_is_in_one_list(live: dict[str, str], racks: dict[str, str]) -> None:
    nodes = [DataNode(name, f"10.0.0.{name[1:]}", f"/row/{rack}", True) for name, rack in live.items()]
    found = differences(nodes, racks)
    assert sorted([*found.hosts, *found.unknown, *(name for name, *_ in found.moved)]) == sorted(live)
    assert set(found.absent) == racks.keys() - live.keys()
    assert all(racks[name] == live[name] for name in found.hosts)
    assert found.is_of_other_cluster() == (2 * len(found.hosts) < len(live))


def test_a_datanode_is_also_known_by_its_address() -> None:
    nodes = [DataNode("dn1.example.com", "10.0.0.1", "/r0", True), DataNode("dn2", "10.0.0.2", "/r0", True)]
    found = differences(nodes, {"10.0.0.1": "r0", "dn2": "r0", "10.0.0.2": "r1"})
    assert found.hosts == {"dn1.example.com": "10.0.0.1", "dn2": "dn2"}


@pytest.mark.parametrize(
    ("location", "rack", "others", "is_known"),
    [
        ("/rack1", "rack1", ["rack2"], True),
        ("/dc1/rack1", "rack1", ["rack2"], True),
        ("/dc1/rack1", "dc1.rack1", ["dc2.rack1"], True),
        ("/dc1/row3/rack7", "dc1.row3.rack7", ["dc2.row3.rack7"], True),
        ("/dc1/row3/rack7", "row3.rack7", ["row4.rack7"], True),
        ("/dc1/rack1", "dc2.rack1", ["dc1.rack1"], False),
        ("/dc1/rack1", "dc1.rack1", ["rack1"], False),
        ("/dc1/rack1", "dc1", ["rack2"], False),
        ("/dc1/rack1", "1.rack1", ["rack2"], False),
    ],
)
def test_a_rack_has_the_last_name_of_its_location_or_else_the_last_names_with_dots(
    location: str, rack: str, others: list[str], is_known: bool
) -> None:
    racks = {"dn1": rack} | {f"dn{number}": other for number, other in enumerate(others, 2)}
    found = differences([DataNode("dn1", "10.0.0.1", location, True)], racks)
    assert found.hosts == ({"dn1": "dn1"} if is_known else {})
    assert found.moved == ([] if is_known else [("dn1", location, rack)])


def test_imported_racks_are_those_of_the_namenode(tmp_path: Path) -> None:
    locations = {"dn1": "/dc1/rack1", "dn2": "/dc2/rack1", "dn3": "/dc2/rack2", "dn4": "/dc2/rack2"}
    table = tmp_path / "racks.txt"
    table.write_text("".join(f"{host} {rack}\n" for host, rack in locations.items()))
    racks = {host.name: host.rack for host in importers.read(importers.Format.HDFS, [table]).hosts}
    nodes = [DataNode(name, "", rack, True) for name, rack in locations.items()]
    assert differences(nodes, racks) == Differences({name: name for name in locations}, [], [], [])
