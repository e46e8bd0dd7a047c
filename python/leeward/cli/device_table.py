"""`leeward device profile --fio` and `--nfs`: profiles with a table, and with latencies without queueing."""

import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from leeward import _nfs
from leeward._fio import (
    Job,
    Settings,
    check_place,
    command,
    file_to_measure,
    jobs,
    measure,
    network_bytes,
)
from leeward._fio import profile as build_profile
from leeward._libnfs import FILE
from leeward._quantities import bytes_text, duration_text, work_rate_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.device_output import KeptText, check_outputs, print_device, write_device
from leeward.cli.notes import print_note, print_warning
from leeward.cli.options import name_flags
from leeward.cli.output import Format, print_data
from leeward.cli.progress import progress, slow_notice
from leeward.errors import InputError

Results = list[tuple[Job, dict[str, Any]]]
Run = Callable[[str | os.PathLike[str], Callable[[str], object], Callable[[], object]], tuple[Results, str]]
"""Measures a file: gets the file, a function that keeps outputs, and one that is called after each job."""


def profile_folder(
    settings: Settings, place: Path, out: Path, name: str, *, force: bool, dry_run: bool, output: Format
) -> None:
    """Measures a file in a folder, or with `force` an existing file or device.

    Raises:
        InputError: The place cannot be measured, or fio failed.
    """
    check_place(place, force)
    (raw,) = check_outputs(out, "fio.json")
    if dry_run:
        _print_commands(settings, place / "FILE" if place.is_dir() else place)
        return
    device, _ = _measured(settings, file_to_measure(place, force), partial(measure, settings), raw, name)
    write_device(out, device)
    if not print_data(output, device, "unloaded", COLUMNS["device profile"]):
        print_device(device)
    print_note(f"wrote {out}, and the outputs of fio to {raw}")


def profile_export(
    settings: Settings,
    text: str,
    out: Path,
    name: str,
    *,
    local_options: Sequence[str],
    dry_run: bool,
    output: Format,
) -> None:
    """Measures a file in an NFS export: through its mount, by fio's engine, or by Leeward's own client.

    Args:
        settings: Settings; without a mount, the engine is that for NFS.
        text: The export as the user named it.
        out: File for the profile.
        name: Name of the device.
        local_options: Given parameters that have an effect on a mount only.
        dry_run: True to print the commands of fio, or the loads of the own client.
        output: Format of the output.

    Raises:
        InputError: The export cannot be measured, or fio failed.
    """
    export = _nfs.parse_export(text)
    mounted = None if export.by_url else _nfs.find_mount(export)
    if mounted is None and not export.by_url and not _nfs.has_engine():
        _reject_local(local_options, "Leeward's client")
        _profile_by_client(settings, export, out, name, dry_run, output)
        return
    (raw,) = check_outputs(out, "fio.json")
    with name_flags(**{"--fio": "--nfs"}), tempfile.TemporaryDirectory(prefix="leeward-nfs-") as folder:
        file: AbstractContextManager[str | Path]
        if mounted is not None:
            _nfs.check_reached(mounted)
            check_place(mounted.folder, force=False)
            settings = replace(settings, through=mounted.text())
            file, shown = file_to_measure(mounted.folder, force=False), mounted.folder / "FILE"
        else:
            _reject_local(local_options, "libnfs")
            _nfs.check_engine(export)
            # libnfs does not wait for each write to be on the device, and a mount with direct I/O does.
            through = f"through libnfs, {export}, writes committed at the end"
            settings = replace(settings, engine=_nfs.ENGINE, nfs_url=export.url, through=through)
            file, shown = _nfs.libnfs_file(export, print_warning), Path("FOLDER") / FILE
        if dry_run:
            _print_commands(settings, shown)
            return
        before = _counters(mounted)
        # Whatever fio makes beside the file of an export is in a folder that is removed.
        current = None if mounted else folder
        by_fio = partial(measure, settings, limited=True, folder=current)
        device, results = _measured(settings, file, by_fio, raw, name)
        after = _counters(mounted)
        payload = network_bytes(results)
    network: dict[str, int | None] = {f"{kind}_bytes": count for kind, count in payload.items()}
    for at, name_of_count in enumerate(("sent_bytes", "received_bytes")):
        network[name_of_count] = after[at] - before[at] if after and before else None
    _write_export(settings, device, network, out, output)
    print_note(f"wrote {out}, and the outputs of fio to {raw}")


def _reject_local(options: Sequence[str], way: str) -> None:
    """Rejects options of fio that have an effect on a mount only."""
    if options:
        flag = f"--{options[0].replace('_', '-')}"
        raise InputError.about(flag, f"has no effect on an export that is measured through {way}")


def _profile_by_client(
    settings: Settings, export: _nfs.Export, out: Path, name: str, dry_run: bool, output: Format
) -> None:
    """Measures a file in an export by Leeward's own client.

    Raises:
        InputError: The export cannot be measured.
    """
    from leeward import _nfs_client

    (raw,) = check_outputs(out, "nfs.jsonl")
    through = f"through Leeward's client, {export}, each write on the device before its reply"
    settings = replace(settings, engine="NFSv3", nfs_url=export.url, through=through)
    _nfs_client.check_settings(settings)
    if dry_run:
        for job in jobs(settings):
            print(f"{job.what}: {bytes_text(job.size, None)}, {job.reads} % reads, {job.depth} at once")
        return

    def run(
        file: str | os.PathLike[str], keep: Callable[[str], object], advance: Callable[[], object]
    ) -> tuple[Results, str]:
        return _nfs_client.measure(settings, export, str(file), keep, advance)

    @contextmanager
    def file() -> Iterator[str]:
        with (
            slow_notice(f"filling a file of {bytes_text(settings.file_bytes, None)}") as is_done,
            _nfs_client.new_file(export, settings, print_warning) as made,
        ):
            is_done()
            yield made

    with name_flags(**{"--fio": "--nfs"}):
        device, results = _measured(settings, file(), run, raw, name)
        payload = network_bytes(results)
    network: dict[str, int | None] = {f"{kind}_bytes": count for kind, count in payload.items()}
    network["sent_bytes"] = network["received_bytes"] = None
    _write_export(settings, device, network, out, output)
    print_note(f"wrote {out}, and the results of each load to {raw}")


def _write_export(
    settings: Settings, device: dict[str, Any], network: dict[str, int | None], out: Path, output: Format
) -> None:
    """Writes and prints the profile of an export, with bytes on the network."""
    device["measured"] += f"; {_network_text(network)}"
    write_device(out, device)
    if not print_data(output, device | {"network": network}, "unloaded", COLUMNS["device profile"]):
        print_device(device)
    print_note(f"measured {settings.through}; {_network_text(network)}")
    fastest = [
        work_rate_text(max(row["size_bytes"] * row[f"{kind}_iops"] for row in device["table"]), "bytes")
        for kind in ("read", "write")
    ]
    print_note(
        f"the table is of device, server and network together: if the link has about {fastest[0]} (reads) or"
        f" {fastest[1]} (writes), the link was the limit",
        doubt=True,
    )


def _counters(mounted: _nfs.Mounted | None) -> tuple[int, int] | None:
    return None if mounted is None else _nfs.sent_and_received(mounted.mount)


def _network_text(network: dict[str, int | None]) -> str:
    text = (
        f"network: {bytes_text(network['read_bytes'])} to the client by reads,"
        f" {bytes_text(network['write_bytes'])} to the server by writes"
    )
    if network["sent_bytes"] is None:
        return f"{text}, without headers"
    sent, received = bytes_text(network["sent_bytes"]), bytes_text(network["received_bytes"])
    return f"{text}; with headers {received} to the client and {sent} to the server"


def _print_commands(settings: Settings, file: Path) -> None:
    for job in jobs(settings):
        print(shlex.join(command(job, file)))


def _measured(
    settings: Settings,
    measured_file: AbstractContextManager[str | os.PathLike[str]],
    run: Run,
    raw: Path,
    name: str,
) -> tuple[dict[str, Any], Results]:
    """Content of a device file, and the results of all jobs, which are kept in the file `raw`."""
    kept = KeptText(raw)
    with (
        measured_file as file,
        progress(
            "measuring", len(jobs(settings)), amount=lambda done: _remaining_text(settings, done)
        ) as advance,
    ):
        results, version = run(file, kept.add, lambda: advance(1))
    try:
        device = build_profile(settings, results, version, name)
    except InputError as error:
        error.add_note(f"the results are kept in {raw}")
        raise
    return device, results


def _remaining_text(settings: Settings, done: float) -> str:
    return f"about {duration_text(settings.seconds * len(jobs(settings)) * (1 - done))} left"
