"""LLDP: neighbours of hosts and switches, as lldpd or systemd-networkd prints them.

The forms are those of `lldpctl -f json` (or json0), and of `networkctl lldp --json=short`. Neither names its
version, so an error about another form names the fields or the text of the file.

A file is the view of one host or switch. The name of the device is in the file if `lldpcli -f json show
chassis` was written into the same file before; otherwise it is the name of the file without the suffix. One
or both ends may see a link; the number of links between two devices is the greater number of the two views.

*Kinds of switches.* A switch with a link to a host is a ToR. A switch with links to ToRs and no host is a
spine. Hosts that share a ToR, directly or through other hosts, are one rack, so that a pair of ToRs is one
rack. A switch whose hosts are of several racks by their other switches is of an out-of-band network, and
left out. Racks that share a spine are one pod. Devices that announce the capability bridge or router are
switches. Hosts that run containers announce these too; patterns then name ToRs and spines.

*Speeds* follow from the MAU types of ports (`100GbaseSR4`), if these are announced.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from leeward.errors import InputError
from leeward.importers.groups import Groups
from leeward.importers.topology import Host, Topology

_MAU = re.compile(r"(\d{1,6})(p5)? ?(G|Gig|M)?([bB]ase|T)", re.ASCII)
"""IEEE 802.3 types, as lldpd names them: `1000BaseTFD`, `10GigBaseLR`, `25GbaseCR`, `2p5GigT`."""
_SWITCH = {"Bridge", "Router"}
_CAPABILITY_BITS = {4: "Bridge", 16: "Router", 128: "Station"}
"""Bits of capabilities (IEEE 802.1AB, table 8-4)."""
_TEXTS = (
    (re.compile(r"lldp\.\S+="), "the keyvalue form of lldpctl", "lldpctl -f json"),
    (re.compile(r"<\?xml|<lldp"), "the XML form of lldpctl", "lldpctl -f json"),
    (re.compile(r"-{20,}\s+LLDP"), "the plain form of lldpctl", "lldpctl -f json"),
    (re.compile(r"LINK\s"), "a table of networkctl", "networkctl lldp --json=short, of systemd 254 or later"),
)
"""Beginning of an output that is not JSON, its name, and the command of the form in JSON."""

Link = tuple[str, str]


@dataclass
class View:
    """Devices and links of all files.

    `links` has for each pair of devices, and each end with a view, the speeds of the ports between them (0 if
    unknown); `announcers` has the devices with known capabilities, `switches` the switches among them, and
    `places` the file that names a device first.
    """

    links: dict[Link, dict[str, list[int]]] = field(default_factory=dict)
    announcers: set[str] = field(default_factory=set)
    switches: set[str] = field(default_factory=set)
    places: dict[str, str] = field(default_factory=dict)


def read(topology: Topology, tors: str | None, spines: str | None) -> None:
    """Adds hosts, racks and pods of all files.

    Raises:
        InputError: A file does not have this form, or no host has a link to a switch.
    """
    view = View()
    for file, text in topology.texts():
        _file(topology, file, text, view)
    place(topology, view, tors, spines)


def place(topology: Topology, view: View, tors: str | None, spines: str | None) -> None:
    """Adds the hosts, racks and pods of devices and the links between them.

    Raises:
        InputError: No host has a link to a switch.
    """
    near: dict[str, dict[str, None]] = {}
    for one, other in view.links:
        near.setdefault(one, {})[other] = None
        near.setdefault(other, {})[one] = None
    alone = view.announcers - view.switches - near.keys()
    topology.left_out.count("no-link", len(alone), *sorted(alone)[:3])
    switches, top = _roles(view, near, tors, spines)
    if tors is None:
        out_of_band = _out_of_band(near, switches, top)
        topology.left_out.count("out-of-band", len(out_of_band), *sorted(out_of_band)[:3])
        for name in out_of_band:
            for other in near.pop(name):
                near[other].pop(name, None)
        switches, top = switches - out_of_band, top - out_of_band
    racks = Groups()
    homes: dict[str, str] = {}
    for name, beside in near.items():
        if name in switches:
            continue
        above = [other for other in beside if other in top]
        if not above:
            topology.left_out.count("no-tor", 1, name)
            continue
        homes[name] = above[0]
        for tor in above:
            racks.join(above[0], tor)
    _add(topology, view, near, racks, homes, switches - top)
    if not topology.hosts:
        error = InputError.about(topology.files[0], "no host is linked to a switch")
        error.add_note("--tors and --spines are patterns of switch names, such as --tors 'leaf-*'")
        raise error


def _roles(
    view: View, near: dict[str, dict[str, None]], tors: str | None, spines: str | None
) -> tuple[set[str], set[str]]:
    """Switches, and those of them that are ToRs."""
    joining = {name for name in near if spines is not None and fnmatchcase(name, spines)}
    if tors is not None:
        # Another device that announces itself as a switch may be a host that runs containers.
        top = {name for name in near if fnmatchcase(name, tors)}
        return top | joining, top - joining
    # A device without a view is a switch if it has a link to a device that is known not to be one.
    stations = view.announcers - view.switches
    silent = {name for name in near.keys() - view.announcers if stations.intersection(near[name])}
    switches = (near.keys() & (view.switches | silent)) | joining
    return switches, {name for name in switches - joining if near[name].keys() - switches}


def _out_of_band(near: dict[str, dict[str, None]], switches: set[str], top: set[str]) -> set[str]:
    """ToRs that only join racks which their hosts' other ToRs keep apart.

    A switch of a management network sees the hosts of many racks. Each of its hosts is then linked to another
    ToR as well, and without the switch these hosts are of several racks. The widest are examined first.
    """
    found: set[str] = set()
    hosts = {tor: {name for name in near[tor] if name not in switches} for tor in top}
    for tor in sorted(top, key=lambda name: (-len(hosts[name]), name)):
        others = top - found - {tor}
        groups = Groups()
        homes: dict[str, str] = {}
        for one in sorted(others):
            for host in hosts[one]:
                groups.join(homes.setdefault(host, one), one)
        racks = {groups.of(homes[host]) for host in hosts[tor] if host in homes}
        if len(racks) > 1 and hosts[tor] <= homes.keys():
            found.add(tor)
    return found


def _add(
    topology: Topology,
    view: View,
    near: dict[str, dict[str, None]],
    racks: Groups,
    homes: dict[str, str],
    joining: set[str],
) -> None:
    """Adds hosts by the rack of one of their ToRs, racks by pod, and speeds."""
    members: dict[str, list[str]] = {}
    tors_used = {tor for name in homes for tor in near[name] if racks.of(tor) == racks.of(homes[name])}
    for tor in sorted(tors_used):
        members.setdefault(racks.of(tor), []).append(tor)
    pods = Groups()
    above: dict[str, list[str]] = {}
    for rack, rack_tors in members.items():
        above[rack] = sorted({other for tor in rack_tors for other in near[tor] if other in joining})
        for spine in above[rack]:
            pods.join(above[rack][0], spine)
    name_of_rack = {rack: "_".join(rack_tors) for rack, rack_tors in members.items()}
    for several in (name for rack, name in name_of_rack.items() if len(members[rack]) > 1):
        topology.notes.append(f"rack {several} has several ToRs")
    under: dict[str, list[str]] = {}
    for spine in sorted({spine for rack_spines in above.values() for spine in rack_spines}):
        under.setdefault(pods.of(spine), []).append(spine)
    for rack, spines in above.items():
        speeds = [_speed(view, tor, spine) for tor in members[rack] for spine in spines if spine in near[tor]]
        if speeds and all(speeds):
            topology.rack_links[name_of_rack[rack]] = sum(speeds)
    for name, tor in homes.items():
        rack = racks.of(tor)
        pod = "_".join(under[pods.of(above[rack][0])]) if above[rack] else None
        speeds = [_speed(view, name, other) for other in near[name] if other in members[rack]]
        host = Host(name, name_of_rack[rack], pod, nic_bps=sum(speeds) if all(speeds) else None)
        topology.add(host, view.places[name])


def _speed(view: View, one: str, other: str) -> int:
    """Rate of all links between two devices; 0 if one of them is unknown."""
    ends = view.links.get((one, other) if one < other else (other, one), {})
    most = max(ends.values(), key=lambda ports: (len(ports), min(ports)), default=[])
    return sum(most) if all(most) else 0


def _file(topology: Topology, file: str, text: str, view: View) -> None:
    """Reads the view of one device."""
    local, neighbours = topology.name(Path(file).stem, file, None, None), []
    for document in _documents(file, text):
        if not isinstance(document, dict):
            message = f"expected `lldp`, as lldpctl -f json prints it; found {_found(document)}"
            raise InputError.about(file, message)
        if "local-chassis" in document:
            for _, chassis in _chassis_below(_first(document["local-chassis"]), "chassis"):
                local = topology.name(_device(file, "local-chassis", chassis), file, None, "local-chassis")
                _note(view, local, chassis, file)
        elif "lldp" in document:
            neighbours += _interfaces(file, document["lldp"])
        elif "Neighbors" in document:
            neighbours += _networkctl(file, document["Neighbors"])
        else:
            expected = "`lldp`, as lldpctl -f json prints it, or `Neighbors` of networkctl lldp --json=short"
            raise InputError.about(file, f"expected {expected}; found {_found(document)}")
    view.places.setdefault(local, file)
    for port, interface in neighbours:
        field = f"lldp.{port}"
        for _, chassis in _chassis_below(interface, "chassis"):
            other = topology.name(_device(file, field, chassis), file, None, field)
            if other == local:
                topology.left_out.count("own-neighbour", 1, f"{local}: {port}")
                continue
            _note(view, other, chassis, file)
            pair = (local, other) if local < other else (other, local)
            view.links.setdefault(pair, {}).setdefault(local, []).append(_port_speed(interface))
    topology.left_out.count("no-neighbours", int(not neighbours), local)


def _note(view: View, name: str, chassis: dict[str, Any], file: str) -> None:
    """Keeps the announcement of a device."""
    view.places.setdefault(name, file)
    view.announcers.add(name)
    for capability in _several(chassis.get("capability")):
        enabled = isinstance(capability, dict) and capability.get("enabled") is True
        if enabled and capability.get("type") in _SWITCH:
            view.switches.add(name)


def _documents(file: str, text: str) -> Iterator[Any]:
    """JSON documents of a file, one after another."""
    decoder, at = json.JSONDecoder(), 0
    text = text.strip()
    for beginning, name, instead in _TEXTS:
        if beginning.match(text):
            error = InputError.about(file, f"{name}: expected JSON")
            error.add_note(instead)
            raise error
    while at < len(text):
        try:
            document, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise InputError(file, error.lineno, error.colno, None, f"not valid JSON: {error.msg}") from None
        except (RecursionError, ValueError):
            raise InputError.about(file, "nested too deeply, or a number too long") from None
        yield document
        while at < len(text) and text[at].isspace():
            at += 1


def _found(value: Any) -> str:
    """Names of the fields of an object, or the beginning of another value."""
    if isinstance(value, dict):
        return ", ".join(f"`{name[:40]}`" for name in list(value)[:6]) or "an empty object"
    return f"`{json.dumps(value)[:60]}`"


def _several(value: Any) -> list[Any]:
    """A list: json writes a single element without a list, and json0 always writes a list."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _first(value: Any) -> dict[str, Any]:
    """The single object of a list, or the object itself; an empty object for any other value."""
    one = _several(value)[:1]
    return one[0] if one and isinstance(one[0], dict) else {}


def _text(value: Any) -> str | None:
    """A text: json writes the text itself, and json0 a list of an object with a `value`."""
    if isinstance(value, str):
        return value
    inside = _first(value).get("value")
    return inside if isinstance(inside, str) else None


def _interfaces(file: str, lldp: Any) -> list[tuple[str, dict[str, Any]]]:
    """Ports that have a neighbour, and their views."""
    result: list[tuple[str, dict[str, Any]]] = []
    for part in _several(lldp):
        if isinstance(part, dict) and part and "interface" not in part:
            raise InputError(file, None, None, "lldp", f"expected `interface`; found {_found(part)}")
        interfaces = part.get("interface") if isinstance(part, dict) else part
        for item in _several(interfaces):
            if not isinstance(item, dict):
                raise InputError(file, None, None, "lldp.interface", "expected objects, one a port")
            if isinstance(item.get("name"), str) and "chassis" in item:
                result.append((item["name"], item))
                continue
            for port, interface in item.items():
                # Several neighbours of one port are a list.
                for view in _several(interface):
                    if not isinstance(view, dict):
                        raise InputError(
                            file, None, None, f"lldp.interface.{port[:40]}", "expected an object"
                        )
                    result.append((port, view))
    for port, view in result:
        place = f"lldp.interface.{port[:40]}"
        if "chassis" not in view:
            raise InputError(file, None, None, place, f"expected `chassis`; found {_found(view)}")
        if "status" in view and "via" not in view:
            error = InputError(file, None, None, place, "the port itself, expected its neighbours")
            error.add_note("lldpctl -f json prints neighbours; lldpcli show interfaces prints own ports")
            raise error
    return result


def _networkctl(file: str, interfaces: Any) -> list[tuple[str, dict[str, Any]]]:
    """Ports and views of systemd-networkd, in the form of lldpctl. It has no speeds."""
    result: list[tuple[str, dict[str, Any]]] = []
    for number, interface in enumerate(_several(interfaces)):
        port = interface.get("InterfaceName") if isinstance(interface, dict) else None
        if not isinstance(port, str) or "Neighbors" not in interface:
            message = f"expected `InterfaceName` and `Neighbors`; found {_found(interface)}"
            raise InputError(file, None, None, f"Neighbors[{number}]", message)
        for neighbour in _several(interface["Neighbors"]):
            place = f"Neighbors.{port[:40]}"
            name = _first(neighbour).get("SystemName") or _first(neighbour).get("ChassisID")
            bits = _first(neighbour).get("EnabledCapabilities", 0)
            if not isinstance(name, str):
                message = f"expected `SystemName` or `ChassisID`; found {_found(neighbour)}"
                raise InputError(file, None, None, place, message)
            if not isinstance(bits, int):
                message = f"`EnabledCapabilities`: expected a number; found {_found(bits)}"
                raise InputError(file, None, None, place, message)
            enabled = [
                {"type": kind, "enabled": True} for bit, kind in _CAPABILITY_BITS.items() if bits & bit
            ]
            result.append((port, {"chassis": {"id": name, "name": name, "capability": enabled}}))
    return result


def _chassis_below(parent: dict[str, Any], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Chassis below a key, each with its name (in json the key of the chassis) as a field."""
    for item in _several(parent.get(key)):
        if not isinstance(item, dict):
            continue
        if "id" in item or "name" in item or "capability" in item:
            yield key, item
            continue
        for name, inside in item.items():
            if isinstance(inside, dict):
                yield key, {**inside, "name": name}


def _device(file: str, field: str, chassis: dict[str, Any]) -> str:
    """Name of a device, or the id of its chassis."""
    name = _text(chassis.get("name")) or _text(chassis.get("id"))
    if not name:
        raise InputError(file, None, None, field, "expected a chassis with a name or an id")
    return name


def _port_speed(interface: dict[str, Any]) -> int:
    """Speed of the port at the other end, in bits per second; 0 if unknown."""
    negotiated = _first(_first(interface.get("port")).get("auto-negotiation"))
    match = _MAU.match(_text(negotiated.get("current")) or "")
    if match is None:
        return 0
    unit = 10**9 if (match[3] or "").startswith("G") else 10**6
    return int(match[1]) * unit + (unit // 2 if match[2] else 0)
