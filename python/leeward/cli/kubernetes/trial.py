"""`leeward kubernetes trial`: what the plugin NetworkLoad would have done with the pods of a past time."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward._files import check_replaced
from leeward._quantities import percent_text, rate_text, read_milliseconds, read_rate, read_share
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import name_flags, parse_path, parse_seed, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.progress import progress
from leeward.cli.telemetry_options import HttpOption, UntilOption
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.kubernetes import Outcome, Recording
    from leeward.kubernetes.series import Period

EXAMPLES = """\b
Examples:
  leeward kubernetes trial --prometheus http://prom:9090 --since 7d
  leeward kubernetes trial --prometheus http://prom:9090 --kubeconfig cluster.conf --record week
  leeward kubernetes trial examples/kubernetes/week
  leeward kubernetes trial examples/kubernetes/week --hot 60% -o json
"""
LIVE = (
    "kubeconfig",
    "context",
    "prometheus",
    "since",
    "until",
    "http",
    "interval",
    "rack_label",
    "rack_link",
)
"""Options that choose what to record."""
MOST_INTERVAL_MS = 86_400_000
HEADERS = ("RACK", "NODES", "LINK", "HOT H BEFORE", "AFTER", "P98 BEFORE", "AFTER")


def trial(
    recording: Annotated[
        Path | None,
        typer.Argument(
            metavar="RECORDING",
            parser=parse_path,
            help="Folder of --record, to replay instead of a running cluster.",
            show_default=False,
        ),
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="File with the connection to the API server; by default that of kubectl.",
            show_default=False,
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Context in that file; by default the current one.", show_default=False
        ),
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Prometheus with kube-state-metrics, cAdvisor and node_exporter of the cluster.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Start: a time before the end (30d, 2h30m), a date, or seconds since 1970; by default 7d.",
            show_default=False,
        ),
    ] = None,
    until: UntilOption = None,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Length of the intervals over which rates are averaged; by default 5min.",
            show_default=False,
        ),
    ] = None,
    rack_label: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Label of nodes that names their rack; by default leeward.dev/rack or those of the sync.",
            show_default=False,
        ),
    ] = None,
    rack_link: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="Total rate of a rack's uplinks, for racks without the annotation leeward.dev/rack-link.",
            show_default=False,
        ),
    ] = None,
    http: HttpOption = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=parse_path,
            help="Also write the recording into this folder.",
            show_default=False,
        ),
    ] = None,
    hot: Annotated[str, typer.Option(metavar="SHARE", help="Utilization above which a rack is hot.")] = "75%",
    top: Annotated[
        int,
        typer.Option(
            metavar="N", parser=whole_number(1, 1_000_000), help="Greatest number of racks in the table."
        ),
    ] = 20,
    no_measured: Annotated[
        bool,
        typer.Option("--no-measured", help="Ignore measured peaks, as a scheduler in its first hour does."),
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", parser=parse_seed, help="Seed of ties, from 0.")] = 1,
    output: FormatOption = Format.table,
) -> None:
    """Place the pods of the last week again, as the plugin NetworkLoad would have, and count hot racks.

    Pods that exist come from the API server, those that have ended from Prometheus, and so does all traffic.
    A pod whose constraints or traffic are unknown stays where it was, and is counted with the reason. Nothing
    is changed: kubectl sends requests to read only.
    """
    from leeward.kubernetes import read_recording, replay, write_recording
    from leeward.kubernetes.files import find_foreign

    with name_flags(hot="--hot"):
        threshold = read_share("hot", hot, 0.01, 1)
    if record is not None:
        check_replaced(record, "--record", "an earlier recording", find_foreign)
    choices = dict(
        zip(
            LIVE,
            (kubeconfig, context, prometheus, since, until, http, interval, rack_label, rack_link),
            strict=True,
        )
    )
    if recording is not None:
        without_effect = [name for name, value in choices.items() if value is not None]
        if without_effect or record is not None:
            name = (without_effect or ["record"])[0].replace("_", "-")
            raise InputError.about(f"--{name}", "without effect on a recording, which has its own data")
        data = read_recording(recording)
    else:
        if prometheus is None:
            error = InputError.about(
                "--prometheus", "missing: the API server forgets pods and has no traffic"
            )
            error.add_note("--prometheus http://prom:9090, or the folder of a recording")
            raise error
        period = _period(since, until, interval)
        data = _collect(kubeconfig, context, prometheus, http, period, rack_label, rack_link)
        if record is not None:
            write_recording(data, record)
            print_note(f"wrote {record}")
    with progress("placing pods again", max(1, len(data.pods))) as advance:
        outcome = replay(data, threshold, seed, advance, not no_measured)
    if not print_data(output, outcome.record(), "racks", COLUMNS["kubernetes trial"]):
        _print(outcome, top)


def _period(since: str | None, until: str | None, interval: str | None) -> "Period":
    """Whole intervals within the given times."""
    from leeward.kubernetes.files import MOST_INTERVALS
    from leeward.kubernetes.series import Period
    from leeward.telemetry.times import moment

    now_ms = round(time.time() * 1000)
    with name_flags(since="--since", until="--until", interval="--interval"):
        length = read_milliseconds("interval", interval or "5min", MOST_INTERVAL_MS)
        if length < 60_000:
            raise InputError.about("interval", f"`{interval}`: expected at least 1min")
        last_ms = now_ms if until is None else moment("until", until, now_ms, now_ms)
        first_ms = moment("since", since or "7d", last_ms, now_ms)
    # Whole multiples, so that the same intervals are recorded again.
    begin_ms = -(-first_ms // length) * length
    count = (last_ms - begin_ms) // length
    if count < 2:
        raise InputError.about(
            "--since", f"`{since or '7d'}`: expected at least two intervals before the end"
        )
    if count > MOST_INTERVALS:
        raise InputError.about("--interval", f"{count:,} intervals: expected at most {MOST_INTERVALS:,}")
    return Period(begin_ms, length, count)


def _collect(
    kubeconfig: Path | None,
    context: str | None,
    prometheus: str,
    http: Path | None,
    period: "Period",
    rack_label: str | None,
    rack_link: str | None,
) -> "Recording":
    from leeward.kubernetes import collect
    from leeward.kubernetes.collect import steps
    from leeward.kubernetes.kubectl import Kubectl
    from leeward.telemetry.http import server

    flags = {
        "prometheus": "--prometheus",
        "http": "--http",
        "rack_link": "--rack-link",
        "kubeconfig": "--kubeconfig",
    }
    with name_flags(**flags), progress(f"reading the cluster and {prometheus}", steps(period)) as advance:
        rack_bps = None if rack_link is None else read_rate("rack_link", rack_link)
        access = server(prometheus, http)
        return collect(Kubectl(kubeconfig, context), access, period, rack_label, rack_bps, advance)


def _print(outcome: "Outcome", top: int) -> None:
    """Prints the answer in sentences, then the racks, then the pods that the trial cannot judge."""
    from leeward.kubernetes.recording import REASONS
    from leeward.telemetry.times import moment_text

    recording = outcome.recording
    print_text(f"{moment_text(recording.begin_ms)} to {moment_text(recording.end_ms)}")
    print_text()
    print_text(_answer(outcome))
    print_text()
    print_table(
        HEADERS,
        "<>>>>>>",
        [
            (
                rack.rack,
                f"{rack.nodes:,}",
                rate_text(rack.link_bps),
                f"{rack.before.hot_h:,.2f}",
                f"{rack.after.hot_h:,.2f}",
                percent_text(rack.before.p98, 0),
                percent_text(rack.after.p98, 0),
            )
            for rack in outcome.racks[:top]
        ],
    )
    if len(outcome.racks) > top:
        print_note(f"{len(outcome.racks) - top:,} more racks: --top N shows more, -o csv all", doubt=True)
    if outcome.not_judged:
        print_text()
        print_table(
            ("STAYS", "PODS", "REASON"),
            "<><",
            [(name, f"{count:,}", REASONS[name]) for name, count in outcome.not_judged.items()],
        )
    for note in outcome.notes:
        print_note(note, doubt=True)


def _answer(outcome: "Outcome") -> str:
    before, after = outcome.hot_racks
    came = len(outcome.moves) + outcome.stayed + sum(outcome.not_judged.values())
    stay = sum(outcome.not_judged.values())
    hours = f"{outcome.after.hot_h:,.2f} hours instead of {outcome.before.hot_h:,.2f}"
    p98 = f"{percent_text(outcome.after.p98)} instead of {percent_text(outcome.before.p98)}"
    return (
        f"With the plugin, {after:,} racks are hot instead of {before:,}, for {hours} in total.\n"
        f"The 98th percentile of their utilization is {p98}.\n"
        f"Of {came:,} pods that came, {len(outcome.moves):,} go to another node, {outcome.stayed:,} stay, and"
        f" {stay:,} cannot be judged.{_sources(outcome)}"
    )


def _sources(outcome: "Outcome") -> str:
    """Sources of the peaks of judged pods in a sentence."""
    names = {"annotation": "an annotation", "history": "earlier traffic", "limit": "a limit"}
    parts = [f"{names[source]} for {count:,}" for source, count in outcome.peaks.items()]
    return f"\nThe peak of a judged pod is from {' and from '.join(parts)}." if parts else ""
