"""The reference lists the public names of the package with their signatures, and its examples load."""

import importlib
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import leeward
from leeward import cells, circuits, operations, packets, slo
from leeward.traces import open_trace

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGE = (REFERENCE / "python.md").read_text()
SECTIONS = dict(re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
HIDDEN = ("self", "sleep", "clock", "new_key")
"""Parameters that tests of the client replace."""


def signature(function: Callable[..., object]) -> str:
    """A signature without annotations and without hidden parameters."""
    parameters = inspect.signature(function).parameters.values()
    kept = [
        each.replace(annotation=inspect.Parameter.empty) for each in parameters if each.name not in HIDDEN
    ]
    return str(inspect.Signature(kept))


@pytest.mark.parametrize("name", leeward.__all__)
def test_every_public_name_has_a_section(name: str) -> None:
    assert name in SECTIONS


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in leeward.__all__ if inspect.isfunction(getattr(leeward, name))),
        *("Client", "Session"),
    ],
)
def test_a_section_shows_the_signature(name: str) -> None:
    value = getattr(leeward, name)
    function = value.__init__ if inspect.isclass(value) else value
    shown = re.search(r"```text\n(.*?)```", SECTIONS[name], re.S)
    assert shown is not None
    assert " ".join(shown[1].split()) == name + signature(function)


@pytest.mark.parametrize("name", ["Cluster", "Scenario", "Run", "Session", "Client"])
def test_a_section_names_every_public_member(name: str) -> None:
    members = {member for member in dir(getattr(leeward, name)) if not member.startswith("_")}
    if name in ("Cluster", "Scenario"):
        members -= {"run"}  # `simulate` calls it.
    missing = {member for member in members if not re.search(rf"[`.]{member}[`(]", SECTIONS[name])}
    assert not missing


def test_the_table_of_modules_lists_functions_that_exist() -> None:
    rows = re.findall(r"^\| `(leeward\.\w+)` \| ([^:|]+)[:|]", PAGE, re.M)
    assert len(rows) > 5
    for module, functions in rows:
        public = importlib.import_module(module).__all__
        assert set(re.findall(r"`(\w+)`", functions)) <= set(public), module


CLUSTER = {
    "racks": 8,
    "hosts_per_rack": 4,
    "nic": "10Gbps",
    "oversubscription": 4,
    "devices": [{"read": "100MB/s", "write": "100MB/s"}],
}


def block(page: str, language: str, containing: str = "") -> str:
    """The first fenced block of a page in a language that contains a text."""
    text = (REFERENCE / page).read_text()
    blocks: list[str] = re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)
    return next(one for one in blocks if containing in one)


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_example_of_clusters_loads() -> None:
    assert leeward.Cluster(block("cluster-file.md", "yaml")).racks == 150


def test_the_examples_of_apps_and_running_tasks_load(tmp_path: Path) -> None:
    app = written(tmp_path, "app.yaml", block("app-file.md", "yaml"))
    placed = leeward.place_tasks(CLUSTER, app, policy="choreo:flows_only=true")
    assert [task["task"] for task in placed["tasks"]] == ["map0", "map1", "reduce"]
    running = written(tmp_path, "running.yaml", block("app-file.md", "yaml", "budget"))
    loads = written(tmp_path, "loads.csv", "link,load_bps\nr0:uplink,1e9\n")
    assert leeward.migrate(CLUSTER, running, loads)["moves"] == []


def test_the_example_of_scenarios_loads(tmp_path: Path) -> None:
    written(tmp_path, "cluster.yaml", json.dumps(CLUSTER))
    scenario = leeward.Scenario.from_text(block("scenario-file.md", "yaml"), tmp_path)
    assert scenario.policies == ["uniform", "sinbad", "sinbad:remote_racks=2"]


def test_the_examples_of_packet_scenarios_load(tmp_path: Path) -> None:
    for containing in ("long", "rotorlb", "trains"):
        packets.read(written(tmp_path, "a.yaml", block("packets-file.md", "yaml", containing)))


def test_the_example_of_operations_loads(tmp_path: Path) -> None:
    assert operations.read(written(tmp_path, "a.yaml", block("operations-file.md", "yaml"))).horizon_s == 10.0


def test_the_example_of_cells_loads(tmp_path: Path) -> None:
    assert cells.read(written(tmp_path, "a.yaml", block("cells-file.md", "yaml"))).hosts == 4 * 8 * 4


def test_the_example_of_telemetry_decides(tmp_path: Path) -> None:
    loads = written(tmp_path, "loads.csv", block("telemetry-file.md", "text", "ingress"))
    assert leeward.place_replicas(CLUSTER, "1GiB", telemetry=loads, policy="sinbad", replicas=2)["hosts"]


def test_the_examples_of_demands_and_days_load(tmp_path: Path) -> None:
    assert circuits.read(written(tmp_path, "a.csv", block("demand-file.md", "text"))).sum() == 27_300_000
    assert len(circuits.read_days(written(tmp_path, "a.yaml", block("demand-file.md", "yaml")))) == 2


@pytest.mark.parametrize("language", ["json", "yaml"])
def test_the_examples_of_devices_and_traces_load(tmp_path: Path, language: str) -> None:
    trace = written(tmp_path, "a.csv", block("trace-files.md", "text"))
    device = written(tmp_path, f"a.{language}", block("device-file.md", language))
    assert open_trace(trace, device=device).curve("storage")["buckets"]


def test_the_example_of_slo_files_loads(tmp_path: Path) -> None:
    examples = REFERENCE.parents[1] / "examples" / "slo"
    for name in ("mail.csv.gz", "ssd.json"):
        (tmp_path / name).symlink_to(examples / name)
    file = written(tmp_path, "a.yaml", block("slo-file.md", "yaml"))
    assert slo.load(file, examples / "cluster.yaml").bound("dnc")["workloads"]
