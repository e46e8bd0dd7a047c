"""`leeward circuits simulate`: a network of packets and circuits, packet by packet."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward._quantities import bytes_text, percent_text, rate_text, time_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import parse_path
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text, print_words
from leeward.cli.progress import progress
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward circuits simulate examples/circuits/strobe.yaml
  leeward circuits simulate examples/circuits/rotorlb.yaml
  leeward circuits simulate examples/circuits/strobe.yaml --out results --picture sequence.svg
  leeward circuits simulate examples/circuits/strobe.yaml -o json
"""
STEPS = 200
SUMMARY = "summary.json"
MOST_ROWS = 20
"""Greatest number of trains or circuits in a table."""
_WORDS = (
    ("completion", "time from the first byte written to the last byte received, of finished flows"),
    ("used", "the share of its days during which a circuit sends"),
    ("latency", "the time that packets with data spend in the switch"),
)


def simulate(
    scenario: Annotated[str, typer.Argument(metavar="FILE", help="Scenario file.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=parse_path,
            help="Folder for tables (Parquet) and summary.json. An existing one must be empty or hold"
            " an earlier result, which is replaced.",
            show_default=False,
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="File for sequence plots and queue lengths of the rack pairs under `sample`, as SVG.",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Simulate hosts, TCP and the hybrid switch.

    Runs a scenario packet by packet, and shows the completion times of flows, the use of circuits, and the
    time that packets spend in the switch. Packets take only the circuit between their own two racks; with a
    `routing` in the scenario, they may also take circuits of other racks.
    """
    from leeward._files import atomic_file, atomic_folder, check_file, check_replaced
    from leeward.packets import picture as draw
    from leeward.packets import read, summary, tables

    if out is not None:
        check_replaced(out, "--out", "an earlier result of this command", _find_foreign)
    if picture is not None:
        if picture.suffix != ".svg":
            raise InputError.about("--picture", f"`{picture}`: expected a name that ends in .svg")
        check_file(picture, "--picture")
    network = read(scenario)
    if picture is not None and not network.sampled:
        message = f"`{scenario}` samples no queue: expected `sample` with `every` and `pairs`"
        raise InputError.about("--picture", message)
    with progress(f"simulating {scenario}", STEPS) as advance:
        done = 0

        def on_progress(share: float) -> None:
            nonlocal done
            position = round(share * STEPS)
            advance(position - done)
            done = position

        run = network.run(on_progress)
    figures = summary(run)
    totals = figures["totals"] | {"throughput_bps": figures["throughput_bps"]}
    if not print_data(output, figures, [totals], COLUMNS["circuits simulate"]):
        _print(figures)
    if out is not None:
        from pyarrow import parquet

        with atomic_folder(out) as folder:
            for name, table in tables(run).items():
                parquet.write_table(table, folder / f"{name}.parquet")
            (folder / SUMMARY).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        print_note(f"wrote {out}")
    if picture is not None:
        with atomic_file(picture) as temporary:
            temporary.write_text(draw(network, run), encoding="utf-8")
        print_note(f"wrote {picture}")


def _find_foreign(out: Path) -> str | None:
    """First entry of a folder that is not part of an earlier result; None in a valid or empty folder."""
    from leeward.packets import TABLES

    names = sorted(path.name for path in out.iterdir())
    expected = {SUMMARY, *(f"{name}.parquet" for name in TABLES)}
    foreign = [name for name in names if name not in expected]
    if not names or (SUMMARY in names and not foreign):
        return None
    return f"`{(foreign or names)[0]}`"


def _print(summary: dict[str, Any]) -> None:
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
