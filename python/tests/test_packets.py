"""The packet simulator from Python and from the command line."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from leeward import packets
from leeward.circuits import Network
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


def test_tables_add_up_to_the_totals() -> None:
    run = packets.simulate(SMALL)
    totals, tables = run.totals(), packets.tables(run)
    assert set(tables) == set(packets.TABLES)
    flows = tables["flows"].to_pydict()
    assert totals["finished"] == totals["flows"] == 2
    assert flows["delivered_bytes"] == flows["written_bytes"] == [5_000_000, 5_000_000]
    assert all(0 < end <= totals["ended_s"] for end in flows["finished_s"])
    days = tables["days"].to_pydict()
    # The table leaves out days that have not ended when the run ends.
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
    assert totals["ended_s"] == max(flows["finished_s"]) == tables["samples"]["time_s"].to_pylist()[-1]
    latencies = [run.latency("packet", share) or 0.0 for share in packets.SHARES]
    assert latencies == sorted(latencies)
    assert latencies[0] > 10e-6
    parts = totals["packet_bytes"] + totals["circuit_bytes"] + totals["dropped_bytes"]
    assert totals["sent_bytes"] == parts + totals["local_bytes"] + totals["held_bytes"]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 300_000)), min_size=1, max_size=6
    ),
    st.sampled_from(["strobe", "solstice", "own"]),
)
@settings(max_examples=20, deadline=None)
def test_the_summary_covers_all_flows_and_all_bytes(
    flows: list[tuple[int, int, int]], scheduler: str
) -> None:
    def own(demand: Any, network: Network) -> Any:
        return [("180us", [(int(source), int(to)) for source, to in numpy.argwhere(demand)[:1]])]

    work = [
        {"from": [source, 0], "to": [(source + step) % 4, 1], "bytes": f"{size}B", "class": step}
        for source, step, size in flows
    ]
    named: Any = {"name": own if scheduler == "own" else scheduler}
    if scheduler != "strobe":
        named["demand"] = "oracle"
    run = packets.simulate(SMALL | {"workload": {"flows": work}, "scheduler": named, "sample": None})
    actual = packets.summary(run)
    totals = actual["totals"]
    assert [one["class"] for one in actual["completion"]] == sorted({step for _, step, _ in flows})
    assert sum(one["flows"] for one in actual["completion"]) == totals["finished"] == len(flows)
    assert sum(one["delivered_bytes"] for one in actual["completion"]) == sum(size for *_, size in flows)
    assert all(0 < one["median_s"] <= one["p99_s"] <= totals["ended_s"] for one in actual["completion"])
    assert actual["throughput_bps"] == pytest.approx(8 * sum(size for *_, size in flows) / totals["ended_s"])
    ways = ("packet", "circuit", "local", "dropped", "held")
    assert totals["sent_bytes"] == sum(totals[f"{way}_bytes"] for way in ways)


def _round(demand: Any, network: Network) -> list[tuple[float, list[tuple[int, int]]]]:
    """Schedule of `strobe`."""
    racks, day = len(demand), 1e-6 * 180
    return [(day, [(rack, (rack + step) % racks) for rack in range(racks)]) for step in range(1, racks)]


def test_a_python_scheduler_gives_the_results_of_the_built_in_one() -> None:
    def totals(scheduler: dict[str, Any]) -> dict[str, Any]:
        return packets.simulate(SMALL | {"scheduler": scheduler}).totals()

    expected = totals({"name": "strobe"})
    assert totals({"name": _round}) == expected
    days = [
        {"length": "180us", "circuits": [[rack, (rack + step) % 4] for rack in range(4)]}
        for step in range(1, 4)
    ]
    assert totals({"days": days}) == expected
    requests: list[tuple[int, Network]] = []

    def most(demand: Any, network: Network) -> Any:
        requests.append((int(demand.sum()), network))
        return _round(demand, network) if demand.any() else []

    result = totals({"name": most, "demand": "oracle", "night": "10us"})
    assert result["finished"] == 2
    assert requests[0][0] == 10_000_000
    assert all(later[0] <= 10_000_000 for later in requests)
    assert requests[0][1] == Network(night="10us")


def test_errors_of_a_python_scheduler_are_reported() -> None:
    def error_of(scheduler: Any, **more: Any) -> str:
        with pytest.raises(InputError) as raised:
            packets.simulate(SMALL | {"scheduler": {"name": scheduler, **more}})
        return str(raised.value)

    twice = [("1ms", [(0, 1)]), ("1ms", [(0, 1), (0, 2)])]
    message = "day 1: source 0 has circuits to 1 and 2: a port has one"
    assert error_of(lambda *_: twice) == f"scenario: scheduler.name: {message}"
    assert error_of(lambda *_: twice, demand="adu") == f"scenario: schedule request at 0 ns: {message}"
    assert error_of(lambda *_: 7, demand="adu") == "days: `<lambda>` returned int: expected a list of days"
    assert "computes schedules from demand" in error_of(lambda *_: [])

    def broken(demand: Any, network: Any) -> Any:
        raise ZeroDivisionError("mine")

    for demand in ({}, {"demand": "voq"}):
        with pytest.raises(ZeroDivisionError, match="mine"):
            packets.simulate(SMALL | {"scheduler": {"name": broken, **demand}})
    with pytest.raises(InputError, match="expected JSON values"):
        packets.simulate(SMALL | {"seed": object()})


def test_a_scenario_may_consist_of_trains_only(tmp_path: Path) -> None:
    file = tmp_path / "trains.yaml"
    limit = "{host: [0, 0], rate: 940Mbps, bucket: 16kB}"
    file.write_text(f"network: {{limits: [{limit}]}}\ntrains: [{{from: [0, 0], to: [1, 0]}}]\nhorizon: 1s\n")
    printed = command(str(file)).stdout
    assert "r0h0 to r1h0  2,000     2,000  92" in printed
    assert "FLOWS" not in printed
    (train,) = json.loads(command(str(file), "-o", "json").stdout)["trains"]
    # The rate excludes headers, and includes the initial burst of the bucket.
    assert 940e6 * 1472 / 1500 < train["rate_bps"] < 1.01 * 940e6 * 1472 / 1500


def test_copies_of_blocks_have_a_table_and_follow_their_policy() -> None:
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


def test_runs_are_repeatable_and_report_progress() -> None:
    updates: list[float] = []
    first = packets.simulate(SMALL, progress=updates.append)
    assert updates
    assert updates == sorted(updates)
    assert all(
        table.equals(other)
        for table, other in zip(
            packets.tables(first).values(), packets.tables(packets.simulate(SMALL)).values(), strict=True
        )
    )


def test_an_exception_in_the_progress_callback_stops_the_run() -> None:
    def stop(share: float) -> None:
        raise RuntimeError(f"enough at {share}")

    with pytest.raises(RuntimeError, match="enough"):
        packets.simulate(SMALL, progress=stop)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speed": 1}, "speed"),
        ({"scheduler": {"name": "solstice"}}, "scheduler.demand: `solstice` computes schedules from demand"),
        ({"tcp": {"ece": "at_circuit"}}, "tcp.ece"),
        ({"workload": {"long": {"from": 0, "to": 9}}}, "workload.long: flow 0"),
    ],
)
def test_invalid_scenarios_are_input_errors(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        packets.simulate(SMALL | change)
    assert message in str(raised.value)


def test_latencies_of_an_unknown_path_are_rejected() -> None:
    run = packets.simulate(SMALL | {"horizon": "1us"})
    assert run.latency("circuit", 0.5) is None
    with pytest.raises(InputError, match="path"):
        run.latency("air", 0.5)
    with pytest.raises(InputError, match="share"):
        run.latency("all", 1.5)


def test_the_command_prints_a_summary_and_writes_tables(tmp_path: Path) -> None:
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
    # An earlier result is overwritten. A folder with a file of the user is not.
    assert command(str(EXAMPLE), "--out", str(out)).exit_code == 0
    (out / "mine.txt").write_text("mine")
    refused = command(str(EXAMPLE), "--out", str(out))
    assert isinstance(refused.exception, InputError)
    assert "mine.txt" in str(refused.exception)


def test_sequences_cover_three_more_days_and_never_decrease() -> None:
    run = packets.simulate(str(EXAMPLE))
    actual = packets.sequence(run, 0, 1)
    assert actual is not None
    # A run of 100 ms has 72 days, one every 1.4 ms. All but the last three have three successors.
    assert (actual.over, actual.at_s[0], actual.at_s[-1]) == (69, 0, pytest.approx(4.2e-3))
    assert actual.arrived_bytes[0] == 0
    assert (numpy.diff(actual.arrived_bytes) >= 0).all()
    # The circuit is up for the last 180 us of every 1.4 ms.
    day = (actual.at_s > 1.22e-3) & (actual.at_s < 1.40e-3)
    assert (actual.up[day] == 1).all()
    assert actual.up.mean() == pytest.approx(180 / 1400, abs=0.02)
    assert set(actual.capacity_packets) == {16, 128}
    assert (actual.queued_packets <= 133).all()
    # Without days, the sequence is the run itself. Without samples, there is no sequence.
    alone = packets.simulate({**SMALL, "scheduler": None})
    plain = packets.sequence(alone, 0, 1)
    assert plain is not None
    assert (plain.over, plain.arrived_bytes[-1]) == (0, 10_000_000)
    assert not plain.up.any()
    assert packets.sequence(alone, 1, 0) is None


def test_the_command_draws_sequence_plots(tmp_path: Path) -> None:
    one, two = tmp_path / "one.svg", tmp_path / "two.svg"
    for picture in (one, two):
        result = command(str(EXAMPLE), "--picture", str(picture))
        assert result.exit_code == 0, result.output
    assert one.read_bytes() == two.read_bytes()
    text = one.read_text()
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert all(words in text for words in ("r0 to r1: mean over 69 days", "arrived in order, MB"))
    refused = command(str(EXAMPLE), "--picture", str(tmp_path / "one.png"))
    assert "expected a name that ends in .svg" in str(refused.exception)
    refused = command(str(EXAMPLE.parent / "rotorlb.yaml"), "--picture", str(one))
    assert isinstance(refused.exception, InputError)
    assert "samples no queue: expected `sample`" in str(refused.exception)


def test_the_command_prints_flows_and_at_most_twenty_circuits() -> None:
    result = command(str(EXAMPLE.parent / "rotorlb.yaml"))
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert "992 of 992 flows finished in" in lines[0]
    assert " Gbps; " in lines[0]
    assert " ".join(lines[2].split()) == "FLOWS NUMBER FINISHED ARRIVED COMPLETION MEDIAN P99"
    assert sum(line.startswith("r") and " to r" in line for line in lines) == 20
    assert "... and 36 more: -o json has all, and --out the days of each" in lines


def test_the_command_prints_json() -> None:
    result = command(str(EXAMPLE), "-o", "json")
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    assert summary["totals"]["flows"] == 16
    assert summary["latency_s"]["packet"]["0.5"] > 1e-5


def test_the_python_example_of_the_guide_prints_the_documented_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    guide = (EXAMPLE.parents[2] / "docs/guides/reconfigure.md").read_text(encoding="utf-8")
    exec(guide.split("```python\n")[1].split("```")[0], {})
    assert capsys.readouterr().out == guide.split("```text\n")[1].split("```")[0]
