"""NetBox: devices, interfaces and cables, as its REST API or GraphQL returns them in JSON.

The files hold answers for `/api/dcim/devices/`, `/api/dcim/cables/` and, for speeds, `/api/dcim/interfaces/`
(https://netboxlabs.com/docs/netbox/), each whole: an answer with a `next` page is an error. The role of a
device tells hosts from switches by its last known word: `server`, `compute` or `gpu` is that of a host, and
`leaf`, `spine`, `switch` or `router` that of a switch. So an `edge-server` is a host.

Names are unique within a site. If devices are of several sites, racks and locations have the site's name
before theirs, and so have devices whose name another site has too.

With cables, racks and pods follow from links, as those of LLDP. Without cables, they are the racks and
locations of devices.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from leeward.errors import InputError
from leeward.importers import lldp
from leeward.importers.graph import HOST_WORDS, SWITCH_WORDS
from leeward.importers.topology import Host, Topology

_TYPE = re.compile(r"(\d+(?:\.\d+)?)(g?)base", re.ASCII)
_KBPS = 1000
_ABSENT = ("planned", "staged", "inventory", "decommissioning")
"""Status of devices that carry no traffic yet, or no more."""
_SKIPPED = (
    "frontport",
    "rearport",
    "consoleport",
    "consoleserverport",
    "powerport",
    "poweroutlet",
    "powerfeed",
)


@dataclass
class _Export:
    """Objects of all files, with their places."""

    devices: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    cables: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    interfaces: dict[str, dict[str, Any]] = field(default_factory=dict)


def read(topology: Topology, tors: str | None, spines: str | None) -> None:
    """Adds the hosts, racks and pods of all files, which describe one network together.

    Raises:
        InputError: A file is no such answer or only its first page, or no host has a rack.
    """
    export = _Export()
    for file, text in topology.texts():
        for place, item in _items(file, text):
            _sort(topology, file, place, item, export)
    sites = _Sites(topology, export)
    names = _Names()
    hosts, switches = _devices(topology, export, sites, names)
    if not export.cables:
        _by_rack(topology, hosts, sites)
        return
    view = lldp.View()
    for name in (*hosts, *switches):
        view.places[name] = topology.files[0]
    view.announcers = {*hosts, *switches}
    view.switches = switches
    for file, place, cable in export.cables:
        _cable(topology, file, place, cable, export, names, view)
    try:
        lldp.place(topology, view, tors, spines)
    except InputError as error:
        panels = sum(number for reason, number, _ in topology.left_out if reason == "not-an-interface")
        if panels:
            why = "cables through patch panels are not followed"
            error.add_note(f"{panels:,} cables have an end that is no interface; {why}")
        raise


def _devices(
    topology: Topology, export: _Export, sites: "_Sites", names: "_Names"
) -> tuple[dict[str, tuple[str, str, dict[str, Any]]], set[str]]:
    """Hosts with their places and records, and switches; adds the names of both."""
    hosts, switches = {}, set()
    for file, place, device in export.devices:
        name = _name(device)
        if not name:
            topology.left_out.count("no-name", 1, f"{place}: id {device.get('id')}")
            continue
        status = str(_inside(device, "status") or "").lower()
        if status in _ABSENT:
            topology.left_out.count("not-active", 1, f"{name}: {status}")
            continue
        valid = names.add(device, topology.name(sites.device(device), file, None, place))
        is_host = _is_host(_role(device).lower())
        if is_host is None:
            topology.left_out.count("other-role", 1, f"{name}: {_role(device) or 'no role'}")
        elif is_host:
            hosts[valid] = (file, place, device)
        else:
            switches.add(valid)
    return hosts, switches


def _items(file: str, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects of a file, each with its place in the file."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(file, error.lineno, error.colno, None, f"not valid JSON: {error.msg}") from None
    except (RecursionError, ValueError):
        raise InputError.about(file, "nested too deeply, or a number too long") from None
    if isinstance(document, dict) and isinstance(document.get("data"), dict):
        lists = {f"data.{key}": value for key, value in document["data"].items()}
    elif isinstance(document, dict) and "results" in document:
        if document.get("next"):
            results = document["results"]
            number = len(results) if isinstance(results, list) else 0
            message = f"only {number:,} of {document.get('count', 'more')} objects: there is another page"
            partial = InputError(file, None, None, "next", message)
            partial.add_note("ask with ?limit=0, or give a file for each page without `next`")
            raise partial
        lists = {"results": document["results"]}
    else:
        lists = {"list": document}
    for key, items in lists.items():
        if not isinstance(items, list):
            raise InputError(
                file, None, None, key, "expected `results` of the REST API, or a list of objects"
            )
        for number, item in enumerate(items):
            if not isinstance(item, dict):
                raise InputError(file, None, None, f"{key}[{number}]", "expected an object")
            yield f"{key}[{number}]", item


def _sort(topology: Topology, file: str, place: str, item: dict[str, Any], export: _Export) -> None:
    """Puts an object where it belongs, by the fields that it has."""
    if {"a_terminations", "termination_a", "termination_a_id"} & item.keys():
        export.cables.append((file, place, item))
    elif "device_type" in item or {"role", "device_role"} & item.keys():
        export.devices.append((file, place, item))
    elif "device" in item and "type" in item and "id" in item:
        export.interfaces[str(item["id"])] = item
    else:
        topology.left_out.count("not-a-device", 1, place)


def _inside(item: dict[str, Any], *keys: str) -> Any:
    """Value of a key, or of the first of its fields that stands for it."""
    for key in keys:
        value = item.get(key)
        if isinstance(value, dict):
            value = value.get("value") or value.get("slug") or value.get("name")
        if value:
            return value
    return None


def _role(device: dict[str, Any]) -> str:
    return str(_inside(device, "role", "device_role") or "")


def _is_host(role: str) -> bool | None:
    """True for a role of hosts, false for one of switches, by its last known word; None without one."""
    for word in (role, *reversed(re.split(r"[^a-z]+", role))):
        # A plural is of the same kind.
        known = {word, word.removesuffix("s"), word.removesuffix("es")} & (HOST_WORDS | SWITCH_WORDS)
        if known:
            return bool(known & HOST_WORDS)
    return None


def _name(device: dict[str, Any]) -> str:
    name = device.get("name") or _inside(device, "display")
    return name.strip() if isinstance(name, str) else ""


class _Sites:
    """Names that tell apart what two sites call alike."""

    def __init__(self, topology: Topology, export: _Export) -> None:
        devices = [device for _, _, device in export.devices]
        self.several = len({self.of(device) for device in devices}) > 1
        self.names = Counter({(self.of(device), _name(device)) for device in devices})
        self.taken = Counter(name for _, name in self.names)
        if self.several:
            topology.notes.append("racks and locations of several sites have the site's name before theirs")

    @staticmethod
    def of(device: dict[str, Any]) -> str:
        return str(_inside(device, "site") or "")

    def device(self, device: dict[str, Any]) -> str:
        """Name of a device, with its site if another site has the name too."""
        name = _name(device)
        return f"{self.of(device)}-{name}" if self.taken[name] > 1 else name

    def within(self, device: dict[str, Any], name: str) -> str:
        """Name of a rack or location of a device."""
        return f"{self.of(device)}-{name}" if self.several else name


class _Names:
    """Valid names of devices, by id and by name."""

    def __init__(self) -> None:
        self._by_id: dict[str, str] = {}
        self._by_name: dict[str, str] = {}

    def add(self, device: dict[str, Any], valid: str) -> str:
        if device.get("id") is not None:
            self._by_id[str(device["id"])] = valid
        # A name of two sites says nothing.
        name = _name(device)
        self._by_name[name] = "" if name in self._by_name else valid
        return valid

    def of(self, device: Any) -> str:
        """Valid name of the device at an interface; empty if unknown."""
        identity = str(device.get("id")) if isinstance(device, dict) else ""
        return self._by_id.get(identity) or self._by_name.get(_shown(device), "")


def _shown(device: Any) -> str:
    name = (device.get("name") or device.get("display")) if isinstance(device, dict) else device
    return name if isinstance(name, str) else ""


def _by_rack(topology: Topology, hosts: dict[str, tuple[str, str, dict[str, Any]]], sites: _Sites) -> None:
    """Adds hosts by the racks and locations that their devices name."""
    topology.notes.append("there are no cables: racks are those in which devices stand")
    for name, (file, place, device) in hosts.items():
        rack = device.get("rack")
        rack_name = rack.get("name") if isinstance(rack, dict) else rack
        if not isinstance(rack_name, str) or not rack_name.strip():
            topology.left_out.count("no-rack", 1, name)
            continue
        location = device.get("location")
        pod = location.get("name") if isinstance(location, dict) else location
        pod_name = None
        if isinstance(pod, str):
            pod_name = topology.name(sites.within(device, pod), file, None, f"{place}.location")
        rack_name = topology.name(sites.within(device, rack_name), file, None, f"{place}.rack")
        topology.add(Host(name, rack_name, pod_name), file)


def _cable(
    topology: Topology,
    file: str,
    place: str,
    cable: dict[str, Any],
    export: _Export,
    names: "_Names",
    view: lldp.View,
) -> None:
    """Adds the links of a cable between interfaces of two devices."""
    if _inside(cable, "status") not in (None, "connected", "Connected"):
        topology.left_out.count("not-connected", 1, f"{place}: {_inside(cable, 'status')}")
        return
    sides = []
    for side in ("a", "b"):
        ends = cable.get(f"{side}_terminations", cable.get(f"termination_{side}"))
        ends = ends if isinstance(ends, list) else [] if ends is None else [ends]
        found = [_interface(end, export) for end in ends]
        devices = [interface.get("device") for interface in found]
        if not devices or not all(_shown(device) for device in devices):
            topology.left_out.count("not-an-interface", 1, f"{place}: side {side}")
            return
        sides.append(list(zip(devices, found, strict=True)))
    first, second = sides
    # A cable that splits has one end on one side, and an end for each branch on the other.
    for at in range(max(len(first), len(second))):
        (first_device, left), (second_device, right) = first[at % len(first)], second[at % len(second)]
        one, other = names.of(first_device), names.of(second_device)
        shown = f"{one or _shown(first_device)} - {other or _shown(second_device)}"
        if left.get("mgmt_only") or right.get("mgmt_only"):
            topology.left_out.count("management-port", 1, shown)
        elif one not in view.announcers or other not in view.announcers:
            topology.left_out.count("other-device", 1, shown)
        elif one == other:
            topology.left_out.count("own-neighbour", 1, one)
        else:
            ends = sorted((one, other))
            speeds = [speed for speed in (_speed(left), _speed(right)) if speed]
            pair = (ends[0], ends[1])
            view.links.setdefault(pair, {}).setdefault(pair[0], []).append(min(speeds, default=0))


def _interface(end: Any, export: _Export) -> dict[str, Any]:
    """The interface at an end of a cable: what the end holds, and what the export of interfaces has of it."""
    if not isinstance(end, dict):
        return {}
    kind = str(end.get("object_type", end.get("__typename", ""))).lower().removeprefix("dcim.")
    if kind.removesuffix("type") in _SKIPPED:
        return {}
    content = end.get("object") if isinstance(end.get("object"), dict) else end
    identity = str(content.get("id", end.get("object_id", ""))) if isinstance(content, dict) else ""
    return {**(content or {}), **export.interfaces.get(identity, {})}


def _speed(interface: dict[str, Any]) -> int:
    """Speed of an interface in bits per second: its `speed` (kb/s), or that of its type; 0 if unknown."""
    speed = interface.get("speed")
    if isinstance(speed, int) and speed > 0:
        return speed * _KBPS
    match = _TYPE.match(str(_inside(interface, "type") or "").lower())
    if match is None:
        return 0
    return round(float(match[1]) * (10**9 if match[2] else 10**6))
