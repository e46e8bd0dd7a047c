"""`leeward slo check`: bounds, compared with a replay of the traces."""

from pathlib import Path
from typing import Annotated, Any

import typer

from leeward._quantities import bytes_text, counted, time_text
from leeward.cli.cluster import read
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_error, print_note
from leeward.cli.options import hint_schema, name_flags, parse_path, parse_seed
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_words
from leeward.cli.progress import slow_notice
from leeward.cli.slo.bound import MethodOption
from leeward.cli.slo.bound import bound as print_bounds
from leeward.cli.slo.caps import read_caps, read_closed
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
  leeward slo check examples/slo/w.yaml --cluster examples/slo/cluster.yaml --replay --behind 8,1MiB \\
      --over storage=demoted

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
            metavar="held|demoted|STAGE=...,...",
            help="Treatment of requests over a limit: held back, as bounds assume, or demoted below all"
            " others; or by stage, such as storage=demoted. By default as in the file, else held.",
            show_default=False,
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            metavar="priority|fifo|shares|cake|deadline",
            help="Order of requests at devices. With fifo, also on links. By default as in the file, else"
            " priority.",
            show_default=False,
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="recorded|together",
            help="Start of the traces: with the times between them, or each with its first request at time 0."
            " By default as in the file, else recorded.",
            show_default=False,
        ),
    ] = None,
    reads: Annotated[
        str | None,
        typer.Option(
            "--outstanding-reads",
            metavar="N|none",
            help="Reads that a device has at once. By default as in the device file.",
            show_default=False,
        ),
    ] = None,
    writes: Annotated[
        str | None,
        typer.Option(
            "--outstanding-writes",
            metavar="N|none",
            help="Writes that a device has at once. By default as in the device file.",
            show_default=False,
        ),
    ] = None,
    read_cap: Annotated[
        str | None,
        typer.Option(
            "--outstanding-read-bytes",
            metavar="SIZE|none",
            help="Bytes of reads that a device has at once. By default as in the device file.",
            show_default=False,
        ),
    ] = None,
    write_cap: Annotated[
        str | None,
        typer.Option(
            "--outstanding-write-bytes",
            metavar="SIZE|none",
            help="Bytes of writes that a device has at once. By default as in the device file.",
            show_default=False,
        ),
    ] = None,
    behind: Annotated[
        str | None,
        typer.Option(
            metavar="N,SIZE|none",
            help="Requests and bytes that start behind a request of a higher priority; one of the two is"
            " enough. By default as in the device file.",
            show_default=False,
        ),
    ] = None,
    write_batch: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE,SIZE|none",
            help="Bytes of nearly sequential writes that start together, and the largest gap between two of"
            " them (default 0B). By default as in the device file.",
            show_default=False,
        ),
    ] = None,
    closed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=N,...",
            help="Workloads that keep a number of requests open: they send the next one when one ends,"
            " whatever the times in their traces are.",
            show_default=False,
        ),
    ] = None,
    method: MethodOption = "best",
    tails: Annotated[
        bool,
        typer.Option("--tails", help="Draw the unloaded latency of each request from the device's profile."),
    ] = False,
    no_tails: Annotated[
        bool, typer.Option("--no-tails", help="Draw no unloaded latencies, also if the file says so.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=parse_seed,
            help="Seed of --tails, from 0. By default as in the file, else 1.",
            show_default=False,
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
            "--start": start,
            "--outstanding-reads": reads,
            "--outstanding-writes": writes,
            "--outstanding-read-bytes": read_cap,
            "--outstanding-write-bytes": write_cap,
            "--behind": behind,
            "--write-batch": write_batch,
            "--closed": closed,
            "--tails": tails or None,
            "--no-tails": no_tails or None,
            "--seed": seed,
            "--out": out,
        }
        extra = [flag for flag, value in options.items() if value is not None]
        if extra:
            raise typer.BadParameter(f"{extra[0]} requires --replay")
        print_bounds(file, cluster, method, output=output)
        return
    if no_tails and tails:
        raise typer.BadParameter("expected one of --tails and --no-tails")
    if no_tails and seed is not None:
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
        "start": "--start",
        "tails": "--tails",
        "closed": "--closed",
    }
    with hint_schema("slo", file), slow_notice("replaying"), name_flags(**flags):
        record, rows = check(
            file,
            network,
            method=method,
            over=over,
            order=order,
            tails=tails or (False if no_tails else None),
            seed=seed,
            start=start,
            caps=read_caps((reads, writes), (read_cap, write_cap), behind, write_batch),
            closed=None if closed is None else read_closed(closed),
            rows=out is not None,
        )
    if seed is not None and record["tails_seed"] is None:
        raise typer.BadParameter("--seed requires --tails, or tails in the file")
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
    if caps := _cap_texts(record):
        print_note(f"replay: devices take {'; '.join(caps)}")
    if record["start"] == "together":
        print_note("replay: each trace starts with its first request at time 0")
    if record["tails_seed"] is not None:
        print_note(f"replay: times without queueing are drawn with seed {record['tails_seed']}")


def _cap_texts(record: dict[str, Any]) -> list[str]:
    """Caps of the devices other than their number of requests, each once."""
    texts: dict[str, None] = {}
    for queue in record["queues"]:
        caps = queue["caps"] or {}
        for kind in ("read", "write"):
            if (number := caps.get(f"outstanding_{kind}s")) is not None:
                texts[f"{counted(number, kind)} at once"] = None
            if (size := caps.get(f"outstanding_{kind}_bytes")) is not None:
                texts[f"{bytes_text(size)} of {kind}s at once"] = None
        if behind := caps.get("behind"):
            parts = []
            if behind["requests"] is not None:
                parts.append(counted(behind["requests"], "request"))
            if behind["bytes"] is not None:
                parts.append(bytes_text(behind["bytes"]))
            texts[f"{' or '.join(parts)} behind a higher priority"] = None
        if batch := caps.get("write_batch"):
            texts[f"batches of {bytes_text(batch['bytes'])} of writes"] = None
    return list(texts)


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
