"""`leeward lab up`: a lab for programs, from a cluster file or from a scenario with circuits."""

import json
import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward._quantities import some
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.lab.options import DEFAULT_NAME, DilationOption, NewNameOption
from leeward.cli.notes import print_note, print_warning
from leeward.cli.options import whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table
from leeward.cli.progress import STEPS, progress, steps
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.lab import Network, StandingLab

_OF_SCENARIOS = ("network", "workload", "scheduler", "horizon")
"""Fields of scenarios that cluster files do not have."""
EXAMPLES = """\b
Examples:
  sudo leeward lab up examples/lab/four-racks.yaml
  sudo leeward lab up examples/lab/eight-racks.yaml --dilation 160
  sudo leeward lab up examples/clusters/hose.yaml --name hose --scale 100
  sudo leeward lab up cluster.yaml --disk-size 4GiB -o json
"""


def up(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Cluster file, or scenario with circuits.", show_default=False),
    ],
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
    dilation: DilationOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Bring up a lab for programs, until `leeward lab down`.

    With a scenario of `leeward circuits simulate`, a switch of packets and circuits connects the hosts, and
    programs see virtual time, which is slower by the dilation. The workload of the file does not run.

    With a cluster file, each host, rack and pod is a network namespace, and `tc` limits each link to its
    rate. A host whose entry has devices has a folder for each, throttled to its rates; programs find the
    first one in LEEWARD_DISK and all in LEEWARD_DISKS.

    Outside its namespaces, the lab changes control groups only: for devices on a machine with cgroup2, it
    enables the controllers io and memory at the root.
    """
    from leeward import lab

    if _has_circuits(file):
        for flag, given in (
            ("scale", scale != 1),
            ("queue", queue),
            ("burst", burst),
            ("disk-size", disk_size),
        ):
            if given:
                raise InputError.about(f"--{flag}", "is for cluster files; this file is a scenario")
        with progress(f"bringing up {file}", STEPS) as advance:
            report = partial(steps(advance), 0)
            circuits = lab.stand_up(file, name=name, dilation=dilation, progress=report)
        _print_lab(circuits, output, {"dilation": circuits.dilation}, f"dilation {circuits.dilation}")
        return
    if dilation is not None:
        raise InputError.about("--dilation", "is for scenarios; this file is a cluster file")
    sizes = {"queue": queue, "burst": burst, "disk_size": disk_size}
    with progress(f"bringing up {file}", STEPS) as advance:
        report = partial(steps(advance), 0)
        with lab.up(file, name=name, scale=scale, progress=report, **sizes) as network:
            network.keep()
    rates = f"all rates are divided by {scale}" if scale > 1 else ""
    _print_lab(network, output, {"scale": scale}, rates)


def _has_circuits(file: str) -> bool:
    """Whether a file is a scenario: it has a field that cluster files do not have."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        # The reader of cluster files says what is wrong.
        return False
    if text.lstrip().startswith("{"):
        with suppress(ValueError):
            return not json.loads(text).keys().isdisjoint(_OF_SCENARIOS)
    return re.search(rf"^[\"']?({'|'.join(_OF_SCENARIOS)})[\"']?\s*:", text, re.MULTILINE) is not None


def _print_lab(
    network: "Network | StandingLab", output: Format, settings: dict[str, int], remark: str
) -> None:
    """Prints the hosts of a lab that is up."""
    name, notes, hosts = network.name, network.notes, network.hosts
    rows = [
        {"name": host.name, "place": host.place, "address": host.address, "disks": host.disks}
        for host in hosts
    ]
    for note in notes:
        print_warning(note)
    document = {"name": name} | settings | {"hosts": rows, "notes": notes}
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
    print_note(f"\nlab {name} is up{remark and '; '}{remark}")
    print_note(f"hint: leeward lab exec --name {name} --host {hosts[0].name} -- ip addr")
