"""`leeward device profile --disk`: seek times, rate and history of a disk, by reads."""

import shlex
import time
from math import ceil
from pathlib import Path
from typing import Any

from leeward._disk import BLOCK, STEPS, DiskProfile, measure_disk
from leeward._disk_target import find_target
from leeward._fio_replay import FioReplay, replay_command
from leeward._fio_run import check_installed
from leeward._quantities import bytes_text, duration_text, work_rate_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.device_output import KeptText, check_outputs, print_seeks, write_device
from leeward.cli.notes import print_note
from leeward.cli.options import name_flags
from leeward.cli.output import Format, print_data
from leeward.cli.progress import progress
from leeward.errors import InputError

NOT_MEASURED = (
    "writes were not measured, because the disk is only read: their rate is that of reads",
    "without latencies of single writes, bounds on latency need `unloaded` of each workload",
)


def profile_disk(
    path: Path,
    out: Path,
    name: str,
    *,
    seconds: float,
    seed: int,
    in_use: bool,
    dry_run: bool,
    output: Format,
) -> None:
    """Measures a disk, and writes its profile.

    Args:
        path: Device or file.
        out: File for the profile.
        name: Name of the device.
        seconds: Longest time.
        seed: Seed of positions.
        in_use: True to accept a device in use.
        dry_run: True to print the command of fio.
        output: Format of the output.

    Raises:
        InputError: The device cannot be measured, has no seek times, or fio failed.
    """
    target = find_target(path, in_use)
    raw, log = check_outputs(out, "fio.json", "fio.log")
    if dry_run:
        print(shlex.join(replay_command(str(target.path), ceil(seconds))))
        return
    replay = FioReplay(target.path, KeptText(raw).add, KeptText(log).add)
    with name_flags(**{"--fio": "--disk"}):
        check_installed()
        print_note(
            f"reading {path} ({bytes_text(target.size)}) for at most {duration_text(seconds)};"
            " nothing is written to it"
        )
        end = time.monotonic() + seconds
        with progress(
            "measuring",
            STEPS,
            amount=lambda _: f"at most {duration_text(max(end - time.monotonic(), 0.0))} left",
        ) as advance:
            try:
                measured = measure_disk(target.size, seconds, seed, replay, advance)
            except InputError as error:
                error.add_note(f"the outputs of fio are kept in {raw} and {log}")
                raise
    fewest = min(seek.pairs for seek in measured.seeks)
    device: dict[str, Any] = {
        "name": name,
        "measured": f"{replay.version}, reads of {BLOCK} bytes one at a time, direct, over {target.size}"
        f" bytes, medians of at least {fewest} pairs at a distance, seed {seed};"
        " the rate of writes is that of reads",
        "disk": measured.disk(),
        "outstanding": 1,
    }
    write_device(out, device)
    notes = [*NOT_MEASURED, *measured.notes]
    if not print_data(output, device | _details(measured, notes), "seeks", COLUMNS["device profile"]):
        print_seeks(measured)
        rates = [zone.rate for zone in measured.zones]
        whole, slowest, fastest = (
            work_rate_text(rate, "bytes") for rate in (measured.rate, min(rates), max(rates))
        )
        print_note(f"rate: {whole}, {slowest} to {fastest} by place; history: {measured.history}")
    for note in notes:
        print_note(note, doubt=True)
    print_note(f"wrote {out}, and the outputs of fio to {raw} and {log}")


def _details(measured: DiskProfile, notes: list[str]) -> dict[str, Any]:
    """Fields of the JSON document beside those of the device file."""
    return {
        "seeks": [
            {
                "kind": "read",
                "size_bytes": BLOCK,
                "distance_bytes": seek.distance,
                "seconds": seek.seconds,
                "forward_s": seek.forward,
                "backward_s": seek.backward,
                "p10_s": seek.low,
                "p90_s": seek.high,
                "pairs": seek.pairs,
            }
            for seek in measured.seeks
        ],
        "rates": [{"offset_bytes": zone.offset, "bytes_per_second": zone.rate} for zone in measured.zones],
        "notes": notes,
    }
