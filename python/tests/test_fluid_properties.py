"""Properties of every set of flows."""

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import leeward
from leeward.fluid import simulate_flows

CLUSTER = leeward.Cluster(
    {
        "racks": [{"count": 3}, {"link": "100Mbps"}],
        "hosts_per_rack": 3,
        "nic": "1Gbps",
        "oversubscription": 2,
        "pods": 2,
        "pod_oversubscription": 2,
        "devices": [{"read": "100MB/s", "write": "50MB/s"}],
    }
)
NAMES = CLUSTER.host_names()
CAPACITIES = dict(zip(*(CLUSTER.resources()[c].to_pylist() for c in ("name", "capacity")), strict=True))

hosts = st.integers(0, CLUSTER.hosts - 1)
times = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 3, allow_subnormal=False))
rows = st.fixed_dictionaries(
    {
        "t_arrival_s": times,
        "size_bytes": st.one_of(st.just(0.0), st.floats(1, 1e9)),
        "src": hosts,
        "dst": hosts,
        "weight": st.floats(0.1, 10),
        "cap_bps": st.one_of(st.none(), st.floats(1e6, 2e9)),
    }
)
SCHEMA = pa.schema(
    {
        "t_arrival_s": pa.float64(),
        "size_bytes": pa.float64(),
        "src": pa.int64(),
        "dst": pa.int64(),
        "weight": pa.float64(),
        "cap_bps": pa.float64(),
    }
)
tables = st.lists(rows, max_size=25).map(lambda rows: pa.Table.from_pylist(rows, SCHEMA))


def fct(table: pa.Table) -> list[float]:
    return list(simulate_flows(CLUSTER, table)["fct_s"].to_pylist())


def path(flow: dict[str, Any]) -> list[tuple[str, float]]:
    return CLUSTER.path(NAMES[flow["src"]], NAMES[flow["dst"]])


def alone(flow: dict[str, Any]) -> float:
    """Time of a flow alone on the network."""
    slowest = max((work / CAPACITIES[resource] for resource, work in path(flow)), default=0.0)
    return float(flow["size_bytes"]) * max(slowest, 8 / (flow["cap_bps"] or float("inf")))


def replace(table: pa.Table, column: str, values: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(column), column, values)


@given(tables)
def test_flows_are_no_faster_than_alone_and_no_slower_than_in_sequence(
    table: pa.Table,
) -> None:
    flows = table.to_pylist()
    result = simulate_flows(CLUSTER, table)
    for flow, duration in zip(flows, result["fct_s"].to_pylist(), strict=True):
        assert duration >= alone(flow) * (1 - 1e-9) - 1e-9
    if flows:
        # At any time, a full resource or its own cap limits at least one of the unfinished flows.
        last = max(flow["t_arrival_s"] for flow in flows)
        in_turn = last + sum(alone(flow) for flow in flows)
        assert max(result["t_finish_s"].to_pylist()) <= in_turn * (1 + 1e-9) + 1e-9


@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(table: pa.Table, shuffle: random.Random) -> None:
    order = list(range(table.num_rows))
    shuffle.shuffle(order)
    expected = fct(table)
    assert fct(table.take(pa.array(order, pa.int64()))) == pytest.approx(
        [expected[row] for row in order], rel=1e-9, abs=1e-9
    )


@given(tables, st.integers(0, 25))
def test_the_batches_of_a_table_do_not_matter(table: pa.Table, cut: int) -> None:
    assert fct(pa.concat_tables([table.slice(0, cut), table.slice(cut)])) == fct(table)


@given(tables)
def test_hosts_by_number_by_name_and_as_resources_give_the_same_times(table: pa.Table) -> None:
    by_name = table
    for column in ("src", "dst"):
        names = pa.array([NAMES[host] for host in table[column].to_pylist()], pa.string())
        by_name = replace(by_name, column, names)
    resources = [[resource for resource, _ in path(flow)] for flow in table.to_pylist()]
    work = [[work for _, work in path(flow)] for flow in table.to_pylist()]
    listed = table.append_column("resources", pa.array(resources, pa.list_(pa.string())))
    weighed = listed.append_column("work", pa.array(work, pa.list_(pa.float64())))
    assert fct(by_name) == fct(table)
    assert fct(listed) == fct(table)
    assert fct(weighed) == fct(table)


@given(tables)
def test_doubling_bytes_and_arrival_times_doubles_durations(table: pa.Table) -> None:
    doubled = table
    for column in ("t_arrival_s", "size_bytes"):
        doubled = replace(
            doubled, column, pa.array([2 * value for value in table[column].to_pylist()], pa.float64())
        )
    assert fct(doubled) == pytest.approx([2 * duration for duration in fct(table)], rel=1e-9, abs=1e-9)


@given(tables)
def test_only_the_proportions_of_weights_matter(table: pa.Table) -> None:
    heavier = replace(table, "weight", pa.array([3 * w for w in table["weight"].to_pylist()], pa.float64()))
    assert fct(heavier) == pytest.approx(fct(table), rel=1e-9, abs=1e-9)


@given(tables)
def test_the_same_table_gives_the_same_bits(table: pa.Table) -> None:
    assert simulate_flows(CLUSTER, table).equals(simulate_flows(CLUSTER, table))


@given(tables)
def test_missing_weights_and_caps_mean_weight_one_and_no_cap(table: pa.Table) -> None:
    bare = table.drop_columns(["weight", "cap_bps"])
    ones, none = pa.repeat(1.0, table.num_rows), pa.nulls(table.num_rows, pa.float64())
    spelled_out = replace(replace(table, "weight", ones), "cap_bps", none)
    assert fct(bare) == pytest.approx(fct(spelled_out), rel=1e-9, abs=1e-9)
