"""Topologies of other systems, as cluster files."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leeward import Cluster, InputError
from leeward.importers import Format, read
from leeward.importers.cluster_file import Speeds, cluster_file
from leeward.importers.hostlist import expand

EXAMPLES = Path(__file__).parents[2] / "examples" / "topologies"
RACK, POD = "network.topology.nvidia.com/leaf", "network.topology.nvidia.com/spine"
FLAT = Speeds(nic="25Gbps", oversubscription="3")
PODS = Speeds(nic="25Gbps", rack_link="4x100Gbps", pod_oversubscription="2")

HostPlaces = list[tuple[str, str, str | None]]


def host_places(cluster: Cluster) -> HostPlaces:
    table = cluster.host_table().to_pydict()
    return sorted(zip(table["host"], table["rack"], table["pod"], strict=True))


def import_hosts(form: str, files: list[Path], speeds: Speeds = FLAT, **settings: Any) -> HostPlaces:
    return host_places(Cluster.from_text(cluster_file(read(Format(form), files, **settings), speeds)))


def kubernetes(hosts: HostPlaces) -> str:
    def labels(rack: str, pod: str | None) -> dict[str, str]:
        return {RACK: rack} | ({} if pod is None else {POD: pod})

    items = [
        {"kind": "Node", "metadata": {"name": host, "labels": labels(rack, pod)}} for host, rack, pod in hosts
    ]
    return json.dumps({"kind": "List", "items": items})


def hdfs(hosts: HostPlaces) -> str:
    return "".join(f"{host}\t/{f'{pod}/' if pod else ''}{rack}\n" for host, rack, pod in hosts)


def slurm(hosts: HostPlaces) -> str:
    racks: dict[str, list[str]] = {}
    pods: dict[str, dict[str, None]] = {}
    for host, rack, pod in hosts:
        racks.setdefault(rack, []).append(host)
        if pod is not None:
            pods.setdefault(pod, {})[rack] = None
    lines = [f"SwitchName={rack} Nodes={','.join(nodes)}" for rack, nodes in racks.items()]
    lines += [f"SwitchName={pod} Switches={','.join(switches)}" for pod, switches in pods.items()]
    if pods:
        lines.append(f"SwitchName=top-core Switches={','.join(pods)}")
    return "\n".join(lines) + "\n"


@st.composite
def trees(draw: st.DrawFn) -> HostPlaces:
    """Hosts with their racks and pods: racks are in two or three pods, or in none."""
    pods = draw(st.sampled_from([1, 2, 3]))
    sizes = draw(st.lists(st.integers(1, 4), min_size=pods, max_size=6))
    return [
        (f"h{rack}-{host}", f"r{rack}", f"p{rack % pods}" if pods > 1 else None)
        for rack, size in enumerate(sizes)
        for host in range(size)
    ]


@pytest.mark.hypothesis
@pytest.mark.parametrize("form", [kubernetes, hdfs, slurm])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hosts=trees())
def test_an_exported_tree_is_imported_unchanged(
    tmp_path: Path, form: Callable[[HostPlaces], str], hosts: HostPlaces
) -> None:
    (tmp_path / "file").write_text(form(hosts))
    speeds = FLAT if hosts[0][2] is None else PODS
    assert import_hosts(form.__name__, [tmp_path / "file"], speeds) == sorted(hosts)


@pytest.mark.hypothesis
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hosts=trees(), both=st.booleans(), form=st.sampled_from(["json", "json0"]), seed=st.integers(0, 99))
def test_lldp_from_either_end_gives_the_same_tree(
    tmp_path: Path, hosts: HostPlaces, both: bool, form: str, seed: int
) -> None:
    links: list[tuple[str, str]] = [(host, rack) for host, rack, _ in hosts]
    links += sorted({(rack, f"{pod or 'p0'}{spine}") for _, rack, pod in hosts for spine in "ab"})
    racks = {rack for _, rack, _ in hosts}
    seen: dict[str, list[str]] = {}
    for below, above in links:
        seen.setdefault(below if above in racks else above, []).append(above if above in racks else below)
        if both:
            seen.setdefault(above if above in racks else below, []).append(below if above in racks else above)
    switches = racks | {above for _, above in links}
    folder = tmp_path / f"{seed}{both}{form}{len(hosts)}"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, others in seen.items():
        (folder / f"{name}.json").write_text(lldp(name, others, switches, form))
    files = sorted(folder.iterdir())
    random.Random(seed).shuffle(files)
    several = hosts[0][2] is not None and len({pod for *_, pod in hosts}) > 1
    speeds = Speeds(pod_oversubscription="2") if several else Speeds()
    actual = import_hosts("lldp", files, speeds)
    named = [(host, rack, f"{pod}a_{pod}b" if several else None) for host, rack, pod in hosts]
    assert actual == sorted(named)


def lldp(name: str, others: list[str], switches: set[str], form: str) -> str:
    """Output of a device about itself and its neighbours."""

    def chassis(device: str) -> dict[str, Any]:
        switch = device in switches
        capability = [{"type": "Bridge", "enabled": switch}, {"type": "Station", "enabled": not switch}]
        return {"id": {"type": "mac", "value": "02:00"}, "capability": capability}

    current = "100GbaseSR4 - fibre"
    if form == "json":
        own: Any = {"local-chassis": {"chassis": {name: chassis(name)}}}
        ports = [
            {
                f"swp{number}": {
                    "chassis": {device: chassis(device)},
                    "port": {"auto-negotiation": {"current": current}},
                }
            }
            for number, device in enumerate(others)
        ]
        neighbours: Any = {"interface": ports[0] if len(ports) == 1 else ports}
    else:
        own = {"local-chassis": [{"chassis": [chassis(name) | {"name": [{"value": name}]}]}]}
        port = [{"auto-negotiation": [{"current": [{"value": current}]}]}]
        neighbours = [
            {
                "interface": [
                    {
                        "name": f"swp{number}",
                        "chassis": [chassis(device) | {"name": [{"value": device}]}],
                        "port": port,
                    }
                    for number, device in enumerate(others)
                ]
            }
        ]
    return json.dumps(own) + "\n" + json.dumps({"lldp": neighbours}) + "\n"


REAL = """
{"lldp": {"interface": {"eth0h": {"via": "LLDP", "rid": "2", "age": "0 day, 00:00:02",
"chassis": {"t1": {"id": {"type": "mac", "value": "0e:ed:19:d4:1e:71"}, "descr": "Cumulus",
"mgmt-ip": "fe80::ced:19ff:fed4:1e71", "mgmt-iface": "5", "capability": [{"type": "Bridge", "enabled": true},
{"type": "Router", "enabled": true}, {"type": "Wlan", "enabled": false},
{"type": "Station", "enabled": false}]}},
"port": {"id": {"type": "ifname", "value": "swp1"}, "descr": "swp1", "ttl": "120", "auto-negotiation":
{"supported": false, "enabled": false,
"current": "10GbaseT - Four-pair Category 6A or better, full duplex mode only"}}}}}}
"""


def test_lldpd_output_with_a_single_neighbour_is_read(tmp_path: Path) -> None:
    (tmp_path / "h1.json").write_text(REAL)
    topology = read(Format.LLDP, [tmp_path / "h1.json"])
    assert [(host.name, host.rack, host.nic_bps) for host in topology.hosts] == [("h1", "t1", 10**10)]


def test_hosts_that_share_a_pair_of_tors_are_one_rack(tmp_path: Path) -> None:
    for host, tors in (("h1", ["t1", "t2"]), ("h2", ["t2"]), ("h3", ["t3"])):
        (tmp_path / f"{host}.json").write_text(lldp(host, tors, {"t1", "t2", "t3"}, "json"))
    files = sorted(tmp_path.iterdir())
    topology = read(Format.LLDP, files)
    assert [(host.name, host.rack) for host in topology.hosts] == [
        ("h1", "t1_t2"),
        ("h2", "t1_t2"),
        ("h3", "t3"),
    ]
    assert [host.nic_bps for host in topology.hosts] == [2 * 10**11, 10**11, 10**11]


def test_patterns_select_the_switches_if_hosts_announce_as_switches(tmp_path: Path) -> None:
    every = {"leaf1", "spine1", "h1", "h2"}
    (tmp_path / "leaf1.json").write_text(lldp("leaf1", ["h1", "h2", "spine1"], every, "json"))
    file = tmp_path / "leaf1.json"
    with pytest.raises(InputError, match="no host is linked to a switch"):
        read(Format.LLDP, [file])
    topology = read(Format.LLDP, [file], tors="leaf*", spines="spine*")
    assert [(host.name, host.rack) for host in topology.hosts] == [("h1", "leaf1"), ("h2", "leaf1")]
    assert topology.rack_links == {"leaf1": 10**11}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("node[08-11]", ["node08", "node09", "node10", "node11"]),
        ("n[1,3-4],m", ["n1", "n3", "n4", "m"]),
        ("r[1-2]n[01-02].x", ["r1n01.x", "r1n02.x", "r2n01.x", "r2n02.x"]),
    ],
)
def test_host_lists_are_expanded_as_slurm_does(text: str, names: list[str]) -> None:
    assert expand(text, 100) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n[1-2", "closed"),
        ("n1]", "closed"),
        ("n[2-1]", "ends before"),
        ("n[a]", "numbers and ranges"),
        ("n[]", "numbers and ranges"),
        ("n,,m", "single commas"),
        ("n[1-101]", "more than 100"),
        ("n[1-11]m[1-11]", "more than 100"),
        ("n[0-99999999999999999999]", "more than 100"),
    ],
)
def test_invalid_host_lists_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        expand(text, 100)


WRONG = [
    ("hdfs", "a /r1\nb r2\n", "2: rack: `r2`: expected a path"),
    ("hdfs", "a /r1 x\n", "1: `a /r1 x`: expected a host and its rack"),
    ("hdfs", "a /p/r1\nb /r2\n", "2: rack: `/r2`: expected a rack as deep as `/p/r1`"),
    ("hdfs", "# none\n", "no hosts in what is read as hdfs"),
    ("hdfs", "a /r1\n\u00e9 /r1\n", "2: host: `\u00e9`: expected a name"),
    ("slurm", "SwitchName=a Nodes=n[3-1]", "1: nodes: `[3-1]`: the range 3-1 ends"),
    ("slurm", "\nSwitchName=a\n", "2: a: expected either Nodes= or Switches="),
    ("slurm", "SwitchName=a Switches=b", "1: Switches: `b`: no line defines"),
    ("slurm", "Node=a", "1: `Node=a`: expected SwitchName= or BlockName="),
    ("slurm", "SwitchName=a Nodes=b Colour=red", "1: colour: not known; expected one of linkspeed"),
    ("slurm", "SwitchName=a Nodes=b\nSwitchName=a Nodes=c", "2: a: already defined on line 1 of"),
    ("slurm", "SwitchName=a Nodes=b\nSwitchName=c Switches=a,d\nSwitchName=d Switches=c", "above itself"),
    ("slurm", "SwitchName=a Nodes=n[0-9999999]", "1: nodes: `[0-9999999]`: more than"),
    ("kubernetes", "{", "1:2: not valid JSON"),
    ("kubernetes", "a: [", "not valid YAML"),
    ("kubernetes", "[" * 100_000, "nested too deeply"),
    ("kubernetes", "- " * 100_000, "file: "),
    ("kubernetes", "{}", "items: expected a list of nodes"),
    ("kubernetes", '{"items": [1]}', "items[0]: expected a node"),
    ("kubernetes", '{"items": [{}]}', "items[0].metadata: expected an object"),
    ("kubernetes", '{"items": [{"metadata": {"labels": {"a": "b"}}}]}', "items[0].metadata.name"),
    ("kubernetes", '{"items": [{"metadata": {"name": "n"}}]}', "no node has a label"),
    ("lldp", "{}", "expected `lldp`"),
    ("lldp", "[]", "expected `lldp`"),
    ("lldp", '{"lldp": {"interface": [1]}}', "lldp.interface: expected objects"),
    ("lldp", '{"lldp": {"interface": {"a": 1}}}', "lldp.interface.a: expected an object"),
    ("lldp", '{"lldp": {"interface": {"a": {"chassis": {"id": 1}}}}}', "lldp.a: expected a chassis with"),
    ("lldp", '{"lldp": {}}', "no host is linked to a switch"),
]


@pytest.mark.parametrize(("form", "text", "error"), WRONG)
def test_invalid_files_are_rejected_with_line_and_field(
    tmp_path: Path, form: str, text: str, error: str
) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(InputError) as raised:
        read(Format(form), [tmp_path / "file"])
    assert error in str(raised.value)
    assert str(tmp_path / "file") in str(raised.value)


@pytest.mark.parametrize("quantity", ["x", "-1", "1Gi5", "9" * 50, "", "1EE", True, [1], "1e99"])
def test_invalid_kubernetes_quantities_are_rejected(tmp_path: Path, quantity: Any) -> None:
    node = {"metadata": {"name": "n", "labels": {RACK: "r"}}, "status": {"capacity": {"memory": quantity}}}
    (tmp_path / "file").write_text(json.dumps({"items": [node]}))
    with pytest.raises(InputError, match=r"items\[0\].status.capacity.memory"):
        read(Format.KUBERNETES, [tmp_path / "file"])


@pytest.mark.parametrize(
    ("quantity", "size"),
    [("527988584Ki", "527988584KiB"), ("64Gi", "64GiB"), ("1e3", "1000B"), ("2G", "1953125KiB")],
)
def test_kubernetes_quantities_become_sizes_of_cluster_files(
    tmp_path: Path, quantity: str, size: str
) -> None:
    capacity = {"memory": quantity, "cpu": "1500m"}
    node = {"metadata": {"name": "n", "labels": {RACK: "r"}}, "status": {"capacity": capacity}}
    (tmp_path / "file").write_text(json.dumps({"items": [node]}))
    (host,) = read(Format.KUBERNETES, [tmp_path / "file"]).hosts
    assert (host.memory, host.cpus) == (size, "1500m")


def test_hosts_of_a_rack_that_differ_are_written_one_by_one(tmp_path: Path) -> None:
    nodes = [
        {"metadata": {"name": name, "labels": {RACK: "r"}}, "status": {"capacity": capacity}}
        for name, capacity in (("a", {"cpu": "4"}), ("b", {"cpu": "8"}), ("c", {}))
    ]
    (tmp_path / "file").write_text(json.dumps({"items": nodes}))
    text = cluster_file(read(Format.KUBERNETES, [tmp_path / "file"]), FLAT)
    assert "cpus: 4 }" in text
    assert "cpus: 8 }" in text
    assert "- name: c\n" in text


def test_racks_with_the_same_name_in_two_pods_stay_separate(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a /p1/r1\nb /p2/r1\nc /p2/r2\n")
    assert import_hosts("hdfs", [tmp_path / "file"], PODS) == [
        ("a", "p1.r1", "p1"),
        ("b", "p2.r1", "p2"),
        ("c", "r2", "p2"),
    ]


def test_racks_with_the_same_name_stay_separate_when_pods_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a /p1/r1\nb /p2/r1\nc /p2/r2\nd /p1/p1\n")
    topology = read(Format.HDFS, [tmp_path / "file"], pods=False)
    assert [(host.name, host.rack, host.pod) for host in topology.hosts] == [
        ("a", "p1.r1", None),
        ("b", "p2.r1", None),
        ("c", "r2", None),
        ("d", "p1", None),
    ]
    assert topology.left_out.counts == {"no-pods": 2, "renamed": 2}
    (tmp_path / "file").write_text("a /p1/r1\nb /p2/r1\nc /p1/p2.r1\n")
    with pytest.raises(InputError, match=r"several pods have one, and the name p2\.r1 is taken"):
        read(Format.HDFS, [tmp_path / "file"], pods=False)


def test_a_rack_without_a_pod_stays_one_when_pods_are_left_out(tmp_path: Path) -> None:
    labels = [("a", "r1", "p1"), ("b", "r1", None), ("c", "r2", "p1"), ("d", "r2", "p2"), ("e", "r2", None)]
    nodes = [
        {
            "kind": "Node",
            "metadata": {"name": name, "labels": {"rack": rack} | ({} if pod is None else {"pod": pod})},
        }
        for name, rack, pod in labels
    ]
    (tmp_path / "file").write_text(json.dumps({"items": nodes}))
    topology = read(Format.KUBERNETES, [tmp_path / "file"], rack_label="rack", pod_label="pod", pods=False)
    assert [host.rack for host in topology.hosts] == ["r1", "r1", "p1.r2", "p2.r2", "r2"]


def test_hosts_left_out_are_counted_by_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(
        "Rack: /r1\n   10.0.0.1:9866 (a) In Service\n   10.0.0.2:9866 (b) Decommissioned\n"
        "   10.0.0.1:9866 (a)\n\nRack: /default-rack\n   10.0.0.9:9866\n\nRack: /r2\n"
        "   10.0.0.1:9866 (a)\n   10.0.0.3:9866 (c:d)\n"
    )
    topology = read(Format.HDFS, [tmp_path / "file"])
    assert [(host.name, host.rack) for host in topology.hosts] == [("a", "r1"), ("c-d", "r2")]
    assert topology.left_out.counts == {
        "decommissioned": 1,
        "duplicate": 1,
        "default-rack": 1,
        "second-rack": 1,
        "renamed": 1,
    }


def test_names_that_look_like_yaml_numbers_stay_strings(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("007 /1e3\nno /null\n0x10 /1_000\n")
    actual = import_hosts("hdfs", [tmp_path / "file"])
    assert actual == [("007", "1e3", None), ("0x10", "1_000", None), ("no", "null", None)]


SPEEDS = [
    ({}, "nic: the speed of interfaces of hosts is not known of 2: a, b"),
    ({"nic": "1Gbps"}, "rack_link: the speed of links of racks is not known of 2: r1, r2"),
    ({"nic": "1Gb", "rack_link": "1Gbps"}, "nic: `1Gb`: "),
    ({"nic": "2x", "rack_link": "1Gbps"}, "nic: `2x`: "),
    ({"nic": "0x1Gbps", "rack_link": "1Gbps"}, "nic: `0x1Gbps`: "),
    ({"nic": "9999x1000000Tbps", "rack_link": "1Gbps"}, "nic: `9999x1000000Tbps`: "),
    ({"nic": "1Gbps", "rack_link": "1Gbps", "oversubscription": "2"}, "oversubscription: `2`: expected this"),
    ({"nic": "1Gbps", "oversubscription": "0"}, "oversubscription: `0`: expected a positive number"),
    ({"nic": "1Gbps", "oversubscription": "nan"}, "oversubscription: `nan`: expected a positive number"),
    ({"nic": "1Gbps", "oversubscription": "2", "pod_link": "1Gbps"}, "pod_link: `1Gbps`: without effect"),
]


@pytest.mark.parametrize(("speeds", "error"), SPEEDS)
def test_missing_invalid_and_unused_speeds_are_named(
    tmp_path: Path, speeds: dict[str, str], error: str
) -> None:
    (tmp_path / "file").write_text("a /r1\nb /r2\n")
    with pytest.raises(InputError) as raised:
        cluster_file(read(Format.HDFS, [tmp_path / "file"]), Speeds(**speeds))
    assert str(raised.value).startswith(error)


def test_a_speed_may_be_a_port_count_times_a_rate(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a /r1\nb /r2\n")
    text = cluster_file(
        read(Format.HDFS, [tmp_path / "file"]), Speeds(nic="2x25Gbps", rack_link="4 x 2.5Gbit/s")
    )
    links = Cluster.from_text(text).links().to_pydict()
    assert dict(zip(links["name"], links["capacity_bps"], strict=True))["r1:uplink"] == 10**10
    assert "nic: 50Gbps" in text


KEYS = """kind items metadata name labels status capacity cpu memory lldp interface chassis id value port
capability local-chassis auto-negotiation current type enabled"""
WORDS = """SwitchName= BlockName= Nodes= Switches= LinkSpeed= BlockSizes= n[1-3] a b c , [ ] - = # \\ Rack:
/r /p/r 1 ( ) a: &x *x {"""
json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS.split()) | st.just(RACK),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)
words = st.sampled_from([*WORDS.split(), "\n"])


@pytest.mark.hypothesis
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(
    form=st.sampled_from(Format),
    content=st.binary(max_size=60)
    | st.lists(words, max_size=20).map(lambda parts: " ".join(parts).encode())
    | json_like.map(lambda value: json.dumps(value).encode()),
)
def test_random_files_give_a_cluster_or_an_input_error(tmp_path: Path, form: Format, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    try:
        topology = read(form, [file])
    except InputError as refused:
        text = str(refused)
    else:
        text = ""
    if text:
        assert str(file) in text
        return
    pods = any(host.pod for host in topology.hosts)
    nic = "25Gbps" if any(host.nic_bps is None for host in topology.hosts) else None
    link = "4x100Gbps" if topology.racks().keys() - topology.rack_links.keys() else None
    speeds = Speeds(nic=nic, rack_link=link, pod_oversubscription="2" if pods else None)
    actual = Cluster.from_text(cluster_file(topology, speeds))
    assert actual.hosts == len(topology.hosts)


def test_the_examples_are_imported_as_complete_clusters() -> None:
    assert len(import_hosts("kubernetes", [EXAMPLES / "nodes.json"], PODS)) == 6
    assert len(import_hosts("slurm", [EXAMPLES / "topology.conf"], PODS)) == 62
    assert len(import_hosts("hdfs", [EXAMPLES / "racks.txt"], PODS)) == 6
    assert len(import_hosts("lldp", sorted((EXAMPLES / "lldp").iterdir()), Speeds())) == 4


def test_yaml_of_nodes_is_read_like_json(tmp_path: Path) -> None:
    nodes = "kind: List\nitems:\n- metadata:\n    name: n1\n    labels:\n      rack: r1\n"
    (tmp_path / "nodes.yaml").write_text(nodes)
    assert import_hosts("kubernetes", [tmp_path / "nodes.yaml"], rack_label="rack") == [("n1", "r1", None)]


Run = Callable[..., Any]


def test_the_command_writes_a_loadable_file_and_prints_a_summary(run: Run, tmp_path: Path) -> None:
    (tmp_path / "racks.txt").write_text("a /r1\nb /r2\nc /default-rack\n")
    result = run(
        "cluster",
        "import",
        "hdfs",
        "racks.txt",
        "--nic",
        "25Gbps",
        "--oversubscription",
        "3",
        "--out",
        "c.yaml",
    )
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.splitlines() == [
        "hdfs: 2 hosts, 2 racks; each rack has 1 host",
        "warning: every rack has a single host: the names of racks may be those of hosts",
        "left out: 1 default-rack (the topology script does not know the rack of the host): c",
    ]
    assert "r2 uplink" not in run("cluster", "show", "c.yaml").stderr
    assert Cluster.from_file(str(tmp_path / "c.yaml")).hosts == 2


def test_invalid_options_are_named_and_no_file_is_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "racks.txt").write_text("a /r1\nb /r2\n")
    result = run(
        "cluster", "import", "hdfs", "racks.txt", "--nic", "25Gb", "--rack-link", "1Gbps", "--out", "c.yaml"
    )
    assert result.returncode == 2
    assert "error: --nic: `25Gb`: " in result.stderr
    assert not (tmp_path / "c.yaml").exists()
    completed = run("cluster", "import", "hdfs", "racks.txt", "--rack-label", "x")
    assert "error: --rack-label: `x`: only valid for kubernetes, not for hdfs" in completed.stderr
