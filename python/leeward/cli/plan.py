"""`leeward plan`: racks that need more ports or less work."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward._quantities import percent_text, rate_text, read_share
from leeward.cli.analysis_output import OutOption, check, write
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import name_flags
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text, print_words
from leeward.cli.progress import progress
from leeward.cli.telemetry_options import FLAGS, Telemetry, takes_telemetry

if TYPE_CHECKING:
    from leeward.plan.planning import Plan, PlannedRack
    from leeward.plan.simulate import Outcome

EXAMPLES = """\b
Examples:
  leeward plan --cluster examples/clusters/racks.yaml \\
      --telemetry examples/telemetry/day.parquet --cadence 5min
  leeward plan --cluster examples/clusters/racks.yaml \\
      --telemetry examples/telemetry/day.parquet --cadence 5min \\
      --hot 60% --percentile 95 --port-rate 10Gbps --out plan -o json
"""
MOST_RACKS = 30
"""Greatest number of racks in the table."""
_WORDS = (
    ("p", "percentile of utilization over the observed intervals"),
    ("hot", "number of measured intervals over the threshold"),
    ("hot then", "number of simulated intervals over the threshold, with the new ports or after the shift"),
    ("ports", "number of ports to add, and the speed of each"),
    ("shift", "share of the rack's work that has to move to other racks"),
    (
        "not modelled",
        "demand that grows into new capacity; room for moved work; traffic between moved and other work",
    ),
)


@takes_telemetry(interval="5min")
def plan(
    telemetry: Telemetry,
    hot: Annotated[
        str, typer.Option(metavar="SHARE", help="Greatest utilization of a rack's links, such as 75%.")
    ] = "75%",
    percentile: Annotated[
        float,
        typer.Option(metavar="N", help="Percentile of utilization over the intervals, above 0 to 100."),
    ] = 98.0,
    port_rate: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="Speed of an uplink port, such as 100Gbps; by default derived from capacities.",
        ),
    ] = None,
    out: OutOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Plan how to bring busy racks under a threshold.

    A busy rack has an uplink or downlink over the threshold. For each busy rack, shows the number of ports to
    add. Also shows the share of work to move instead, and the racks that take this work. The command
    simulates both remedies on the measured load.
    """
    from leeward._quantities import read_rate
    from leeward.plan.planning import STEPS, Settings
    from leeward.plan.planning import plan as decide
    from leeward.plan.tables import tables

    check(out, None, "plan")
    with name_flags(**FLAGS, threshold="--hot", percentile="--percentile", port="--port-rate"):
        settings = Settings(
            round(1e6 * read_share("threshold", hot)),
            percentile,
            telemetry.interval_ms,
            telemetry.least_covered,
            port_bps=None if port_rate is None else read_rate("port", port_rate),
        )
    samples = telemetry.read()
    with name_flags(**FLAGS), progress("planning", STEPS) as advance:
        result = decide(samples, settings, lambda: advance(1))
    record = result.record()
    if not print_data(output, record, _records(record), COLUMNS["plan"]):
        _print(result)
    if output is not Format.json:
        _print_doubts(result)
    if out is not None:
        write(out, "plan", tables(result), result.summary())


def _records(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of CSV: a row for each link of a planned rack."""
    for rack in record["planned"]:
        for link, runs in rack["links"].items():
            outcomes = {"before": runs["before"], "with_ports": runs["ports"], "with_shift": runs["shift"]}
            yield rack | {"link": link} | outcomes


def _print(result: "Plan") -> None:
    threshold = percent_text(result.settings.threshold_ppm / 1e6, None)
    rank = f"p{result.settings.percentile:g}"
    print_text(
        f"{result.over:,} of {result.racks:,} racks over {threshold} in {rank};"
        f" {result.ports:,} ports to add\n"
    )
    if result.planned:
        print_table(
            ("RACK", "LINK", rank.upper(), "HOT", "PORTS", "HOT THEN", "SHIFT", "TO", "HOT THEN"),
            "<<>>>>><>",
            [row for rack in result.planned[:MOST_RACKS] for row in _rows(rack)],
        )
        if len(result.planned) > MOST_RACKS:
            print_text(f"... and {len(result.planned) - MOST_RACKS:,} more: -o json lists them")
    if result.taking:
        print()
        print_table(
            ("TAKES WORK", rank.upper(), "HOT", f"{rank.upper()} THEN", "HOT THEN"),
            "<>>>>",
            [_taking_row(name, runs) for name, runs in result.taking.items()],
        )
    if result.planned:
        print_words(_WORDS)


def _rows(rack: "PlannedRack") -> list[tuple[str, ...]]:
    """Rows of a rack, one for each link. Only the first row has the rack's name, ports and shift."""
    rows: list[tuple[str, ...]] = []
    for link, runs in rack.outcomes.items():
        before = runs["before"]
        measured = (link.rpartition(":")[2], percent_text(before.percentile), f"{before.hot:,}")
        first = not rows
        lost_text = f" ({rack.ports.lost} lost)" if rack.ports.lost else ""
        ports_text = (
            f"+{rack.ports.added} x {rate_text(rack.ports.speed_bps, None)}{lost_text}" if first else ""
        )
        targets = [f"{name} {percent} %" for name, percent in rack.shift.to.items()]
        if rack.shift.left:
            targets.append(f"{rack.shift.left} % nowhere")
        to = ", ".join(targets) if first else ""
        share = f"{rack.shift.percent} %" if first else ""
        ports, shift = f"{runs['ports'].hot:,}", f"{runs['shift'].hot:,}"
        rows.append((rack.rack if first else "", *measured, ports_text, ports, share, to, shift))
    return rows


def _taking_row(name: str, runs: "dict[str, Outcome]") -> tuple[str, ...]:
    before, after = runs["before"], runs["shift"]
    return (
        name,
        percent_text(before.percentile),
        f"{before.hot:,}",
        percent_text(after.percentile),
        f"{after.hot:,}",
    )


def _print_doubts(result: "Plan") -> None:
    """Prints the assumptions and the omissions to stderr."""
    assumed_bps = sorted({rack.ports.speed_bps for rack in result.planned if rack.ports.assumed})
    if assumed_bps:
        speeds = ", ".join(rate_text(speed, None) for speed in assumed_bps)
        print_note(f"speed of a port: {speeds}, assumed from capacities; --port-rate sets it", doubt=True)
    rest = result.over - len(result.planned)
    if rest:
        print_note(f"no plan for the {rest:,} least busy racks over the threshold", doubt=True)
    for reason, number, examples in result.discards:
        names = f": {', '.join(examples)}" if examples else ""
        print_note(f"left out: {number:,} {reason}{names}", doubt=True)
