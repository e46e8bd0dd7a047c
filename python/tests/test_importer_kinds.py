"""Topologies as clouds, Slurm and management networks really have them."""

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leeward import InputError
from leeward.importers import Format, read
from leeward.importers.summary import doubts, sizes
from leeward.importers.topology import Topology

Run = Callable[..., subprocess.CompletedProcess[str]]
TWO = """---
- topology: flat
  cluster_default: false
  flat: true
- topology: fabric
  cluster_default: true
  tree:
    switches:
      - switch: spine1
        children: leaf[1-2]
      - switch: leaf1
        nodes: node[01-04]
      - switch: leaf2
        nodes: node[05-08]
- topology: blocks
  block:
    block_sizes: [4, 8]
    blocks:
      - {block: b1, nodes: 'node[01-02]'}
      - {block: b2, nodes: 'node[03-08]'}
"""


def imported(folder: Path, form: Format, *contents: str, **given: Any) -> Topology:
    files = []
    for number, content in enumerate(contents):
        files.append(folder / f"device{number}")
        files[-1].write_text(content)
    return read(form, files, **given)


def shape(topology: Topology) -> dict[str, list[str]]:
    return {rack: [host.name for host in hosts] for rack, hosts in topology.racks().items()}


def test_the_default_topology_of_yaml_counts(tmp_path: Path) -> None:
    topology = imported(tmp_path, Format.SLURM, TWO)
    racks = {f"leaf{rack}": [f"node{4 * rack - 3 + node:02}" for node in range(4)] for rack in (1, 2)}
    assert shape(topology) == racks
    assert topology.left_out.examples["other-topology"] == ["flat", "blocks"]
    blocks = TWO.replace("cluster_default: true", "cluster_default: false").replace(
        "- topology: blocks\n", "- topology: blocks\n  cluster_default: true\n"
    )
    assert {rack: len(hosts) for rack, hosts in shape(imported(tmp_path, Format.SLURM, blocks)).items()} == {
        "b1": 2,
        "b2": 6,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TWO.replace("switches:", "leaves:"), ":8: tree: expected `switches:`"),
        (
            TWO.replace("children:", "below:"),
            ":9: below: not known; expected one of switch, children, nodes, block",
        ),
        (TWO.replace("leaf[1-2]", "leaf[1-3]"), ":9: Switches: `leaf3`: no line defines this switch"),
        (TWO.replace("  tree:", "  ring:"), ":5: topology: `fabric`: expected `tree:` or `block:`"),
        (TWO.replace("[4, 8]", "[4, 8"), "not valid YAML"),
        ("- topology: [" + "[" * 50, "nested too deeply"),
    ],
)
def test_faults_of_yaml_are_named_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(tmp_path, Format.SLURM, text)
    assert message in str(caught.value)


def test_blocks_without_nodes_are_counted(tmp_path: Path) -> None:
    text = "BlockName=b1 Nodes=n[1-3]\nBlockName=b2\nBlockName=b3 Nodes=\nBlockName=b4 Nodes=n[4-6]\n"
    topology = imported(tmp_path, Format.SLURM, text.replace(" Nodes=\n", "\n"))
    assert shape(topology) == {"b1": ["n1", "n2", "n3"], "b4": ["n4", "n5", "n6"]}
    assert topology.left_out.examples["empty-block"] == ["b2", "b3"]


def test_included_files_are_read_from_their_folder(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/leaves.conf").write_text("SwitchName=l1 Nodes=n[1-2]\nInclude more.conf\n")
    (tmp_path / "parts/more.conf").write_text("SwitchName=l2 Nodes=n[3-4]\n")
    topology = imported(tmp_path, Format.SLURM, "include parts/leaves.conf\nSwitchName=s Switches=l[1-2]\n")
    assert shape(topology) == {"l1": ["n1", "n2"], "l2": ["n3", "n4"]}
    with pytest.raises(InputError, match=r"device0:1: include: .*none.conf: No such file"):
        imported(tmp_path, Format.SLURM, "include none.conf\n")
    (tmp_path / "parts/more.conf").write_text("include leaves.conf\n")
    with pytest.raises(InputError, match="files include each other"):
        imported(tmp_path, Format.SLURM, "include parts/leaves.conf\n")


@pytest.mark.parametrize(
    ("rack", "pod"),
    [
        ("cloud.google.com/gce-topology-subblock", "cloud.google.com/gce-topology-block"),
        ("topology.k8s.aws/network-node-layer-3", "topology.k8s.aws/network-node-layer-2"),
        ("oci.oraclecloud.com/rdma.local_block_id", "oci.oraclecloud.com/rdma.network_block_id"),
        ("backend.coreweave.cloud/leafgroup", "backend.coreweave.cloud/superpod"),
        ("network.topology.nvidia.com/leaf", "network.topology.nvidia.com/spine"),
    ],
)
def test_labels_of_clouds_need_no_options(tmp_path: Path, rack: str, pod: str) -> None:
    items = [
        {
            "kind": "Node",
            "metadata": {
                "name": f"n{node}",
                "labels": {rack: f"r{node // 2}", pod: f"p{node // 4}", "topology.kubernetes.io/zone": "a"},
            },
        }
        for node in range(8)
    ]
    topology = imported(tmp_path, Format.KUBERNETES, json.dumps({"items": items}))
    assert shape(topology) == {f"r{one}": [f"n{2 * one}", f"n{2 * one + 1}"] for one in range(4)}
    assert [host.pod for host in topology.hosts] == [f"p{node // 4}" for node in range(8)]


def lldp(links: dict[str, str]) -> str:
    """Output of lldpctl with a switch at the other end of each port."""
    capability = [{"type": "Bridge", "enabled": True}, {"type": "Router", "enabled": True}]
    ports = [{port: {"chassis": {switch: {"capability": capability}}}} for port, switch in links.items()]
    return json.dumps({"lldp": {"interface": ports}})


def test_a_management_switch_that_sees_every_host_joins_no_racks(tmp_path: Path) -> None:
    hosts = [lldp({"eth0": "oob", "ens1": f"leaf{number // 3}"}) for number in range(9)]
    random.Random(1).shuffle(hosts)
    topology = imported(tmp_path, Format.LLDP, *hosts)
    assert sorted(map(len, shape(topology).values())) == [3, 3, 3]
    assert set(shape(topology)) == {"leaf0", "leaf1", "leaf2"}
    assert topology.left_out.examples["out-of-band"] == ["oob"]


def test_switches_of_one_rack_or_of_rails_are_not_out_of_band(tmp_path: Path) -> None:
    pair = [lldp({"a": f"leaf{2 * (host // 3)}", "b": f"leaf{2 * (host // 3) + 1}"}) for host in range(6)]
    topology = imported(tmp_path, Format.LLDP, *pair)
    assert set(shape(topology)) == {"leaf0_leaf1", "leaf2_leaf3"}
    rails = [lldp({f"ib{rail}": f"rail{rail}" for rail in range(4)}) for _ in range(6)]
    topology = imported(tmp_path, Format.LLDP, *rails)
    assert set(shape(topology)) == {"rail0_rail1_rail2_rail3"}
    assert "out-of-band" not in topology.left_out.counts
    # A host that only the management switch sees shows that it is more than that.
    alone = [lldp({"eth0": "oob", "ens1": f"leaf{host // 2}"}) for host in range(4)] + [lldp({"eth0": "oob"})]
    topology = imported(tmp_path, Format.LLDP, *alone)
    (doubt,) = doubts(topology)
    assert doubt.startswith("one rack has all 5 hosts: does a switch of another network join them?")
    topology = imported(tmp_path, Format.LLDP, *alone, tors="leaf*")
    assert sorted(map(len, shape(topology).values())) == [2, 2]


def test_neighbours_of_networkd_are_read(tmp_path: Path) -> None:
    files = [
        json.dumps(
            {
                "Neighbors": [
                    {
                        "InterfaceIndex": 2,
                        "InterfaceName": "eth0",
                        "Neighbors": [
                            {"ChassisID": "a", "SystemName": f"leaf{host // 2}", "EnabledCapabilities": 20}
                        ],
                    }
                ]
            }
        )
        for host in range(4)
    ]
    assert sorted(map(len, shape(imported(tmp_path, Format.LLDP, *files)).values())) == [2, 2]
    with pytest.raises(InputError, match=r"Neighbors.*: expected `InterfaceName` and `Neighbors`"):
        imported(tmp_path, Format.LLDP, '{"Neighbors": [3]}')


def test_the_summary_shows_sizes_and_what_looks_wrong(run: Run, tmp_path: Path) -> None:
    text = "".join(f"h{rack}-{host} /r{rack}\n" for rack in range(4) for host in range(2 if rack == 3 else 4))
    topology = imported(tmp_path, Format.HDFS, text)
    assert sizes(topology) == "3 of 4 racks have 4 hosts; r3 has 2"
    assert doubts(topology) == []
    single = imported(tmp_path, Format.HDFS, "a /r1\nb /r2\nc /r3\n")
    assert doubts(single) == ["every rack has a single host: the names of racks may be those of hosts"]
    mixed = json.dumps(
        {
            "lldp": {
                "interface": [
                    {
                        "e0": {
                            "chassis": {"leaf": {"capability": {"type": "Bridge", "enabled": True}}},
                            "port": {"auto-negotiation": {"current": kind}},
                        }
                    }
                    for kind in ("25GbaseCR", "1000BaseTFD")
                ]
            }
        }
    )
    (tmp_path / "h1.json").write_text(mixed)
    (tmp_path / "h2.json").write_text(mixed)
    ended = run("cluster", "import", "lldp", "h1.json", "h2.json", "--rack-link", "100Gbps")
    assert ended.returncode == 0, ended.stderr
    assert "lldp: 2 hosts, 1 rack; each rack has 2 hosts\n" in ended.stderr
    assert "warning: h1, h2: 26 Gbps a host is no usual rate: is a port for management" in ended.stderr
