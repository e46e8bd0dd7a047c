"""The packet plant from Python and from the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from leeward import packets
from leeward.cli import circuits
from leeward.errors import InputError

EXAMPLE = Path(__file__).parents[2] / "examples" / "circuits" / "strobe.yaml"
SMALL: dict[str, Any] = {
    "network": {"racks": 4, "hosts_per_rack": 2},
    "scheduler": {"name": "strobe"},
    "workload": {"long": {"from": 0, "to": 1, "flows": 2, "bytes": "5MB"}},
    "sample": {"every": "100us", "pairs": [[0, 1]]},
    "horizon": "1s",
}


def command(*arguments: str) -> Any:
    return CliRunner().invoke(circuits.app, ["simulate", *arguments])


def test_tables_agree_with_totals() -> None:
    run = packets.simulate(SMALL)
    totals, tables = run.totals(), packets.tables(run)
    assert set(tables) == set(packets.TABLES)
    flows = tables["flows"].to_pydict()
    assert totals["finished"] == totals["flows"] == 2
    assert flows["delivered_bytes"] == flows["written_bytes"] == [5_000_000, 5_000_000]
    assert all(0 < end <= totals["ended_s"] for end in flows["finished_s"])
    days = tables["days"].to_pydict()
    # The days that the run ends in are not among those that have ended.
    assert 0.9 * totals["circuit_bytes"] < sum(days["bytes"]) <= totals["circuit_bytes"]
    of_pair = [
        used
        for used, source, destination in zip(
            days["utilization"], days["source"], days["destination"], strict=True
        )
        if (source, destination) == (0, 1)
    ]
    assert run.utilization(0, 1) == pytest.approx(sum(of_pair) / len(of_pair))
    assert run.utilization(0, 0) is None
    assert sum(tables["latencies"]["packets"].to_pylist()) <= totals["data_packets"]
    assert tables["samples"]["delivered_bytes"].to_pylist()[-1] == 10_000_000
    latencies = [run.latency("packet", share) or 0.0 for share in packets.SHARES]
    assert latencies == sorted(latencies)
    assert latencies[0] > 10e-6
    parts = totals["packet_bytes"] + totals["circuit_bytes"] + totals["dropped_bytes"]
    assert totals["sent_bytes"] == parts + totals["local_bytes"]


def test_copies_of_blocks_have_a_table_and_their_policy() -> None:
    files = {"mappers": 4, "bytes": "2MB", "block": "1MB", "replication": 3}
    scenario = {**SMALL, "workload": {"dfsio": {**files, "copies": {"leeward": {"circuit_turn": "1s"}}}}}
    run = packets.simulate(scenario)
    copies = run.copies().to_pydict()
    assert len(copies["block"]) == 4 * 2 * 2
    pairs = set(zip(copies["writer_rack"], copies["copy_rack"], strict=True))
    assert pairs == {(rack, (rack + 1) % 4) for rack in range(4)}
    hosts = zip(copies["block"], copies["copy_host"], strict=True)
    assert len(set(hosts)) == 16, "two copies of a block on one host"
    ended = zip(copies["began_s"], copies["finished_s"], strict=True)
    assert all(0 <= began < finished <= run.totals()["ended_s"] for began, finished in ended)


def test_runs_repeat_and_say_how_far_they_are() -> None:
    told: list[float] = []
    first = packets.simulate(SMALL, progress=told.append)
    assert told
    assert told == sorted(told)
    assert all(
        table.equals(other)
        for table, other in zip(
            packets.tables(first).values(), packets.tables(packets.simulate(SMALL)).values(), strict=True
        )
    )


def test_what_progress_raises_ends_the_run() -> None:
    def stop(share: float) -> None:
        raise RuntimeError(f"enough at {share}")

    with pytest.raises(RuntimeError, match="enough"):
        packets.simulate(SMALL, progress=stop)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speed": 1}, "speed"),
        ({"scheduler": {"name": "solstice"}}, "scheduler.demand: `solstice` makes schedules of demand"),
        ({"tcp": {"ece": "at_circuit"}}, "tcp.ece"),
        ({"workload": {"long": {"from": 0, "to": 9}}}, "workload.long: flow 0"),
    ],
)
def test_what_is_wrong_is_told(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        packets.simulate(SMALL | change)
    assert message in str(raised.value)


def test_latencies_of_no_path_are_refused() -> None:
    run = packets.simulate(SMALL | {"horizon": "1us"})
    assert run.latency("circuit", 0.5) is None
    with pytest.raises(InputError, match="path"):
        run.latency("air", 0.5)
    with pytest.raises(InputError, match="share"):
        run.latency("all", 1.5)


def test_the_command_prints_and_writes(tmp_path: Path) -> None:
    from pyarrow import parquet

    out = tmp_path / "results"
    result = command(str(EXAMPLE), "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "r0 to r1" in result.output
    assert "LATENCY MEDIAN" in result.output
    assert {path.name for path in out.iterdir()} == {
        "summary.json",
        *(f"{name}.parquet" for name in packets.TABLES),
    }
    summary = json.loads((out / "summary.json").read_text())
    assert 0.7 < summary["circuits"][0]["utilization"] <= 1.0
    assert parquet.read_table(out / "days.parquet").num_rows > 0
    # The same folder again, but none with something else in it.
    assert command(str(EXAMPLE), "--out", str(out)).exit_code == 0
    (out / "mine.txt").write_text("mine")
    refused = command(str(EXAMPLE), "--out", str(out))
    assert isinstance(refused.exception, InputError)
    assert "mine.txt" in str(refused.exception)


def test_the_command_speaks_json() -> None:
    result = command(str(EXAMPLE), "-o", "json")
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    assert summary["totals"]["flows"] == 16
    assert summary["latency_s"]["packet"]["0.5"] > 1e-5


def test_the_ten_lines_of_the_guide_run_and_say_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (EXAMPLE.parents[2] / "docs/guides/reconfigure.md").read_text(encoding="utf-8")
    exec(guide.split("```python\n")[1].split("```")[0], {})
    shown = capsys.readouterr().out.splitlines()
    assert shown[:3] == ["solstice 2 days serve 100%", "eclipse 2 days serve 100%", "rotor 2 days serve 22%"]
    assert [line.split()[0] for line in shown[3:]] == ["strobe", "eclipse"]
