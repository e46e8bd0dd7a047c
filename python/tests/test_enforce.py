"""`leeward enforce net`: programs, errors, and an enforcer on a kernel that is interrupted."""

import csv
import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leeward.cli.csv_columns import COLUMNS
from leeward.cli.enforce import net
from support.labs import ADDRESSES, DEVICE, two_hosts
from support.parts import require

Run = Callable[..., subprocess.CompletedProcess[str]]

LEEWARD = str(Path(sys.executable).with_name("leeward"))
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "slo"
TARGET = ("--interface", "nosuch0", "--rate", "1Gbps", "--dry-run")


def promises(host: str, peer: str, **fields: Any) -> str:
    """The promise of one workload of a host, as a controller sends it."""
    bucket = {"rate": 1e6, "burst": 64e3}
    workload = {"name": "mail", "direction": "to-server", "peers": [peer], "priority": 0, "buckets": [bucket]}
    return json.dumps({"host": host, "workloads": [workload | fields]})


def test_a_packed_file_and_its_json_have_the_same_programs(run: Run, tmp_path: Path) -> None:
    names = ["serversh0", *(f"{kind}{number}" for kind in ("tight", "loose") for number in range(4))]
    (tmp_path / "hosts").write_text("".join(f"10.0.0.{at} {name}\n" for at, name in enumerate(names, 1)))
    pack = ("slo", "pack", str(EXAMPLES / "volumes.yaml"), "--cluster", str(EXAMPLES / "servers.yaml"))
    packed = run(*pack, "--out", "packed.yaml", "-o", "json")
    assert packed.returncode == 0, packed.stderr
    (tmp_path / "packed.json").write_text(packed.stdout)
    servers = [one["server"] for one in json.loads(packed.stdout)["workloads"]]
    count = servers.count("serversh0:ssd")
    assert count > 1
    command = ("enforce", "net", "--addresses", "hosts", "--host", "serversh0", *TARGET)
    results = [run(*command, "--workloads", name) for name in ("packed.yaml", "packed.json")]
    assert [result.returncode for result in results] == [0, 0], results[0].stderr
    lines = [result.stdout.splitlines() for result in results]
    assert len(lines[0]) == len(lines[1])
    # The file rounds rates and bursts up.
    assert [line.split(" htb ")[0] for line in lines[0]] == [line.split(" htb ")[0] for line in lines[1]]
    assert "qdisc add dev nosuch0 root handle 7ee0: htb default 2" in lines[0]
    document = json.loads(run(*command, "--workloads", "packed.json", "-o", "json").stdout)
    assert document["complete"] is True
    assert [row["state"] for row in document["workloads"]] == ["planned"] * count
    assert {row["dscp"] for row in document["workloads"]} == {"cs7", "cs6"}
    text = run(*command, "--workloads", "packed.json", "-o", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [*rows[0]] == [*COLUMNS["enforce net"]]
    assert [row["class"] for row in rows] == [row["class"] for row in document["workloads"]]


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        ((), 2, "error: --workloads: missing; expected the file of the promises"),
        (("--workloads", "none.yaml", *TARGET), 2, "error: none.yaml: no such file"),
        (("--workloads", "p.json", "--host", "h0", *TARGET, "-o", "csv", "--status"), 2, "error: --dry-run"),
        (("--workloads", "p.json", "--host", "h0", "-o", "json"), 2, "error: --output: only valid with"),
        (("--workloads", "p.json", "--host", "h1", *TARGET), 2, "error: p.json: host: `h0`: these are not"),
        (("--workloads", "p.json", "--host", "h0", *TARGET), 1, "error: nosuch0: mail is not enforced: "),
        (("--workloads", "p.json", "--host", "h0", "--interface", "a/b"), 2, "error: --interface: `a/b`"),
        (
            ("--workloads", "p.json", "--host", "h0", "--interface", "nosuch0", "--dry-run"),
            1,
            "error: nosuch0: no such interface",
        ),
    ],
)
def test_errors_name_what_is_wrong(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], code: int, expected: str
) -> None:
    # The interface has no addresses, since there is none.
    (tmp_path / "p.json").write_text(promises("h0", "10.0.0.2"))
    result = run("enforce", "net", *arguments)
    assert result.returncode == code
    assert expected in result.stderr


@pytest.mark.parametrize("is_ignored", [False, True])
def test_a_closed_terminal_stops_an_enforcer_unless_it_runs_under_nohup(
    monkeypatch: pytest.MonkeyPatch, is_ignored: bool
) -> None:
    handlers: list[Any] = []

    def enforce_net(arguments: str, tell: Callable[[str], None]) -> None:
        handlers.extend(signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP))

    monkeypatch.setattr(net, "_native", SimpleNamespace(enforce_net=enforce_net))
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN if is_ignored else signal.SIG_DFL)
        net.net(workloads="p.json")
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    interrupt = signal.default_int_handler
    assert handlers == [interrupt, signal.SIG_IGN if is_ignored else interrupt]


def inside(namespace: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", namespace, *command]


def rules(namespace: str) -> str:
    command = inside(namespace, "sh", "-c", f"tc qdisc show dev {DEVICE}; nft list tables")
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def status(command: list[str], folder: Path, *options: str) -> str:
    result = subprocess.run(
        [*command, "--status", *options], cwd=folder, capture_output=True, check=False, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_enforcer_leaves_the_interface_as_it_was(tmp_path: Path, end: signal.Signals) -> None:
    require("nft", package="nftables")
    with two_hosts() as (namespace, _):
        before = rules(namespace)
        (tmp_path / "p.json").write_text(promises("h0", ADDRESSES[1]))
        options = ["--workloads", "p.json", "--host", "h0", "--interface", DEVICE, "--rate", "1Gbps"]
        command = inside(namespace, LEEWARD, "enforce", "net", *options)
        with subprocess.Popen(
            [*command, "--interval", "200ms"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        ) as enforcer:
            assert enforcer.stderr is not None
            assert enforcer.stderr.readline() == "h0: 1 workloads\n"
            assert enforcer.stderr.readline().startswith("eth0: enforces 1 workloads by 3 classes (")
            (row,) = json.loads(status(command, tmp_path, "-o", "json"))["workloads"]
            assert (row["state"], row["dscp"], row["class"]) == ("enforced", "cs7", "7ee0:10")
            cells = status(command, tmp_path).splitlines()[1].split()
            assert cells[:5] == ["mail", "eth0", "to-server", "cs7", "7ee0:10"]
            # A change of the file takes effect at the next interval.
            (tmp_path / "p.json").write_text(promises("h0", ADDRESSES[1], priority=1))
            assert enforcer.stderr.readline() == "h0: 1 workloads\n"
            assert enforcer.stderr.readline().startswith("eth0: enforces 1 workloads by 3 classes (")
            enforcer.send_signal(end)
            assert enforcer.stderr.read() == "eth0: undone\n"
        assert enforcer.returncode == 0
        assert rules(namespace) == before


def test_a_killed_enforcer_is_undone(tmp_path: Path) -> None:
    require("nft", package="nftables")
    with two_hosts() as (namespace, _):
        before = rules(namespace)
        (tmp_path / "p.json").write_text(promises("h0", ADDRESSES[1]))
        options = ["--workloads", "p.json", "--host", "h0", "--interface", DEVICE, "--rate", "1Gbps"]
        command = inside(namespace, LEEWARD, "enforce", "net")
        with subprocess.Popen(
            [*command, *options], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        ) as enforcer:
            assert enforcer.stderr is not None
            while "enforces" not in enforcer.stderr.readline():
                time.sleep(0.01)
            enforcer.kill()
        assert rules(namespace) != before
        result = subprocess.run([*command, "--undo"], capture_output=True, check=False, text=True)
        assert (result.returncode, result.stderr) == (0, "eth0: undone\n")
        assert rules(namespace) == before
