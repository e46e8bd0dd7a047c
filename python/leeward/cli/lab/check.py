"""`leeward lab check`: the dilation that this machine carries, and the lab's times and rates."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward._quantities import rate_text, time_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.lab.options import BoundOption
from leeward.cli.options import name_flags, split_list, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.progress import STEPS, progress, steps

if TYPE_CHECKING:
    from leeward.lab import Check, LabCheck, Trial

EXAMPLES = """\b
Examples:
  sudo leeward lab check
  sudo leeward lab check --racks 3 --hosts-per-rack 4
  sudo leeward lab check --dilations 40,80,120 --bound 2us
  sudo leeward lab check -o json
"""
_TITLES = {
    "table 1": "Etalon's table 1 under a dilation of {}, with one pair of racks that sends:",
    "switch": "Largest real rate, under a dilation of {}:",
    "programs": "Programs in virtual time, under a dilation of {}:",
}


def check(
    dilations: Annotated[
        str | None,
        typer.Option(
            metavar="N,...",
            help="Dilations to try. [default: 20,30,40,60,80,120,160,240,360,500,1000]",
            show_default=False,
        ),
    ] = None,
    racks: Annotated[
        int, typer.Option(metavar="N", parser=whole_number(2, 64), help="Racks, if all racks send.")
    ] = 8,
    hosts_per_rack: Annotated[
        int,
        typer.Option(metavar="N", parser=whole_number(1, 16), help="Hosts of each rack, if all racks send."),
    ] = 2,
    bound: BoundOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Find the dilation that this machine carries, and check the lab under it.

    Tries one dilation after another, for two seconds each, until 99 % of the packets are within the bound:
    for one pair of racks that sends, and for all racks that send to all others. Under the dilation of the
    pair, measures Etalon's table 1. Then measures the largest real rate of the switch, and compares the
    rates and latencies that iperf3, netperf, ping and sockperf read with those of the virtual network.
    Programs that are not installed are left out. The command takes two to three minutes.
    """
    from leeward import lab

    with name_flags(dilations="--dilations", dilation="--dilations", bound="--bound"):
        ladder = lab.LADDER if dilations is None else _numbers(dilations)
        with progress("checking the lab", STEPS) as advance:
            report = partial(steps(advance), 0)
            result = lab.check(racks, hosts_per_rack, bound=bound, dilations=ladder, progress=report)
    trials = [_finite(asdict(trial)) for trial in result.trials]
    checks = [asdict(row) for row in result.checks]
    document = {"dilations": _dilations(result), "trials": trials, "checks": checks}
    if print_data(output, document, [*_csv(result.trials), *checks], COLUMNS["lab check"]):
        return
    _print_trials(result.trials)
    for part, title in _TITLES.items():
        rows = [row for row in result.checks if row.part == part]
        print_text(f"\n{title.format(rows[0].dilation)}\n")
        _print_checks(rows, "PAPER" if part == "table 1" else "EXPECTED")
    print_text("\n" + _recommendation(result, racks))


def _numbers(text: str) -> list[int]:
    number = whole_number(1, 100_000)
    try:
        return [number(part) for part in split_list(text) or []]
    except typer.BadParameter as error:
        error.param_hint = "--dilations"
        raise


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """A row for JSON, which has no infinity and no NaN."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }


def _dilations(result: "LabCheck") -> dict[str, int | None]:
    """Recommended dilations by the racks that send."""
    kept = {"pair": result.recommended("pair"), "all": result.recommended("all")}
    return {senders: trial.dilation if trial else None for senders, trial in kept.items()}


def _csv(trials: Sequence["Trial"]) -> Iterator[Mapping[str, object]]:
    """Trials as rows of checks: their lateness, and the real rate that they carried."""
    for trial in trials:
        row = {"part": f"ladder: {trial.senders}", "dilation": trial.dilation}
        late = 1e6 * trial.late_p99_s
        yield row | {
            "quantity": "lateness of 99 % of the packets",
            "unit": "us",
            "measured": late if math.isfinite(late) else None,
            "holds": trial.kept_up,
        }
        yield row | {
            "quantity": "real packets",
            "unit": "Gb/s of real time",
            "measured": 1e-9 * trial.rate_bps,
        }


def _print_trials(trials: Sequence["Trial"]) -> None:
    print_table(
        ("RACKS THAT SEND", "DILATION", "DAY", "DEVIATION", "PACKETS LATE P99", "LOST", "CARRIED", "KEPT UP"),
        "<>>>>>>>",
        [
            (
                "one pair" if trial.senders == "pair" else "all",
                f"{trial.dilation}",
                *(
                    "-" if not math.isfinite(value) else time_text(value, 4)
                    for value in (trial.day_s, trial.day_deviation_s, trial.late_p99_s)
                ),
                f"{trial.lost_packets}",
                rate_text(trial.rate_bps),
                "yes" if trial.kept_up else "no",
            )
            for trial in trials
        ],
    )


def _print_checks(rows: Sequence["Check"], expected: str) -> None:
    print_table(
        ("QUANTITY", expected, "HERE", "ACCEPTED", "OK"),
        "<>><<",
        [
            (
                row.quantity,
                _text(row.expected, row.unit),
                _text(row.measured, row.unit),
                row.accepted.text,
                row.note or ("yes" if row.holds else "no"),
            )
            for row in rows
        ],
    )


def _text(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if unit == "packets" else f"{value:.3f} {unit.removesuffix(' of real time')}"


def _recommendation(result: "LabCheck", racks: int) -> str:
    """Recommended dilations, a sentence each."""
    sentences = []
    for senders, who in (
        ("pair", "one pair of racks that sends"),
        ("all", f"{racks} racks that all send"),
    ):
        trials = [trial for trial in result.trials if trial.senders == senders]
        last = trials[-1]
        if last.kept_up:
            sentences.append(
                f"Use a dilation of {last.dilation} for {who}: it carried {rate_text(last.rate_bps)} of"
                " real packets."
            )
        else:
            sentences.append(
                f"No dilation up to {last.dilation} carries {who}: stop other programs, or try larger ones."
            )
    return "\n".join(sentences)
