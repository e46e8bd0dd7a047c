"""`leeward slo model`: a model of a trace as Markov-modulated arrivals."""

from typing import Annotated, Any

import typer

from leeward._quantities import percent_text, read_seconds, time_text, work_rate_text, work_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import name_flags, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text, print_words
from leeward.cli.progress import slow_notice
from leeward.cli.slo.options import (
    NETWORK,
    DeviceOption,
    DialectOption,
    EventOption,
    LargestOption,
    NetworkOption,
    SeekOption,
    SortOption,
    StageOption,
    TraceFile,
    VolumeOption,
    number,
    open_trace_file,
    stages,
)
from leeward.cli.slo.workloads import print_notes

EXAMPLES = """\b
Examples:
  leeward slo model examples/slo/mail.csv.gz --stage network-out
  leeward slo model examples/slo/mail.csv.gz --device examples/slo/ssd.json --interval 1s -o json
  leeward slo model examples/slo/mail.csv.gz --stage network-in --published
"""
_WORDS = (
    ("to", "rate per second at which the chain goes to this state"),
    ("misfit", "model divided by trace, minus 1: for mean requests, mean work, and the heaviest interval"),
    ("lift", "factor of all rates, so that bounds hold for the trace alone; part of the misfit"),
)


def model(
    trace: TraceFile,
    stage: StageOption = None,
    device: DeviceOption = None,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Shortest length of the windows in which requests are counted. It doubles while counts show"
            " only one state.  [default: 100ms]",
            show_default=False,
        ),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Step of the model.  [default: 10us]", show_default=False),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Length of a window whose requests count as one, with their work summed.  [default: 1ms]",
            show_default=False,
        ),
    ] = None,
    states: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(1, 16),
            help="Greatest number of states, 1 to 16.  [default: 10]",
            show_default=False,
        ),
    ] = None,
    deviations: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="With --published: standard deviations that a state covers, to either side.  [default: 2]",
            show_default=False,
        ),
    ] = None,
    size_model: Annotated[
        str | None,
        typer.Option(
            metavar="empirical|exponential|hyperexponential",
            help="Model of sizes; by default empirical.",
            show_default=False,
        ),
    ] = None,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="Fit like the released code of the thesis; other options still apply."
        ),
    ] = False,
    dialect: DialectOption = None,
    event: EventOption = "Q",
    volume: VolumeOption = None,
    largest: LargestOption = "1GiB",
    sort: SortOption = False,
    seek: SeekOption = None,
    network: NetworkOption = NETWORK,
    output: FormatOption = Format.table,
) -> None:
    """Fit a Markov chain to a trace, stage by stage.

    Each state is a phase of the trace with its own request rate. A trace has as many states as its request
    counts show, and no more. Bounds on percentiles of latency use the chain. A note names a trace whose load
    changes over its time, because such bounds assume that it does not.
    """
    source = open_trace_file(
        trace,
        device=device,
        dialect=dialect,
        event=event,
        volume=volume,
        largest=largest,
        sort=sort,
        seek=seek,
        network=network,
    )
    settings = ("interval", "step", "batch", "states", "deviations")
    flags = {"sizes": "--size-model"} | {name: f"--{name}" for name in settings}
    with slow_notice(f"reading {trace}"), name_flags(**flags):
        models = [
            source.model(
                one,
                interval_s=None if interval is None else read_seconds("--interval", interval),
                step_s=None if step is None else read_seconds("--step", step),
                batch_s=None if batch is None else read_seconds("--batch", batch),
                states=states,
                deviations=deviations,
                sizes=size_model,
                published=published,
            )
            for one in stages(stage, device)
        ]
    rows = [
        {"stage": one["stage"], "state": at} | state
        for one in models
        for at, state in enumerate(one["states"])
    ]
    if not print_data(output, models, rows, COLUMNS["slo model"]):
        for index, one in enumerate(models):
            print("\n" * (index > 0), end="")
            _print(one)
        print_words(_WORDS)
        print_note()
        for one in models:
            window, batch = time_text(one["interval_s"]), time_text(one["batch_s"])
            batches = f"requests within {batch} as one" if one["batch_s"] else "each request for itself"
            print_note(f"{one['stage']}: counted in windows of {window}, {batches}")
    if output is not Format.json:
        print_notes([note for one in models for note in one["notes"]])


def _print(result: dict[str, Any]) -> None:
    unit, step = result["unit"], result["step_s"]
    count = len(result["states"])
    headers = ["STATE", "OF THE TIME", "REQUESTS/S", "WORK OF ONE", "WORK/S"]
    headers += [f"TO {to}" for to in range(count)] if count > 1 else []
    states = "1 state" if count == 1 else f"{count} states"
    print_text(f"{result['stage']}: {states}, {work_rate_text(result['mean_work_per_s'], unit)} on average\n")
    rows = []
    for at, state in enumerate(result["states"]):
        cells = [
            str(at),
            percent_text(state["share"]),
            number(state["requests_per_s"]),
            work_text(state["mean_work"], unit),
            work_rate_text(state["requests_per_s"] * state["mean_work"], unit),
        ]
        if count > 1:
            row = enumerate(result["transitions"][at])
            cells += ["" if to == at else number(share / step) if share else "0" for to, share in row]
        rows.append(cells)
    print_table(headers, "<" + ">" * (len(headers) - 1), rows)
    print()
    print_table(
        ("MISFIT", ""),
        "<>",
        [
            *((figure, _signed(result["misfit"][figure])) for figure in ("requests", "work", "peak")),
            *([("lift", f"{result['lift']:.3g}x")] if result["lift"] > 1 else []),
        ],
    )


def _signed(share: float) -> str:
    return f"{'+' if share > 0 else ''}{percent_text(share)}"
