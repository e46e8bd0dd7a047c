"""`leeward device import`: a device file from existing outputs of fio."""

from pathlib import Path
from typing import Annotated

import typer

from leeward._fio_import import LogUnit
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.device_output import print_device, write_device
from leeward.cli.notes import print_note, print_warning
from leeward.cli.options import choice, parse_path
from leeward.cli.output import Format, FormatOption, print_data

EXAMPLES = """\b
Examples:
  leeward device import examples/slo/fio.json --out imported.json
"""


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            parser=parse_path,
            help="Outputs of fio: JSON (--output-format=json), or logs of latency (write_lat_log).",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", parser=parse_path, help="File for the profile, as JSON.")
    ] = Path("device.json"),
    log_unit: Annotated[
        LogUnit,
        typer.Option(
            metavar="ns|us",
            parser=choice(LogUnit),
            help="Unit of latencies in logs: ns since fio 3.0, us before.",
        ),
    ] = LogUnit.ns,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the device.")] = "device",
    output: FormatOption = Format.table,
) -> None:
    """Write a device file from existing outputs of fio.

    The profile is for the greatest number of requests at once that has both reads and writes of some size.
    Loads of one request at a time give the latency without queueing. Loads that are no point of a profile are
    named with the reason.
    """
    from leeward._files import check_file
    from leeward._fio_import import import_profile

    check_file(out, "--out")
    imported = import_profile(files, name, log_unit)
    write_device(out, imported.device)
    for load in imported.left_out:
        print_warning(f"{load.origin}: left out: {load.reason}")
    for note in imported.notes:
        print_note(note, doubt=True)
    document = imported.device | {
        "left_out": [{"origin": load.origin, "reason": load.reason} for load in imported.left_out],
        "notes": imported.notes,
    }
    if not print_data(output, document, "unloaded", COLUMNS["device import"]):
        print_device(imported.device)
    print_note(f"wrote {out}")
