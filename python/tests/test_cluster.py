from pathlib import Path
from types import MappingProxyType

import pytest

import leeward
from leeward import Cluster, InputError

TREE = """\
name: small
racks: 4
hosts_per_rack: 3
nic: 10Gbps
oversubscription: 3
pods: 2
pod_oversubscription: 2
devices: [{read: 100MB/s, write: 50MB/s, capacity: 4TB}]
"""
SMALL = {"racks": 2, "hosts_per_rack": 2, "nic": "1Gbps", "oversubscription": 2}


def test_a_path_a_text_and_a_mapping_give_the_same_cluster(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(TREE)
    mapping = {
        "racks": 4,
        "hosts_per_rack": 3,
        "nic": "10Gbps",
        "oversubscription": 3,
        "pods": 2,
        "name": "small",
    }
    mapping |= {
        "pod_oversubscription": 2,
        "devices": [{"read": "100MB/s", "write": "50MB/s", "capacity": "4TB"}],
    }
    clusters = [
        Cluster(TREE),
        Cluster(file),
        Cluster(str(file)),
        Cluster(mapping),
        Cluster(MappingProxyType(mapping)),
        Cluster(Cluster(TREE)),
        Cluster.from_file(file),
        Cluster.from_text(TREE),
    ]
    assert all(cluster.resources() == clusters[0].resources() for cluster in clusters)


def test_a_cluster_has_its_name_shape_and_counts() -> None:
    cluster = Cluster(TREE)
    assert (cluster.name, cluster.shape) == ("small", "tree")
    assert (cluster.hosts, cluster.racks, cluster.pods) == (12, 4, 2)
    assert cluster.host_names()[:4] == ["r0h0", "r0h1", "r0h2", "r1h0"]
    assert repr(cluster) == "<Cluster small: 12 hosts in 4 racks>"
    assert (Cluster({"shape": "hose", "hosts": 3, "nic": "1Gbps"})).shape == "hose"


def test_resources_have_their_capacity_in_native_units() -> None:
    table = Cluster(TREE).resources()
    assert table.schema.names == ["index", "name", "kind", "capacity"]
    assert table["index"].to_pylist() == list(range(table.num_rows))
    rows = {row["name"]: (row["kind"], row["capacity"]) for row in table.to_pylist()}
    assert rows["r3h2:egress"] == ("host_egress", 10_000_000_000)
    assert rows["r3h2:ingress"] == ("host_ingress", 10_000_000_000)
    assert rows["r3:uplink"] == ("rack_uplink", 10_000_000_000)
    assert rows["p1:downlink"] == ("pod_downlink", 10_000_000_000)
    assert rows["r3h2:disk0"] == ("device", 1_000_000_000)


@pytest.mark.parametrize(
    ("endpoints", "path"),
    [
        (["r0h0", "r0h0"], []),
        (["r0h0", "r0h1"], [("r0h0:egress", 8), ("r0h1:ingress", 8)]),
        (["r0", "r1"], [("r0:uplink", 8), ("r1:downlink", 8)]),
        (["p0", "p1"], [("p0:uplink", 8), ("p1:downlink", 8)]),
        (["r0h0:disk0:read", "r0h1"], [("r0h0:disk0", 10), ("r0h0:egress", 8), ("r0h1:ingress", 8)]),
        (["r0h0:disk0:read", "r0h0:disk0:write"], [("r0h0:disk0", 30)]),
        (
            ["r0h0", "r2h0:disk0", "r2h1:disk0:write"],
            [
                ("r0h0:egress", 8),
                ("r0:uplink", 8),
                ("p0:uplink", 8),
                ("p1:downlink", 8),
                ("r2:downlink", 8),
                ("r2h0:ingress", 8),
                ("r2h0:disk0", 20),
                ("r2h0:egress", 8),
                ("r2h1:ingress", 8),
                ("r2h1:disk0", 20),
            ],
        ),
    ],
)
def test_a_path_lists_resources_and_their_work(endpoints: list[str], path: list[tuple[str, float]]) -> None:
    assert Cluster(TREE).path(*endpoints) == path


@pytest.mark.parametrize("endpoint", ["r9h0", "r0h0:disk1", "r0h0:egress", "r0h0:egress:read", ""])
def test_a_path_with_an_unknown_endpoint_is_rejected(endpoint: str) -> None:
    with pytest.raises(InputError) as caught:
        Cluster(TREE).path("r0h0", endpoint)
    assert caught.value.field == "endpoints[1]"
    assert f"`{endpoint}`" in caught.value.message


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("racks: 4\nhosts_per_rack: 3\nnic: 10\noversubscription: 3\n", 3, "nic"),
        ("racks: 4\nhosts_per_rack: 3\nnic: 10Gbps\noversubscription: 0\n", 4, "oversubscription"),
        ("racks: 0\nhosts_per_rack: 3\nnic: 10Gbps\noversubscription: 1\n", 1, "racks"),
        ("racks:\n- {hosts: 2}\n- {link: 0bps}\nhosts_per_rack: 3\nnic: 10Gbps\n", 3, "racks[1]"),
        ("racks: 4\nhosts_per_rack: 3\n", None, "nic"),
        ("racks: 4\nhosts_per_rack: [\n", 2, None),
    ],
)
def test_errors_in_a_file_have_file_line_and_field(
    tmp_path: Path, text: str, line: int | None, field: str | None
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        Cluster(file)
    error = caught.value
    assert isinstance(error, ValueError)
    assert (error.file, error.line) == (str(file), line)
    if field is not None:
        assert error.field is not None
        assert error.field.startswith(field)
    assert str(error).startswith(f"{file}:{line}:" if line else f"{file}: ")
    assert str(error).endswith(error.message)


def test_errors_in_a_mapping_have_the_field_and_no_line() -> None:
    with pytest.raises(InputError) as caught:
        Cluster(SMALL | {"nic": "1 parsec"})
    assert (caught.value.file, caught.value.line, caught.value.field) == ("<mapping>", None, "nic")


def test_a_missing_file_is_an_input_error_and_a_number_a_type_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml"):
        Cluster(tmp_path / "none.yaml")
    with pytest.raises(TypeError, match="expected a path"):
        Cluster(7)  # type: ignore[arg-type]


def test_each_direction_of_a_link_is_a_row_with_its_place() -> None:
    cluster = Cluster(TREE)
    links = cluster.links().to_pylist()
    assert [link["link"] for link in links] == list(range(2 * (12 + 4 + 2)))
    by_name = {link["name"]: link for link in links}
    assert by_name["r3h2:ingress"] | {"link": 0} == {
        "link": 0,
        "name": "r3h2:ingress",
        "cross_section": "host-ToR",
        "direction": "down",
        "host": "r3h2",
        "rack": "r3",
        "pod": "p1",
        "capacity_bps": 10_000_000_000,
    }
    rack, pod = by_name["r0:uplink"], by_name["p1:uplink"]
    assert (rack["cross_section"], rack["host"], rack["rack"], rack["pod"]) == ("ToR-pod", None, "r0", "p0")
    assert (pod["cross_section"], pod["rack"], pod["pod"]) == ("pod-core", None, "p1")


def test_racks_and_hosts_are_available_as_tables() -> None:
    racks = Cluster(TREE).rack_table().to_pylist()
    assert racks[3] == {
        "rack": "r3",
        "pod": "p1",
        "kind": "mixed",
        "hosts": 3,
        "cpus": None,
        "storage_bps": 3 * 800_000_000,
        "storage_bytes": 3 * 4 * 10**12,
    }
    hosts = Cluster(TREE).host_table().to_pylist()
    assert len(hosts) == 12
    assert hosts[-1] == {"host": "r3h2", "rack": "r3", "pod": "p1"}


def test_a_description_gives_the_capacity_range_of_each_kind_of_link() -> None:
    racks = [{"count": 3}, {"link": "500Mbps"}]
    description = Cluster(SMALL | {"racks": racks, "devices": []}).describe()
    assert description["racks"] == 4
    uplinks = next(links for links in description["links"] if links["kind"] == "rack_uplink")
    assert uplinks == {
        "kind": "rack_uplink",
        "count": 4,
        "least_bps": 500_000_000,
        "most_bps": 1_000_000_000,
        "least_oversubscription": 2.0,
        "most_oversubscription": 4.0,
    }


def test_the_package_has_the_version_of_the_crates() -> None:
    assert leeward.__version__.count(".") == 2
