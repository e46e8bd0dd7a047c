"""Options of all commands: one name for one meaning, one way to give a list, one way to ask for a format."""

import csv
import io
import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from leeward import cli
from leeward.cli.common import LIST
from leeward.cli.csv_columns import COLUMNS

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples"
METAVARS = {
    *("FILE", "DIR", "N", "NAME", "TAG", "HOST", "URL", "HOST:PORT", "PORT", "DURATION", "TIME", "SHARE"),
    *("SIZE", "RATE", "RATIO", "POLICY", "METHOD", "PATTERN", "KEY", "ROLE", "STAGE", "FIELD"),
    *("ADDRESS", "NAME=PATH", "COMMAND"),
    *("NAME=ADDRESS", "CLASS=DSCP", "CLASS=FILE", "CLASS=N", "OPERATION=LINKS", "PATH=VALUES", "DISK[=NAME]"),
    *("NAME=N", "NAME=OPERATION"),
    "BYTES,FACTOR,FACTOR",
    "DATA+PARITY",
    *("MODE", "TEXT", "TYPE", "KEY=VALUE", "sflow:PORT", "SERVER:PATH"),
}
"""Metavars of options. A list adds `,...`; a choice has its values, separated by `|`."""
SEVERAL_KINDS = {
    "--again": "slo pack packs all volumes again, tenant run has an interval for looking again",
    "--out": "a file or a folder, by what the command writes",
    "--days": "circuits schedule writes a file of days, trial simulates a number of days",
    "--disk": "agent has the name of a disk, device profile its device or a file on it",
    "--by": "names of fields or a level of places: both group rows",
    "--closed": "slo check has a number for each workload, traces replay for its trace",
    "--job": "place tasks reads the file of an app, decisions has the name of a job",
    "--lab": "tenant run has the name of a lab, reproduce runs in one of its own",
    "--order": "slo check also has feedback (cake), which no enforcer has",
    "--output": "slo pack also writes YAML",
    "--outstanding-reads": "slo check also lifts the limit of a device file, which an enforcer keeps",
    "--outstanding-writes": "slo check also lifts the limit of a device file, which an enforcer keeps",
    "--over": "slo check has several stages, a storage enforcer is one",
    "--volume": "slo curve has the name of a volume in a trace, agent the folder of one",
}
"""Options whose metavar differs between commands, and the reason."""
ONE_MEANING = {
    "--addresses": "owners of addresses",
    "--behind": "most requests and bytes behind a higher priority",
    "--bottlenecks": "search for shared bottlenecks",
    "--bursts": "bursts of a train",
    "--ca": "certificate authorities of the controller",
    "--cadence": "time between samples",
    "--closed": "requests that stay open",
    "--cluster": "cluster file",
    "--coding": "erasure code",
    "--controller": "addresses of controllers",
    "--dry-run": "nothing changes",
    "--every": "time between repetitions",
    "--file-size": "size of a file",
    "--exclude": "places that get no work",
    "--for": "length of a measurement",
    "--hops": "count hops too",
    "--host": "names of hosts",
    "--hot": "utilization above which a link is hot",
    "--http": "settings of HTTP for Prometheus",
    "--interface": "interfaces of the host",
    "--interval": "length of an interval of measurement",
    "--jobs": "work at once",
    "--listen": "addresses to listen on",
    "--map": "file that finds links by labels",
    "--margin": "share added to the work of requests",
    "--method": "method of bounds",
    "--name": "name of the result",
    "--nfs": "export of a server",
    "--once": "hottest links, or an interval of a lab",
    "--only-tasks": "names of the tasks of a matrix, in order",
    "--order": "order of requests at a device",
    "--outstanding-read-bytes": "bytes of reads that a device has at once",
    "--outstanding-reads": "reads that a device has at once",
    "--outstanding-write-bytes": "bytes of writes that a device has at once",
    "--outstanding-writes": "writes that a device has at once",
    "--over": "treatment of requests over a limit",
    "--packets": "packets of a burst",
    "--percentile": "percentile to look at",
    "--picture": "file of a picture",
    "--policy": "policies",
    "--prometheus": "Prometheus server",
    "--rack-label": "label of nodes that names their rack",
    "--rack-link": "total rate of a rack's uplinks",
    "--rate": "rate of an interface or a path",
    "--report": "HTML page",
    "--secret": "file of the secret of measurements",
    "--seed": "seed of random numbers",
    "--shape": "shape of a measured network",
    "--size": "size of a block",
    "--since": "start of a range of time",
    "--seeds": "number of seeds",
    "--telemetry": "loads of links",
    "--times": "number of trains",
    "--token-file": "file of the client's token",
    "--until": "end of a range of time",
    "--tokens": "file of the service's tokens",
    "--top": "most rows of a table",
    "--workloads": "workloads with their priorities and limits",
    "--write-batch": "nearly sequential writes that a device takes as one",
    "--writer": "host that writes a block",
}
"""Meanings of options whose help texts differ between commands."""
TWO_MEANINGS = {
    "--explain": "hotspots explains words, place explains a decision",
    **dict.fromkeys(
        ("--again", "--by", "--days", "--disk", "--job", "--lab", "--out", "--volume"), "see SEVERAL_KINDS"
    ),
}
"""Options with two meanings, and the reason."""
WITHOUT_FORMAT = {
    "agent": "runs until it is stopped",
    "serve": "runs until it is stopped",
    "probe listen": "runs until it is stopped",
    "schema": "prints a JSON schema",
    "completion": "prints a script",
    "export prometheus-rules": "prints a file for Prometheus",
    "export grafana": "prints a file for Grafana",
    "export service-rules": "prints a file for Prometheus",
    "export service-grafana": "prints a file for Grafana",
    "cluster import": "prints a cluster file",
    "telemetry map": "prints a map file",
    "telemetry cache clear": "deletes files",
    "lab exec": "becomes another program",
    **dict.fromkeys(
        (f"kubernetes {name}" for name in ("top", "explain", "hotspots", "check")), "becomes another program"
    ),
    "tenant worker": "prints events, each a JSON object on a line",
    "token new": "prints a token",
    "data get": "fetches files",
    "data path": "prints a path",
}
"""Commands without --output, and the reason."""


def leaves(command: Any, *names: str) -> Iterator[tuple[str, Any]]:
    """Yields each command that is no group, with its name such as `place tasks`."""
    if not hasattr(command, "commands"):
        yield " ".join(names), command
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from leaves(child, *names, name)


LEAVES = dict(leaves(typer.main.get_command(cli.app)))


def options(command: Any) -> Iterator[Any]:
    """Yields the visible options of a command."""
    for one in command.params:
        if one.param_type_name == "option" and not one.hidden:
            yield one


def kind(option: Any) -> str:
    """Metavar of an option without the mark of a list; `switch` for a flag."""
    return "switch" if option.is_flag else option.metavar.removesuffix(LIST)


def without_option(flag: str) -> set[str]:
    """Names of the commands that do not have an option."""
    return {
        name
        for name, command in LEAVES.items()
        if not any(flag in option.opts for option in options(command))
    }


def test_an_option_has_one_kind_of_value_in_all_commands() -> None:
    kinds: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, command in LEAVES.items():
        for option in options(command):
            for flag in option.opts:
                kinds[flag][kind(option)].append(name)
    differing = {
        flag: dict(found) for flag, found in kinds.items() if len(found) > 1 and flag not in SEVERAL_KINDS
    }
    assert not {flag: found for flag, found in differing.items() if flag != "-o"}


def test_an_option_has_one_meaning_in_all_commands() -> None:
    texts: dict[str, set[str]] = defaultdict(set)
    for command in LEAVES.values():
        for option in options(command):
            texts[option.opts[-1]].add(option.help)
    differing = {flag for flag, found in texts.items() if len(found) > 1} - {"--output"}
    # A new option with a name in use needs another name, or has the meaning in the list.
    assert differing == {*ONE_MEANING, *TWO_MEANINGS}


def test_metavars_are_of_a_known_set() -> None:
    unknown = {
        (name, option.opts[0], option.metavar)
        for name, command in LEAVES.items()
        for option in options(command)
        if kind(option) not in {*METAVARS, "switch"} and "|" not in kind(option)
    }
    assert not unknown


def test_an_option_that_may_be_repeated_is_a_list() -> None:
    # The commas of these are part of one value.
    values_with_commas = {"COMMAND", "OPERATION=LINKS", "PATH=VALUES"}
    for name, command in LEAVES.items():
        for option in options(command):
            if option.metavar not in values_with_commas:
                is_list = bool(option.metavar) and option.metavar.endswith(LIST)
                assert is_list == option.multiple, (name, option.opts)


def test_every_command_prints_json_and_csv_or_has_a_reason_not_to() -> None:
    without = {
        name
        for name, command in LEAVES.items()
        if not any("-o" in option.opts for option in options(command))
    }
    assert without == {*WITHOUT_FORMAT}
    for name in LEAVES.keys() - without:
        (option,) = (one for one in options(LEAVES[name]) if "-o" in one.opts)
        assert option.metavar.startswith("table|json|csv"), name


def test_every_command_that_ends_can_be_quiet() -> None:
    loud = {
        name
        for name, command in LEAVES.items()
        if not any("-q" in option.opts for option in options(command))
    }
    assert loud == {"agent", "enforce net", "enforce nfs", "serve", "probe listen", "tenant worker", "top"}


def test_every_command_has_examples() -> None:
    for name, command in LEAVES.items():
        assert f"leeward {name}" in command.epilog, name


@pytest.mark.parametrize(
    "given",
    [["--exclude", "r1,r2"], ["--exclude", "r1", "--exclude", "r2"], ["--exclude", " r1 , r2"]],
    ids=" ".join,
)
def test_lists_take_commas_and_repeats(run: Run, given: list[str]) -> None:
    cluster = str(EXAMPLES / "clusters/four-racks.yaml")
    place = ("place", "replicas", "--cluster", cluster, "--size", "1MB", "--policy", "uniform", "-o", "json")
    racks = set()
    for seed in range(20):
        decision = json.loads(run(*place, *given, "--seed", str(seed)).stdout)
        racks |= {host.partition("h")[0] for host in decision["hosts"]}
    assert racks == {"r0", "r3"}


def test_a_text_list_takes_repeats(run: Run) -> None:
    scenario = str(EXAMPLES / "scenarios/first.yaml")
    runs = [
        run("simulate", scenario, *policies, "--set", "horizon=2min", "-o", "json").stdout
        for policies in (["--policy", "uniform,sinbad"], ["--policy", "uniform", "--policy", "sinbad"])
    ]
    assert runs[0] == runs[1]
    assert '"sinbad"' in runs[0]


def test_a_file_name_with_a_comma_stays_whole(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a,b.parquet").write_bytes((EXAMPLES / "telemetry/fabric.parquet").read_bytes())
    cluster = str(EXAMPLES / "clusters/fabric.yaml")
    result = run("hotspots", "--telemetry", "a,b.parquet", "--cluster", cluster, "-q")
    assert (result.returncode, result.stderr) == (0, "")


FABRIC = ("--cluster", str(EXAMPLES / "clusters/fabric.yaml"))
TELEMETRY = ("--telemetry", str(EXAMPLES / "telemetry/fabric.parquet"))
WORKLOADS = (str(EXAMPLES / "slo/w.yaml"), "--cluster", str(EXAMPLES / "slo/cluster.yaml"))
WITH_ROWS: list[tuple[tuple[str, ...], Callable[[Any], list[Any]]]] = [
    (("hotspots", *FABRIC, *TELEMETRY), lambda document: document["hot_places"]),
    (
        ("plan", *FABRIC, *TELEMETRY),
        lambda document: [link for rack in document["planned"] for link in rack["links"].values()],
    ),
    (("cluster", "show", FABRIC[1]), lambda document: document["links"]),
    (("policies",), lambda document: document),
    (("data", "list"), lambda document: document),
    (("kubernetes", "trial", str(EXAMPLES / "kubernetes/week")), lambda document: document["racks"]),
    (("slo", "bound", *WORKLOADS), lambda document: document["workloads"]),
    (("slo", "prioritize", *WORKLOADS), lambda document: document["workloads"]),
    (("circuits", "schedule", str(EXAMPLES / "circuits/demand.csv")), lambda document: document),
    (
        ("slo", "curve", str(EXAMPLES / "slo/mail.csv.gz")),
        lambda document: [bucket for curve in document["curves"] for bucket in curve["buckets"]],
    ),
    (
        ("slo", "model", str(EXAMPLES / "slo/mail.csv.gz")),
        lambda document: [state for model in document for state in model["states"]],
    ),
    (
        ("matrix", "capture", str(EXAMPLES / "captures/shuffle.pcap.gz"), "--interval", "1min"),
        lambda document: document["cells"],
    ),
]


@pytest.mark.parametrize(
    ("command", "rows"), WITH_ROWS, ids=[" ".join(command[:2]) for command, _rows in WITH_ROWS]
)
def test_csv_has_the_rows_of_json(
    run: Run, command: tuple[str, ...], rows: Callable[[Any], list[Any]]
) -> None:
    text = run(*command, "-o", "csv", "-q").stdout
    printed = list(csv.DictReader(io.StringIO(text)))
    expected = rows(json.loads(run(*command, "-o", "json", "-q").stdout))
    assert len(printed) == len(expected) > 0
    for cells, row in zip(printed, expected, strict=True):
        for name, value in row.items():
            # Columns have lists as JSON, and nested objects in several columns; some lists are left out.
            if isinstance(value, str):
                assert cells[name] == value
            elif isinstance(value, int | float) and not isinstance(value, bool):
                assert float(cells[name]) == value or name == "days"
            elif value is None:
                # A null object has empty cells for its fields.
                assert not any(
                    cells[column] for column in cells if column == name or column.startswith(f"{name}.")
                )
    assert "nan" not in text.lower()
    assert re.match(r"[a-z]", text)


CSV_WITHOUT_ROWS = [
    ("hotspots", *FABRIC, *TELEMETRY, "--hot", "100%"),
    ("plan", *FABRIC, *TELEMETRY, "--hot", "100%"),
    (
        *("migrate", "--cluster", str(EXAMPLES / "clusters/racks.yaml"), "--hot", "100%"),
        *("--telemetry", str(EXAMPLES / "telemetry/racks.csv")),
        *("--running", str(EXAMPLES / "apps/running.yaml")),
    ),
    # Without telemetry, sinbad refuses.
    ("place", "replicas", "--cluster", str(EXAMPLES / "clusters/reference.yaml"), "--size", "256MiB"),
]


@pytest.mark.parametrize("command", [row[0] for row in WITH_ROWS] + CSV_WITHOUT_ROWS, ids=" ".join)
def test_columns_of_csv_do_not_depend_on_the_data(run: Run, command: tuple[str, ...]) -> None:
    name = next(name for name in COLUMNS if command[: name.count(" ") + 1] == tuple(name.split()))
    lines = list(csv.reader(io.StringIO(run(*command, "-o", "csv").stdout)))
    assert lines[0] == [*COLUMNS[name]]
    assert {len(line) for line in lines} == {len(COLUMNS[name])}
    if command in CSV_WITHOUT_ROWS:
        assert len(lines) == 1


def test_every_command_with_csv_has_fixed_columns_or_builds_them() -> None:
    by_options = {"impact", "simulate"}
    assert {*COLUMNS} | by_options == LEAVES.keys() - WITHOUT_FORMAT.keys()
    for name, columns in COLUMNS.items():
        assert len(columns) == len({*columns}), name
        assert all(re.fullmatch(r"[a-z][a-z0-9_.]*", column) for column in columns), name


def test_csv_of_a_decision_has_no_control_characters(run: Run, tmp_path: Path) -> None:
    cluster = str(EXAMPLES / "clusters/reference.yaml")
    command = ("place", "replicas", "--cluster", cluster, "--size", "1GiB", "--policy", "uniform")
    decision = json.loads(run(*command, "--explain", "-o", "json").stdout)
    decision["why"] = [decision["why"][0] | {"candidate": "h\x1b[31m"}]
    (tmp_path / "decision.json").write_text(json.dumps(decision))
    header, row = csv.reader(io.StringIO(run("explain", "decision.json", "-o", "csv").stdout))
    cells = dict(zip(header, row, strict=True))
    assert {name: cell for name, cell in cells.items() if cell} == {
        "candidate": "h?[31m",
        "verdict": "chosen",
    }


def test_csv_keeps_notes_that_change_how_the_result_is_read(run: Run) -> None:
    command = ("plan", *FABRIC, *TELEMETRY, "-q")
    notes = run(*command, "-o", "csv").stderr
    assert "assumed from capacities" in notes
    assert run(*command).stderr == notes


def test_quiet_omits_notes_and_keeps_warnings(run: Run, tmp_path: Path) -> None:
    command = ("slo", "bound", *WORKLOADS)
    assert "margin" in run(*command).stderr
    assert run(*command, "-q").stderr == ""
    # A former flag is a warning.
    result = run("plan", *FABRIC, *TELEMETRY, "--threshold", "75%", "--quiet")
    assert result.stderr.startswith("warning: --threshold is now --hot")
    assert run(*command).stderr != "", "quiet does not outlast a command"
