"""`leeward probe calibrate`: the best packet train for a network."""

from typing import Annotated

import typer

from leeward._quantities import bytes_text, percent_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.options import split_list, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.probe.options import (
    MOST,
    GapOption,
    HostsOption,
    PayloadOption,
    SecretOption,
    TransferOption,
    hosts_of,
    secret_of,
    survey_progress,
)
from leeward.probe import Train

EXAMPLES = """\b
Examples:
  leeward probe calibrate --hosts 10.0.0.1,10.0.0.2,10.0.0.3
  leeward probe calibrate --hosts 10.0.0.1,10.0.0.2 --bursts 10 --packets 50,200,1000 --for 5s -o json
"""


def calibrate(
    hosts: HostsOption,
    paths: Annotated[
        int,
        typer.Option(
            metavar="N",
            parser=whole_number(1, 1_000_000),
            help="Number of paths to measure between the hosts.",
        ),
    ] = 4,
    bursts: Annotated[
        str, typer.Option(metavar="N,...", help="Bursts of a train: values to try.")
    ] = "10,20,50",
    packets: Annotated[
        str, typer.Option(metavar="N,...", help="Packets of a burst: values to try.")
    ] = "50,100,200,500,1000,2000,4000",
    payload: PayloadOption = 1472,
    gap: GapOption = "1ms",
    duration: TransferOption = "10s",
    secret: SecretOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Compare packet trains with bulk transfers, and choose one.

    The choice is the cheapest train whose error is close to the least.
    """
    from leeward import probe

    targets, key = hosts_of(hosts), secret_of(secret)
    number = whole_number(1, MOST)
    grid = [[number(part) for part in split_list(text) or [] if part] for text in (bursts, packets)]
    with survey_progress("trying trains") as on_progress:
        result = probe.calibrate(
            targets,
            paths=paths,
            train=Train(payload=payload, gap=gap),
            bursts=grid[0],
            packets=grid[1],
            duration=duration,
            secret=key,
            progress=on_progress,
        )
    for error in dict.fromkeys(result["errors"]):
        error(error)
    if print_data(output, result, "trains", COLUMNS["probe calibrate"]):
        return
    best = result["best"]
    print_table(
        ("BURSTS", "PACKETS", "SENDS", "ERROR", "DEVIATION", "PATHS", ""),
        ">>>>>><",
        [
            (
                str(one["train"]["bursts"]),
                str(one["train"]["packets"]),
                bytes_text(one["train_bytes"]),
                percent_text(one["error"]),
                percent_text(one["deviation"]),
                str(one["paths"]),
                "use this" if one["train"] == best else "",
            )
            for one in result["trains"]
        ],
    )
    print_text(f"\nuse --bursts {best['bursts']} --packets {best['packets']}")
