"""`leeward slo check`: bounds and a replay of the traces."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward._quantities import time_text
from leeward.cli.cluster import read
from leeward.cli.options import advised, given_by, place, seed, whole
from leeward.cli.output import Format, FormatOption, print_json, print_table, print_words
from leeward.cli.progress import patience
from leeward.cli.slo.bound import MethodOption
from leeward.cli.slo.bound import bound as print_bounds
from leeward.cli.slo.promises import ClusterOption, WorkloadsArgument, misses, objective, print_notes

EXAMPLES = """\b
Examples:
  leeward slo check examples/slo/w.yaml --cluster examples/slo/cluster.yaml
  leeward slo check examples/slo/w.yaml --cluster examples/slo/cluster.yaml --replay
  leeward slo check examples/slo/w.yaml --cluster examples/slo/cluster.yaml --replay --method dnc \\
      --out requests.parquet
  leeward slo check examples/slo/w.yaml --cluster examples/slo/cluster.yaml --replay --tails --seed 7

The code is 1 if an SLO is not kept, for sure or in the replay, or if a bound is exceeded.
"""
_WORDS = (
    ("promised", "the bound: of every request, or, by snc, of the SLO's percentile"),
    ("seen", "the latency at the SLO's percentile, 99.9 for best effort"),
    ("worst", "the largest latency"),
    ("windows", "those of three minutes in which the SLO was met"),
    (
        "bound",
        "held, or EXCEEDED: by the worst; of snc or --tails, by what was seen; - where none is of this",
    ),
)


def check(
    file: WorkloadsArgument,
    cluster: ClusterOption,
    replay: Annotated[
        bool, typer.Option("--replay", help="Replay the traces; without it, only check bounds.")
    ] = False,
    over: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="Requests over a limit are held (default), as bounds assume, or demoted below all others.",
            show_default=False,
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            metavar="ORDER",
            help="Order: priority (default), fifo (on links too), shares, cake or deadline at devices.",
            show_default=False,
        ),
    ] = None,
    method: MethodOption = "best",
    outstanding: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole(1, 1_000_000),
            help="Requests that a device takes at once, in bounds and replay; by default the file's value.",
            show_default=False,
        ),
    ] = None,
    tails: Annotated[
        bool,
        typer.Option("--tails", help="Draw the time of requests without queueing from the device's profile."),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", parser=seed, help="Seed of --tails, from 0 (default 1).", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=place,
            help="File for the latency of each request, as Parquet.",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Compare bounds with a replay of the traces.

    Requests pass one by one through links and devices, under the assigned priorities and limits.
    """
    if not replay:
        options = {
            "--over": over,
            "--order": order,
            "--outstanding": outstanding,
            "--tails": tails or None,
            "--seed": seed,
            "--out": out,
        }
        given = [flag for flag, value in options.items() if value is not None]
        if given:
            raise typer.BadParameter(f"{given[0]} goes with --replay")
        print_bounds(file, cluster, method, output)
        return
    if seed is not None and not tails:
        raise typer.BadParameter("--seed goes with --tails")
    from leeward._files import check_file, whole_file
    from leeward.slo import check

    if out is not None:
        check_file(out, "--out")
    network = read(cluster)
    flags = {
        "method": "--method",
        "over": "--over",
        "order": "--order",
        "outstanding": "--outstanding",
        "tails": "--tails",
    }
    with advised("slo", file), patience("replaying"), given_by(**flags):
        record, rows = check(
            file,
            network,
            method=method,
            over=over or "held",
            order=order or "priority",
            outstanding=outstanding,
            tails=tails,
            seed=1 if seed is None else seed,
            rows=out is not None,
        )
    if out is not None:
        from pyarrow import parquet

        with whole_file(out) as temporary:
            parquet.write_table(rows, temporary)
    if output is Format.json:
        print_json(record)
    else:
        _print(record)
    failed = misses(record) + _failures(record)
    for line in failed:
        print("error:", line, file=sys.stderr)
    if failed:
        raise typer.Exit(1)


def _print(record: dict[str, Any]) -> None:
    """Prints bounds beside latencies of the replay."""
    print_table(
        ("WORKLOAD", "SLO", "PROMISED", "BY", "REQUESTS", "SEEN", "WORST", "WINDOWS", "KEPT", "BOUND"),
        "<<><>>>><<",
        [_row(one, _as_bounds_take_it(record)) for one in record["workloads"]],
    )
    print_words(_WORDS)
    print(file=sys.stderr)
    outstanding = record["bounds"]["outstanding"]
    once = "one request" if outstanding == 1 else f"{outstanding} requests"
    print(
        f"replay: over a limit {record['over']}, order {record['order']}, devices are handed {once} at once",
        file=sys.stderr,
    )
    if record["tails_seed"] is not None:
        print(f"replay: times without queueing are drawn with seed {record['tails_seed']}", file=sys.stderr)
    if not _as_bounds_take_it(record):
        text = "bounds are of strict priorities and requests held at limits, and say nothing of this replay"
        print(f"note: {text}", file=sys.stderr)
    untraced = [one["workload"] for one in record["workloads"] if not one["traced"]]
    print_notes([f"{name}: known without a trace, so it sent nothing" for name in untraced])
    print_notes(record["notes"])


def _as_bounds_take_it(record: dict[str, Any]) -> bool:
    return (record["order"], record["over"]) == ("priority", "held")


def _row(one: dict[str, Any], bounded: bool) -> tuple[str, ...]:
    seen = one["seen"]
    promised = (
        one["workload"],
        objective({**one, "best_effort": False}),
        time_text(one["bound_s"]),
        one["by"] or "-",
    )
    if seen is None:
        return (*promised, "-", "-", "-", "-", "-", "-")
    windows = "-" if seen["windows_met"] is None else f"{seen['windows_met']}/{seen['windows']}"
    held = "EXCEEDED" if one["broken"] else "held" if bounded and one["bound_s"] is not None else "-"
    kept = {True: "yes", False: "no", None: "-"}[one["kept"]]
    times = (time_text(seen["tail_s"]), time_text(seen["worst_s"]))
    return (*promised, str(seen["requests"]), *times, windows, kept, held)


def _failures(record: dict[str, Any]) -> list[str]:
    """Violations in the replay."""
    said = []
    for one in record["workloads"]:
        seen = one["seen"]
        if one["kept"] is False:
            asked = time_text(one["slo"]["latency_s"])
            said.append(f"{one['workload']}: saw {time_text(seen['tail_s'])}, above its SLO of {asked}")
        if one["broken"]:
            of_percentile = one["by"] == "snc" or record["tails_seed"] is not None
            most = seen["tail_s"] if of_percentile else seen["worst_s"]
            why = "; ".join(one["broken"])
            said.append(
                f"{one['workload']}: {time_text(most)} is above the bound of"
                f" {time_text(one['bound_s'])}: {why}"
            )
    return said
