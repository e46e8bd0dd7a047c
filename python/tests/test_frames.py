"""Inputs and results as frames of pandas and Polars, and graphs of networkx."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import networkx
import numpy
import pandas
import polars
import pyarrow
import pytest
from pyarrow import parquet

import leeward
from leeward import InputError
from leeward._inputs import app_document, operations_text
from leeward.hotspots import analyze
from leeward.importers import read_graph
from leeward.telemetry import read

EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER: dict[str, Any] = {"racks": 4, "hosts_per_rack": 3, "nic": "1Gbps", "oversubscription": 3}
Frame = Callable[[dict[str, Any]], Any]
FRAMES = pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
WRITES: dict[str, list[Any]] = {
    "t_arrival_s": [0.0, 0.5, 1.5],
    "writer": ["r0h0", "r1h2", "r3h1"],
    "size_bytes": [2**28, 2**27, 2**26],
}


def simulated(**workload: Any) -> leeward.Run:
    scenario = {"cluster": CLUSTER, "workloads": [workload], "horizon": "1min"}
    (run,) = leeward.simulate(scenario, "uniform")
    return run


@FRAMES
def test_a_frame_of_writes_is_a_list_of_blocks(frame: Frame) -> None:
    run = simulated(blocks={"file": frame(WRITES)})
    assert run.files()["writer"].to_pylist() == WRITES["writer"]
    assert run.files()["bytes"].to_pylist() == WRITES["size_bytes"]


@FRAMES
def test_a_frame_of_loads_decides(frame: Frame) -> None:
    racks = {f"r{rack}:downlink": 1e8 if rack == 2 else 9e8 for rack in range(4)}
    loads = racks | {f"r{rack}h{host}:ingress": 0.0 for rack in range(4) for host in range(3)}
    rows = {"link": [*loads], "load_bps": [*loads.values()]}
    decision = leeward.place_replicas(CLUSTER, 2**28, telemetry=frame(rows), writer="r0h0")
    assert [host[:2] for host in decision["hosts"] or []] == ["r0", "r2", "r2"]


@FRAMES
def test_a_frame_of_hosts_is_a_cluster(frame: Frame) -> None:
    hosts = {"host": ["a", "b", "c", "d"], "rack": ["x", "x", "y", "y"], "cpus": [4, 4, 8, 8]}
    cluster = leeward.Cluster({"hosts": frame(hosts), "nic": "1Gbps", "oversubscription": 2})
    assert cluster.host_names() == hosts["host"]
    assert cluster.host_table()["rack"].to_pylist() == hosts["rack"]


@FRAMES
def test_a_frame_of_flows_is_simulated(frame: Frame) -> None:
    flows = {
        "t_arrival_s": [0.0, 0.5],
        "src": ["r0h0", "r0h1"],
        "dst": ["r1h0", "r1h1"],
        "size_bytes": [125e6] * 2,
    }
    assert leeward.fluid.simulate_flows(CLUSTER, frame(flows))["t_finish_s"].to_pylist() == [1.5, 2.0]


@FRAMES
def test_a_frame_of_telemetry_is_analysed(frame: Frame) -> None:
    cluster = leeward.Cluster(CLUSTER)
    links = cluster.links()["name"].to_pylist()
    start = 1_767_225_600_000
    rows = {
        "t_ms": [start + 60_000 * minute for minute in range(1, 11) for _ in links],
        "link": links * 10,
        "load_bps": [9.9e8 if link == "r0:uplink" else 1e7 for link in links] * 10,
    }
    analysis = analyze(read(cluster, frame(rows)))
    assert {row["link"] for row in analysis.hot_places.to_pylist()} == {"r0:uplink"}


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
def test_tasks_of_an_app_may_be_a_frame(frame: Frame) -> None:
    app = {
        "tasks": frame({"name": ["a", "b"], "cpus": [1, 2]}),
        "transfers": frame({"from": ["a"], "to": ["b"], "bytes": [10**9]}),
    }
    decision = leeward.place_tasks(CLUSTER | {"cpus": 4}, app, policy="choreo")
    assert [task["task"] for task in decision["tasks"]] == ["a", "b"]
    text, _ = operations_text(
        {"jobs": frame({"name": ["reads"], "rate": [5.0]}), "buffer": numpy.int64(2_000_000)}
    )
    assert text == '{"jobs": [{"name": "reads", "rate": 5.0}], "buffer": "2000000B"}'


def test_results_are_frames_without_a_conversion_of_ours() -> None:
    run = simulated(blocks={"file": polars.DataFrame(WRITES)})
    frame = polars.from_arrow(run.blocks())
    assert isinstance(frame, polars.DataFrame)
    assert len(frame) == len(run.blocks().to_pandas()) == len(run.blocks())
    assert frame["placed_s"].to_list() == run.blocks()["placed_s"].to_pylist()


@pytest.mark.parametrize(
    "sizes",
    [
        numpy.array(WRITES["size_bytes"], dtype=numpy.float32),
        numpy.array(WRITES["size_bytes"], dtype=numpy.uint32),
        pyarrow.array([Decimal(size) for size in WRITES["size_bytes"]], pyarrow.decimal128(20, 2)),
    ],
    ids=["float32", "uint32", "decimal"],
)
def test_numbers_of_any_width_are_read_exactly(sizes: Any, tmp_path: Path) -> None:
    table = pyarrow.table(WRITES | {"size_bytes": sizes})
    expected = simulated(blocks={"file": pyarrow.table(WRITES)})
    assert simulated(blocks={"file": table}).files() == expected.files()
    parquet.write_table(table, tmp_path / "writes.parquet")
    assert simulated(blocks={"file": str(tmp_path / "writes.parquet")}).files() == expected.files()


def test_times_in_a_column_of_numbers_are_an_error_that_names_it(tmp_path: Path) -> None:
    table = pyarrow.table(WRITES | {"t_arrival_s": [datetime(2026, 1, 1)] * 3})
    parquet.write_table(table, tmp_path / "writes.parquet")
    for file in (table, str(tmp_path / "writes.parquet")):
        with pytest.raises(InputError, match=r"column `t_arrival_s`: timestamp\[us\]: expected numbers"):
            simulated(blocks={"file": file})


def test_sizes_of_blocks_reads_and_devices_may_be_numbers() -> None:
    devices = [{"read": "100MB/s", "write": "100MB/s", "capacity": 10**12}]
    cluster = leeward.Cluster(CLUSTER | {"devices": devices})
    assert cluster == leeward.Cluster(CLUSTER | {"devices": [devices[0] | {"capacity": "1TB"}]})
    numbers = simulated(blocks={"file": pyarrow.table(WRITES), "block": 2**26})
    assert numbers.blocks() == simulated(blocks={"file": pyarrow.table(WRITES), "block": "64MiB"}).blocks()


def test_a_graph_of_networkx_is_a_cluster_with_speeds_from_arguments() -> None:
    graph = networkx.Graph()
    for rack in range(2):
        graph.add_edge("core", f"leaf{rack}")
        for host in range(3):
            graph.add_edge(f"leaf{rack}", f"n{rack}{host}")
        graph.nodes[f"n{rack}0"].update(cpus=8, memory=2**30)
    cluster = read_graph(graph).cluster("drawn", nic="10Gbps", oversubscription="3")
    assert (cluster.name, cluster.hosts, cluster.racks) == ("drawn", 6, 2)
    assert cluster.path("n00", "n10")[1] == ("leaf0:uplink", 8.0)
    with pytest.raises(InputError, match="nic: the speed of interfaces of hosts is not known"):
        read_graph(graph).cluster()


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (networkx.Graph([(1, 2)]), "app: expected a directed graph"),
        (
            networkx.DiGraph([(1, 2, {"bytes": 5}), ("1", 3, {"bytes": 5})]),
            "app: `1`: two nodes have this name",
        ),
        (
            networkx.MultiDiGraph([(1, 2, {"bytes": 5}), (1, 2, {"bytes": 6})]),
            "app: two edges from 1 to 2: expected one",
        ),
        (networkx.DiGraph([(1, 2)]), "app: the edge from 1 to 2 has no attribute `bytes`"),
    ],
)
def test_a_graph_that_is_no_app_is_an_error(graph: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        app_document(graph)
    assert str(caught.value).startswith(message)


def test_a_directed_graph_is_an_app() -> None:
    graph = networkx.DiGraph([("a", "b", {"bytes": 10**6}), ("b", "c", {"bytes": 10**7})])
    graph.nodes["a"].update(cpus=2, label="the first")
    decision = leeward.place_tasks(CLUSTER | {"cpus": 4}, graph, policy="choreo")
    assert [task["task"] for task in decision["tasks"]] == ["a", "b", "c"]
