"""Importers: topologies of other systems as a cluster file.

Schedulers, file systems and switches know the rack of each host and the switches that join racks: Kubernetes
in the labels of nodes (of topograph and of clouds), HDFS in the answers of its topology script, Slurm in
`topology.conf` or `topology.yaml`, and switches in the messages of their neighbours (LLDP). NetBox and
containerlab have devices and cables; GraphML, SNDlib and SimGrid have graphs, which must be trees. Each
importer makes a `Topology`; `cluster_file` writes the topology with the speeds of links, which most of these
systems do not know. Everything that an importer leaves out is counted by reason.
"""

from collections.abc import Sequence
from enum import StrEnum
from os import PathLike, fspath
from typing import TYPE_CHECKING

from leeward._inputs import Graph
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.importers.topology import Topology

__all__ = ["Format", "read", "read_graph"]


class Format(StrEnum):
    """Formats of a topology."""

    KUBERNETES = "kubernetes"
    HDFS = "hdfs"
    SLURM = "slurm"
    LLDP = "lldp"
    NETBOX = "netbox"
    CONTAINERLAB = "containerlab"
    GRAPHML = "graphml"
    SNDLIB = "sndlib"
    SIMGRID = "simgrid"


def read_graph(network: Graph, *, pods: bool = True) -> "Topology":
    """Hosts, racks and pods in a graph of networkx, which must be a tree.

    Args:
        network: A graph. `type`, `kind` or `role` of a node may tell hosts from switches; otherwise, nodes at
            the ends of the tree are hosts. `bandwidth`, `capacity`, `speed` or `rate` of an edge is a text
            with a unit, or a number of bits per second.
        pods: True to import pods; false to join all racks in one core.

    Returns:
        The hosts and their places; its method `cluster` makes the `Cluster`.

    Raises:
        InputError: The graph is not a tree, or has invalid attributes.
    """
    from leeward.importers import networks
    from leeward.importers.topology import Topology

    topology = Topology("networkx", ["graph"])
    networks.read(topology, network)
    topology.settle(pods)
    return topology


def read(
    form: Format,
    files: Sequence[str | PathLike[str]],
    *,
    rack_label: str | None = None,
    pod_label: str | None = None,
    pods: bool = True,
    tors: str | None = None,
    spines: str | None = None,
) -> "Topology":
    """Hosts, racks and pods in files.

    Args:
        form: Format of the files.
        files: At least one file; all files together describe one cluster.
        rack_label: Kubernetes: label that names a node's rack; by default of the first of
            `kubernetes.FAMILIES` that a node has.
        pod_label: Kubernetes: label that names a node's pod; by default of the same family.
        pods: True to import pods; false to join all racks in one core.
        tors: LLDP, NetBox and containerlab: pattern of the names of ToRs, such as `leaf-*`.
        spines: LLDP, NetBox and containerlab: pattern of the names of spines, the switches that join racks.

    Raises:
        InputError: A file cannot be read, its content is not of this format, or an argument is for another
            format.
    """
    from leeward.importers import (
        containerlab,
        graphml,
        hdfs,
        kubernetes,
        lldp,
        netbox,
        simgrid,
        slurm,
        sndlib,
    )
    from leeward.importers.topology import Topology

    with_switches = {
        Format.LLDP: lldp.read,
        Format.NETBOX: netbox.read,
        Format.CONTAINERLAB: containerlab.read,
    }
    others = {
        Format.HDFS: hdfs.read,
        Format.SLURM: slurm.read,
        Format.GRAPHML: graphml.read,
        Format.SNDLIB: sndlib.read,
        Format.SIMGRID: simgrid.read,
    }
    paths = [fspath(file) for file in files]
    if not paths:
        raise InputError.about("files", "expected at least one file")
    only = (
        ((Format.KUBERNETES,), {"rack_label": rack_label, "pod_label": pod_label}),
        (tuple(with_switches), {"tors": tors, "spines": spines}),
    )
    for only_forms, arguments in only:
        for argument, value in arguments.items():
            if value is not None and form not in only_forms:
                message = f"`{value}`: only valid for {', '.join(only_forms)}, not for {form}"
                raise InputError.about(argument, message)
    topology = Topology(form, paths)
    if form is Format.KUBERNETES:
        kubernetes.read(topology, rack_label, pod_label)
    elif form in with_switches:
        with_switches[form](topology, tors, spines)
    else:
        others[form](topology)
    topology.settle(pods)
    return topology
