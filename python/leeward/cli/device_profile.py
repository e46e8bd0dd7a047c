"""`leeward device profile`: measures a device with fio, and writes a device file."""

from pathlib import Path
from typing import Annotated

import typer

from leeward._quantities import read_bytes, read_seconds, read_share
from leeward.cli.notes import print_warning
from leeward.cli.options import parse_path, parse_seed, split_list, whole_number
from leeward.cli.output import Format, FormatOption
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward device profile --fio . --dry-run
  leeward device profile --fio . --sizes 4KiB,64KiB --for 1s --file-size 64MiB --dry-run
  leeward device profile --disk /dev/sdb --out disk.json
  leeward device profile --nfs nas1:/vol --file-size 64GiB --out vol.json
"""

MOST_SECONDS = 86_400
"""Longest measurement of a point, or of a disk."""
LEAST_DISK_S = 10.0
"""Shortest measurement of a disk."""
TABLE = ("sizes", "mixes", "duration", "file_size", "depth", "io_engine", "buffered")
"""Parameters that only --fio and --nfs have."""
FOREIGN = {
    "--fio": ("time_limit", "seed", "in_use"),
    "--disk": (*TABLE, "force"),
    "--nfs": ("time_limit", "seed", "in_use", "force"),
}
"""Parameters without effect, by the option that names the device."""


def profile(
    context: typer.Context,
    fio: Annotated[
        Path | None,
        typer.Option(
            "--fio",
            metavar="DIR",
            parser=parse_path,
            help="Folder on the device. The command creates a file in it, measures with fio, and removes it.",
            show_default=False,
        ),
    ] = None,
    disk: Annotated[
        Path | None,
        typer.Option(
            "--disk",
            metavar="FILE",
            parser=parse_path,
            help="Device of a disk, such as /dev/sdb, or a large file on it. The command measures seek times"
            " by reads, and writes nothing to the disk.",
            show_default=False,
        ),
    ] = None,
    nfs: Annotated[
        str | None,
        typer.Option(
            "--nfs",
            metavar="SERVER:PATH",
            help="NFS export, measured like --fio through its mount; without a mount through libnfs, or by"
            " Leeward's client of NFSv3. A URL nfs://SERVER/PATH is measured through libnfs.",
            show_default=False,
        ),
    ] = None,
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
    time_limit: Annotated[
        str,
        typer.Option(
            "--duration", metavar="DURATION", help="With --disk: longest time of the whole measurement."
        ),
    ] = "5min",
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", parser=parse_seed, help="With --disk: seed of positions and of their order, from 0."
        ),
    ] = 1,
    in_use: Annotated[
        bool,
        typer.Option(
            "--in-use", help="Let --disk be a device that is mounted for writing, or in use otherwise."
        ),
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

    With --fio or --nfs, measures requests per second at saturation, by kind and size, and percentiles of
    latency with one request at a time. By default this takes four to five minutes, and writes at least
    1 GiB. With --disk, measures seek times by distance, the rate of transfers, and the number of streams
    that the disk continues without a seek, and only reads.

    Other users of the device change the result.
    """
    from leeward._fio import Settings
    from leeward.cli.device_disk import profile_disk
    from leeward.cli.device_table import profile_export, profile_folder

    ways = {"--fio": fio, "--disk": disk, "--nfs": nfs}
    given = [flag for flag, value in ways.items() if value is not None]
    if len(given) != 1:
        raise InputError.about(" and ".join(given) or "--fio", "expected one of --fio, --disk and --nfs")
    _reject_foreign(context, given[0], FOREIGN[given[0]])
    if disk is not None:
        profile_disk(
            disk,
            out,
            name,
            seconds=_disk_seconds(time_limit),
            seed=seed,
            in_use=in_use,
            dry_run=dry_run,
            output=output,
        )
        return
    settings = Settings(
        sizes=_sizes(sizes),
        mixes=_mixes(mixes),
        seconds=_whole_seconds(duration),
        file_bytes=read_bytes("--file-size", file_size),
        depth=depth,
        buffered=buffered,
        engine=io_engine,
    )
    if settings.file_bytes < 4 * settings.sizes[-1]:
        message = f"`{file_size}`: expected at least four times the largest of --sizes"
        raise InputError.about("--file-size", message)
    if fio is not None:
        profile_folder(settings, fio, out, name, force=force, dry_run=dry_run, output=output)
    elif nfs is not None:
        given_engine = [flag for flag in ("io_engine", "buffered") if _is_given(context, flag)]
        profile_export(settings, nfs, out, name, local_options=given_engine, dry_run=dry_run, output=output)


def _is_given(context: typer.Context, parameter: str) -> bool:
    source = context.get_parameter_source(parameter)
    return source is not None and source.name != "DEFAULT"


def _reject_foreign(context: typer.Context, way: str, parameters: tuple[str, ...]) -> None:
    """Rejects options that have no effect on this kind of device."""
    flags = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for parameter in parameters:
        if _is_given(context, parameter):
            raise InputError.about(flags[parameter], f"has no effect with {way}")


def _sizes(text: str) -> tuple[int, ...]:
    sizes = sorted(read_bytes("--sizes", part) for part in split_list(text) or [])
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


def _disk_seconds(text: str) -> float:
    seconds = read_seconds("--duration", text)
    if not LEAST_DISK_S <= seconds <= MOST_SECONDS:
        message = f"`{text}`: expected {LEAST_DISK_S:g}s to {MOST_SECONDS // 3600}h"
        raise InputError.about("--duration", message)
    return seconds


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
