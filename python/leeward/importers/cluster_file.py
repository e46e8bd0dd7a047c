"""The cluster file of a topology and the speeds of its links."""

import json
import re
from collections import Counter
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import PurePath

from leeward._native import Cluster
from leeward._quantities import rate_literal, read_rate
from leeward.errors import InputError
from leeward.importers.topology import Host, Topology

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"}
_MOST_NAMES = 3
"""Number of hosts or racks in an error."""


@dataclass(frozen=True)
class Speeds:
    """Speeds of links, where the topology lacks them; the fields are those of a cluster file.

    Attributes:
        nic: Rate of all interfaces of a host: `25Gbps`, `2x25Gbps`.
        rack_link: Rate of all uplinks of a rack, and of its downlinks: `4x100Gbps`; instead of
            `oversubscription`.
        oversubscription: Rate of all interfaces in a rack divided by the rate of its uplinks: `3`.
        pod_link: Rate of all uplinks of a pod, and of its downlinks; instead of `pod_oversubscription`.
        pod_oversubscription: Rate of all rack uplinks in a pod divided by the rate of the pod's uplinks.
    """

    nic: str | None = None
    rack_link: str | None = None
    oversubscription: str | None = None
    pod_link: str | None = None
    pod_oversubscription: str | None = None


def cluster_file(topology: Topology, speeds: Speeds, name: str = "cluster") -> str:
    """Text of a cluster file, which `Cluster` reads.

    Args:
        topology: Hosts, racks and pods.
        speeds: Speeds of links.
        name: Display name of the cluster.

    Raises:
        InputError: A speed is missing, is given without effect, or is invalid; `file` is the field of
            `Speeds`.
    """
    racks = topology.racks()
    pods = dict.fromkeys(host.pod for host in topology.hosts if host.pod is not None)
    speed_fields = _check_speeds(topology, speeds, racks, list(pods))
    lines = [
        f"# Made by `leeward cluster import {topology.form}` from {_files(topology.files)}.",
        f"name: {_quote(name)}",
        *(f"{key}: {value}" for key, value in speed_fields.items()),
    ]
    if pods:
        lines += ["pods:"]
        for pod in pods:
            lines.append(f"  - name: {_quote(pod)}")
            if pod in topology.pod_links:
                lines.append(f"    link: {rate_literal(topology.pod_links[pod])}")
    lines.append("racks:")
    for rack, hosts in racks.items():
        lines += _rack(rack, hosts, topology.rack_links.get(rack))
    text = "\n".join(lines) + "\n"
    Cluster.from_text(text, "<cluster file>")
    return text


def _check_speeds(
    topology: Topology, speeds: Speeds, racks: dict[str, list[Host]], pods: list[str]
) -> dict[str, str]:
    """The speeds as fields of the file."""
    no_nic = [host.name for host in topology.hosts if host.nic_bps is None]
    no_link = [rack for rack in racks if rack not in topology.rack_links]
    _check_need(speeds, ("nic",), no_nic, "interfaces of hosts", "--nic 25Gbps")
    links = "--rack-link 4x100Gbps or --oversubscription 3"
    _check_need(speeds, ("rack_link", "oversubscription"), no_link, "links of racks", links)
    over = [pod for pod in pods if pod not in topology.pod_links]
    pod_links = "--pod-link 16x400Gbps or --pod-oversubscription 2; --no-pods leaves pods out"
    _check_need(speeds, ("pod_link", "pod_oversubscription"), over, "links of pods", pod_links)
    result = {}
    for field in fields(speeds):
        value = getattr(speeds, field.name)
        if value is not None:
            ratio = field.name.endswith("oversubscription")
            result[field.name] = (
                _ratio(field.name, value) if ratio else rate_literal(read_rate(field.name, value))
            )
    return result


def _check_need(
    speeds: Speeds, speed_names: tuple[str, ...], unknown: list[str], noun: str, flags: str
) -> None:
    """Checks that exactly one of some speeds is given if one is needed, and none otherwise."""
    names_given = [name for name in speed_names if getattr(speeds, name) is not None]
    if unknown and not names_given:
        names = ", ".join(unknown[:_MOST_NAMES]) + (", ..." if len(unknown) > _MOST_NAMES else "")
        where = "" if "pod" in speed_names[0] else f" of {len(unknown):,}: {names}"
        error = InputError.about(speed_names[0], f"the speed of {noun} is not known{where}")
        error.add_note(f"set it: {flags}")
        raise error
    if names_given and not unknown:
        message = f"`{getattr(speeds, names_given[0])}`: without effect: " + (
            f"the speed of all {noun} is known, or there are none"
            if "pod" in speed_names[0]
            else f"the speed of all {noun} is known"
        )
        raise InputError.about(names_given[0], message)
    if len(names_given) > 1:
        message = f"`{getattr(speeds, names_given[1])}`: expected this or {names_given[0]}, not both"
        raise InputError.about(names_given[1], message)


def _ratio(argument: str, text: str) -> str:
    """A positive number."""
    try:
        number = Decimal(text.strip())
    except ArithmeticError:
        number = Decimal(0)
    if not (number.is_finite() and Decimal("1e-6") <= number <= 10**6):
        message = f"`{text[:40]}`: expected a positive number, such as 3 for 3:1"
        raise InputError.about(argument, message)
    return f"{number.normalize():f}"


def _files(files: list[str]) -> str:
    names = [re.sub(r"[^\x20-\x7e]", "?", PurePath(file).name) for file in files[:_MOST_NAMES]]
    return ", ".join(names) + (f" and {len(files) - _MOST_NAMES} more" if len(files) > _MOST_NAMES else "")


def _quote(name: str) -> str:
    """A name as YAML text, in quotes where they are necessary."""
    return name if _PLAIN.fullmatch(name) and name.lower() not in _WORDS else json.dumps(name)


def _rack(rack: str, hosts: list[Host], link: int | None) -> list[str]:
    """Lines of a rack. The most frequent value of its hosts stands once, at the rack."""
    lines = [f"  - name: {_quote(rack)}"]
    if hosts[0].pod is not None:
        lines.append(f"    pod: {_quote(hosts[0].pod)}")
    if link is not None:
        lines.append(f"    link: {rate_literal(link)}")
    usual: dict[str, str] = {}
    for key in ("nic", "cpus", "memory"):
        values = [value for host in hosts if (value := _value(host, key)) is not None]
        # A host without a value must not inherit that of the others.
        if len(values) == len(hosts):
            usual[key] = Counter(values).most_common(1)[0][0]
            lines.append(f"    {key}: {usual[key]}")
    lines.append("    hosts:")
    for host in hosts:
        own = {key: _value(host, key) for key in ("nic", "cpus", "memory")}
        differs = [f"{key}: {value}" for key, value in own.items() if value not in (None, usual.get(key))]
        if differs:
            lines.append(f"      - {{ {', '.join([f'name: {_quote(host.name)}', *differs])} }}")
        else:
            lines.append(f"      - name: {_quote(host.name)}")
    return lines


def _value(host: Host, key: str) -> str | None:
    """Value of a host for one field of the file."""
    if key == "nic":
        return None if host.nic_bps is None else rate_literal(host.nic_bps)
    return host.cpus if key == "cpus" else host.memory
