"""`leeward lab up`: the network of a cluster file, as namespaces on this machine."""

from typing import Annotated

import typer

from leeward._quantities import some
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.lab.options import DEFAULT_NAME, NewNameOption
from leeward.cli.notes import print_note, print_warning
from leeward.cli.options import whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table

EXAMPLES = """\b
Examples:
  sudo leeward lab up examples/lab/four-racks.yaml
  sudo leeward lab up examples/clusters/hose.yaml --name hose --scale 100
  sudo leeward lab up cluster.yaml --disk-size 4GiB -o json
"""


def up(
    cluster: Annotated[str, typer.Argument(metavar="FILE", help="Cluster file.", show_default=False)],
    name: NewNameOption = DEFAULT_NAME,
    scale: Annotated[
        int,
        typer.Option(
            metavar="N",
            parser=whole_number(1, 1_000_000),
            help="Number that divides the rates of all links and disks.",
        ),
    ] = 1,
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Bytes that may wait for a link. [default: 1514kB]", show_default=False
        ),
    ] = None,
    burst: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Bytes that may cross a link at once. [default: 16KiB, and more above 600 Mbps]",
            show_default=False,
        ),
    ] = None,
    disk_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Largest size of a disk, which takes space as it is written. [default: 1GiB]",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Bring up the network of a cluster file.

    Each host, rack and pod is a network namespace, and `tc` limits each link to its rate. A host whose entry
    has devices has a folder for each, throttled to its rates; programs find the first one in LEEWARD_DISK
    and all in LEEWARD_DISKS. The lab is up until `leeward lab down`. Nothing outside its namespaces changes.
    """
    from leeward import lab

    with lab.up(cluster, name=name, scale=scale, queue=queue, burst=burst, disk_size=disk_size) as network:
        machines, notes = network.machines, network.notes
        network.keep()
    hosts = [machine for machine in machines if machine.is_host]
    rows = [
        {"name": host.name, "place": host.place, "address": host.address, "disks": host.disks}
        for host in hosts
    ]
    for note in notes:
        print_warning(note)
    document = {"name": name, "scale": scale, "hosts": rows, "notes": notes}
    if print_data(output, document, "hosts", COLUMNS["lab up"]):
        return
    has_disks = any(host.disks for host in hosts)
    print_table(
        ("HOST", "PLACE", "ADDRESS", "DISKS") if has_disks else ("HOST", "PLACE", "ADDRESS"),
        "<<<<" if has_disks else "<<<",
        [
            (host.name, host.place, host.address, *([some(host.disks) or "-"] if has_disks else []))
            for host in hosts
        ],
    )
    rates = f"; all rates are divided by {scale}" if scale > 1 else ""
    print_note(f"\nlab {name} is up{rates}")
    print_note(f"hint: leeward lab exec --name {name} --host {hosts[0].name} -- ip addr")
