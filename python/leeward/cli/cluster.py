"""`leeward cluster`: shows and makes cluster files."""

from typing import Annotated, Any

import typer

from leeward._native import Cluster
from leeward._quantities import bytes_text
from leeward._texts import oversubscription_text, rates_text, speed_text
from leeward.cli import cluster_import
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.groups import Commands
from leeward.cli.options import hint_schema
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.progress import slow_notice

EXAMPLES = """\b
Examples:
  leeward cluster show examples/clusters/reference.yaml
  leeward cluster show examples/clusters/pods.yaml -o json
  leeward cluster import hdfs examples/topologies/racks.txt \\
      --nic 25Gbps --oversubscription 3 --pod-oversubscription 2
"""

app = Commands()
app.command("import", epilog=cluster_import.EXAMPLES)(cluster_import.import_)


@app.callback(epilog=EXAMPLES)
def cluster() -> None:
    """Show and make cluster files.

    A cluster file describes a network: racks, hosts, links and disks. The shortest file has four lines, and
    `leeward schema cluster` lists every field.
    """


@app.command(epilog=EXAMPLES)
def show(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Cluster file, YAML or JSON.", show_default=False)
    ],
    output: FormatOption = Format.table,
) -> None:
    """Show the content of a cluster file.

    Shows hosts, racks and pods, links by tier with their rates, and devices.
    """
    description = read(file).describe()
    if not print_data(output, description, "links", COLUMNS["cluster show"]):
        _print_description(description)


def read(file: str) -> Cluster:
    """Reads a cluster file for a command."""
    with hint_schema("cluster"), slow_notice(f"reading {file}"):
        return Cluster.from_file(file)


def _print_description(description: dict[str, Any]) -> None:
    kinds = ("hosts", "racks", "pods")
    counts = ", ".join(_count(description[kind], kind) for kind in kinds if description[kind])
    print_text(f"{description['name']}: {description['shape']}, {counts}\n")
    print_table(
        ("LINKS", "COUNT", "CAPACITY", "OVERSUBSCRIPTION"),
        "<>>>",
        [
            (
                links["kind"].replace("_", " "),
                f"{links['count']:,}",
                rates_text(links),
                oversubscription_text(links),
            )
            for links in description["links"]
        ],
    )
    if description["devices"]:
        print()
        print_table(
            ("DEVICES", "COUNT", "READ", "WRITE", "CAPACITY"),
            "<>>>>",
            [
                (
                    device["name"],
                    f"{device['count']:,}",
                    speed_text(device, "read"),
                    speed_text(device, "write"),
                    bytes_text(device["capacity_bytes"], None) if device["capacity_bytes"] else "unlimited",
                )
                for device in description["devices"]
            ],
        )


def _count(number: int, kind: str) -> str:
    return f"{number:,} {kind if number != 1 else kind.removesuffix('s')}"
