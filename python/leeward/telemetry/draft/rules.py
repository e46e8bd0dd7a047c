"""A draft of a map file, from the labels of the ports that a Prometheus server knows.

Names of the cluster's hosts and racks are looked for in the labels of each port. A device named as a host is
that host, which sees its own link. A device whose name contains a rack's is its ToR. A port of a ToR whose
labels name a host leads to that host; one whose labels speak of a spine, or whose speed adds up to the link
of the rack, leads up. What this does not tell is listed, and not guessed.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from leeward._native import Cluster
from leeward.errors import InputError
from leeward.telemetry.draft.families import Family

PORT_LABELS = ("ifName", "ifDescr", "interface_name", "interface", "device", "port", "name", "ifIndex")
"""Labels that name a port, the first of which counts."""
DEVICE_LABELS = (
    *("instance", "source", "target", "hostname", "host", "node", "nodename", "switch", "sysName", "agent"),
    "exported_instance",
)
"""Labels that name a device; others count if none of these names a host or a rack."""
VIRTUAL = (
    r"lo\d*|docker.*|veth.*|br-.*|virbr.*|cali.*|cni.*|flannel.*|tun.*|tap.*|wg\d+|dummy.*|kube-.*|vxlan.*"
    r"|nodelocaldns|cilium.*|lxc.*"
)
"""Interfaces of hosts whose traffic passes another interface too, or no wire."""
MANAGEMENT = r"(?i:ma?na?ge?me?nt.*|loopback.*|lo\d*|vlan.*|null.*|cpu.*|me\d.*|fxp.*)"
"""Ports of switches that are no links between machines, or whose traffic passes another port too."""
NEAR = 0.01
"""Greatest difference of a sum of speeds from the capacity of a link, relative to it."""
_UP = re.compile(r"(?<![a-z])(uplink|spine|core|agg|fabric|superspine)", re.IGNORECASE)
_MOST_WORDS = 24
"""Words of a text that are examined."""


@dataclass(frozen=True)
class Port:
    """A port.

    Attributes:
        labels: Labels of its counter of received bytes, without the name of the metric.
        speed_bps: Its speed, if known.
    """

    labels: Mapping[str, str]
    speed_bps: float | None = None

    @property
    def text(self) -> str:
        """Its labels, without the job."""
        return ", ".join(f"{name}={value}" for name, value in self.labels.items() if name != "job")


@dataclass
class Draft:
    """Rules of a map file.

    Attributes:
        rules: Each rule: patterns of labels, names of links by way, and the evidence for it.
        ignored: Pattern of the names of ports that are no links, by label.
        reasons: Why a port has no rule, by its text.
    """

    rules: list[tuple[dict[str, str], dict[str, str], str]] = field(default_factory=list)
    ignored: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Places:
    """Names of hosts and racks.

    Attributes:
        hosts: Names of hosts.
        racks: Names of racks.
        downlinks: Capacity of the link of each rack in bits per second, if known.
    """

    hosts: frozenset[str]
    racks: frozenset[str]
    downlinks: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Cluster) -> "Places":
        """Places of a cluster."""
        rows = cluster.links().to_pylist()
        below = [row for row in rows if row["host"] is None and row["rack"] and row["direction"] == "down"]
        return cls(
            frozenset(row["host"] for row in rows if row["host"]),
            frozenset(row["rack"] for row in rows if row["rack"]),
            {row["rack"]: float(row["capacity_bps"]) for row in below},
        )

    @classmethod
    def assumed(cls, ports: Sequence[Port], family: Family) -> "Places":
        """Places without a cluster: each device is a host for node_exporter, and else the ToR of a rack."""
        label = next((name for name in DEVICE_LABELS if any(name in port.labels for port in ports)), "")
        names = frozenset(re.split("[.:]", port.labels.get(label, ""))[0] for port in ports) - {""}
        return cls(names, frozenset()) if family.received.startswith("node_") else cls(frozenset(), names)

    def host(self, text: str) -> str | None:
        """Host that a text names: alone, before a port number, or before a domain."""
        parts = text, text.partition(":")[0], re.split("[.:]", text)[0]
        return next((part for part in parts if part in self.hosts), None)

    def rack(self, text: str) -> str | None:
        """Rack whose name is the longest word of a text that names a rack."""
        return _longest(self.racks, text)

    def host_within(self, text: str) -> str | None:
        """Host whose name is a word of a text."""
        return _longest(self.hosts, text)


def draft(places: Places, ports: Sequence[Port]) -> Draft:
    """Rules for ports.

    Args:
        places: Names of hosts and racks.
        ports: The ports of the server; not all need be of the cluster.

    Raises:
        InputError: No label of any port names a host or a rack.
    """
    counts = Counter(
        (name in DEVICE_LABELS, kind, name)
        for port in ports
        for name, text in port.labels.items()
        for kind, named in (("host", places.host(text)), ("rack", places.rack(text)))
        if named is not None
    )
    if not counts:
        example = f", such as {ports[0].text}" if ports else ""
        message = f"no label of {len(ports):,} ports names a host or a rack of the cluster{example}"
        error = InputError.about("cluster", message)
        names = [*sorted(places.hosts)[:2], *sorted(places.racks)[:2]]
        error.add_note(f"names of the cluster: {', '.join(names)}, ...")
        raise error
    (_, kind, label), _ = max(counts.items(), key=lambda item: (item[0][0], item[1], item[0][1] == "host"))
    ports_of = (name for name in PORT_LABELS if name != label and any(name in port.labels for port in ports))
    port_label = next(ports_of, None)
    made = Draft()
    _ignore(made, ports, port_label, VIRTUAL if kind == "host" else MANAGEMENT)
    pattern = re.compile(made.ignored.get(port_label or "", "(?!)"))
    rest = [port for port in ports if not pattern.fullmatch(port.labels.get(port_label or "", ""))]
    (_host_rules if kind == "host" else _rack_rules)(made, places, rest, label, port_label)
    return made


def _ignore(made: Draft, ports: Sequence[Port], port_label: str | None, pattern: str) -> None:
    found = any(re.fullmatch(pattern, port.labels.get(port_label or "", "")) for port in ports)
    if port_label is not None and found:
        made.ignored[port_label] = pattern


def _host_rules(
    made: Draft, places: Places, ports: Sequence[Port], label: str, port_label: str | None
) -> None:
    """A rule for hosts that see their own links."""
    interfaces: Counter[str] = Counter()
    for port in ports:
        if places.host(port.labels.get(label, "")) is None:
            made.reasons[port.text] = f"`{label}` is no host of the cluster"
        elif port_label is not None:
            interfaces[port.labels.get(port_label, "")] += 1
    dotted = any(set(".:") & set(host) for host in places.hosts)
    match = {label: r"(?P<host>.+?)(:\d+)?" if dotted else "(?P<host>[^.:]+)([.:].*)?"}
    common = ", ".join(f"{name} ({number:,})" for name, number in interfaces.most_common(6))
    evidence = f"Interfaces, whose traffic adds up on each host: {common}." if common else ""
    made.rules.append((match, {"in": "{host}:ingress", "out": "{host}:egress"}, evidence))


def _rack_rules(
    made: Draft, places: Places, ports: Sequence[Port], label: str, port_label: str | None
) -> None:
    """Rules for the ports of ToRs."""
    racks: dict[str, list[Port]] = defaultdict(list)
    for port in ports:
        rack = places.rack(port.labels.get(label, ""))
        if rack is None:
            made.reasons[port.text] = f"`{label}` names no rack of the cluster"
        else:
            racks[rack].append(port)
    to_hosts: Counter[str] = Counter()
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for rack, of_rack in sorted(racks.items()):
        rest = []
        for port in of_rack:
            by = next(
                (name for name, text in port.labels.items() if name != label and places.host_within(text)),
                None,
            )
            if by is None:
                rest.append(port)
            else:
                to_hosts[by] += 1
        up, evidence = _up(rest, label, places.downlinks.get(rack))
        names = tuple(sorted({port.labels.get(port_label or "", "") for port in up}, key=_natural))
        if up and port_label is not None:
            groups[evidence, names].append(rack)
        for port in rest:
            if port not in up:
                made.reasons[port.text] = "nothing says whether it leads up, and no label names its host"
    for by, number in to_hosts.items():
        match = {by: f"(.*[^A-Za-z0-9])?(?P<host>{_shape(places.hosts)})([^A-Za-z0-9].*)?"}
        evidence = f"`{by}` names the host of {number:,} ports."
        made.rules.append((match, {"in": "{host}:egress", "out": "{host}:ingress"}, evidence))
    for (evidence, names), of_group in groups.items():
        devices = {port.labels[label] for rack in of_group for port in racks[rack]}
        match = {label: _device(devices, places.rack, len(groups) == 1), str(port_label): one_of(names)}
        made.rules.append((match, {"in": "{rack}:downlink", "out": "{rack}:uplink"}, evidence))


def _up(ports: Sequence[Port], label: str, capacity_bps: float | None) -> tuple[list[Port], str]:
    """Ports that lead up from a ToR, and the evidence for it."""
    spoken = [
        port
        for port in ports
        if any(name not in (label, "job") and _UP.search(text) for name, text in port.labels.items())
    ]
    if spoken:
        return spoken, "Their labels speak of a spine or an uplink."
    speeds: dict[float, list[Port]] = defaultdict(list)
    for port in ports:
        if port.speed_bps:
            speeds[port.speed_bps].append(port)
    sums = [
        group
        for speed, group in speeds.items()
        if capacity_bps and abs(speed * len(group) / capacity_bps - 1) <= NEAR
    ]
    # A bond and its members have the same sum; which of them counts is found in the readings.
    if not sums:
        return [], ""
    return max(sums, key=len), "Their speeds add up to the link of the rack."


def one_of(names: Iterable[str]) -> str:
    """Pattern of some names, with their common beginning written once."""
    listed = sorted(set(names), key=_natural)
    if len(listed) == 1:
        return _literal(listed[0])
    length = next(
        (index for index, letters in enumerate(zip(*listed, strict=False)) if len(set(letters)) > 1),
        min(len(name) for name in listed),
    )
    # A number is not cut: Ethernet(49|50), not Ethernet(49|5(0|1)).
    while length and listed[0][length - 1].isdigit():
        length -= 1
    rest = "|".join(_literal(name[length:]) for name in listed)
    return f"{_literal(listed[0][:length])}({rest})"


def _device(devices: Iterable[str], rack_of: Callable[[str], str | None], alike: bool) -> str:
    """Pattern of the names of devices, with the rack as a group.

    Args:
        devices: Names of devices.
        rack_of: Rack of a name.
        alike: True if racks with other numbers may match too.
    """
    before, after, racks = set(), set(), set()
    for device in devices:
        rack = rack_of(device) or ""
        start = device.rindex(rack)
        before.add(device[:start])
        after.add(device[start + len(rack) :])
        racks.add(rack)
    start_text = one_of(before) if len(before) <= 3 else "(.*[^A-Za-z0-9])?"
    end_text = one_of(after) if len(after) <= 3 else "([^A-Za-z0-9].*)?"
    return f"{start_text}(?P<rack>{_shape(racks) if alike else one_of(racks)}){end_text}"


def _shape(names: Iterable[str]) -> str:
    """Pattern of names with any numbers in the place of theirs."""
    shapes = sorted({re.sub(r"\d+", r"\\d+", _literal(name)) for name in names})
    return "|".join(shapes) if len(shapes) <= 8 else r"[\w.-]+"


def _longest(names: Set[str], text: str) -> str | None:
    """The longest name that is one or several whole words of a text."""
    words = list(re.finditer("[A-Za-z0-9]+", text))[:_MOST_WORDS]
    spans = ((one.start(), other.end()) for number, one in enumerate(words) for other in words[number:])
    found = {text[start:end] for start, end in spans} & names
    return max(found, key=lambda name: (len(name), name), default=None)


def _literal(text: str) -> str:
    """Pattern of a text. A hyphen is plain outside of a set, and reads better so."""
    return re.escape(text).replace(r"\-", "-")


def _natural(name: str) -> list[tuple[int, str]]:
    """Order of names with numbers: Ethernet9 before Ethernet10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
