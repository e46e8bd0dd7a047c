"""Importers: topologies of other systems as a cluster file.

Schedulers, file systems and switches know the rack of each host and the switches that join racks: Kubernetes
in the labels of nodes (of topograph and of clouds), HDFS in the answers of its topology script, Slurm in
`topology.conf` or `topology.yaml`, and switches in the messages of their neighbours (LLDP). Each importer
makes a `Topology`; `cluster_file` writes the topology with the speeds of links, which most of these systems
do not know. Everything that an importer leaves out is counted by reason.
"""

from collections.abc import Sequence
from enum import StrEnum
from os import PathLike, fspath
from typing import TYPE_CHECKING

from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.importers.topology import Topology

__all__ = ["Format", "read"]


class Format(StrEnum):
    """Formats of a topology."""

    KUBERNETES = "kubernetes"
    HDFS = "hdfs"
    SLURM = "slurm"
    LLDP = "lldp"


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
        tors: LLDP: pattern of the names of ToRs, such as `leaf-*`.
        spines: LLDP: pattern of the names of spines, the switches that join racks.

    Raises:
        InputError: A file cannot be read, its content is not of this format, or an argument is for another
            format.
    """
    from leeward.importers import hdfs, kubernetes, lldp, slurm
    from leeward.importers.topology import Topology

    paths = [fspath(file) for file in files]
    if not paths:
        raise InputError.about("files", "expected at least one file")
    only = {
        Format.KUBERNETES: {"rack_label": rack_label, "pod_label": pod_label},
        Format.LLDP: {"tors": tors, "spines": spines},
    }
    for only_form, arguments in only.items():
        for argument, value in arguments.items():
            if value is not None and form is not only_form:
                message = f"`{value}`: only valid for {only_form}, not for {form}"
                raise InputError.about(argument, message)
    topology = Topology(form, paths)
    match form:
        case Format.KUBERNETES:
            kubernetes.read(topology, rack_label, pod_label)
        case Format.HDFS:
            hdfs.read(topology)
        case Format.SLURM:
            slurm.read(topology)
        case Format.LLDP:
            lldp.read(topology, tors, spines)
    topology.settle(pods)
    return topology
