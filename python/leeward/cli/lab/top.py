"""`leeward lab top`: circuits, queues and throughput of a lab, live."""

import json
import sys
import time
from typing import Annotated, Any

import typer

from leeward._quantities import rate_text, read_seconds, time_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.lab.options import NameOption, name_of_lab
from leeward.cli.notes import print_warning
from leeward.cli.options import name_flags
from leeward.cli.output import Format, FormatOption, print_csv, print_json, print_table, print_text

EXAMPLES = """\b
Examples:
  leeward lab top
  leeward lab top --name lab --once
  leeward lab top --once -o json
"""
CLEAR = "\x1b[H\x1b[2J"


def top(
    name: NameOption = None,
    every: Annotated[str, typer.Option(metavar="DURATION", help="Real time between refreshes.")] = "1s",
    once: Annotated[bool, typer.Option("--once", help="Show one interval, and exit.")] = False,
    output: FormatOption = Format.table,
) -> None:
    """Show circuits, queues and throughput of a lab with circuits, live.

    For each rack: the circuits from it that are up, the packets in its queues of the capacity, and its rates
    by packets and by circuits in virtual time since the last refresh. Ctrl-C ends it.
    """
    from leeward import lab

    with name_flags(every="--every"):
        pause = read_seconds("every", every)
    of_lab = name_of_lab(name)
    before = lab.view(of_lab)
    is_terminal = sys.stdout.isatty() and output is Format.table and not once
    is_first = True
    try:
        while True:
            time.sleep(pause)
            now = lab.view(of_lab)
            rates = _rates(before, now)
            if output is Format.json:
                document = now | rates
                print_json(document) if once else print(json.dumps(document, allow_nan=False), flush=True)
            elif output is Format.csv:
                print_csv(_rows(now, rates), COLUMNS["lab top"], is_first)
                is_first = False
            else:
                if is_terminal:
                    print(CLEAR, end="")
                _print_view(of_lab, now, rates)
            if once:
                return
            before = now
    except KeyboardInterrupt:
        return


def _rates(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Rates of racks in virtual time, and packets dropped, between two views."""
    elapsed = now["at_s"] - before["at_s"]

    def rate(key: str) -> list[float]:
        pairs = zip(now[key], before[key], strict=True)
        return [8 * (after - former) / elapsed if elapsed > 0 else 0.0 for after, former in pairs]

    return {
        "packet_bps": rate("packet_bytes"),
        "circuit_bps": rate("circuit_bytes"),
        "dropped_in_interval": now["dropped_packets"] - before["dropped_packets"],
    }


def _rows(now: dict[str, Any], rates: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each rack."""
    racks = now["racks"]

    def total(key: str, rack: int) -> int:
        return sum(now[key][rack * racks : (rack + 1) * racks])

    return [
        {
            "at_s": now["at_s"],
            "rack": f"r{rack}",
            "queued_packets": total("queued_packets", rack),
            "capacity_packets": total("capacity_packets", rack),
            "packet_bps": rates["packet_bps"][rack],
            "circuit_bps": rates["circuit_bps"][rack],
        }
        for rack in range(racks)
    ]


def _print_view(name: str, now: dict[str, Any], rates: dict[str, Any]) -> None:
    from leeward.lab.runs import BOUND

    late = now["late_p99_s"]
    timing = "" if late is None else f", packets late by {time_text(late, 3)} at p99"
    print_text(
        f"lab {name}, {time_text(now['at_s'], 4)} of virtual time at dilation {now['dilation']}{timing};"
        f" dropped {rates['dropped_in_interval']} packets"
    )
    if lost := now["lost_packets"]:
        print_warning(f"{lost} packets were lost outside the switch: choose a larger dilation")
    if late is not None and late > read_seconds("bound", BOUND):
        print_warning(f"99 % of the packets should be at most {BOUND} late: choose a larger dilation")
    for remark in now.get("remarks", []):
        print_warning(remark)
    print_table(
        ("RACK", "CIRCUIT TO", "QUEUED", "OF", "BY PACKETS", "BY CIRCUITS"),
        "<<>>>>",
        [
            (
                row["rack"],
                " ".join(f"r{to}" for source, to in now["circuits"] if f"r{source}" == row["rack"]) or "-",
                f"{row['queued_packets']}",
                f"{row['capacity_packets']}",
                rate_text(row["packet_bps"]),
                rate_text(row["circuit_bps"]),
            )
            for row in _rows(now, rates)
        ],
    )
    sys.stdout.flush()
