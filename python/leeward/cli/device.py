"""`leeward device`: profiles of storage devices."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward._quantities import (
    duration_text,
    read_bytes,
    read_seconds,
    read_share,
)
from leeward.cli import device_import
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.device_output import print_device
from leeward.cli.groups import Commands
from leeward.cli.notes import print_note, print_warning
from leeward.cli.options import name_flags, parse_path, split_list, whole_number
from leeward.cli.output import Format, FormatOption, print_data
from leeward.cli.progress import progress
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward._fio import Settings

EXAMPLES = """\b
Examples:
  leeward device profile --fio . --dry-run
  leeward device import examples/slo/fio.json --out imported.json
"""
PROFILE_EXAMPLES = """\b
Examples:
  leeward device profile --fio . --dry-run
  leeward device profile --fio . --sizes 4KiB,64KiB --for 1s --file-size 64MiB --dry-run
"""

app = Commands()
app.command("import", epilog=device_import.EXAMPLES)(device_import.import_)

MOST_SECONDS = 86_400
"""Longest measurement of a point."""


@app.callback(epilog=EXAMPLES)
def device() -> None:
    """Measure storage devices, or import measurements.

    A device file holds the work and the unloaded latency of requests, by kind and size.
    """


@app.command(epilog=PROFILE_EXAMPLES)
def profile(
    fio: Annotated[
        Path,
        typer.Option(
            "--fio",
            metavar="DIR",
            parser=parse_path,
            help="Folder on the device. The command creates a file in it, measures with fio, and removes it.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", parser=parse_path, help="File for the profile, as JSON.")
    ] = Path("device.json"),
    sizes: Annotated[
        str, typer.Option(metavar="SIZE,...", help="Sizes of requests.")
    ] = "4KiB,16KiB,64KiB,256KiB,1MiB",
    mixes: Annotated[
        str,
        typer.Option(
            metavar="SHARE,...", help="Shares of reads in mixed loads; an empty list omits mixed loads."
        ),
    ] = "50%",
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="Time of each measurement, in whole seconds.")
    ] = "10s",
    file_size: Annotated[str, typer.Option(metavar="SIZE", help="Size of the measured file.")] = "1GiB",
    depth: Annotated[
        int,
        typer.Option(
            metavar="N", parser=whole_number(1, 1024), help="Number of outstanding requests at saturation."
        ),
    ] = 32,
    io_engine: Annotated[str, typer.Option(metavar="NAME", help="I/O engine of fio.")] = "libaio",
    buffered: Annotated[
        bool, typer.Option("--buffered", help="Measure through the page cache, where direct I/O fails.")
    ] = False,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the device.")] = "device",
    force: Annotated[
        bool,
        typer.Option("--force", help="Let --fio be a file or a block device. ITS CONTENT IS OVERWRITTEN."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the options, print the commands of fio, and run none.")
    ] = False,
    output: FormatOption = Format.table,
) -> None:
    """Measure a device with fio, and write its profile.

    Measures requests per second at saturation, by kind and size, and percentiles of latency with one request
    at a time. Other users of the device change the result. By default the command runs for four to five
    minutes, and writes at least 1 GiB.
    """
    from leeward._files import atomic_file, check_file
    from leeward._fio import Settings, check_place, command, file_to_measure, jobs, measure
    from leeward._fio import profile as build_profile
    from leeward._native import check_device

    settings = Settings(
        sizes=_sizes(sizes),
        mixes=_mixes(mixes),
        seconds=_whole_seconds(duration),
        file_bytes=_bytes(file_size, "--file-size"),
        depth=depth,
        buffered=buffered,
        engine=io_engine,
    )
    if settings.file_bytes < 4 * settings.sizes[-1]:
        message = f"`{file_size}`: expected at least four times the largest of --sizes"
        raise InputError.about("--file-size", message)
    points = jobs(settings)
    check_place(fio, force)
    check_file(out, "--out")
    raw = out.with_name(f"{out.stem}.fio.json")
    check_file(raw, "--out")
    kept: list[str] = []
    if dry_run:
        for job in points:
            print(shlex.join(command(job, fio / "FILE" if fio.is_dir() else fio)))
        return
    with (
        file_to_measure(fio, force) as file,
        progress("measuring", len(points), amount=lambda done: _remaining_text(settings, done)) as advance,
    ):
        results, version = measure(settings, file, lambda text: _keep(raw, kept, text), lambda: advance(1))
    try:
        device = build_profile(settings, results, version, name)
    except InputError as error:
        error.add_note(f"the outputs of fio are kept in {raw}")
        raise
    text = json.dumps(device, indent=2, allow_nan=False) + "\n"
    # A profile that cannot be read again is not written.
    with name_flags(device=str(out)):
        check_device("device", text)
    with atomic_file(out) as temporary:
        temporary.write_text(text, encoding="utf-8")
    if not print_data(output, device, "unloaded", COLUMNS["device profile"]):
        print_device(device)
    print_note(f"wrote {out}, and the outputs of fio to {raw}")


def _keep(raw: Path, kept: list[str], text: str) -> None:
    """Writes the outputs of fio so far, so that an interrupted measurement has them."""
    if text.strip():
        kept.append(text)
        raw.write_text("".join(kept), encoding="utf-8")


def _remaining_text(settings: "Settings", done: float) -> str:
    from leeward._fio import jobs

    return f"about {duration_text(settings.seconds * len(jobs(settings)) * (1 - done))} left"


def _sizes(text: str) -> tuple[int, ...]:
    sizes = sorted(_bytes(part, "--sizes") for part in split_list(text) or [])
    if not sizes or sizes[0] < 512 or any(size % 512 for size in sizes):
        message = f"`{text}`: expected multiples of 512 bytes, such as 4KiB,64KiB"
        raise InputError.about("--sizes", message)
    _check_distinct(sizes, text, "--sizes")
    return tuple(sizes)


def _whole_seconds(text: str) -> int:
    seconds = read_seconds("--for", text)
    if not 1 <= seconds <= MOST_SECONDS or seconds != int(seconds):
        message = f"`{text}`: expected whole seconds from 1s to {MOST_SECONDS // 3600}h"
        raise InputError.about("--for", message)
    return int(seconds)


def _mixes(text: str) -> tuple[int, ...]:
    parts = [part for part in split_list(text) or [] if part]
    if any(part.isdecimal() for part in parts):
        print_warning("--mixes are now shares with a sign, such as 50%")
        parts = [f"{part}%" if part.isdecimal() else part for part in parts]
    shares = [read_share("--mixes", part, 0.01, 0.99) for part in parts]
    mixes = sorted(round(100 * share) for share in shares)
    if any(abs(100 * share - mix) > 1e-9 for share, mix in zip(sorted(shares), mixes, strict=True)):
        raise InputError.about("--mixes", f"`{text}`: expected whole percentages, such as 50%")
    _check_distinct(mixes, text, "--mixes")
    return tuple(mixes)


def _check_distinct(values: list[int], text: str, flag: str) -> None:
    if len(set(values)) < len(values):
        raise InputError.about(flag, f"`{text}`: expected each value once")


def _bytes(text: str, flag: str) -> int:
    return read_bytes(flag, text)
