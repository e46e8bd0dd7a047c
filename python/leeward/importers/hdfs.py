"""HDFS: answers of the topology script for hosts, or `hdfs dfsadmin -printTopology`.

Lines `host /rack` come from a mapping table (`net.topology.table.file.name`), or from a loop that runs a
topology script for each host::

    for host in $(cat workers); do echo "$host $(topology.sh $host)"; done

The last part of a path such as `/dc1/row3/rack7` is the rack, and the part before it the pod. HDFS puts hosts
that its script does not know in `/default-rack`: if there are other racks, those hosts are left out and
counted.
"""

import re

from leeward.errors import InputError
from leeward.importers.topology import Host, Topology

DEFAULT_RACK = "/default-rack"
_DATANODE = re.compile(r"(?P<address>\S+?)(?::\d+)?(?:\s+\((?P<name>\S+)\))?(?:\s+(?P<state>[A-Z].*))?")


def read(topology: Topology) -> None:
    """Adds hosts and racks of all files.

    Raises:
        InputError: A line has neither form.
    """
    lines = [
        (file, number, line)
        for file, text in topology.texts()
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    rack: str | None = None
    entries: list[tuple[str, int, str, str]] = []
    for file, number, line in lines:
        words = line.split()
        if words[0] == "Rack:":
            rack = _path(file, number, " ".join(words[1:]))
        elif rack is not None and line[0].isspace():
            host = _datanode(topology, file, number, line.strip())
            entries += [] if host is None else [(file, number, host, rack)]
        elif len(words) != 2:
            message = f"`{line.strip()[:60]}`: expected a host and its rack, as in `node1 /rack7`"
            raise InputError(file, number, None, None, message)
        else:
            rack = None
            entries.append((file, number, words[0], _path(file, number, words[1])))
    has_racks = any(path != DEFAULT_RACK for *_, path in entries)
    depths: dict[int, tuple[str, int, str]] = {}
    for file, number, host, path in entries:
        if has_racks and path == DEFAULT_RACK:
            topology.left_out.count("default-rack", 1, host)
            continue
        *above, last = path.strip("/").split("/")
        depths.setdefault(len(above), (file, number, path))
        if len(depths) > 1:
            (*_, first_path), (_, _, other) = depths.values()
            message = f"`{other}`: expected a rack as deep as `{first_path}`; HDFS requires equal depths"
            raise InputError(file, number, None, "rack", message)
        pod = topology.name(".".join(above), file, number, "rack") if above else None
        entry = Host(
            topology.name(host, file, number, "host"), topology.name(last, file, number, "rack"), pod
        )
        topology.add(entry, file, number)


def _path(file: str, number: int, text: str) -> str:
    """Path of a rack, without empty parts."""
    parts = [part for part in text.split("/") if part]
    if not text.startswith("/") or not parts:
        message = f"`{text[:60]}`: expected a path, such as /rack7 or /dc1/rack7"
        raise InputError(file, number, None, "rack", message)
    return "/" + "/".join(parts)


def _datanode(topology: Topology, file: str, number: int, text: str) -> str | None:
    """Host of a line of `-printTopology`; None if it no longer serves."""
    match = _DATANODE.fullmatch(text)
    if match is None:
        message = f"`{text[:60]}`: expected a datanode, as in `10.0.0.1:9866 (node1)`"
        raise InputError(file, number, None, None, message)
    host = match["name"] or match["address"]
    if match["state"] == "Decommissioned":
        topology.left_out.count("decommissioned", 1, host)
        return None
    return host
