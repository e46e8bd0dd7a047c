"""Drafts of map files: the map of a server's ports, and what could not be placed."""

import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward import Cluster, InputError
from leeward.telemetry.draft import Drafted, from_prometheus
from leeward.telemetry.draft.families import families
from leeward.telemetry.draft.rules import one_of
from support.prometheus import END, Answer, good

CLUSTER = {"racks": 3, "hosts_per_rack": 4, "nic": "10Gbps", "rack_link": "40Gbps"}
NOW = 1000 * END
Labels = dict[str, str]
Fake = Callable[[Callable[[int, str], Answer]], str]


def prometheus(fake: Fake, metrics: dict[str, list[tuple[Labels, float]]]) -> str:
    """Address of a server with these metrics, each with its series and their values."""

    def answer(_: int, request_text: str) -> Answer:
        if "label/__name__" in request_text:
            return good(sorted(metrics))
        fields = parse_qs(request_text.split()[1])
        if "/series" in request_text:
            return good(
                [{"__name__": fields["match[]"][0], **one} for one, _ in metrics[fields["match[]"][0]]]
            )
        name = fields["query"][0]
        found: list[dict[str, Any]] = [
            {"metric": {"__name__": name, **one}, "value": [END, str(value)]} for one, value in metrics[name]
        ]
        return good({"resultType": "vector", "result": found})

    return fake(answer)


def counters(received: str, sent: str, ports: Iterable[Labels]) -> dict[str, list[tuple[Labels, float]]]:
    return {received: [(one, 1.0) for one in ports], sent: [(one, 1.0) for one in ports]}


def snmp(racks: int = 3, alias: str = "", speed: float = 10_000) -> dict[str, list[tuple[Labels, float]]]:
    """ToRs with ports 1 to 4 to hosts, and 49 to 52 to spines."""
    ports: list[Labels] = []
    for rack in range(racks):
        for port in (1, 2, 3, 4, 49, 50, 51, 52):
            ports.append({"job": "snmp", "instance": f"tor-r{rack}.dc1:161", "ifName": f"Ethernet{port}"})
            if alias:
                ports[-1]["ifAlias"] = f"r{rack}h{port - 1} eth0" if port < 49 else alias
    ports += [
        {"job": "snmp", "instance": f"tor-r{rack}.dc1:161", "ifName": "Management1"} for rack in range(racks)
    ]
    ports += [{"job": "snmp", "instance": "oob-sw1:161", "ifName": "Ethernet1"}]
    fast = [
        (one, speed if int("0" + one["ifName"][8:] if "Eth" in one["ifName"] else 0) > 48 else 25_000)
        for one in ports
    ]
    return counters("ifHCInOctets", "ifHCOutOctets", ports) | {"ifHighSpeed": fast, "up": [({}, 1.0)]}


def drafted(fake: Fake, metrics: dict[str, list[tuple[Labels, float]]], cluster: Any = CLUSTER) -> Drafted:
    return from_prometheus(prometheus(fake, metrics), cluster and Cluster(cluster), NOW)


def links_of(made: Drafted) -> dict[str, set[str]]:
    result: dict[str, set[str]] = {}
    for port, link in made.placed:
        result.setdefault(link, set()).add(port.labels.get("ifName") or port.labels.get("device", ""))
    return result


UPLINKS = {f"r{rack}:downlink": {f"Ethernet{port}" for port in (49, 50, 51, 52)} for rack in range(3)}


def test_uplinks_are_the_ports_whose_speeds_add_up_to_the_link_of_the_rack(fake: Fake) -> None:
    made = drafted(fake, snmp())
    assert links_of(made) == UPLINKS
    reasons = {port.text: reason for port, reason in made.unplaced}
    assert reasons["ifName=Ethernet1, instance=oob-sw1:161"] == "`instance` names no rack of the cluster"
    assert "no label names its host" in reasons["ifName=Ethernet1, instance=tor-r0.dc1:161"]
    assert {port.labels["ifName"] for port in made.ignored} == {"Management1"}
    assert "Their speeds add up to the link of the rack." in made.text
    assert not made.missing
    assert not made.capacities


def test_ports_whose_labels_name_hosts_and_spines_are_placed(fake: Fake) -> None:
    made = drafted(fake, snmp(alias="to spine-2"))
    hosts = {f"r{rack}h{host}:egress": {f"Ethernet{host + 1}"} for rack in range(3) for host in range(4)}
    assert links_of(made) == UPLINKS | hosts
    # The ports to hosts have 25 Gbps, and the cluster file says 10 Gbps.
    assert made.capacities == dict.fromkeys(hosts, (25000000000.0, 10000000000.0))


def test_without_evidence_no_port_is_guessed(fake: Fake) -> None:
    made = drafted(fake, snmp(speed=25_000))
    assert not made.placed
    assert len(made.unplaced) == 3 * 8 + 1


def test_racks_with_other_ports_have_rules_of_their_own(fake: Fake) -> None:
    metrics = snmp(alias="to spine-2")
    for series in metrics.values():
        for labels, _ in series:
            if labels.get("instance", "").startswith("tor-r1") and labels["ifName"] == "Ethernet52":
                labels["ifName"] = "Ethernet60"
    uplinks = UPLINKS | {"r1:downlink": {"Ethernet49", "Ethernet50", "Ethernet51", "Ethernet60"}}
    assert {
        name: ports for name, ports in links_of(drafted(fake, metrics)).items() if "down" in name
    } == uplinks


def test_hosts_that_see_their_own_links_are_placed(fake: Fake) -> None:
    ports = [
        {"job": "node", "instance": f"r{rack}h{host}.example:9100", "device": device}
        for rack in range(3)
        for host in range(4)
        for device in ("eth0", "lo", "docker0", "veth12ab")
        if (rack, host) != (2, 3)
    ]
    ports.append({"job": "node", "instance": "bastion:9100", "device": "eth0"})
    metrics = counters("node_network_receive_bytes_total", "node_network_transmit_bytes_total", ports)
    made = drafted(fake, metrics)
    wanted = {f"r{rack}h{host}:ingress": {"eth0"} for rack in range(3) for host in range(4)}
    del wanted["r2h3:ingress"]
    assert links_of(made) == wanted
    assert made.missing == ["r2h3:ingress"]
    assert [port.labels["instance"] for port, _ in made.unplaced] == ["bastion:9100"]


def test_without_a_cluster_each_device_is_a_place(fake: Fake) -> None:
    made = drafted(fake, snmp(alias="to spine-2"), cluster=None)
    assert {link for _, link in made.placed} == {"tor-r0:downlink", "tor-r1:downlink", "tor-r2:downlink"}


def test_the_better_counters_are_chosen_and_the_others_named(fake: Fake) -> None:
    ports = [one for one, _ in snmp()["ifHCInOctets"]]
    made = drafted(fake, snmp() | counters("ifInOctets", "ifOutOctets", ports))
    assert made.family.received == "ifHCInOctets"
    assert [other.received for other in made.others] == ["ifInOctets"]


@pytest.mark.parametrize(
    ("metrics", "pair", "unit"),
    [
        (["a_in_octets", "a_out_octets", "a_in_errors"], ("a_in_octets", "a_out_octets"), "octets"),
        (["port_rx_bytes", "port_tx_bytes"], ("port_rx_bytes", "port_tx_bytes"), "octets"),
        (
            ["x_receive_bits_total", "x_transmit_bits_total"],
            ("x_receive_bits_total", "x_transmit_bits_total"),
            "bits",
        ),
    ],
)
def test_pairs_of_counters_are_found_by_their_names(
    metrics: list[str], pair: tuple[str, str], unit: str
) -> None:
    (family,) = families(metrics)
    assert (family.received, family.sent, family.unit) == (*pair, unit)


@given(
    st.sets(
        st.from_regex(r"[a-zA-Z_.|()\[\]\\-]{0,4}\d{0,3}(/\d{1,2})?", fullmatch=True), min_size=1, max_size=6
    ),
    st.text(),
)
def test_a_pattern_of_names_matches_these_and_no_others(names: set[str], other: str) -> None:
    import re

    pattern = re.compile(one_of(names))
    assert all(pattern.fullmatch(name) for name in names)
    assert other in names or not pattern.fullmatch(other)


def test_a_server_without_ports_of_the_cluster_is_an_error(fake: Fake) -> None:
    with pytest.raises(InputError, match="no label of 9 ports names a host or a rack") as caught:
        drafted(
            fake,
            {
                name: [(one | {"instance": "10.0.0.1", "ifAlias": ""}, value) for one, value in series]
                for name, series in snmp().items()
            },
        )
    assert caught.value.__notes__ == ["names of the cluster: r0h0, r0h1, r0, r1, ..."]
    with pytest.raises(InputError, match="no counters of received and sent bytes among 1 metrics"):
        drafted(fake, {"up": [({}, 1.0)]})


def test_the_command_writes_a_map_that_hotspots_takes(
    run: Callable[..., subprocess.CompletedProcess[str]], fake: Fake, tmp_path: Path
) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
    out = tmp_path / "map.yaml"
    given = "--from-prometheus", prometheus(fake, snmp()), "--cluster", tmp_path / "cluster.json"
    ended = run("telemetry", "map", *given, "--out", out)
    assert ended.returncode == 0, ended.stderr
    assert "12 ports are 3 links, 3 are ignored, 13 are not placed" in ended.stderr
    telemetry = tmp_path / "loads.csv"
    rows = [
        f"{END + 60 * minute},tor-r{rack}.dc1:161,Ethernet{port},{minute * 10**9},{minute * 10**9}"
        for minute in range(10)
        for rack in range(3)
        for port in (49, 50, 51, 52)
    ]
    telemetry.write_text("\n".join(["time,instance,ifName,in,out", *rows]) + "\n")
    values = "in: {column: in, unit: octets}, out: {column: out, unit: octets}"
    columns = f"time: {{column: time, unit: s}}, labels: [instance, ifName], {values}"
    out.write_text(f"{out.read_text()}columns: {{{columns}}}\n")
    ended = run("hotspots", telemetry, "--cluster", tmp_path / "cluster.json", "--map", out, "-o", "json")
    assert ended.returncode == 0, ended.stderr
    assert {row["name"] for row in json.loads(ended.stdout)["links"]} == {
        f"r{rack}:{way}" for rack in range(3) for way in ("uplink", "downlink")
    }
