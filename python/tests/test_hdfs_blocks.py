"""Explanations of blocks by `leeward explain --block`, from answers of a NameNode."""

import json
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from support.namenode import BLOCK, METRICS, RACKS, SUPERUSER, beans, fsck, live_nodes, namenode
from support.namenode import STORED as DECISIONS

Run = Callable[..., subprocess.CompletedProcess[str]]


STORED_DECISION = {
    "time": "2026-03-02T09:00:00.123Z",
    "path": "/logs/day 1",
    "writer": "r0h0",
    "bytes": 134217728,
    "policy": "sinbad",
    "reason": "ranked",
    "hosts": ["r0h0", "r2h1", "r2h0"],
    "steps": [
        {
            "scope": "~/row1/r0",
            "host": "r2h1",
            "reason": "ranked",
            "racks": [
                {"name": "/row1/r2", "value": 8e8, "unit": "bit/s expected on the link into the rack"},
                {"name": "/row1/r1", "value": 3e8, "unit": "bit/s expected on the link into the rack"},
            ],
            "hosts": [{"name": "r2h1", "value": 9e8, "unit": "bit/s expected on the link into the host"}],
        },
        {"scope": "/row1/r2", "host": "r2h0", "reason": "ranked", "note": "the rack of the second copy"},
        {"scope": "", "host": None, "reason": "no_candidate"},
    ],
}
STORED = {"r2h0": "/row1/r2", "r0h0": "/row1/r0", "r2h1": "/row1/r2"}


def test_a_block_is_explained_by_the_decision_that_the_namenode_stores(run: Run) -> None:
    later = STORED_DECISION | {"hosts": ["r3h0", "r2h1", "r2h0"], "time": "2026-03-02T09:00:01Z"}
    other = STORED_DECISION | {"path": "/logs/day 10"}
    remembered = {DECISIONS: [json.dumps(one) for one in (other, later, STORED_DECISION)]}
    blocks = {BLOCK: fsck(BLOCK, "/logs/day 1", STORED)}
    with namenode(beans(live_nodes(RACKS), remembered), blocks) as url:
        arguments = ("explain", "--block", f"{BLOCK}_1001", "--namenode", url, "--user", SUPERUSER)
        result = run(*arguments)
        assert (result.returncode, result.stderr) == (0, "")
        lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
        assert lines[:6] == [
            f"block {BLOCK} of /logs/day 1",
            "stored on r2h0 r0h0 r2h1",
            "decision 2026-03-02T09:00:00.123Z, for r0h0, 134 MB",
            "hosts r0h0 r2h1 r2h0",
            "policy sinbad",
            "reason ranked",
        ]
        assert "1. r2h1, outside /row1/r0: ranked" in lines
        assert "/row1/r2 800 Mbps expected on the link into the rack" in lines
        assert "2. r2h0, /row1/r2: the rack of the second copy" in lines
        assert "3. left to HDFS's default policy, anywhere: no_candidate" in lines
        assert json.loads(run(*arguments, "-o", "json").stdout)["decision"] == STORED_DECISION
        rows = run(*arguments, "-o", "csv").stdout.splitlines()
        assert rows[1].startswith("0,/row1/r2,,,800000000.0,")


def test_unknown_and_unlimited_loads_are_shown_as_such(run: Run) -> None:
    unit = "bit/s along the chain"
    racks = [
        {"name": "/row1/r2", "value": 4e8, "unit": unit, "detail": "own links 400 Mbps, 62 % full"},
        {"name": "/row1/r1", "value": 1e18, "unit": unit, "detail": "own links 1 Gbps, 10 % full"},
        {"name": "/row1/r3", "value": 0, "unit": "bit/s, load unknown"},
        {"name": "/row1/r4", "value": "NaN", "unit": unit},
        {"name": "/row1/r5", "value": "Infinity", "unit": "blocks"},
    ]
    steps = [{"scope": "", "host": "r2h1", "reason": "ranked", "note": "the best", "racks": racks}]
    written = STORED_DECISION | {"steps": steps}
    lines, _, decision = explained(run, written)
    assert decision is not None
    assert [one["value"] for one in decision["steps"][0]["racks"]] == [4e8, 1e18, 0, None, None]
    assert lines[-6:] == [
        "CANDIDATE RANKED BY THEN BY",
        "/row1/r2 400 Mbps along the chain own links 400 Mbps, 62 % full",
        "/row1/r1 no limit along the chain own links 1 Gbps, 10 % full",
        "/row1/r3 0 bps, load unknown",
        "/row1/r4 unknown along the chain",
        "/row1/r5 unknown",
    ]
    blocks = {BLOCK: fsck(BLOCK, "/logs/day 1", STORED)}
    with namenode(beans(live_nodes(RACKS), {DECISIONS: [json.dumps(written)]}), blocks) as url:
        arguments = ("explain", "--block", BLOCK, "--namenode", url, "--user", SUPERUSER)
        rows = run(*arguments, "-o", "csv").stdout.splitlines()
    assert rows[1] == '0,/row1/r2,,,400000000.0,,"own links 400 Mbps, 62 % full; the best",,,'
    assert rows[4] == "0,/row1/r4,,,,,the best,,,"


def explained(run: Run, *decisions: Mapping[str, Any]) -> tuple[list[str], str, dict[str, Any] | None]:
    """Lines, notes, and the decision about a block of the stored ones, the latest first."""
    blocks = {BLOCK: fsck(BLOCK, "/logs/day 1", STORED)}
    stored = {DECISIONS: [json.dumps(one) for one in decisions]}
    with namenode(beans(live_nodes(RACKS), stored), blocks) as url:
        arguments = ("explain", "--block", BLOCK, "--namenode", url, "--user", SUPERUSER)
        result = run(*arguments)
        assert result.returncode == 0
        lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
        return lines, result.stderr.strip(), json.loads(run(*arguments, "-o", "json").stdout)["decision"]


RENAMED = "at the time of the decision, or this is another file"


def test_a_block_of_a_renamed_file_is_explained_by_its_hosts(run: Run) -> None:
    other = STORED_DECISION | {"path": "/elsewhere"}
    for path in ("/logs/day 1._COPYING_", "/logs/_temporary/0/task_1/day 1"):
        written = STORED_DECISION | {"path": path}
        lines, note, decision = explained(run, other, written)
        assert decision == written, "the name is that of the file"
        assert f"path {path}" in lines
        assert note == f"note: the file was {path} {RENAMED}"
    lines, note, decision = explained(run, other)
    assert decision == other
    assert note == f"note: the file was /elsewhere {RENAMED}"


def test_several_decisions_with_the_hosts_of_a_block_are_said_to_be_several(run: Run) -> None:
    later = STORED_DECISION | {"time": "2026-03-02T09:00:05Z"}
    other = STORED_DECISION | {"path": "/elsewhere"}
    _, note, decision = explained(run, other, later, STORED_DECISION)
    assert decision == later
    assert note == "note: 2 such decisions have these hosts, and this is the latest"


def test_a_copied_block_is_explained_by_the_decision_about_its_last_copy(run: Run) -> None:
    copy = STORED_DECISION | {"hosts": ["r2h0"], "existing": ["r2h1", "r0h0"]}
    lines, note, decision = explained(run, copy)
    assert (decision, note) == (copy, "")
    assert "earlier r2h1 r0h0" in lines
    assert "hosts r2h0" in lines


def test_a_block_without_an_explanation_says_why(run: Run) -> None:
    blocks = {BLOCK: fsck(BLOCK, "/logs/day 1", STORED)}

    def explain(
        policy: Mapping[str, Any] | None, block: str = BLOCK, user: str = SUPERUSER
    ) -> tuple[int, str]:
        answers = beans(live_nodes(RACKS), None if policy is METRICS else policy)
        with namenode([*answers, METRICS] if policy is METRICS else answers, blocks) as url:
            result = run("explain", "--block", block, "--namenode", url, "--user", user)
            return result.returncode, result.stderr.splitlines()[0]

    others = {DECISIONS: [json.dumps(STORED_DECISION | {"hosts": ["r1h1"]})]}
    none = "error: the NameNode stores no decision about /logs/day 1, and none with the hosts of the block"
    assert explain({}) == (1, none)
    other = "error: of /logs/day 1, the NameNode stores 1 decision, and none has the hosts of the block"
    assert explain(others) == (1, other)
    code, line = explain(None)
    assert code == 2
    assert line.endswith("the NameNode runs no Leeward policy")
    code, line = explain(METRICS)
    assert code == 2
    assert line.endswith("the policy in the NameNode shows no decisions over HTTP")
    for broken in (
        "7",
        "{",
        '{"time": 3}',
        json.dumps(STORED_DECISION | {"steps": [{"racks": [{"value": "much"}]}]}),
        json.dumps(STORED_DECISION | {"steps": [{"racks": [{"value": 10**400}]}]}),
        json.dumps(STORED_DECISION | {"steps": [{"racks": [{"value": 1, "detail": 7}]}]}),
        json.dumps(STORED_DECISION | {"mode": 7}),
    ):
        code, line = explain({DECISIONS: [broken]})
        assert code == 2
        assert "not the answer of a NameNode: no decisions of its Leeward policy" in line
    code, line = explain({}, "blk_7")
    assert (code, line) == (2, "error: --block: blk_7: not found: Block blk_7 does not exist")
    code, line = explain({}, user="guest")
    assert code == 2
    assert "Superuser privilege is required" in line
    for invalid in ("1073741825", "blk_", "blk_x", "blk_1&path=/"):
        code, line = explain({}, invalid)
        assert code == 2
        assert f"error: --block: `{invalid}`: expected the name of a block" in line


def test_explain_takes_a_decision_or_a_block(run: Run) -> None:
    for arguments in ([], ["42", "--block", BLOCK]):
        result = run("explain", *arguments)
        expected = "error: DECISION: expected the id of a decision, a file, or --block NAME\n"
        assert (result.returncode, result.stderr) == (2, expected)
