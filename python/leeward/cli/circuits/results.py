"""Results of a run of packets: printed, and written to a folder."""

import json
from pathlib import Path
from typing import Any

from leeward._native import PacketRun
from leeward._quantities import bytes_text, percent_text, rate_text, time_text
from leeward.cli.notes import print_note
from leeward.cli.output import print_table, print_text, print_words

SUMMARY = "summary.json"
MOST_ROWS = 20
"""Greatest number of trains or circuits in a table."""
_WORDS = (
    ("completion", "time from the first byte written to the last byte received, of finished flows"),
    ("used", "the share of its days during which a circuit sends"),
    ("latency", "the time that packets with data spend in the switch"),
)


def check_out(out: Path) -> None:
    """Checks that a folder of results can be written.

    Raises:
        InputError: The folder holds something else.
    """
    from leeward._files import check_replaced

    check_replaced(out, "--out", "an earlier result of this command", _find_foreign)


def write_results(run: PacketRun, figures: dict[str, Any], out: Path) -> None:
    """Writes the tables of a run, and its figures."""
    from pyarrow import parquet

    from leeward._files import atomic_folder
    from leeward.packets import tables

    with atomic_folder(out) as folder:
        for name, table in tables(run).items():
            parquet.write_table(table, folder / f"{name}.parquet")
        (folder / SUMMARY).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print_note(f"wrote {out}")


def _find_foreign(out: Path) -> str | None:
    """First entry of a folder that is not part of an earlier result; None in a valid or empty folder."""
    from leeward.packets import TABLES

    names = sorted(path.name for path in out.iterdir())
    expected = {SUMMARY, *(f"{name}.parquet" for name in TABLES)}
    foreign = [name for name in names if name not in expected]
    if not names or (SUMMARY in names and not foreign):
        return None
    return f"`{(foreign or names)[0]}`"


def print_summary(summary: dict[str, Any]) -> None:
    """Prints flows, trains, paths and circuits of a run."""
    totals = summary["totals"]
    print_text(
        f"{totals['finished']:,} of {totals['flows']:,} flows finished in {time_text(totals['ended_s'], 4)}"
        f" at {rate_text(summary['throughput_bps'])}; {bytes_text(totals['dropped_bytes'])} of"
        f" {bytes_text(totals['sent_bytes'])} sent were dropped\n"
    )
    if summary["completion"]:
        _print_flows(summary)
        print()
    if summary["trains"]:
        _print_trains(summary)
        print()
    _print_paths(summary)
    if summary["circuits"]:
        print()
        _print_circuits(summary)
    print_words(_WORDS)


def _print_flows(summary: dict[str, Any]) -> None:
    print_table(
        ("FLOWS", "NUMBER", "FINISHED", "ARRIVED", "COMPLETION MEDIAN", "P99"),
        "<>>>>>",
        [
            (
                f"class {one['class']}",
                f"{one['flows']:,}",
                f"{one['finished']:,}",
                bytes_text(one["delivered_bytes"]),
                *(time_text(one[name], 4) for name in ("median_s", "p99_s")),
            )
            for one in summary["completion"]
        ],
    )


def _print_trains(summary: dict[str, Any]) -> None:
    trains = summary["trains"]
    print_table(
        ("TRAIN", "SENT", "RECEIVED", "RATE"),
        "<>>>",
        [
            (
                " to ".join(
                    f"r{one[f'{end}_rack']}h{one[f'{end}_host']}" for end in ("source", "destination")
                ),
                f"{one['sent_packets']:,}",
                f"{one['received_packets']:,}",
                rate_text(one["rate_bps"]),
            )
            for one in trains[:MOST_ROWS]
        ],
    )
    if len(trains) > MOST_ROWS:
        print_text(f"... and {len(trains) - MOST_ROWS:,} more: -o json has all")


def _print_paths(summary: dict[str, Any]) -> None:
    totals = summary["totals"]
    print_table(
        ("PATH", "SENT", "PACKETS", "LATENCY MEDIAN", "P99"),
        "<>>>>",
        [
            (
                path,
                bytes_text(sum(totals[f"{one}_bytes"] for one in kinds)),
                f"{sum(totals[f'{one}_packets'] for one in kinds):,}",
                *(time_text(summary["latency_s"][path][share], 4) for share in ("0.5", "0.99")),
            )
            for path, kinds in (
                ("packet", ("packet",)),
                ("circuit", ("circuit",)),
                ("all", ("packet", "circuit")),
            )
        ],
    )


def _print_circuits(summary: dict[str, Any]) -> None:
    circuits = summary["circuits"]
    print_table(
        ("CIRCUIT", "DAYS", "SENT", "USED"),
        "<>>>",
        [
            (
                f"r{one['source']} to r{one['destination']}",
                f"{one['days']:,}",
                bytes_text(one["bytes"]),
                percent_text(one["utilization"]),
            )
            for one in circuits[:MOST_ROWS]
        ],
    )
    if len(circuits) > MOST_ROWS:
        print_text(f"... and {len(circuits) - MOST_ROWS:,} more: -o json has all, and --out the days of each")
