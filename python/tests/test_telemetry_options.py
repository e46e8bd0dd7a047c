"""`leeward hotspots`, `impact` and `plan` share their options of telemetry, and write results alike."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer

from leeward.cli import app
from leeward.cli.telemetry_options import Telemetry

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples"
COMMANDS = ("hotspots", "impact", "plan")
RACKS = ("--cluster", str(EXAMPLES / "clusters" / "racks.yaml"))
LINKS = ("--telemetry", str(EXAMPLES / "telemetry" / "links.parquet"))
LATENCY = ("--latency", str(EXAMPLES / "telemetry" / "latencies.csv.gz"))


def required_arguments(command: str) -> tuple[str, ...]:
    """The command with its required options except telemetry."""
    return (command, *RACKS, *(LATENCY if command == "impact" else ()))


def options(command: str) -> dict[str, Any]:
    """A command's telemetry options, by name."""
    names = [field.name for field in fields(Telemetry)]
    group: Any = typer.main.get_command(app)
    actual = {one.name: one for one in group.commands[command].params if one.name in names}
    assert list(actual) == names
    return actual


@pytest.mark.parametrize("command", COMMANDS[1:])
def test_commands_have_the_same_telemetry_options_and_help(command: str) -> None:
    for name, one in options(command).items():
        other = options(COMMANDS[0])[name]
        assert (one.opts, one.help, one.metavar, one.required) == (
            other.opts,
            other.help,
            other.metavar,
            other.required,
        )
        assert one.default == other.default or name == "interval"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("invalid", "error"),
    [
        (("--cadence", "61min"), "--cadence: `61min`: expected from 1ms to 1h"),
        (("--coverage", "half"), "--coverage: `half`: expected a percentage"),
        (("--interval", "2d"), "--interval: `172800000 ms`: expected from 1 s to 1 d"),
        (("--since", "1h", "--until", "never"), "--until: `never`: expected a length"),
        (("--prometheus", "http://127.0.0.1:1"), "--telemetry: expected either files or a Prometheus server"),
        (("--map", "none.yaml"), "none.yaml: no such file"),
        (("--http", "http.yaml"), "--http: only valid with a Prometheus server"),
        (("--cache", "answers"), "--cache: only valid with a Prometheus server"),
        (LINKS, f"--telemetry: `{LINKS[1]}`: given twice; expected each file once"),
    ],
)
def test_invalid_options_give_the_same_error_in_every_command(
    run: Run, command: str, invalid: tuple[str, ...], error: str
) -> None:
    result = run(*required_arguments(command), *LINKS, *invalid)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {error}")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_map_without_prometheus_queries_is_rejected_by_option(
    run: Run, tmp_path: Path, command: str
) -> None:
    (tmp_path / "map.yaml").write_text("links:\n  - match: {device: s1}\n    in: r0:downlink\n")
    result = run(*required_arguments(command), "--prometheus", "http://127.0.0.1:1", "--map", "map.yaml")
    assert result.stderr.startswith("error: --map: it does not name the counters to query from Prometheus")


@pytest.mark.parametrize("command", COMMANDS)
def test_missing_telemetry_and_cluster_options_are_named(run: Run, command: str) -> None:
    result = run(*required_arguments(command))
    assert result.stderr.startswith("error: --telemetry: expected either files or a Prometheus server")
    assert run(command, *LATENCY[: 2 * (command == "impact")], *LINKS).stderr.startswith(
        "error: Missing option '--cluster'"
    )


def test_a_folder_is_replaced_only_by_a_result_of_the_same_analysis(run: Run, tmp_path: Path) -> None:
    plan = (
        *required_arguments("plan"),
        "--telemetry",
        str(EXAMPLES / "telemetry" / "day.parquet"),
        "--cadence",
        "5min",
    )
    for _ in range(2):
        assert run(*plan, "--out", "out").stderr.endswith("wrote out/summary.json and 3 tables\n")
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["analysis"] == "plan"
    (tmp_path / "out" / "mine.parquet").write_bytes(b"")
    assert "holds `mine.parquet`; expected an empty folder" in run(*plan, "--out", "out").stderr
    (tmp_path / "out" / "mine.parquet").unlink()
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for command in ("hotspots", "impact"):
        result = run(*required_arguments(command), *LINKS, "--out", "out")
        expected = f"expected an empty folder or an earlier result of {command}"
        assert result.stderr == f"error: --out: `out`: holds a result of plan; {expected}\n"
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_hotspots_accepts_files_as_positional_arguments(run: Run) -> None:
    named = run(*required_arguments("hotspots"), *LINKS, "-o", "json")
    assert named.returncode == 0, named.stderr
    assert run(*required_arguments("hotspots"), LINKS[1], "-o", "json").stdout == named.stdout
