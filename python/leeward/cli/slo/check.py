"""`leeward slo check`: bounds, compared with a replay of the traces."""

from pathlib import Path
from typing import Annotated, Any

import typer

from leeward._quantities import time_text
from leeward.cli.cluster import read
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_error, print_note
from leeward.cli.options import hint_schema, name_flags, parse_path, parse_seed
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_words
from leeward.cli.progress import slow_notice
from leeward.cli.slo.bound import MethodOption
from leeward.cli.slo.bound import bound as print_bounds
from leeward.cli.slo.workloads import (
    ClusterOption,
    WorkloadsArgument,
    objective_text,
    print_notes,
    unmet_objectives,
)

EXAMPLES = """\b
Examples:
  leeward slo check examples/slo/w.yaml --cluster examples/slo/cluster.yaml
  leeward slo check examples/slo/w.yaml --cluster examples/slo/cluster.yaml --replay
  leeward slo check examples/slo/w.yaml --cluster examples/slo/cluster.yaml --replay --method dnc \\
      --out requests.parquet
  leeward slo check examples/slo/w.yaml --cluster examples/slo/cluster.yaml --replay --tails --seed 7

The exit code is 1 if an SLO is not guaranteed or is not met in the replay, or if a bound is exceeded.
"""
_WORDS = (
    ("promised", "the bound on the latency of all requests; with snc, of the SLO's percentile"),
    ("seen", "the latency at the SLO's percentile in the replay; for best effort, at the 99.9th"),
    ("worst", "the largest latency in the replay"),
    ("windows", "windows of three minutes in which the SLO was met"),
    (
        "bound",
        "EXCEEDED if worst (with snc or --tails: seen) is above the bound, else held; - if no bound applies",
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
            metavar="held|demoted",
            help="Treatment of requests over a limit: held back, as bounds assume (default), or demoted"
            " below all others.",
            show_default=False,
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            metavar="priority|fifo|shares|cake|deadline",
            help="Order of requests at devices; by default priority. With fifo, also on links.",
            show_default=False,
        ),
    ] = None,
    method: MethodOption = "best",
    tails: Annotated[
        bool,
        typer.Option("--tails", help="Draw the unloaded latency of each request from the device's profile."),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", parser=parse_seed, help="Seed of --tails, from 0 (default 1).", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
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
            "--tails": tails or None,
            "--seed": seed,
            "--out": out,
        }
        extra = [flag for flag, value in options.items() if value is not None]
        if extra:
            raise typer.BadParameter(f"{extra[0]} requires --replay")
        print_bounds(file, cluster, method, output=output)
        return
    if seed is not None and not tails:
        raise typer.BadParameter("--seed requires --tails")
    from leeward._files import atomic_file, check_file
    from leeward.slo import check

    if out is not None:
        check_file(out, "--out")
    network = read(cluster)
    flags = {
        "method": "--method",
        "over": "--over",
        "order": "--order",
        "tails": "--tails",
    }
    with hint_schema("slo", file), slow_notice("replaying"), name_flags(**flags):
        record, rows = check(
            file,
            network,
            method=method,
            over=over or "held",
            order=order or "priority",
            tails=tails,
            seed=1 if seed is None else seed,
            rows=out is not None,
        )
    if out is not None:
        from pyarrow import parquet

        with atomic_file(out) as temporary:
            parquet.write_table(rows, temporary)
    if not print_data(output, record, "workloads", COLUMNS["slo check"]):
        _print(record)
    if output is not Format.json:
        _print_doubts(record)
    failures = unmet_objectives(record) + _failures(record)
    for line in failures:
        print_error(line)
    if failures:
        raise typer.Exit(1)


def _print(record: dict[str, Any]) -> None:
    """Prints bounds beside latencies of the replay."""
    print_table(
        ("WORKLOAD", "SLO", "PROMISED", "BY", "REQUESTS", "SEEN", "WORST", "WINDOWS", "KEPT", "BOUND"),
        "<<><>>>><<",
        [_row(one, _bounds_apply(record)) for one in record["workloads"]],
    )
    print_words(_WORDS)
    print_note()
    at_once = sorted({queue["outstanding"] for queue in record["queues"] if queue["device"]}) or [1]
    requests = "one request" if at_once == [1] else f"{' or '.join(map(str, at_once))} requests"
    print_note(
        f"replay: over a limit {record['over']}, order {record['order']}, devices take {requests} at once"
    )
    if record["tails_seed"] is not None:
        print_note(f"replay: times without queueing are drawn with seed {record['tails_seed']}")


def _print_doubts(record: dict[str, Any]) -> None:
    """Prints notes that may change how the user reads the result, to stderr."""
    if not _bounds_apply(record):
        text = "bounds assume strict priorities and requests held at limits, and do not apply to this replay"
        print_note(f"note: {text}", doubt=True)
    silent = [one["workload"] for one in record["workloads"] if not one["traced"]]
    print_notes([f"{name}: no trace, so the workload sent nothing" for name in silent])
    print_notes(record["notes"])


def _bounds_apply(record: dict[str, Any]) -> bool:
    return (record["order"], record["over"]) == ("priority", "held")


def _row(one: dict[str, Any], applies: bool) -> tuple[str, ...]:
    replay = one["seen"]
    guarantee = (
        one["workload"],
        objective_text({**one, "best_effort": False}),
        time_text(one["bound_s"]),
        one["by"] or "-",
    )
    if replay is None:
        return (*guarantee, "-", "-", "-", "-", "-", "-")
    windows = "-" if replay["windows_met"] is None else f"{replay['windows_met']}/{replay['windows']}"
    verdict = "EXCEEDED" if one["broken"] else "held" if applies and one["bound_s"] is not None else "-"
    met = {True: "yes", False: "no", None: "-"}[one["kept"]]
    times = (time_text(replay["tail_s"]), time_text(replay["worst_s"]))
    return (*guarantee, f"{replay['requests']:,}", *times, windows, met, verdict)


def _failures(record: dict[str, Any]) -> list[str]:
    """Errors about unmet SLOs and exceeded bounds in the replay."""
    lines = []
    for one in record["workloads"]:
        replay = one["seen"]
        if one["kept"] is False:
            target = time_text(one["slo"]["latency_s"])
            lines.append(
                f"{one['workload']}: a latency of {time_text(replay['tail_s'])} in the replay,"
                f" above its SLO of {target}"
            )
        if one["broken"]:
            of_percentile = one["by"] == "snc" or record["tails_seed"] is not None
            most = replay["tail_s"] if of_percentile else replay["worst_s"]
            why = "; ".join(one["broken"])
            lines.append(
                f"{one['workload']}: {time_text(most)} is above the bound of"
                f" {time_text(one['bound_s'])}: {why}"
            )
    return lines
