"""Clusters, scenarios and runs as objects: equality, pickles, notebooks, and scenarios from data."""

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest

import leeward
from leeward import InputError, sweep
from leeward._display import Pictures

CLUSTER = {
    "name": "four",
    "racks": 4,
    "hosts_per_rack": 3,
    "nic": "1Gbps",
    "oversubscription": 2,
    "devices": [{"read": "50MB/s", "write": "50MB/s"}],
}
BLOCKS = {
    "t_arrival_s": [1.0, 2.0, 2.5, 4.0, 8.0, 9.0],
    "writer": ["r0h0", "r1h1", "r2h2", "r0h1", "r3h0", "r3h1"],
    "size_bytes": [2**26, 2**27, 2**26, 2**28, 2**26, 2**20],
}
SCENARIO: dict[str, Any] = {
    "name": "listed",
    "cluster": CLUSTER,
    "workloads": [{"blocks": {"file": pyarrow.table(BLOCKS), "block": "64MiB"}}],
    "horizon": "1min",
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The scenario as files."""
    (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
    rows = zip(*BLOCKS.values(), strict=True)
    lines = [",".join(BLOCKS), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "blocks.csv").write_text("\n".join(lines) + "\n")
    text = SCENARIO | {
        "cluster": "cluster.json",
        "workloads": [{"blocks": {"file": "blocks.csv", "block": "64MiB"}}],
    }
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(text))
    return path


def test_clusters_with_the_same_network_are_equal() -> None:
    cluster = leeward.Cluster(CLUSTER)
    text = "\n".join(f"{key}: {json.dumps(value)}" for key, value in CLUSTER.items())
    same = leeward.Cluster(text)
    assert cluster.text != same.text
    assert (cluster == same, hash(cluster) == hash(same)) == (True, True)
    assert cluster != leeward.Cluster(CLUSTER | {"nic": "2Gbps"})
    other: object = CLUSTER
    assert cluster != other
    assert len({cluster, same}) == 1


@pytest.mark.parametrize("copied", [lambda one: pickle.loads(pickle.dumps(one)), copy.copy, copy.deepcopy])
def test_objects_survive_pickles_and_copies(copied: Any, files: Path, monkeypatch: Any) -> None:
    scenario = leeward.read_scenario(files)
    runs = leeward.simulate(scenario, ["uniform", "sinbad"])
    for one in (scenario.cluster, scenario, leeward.read_scenario(SCENARIO), *runs):
        again = copied(one)
        assert (again == one, hash(again) == hash(one), repr(again) == repr(one)) == (True, True, True)
    monkeypatch.chdir("/")
    run = copied(runs[1])
    assert run.summary() == runs[1].summary()
    assert run.blocks() == runs[1].blocks()
    assert run.compare(runs[0]) == runs[1].compare(runs[0])
    assert leeward.simulate(run.scenario, "sinbad")[0] == runs[1]


def test_runs_are_equal_if_all_their_records_are(files: Path) -> None:
    first, again = (leeward.simulate(files, ["uniform", "sinbad"]) for _ in range(2))
    assert first == again
    assert first[0] != first[1]
    other = leeward.simulate(files, "uniform", seeds=[2])[0]
    assert first[0] != other
    assert first[0].scenario == other.scenario


def test_a_damaged_pickle_of_a_run_is_an_error(files: Path) -> None:
    (run,) = leeward.simulate(files, "uniform")
    reduced: Any = run.__reduce__()
    function, (scenario, *others, record) = reduced
    damaged = record[:-9] + bytes([record[-9] ^ 1]) + record[-8:]
    with pytest.raises(ValueError, match="not a run of this version"):
        function(scenario, *others, damaged)
    with pytest.raises(ValueError, match="not a run of this version"):
        function(scenario, *others, b"")


def test_a_scenario_of_tables_is_that_of_files(files: Path) -> None:
    expected = leeward.simulate(files, ["uniform", "sinbad"])
    runs = leeward.simulate(SCENARIO, ["uniform", "sinbad"])
    for run, other in zip(runs, expected, strict=True):
        assert run.blocks() == other.blocks()
        assert run.summary() == other.summary()
    on_cluster = SCENARIO | {"cluster": leeward.Cluster(CLUSTER)}
    assert leeward.simulate(on_cluster, "uniform")[0].blocks() == expected[0].blocks()
    on_path = SCENARIO | {"cluster": str(files.with_name("cluster.json"))}
    assert leeward.simulate(on_path, "uniform")[0].blocks() == expected[0].blocks()


def test_a_square_array_is_a_matrix() -> None:
    square = numpy.zeros((4, 4))
    square[0, 2], square[3, 1] = 3.0, 1.0
    scenario = leeward.read_scenario(
        {
            "cluster": CLUSTER,
            "workloads": [{"matrix": {"file": square, "numbers": "racks", "rate": "1Gbps", "order": "file"}}],
            "horizon": "1min",
            "policies": ["uniform"],
        }
    )
    (run,) = leeward.simulate(scenario)
    loads = {row["link"]: row["load_bps"] for row in run.links().to_pylist()}
    assert loads["r2:downlink"] == pytest.approx(0.75e9)
    assert loads["r3:uplink"] == pytest.approx(0.25e9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 5}, "scenario: horizon"),
        ({"cluster": "nowhere.yaml"}, "scenario: cluster: no such file"),
        ({"cluster": CLUSTER | {"nic": "fast"}}, "<mapping>: nic"),
        ({"workloads": [{"blocks": {"file": [7]}}]}, "scenario: workloads"),
        ({"seed": float("nan")}, "<mapping>: "),
        ({"name": object()}, "<mapping>: "),
    ],
)
def test_errors_of_a_mapping_name_the_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        leeward.read_scenario(SCENARIO | change)
    assert str(caught.value).startswith(message), str(caught.value)
    assert caught.value.line is None


def test_errors_of_a_table_name_its_row() -> None:
    table = pyarrow.table(BLOCKS | {"size_bytes": [1, 2, 3, -4, 5, 6]})
    scenario = SCENARIO | {"workloads": [{"blocks": {"file": table}}]}
    with pytest.raises(InputError, match=r"table:0:5: size_bytes: `-4`: must not be negative"):
        leeward.simulate(scenario, "uniform")
    without = SCENARIO | {"workloads": [{"blocks": {"file": table.drop_columns(["writer"])}}]}
    with pytest.raises(InputError, match=r"table:0:1: writer: no such column"):
        leeward.simulate(without, "uniform")


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_sweep_takes_a_scenario_of_tables(backend: str, files: Path, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"seeds": [1, 2], "settings": {"telemetry.delay": ["0s", "1s"]}, "jobs": 2}
    expected = sweep.run(files, ["uniform", "sinbad"], **arguments)
    out = tmp_path / "out"
    cells = sweep.run(SCENARIO, ["uniform", "sinbad"], **arguments, backend=backend, out=out)
    figures = "full_block_write_s.mean"
    assert cells[figures] == expected[figures]
    again = leeward.read_scenario(SCENARIO)
    assert sweep.run(again, ["uniform", "sinbad"], **arguments, out=out) == cells
    changed = SCENARIO | {"workloads": [{"blocks": {"file": pyarrow.table(BLOCKS).slice(0, 3)}}]}
    assert sweep.run(changed, ["uniform", "sinbad"], **arguments, out=out)[figures] != cells[figures]


def test_notebooks_show_objects(files: Path) -> None:
    scenario = leeward.read_scenario(files)
    uniform, sinbad = leeward.simulate(scenario, ["uniform", "sinbad"])
    assert repr(scenario) == "<Scenario listed: 1min of replicas on four>"
    assert re.fullmatch(r"<Run of listed under sinbad, seed 1: \d+ blocks>", repr(sinbad))
    shown: list[tuple[Any, str]] = [
        (scenario.cluster, "12 hosts"),
        (scenario, "sinbad"),
        (sinbad, "full block"),
    ]
    for one, words in shown:
        html = one._repr_html_()
        assert words in html
        assert "<script" not in html
    alone, beside = sinbad.plot(), sinbad.plot(uniform)
    assert isinstance(beside, Pictures)
    assert len(beside) == len(alone) + 1
    assert all(svg.startswith("<svg") for _, svg, _ in beside)
    assert beside._repr_html_().count("<figure>") == len(beside)
    with pytest.raises(InputError, match="baseline: `sinbad`"):
        sinbad.plot(sinbad)
    (other,) = leeward.simulate(scenario, "uniform", seeds=[2])
    with pytest.raises(InputError, match="baseline"):
        sinbad.plot(other)


def test_pictures_are_saved(files: Path, tmp_path: Path) -> None:
    (run,) = leeward.simulate(files, "uniform")
    paths = run.plot().save(tmp_path / "pictures")
    assert [path.name for path in paths] == [f"{number + 1}.svg" for number in range(len(paths))]
    assert all(path.read_text().startswith("<svg") for path in paths)
