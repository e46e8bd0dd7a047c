"""`leeward circuits schedule`: schedules of circuits for the demand between racks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward._quantities import bytes_text, percent_text, time_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note, print_warning
from leeward.cli.options import name_flags, parse_path, split_list
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text, print_words
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.circuits import Schedule

EXAMPLES = """\b
Examples:
  leeward circuits schedule examples/circuits/demand.csv
  leeward circuits schedule examples/circuits/demand.csv --scheduler solstice,eclipse,rotor \\
      --picture week.svg
  leeward circuits schedule examples/circuits/demand.csv --scheduler eclipse:keep_min_day=true \\
      --circuit 100Gbps --night 10us --min-day 90us -o json
"""
MOST_DAYS = 40
"""Greatest number of days of a schedule in a table."""
_WORDS = (
    ("week", "the sum of all nights and days; up: the days, during which circuits are up"),
    ("served", "the bytes of the demand that circuits carry"),
    ("left", "the demand left for packets; packets take: the time of the busiest port for this demand alone"),
    ("used", "the bytes that circuits carry, as a share of those that they could carry"),
)


def schedule(
    demand: Annotated[
        str,
        typer.Argument(
            metavar="DEMAND",
            help="Bytes from each rack to each other: a square of numbers, rows are sources; text or .npy.",
            show_default=False,
        ),
    ],
    scheduler: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Schedulers; settings follow colons: eclipse:keep_min_day=true.",
        ),
    ] = "solstice",
    days: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="File of days (YAML or JSON) to evaluate as well.",
            show_default=False,
        ),
    ] = None,
    circuit: Annotated[str, typer.Option(metavar="RATE", help="Rate of a circuit.")] = "80Gbps",
    packet: Annotated[
        str, typer.Option(metavar="RATE", help="Rate of a rack's link to the packet switch.")
    ] = "10Gbps",
    night: Annotated[
        str, typer.Option(metavar="DURATION", help="Time that circuits take to change.")
    ] = "20us",
    week: Annotated[str, typer.Option(metavar="DURATION", help="Maximum length of a schedule.")] = "2ms",
    min_day: Annotated[
        str, typer.Option("--min-day", metavar="DURATION", help="Least length of a day; 0s for none.")
    ] = "180us",
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="File for a picture of the schedules, as SVG.",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Make schedules for a demand matrix.

    Shows the circuits of each day, the bytes that each day serves, and the bytes left for packets.
    """
    from leeward._files import atomic_file, check_file
    from leeward.circuits import Network, read, read_days
    from leeward.circuits import picture as draw
    from leeward.circuits import schedule as make_schedule

    if picture is not None:
        if picture.suffix != ".svg":
            raise InputError.about("--picture", f"`{picture}`: expected a name that ends in .svg")
        check_file(picture, "--picture")
    flags = {name: f"--{name}" for name in ("scheduler", "circuit", "packet", "night", "week")}
    flags["min_day"] = "--min-day"
    network = Network(circuit, packet, night, week, min_day)
    matrix = read(demand)
    with name_flags(**flags):
        schedules = [make_schedule(matrix, name, network) for name in split_list(scheduler) or []]
    if days is not None:
        file_days = read_days(days)

        def days_of_file(*_: object) -> "list[tuple[float, list[tuple[int, int]]]]":
            return file_days

        with name_flags(**flags | {"days": str(days)}):
            schedules.append(make_schedule(matrix, days_of_file, network))
    within = schedules[0].within_bytes if schedules else 0
    if within:
        print_warning(
            f"{bytes_text(within)} on the diagonal of the demand are within racks and use no circuit"
        )
    records = [one.record() for one in schedules]
    rows = [record | {"days": len(record["days"])} for record in records]
    if not print_data(output, records, rows, COLUMNS["circuits schedule"]):
        _print(schedules)
    if picture is not None:
        with atomic_file(picture) as temporary:
            temporary.write_text(draw(schedules), encoding="utf-8")
        print_note(f"wrote {picture}")


def _print(result: "list[Schedule]") -> None:
    print_table(
        ("SCHEDULER", "DAYS", "WEEK", "UP", "PAIRS", "SERVED", "OF DEMAND", "LEFT", "PACKETS TAKE"),
        "<>>>>>>>>",
        [
            (
                one.scheduler,
                f"{len(one.days):,}",
                time_text(one.length_s, 6),
                percent_text(one.up),
                f"{one.pairs:,}",
                bytes_text(one.served_bytes),
                percent_text(one.served),
                bytes_text(one.left_bytes),
                time_text(one.packets_take_s, 4),
            )
            for one in result
        ],
    )
    for one in result:
        if not one.days:
            continue
        print()
        print_table(
            (one.scheduler.upper(), "FROM", "LENGTH", "CIRCUITS", "SERVED", "USED"),
            "<>>>>>",
            [
                (
                    f"day {number}",
                    time_text(day.start_s, 6),
                    time_text(day.length_s, 6),
                    f"{len(day.circuits):,}",
                    bytes_text(day.served_bytes),
                    percent_text(day.used),
                )
                for number, day in enumerate(one.days[:MOST_DAYS])
            ],
        )
        if len(one.days) > MOST_DAYS:
            print_text(
                f"... and {len(one.days) - MOST_DAYS:,} more: -o json has all, with the circuits of each day"
            )
    print_words(_WORDS)
