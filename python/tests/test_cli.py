import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import split
from typing import Any

import pytest
import typer

import leeward
from leeward import cli
from leeward.cli.options import split_list

Run = Callable[..., subprocess.CompletedProcess[str]]

RACKS = """\
name: small
racks: [{count: 3}, {link: 500Mbps}]
hosts_per_rack: 20
nic: 1Gbps
oversubscription: 10
devices: [{name: hdd, read: 120MB/s, write: 100MB/s, capacity: 4TB}]
"""


@pytest.fixture
def racks(tmp_path: Path) -> str:
    (tmp_path / "racks.yaml").write_text(RACKS)
    return "racks.yaml"


def test_without_arguments_the_command_prints_its_help(run: Run) -> None:
    assert run().stdout == run("--help").stdout == run("-h").stdout
    result = run("--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert "leeward simulate examples/scenarios/first.yaml" in result.stdout


def commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yields the words of every command and group of commands."""
    group = group or typer.main.get_command(cli.app)
    for name, command in group.commands.items():
        yield (*path, name)
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_every_command_has_help_with_a_purpose(run: Run, command: tuple[str, ...]) -> None:
    result = run(*command, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    usage, blank, purpose, *_ = result.stdout.splitlines()
    assert usage.startswith(f"Usage: leeward {' '.join(command)} ")
    assert not blank
    assert purpose.startswith("  ")


@pytest.mark.parametrize(
    ("command", "usage"),
    [(("reproduce",), "PAPER"), (("data", "list"), "[NAME]..."), (("simulate",), "FILE")],
)
def test_usage_names_the_arguments(run: Run, command: tuple[str, ...], usage: str) -> None:
    assert (
        run(*command, "--help").stdout.splitlines()[0]
        == f"Usage: leeward {' '.join(command)} [OPTIONS] {usage}"
    )


@pytest.mark.parametrize("group", [(), *(path for path in commands() if len(path) == 1)], ids=" ".join)
def test_no_line_of_help_is_truncated(run: Run, group: tuple[str, ...]) -> None:
    listed = run(*group, "--help").stdout.partition("Commands:")[2]
    assert "..." not in listed.partition("Examples")[0]


EXAMPLES = Path(__file__).parents[2] / "examples"
SLOW_OR_NOT_ENDING = (
    "leeward demo",
    # These query a controller, a NameNode, a cluster or Prometheus, and have tests of their own.
    "leeward hdfs check",
    "leeward kubernetes top",
    "leeward kubernetes explain",
    "leeward kubernetes hotspots",
    "leeward kubernetes check",
    "leeward kubernetes trial --prometheus",
    "leeward explain --block",
    "leeward explain 42",
    "leeward explain decision.json",
    "leeward top",
    "leeward slo status",
    "leeward slo change",
    "leeward mode",
    "leeward report",
    "leeward decisions",
    "leeward agent",
    "leeward telemetry map",
    "leeward serve",
    "leeward trial",
    "leeward data get",
    "leeward reproduce",
    "leeward probe",
    # These need a lab, hosts or an answer of `leeward place`, and have tests of their own.
    "leeward lab top",
    "leeward reevaluate",
    "leeward tenant run",
    # These need a disk or a file server, and have tests of their own.
    "leeward device profile --disk",
    "leeward device profile --nfs",
    "leeward enforce nfs",
    "leeward traces replay",
    "--seeds 10",
)


def printed_examples() -> Iterator[str]:
    """Yields every command line that the help of a command shows."""

    def epilogs(group: Any) -> Iterator[str]:
        yield f"{getattr(group, 'start', None) or ''}\n{group.epilog or ''}"
        for command in getattr(group, "commands", {}).values():
            yield from epilogs(command)

    for epilog in epilogs(typer.main.get_command(cli.app)):
        # Continued lines are joined. Text after three spaces is a comment.
        for line in re.sub(r"\s*\\\n\s*", " ", epilog).splitlines():
            example = re.split(r" {3,}", line.strip())[0]
            if example.startswith("leeward") and not any(words in example for words in SLOW_OR_NOT_ENDING):
                yield example


EXAMPLE_COMMANDS = sorted(set(printed_examples()))
SHELL_CHARACTERS = set("|&;<>()$`*?[#~!")
"""Characters with a meaning in a shell."""


@pytest.mark.parametrize("example", [line for line in EXAMPLE_COMMANDS if not set(line) & SHELL_CHARACTERS])
def test_examples_in_help_run_as_printed(run: Run, tmp_path: Path, example: str) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    name, *arguments = split(example)
    assert name == "leeward"
    result = run(*arguments, HOME=str(tmp_path))
    # An example of a refusal exits with 1 and reports an error.
    refuses = example.startswith(("leeward slo admit", "leeward slo pack", "leeward slo check"))
    reported = "error:" in result.stderr
    assert result.returncode == 0 or (refuses and reported and result.returncode == 1), result.stderr


@pytest.mark.parametrize("example", [line for line in EXAMPLE_COMMANDS if set(line) & SHELL_CHARACTERS])
def test_examples_in_help_that_need_a_shell_run_as_printed(tmp_path: Path, example: str) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = subprocess.run(
        example,
        shell=True,
        cwd=tmp_path,
        env={"PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert shell.returncode == 0, shell.stderr.decode()


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_output_is_no_error(closed: str) -> None:
    command = Path(sys.executable).with_name("leeward")
    shell = subprocess.run(f"{command} policies {closed}", shell=True, capture_output=True, check=False)
    assert (shell.returncode, shell.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_reported_in_one_line() -> None:
    command = Path(sys.executable).with_name("leeward")
    shell = subprocess.run(
        f"{command} policies >/dev/full", shell=True, capture_output=True, check=False, text=True
    )
    assert (shell.returncode, shell.stderr.count("\n")) == (1, 1)
    assert shell.stderr == "error: No space left on device\n"


def test_the_version_option_prints_the_version(run: Run) -> None:
    assert run("--version").stdout == f"leeward {leeward.__version__}\n"


def test_cluster_show_prints_a_plain_table_when_piped(run: Run, racks: str) -> None:
    result = run("cluster", "show", racks, FORCE_COLOR="1")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == (
        "small: tree, 80 hosts, 4 racks\n"
        "\n"
        "LINKS          COUNT            CAPACITY  OVERSUBSCRIPTION\n"
        "host egress       80              1 Gbps\n"
        "host ingress      80              1 Gbps\n"
        "rack uplink        4  500 Mbps to 2 Gbps      10:1 to 40:1\n"
        "rack downlink      4  500 Mbps to 2 Gbps      10:1 to 40:1\n"
        "\n"
        "DEVICES  COUNT      READ     WRITE  CAPACITY\n"
        "hdd         80  120 MB/s  100 MB/s      4 TB\n"
    )


def test_cluster_show_prints_json_for_programs(run: Run, racks: str) -> None:
    document = json.loads(run("cluster", "show", racks, "-o", "json").stdout)
    assert (document["name"], document["hosts"], document["racks"], document["pods"]) == ("small", 80, 4, 0)
    assert document["links"][0]["least_bps"] == 1_000_000_000
    assert document["devices"] == [
        {
            "name": "hdd",
            "count": 80,
            "read_bps": 960_000_000,
            "write_bps": 800_000_000,
            "capacity_bytes": 4_000_000_000_000,
        }
    ]


def test_schema_describes_the_fields_of_a_cluster_file(run: Run) -> None:
    schema = json.loads(run("schema", "cluster").stdout)
    assert {"racks", "nic", "oversubscription"} <= schema["properties"].keys()


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["cluster", "show", "none.yaml"], "error: none.yaml: ", None),
        (
            ["cluster", "show", "bad.yaml"],
            "error: bad.yaml:3:6: nic: ",
            "leeward schema cluster lists every field of a cluster file",
        ),
        (
            ["simulate", "scenario.yaml"],
            "error: scenario.yaml:2:1: horizn: ",
            "leeward schema scenario lists every field of a scenario file",
        ),
        (
            ["simulate", "other.yaml"],
            "error: bad.yaml:3:6: nic: ",
            "leeward schema cluster lists every field of a cluster file",
        ),
        (
            ["simulate", "other.yaml", "--seeds", "2"],
            "error: bad.yaml:3:6: nic: ",
            "leeward schema cluster lists every field of a cluster file",
        ),
        (
            ["simulate", "scenario.yaml", "--backend", "best"],
            "error: Invalid value for '--backend': `best`: expected one of threading, loky, ray",
            "leeward simulate --help",
        ),
        (["cluster", "show"], "error: Missing argument 'FILE'.", "leeward cluster show --help"),
        (["cluster"], "error: Missing command.", "leeward cluster --help"),
        (["clutser"], "error: No such command 'clutser'.", "leeward --help"),
        (
            ["schema", "clutser"],
            "error: Invalid value: `clutser`: expected one of cluster",
            "leeward schema --help",
        ),
        (
            ["cluster", "show", "bad.yaml", "-o", "xml"],
            "error: Invalid value for '-o' / '--output': `xml`: expected one of table, json",
            "leeward cluster show --help",
        ),
    ],
)
def test_invalid_input_is_an_error_of_one_line_and_exits_with_2(
    run: Run, tmp_path: Path, arguments: list[str], error: str, hint: str | None
) -> None:
    (tmp_path / "bad.yaml").write_text("racks: 1\nhosts_per_rack: 1\nnic: 10\noversubscription: 1\n")
    (tmp_path / "scenario.yaml").write_text("cluster: bad.yaml\nhorizn: 1h\n")
    (tmp_path / "other.yaml").write_text("cluster: bad.yaml\nworkloads: [{facebook: {}}]\nhorizon: 1h\n")
    result = run(*arguments)
    lines = result.stderr.splitlines()
    assert (result.returncode, result.stdout) == (2, "")
    assert lines[0].startswith(error)
    assert lines[1:] == ([f"hint: {hint}"] if hint else [])


def test_a_closed_pipe_prints_no_error() -> None:
    command = Path(sys.executable).with_name("leeward")
    pipe = subprocess.Popen([command, "schema", "cluster"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert pipe.stdout is not None
    assert pipe.stderr is not None
    pipe.stdout.close()
    assert pipe.stderr.read() == b""
    assert pipe.wait() == 1
    pipe.stderr.close()


def test_an_interrupted_command_exits_with_130_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupt(file: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.cluster, "read", interrupt)
    monkeypatch.setattr(sys, "argv", ["leeward", "cluster", "show", "racks.yaml"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capfd.readouterr() == ("", "")


def test_help_needs_no_heavy_imports() -> None:
    script = (
        "import sys, leeward.cli; print(*{'pyarrow', 'matplotlib', 'numpy', 'rich.table'} & set(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout == "\n"


def test_the_library_does_not_import_the_command_line() -> None:
    package = Path(leeward.__file__).parent
    sources = [path for path in package.rglob("*.py") if package / "cli" not in path.parents]
    assert len(sources) > 30
    assert [path for path in sources if re.search(r"leeward\.cli\b", path.read_text())] == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("uniform, sinbad", ["uniform", "sinbad"]),
        ("rehdfs:offsets=[1,2],uniform", ["rehdfs:offsets=[1,2]", "uniform"]),
        ("{a: [1,2], b: 3},'x,y',\"z]\"", ["{a: [1,2], b: 3}", "'x,y'", '"z]"']),
        ("", [""]),
    ],
)
def test_a_list_is_split_at_commas_outside_brackets_and_quotes(text: str, parts: list[str]) -> None:
    assert split_list(text) == parts
