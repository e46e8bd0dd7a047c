"""`simulate_flows`: closed forms, reference results, valid and invalid tables, interrupts."""

import math
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import leeward
from leeward.fluid import simulate_flows

# 1 MB takes 8 ms on a host's link and 16 ms on its disk.
CLUSTER = leeward.Cluster(
    {
        "racks": 3,
        "hosts_per_rack": 4,
        "nic": "1Gbps",
        "oversubscription": 4,
        "devices": [{"read": "125MB/s", "write": "62.5MB/s"}],
    }
)
MB = 1e6


def flows(**columns: Any) -> pa.Table:
    """A table of flows. By default, each arrives at 0 and has 1 MB from r0h0 to r0h1."""
    count = len(next(iter(columns.values())))
    defaults: dict[str, Any] = {"t_arrival_s": [0.0] * count, "size_bytes": [MB] * count}
    if "resources" not in columns:
        defaults |= {"src": ["r0h0"] * count, "dst": ["r0h1"] * count}
    return pa.table(defaults | columns)


def fct_ms(table: pa.Table) -> list[float]:
    result = simulate_flows(CLUSTER, table)
    assert result.schema == pa.schema([("t_finish_s", pa.float64()), ("fct_s", pa.float64())])
    return [1e3 * fct for fct in result["fct_s"].to_pylist()]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"src": ["r0h0"]}, [8]),
        ({"size_bytes": [0]}, [0]),
        ({"dst": ["r0h0"]}, [0]),
        ({"src": [0], "dst": [11]}, [8]),
        ({"dst": ["r0h1", "r0h2"]}, [16, 16]),
        ({"t_arrival_s": [0.004, 0.0]}, [12, 12]),
        ({"t_arrival_s": [1.7e9]}, [8]),
        ({"size_bytes": [MB, 2 * MB]}, [16, 24]),
        ({"src": ["r0h0", "r0h2"], "dst": ["r1h0", "r1h1"]}, [16, 16]),
        ({"src": ["r0", "r0"], "dst": ["r1", "r2"]}, [16, 16]),
        ({"weight": [3.0, 1.0]}, [32 / 3, 16]),
        ({"cap_bps": [1e8, None]}, [80, 80 / 9]),
        ({"dst": ["r0h0"], "cap_bps": [1e8]}, [80]),
        ({"resources": [["r0h0:egress", "r0h0:disk0"]]}, [16]),
        ({"resources": [["r0h0:disk0:read"], ["r0h0:disk0:write"]]}, [24, 24]),
        ({"resources": [["r0h0:egress", "r0h0:egress"]]}, [16]),
        ({"resources": [[0], []]}, [8, 0]),
        ({"resources": [["r0h0:egress"]], "work": [[24.0]]}, [24]),
    ],
)
def test_completion_times_of_flows_match_arithmetic(columns: dict[str, Any], expected: list[float]) -> None:
    assert fct_ms(flows(**columns)) == pytest.approx(expected, rel=1e-12, abs=1e-6)


def test_the_finish_time_is_arrival_plus_duration() -> None:
    table = simulate_flows(CLUSTER, flows(t_arrival_s=[3.0, 1.0]))
    assert table["t_finish_s"].to_pylist() == pytest.approx([3.008, 1.008], rel=1e-12)


def test_an_empty_table_of_flows_gives_an_empty_result() -> None:
    assert simulate_flows(CLUSTER, flows(src=[]).cast(flows(src=["r0h0"]).schema)).num_rows == 0


# ---- reference results -------------------------------------------------------------------------------


def read_csv(path: Path) -> pa.Table:
    return pyarrow.csv.read_csv(path)


def assert_golden(result: pa.Table, expected: pa.Table) -> None:
    differences = [
        abs(fct - golden) / (2e-9 + 1e-9 * fct)
        for fct, golden in zip(result["fct_s"].to_pylist(), expected["fct_s"].to_pylist(), strict=True)
    ]
    assert max(differences) <= 1


@pytest.mark.parametrize("case", ["S_ws", "S_blk"])
def test_flows_between_hosts_finish_as_in_the_reference(golden: Path, case: str) -> None:
    cluster = {"racks": 20, "hosts_per_rack": 20, "nic": "125MB/s", "rack_link": "250MB/s"}
    arrivals = read_csv(golden / "fluid" / f"{case}.arrivals.csv.gz")
    assert_golden(simulate_flows(cluster, arrivals), read_csv(golden / "fluid" / f"{case}.fct.csv.gz"))


def test_chain_replicated_writes_finish_as_in_the_reference(golden: Path) -> None:
    cluster = leeward.Cluster(
        {
            "racks": 150,
            "hosts_per_rack": 20,
            "nic": "125MB/s",
            "rack_link": "250MB/s",
            "devices": [{"read": "50MB/s", "write": "50MB/s"}],
        }
    )
    host = cluster.host_names()

    def resources(flow: dict[str, Any]) -> list[str]:
        source, first = host[flow["src"]], host[flow["d1"]]
        if flow["kind"] == "bg":
            return [resource for resource, _ in cluster.path(source, first)]
        second = host[flow["d2"]]
        return [resource for resource, _ in cluster.path(source, f"{first}:disk0", f"{second}:disk0")]

    arrivals = read_csv(golden / "fluid" / "D_chain.arrivals.csv.gz")
    paths = pa.array([resources(flow) for flow in arrivals.to_pylist()])
    result = simulate_flows(cluster, arrivals.append_column("resources", paths))
    assert_golden(result, read_csv(golden / "fluid" / "D_chain.fct.csv.gz"))


# ---- valid tables ------------------------------------------------------------------------------------

STRINGS: list[pa.DataType] = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.uint32(), pa.large_string()),
]
INTEGERS: list[pa.DataType] = [
    getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)
]


@pytest.mark.parametrize("kind", STRINGS, ids=str)
def test_hosts_and_resources_accept_names_of_every_string_type(kind: pa.DataType) -> None:
    assert fct_ms(flows(dst=pa.array(["r0h1", "r0h2"]).cast(kind))) == pytest.approx([16, 16])
    if not pa.types.is_dictionary(kind):
        names = pa.array([["r0h0:egress"], ["r0h0:egress", "r0h1:ingress"]], pa.list_(kind))
        assert fct_ms(flows(resources=names)) == pytest.approx([16, 16])


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_hosts_and_resources_accept_numbers_of_every_integer_type(kind: pa.DataType) -> None:
    assert fct_ms(flows(src=pa.array([0, 0], kind), dst=pa.array([1, 2], kind))) == pytest.approx([16, 16])
    for lists in (pa.list_(kind), pa.large_list(kind), pa.list_(kind, 2)):
        resources = pa.array([[7, 7], [0, 3], [0, 5]], lists)[1:]
        assert fct_ms(flows(resources=resources)) == pytest.approx([16, 16])


@pytest.mark.parametrize("kind", [*INTEGERS, pa.float32(), pa.float64()], ids=str)
def test_times_and_sizes_accept_every_numeric_type(kind: pa.DataType) -> None:
    table = flows(t_arrival_s=pa.array([2, 1], kind), size_bytes=pa.array([125, 125], kind))
    assert fct_ms(table) == pytest.approx([1e-3, 1e-3])


class OneBatch:
    """A table with only the method that Arrow requires."""

    def __init__(self, table: pa.Table) -> None:
        self.batch = table.combine_chunks().to_batches()[0]

    def __arrow_c_array__(self, requested_schema: object | None = None) -> Any:
        return self.batch.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda t: t.to_reader(),
        lambda t: t.combine_chunks().to_batches()[0],
        OneBatch,
        lambda t: t.to_struct_array(),
    ],
)
def test_every_arrow_compatible_object_is_accepted_as_a_table(wrap: Callable[[pa.Table], Any]) -> None:
    assert simulate_flows(CLUSTER, wrap(flows(dst=["r0h1"])))["fct_s"].to_pylist() == [pytest.approx(0.008)]


@pytest.mark.parametrize("thing", [{"src": [1]}, [1, 2], None, "flows.csv"])
def test_an_object_without_arrow_support_is_a_type_error(thing: Any) -> None:
    with pytest.raises(TypeError, match="expected a table"):
        simulate_flows(CLUSTER, thing)


# ---- invalid tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("t_arrival_s", [0.0, math.nan], "row 1: NaN: expected seconds"),
        ("t_arrival_s", [0.0, -1.0], "row 1: -1: expected seconds"),
        ("t_arrival_s", [math.inf, 0.0], "row 0: inf: expected seconds"),
        ("t_arrival_s", [None, 0.0], "row 0: null"),
        ("t_arrival_s", ["0", "1"], "a column of Utf8: expected numbers"),
        ("size_bytes", [1.0, math.nan], "row 1: NaN: expected bytes"),
        ("size_bytes", [1, -1], "row 1: -1: expected bytes"),
        ("size_bytes", [1, None], "row 1: null"),
        ("src", ["r0h0", "r0h9"], "row 1: unknown host `r0h9`"),
        ("src", ["r0h0", "r0h0:egress"], "row 1: unknown host `r0h0:egress`"),
        ("src", ["r0h0", None], "row 1: null"),
        ("dst", [0, 12], "row 1: host 12: unknown; the cluster has 0 to 11"),
        ("dst", [0, -1], "row 1: host -1: unknown"),
        ("dst", [0.0, 1.0], "a column of Float64: expected host numbers or names"),
        ("dst", pa.array(["r0h0", "x"]).dictionary_encode(), "row 1: unknown host `x`"),
        ("weight", [1.0, 0.0], "row 1: 0: expected a positive weight"),
        ("weight", [1.0, None], "row 1: null"),
        ("cap_bps", [1e9, 0.0], "row 1: 0: expected a positive rate"),
        ("cap_bps", [1e9, math.nan], "row 1: NaN: expected a positive rate"),
        ("resources", [[0], [99]], "row 1: resource 99: unknown"),
        ("resources", [[0], [1, None]], "row 1: null"),
        ("resources", [[0], None], "row 1: null"),
        ("resources", [["r0h0:egress"], ["r0:up"]], "row 1: unknown resource `r0:up`"),
        ("resources", [["r0h0:egress"], ["r0h0:egress:read"]], "row 1: unknown resource"),
        ("resources", [0, 1], "a column of Int64: expected lists"),
    ],
)
def test_invalid_values_are_rejected_with_column_and_row(column: str, values: Any, message: str) -> None:
    whole = flows(**{column: values})
    with pytest.raises(leeward.InputError) as caught:
        simulate_flows(CLUSTER, whole)
    assert (caught.value.file, caught.value.field) == ("flows", column)
    assert caught.value.message.startswith(message)
    # Row numbers are those of the table, not of one of its batches.
    if message.startswith("row 1"):
        chunked = pa.concat_tables([whole.slice(0, 1), whole.slice(1)])
        with pytest.raises(leeward.InputError) as caught:
            simulate_flows(CLUSTER, chunked)
        assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("work", "message"),
    [
        ([[8.0, 8.0], [8.0]], "row 1: 1 numbers for 2 resources"),
        ([[8.0, 8.0], [8.0, -1.0]], "row 1: -1: expected work"),
        ([[8.0, 8.0], [8.0, math.nan]], "row 1: NaN: expected work"),
    ],
)
def test_work_that_does_not_match_the_resources_is_rejected(work: list[list[float]], message: str) -> None:
    with pytest.raises(leeward.InputError) as caught:
        simulate_flows(CLUSTER, flows(resources=[[0, 3], [0, 5]], work=work))
    assert caught.value.field == "work"
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize("column", ["t_arrival_s", "size_bytes", "src", "dst"])
@pytest.mark.parametrize("rows", [0, 1])
def test_a_missing_column_is_named(column: str, rows: int) -> None:
    with pytest.raises(leeward.InputError) as caught:
        simulate_flows(CLUSTER, flows(src=["r0h0"]).slice(0, rows).drop_columns(column))
    assert caught.value.field == column
    assert "missing" in caught.value.message


def test_a_rack_of_a_mesh_is_an_unknown_host() -> None:
    mesh = {
        "shape": "hose",
        "racks": [{"name": "left", "hosts": 2}, {"name": "right", "hosts": 2}],
        "nic": "1Gbps",
    }
    with pytest.raises(leeward.InputError, match="unknown host `left`"):
        simulate_flows(mesh, flows(src=["left"], dst=["right"]))


# ---- threads and interrupts --------------------------------------------------------------------------


def many_flows(count: int) -> pa.Table:
    """Flows that all arrive at once between few hosts: their simulation takes long."""
    numbers = range(count)
    return flows(
        src=[i % 12 for i in numbers], dst=[i * 7 % 12 for i in numbers], size_bytes=[MB + i for i in numbers]
    )


def test_other_threads_run_during_a_simulation() -> None:
    table = many_flows(200_000)
    thread = threading.Thread(target=simulate_flows, args=(CLUSTER, table))
    interval = sys.getswitchinterval()
    try:
        # With this interval, the interpreter switches threads only where one of them releases the lock.
        sys.setswitchinterval(60)
        thread.start()
        turns = 0
        while thread.is_alive():
            time.sleep(0.001)
            turns += 1
    finally:
        sys.setswitchinterval(interval)
    thread.join()
    assert turns > 10


def test_an_interrupt_stops_a_simulation() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    table = many_flows(200_000)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        # The simulation takes longer than this on any machine.
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        with pytest.raises(KeyboardInterrupt):
            simulate_flows(CLUSTER, table)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
