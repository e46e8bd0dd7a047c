"""Active measurement: listeners on the loopback interface, and the results of the commands."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shlex import split
from typing import Any

import pytest
import typer

import leeward
from leeward import InputError, cli, probe
from leeward.cli.probe.options import report_failures

Run = Callable[..., subprocess.CompletedProcess[str]]
LEEWARD = Path(sys.executable).with_name("leeward")
SHORT = ("--bursts", "2", "--packets", "40")


@contextmanager
def start_listener(*arguments: str) -> Iterator[str]:
    """Starts a host that listens; yields its address."""
    command = [str(LEEWARD), "probe", "listen", "--listen", "127.0.0.1:0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            line = process.stderr.readline()
            assert line.startswith("listening on "), line
            yield line.split()[-1]
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[str]]:
    with ExitStack() as stack:
        yield [stack.enter_context(start_listener()) for _ in range(4)]


def host_list(hosts: list[str]) -> str:
    return ",".join(f"{name}={host}" for name, host in zip("abcd", hosts, strict=False))


def test_a_path_is_measured_from_this_host_and_between_two_others(run: Run, hosts: list[str]) -> None:
    for source in ("here", hosts[0]):
        result = run("probe", "path", source, hosts[1], *SHORT, "--times", "3", "-o", "json")
        assert result.returncode == 0, result.stderr
        document = json.loads(result.stdout)
        assert [one["sent"] for one in document] == [80] * 3
        assert all(one["rate_bps"] > 1e6 and one["rtt_s"] > 0 for one in document)
    table = run("probe", "path", "here", hosts[1], *SHORT, "--times", "3").stdout
    assert table.startswith("RATE") or "RATE" in table.splitlines()[0]
    assert table.splitlines()[-1].startswith("median ")


def test_a_mesh_is_a_cluster_that_tasks_are_placed_on(run: Run, tmp_path: Path, hosts: list[str]) -> None:
    result = run("probe", "mesh", "--hosts", host_list(hosts), *SHORT, "--out", "m.yaml", "--hops")
    assert (result.returncode, "wrote m.yaml" in result.stderr) == (0, True), result.stderr
    network = leeward.Cluster(tmp_path / "m.yaml")
    assert (network.shape, network.host_names(), network.racks) == ("pipe", list("abcd"), 1)
    (tmp_path / "app.csv").write_text("0,5e8,0\n0,0,1e8\n0,0,0\n")
    placed = run("place", "tasks", "--cluster", "m.yaml", "--matrix", "app.csv", "--policy", "choreo")
    assert placed.returncode == 0, placed.stderr
    hose = probe.mesh(probe.parse_hosts(hosts[:2]), train=probe.Train(2, 40), shape="hose")
    assert leeward.Cluster(hose["cluster"]).shape == "hose"


def test_an_unreachable_host_is_named_and_no_file_is_written(
    run: Run, tmp_path: Path, hosts: list[str]
) -> None:
    with start_listener() as gone:
        pass
    addresses = host_list([*hosts[:2], gone])
    result = run("probe", "mesh", "--hosts", addresses, *SHORT, "--out", "m.yaml")
    assert result.returncode == 1
    assert "error: 4 of 6 paths could not be measured" in result.stderr
    assert "connection refused; is `leeward probe listen` running there?" in result.stdout
    assert not (tmp_path / "m.yaml").exists()
    result = run("probe", "path", "here", gone)
    assert (result.returncode, result.stderr.startswith(f"error: {gone}: connection refused")) == (1, True)


def test_one_machine_is_one_rack(run: Run, hosts: list[str]) -> None:
    result = run("probe", "hops", "--hosts", host_list(hosts[:3]))
    assert result.returncode == 0, result.stderr
    assert re.search(r"^r0 +a, b, c$", result.stdout, re.MULTILINE)
    assert probe.hops(probe.parse_hosts(hosts[:2]))["hops"] == [[None, 1], [1, None]]


def test_cross_steady_and_train_probes_report_their_measurements(run: Run, hosts: list[str]) -> None:
    result = run("probe", "cross", "here", hosts[0], "--rate", "1000Gbps", "--for", "300ms")
    assert result.returncode == 0, result.stderr
    assert "competing connections on a path of 1 Tbps" in result.stdout
    every = ("--every", "50ms", "--times", "4", "--lags", "50ms,1h")
    document = json.loads(run("probe", "steady", "here", hosts[0], *SHORT, *every, "-o", "json").stdout)
    assert len(document["samples"]) == 4
    assert all(lag["lag_s"] == 0.05 for lag in document["lags"])
    grid = ("--bursts", "2", "--packets", "20,40", "--for", "200ms", "--paths", "1")
    result = run("probe", "calibrate", "--hosts", host_list(hosts[:2]), *grid)
    assert result.returncode == 0, result.stderr
    assert re.search(r"^use --bursts 2 --packets (20|40)$", result.stdout, re.MULTILINE)


def test_failed_measurements_are_reported_once_and_exit_with_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report_failures([], "of 3 trains could not be measured")
    with pytest.raises(typer.Exit) as ended:
        report_failures(["gone", "slow", "gone"], "of 9 trains could not be measured")
    assert ended.value.exit_code == 1
    message = "error: gone\nerror: slow\nerror: 3 of 9 trains could not be measured\n"
    assert capsys.readouterr() == ("", message)


def test_the_bottlenecks_command_classifies_the_network(run: Run, hosts: list[str]) -> None:
    options = ("--hosts", host_list(hosts), "--pairs", "1", "--for", "1500ms", "-o", "json")
    result = run("probe", "bottlenecks", *options)
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert (len(document["between_four"]), len(document["from_one"])) == (1, 1)
    assert document["kind"] in {"hose", "pipe", "inside", "mixed"}
    names = {document["between_four"][0][path][end] for path in ("path", "beside") for end in ("from", "to")}
    assert names == set("abcd")


def test_probes_without_the_right_secret_are_rejected(run: Run, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("wind\n")
    (tmp_path / "empty").write_text("")
    with start_listener("--secret", str(tmp_path / "secret")) as host:
        assert run("probe", "path", "here", host, *SHORT, "--secret", "secret").returncode == 0
        result = run("probe", "path", "here", host, *SHORT)
        assert (result.returncode, "wrong secret" in result.stderr) == (1, True)
        result = run("probe", "path", "here", host, "--secret", "empty")
        assert (result.returncode, "expected a secret" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("path", "here", "h", "--bursts", "1001"), "--bursts: 1001: expected a whole number from 1 to 1000"),
        (("path", "here", "h", "--payload", "9000"), "--payload: 9000: expected"),
        (("path", "here", "h", "--gap", "5"), "--gap: `5`"),
        (("path", "here", "h", "--packets", "9000", "--bursts", "900"), "expected at most 536870912"),
        (("mesh", "--hosts", "a"), "--hosts: 1 given: expected at least 2"),
        (("mesh", "--hosts", "a=x,a=y"), "--hosts: duplicate name `a`"),
        (("mesh", "--hosts", "a=x,b=x"), "--hosts: `a` and `b` have the same address x"),
        (("mesh", "--hosts", "a b=x,c"), "--hosts: `a b=x`: expected ADDRESS or NAME=ADDRESS"),
        (("cross", "here", "h", "--for", "2h"), "--for: 7200 s: expected 0.1 to 60 s"),
        (("bottlenecks", "--hosts", "a,b,c,d", "--for", "1s"), "--for: 1 s: expected at least 1.5 s"),
        (("calibrate", "--hosts", "a,b", "--bursts", "x"), "`x`: expected a whole number"),
        (("listen", "--listen", "nowhere"), "--listen: `nowhere`: expected an address and a port"),
    ],
)
def test_invalid_options_are_reported_in_the_first_line(
    run: Run, given: tuple[str, ...], message: str
) -> None:
    result = run("probe", *given)
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert message in result.stderr.splitlines()[0]


def test_hosts_without_a_name_are_named_by_their_addresses() -> None:
    given = ["10.0.0.1", "10.0.0.2:7", "10.0.0.3:1", "10.0.0.3:2", "[fe80::1]:9", "x=1.2.3.4:5"]
    names = [name for name, _ in probe.parse_hosts(given)]
    assert names == ["10.0.0.1", "10.0.0.2", "10.0.0.3-1", "10.0.0.3-2", "fe80--1", "x"]


def test_a_search_for_bottlenecks_needs_three_hosts_before_any_path_is_measured() -> None:
    steps: list[tuple[int, int]] = []
    hosts = [("a", "192.0.2.1"), ("b", "192.0.2.2")]
    with pytest.raises(InputError, match="hosts: 2 given: expected at least 3"):
        probe.mesh(hosts, bottlenecks=True, progress=lambda *step: steps.append(step))
    assert steps == []


def examples() -> Iterator[str]:
    group: Any = typer.main.get_command(cli.app)
    group = group.commands["probe"]
    for command in (group, *group.commands.values()):
        for line in re.sub(r"\s*\\\n\s*", " ", command.epilog).splitlines():
            example = re.split(r" {3,}", line.strip())[0]
            if example.startswith("leeward"):
                yield example


@pytest.mark.parametrize("example", sorted(set(examples())))
def test_examples_in_help_are_valid(run: Run, tmp_path: Path, example: str) -> None:
    name, *arguments = split(example)
    assert name == "leeward"
    # No host exists at the address: that is the only possible error.
    arguments = [re.sub(r"(10\.0\.\d\.\d|127\.0\.0\.1)", r"\1:1", one) for one in arguments]
    arguments = [re.sub(r"10\.0\.(\d)\.(\d)", r"127.1.\1.\2", one) for one in arguments]
    if "listen" in arguments:
        return
    through = "--controller" in arguments
    arguments = [one.replace("https://leeward:7600", "http://127.0.0.1:1") for one in arguments]
    (tmp_path / "admin.token").write_text("leeward_token\n")
    result = run(*arguments)
    assert result.returncode == (2 if through else 1), result.stderr
    expected = "127.0.0.1:1: no answer" if through else "connection refused"
    assert expected in result.stdout + result.stderr
