"""Clusters from GraphML, SNDlib, SimGrid, NetBox and containerlab."""

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward import Cluster, InputError
from leeward.importers import Format, read, read_graph
from leeward.importers.cluster_file import Speeds, cluster_file
from leeward.importers.topology import Topology
from support.graphs import drawn

Run = Callable[..., subprocess.CompletedProcess[str]]


def imported(folder: Path, form: Format, *contents: str, **given: Any) -> Topology:
    files = []
    for number, content in enumerate(contents):
        files.append(folder / f"file{number}")
        files[-1].write_text(content)
    return read(form, files, **given)


def shape(topology: Topology) -> dict[str, list[str]]:
    return {rack: sorted(host.name for host in hosts) for rack, hosts in topology.racks().items()}


def graphml(links: list[tuple[str, str, str]], directed: bool = False, hosts: str = "h") -> str:
    names = dict.fromkeys(end for one, other, _ in links for end in (one, other))
    nodes = "".join(
        f'<node id="{name}"><data key="k">{"host" if name[0] in hosts else "switch"}</data></node>\n'
        for name in names
    )
    edges = "".join(
        f'<edge source="{one}" target="{other}"><data key="b">{rate}</data></edge>\n'
        for one, other, rate in links
    )
    kind = "directed" if directed else "undirected"
    return (
        '<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        '<key id="k" for="node" attr.name="type" attr.type="string"/>\n'
        '<key id="b" for="edge" attr.name="bandwidth" attr.type="string"/>\n'
        f'<graph edgedefault="{kind}">\n{nodes}{edges}</graph></graphml>\n'
    )


TREE = [
    *((f"h{rack}{host}", f"r{rack}", "25Gbps") for rack in range(4) for host in range(2)),
    *((f"r{rack}", f"p{rack // 2}", "100Gbps") for rack in range(4) for _ in range(2)),
    *((f"p{pod}", "core", "400Gbps") for pod in range(2)),
]
RACKS = {f"r{rack}": [f"h{rack}{host}" for host in range(2)] for rack in range(4)}
NATIVE = """?SNDlib native format; type: network; version: 1.0
# a comment
NODES (
  s ( 1.0 2.0 )
  r1 ( 1.0 2.0 )
  r2 ( 1.0 2.0 )
  a ( 1.0 2.0 )
  b ( 1.0 2.0 )
)
LINKS (
  L1 ( s r1 ) 0.00 0.00 0.00 0.00 ( 40.00 1.00 )
  L2 ( r2 s ) 0.00 0.00 0.00 0.00 ( 40.00 1.00 )
  L3 ( a r1 ) 0.00 0.00 0.00 0.00 ( 40.00 1.00 )
  L4 ( b r2 ) 0.00 0.00 0.00 0.00 ( 40.00 1.00 )
)
DEMANDS (
  D1 ( a b ) 1 10.0 UNLIMITED
)
"""
SNDLIB_XML = """<?xml version="1.0"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0"><networkStructure>
<nodes><node id="s"/><node id="r1"/><node id="r2"/><node id="a"/><node id="b"/></nodes><links>
<link id="1"><source>s</source><target>r1</target></link>
<link id="2"><source>r2</source><target>s</target></link>
<link id="3"><source>a</source><target>r1</target></link>
<link id="4"><source>b</source><target>r2</target></link>
</links></networkStructure></network>
"""
SIMGRID = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="all" routing="Full">
<cluster id="c1" prefix="a-" suffix=".x" radical="0-2,7" speed="1Gf" bw="1.25GBps" lat="50us"/>
<cluster id="c2" prefix="b-" suffix=".x" radical="0-3" speed="1Gf" bw="1.25GBps" lat="50us"/>
<zone id="top" routing="Full"><router id="core"/></zone>
<link id="up1" bandwidth="40Gbps" latency="1us"/><link id="up2" bandwidth="5GBps" latency="1us"/>
<zoneRoute src="c1" dst="top" gw_src="a-c1_router.x" gw_dst="core"><link_ctn id="up1"/></zoneRoute>
<zoneRoute src="c2" dst="top" gw_src="b-c2_router.x" gw_dst="core"><link_ctn id="up2"/></zoneRoute>
</zone></platform>
"""


@pytest.mark.parametrize("directed", [False, True])
def test_a_tree_of_graphml_is_a_cluster_with_its_rates(tmp_path: Path, directed: bool) -> None:
    links = TREE + ([(other, one, rate) for one, other, rate in TREE] if directed else [])
    topology = imported(tmp_path, Format.GRAPHML, graphml(links, directed))
    assert shape(topology) == RACKS
    assert {host.pod for host in topology.hosts} == {"p0", "p1"}
    assert {host.nic_bps for host in topology.hosts} == {25 * 10**9}
    assert set(topology.rack_links.values()) == {200 * 10**9}
    assert topology.pod_links == {"p0": 400 * 10**9, "p1": 400 * 10**9}
    assert any("4 bundles of parallel links, of at most 2" in note for note in topology.notes)
    Cluster.from_text(cluster_file(topology, Speeds()), "cluster.yaml")


@given(st.randoms(use_true_random=False))
def test_any_order_of_nodes_and_links_is_one_cluster(tmp_path_factory: Any, order: random.Random) -> None:
    links = [(one, other, rate) if order.random() < 0.5 else (other, one, rate) for one, other, rate in TREE]
    order.shuffle(links)
    topology = imported(tmp_path_factory.mktemp("order"), Format.GRAPHML, graphml(links))
    assert dict(sorted(shape(topology).items())) == RACKS
    assert set(topology.rack_links.values()) == {200 * 10**9}


@given(st.sampled_from(sorted({name for link in TREE for name in link[:2]})), st.data())
def test_one_more_link_of_a_tree_is_a_cycle_or_a_bundle(tmp_path_factory: Any, one: str, data: Any) -> None:
    names = sorted({name for link in TREE for name in link[:2]} - {one})
    other = data.draw(st.sampled_from(names))
    folder = tmp_path_factory.mktemp("cycle")
    text = graphml([*TREE, (one, other, "1Gbps")])
    if any({one, other} == set(link[:2]) for link in TREE):
        assert dict(sorted(shape(imported(folder, Format.GRAPHML, text)).items())) == RACKS
        return
    with pytest.raises(InputError, match=r"not a tree: the links .* are a cycle") as caught:
        imported(folder, Format.GRAPHML, text)
    assert one in caught.value.message
    assert other in caught.value.message


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (TREE[:-1], "not a tree: no links join"),
        ([("ha", "r1", ""), ("hb", "r2", ""), ("r1", "r2", "")], "no core: r. and r. are both in the middle"),
        ([("ha", "hb", "1Gbps")], "hosts h. and h. have no switch between them"),
        (
            [*TREE, ("r9", "core", "1Gbps"), ("h9", "r9", "1Gbps")],
            "rack r9 is 1 below core, but r. is 2; expected all racks at one depth",
        ),
    ],
)
def test_no_tree_is_an_error_that_names_what_is_missing(
    tmp_path: Path, links: list[tuple[str, str, str]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        imported(tmp_path, Format.GRAPHML, graphml(links))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<graphml>", "not valid XML"),
        ('<!DOCTYPE g [<!ENTITY a "b">]><graphml>&a;</graphml>', "an entity is declared or used"),
        ("<a/>", "`a` with 0 graphs: expected `graphml`"),
        (graphml(TREE).replace("25Gbps", "fast"), "bandwidth"),
        (graphml(TREE).replace('source="r0"', 'source="r7"'), "edge: `r7`: no node has this id"),
    ],
)
def test_faults_of_xml_are_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(tmp_path, Format.GRAPHML, text)
    assert message in str(caught.value)


def test_a_bandwidth_without_a_unit_is_counted_and_not_used(tmp_path: Path) -> None:
    topology = imported(tmp_path, Format.GRAPHML, graphml(TREE).replace("25Gbps", "25"))
    assert {host.nic_bps for host in topology.hosts} == {None}
    assert [number for reason, number, _ in topology.left_out if reason == "link-speed"] == [8]


@pytest.mark.parametrize("text", [NATIVE, SNDLIB_XML])
def test_both_forms_of_sndlib_are_one_cluster(tmp_path: Path, text: str) -> None:
    assert shape(imported(tmp_path, Format.SNDLIB, text)) == {"r1": ["a"], "r2": ["b"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NATIVE.replace("L1 ( s r1 )", "L1 s r1"), ":11: link: `L1 s r1"),
        (NATIVE.replace("L1 ( s r1 )", "L1 ( s r9 )"), ":11: link: `r9`: no node has this name"),
        (NATIVE.partition("DEMANDS")[0].rstrip().rstrip(")"), "LINKS has no end: is the file complete?"),
        ("a b\n", ":1: `a b`: expected a section"),
    ],
)
def test_faults_of_sndlib_are_named_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(tmp_path, Format.SNDLIB, text)
    assert message in str(caught.value)


def test_nested_sections_of_sndlib_are_passed_over(tmp_path: Path) -> None:
    paths = "ADMISSIBLE_PATHS (\n  D1 (\n    P1 ( L1 )\n  )\n  D2 (\n    P1 ( L2 )\n  )\n)\n"
    topology = imported(tmp_path, Format.SNDLIB, NATIVE + paths)
    assert shape(topology) == shape(imported(tmp_path, Format.SNDLIB, NATIVE))


def test_clusters_of_simgrid_are_racks(tmp_path: Path) -> None:
    topology = imported(tmp_path, Format.SIMGRID, SIMGRID)
    assert shape(topology) == {
        "c1": [f"a-{number}.x" for number in (0, 1, 2, 7)],
        "c2": [f"b-{number}.x" for number in range(4)],
    }
    assert {host.nic_bps for host in topology.hosts} == {10 * 10**9}
    assert topology.rack_links == {"c1": 40 * 10**9, "c2": 40 * 10**9}
    with pytest.raises(InputError, match="2 links from c1 to core: expected one"):
        imported(
            tmp_path, Format.SIMGRID, SIMGRID.replace('<link_ctn id="up1"/>', '<link_ctn id="up1"/>' * 2)
        )
    with pytest.raises(InputError, match="bw: `fast`: expected a bandwidth"):
        imported(tmp_path, Format.SIMGRID, SIMGRID.replace("1.25GBps", "fast", 1))


def test_what_a_tree_of_racks_cannot_show_of_a_platform_is_an_error_or_counted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`peer`: not read"):
        imported(tmp_path, Format.SIMGRID, SIMGRID.replace("<router", "<peer id='p'/><router", 1))
    shared = SIMGRID.replace('<link_ctn id="up2"/>', '<link_ctn id="up1"/>')
    with pytest.raises(InputError, match="link `up1` joins c2 and core, and also c1 and core: expected one"):
        imported(tmp_path, Format.SIMGRID, shared)
    backbone = SIMGRID.replace('<cluster id="c1"', '<cluster bb_bw="1GBps" bb_lat="0" id="c1"')
    assert imported(tmp_path, Format.SIMGRID, backbone).left_out.examples["backbone"] == ["c1: 1GBps"]
    fatpipe = SIMGRID.replace('<link id="up1"', '<link sharing_policy="FATPIPE" id="up1"')
    assert imported(tmp_path, Format.SIMGRID, fatpipe).left_out.examples["fatpipe"] == ["up1"]


def devices(*entries: tuple[str, str, str]) -> str:
    return json.dumps(
        {
            "count": len(entries),
            "next": None,
            "results": [
                {"id": at, "name": name, "device_type": {}, "role": {"slug": role}, "rack": {"name": rack}}
                for at, (name, role, rack) in enumerate(entries)
            ],
        }
    )


def cables(*pairs: tuple[str, str, str]) -> str:
    def end(name: str, kind: str) -> list[dict[str, Any]]:
        interface = {"id": 1, "device": {"name": name}, "mgmt_only": kind == "mgmt", "type": {"value": kind}}
        return [{"object_type": "dcim.interface", "object": interface}]

    results = [
        {
            "a_terminations": end(one, kind),
            "b_terminations": end(other, kind),
            "status": {"value": "connected"},
        }
        for one, other, kind in pairs
    ]
    return json.dumps({"next": None, "results": results})


NETBOX = (
    *((f"n{at}", "server", f"k{at // 2}") for at in range(4)),
    *((f"leaf{at}", "leaf-switch", f"k{at}") for at in range(2)),
    ("spine", "spine-switch", "k9"),
    ("pdu", "pdu", "k9"),
)
CABLES = (
    *((f"n{at}", f"leaf{at // 2}", "25gbase-x-sfp28") for at in range(4)),
    *((f"leaf{at}", "spine", "100gbase-x-qsfp28") for at in range(2)),
    ("n0", "spine", "mgmt"),
)


def test_netbox_with_cables_has_racks_and_speeds_of_links(tmp_path: Path) -> None:
    topology = imported(tmp_path, Format.NETBOX, devices(*NETBOX), cables(*CABLES))
    assert shape(topology) == {"leaf0": ["n0", "n1"], "leaf1": ["n2", "n3"]}
    assert {host.nic_bps for host in topology.hosts} == {25 * 10**9}
    assert set(topology.rack_links.values()) == {100 * 10**9}
    assert topology.left_out.examples["management-port"] == ["n0 - spine"]
    assert topology.left_out.examples["other-role"] == ["pdu: pdu"]


def test_netbox_without_cables_has_racks_of_devices(tmp_path: Path) -> None:
    topology = imported(tmp_path, Format.NETBOX, devices(*NETBOX))
    assert shape(topology) == {"k0": ["n0", "n1"], "k1": ["n2", "n3"]}


def test_devices_of_netbox_without_ids_are_known_by_name(tmp_path: Path) -> None:
    results = json.loads(devices(*NETBOX))["results"]
    nameless = json.dumps([{key: value for key, value in one.items() if key != "id"} for one in results])
    topology = imported(tmp_path, Format.NETBOX, nameless, cables(*CABLES))
    assert shape(topology) == {"leaf0": ["n0", "n1"], "leaf1": ["n2", "n3"]}


def test_hosts_of_netbox_without_a_link_are_named(tmp_path: Path) -> None:
    topology = imported(tmp_path, Format.NETBOX, devices(*NETBOX), cables(*CABLES[1:]))
    assert shape(topology) == {"leaf0": ["n1"], "leaf1": ["n2", "n3"]}
    assert topology.left_out.examples["no-link"] == ["n0"]
    panels = json.loads(cables(*CABLES))
    for cable in panels["results"]:
        cable["b_terminations"] = [{"object_type": "dcim.frontport", "object": {"device": {"name": "panel"}}}]
    with pytest.raises(InputError) as raised:
        imported(tmp_path, Format.NETBOX, devices(*NETBOX), json.dumps(panels))
    assert "7 cables have an end that is no interface; cables through" in raised.value.__notes__[-1]


def of_site(site: str, first: int, status: str = "active") -> list[dict[str, Any]]:
    results = json.loads(devices(*NETBOX))["results"]
    return [
        entry | {"id": first + at, "site": {"slug": site}, "status": {"value": status}}
        for at, entry in enumerate(results)
    ]


def test_equal_names_of_two_sites_of_netbox_stay_apart(tmp_path: Path) -> None:
    both = [*of_site("ams", 0), *of_site("nyc", 100)]
    topology = imported(tmp_path, Format.NETBOX, json.dumps({"results": both}))
    assert shape(topology) == {
        f"{site}-k{rack}": [f"{site}-n{2 * rack}", f"{site}-n{2 * rack + 1}"]
        for site in ("ams", "nyc")
        for rack in range(2)
    }
    wires = json.loads(cables(*CABLES))["results"]
    ids = {entry["name"]: at for at, entry in enumerate(of_site("ams", 0))}
    results = []
    for first in (0, 100):
        for wire in json.loads(json.dumps(wires)):
            for side in ("a_terminations", "b_terminations"):
                device = wire[side][0]["object"]["device"]
                device["id"] = first + ids[device["name"]]
            results.append(wire)
    cabled = imported(
        tmp_path, Format.NETBOX, json.dumps({"results": both}), json.dumps({"results": results})
    )
    assert shape(cabled) == {
        f"{site}-leaf{rack}": [f"{site}-n{2 * rack}", f"{site}-n{2 * rack + 1}"]
        for site in ("ams", "nyc")
        for rack in range(2)
    }


def test_devices_of_netbox_that_carry_no_traffic_are_left_out(tmp_path: Path) -> None:
    one = of_site("ams", 0)
    one[3]["status"] = {"value": "decommissioning"}
    topology = imported(tmp_path, Format.NETBOX, json.dumps({"results": one}))
    assert shape(topology) == {"k0": ["n0", "n1"], "k1": ["n2"]}
    assert topology.left_out.examples["not-active"] == ["n3: decommissioning"]


@pytest.mark.parametrize(
    ("role", "is_host"),
    [("edge-server", True), ("core-compute", True), ("GPU nodes, servers", True), ("compute-leaf", False),
     ("server-switches", False), ("pdu", None)],
)  # fmt: skip
def test_the_last_known_word_of_a_role_decides(role: str, is_host: bool | None, tmp_path: Path) -> None:
    odd = (("odd", role, "k0"),)
    topology = imported(tmp_path, Format.NETBOX, devices(*NETBOX, *odd))
    assert ("odd" in shape(topology)["k0"]) == bool(is_host)
    assert ("odd: " + role in topology.left_out.examples["other-role"]) == (is_host is None)


def test_a_page_of_netbox_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    page = json.dumps(json.loads(devices(*NETBOX)) | {"next": "https://netbox/?offset=50", "count": 90})
    with pytest.raises(InputError, match="next: only 8 of 90 objects: there is another page"):
        imported(tmp_path, Format.NETBOX, page)


def test_an_out_of_band_switch_of_netbox_joins_no_racks(tmp_path: Path) -> None:
    management = (("oob", "management-switch", "k9"),)
    wires = tuple((f"n{at}", "oob", "1000base-t") for at in range(4))
    topology = imported(tmp_path, Format.NETBOX, devices(*NETBOX, *management), cables(*CABLES, *wires))
    assert shape(topology) == {"leaf0": ["n0", "n1"], "leaf1": ["n2", "n3"]}
    assert topology.left_out.examples["out-of-band"] == ["oob"]


LAB = """name: lab
topology:
  kinds:
    nokia_srlinux: {image: srl}
  nodes:
    spine: {kind: nokia_srlinux}
    leaf1: {kind: nokia_srlinux}
    leaf2: {kind: nokia_srlinux}
    a: {kind: linux}
    b: {kind: linux}
  links:
    - endpoints: ["leaf1:e1-1", "spine:e1-1"]
    - endpoints: ["leaf2:e1-1", "spine:e1-2"]
    - endpoints: ["a:eth1", "leaf1:e1-2"]
    - type: veth
      endpoints: [{node: b, interface: eth1}, {node: leaf2, interface: e1-2}]
    - endpoints: ["leaf1:e1-9", "host:x"]
"""


def test_both_files_of_containerlab_are_one_cluster(tmp_path: Path) -> None:
    topology = imported(tmp_path, Format.CONTAINERLAB, LAB)
    assert shape(topology) == {"leaf1": ["a"], "leaf2": ["b"]}
    assert topology.left_out.examples["outside-link"] == ["links[4]: leaf1, host"]
    pairs = (("leaf1", "spine"), ("leaf2", "spine"), ("a", "leaf1"), ("b", "leaf2"))
    for wrapped in (False, True):
        ends = [{"a": {"node": one, "interface": "e"}, "z": {"node": other}} for one, other in pairs]
        kinds = {name: {"kind": "linux" if name in "ab" else "ceos"} for pair in pairs for name in pair}
        links = [{"endpoints": end} if wrapped else end for end in ends]
        data = json.dumps({"name": "lab", "nodes": kinds, "links": links})
        assert shape(imported(tmp_path, Format.CONTAINERLAB, data)) == shape(topology)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAB.replace('"a:eth1", ', ""), "links[2]: expected two endpoints"),
        (LAB.replace("leaf1:e1-2", "leaf7:e1-2"), "links[2]: `leaf7`: no node has this name"),
        (LAB.replace("a: {kind: linux}", "a: {}"), "nodes.a: expected `kind`"),
        ("- 1\n", "file: expected an object"),
        ("a: [", "not valid YAML"),
    ],
)
def test_faults_of_containerlab_are_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(tmp_path, Format.CONTAINERLAB, text)
    assert message in str(caught.value)


def test_the_command_imports_a_graph(run: Run, tmp_path: Path) -> None:
    (tmp_path / "net.graphml").write_text(graphml(TREE))
    result = run("cluster", "import", "graphml", "net.graphml", "--out", "made.yaml")
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith("graphml: 8 hosts, 4 racks, 2 pods; each rack has 2 hosts")
    assert run("cluster", "show", "made.yaml").returncode == 0


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("as_numbers", [False, True])
def test_a_graph_of_networkx_is_the_cluster_of_its_file(
    tmp_path: Path, directed: bool, as_numbers: bool
) -> None:
    links = TREE + ([(other, one, rate) for one, other, rate in TREE] if directed else [])
    rates = [(one, other, int(rate[:-4]) * 10**9 if as_numbers else rate) for one, other, rate in links]
    names = {name for link in TREE for name in link[:2]}
    nodes = {name: {"type": "host" if name[0] == "h" else "switch", "cpus": 8} for name in names}
    topology = read_graph(drawn(rates, directed, "bandwidth", **nodes))
    expected = imported(tmp_path, Format.GRAPHML, graphml(links, directed))
    assert shape(topology) == shape(expected)
    assert (topology.rack_links, topology.pod_links) == (expected.rack_links, expected.pod_links)
    assert {(host.nic_bps, host.cpus) for host in topology.hosts} == {(25 * 10**9, "8")}
    assert Cluster(cluster_file(topology, Speeds())).hosts == 8


@pytest.mark.parametrize(
    ("links", "field", "message"),
    [
        (TREE[:-1], "rate", "graph: node: not a tree: no links join"),
        ([*TREE, ("h00", "h10", "1Gbps")], "rate", "graph: link: not a tree"),
        ([("a", "b", "fast")], "rate", "graph: rate: link a - b: `fast`"),
        ([("a", "b", -1)], "speed", "graph: speed: link a - b: `-1`: expected"),
        ([("a", "b", float("nan"))], "speed", "graph: speed: link a - b: `nan`: expected"),
        ([], "rate", "graph: no nodes"),
    ],
)
def test_errors_of_a_graph_name_its_nodes(links: Any, field: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_graph(drawn(links, False, field))
    assert str(caught.value).startswith(message), str(caught.value)
