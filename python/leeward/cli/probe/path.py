"""`leeward probe path`: the rate of one path."""

import statistics
from typing import Annotated

import typer

from leeward._quantities import percent_text, rate_text, time_text
from leeward.cli.controller import CaOption, TokenFileOption
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.options import whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.probe.by_controller import ByControllerOption, run_survey, train_of
from leeward.cli.probe.options import (
    BurstsOption,
    DestinationArgument,
    GapOption,
    PacketsOption,
    PayloadOption,
    SecretOption,
    SourceArgument,
    remarks,
    secret_of,
    survey_progress,
)
from leeward.probe import Train

EXAMPLES = """\b
Examples:
  leeward probe path here 127.0.0.1
  leeward probe path 10.0.0.1 10.0.0.2 --times 5
  leeward probe path 10.0.0.1 10.0.0.2 --bursts 10 --packets 2000 -o json
  leeward probe path r0h1 r2h5 --controller https://leeward:7600 --token-file admin.token
"""


def path(
    source: SourceArgument,
    destination: DestinationArgument,
    times: Annotated[
        int,
        typer.Option(
            metavar="N", parser=whole_number(1, 1_000_000), help="Number of trains, one after another."
        ),
    ] = 1,
    bursts: BurstsOption = 10,
    packets: PacketsOption = 200,
    payload: PayloadOption = 1472,
    gap: GapOption = "1ms",
    secret: SecretOption = None,
    controller: ByControllerOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Measure the rate of one TCP connection, by packet trains."""
    from leeward import probe

    if controller:
        train = train_of(bursts, packets, payload, gap)
        hosts, options = [source, destination], {"train": train, "times": times}
        survey = run_survey(controller, token_file, ca, secret, "measuring", "path", hosts, **options)
        result = survey["result"]
    else:
        key = secret_of(secret)
        with survey_progress("measuring") as on_progress:
            trains = Train(bursts, packets, payload, gap)
            result = probe.path(
                source, destination, train=trains, times=times, secret=key, progress=on_progress
            )
    if print_data(output, result, result, COLUMNS["probe path"]):
        return
    print_table(
        ("RATE", "SPREAD", "LOSS", "ROUND TRIP", "SENT AT", "NOTE"),
        ">>>>><",
        [
            (
                rate_text(one["rate_bps"]),
                percent_text(one["spread"], 0),
                percent_text(one["loss"]),
                time_text(one["rtt_s"]),
                rate_text(one["sent_bps"]),
                remarks(one),
            )
            for one in result
        ],
    )
    if len(result) > 1:
        print_text(f"\nmedian {rate_text(statistics.median(one['rate_bps'] for one in result))}")
