"""`leeward probe path`, `cross` and `steady`: one path."""

import statistics
import sys
from typing import Annotated

import typer

from leeward.cli.options import listed, whole
from leeward.cli.output import Format, FormatOption, print_json, print_table
from leeward.cli.probe.options import (
    BurstsOption,
    DestinationArgument,
    GapOption,
    PacketsOption,
    PayloadOption,
    SecretOption,
    SourceArgument,
    delay,
    flags_of,
    percent,
    rate,
    secret_of,
    surveying,
)
from leeward.probe import Train
from leeward.report.rows import seconds

PATH_EXAMPLES = """\b
Examples:
  leeward probe path here 127.0.0.1
  leeward probe path 10.0.0.1 10.0.0.2 --times 5
  leeward probe path 10.0.0.1 10.0.0.2 --bursts 10 --packets 2000 -o json
"""
CROSS_EXAMPLES = """\b
Examples:
  leeward probe cross 10.0.0.1 10.0.0.2
  leeward probe cross 10.0.0.1 10.0.0.2 --rate 1Gbps --for 5s
  leeward probe cross here 127.0.0.1 --for 1s -o json
"""
STEADY_EXAMPLES = """\b
Examples:
  leeward probe steady 10.0.0.1 10.0.0.2 --every 10s --times 360
  leeward probe steady here 127.0.0.1 --every 200ms --times 5 --lags 200ms,400ms
"""


def path(
    source: SourceArgument,
    destination: DestinationArgument,
    times: Annotated[
        int, typer.Option(metavar="N", parser=whole(1, 1_000_000), help="How many trains, one by one.")
    ] = 1,
    bursts: BurstsOption = 10,
    packets: PacketsOption = 200,
    payload: PayloadOption = 1472,
    gap: GapOption = "1ms",
    secret: SecretOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Measure what one TCP connection would get, by packet trains."""
    from leeward import probe

    known = secret_of(secret)
    with surveying("measuring") as tell:
        train = Train(bursts, packets, payload, gap)
        made = probe.path(source, destination, train=train, times=times, secret=known, progress=tell)
    if output is Format.json:
        print_json(made)
        return
    print_table(
        ("RATE", "SPREAD", "LOSS", "ROUND TRIP", "SENT AT", "NOTE"),
        ">>>>><",
        [
            (
                rate(one["rate_bps"]),
                percent(one["spread"], 0),
                percent(one["loss"]),
                delay(one["rtt_s"]),
                rate(one["sent_bps"]),
                flags_of(one),
            )
            for one in made
        ],
    )
    if len(made) > 1:
        print(f"\nmedian {rate(statistics.median(one['rate_bps'] for one in made))}")


def cross(
    source: SourceArgument,
    destination: DestinationArgument,
    duration: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long a transfer is, 100ms to 1min.")
    ] = "10s",
    rate_given: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="RATE",
            help="What the path carries; by default a second transfer finds out.",
            show_default=False,
        ),
    ] = None,
    secret: SecretOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Count competing connections.

    They are equivalents of connections that always have something to send.
    """
    from leeward import probe

    known = secret_of(secret)
    with surveying("measuring") as tell:
        made = probe.cross(
            source, destination, duration=duration, rate=rate_given, secret=known, progress=tell
        )
    if output is Format.json:
        print_json(made)
        return
    print(f"one connection gets {rate(made['one_bps'])}", end="")
    print("" if made["each_bps"] is None else f", each of two {rate(made['each_bps'])}")
    if made["connections"] is None:
        print("\nA second connection took nothing from the first: there is no telling what else is there.")
        print("hint: --rate says what the path carries", file=sys.stderr)
        return
    of = f"of {rate(made['path_bps'])}"
    print(f"{made['connections']:.2f} competing connections on a path {of}", end="")
    if made["plausible"]:
        print(", {:.1f} to {:.1f} over time".format(*made["plausible"]), end="")
    print("\n")
    print_table(
        ("OWN CONNECTIONS", "EACH GETS"),
        ">>",
        [(str(one["connections"]), rate(one["each_bps"])) for one in made["expected"]],
    )


def steady(
    source: SourceArgument,
    destination: DestinationArgument,
    every: Annotated[str, typer.Option(metavar="TIME", help="From one train to the next.")] = "10s",
    times: Annotated[
        int, typer.Option(metavar="N", parser=whole(2, 1_000_000), help="How many trains.")
    ] = 60,
    lags: Annotated[
        str, typer.Option(metavar="TIMES", help="How much earlier, separated by commas.")
    ] = "1min,5min,10min,30min",
    bursts: BurstsOption = 10,
    packets: PacketsOption = 200,
    payload: PayloadOption = 1472,
    gap: GapOption = "1ms",
    secret: SecretOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Say how long a measurement of a path holds."""
    from leeward import probe

    known = secret_of(secret)
    with surveying("measuring") as tell:
        made = probe.steady(
            source,
            destination,
            train=Train(bursts, packets, payload, gap),
            every=every,
            times=times,
            lags=listed(lags) or [],
            secret=known,
            progress=tell,
        )
    if output is Format.json:
        print_json(made)
        return
    rates = [sample["rate_bps"] for sample in made["samples"]]
    print(f"{len(rates)} measurements, from {rate(min(rates))} to {rate(max(rates))}\n")
    if not made["lags"]:
        print("hint: no two of them are as far apart as --lags says", file=sys.stderr)
        return
    print_table(
        ("EARLIER BY", "PAIRS", "ERROR, MEDIAN", "MEAN", "95 %"),
        ">>>>>",
        [
            (
                seconds(lag["lag_s"]),
                str(lag["pairs"]),
                percent(lag["median"], 2),
                percent(lag["mean"], 2),
                percent(lag["p95"], 2),
            )
            for lag in made["lags"]
        ],
    )
