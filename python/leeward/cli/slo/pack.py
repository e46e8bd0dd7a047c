"""`leeward slo pack`: server, rates, bursts and priority of every volume."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward._quantities import percent_text, read_share, time_text, work_rate_text, work_text
from leeward.cli.cluster import read
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_error, print_note, print_warning
from leeward.cli.options import choice_option, hint_schema, name_flags, parse_path, whole_number
from leeward.cli.output import print_data, print_table, print_words
from leeward.cli.progress import progress
from leeward.cli.slo.bound import MethodOption
from leeward.cli.slo.options import MOST_MARGIN
from leeward.cli.slo.workloads import ClusterOption, WorkloadsArgument, objective_text, print_notes
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward slo pack examples/slo/volumes.yaml --cluster examples/slo/servers.yaml
  leeward slo pack examples/slo/volumes.yaml --cluster examples/slo/servers.yaml --limits average
  leeward slo pack examples/slo/volumes.yaml --cluster examples/slo/servers.yaml --out packed.yaml

The exit code is 1 if a workload is refused, or has no bound within its SLO.
"""
_WORDS = (
    ("bound", "greatest latency of a request by --method; with snc, of the SLO's percentile"),
    ("spare", "latency of the SLO minus the bound"),
    ("reserved", "share of a link or device that the rates of limits take, the busiest first"),
)
_MOST_QUEUES = 8
"""Greatest number of queues in a table."""


class PackFormat(StrEnum):
    """Format of a packing."""

    table = "table"
    json = "json"
    csv = "csv"
    yaml = "yaml"


def pack(
    file: WorkloadsArgument,
    cluster: ClusterOption,
    limits: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            help="How limits are chosen: compactor, effective-bandwidth, average, knee or several, with"
            " settings after colons: compactor:slack=0.1.",
        ),
    ] = "compactor",
    settings: Annotated[str | None, typer.Option(hidden=True)] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Skip servers whose configured rates leave no room.")
    ] = False,
    servers_by: Annotated[
        str,
        typer.Option(
            metavar="first|fewest-workloads|least-load|least-bursts|same-slos|random",
            help="Order in which servers with volumes are tried. Empty servers come last.",
        ),
    ] = "first",
    method: MethodOption = "best",
    margin: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Safety margin, such as 10%, at least that of the file, which is the default.",
            show_default=False,
        ),
    ] = None,
    error: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Keep the fewest buckets that exceed the curve by at most this share, such as 1%.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", parser=whole_number(1, 1024), help="Number of servers tried at once.")
    ] = 1,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Discard servers, priorities and limits of the file and choose them again."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="Output file: FILE with the chosen values.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        PackFormat,
        choice_option(
            PackFormat,
            "-o",
            "--output",
            description="Output format; csv has the workloads, yaml is FILE with the chosen values.",
        ),
    ] = PackFormat.table,
) -> None:
    """Pack volumes onto few servers that keep every SLO.

    Places volumes in the order of the file, each on the first server that fits. Rate limits are chosen for
    all workloads of a server together.
    """
    from leeward._files import atomic_file, check_file
    from leeward.slo import dump_packing, text_of
    from leeward.slo import pack as pack_volumes

    if out is not None:
        check_file(out, "--out")
    share = None if margin is None else read_share("--margin", margin, 0, MOST_MARGIN)
    if settings is not None:
        print_warning("--settings is now a part of --limits; the former flag will be removed")
    network = read(cluster)
    flags = {
        "limits": "--limits",
        "servers_by": "--servers-by",
        "method": "--method",
        "margin": "--margin",
        "threads": "--jobs",
        "settings": "--settings",
    }
    # The file is read once, since it may be a pipe.
    text = text_of(file)
    with hint_schema("slo", file), _hint_again(), name_flags(**flags), _progress(text) as on_progress:
        record = pack_volumes(
            file,
            network,
            limits=limits,
            settings=settings or "",
            fast=fast,
            servers_by=servers_by,
            method=method,
            margin=share,
            error=0.0 if error is None else read_share("--error", error, 0, MOST_MARGIN),
            threads=jobs,
            again=again,
            progress=on_progress,
            text=text,
        )
    if out is not None and record["workloads"]:
        choices = dump_packing(record, out.parent, text)
        with atomic_file(out) as temporary:
            temporary.write_text(choices, encoding="utf-8")
    if print_data(output, record, "workloads", COLUMNS["slo pack"]):
        pass
    elif output is PackFormat.table:
        _print(record)
    elif record["workloads"]:
        print(dump_packing(record, text=text), end="")
    if record["workloads"] and out is not None:
        print_note(f"wrote {out}")
    elif not record["workloads"] and (out is not None or output is PackFormat.yaml):
        print_note("wrote nothing: no workload was placed")
    failures = _failures(record)
    for line in failures:
        print_error(line)
    if failures:
        raise typer.Exit(1)


@contextmanager
def _hint_again() -> Iterator[None]:
    """Adds a hint to errors about fields that packing chooses: the option that discards them."""
    try:
        yield
    except InputError as error:
        if "packing chooses it" in error.message:
            error.add_note("--again discards servers, priorities and limits of the file")
        raise


@contextmanager
def _progress(text: str) -> Iterator[Callable[[int], None]]:
    """Shows the progress; yields a function of the number of considered workloads."""
    total = _count(text)
    with progress("packing", total) as advance:
        yield lambda done: advance(1 if done <= total else 0)


def _count(text: str) -> int:
    """Number of workloads in a file; the reader of the file reports its errors."""
    import yaml

    try:
        # Tabs are white space in JSON, but an error in YAML. Composing does not copy nodes for aliases.
        fields = yaml.compose(text.replace("\t", " "), Loader=yaml.BaseLoader).value
        return max(len(value.value) for key, value in fields if key.value == "workloads")
    except (AttributeError, TypeError, ValueError, RecursionError, yaml.YAMLError):
        return 1


def _print(record: dict[str, Any]) -> None:
    """Prints servers of workloads, limits to enforce, and reserved shares."""
    print_table(
        ("WORKLOAD", "CLIENT", "SERVER", "PRIORITY", "SLO", "BOUND", "SPARE"),
        "<<<><>>",
        [
            (
                one["workload"],
                one["client"],
                one["server"],
                str(one["priority"]),
                objective_text({**one, "best_effort": False}),
                time_text(one["bound_s"]),
                "-" if not one["met"] else time_text(one["slo"]["latency_s"] - one["bound_s"]),
            )
            for one in record["workloads"]
        ],
    )
    print()
    print_table(
        ("WORKLOAD", "STAGE", "RATE", "BURST", "BOUND"),
        "<<>>>",
        [
            (
                one["workload"],
                stage["stage"],
                work_rate_text(bucket["rate"], stage["unit"]),
                work_text(bucket["burst"], stage["unit"]),
                time_text(stage["bound_s"]),
            )
            for one in record["workloads"]
            for stage in one["stages"]
            for bucket in stage["limits"]
        ],
    )
    print()
    print_table(
        ("RESERVED", "SHARE"),
        "<>",
        [(one["queue"], percent_text(one["share"])) for one in record["reserved"][:_MOST_QUEUES]],
    )
    print_words(_WORDS)
    print_note()
    print_note(f"servers: {record['servers_used']} of {record['servers']}")
    print_note(f"margin: {percent_text(record['margin'], None)} above the values in the files")
    # Limits are one bucket, so a curve of several was taken whole. A curve of one bucket is its own limit.
    own = [
        one
        for one in record["workloads"]
        if any(stage["own_curve"] and len(stage["limits"]) > 1 for stage in one["stages"])
    ]
    if own and record["limits"] != "several":
        print_note(
            f"limits: {len(own)} of {len(record['workloads'])} workloads have their whole curves, where"
            f" limits by {record['limits']} do not keep every SLO"
        )
    if len(record["reserved"]) > _MOST_QUEUES:
        print_note(f"reserved: {len(record['reserved'])} links and devices; -o json lists all")
    print_notes(record["notes"])


def _failures(record: dict[str, Any]) -> list[str]:
    """Errors about refused workloads, and about bounds above SLOs."""
    lines = [f"{one['workload']} is refused: {one['why']}" for one in record["refused"]]
    for one in record["workloads"]:
        if one["why"]:
            lines.append(f"no bound: {one['why']}")
        elif not one["met"]:
            target = time_text(one["slo"]["latency_s"])
            lines.append(
                f"{one['workload']}: a bound of {time_text(one['bound_s'])}, above its SLO of {target}"
            )
    return lines
