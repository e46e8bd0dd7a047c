"""SimGrid platforms: clusters as racks, or hosts, links and routes.

The format is that of https://simgrid.org/doc/latest/Platform.html.

A `cluster` is a rack: its hosts have links of `bw`, and its uplink is the link of its routes. Outside of
clusters, each route of one link joins two hosts or routers. A route of several links passes points without a
name, and is an error.
"""

import re

from leeward.errors import InputError
from leeward.importers import graph, xml
from leeward.importers.topology import MOST_HOSTS, Topology

_ZONES = ("zone", "AS")
_ROUTES = ("route", "zoneRoute", "ASroute", "bypassRoute", "bypassZoneRoute", "bypassASroute")
_RATE = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(?:([kKMGT]i?)?(bps|Bps))?", re.ASCII)
_FACTORS = {
    "": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "ki": 2**10,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_PLAIN = (
    "link",
    "backbone",
    "prop",
    "config",
    "host_link",
    "storage",
    "storage_type",
    "mount",
    "disk",
)
_NAMED = ("host", "router")
_PARTS = ("link_ctn", "link:ctn")


def read(topology: Topology) -> None:
    """Adds the hosts of each file.

    Raises:
        InputError: A file is no platform, or its network is not a tree.
    """
    for file, text in topology.texts():
        root = xml.parse(file, text)
        if root.tag != "platform":
            message = f"`{root.tag[:40]}`: expected `platform`"
            raise InputError(file, root.line, None, None, message)
        platform = _Platform(topology, file)
        zones = [child for child in root.children if child.tag in (*_ZONES, "cluster")]
        for zone in zones:
            platform.zone(zone)
        for route in platform.routes:
            platform.route(route)
        graph.place(topology, platform.graph, file, directed=True)


class _Platform:
    """Hosts, routers and links of a file."""

    def __init__(self, topology: Topology, file: str) -> None:
        self.topology = topology
        self.file = file
        self.graph = graph.Graph()
        self.rates: dict[str, int] = {}
        self.used: dict[str, tuple[str, str]] = {}
        self.routes: list[xml.Element] = []

    def zone(self, zone: xml.Element) -> None:
        """Reads a zone and those below; keeps its routes, since links may stand after them."""
        if zone.tag == "cluster":
            self.cluster(zone)
            return
        for child in zone.children:
            if child.tag in (*_ZONES, "cluster"):
                self.zone(child)
            elif child.tag in _NAMED:
                self.node(child, child.tag == "host", child.attributes.get("id", ""))
            elif child.tag == "link":
                self.rates[child.attributes.get("id", "")] = self.rate(child, "bandwidth")
                if child.attributes.get("sharing_policy", "").upper() == "FATPIPE":
                    self.topology.left_out.count("fatpipe", 1, child.attributes.get("id", "")[:40])
            elif child.tag in _ROUTES:
                self.routes.append(child)
            elif child.tag not in _PLAIN:
                message = f"`{child.tag[:40]}`: not read; expected zones, clusters, hosts, routers and routes"
                raise InputError(self.file, child.line, None, None, message)

    def node(self, element: xml.Element, host: bool, name: str) -> None:
        """Adds a host or router."""
        if not name or name in self.graph.lines:
            message = f"`{name[:40]}`: expected an id that no other host or router has"
            raise InputError(self.file, element.line, None, element.tag, message)
        if len(self.graph.lines) >= MOST_HOSTS:
            raise InputError(self.file, element.line, None, element.tag, f"more than {MOST_HOSTS:,} hosts")
        self.graph.lines[name] = element.line
        self.graph.kinds[name] = host

    def cluster(self, cluster: xml.Element) -> None:
        """Adds a rack of equal hosts."""
        get = cluster.attributes.get
        name, topology = get("id", ""), get("topology", "FLAT")
        if topology.upper() != "FLAT":
            message = f"`{topology[:40]}`: expected a cluster without a topology of its own"
            raise InputError(self.file, cluster.line, None, "topology", message)
        self.node(cluster, False, name)
        rate = self.rate(cluster, "bw")
        if "bb_bw" in cluster.attributes:
            self.topology.left_out.count("backbone", 1, f"{name}: {cluster.attributes['bb_bw'][:40]}")
        for part in get("radical", "").split(","):
            match = _PART.fullmatch(part.strip())
            if match is None or int(match[2] or match[1]) - int(match[1]) >= MOST_HOSTS:
                message = f"`{part[:40]}`: expected numbers of hosts, such as 0-31"
                raise InputError(self.file, cluster.line, None, "radical", message)
            for number in range(int(match[1]), int(match[2] or match[1]) + 1):
                host = f"{get('prefix', '')}{number}{get('suffix', '')}"
                self.node(cluster, True, host)
                self.graph.link(name, host, rate, cluster.line)

    def route(self, route: xml.Element) -> None:
        """Adds the link of a route."""
        get = route.attributes.get
        gateways = [self.end(route, get(f"gw_{end}", ""), get(end, "")) for end in ("src", "dst")]
        links = [child.attributes.get("id", "") for child in route.children if child.tag in _PARTS]
        if gateways[0] == gateways[1]:
            self.topology.left_out.count("own-neighbour", 1, gateways[0])
            return
        if len(links) != 1:
            message = f"{len(links)} links from {gateways[0]} to {gateways[1]}: expected one"
            error = InputError(self.file, route.line, None, route.tag, message)
            error.add_note("name the points between with routers, and give a route for each link")
            raise error
        if links[0] not in self.rates:
            raise InputError(
                self.file, route.line, None, route.tag, f"`{links[0][:40]}`: no link has this id"
            )
        one, other = gateways
        pair = (one, other) if one < other else (other, one)
        # Two such links would have the rate of one twice.
        if self.used.setdefault(links[0], pair) != pair:
            link, before = links[0][:40], " and ".join(self.used[links[0]])
            message = f"link `{link}` joins {one} and {other}, and also {before}: expected one route"
            error = InputError(self.file, route.line, None, route.tag, message)
            error.add_note("put a router at the end of a shared link, and give it a route of its own")
            raise error
        # A route of its own for the way back is the same link.
        if one not in self.graph.links.get(pair, {}):
            self.graph.link(one, other, self.rates[links[0]], route.line)

    def end(self, route: xml.Element, gateway: str, name: str) -> str:
        """End of a route: its gateway, or the cluster that it names."""
        for one in (name, gateway):
            if one in self.graph.lines:
                return one
        message = f"`{(gateway or name)[:40]}`: no host, router or cluster has this id"
        raise InputError(self.file, route.line, None, route.tag, message)

    def rate(self, element: xml.Element, field: str) -> int:
        """A bandwidth in bits per second. Without a unit, it is in bytes per second."""
        text = element.attributes.get(field, "")
        match = _RATE.fullmatch(text.strip())
        try:
            number = float(match[1]) if match else 0.0
        except ValueError:
            number = 0.0
        bits = 1 if match and match[3] == "bps" else 8
        rate = number * bits * _FACTORS[(match[2] or "") if match else ""]
        if not 1 <= rate < 1e18:
            message = f"`{text[:40]}`: expected a bandwidth, such as 125MBps or 1Gbps"
            raise InputError(self.file, element.line, None, field, message)
        return round(rate)
