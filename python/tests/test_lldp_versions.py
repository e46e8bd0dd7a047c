"""Outputs of lldpd and of systemd-networkd, in the forms of several versions."""

import json
from pathlib import Path
from typing import Any

import pytest

from leeward import InputError
from leeward.importers import Format, read

MAU = "10GbaseT - Four-pair Category 6A or better, full duplex mode only"
BRIDGE = {"type": "Bridge", "enabled": True}
STATION = {"type": "Station", "enabled": False}
ID = {"type": "mac", "value": "00:00:5e:00:53:01"}
PORT = {"id": {"type": "ifname", "value": "swp1"}, "descr": "swp1", "ttl": "120"}
HEAD = {"via": "LLDP", "rid": "1", "age": "0 day, 00:00:03"}


def speed(current: str) -> dict[str, Any]:
    return {"auto-negotiation": {"supported": True, "enabled": True, "current": current}}


JSON0 = {
    "lldp": [
        {
            "interface": [
                {
                    "name": "eth0",
                    **HEAD,
                    "chassis": [{"id": [ID], "name": [{"value": "leaf1"}], "capability": [BRIDGE, STATION]}],
                    "port": [{"id": [PORT["id"]], "auto-negotiation": [{"current": [{"value": MAU}]}]}],
                }
            ]
        }
    ]
}
"""The only form of lldpd 0.7 and 0.8, and json0 of later versions."""
V09 = {
    "lldp": {
        "interface": {
            "eth0": {
                **HEAD,
                "chassis": {"leaf1": {"id": ID, "ttl": "120", "capability": BRIDGE}},
                "port": {"id": PORT["id"], "descr": "swp1", **speed(MAU)},
            }
        }
    }
}
"""lldpd 0.9: a single port, address or capability has no list; the time to live is of the chassis."""
V10 = {
    "lldp": {
        "interface": [
            {
                "eth0": {
                    **HEAD,
                    "chassis": {
                        "leaf1": {
                            "id": ID,
                            "descr": "Debian GNU/Linux 12 (bookworm)",
                            "mgmt-ip": ["192.0.2.1", "2001:db8::1"],
                            "mgmt-iface": ["2", "2"],
                            "capability": [BRIDGE, STATION],
                        }
                    },
                    "port": PORT | speed(MAU),
                    "vlan": {"vlan-id": "10", "pvid": True, "value": "vlan10"},
                    "unknown-tlvs": {
                        "unknown-tlv": {"oui": "00,12,0F", "subtype": "9", "len": "1", "value": "01"}
                    },
                }
            }
        ]
    }
}
CDP = {
    "lldp": {
        "interface": [
            {
                "eth0": {
                    "via": "CDPv2",
                    "rid": "2",
                    "age": "0 day, 00:00:40",
                    "chassis": {"leaf1": {"id": {"type": "local", "value": "leaf1"}, "capability": [BRIDGE]}},
                    "port": {"id": {"type": "ifname", "value": "Ethernet1/1"}, **speed(MAU)},
                }
            }
        ]
    }
}
"""A switch that sends CDP, to lldpd with the option -c."""


def networkctl(**fields: Any) -> dict[str, Any]:
    neighbour = {"ChassisID": "00:00:5e:00:53:01", "PortID": "swp1", "SystemName": "leaf1"} | fields
    return {"Neighbors": [{"InterfaceIndex": 2, "InterfaceName": "eth0", "Neighbors": [neighbour]}]}


@pytest.mark.parametrize(
    ("output", "nic_bps"),
    [
        (JSON0, 10**10),
        (V09, 10**10),
        (V10, 10**10),
        (CDP, 10**10),
        # systemd 254, and 257 with its raw identifiers.
        (networkctl(EnabledCapabilities=20), None),
        (
            networkctl(
                EnabledCapabilities=4, RawChassisID=[4, 0, 0, 94, 0, 83, 1], PortDescription="swp1", VlanID=10
            ),
            None,
        ),
    ],
    ids=["json0", "0.9", "1.0", "CDP", "systemd 254", "systemd 257"],
)
def test_a_neighbour_is_read_from_the_output_of_every_version(
    tmp_path: Path, output: dict[str, Any], nic_bps: int | None
) -> None:
    (tmp_path / "h1.json").write_text(json.dumps(output, indent=2))
    topology = read(Format.LLDP, [tmp_path / "h1.json"])
    assert [(host.name, host.rack, host.nic_bps) for host in topology.hosts] == [("h1", "leaf1", nic_bps)]


@pytest.mark.parametrize(
    ("current", "nic_bps"),
    [
        ("100BaseTXFD - 2 pair category 5 UTP, full duplex mode", 10**8),
        ("1000BaseTFD - Four-pair Category 5 UTP, full duplex mode", 10**9),
        ("1000baseT1 - 1000BASE-T1 single balanced twisted-pair copper cabling PHY", 10**9),
        ("2p5GigT - 2.5GBASE-T Four-pair twisted-pair balanced copper cabling PHY", 25 * 10**8),
        ("2p5GbaseX - 2.5GBASE-X PCS/PMA over undefined PMD", 25 * 10**8),
        ("5GigT - 5GBASE-T Four-pair twisted-pair balanced copper cabling PHY", 5 * 10**9),
        ("10GigBaseLR - R fiber over 1310 nm optics", 10**10),
        ("25GbaseCRS - 25GBASE-R PCS/PMA over shielded balanced copper cable  without RS-FEC", 25 * 10**9),
        ("400GbaseSR16 - 400GBASE-R PCS/PMA over 16-lane multimode fiber PMD", 4 * 10**11),
        # One rate to the host, and another from it.
        ("10G1GbasePRXD1 - One single-mode fiber asymmetric-rate EPON OLT", None),
        ("unknown", None),
    ],
)
def test_the_speed_of_a_port_follows_from_its_type(tmp_path: Path, current: str, nic_bps: int | None) -> None:
    interface = {"chassis": {"leaf1": {"id": ID, "capability": BRIDGE}}, "port": speed(current)}
    (tmp_path / "h1.json").write_text(json.dumps({"lldp": {"interface": {"eth0": interface}}}))
    (host,) = read(Format.LLDP, [tmp_path / "h1.json"]).hosts
    assert host.nic_bps == nic_bps


PLAIN = (
    f"{'-' * 79}\nLLDP neighbors:\n{'-' * 79}\nInterface:    eth0, via: LLDP, RID: 1, Time: 0 day, 00:00:03\n"
)
TABLE = "LINK CHASSIS-ID       SYSTEM-NAME CAPS    PORT-ID\neth0 00:00:5e:00:53:01 leaf1       ..b.... swp1\n"
OWN = {"status": "RX and TX", "chassis": {"h1": {"id": ID}}, "port": {"descr": "eth0"}, "ttl": {"ttl": "120"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lldp.eth0.via=LLDP\nlldp.eth0.chassis.name=leaf1\n", "the keyvalue form of lldpctl: expected JSON"),
        ('<?xml version="1.0" encoding="UTF-8"?>\n<lldp label="LLDP neighbors"/>', "the XML form of lldpctl"),
        (PLAIN, "the plain form of lldpctl"),
        (TABLE, "a table of networkctl: expected JSON"),
        (json.dumps({"lldp": {"interface": {"eth0": OWN}}}), "lldp.interface.eth0: the port itself"),
        (
            '{"lldp": {"interface": {"eth0": {"tx": {"tx": "2"}, "rx": {"rx": "2"}}}}}',
            "lldp.interface.eth0: expected `chassis`; found `tx`, `rx`",
        ),
        ('{"lldp": {"summary": {"tx": {"tx": "2"}}}}', "lldp: expected `interface`; found `summary`"),
        ('{"lldp-added": {"interface": {}}}', "found `lldp-added`"),
        ('{"configuration": {"config": {"tx-delay": "30"}}}', "found `configuration`"),
        ('{"Neighbors": [{"InterfaceName": "eth0"}]}', "Neighbors[0]: expected `InterfaceName` and"),
        (json.dumps(networkctl(EnabledCapabilities=["bridge"])), 'expected a number; found `["bridge"]`'),
        (json.dumps(networkctl(SystemName=3)), "expected `SystemName` or `ChassisID`; found `ChassisID`"),
    ],
)
def test_an_output_of_another_form_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "h1.json").write_text(text)
    with pytest.raises(InputError) as raised:
        read(Format.LLDP, [tmp_path / "h1.json"])
    assert message in str(raised.value)


@pytest.mark.parametrize("text", ['{"lldp": {}}', '{"lldp": [{}]}', '{"Neighbors": []}'])
def test_a_device_without_neighbours_is_counted(tmp_path: Path, text: str) -> None:
    (tmp_path / "h1.json").write_text(json.dumps(V10))
    (tmp_path / "h2.json").write_text(text)
    topology = read(Format.LLDP, [tmp_path / "h1.json", tmp_path / "h2.json"])
    assert topology.left_out.examples["no-neighbours"] == ["h2"]
