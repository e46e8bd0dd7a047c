"""`leeward cluster import`: a cluster file from the topology of another system."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward._quantities import counted
from leeward.cli.notes import print_note, print_warning
from leeward.cli.options import choice, name_flags, parse_path
from leeward.cli.progress import slow_notice
from leeward.errors import InputError
from leeward.importers import Format

if TYPE_CHECKING:
    from leeward.importers.topology import Topology

EXAMPLES = """\b
Examples:
  leeward cluster import kubernetes examples/topologies/nodes.json \\
      --nic 25Gbps --rack-link 4x100Gbps --pod-oversubscription 2
  leeward cluster import hdfs examples/topologies/racks.txt \\
      --nic 25Gbps --oversubscription 3 --pod-oversubscription 2 --out hdfs.yaml
  leeward cluster import slurm examples/topologies/topology.conf \\
      --nic 100Gbps --rack-link 8x100Gbps --pod-link 16x400Gbps --out racks.yaml
  leeward cluster import lldp examples/topologies/lldp/tor1.json examples/topologies/lldp/tor2.json
"""
_SPEED_FLAGS = {
    "nic": "--nic",
    "rack_link": "--rack-link",
    "oversubscription": "--oversubscription",
    "pod_link": "--pod-link",
    "pod_oversubscription": "--pod-oversubscription",
}
_REASONS = {
    "backbone": "a cluster file has no link that all traffic of a rack shares",
    "block-sizes": "a cluster file cannot hold block sizes",
    "decommissioned": "the node is decommissioned",
    "default-rack": "the topology script does not know the rack of the host",
    "duplicate": "listed more than once",
    "empty-block": "the block has no nodes",
    "fatpipe": "each flow has the rate of the link for itself; in a cluster file flows share it",
    "label-not-used": "the rack and the pod come from other labels",
    "level-above-pods": "levels above pods count as a core without limits",
    "link-speed": "the speed has no unit",
    "no-link": "no link of the device is known",
    "no-neighbours": "no port of the device has a neighbour",
    "no-pods": "--no-pods leaves them out",
    "management-port": "an end of the cable is a port for management only",
    "no-name": "the device has no name",
    "no-rack": "the device names no rack",
    "no-rack-label": "no label names the rack of the node",
    "no-tor": "no link to a ToR",
    "not-active": "the device is planned, in stock or being removed",
    "not-a-device": "an object that is no device, cable or interface",
    "not-a-node": "an object of another kind",
    "not-an-interface": "an end of the cable is no interface of a device",
    "not-connected": "the cable is planned or being removed",
    "one-pod": "all racks are in one pod, so this pod is the core",
    "other-device": "an end of the cable is no host or switch",
    "other-role": "the role of the device is that of no host or switch",
    "other-topology": "the file has several topologies, and another one is the default",
    "out-of-band": "a switch that sees hosts of several racks, which their own ToRs see too",
    "outside-link": "the link leads out of the topology",
    "own-neighbour": "a device linked to itself",
    "renamed": "the name has letters that a cluster file rejects, or is taken",
    "second-parent": "in a cluster file, a switch has only one switch above it",
    "second-rack": "in a cluster file, a host has only one rack",
    "switch-without-nodes": "no host is below the switch",
}


def import_(
    form: Annotated[
        Format,
        typer.Argument(
            metavar="FORMAT", parser=choice(Format), help=f"One of: {', '.join(Format)}.", show_default=False
        ),
    ],
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files of the other system.", show_default=False),
    ],
    nic: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Total rate of a host's interfaces, such as 25Gbps or 2x25Gbps."),
    ] = None,
    rack_link: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Total rate of a rack's uplinks, such as 4x100Gbps."),
    ] = None,
    oversubscription: Annotated[
        str | None,
        typer.Option(
            metavar="RATIO",
            help="Rate of all interfaces in a rack divided by that of the uplinks; instead of --rack-link.",
        ),
    ] = None,
    pod_link: Annotated[
        str | None, typer.Option(metavar="RATE", help="Total rate of a pod's uplinks, such as 16x400Gbps.")
    ] = None,
    pod_oversubscription: Annotated[
        str | None,
        typer.Option(
            metavar="RATIO",
            help="Rate of all rack uplinks in a pod divided by that of the pod's; instead of --pod-link.",
        ),
    ] = None,
    no_pods: Annotated[
        bool, typer.Option("--no-pods", help="Leave pods out: racks meet in a core without limits.")
    ] = False,
    rack_label: Annotated[
        str | None, typer.Option(metavar="KEY", help="kubernetes: label that names a node's rack.")
    ] = None,
    pod_label: Annotated[
        str | None, typer.Option(metavar="KEY", help="kubernetes: label that names a node's pod.")
    ] = None,
    tors: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="lldp, netbox, containerlab: names of the top-of-rack switches, such as 'leaf-*'.",
        ),
    ] = None,
    spines: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="lldp, netbox, containerlab: names of the spine switches, which join racks.",
        ),
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the cluster.")] = "cluster",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", parser=parse_path, help="Output file; by default stdout.", show_default=False
        ),
    ] = None,
) -> None:
    """Make a cluster file from another system's topology.

    Kubernetes: kubectl get nodes -o json. HDFS: lines with a host and its rack, or the output
    of hdfs dfsadmin -printTopology. Slurm: topology.conf or topology.yaml. LLDP: lldpctl -f json or
    networkctl lldp --json=short, one file for each host or switch. NetBox: devices, cables and interfaces
    of its REST API. containerlab: .clab.yml or topology-data.json. GraphML, SNDlib and SimGrid: trees.

    Most of these files have no link speeds. Options set the speeds; a missing speed is an error.
    """
    from leeward._files import atomic_file, check_file
    from leeward.importers import read
    from leeward.importers.cluster_file import Speeds, cluster_file

    if out is not None:
        check_file(out, "--out")
    flags = {"rack_label": "--rack-label", "pod_label": "--pod-label", "tors": "--tors", "spines": "--spines"}
    with slow_notice(f"reading {counted(len(files), 'file')}"):
        with name_flags(**flags):
            topology = read(
                form,
                files,
                rack_label=rack_label,
                pod_label=pod_label,
                pods=not no_pods,
                tors=tors,
                spines=spines,
            )
        try:
            with name_flags(**_SPEED_FLAGS):
                speeds = Speeds(nic, rack_link, oversubscription, pod_link, pod_oversubscription)
                text = cluster_file(topology, speeds, name)
        except InputError:
            _print_counts(topology)
            raise
    if out is None:
        print(text, end="")
    else:
        with atomic_file(out) as path:
            path.write_text(text, encoding="utf-8")
    _print_counts(topology)


def _print_counts(topology: "Topology") -> None:
    """Prints on stderr the numbers and sizes of racks, what looks wrong, and what was left out by reason."""
    from leeward.importers.summary import doubts, sizes

    pods = len({host.pod for host in topology.hosts if host.pod is not None})
    counts = [counted(len(topology.hosts), "host"), counted(len(topology.racks()), "rack")]
    counts += [counted(pods, "pod")] if pods else []
    print_note(f"{topology.form}: {', '.join(counts)}; {sizes(topology)}")
    for doubt in doubts(topology):
        print_warning(doubt)
    for note in topology.notes:
        print_note(note)
    for reason, number, examples in topology.left_out:
        names = f": {', '.join(examples)}" + (", ..." if number > len(examples) else "") if examples else ""
        print_note(f"left out: {number:,} {reason} ({_REASONS[reason]}){names}", doubt=True)
