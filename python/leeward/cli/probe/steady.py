"""`leeward probe steady`: error of earlier measurements of a path."""

from typing import Annotated, Any

import typer

from leeward._quantities import percent_text, rate_text, time_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import split_list, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.probe.options import (
    BurstsOption,
    DestinationArgument,
    GapOption,
    PacketsOption,
    PayloadOption,
    SecretOption,
    SourceArgument,
    report_failures,
    secret_of,
    survey_progress,
)
from leeward.probe import Train

EXAMPLES = """\b
Examples:
  leeward probe steady 10.0.0.1 10.0.0.2 --every 10s --times 360
  leeward probe steady here 127.0.0.1 --every 200ms --times 5 --lags 200ms,400ms
"""


def steady(
    source: SourceArgument,
    destination: DestinationArgument,
    every: Annotated[str, typer.Option(metavar="DURATION", help="Time between trains.")] = "10s",
    times: Annotated[
        int, typer.Option(metavar="N", parser=whole_number(2, 1_000_000), help="Number of trains.")
    ] = 60,
    lags: Annotated[
        str,
        typer.Option(metavar="DURATION,...", help="Ages of the earlier measurement."),
    ] = "1min,5min,10min,30min",
    bursts: BurstsOption = 10,
    packets: PacketsOption = 200,
    payload: PayloadOption = 1472,
    gap: GapOption = "1ms",
    secret: SecretOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Measure how long a measurement of a path stays valid."""
    from leeward import probe

    key = secret_of(secret)
    with survey_progress("measuring") as on_progress:
        result = probe.steady(
            source,
            destination,
            train=Train(bursts, packets, payload, gap),
            every=every,
            times=times,
            lags=split_list(lags) or [],
            secret=key,
            progress=on_progress,
        )
    if not print_data(output, result, "lags", COLUMNS["probe steady"]):
        _print(result)
    report_failures(result["errors"], f"of {times} trains could not be measured")


def _print(result: dict[str, Any]) -> None:
    rates = [sample["rate_bps"] for sample in result["samples"]]
    least, most = rate_text(min(rates)), rate_text(max(rates))
    print_text(f"{len(rates)} measurements, from {least} to {most}\n")
    if not result["lags"]:
        print_note("hint: no two samples are as far apart as a lag of --lags")
        return
    print_table(
        ("EARLIER BY", "PAIRS", "ERROR, MEDIAN", "MEAN", "95 %"),
        ">>>>>",
        [
            (
                time_text(lag["lag_s"]),
                str(lag["pairs"]),
                percent_text(lag["median"], 2),
                percent_text(lag["mean"], 2),
                percent_text(lag["p95"], 2),
            )
            for lag in result["lags"]
        ],
    )
