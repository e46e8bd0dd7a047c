"""Replays of SLO workloads: settings of files and options, caps of devices, and the times between traces."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leeward.errors import InputError
from leeward.slo import STARTS, check

Run = Callable[..., subprocess.CompletedProcess[str]]
CLUSTER = (
    "racks: 1\nhosts_per_rack: 3\nnic: 10Gbps\nrack_link: 10Gbps\n"
    "devices: [{name: ssd, read: 1GB/s, write: 1GB/s}]\n"
)
READ_S = 0.001
"""Time of a read of 4 KiB at the device."""


def write_files(
    folder: Path, traces: dict[str, list[float]], head: str = "", more: str = "", **caps: object
) -> tuple[str, str]:
    """Workloads of reads at these times on one device, the most urgent first; and their cluster."""
    (folder / "cluster.yaml").write_text(CLUSTER)
    table = [{"size_bytes": 4096, "read_iops": 1 / READ_S, "write_iops": 1 / READ_S}]
    unloaded = [
        {"kind": kind, "size_bytes": 4096, "percentile": percentile, "seconds": seconds}
        for kind in ("read", "write")
        for percentile, seconds in ((50, 0.001), (99, 0.002))
    ]
    profile = {"table": table, "unloaded": unloaded, "outstanding": 8, **caps}
    (folder / "dev.json").write_text(json.dumps(profile))
    lines = [f"device: dev.json\nmargin: 0%\nstages: [storage]\n{head}\nworkloads:\n"]
    for priority, (name, times) in enumerate(traces.items()):
        rows = "".join(f"{at:.6f},read,4096\n" for at in times)
        (folder / f"{name}.csv").write_text(f"seconds,kind,size\n{rows}")
        lines.append(
            f"  - {{name: {name}, client: r0h0, server: r0h1, trace: {name}.csv, priority: {priority}, slo: "
            f"{{percentile: 99, latency: 500ms}}{more}}}\n"
        )
    (folder / "w.yaml").write_text("".join(lines))
    return str(folder / "w.yaml"), str(folder / "cluster.yaml")


def worst(record: dict[str, Any], name: str) -> float:
    """Largest latency of a workload in a replay."""
    (one,) = (one for one in record["workloads"] if one["workload"] == name)
    seconds: float = one["seen"]["worst_s"]
    return seconds


SECONDS = [1.0, 2.0, 3.0]
BURST = {"urgent": [at + 0.0005 for at in SECONDS], "bulk": [at for at in SECONDS for _ in range(20)]}
"""A read half a millisecond after each burst of 20 reads of lower priority."""


def test_traces_keep_the_times_between_them_unless_they_start_together(tmp_path: Path) -> None:
    # Each read of `second` comes half a millisecond after one of `first`, which takes a millisecond.
    files = write_files(tmp_path, {"first": SECONDS, "second": [at + 0.0005 for at in SECONDS]})
    waits = {}
    for start in STARTS:
        record, _ = check(*files, method="dnc", start=start)
        assert record["start"] == start
        waits[start] = worst(record, "second") - READ_S
    assert waits == {"recorded": pytest.approx(0.0005), "together": pytest.approx(0.001)}
    assert worst(check(*files, method="dnc")[0], "second") == pytest.approx(0.0015)
    files = write_files(
        tmp_path, {"first": SECONDS, "second": [at + 0.0005 for at in SECONDS]}, "replay: {start: together}"
    )
    assert worst(check(*files, method="dnc")[0], "second") == pytest.approx(0.002)


def test_traces_that_never_meet_are_named(run: Run, tmp_path: Path) -> None:
    workloads, cluster = write_files(tmp_path, {"first": SECONDS, "later": [at + 3600 for at in SECONDS]})
    result = run("slo", "check", workloads, "--cluster", cluster, "--replay", "--method", "dnc")
    assert result.returncode == 0, result.stderr
    text = " ".join(result.stderr.split())
    assert "note: first.csv, later.csv: its requests come when no other trace has any" in text
    together = ("--start", "together")
    result = run("slo", "check", workloads, "--cluster", cluster, "--replay", "--method", "dnc", *together)
    assert "no other trace" not in result.stderr
    assert "replay: each trace starts with its first request at time 0" in result.stderr


def test_replays_keep_the_caps_of_the_device_file_and_options_override_them(run: Run, tmp_path: Path) -> None:
    free, _ = check(*write_files(tmp_path, BURST), method="dnc")
    # Eight reads are at the device, of which the first has half its time left.
    assert worst(free, "urgent") == pytest.approx(0.0085)
    workloads, cluster = write_files(tmp_path, BURST, outstanding_read_bytes=8192)
    capped, _ = check(workloads, cluster, method="dnc")
    assert worst(capped, "urgent") == pytest.approx(0.0025)
    device = next(queue for queue in capped["queues"] if queue["device"])
    assert (device["outstanding"], device["caps"]["outstanding_read_bytes"]) == (8, 8192)
    command = ("slo", "check", workloads, "--cluster", cluster, "--replay", "--method", "dnc")
    assert "replay: devices take 8.19 kB of reads at once" in run(*command).stderr
    result = run(*command, "--outstanding-read-bytes", "none", "-o", "json")
    assert result.returncode == 0, result.stderr
    assert worst(json.loads(result.stdout), "urgent") == worst(free, "urgent")


def test_numbers_of_reads_and_writes_at_a_device_are_options(run: Run, tmp_path: Path) -> None:
    workloads, cluster = write_files(tmp_path, BURST, outstanding_reads=2)
    command = ("slo", "check", workloads, "--cluster", cluster, "--replay", "--method", "dnc", "-o", "json")
    worst_of: dict[str, float] = {}
    for number, expected in (("1", 1), ("3", 3), ("none", None)):
        record = json.loads(run(*command, "--outstanding-reads", number, "--outstanding-writes", "5").stdout)
        caps = next(queue["caps"] for queue in record["queues"] if queue["device"])
        assert (caps["outstanding_reads"], caps["outstanding_writes"]) == (expected, 5)
        worst_of[number] = worst(record, "urgent")
    # The fewer reads are at the device, the sooner an urgent one is served.
    assert worst_of["1"] < worst_of["3"] < worst_of["none"]


def test_a_closed_loop_is_an_option(run: Run, tmp_path: Path) -> None:
    workloads, cluster = write_files(tmp_path, BURST)
    command = ("slo", "check", workloads, "--cluster", cluster, "--replay", "--method", "dnc", "-o", "json")
    record = json.loads(run(*command, "--closed", "urgent=1").stdout)
    expected, _ = check(workloads, cluster, method="dnc", closed={"urgent": 1})
    assert (
        record["workloads"]
        == expected["workloads"]
        != check(workloads, cluster, method="dnc")[0]["workloads"]
    )


def test_fewer_reads_start_behind_a_higher_priority(tmp_path: Path) -> None:
    # Two urgent reads. The first waits for the eight reads at the device. While it waits there, six more may
    # start before the second comes, or only one.
    traces = {**BURST, "urgent": [at + late for at in SECONDS for late in (0.0005, 0.0075)]}
    files = write_files(tmp_path, traces)

    def latencies(caps: dict[str, Any] | None) -> tuple[dict[str, Any], list[float]]:
        record, rows = check(*files, method="dnc", caps=caps, rows=True)
        assert rows is not None
        pairs = zip(rows["workload"].to_pylist(), rows["latency_s"].to_pylist(), strict=True)
        return record, sorted(latency for name, latency in pairs if name == "urgent")

    assert latencies(None)[1] == pytest.approx([0.0085] * 6)
    behind, urgent = latencies({"behind": {"requests": 1}})
    assert urgent == pytest.approx([0.0035] * 3 + [0.0085] * 3)
    device = next(queue for queue in behind["queues"] if queue["device"])
    assert device["caps"]["behind"] == {"requests": 1, "bytes": None}
    in_file, _ = check(*write_files(tmp_path, traces, behind={"requests": 1}), method="dnc")
    assert in_file == behind


def test_writes_in_batches_are_named_if_a_bound_is_exceeded_and_shown(run: Run, tmp_path: Path) -> None:
    files = write_files(tmp_path, BURST, write_batch={"bytes": 65536, "gap_bytes": 4096})
    record, _ = check(*files, method="dnc")
    device = next(queue for queue in record["queues"] if queue["device"])
    assert device["caps"]["write_batch"] == {"bytes": 65536, "gap_bytes": 4096}
    command = ("slo", "check", files[0], "--cluster", files[1], "--replay", "--method", "dnc", "-o", "json")
    for option, expected in (
        (("--write-batch", "1MiB"), {"bytes": 1 << 20, "gap_bytes": 0}),
        (("--write-batch", "1MiB,64KiB"), {"bytes": 1 << 20, "gap_bytes": 1 << 16}),
        (("--write-batch", "none"), None),
    ):
        queues = json.loads(run(*command, *option).stdout)["queues"]
        assert [queue["caps"]["write_batch"] for queue in queues if queue["device"]] == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8,1MiB", {"requests": 8, "bytes": 1 << 20}),
        ("8", {"requests": 8, "bytes": None}),
        ("1MiB", {"requests": None, "bytes": 1 << 20}),
        ("none", None),
    ],
)
def test_the_option_behind_has_requests_bytes_or_both(
    run: Run, tmp_path: Path, text: str, expected: dict[str, int | None] | None
) -> None:
    workloads, cluster = write_files(tmp_path, BURST, behind={"bytes": 1})
    command = ("slo", "check", workloads, "--cluster", cluster, "--replay", "--method", "dnc", "-o", "json")
    queues = json.loads(run(*command, "--behind", text).stdout)["queues"]
    assert [queue["caps"]["behind"] for queue in queues if queue["device"]] == [expected]


def test_the_file_says_what_happens_over_a_limit_and_an_option_overrides_it(run: Run, tmp_path: Path) -> None:
    def over(head: str = "", more: str = "") -> str:
        record, _ = check(*write_files(tmp_path, BURST, head, more), method="dnc")
        text: str = record["over"]
        return text

    assert over() == "held"
    assert over("over: demoted") == "demoted"
    assert over("over: demoted", ", over: held") == "held"
    assert over("over: {storage: demoted}") == "mixed"
    assert over("", ", over: {storage: demoted}") == "mixed"
    workloads, cluster = write_files(tmp_path, BURST, "over: demoted")
    command = ("slo", "check", workloads, "--cluster", cluster, "--replay", "--method", "dnc")
    assert "note: bounds assume strict priorities and requests held at limits" in run(*command).stderr
    by_stage = json.loads(run(*command, "--over", "storage=demoted,network-in=held", "-o", "json").stdout)
    assert by_stage["over"] == "mixed"
    in_file, _ = check(
        *write_files(tmp_path, BURST, "over: {storage: demoted, network-in: held, network-out: demoted}"),
        method="dnc",
    )
    assert by_stage == in_file
    workloads, cluster = write_files(tmp_path, BURST, "over: demoted")
    held = run(*command, "--over", "held")
    assert "replay: over a limit held" in held.stderr
    assert "note: bounds assume" not in held.stderr


def test_settings_of_replays_in_the_file_equal_the_options(run: Run, tmp_path: Path) -> None:
    plain = write_files(tmp_path, BURST)
    expected, _ = check(*plain, method="dnc", order="fifo", tails=True, seed=9, start="together")
    head = "replay: {order: fifo, tails: true, seed: 9, start: together}"
    files = write_files(tmp_path, BURST, head)
    assert check(*files, method="dnc")[0] == expected
    command = ("slo", "check", files[0], "--cluster", files[1], "--replay", "--method", "dnc", "-o", "json")
    assert json.loads(run(*command).stdout) == expected
    options = ("--order", "priority", "--start", "recorded", "--no-tails")
    usual, _ = check(*files, method="dnc", order="priority", tails=False, start="recorded")
    assert json.loads(run(*command, *options).stdout) == usual
    assert (usual["tails_seed"], usual["order"], usual["start"]) == (None, "priority", "recorded")
    assert json.loads(run(*command, "--seed", "10").stdout)["tails_seed"] == 10


@pytest.mark.parametrize(
    ("head", "more", "message"),
    [
        ("over: later", "", "over: `later`: expected held or demoted, or one for each stage"),
        ("over: {disk: held}", "", "over.disk: unknown field"),
        ("replay: {start: first}", "", "replay.start"),
        ("replay: {order: best}", "", "replay.order"),
        ("replay: {speed: 2}", "", "replay.speed: unknown field"),
        ("", ", over: {network-in: held}", "workloads[0].over.network-in: the workload has no such stage"),
    ],
)
def test_invalid_settings_of_replays_are_errors_with_their_field(
    tmp_path: Path, head: str, more: str, message: str
) -> None:
    with pytest.raises(InputError) as raised:
        check(*write_files(tmp_path, BURST, head, more))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("caps", "message"),
    [
        ({"outstanding": 4}, r"^caps: `outstanding`: expected one of outstanding_reads, outstanding_writes"),
        ({"outstanding_reads": 0}, r"^caps outstanding_reads: `0`: expected a whole number from 1"),
        ({"outstanding_read_bytes": 0}, r"^caps outstanding_read_bytes: `0`: expected a whole number from 1"),
        ({"behind": {}}, r"^caps behind: expected requests and bytes, or None"),
        ({"behind": {"requests": -1}}, r"^caps behind.requests: `-1`"),
        ({"write_batch": {"gap_bytes": 1}}, r"^caps write_batch: expected bytes"),
    ],
)
def test_invalid_caps_are_errors(tmp_path: Path, caps: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check(*write_files(tmp_path, BURST), caps=caps)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--start", "never"), "--start: `never`: expected one of recorded, together"),
        (("--behind", "few"), "--behind: `few`"),
        (("--over", "late"), "--over: `late`: expected one of held, demoted"),
        (("--over", "disk=held"), "--over: `disk`: expected one of network-in, storage, network-out"),
        (("--over", "storage=held,network-in"), "--over: ``: expected one of held, demoted"),
        (("--outstanding-reads", "0"), "`0`: expected a whole number from 1"),
        (("--closed", "urgent"), "--closed: `urgent`: expected a workload and a number, such as mail=4"),
        (("--closed", "nobody=4"), "--closed: no workload `nobody`"),
        (("--write-batch", "64"), "--write-batch: `64`"),
        (("--outstanding-write-bytes", "lots"), "--outstanding-write-bytes: `lots`"),
        (("--tails", "--no-tails"), "expected one of --tails and --no-tails"),
        (("--no-tails", "--seed", "3"), "--seed requires --tails"),
    ],
)
def test_invalid_options_of_replays_are_named(
    run: Run, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    workloads, cluster = write_files(tmp_path, BURST)
    result = run("slo", "check", workloads, "--cluster", cluster, "--replay", "--method", "dnc", *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())


def test_the_schemas_have_caps_and_settings_of_replays(run: Run) -> None:
    device = json.loads(run("schema", "device").stdout)
    assert {"table", "disk", "outstanding", "behind", "write_batch"} <= device["properties"].keys()
    assert not device.get("required")
    slo = json.loads(run("schema", "slo").stdout)
    assert {"over", "replay"} <= slo["properties"].keys()
    assert set(slo["$defs"]["ReplayFile"]["properties"]) == {"order", "tails", "seed", "start"}
