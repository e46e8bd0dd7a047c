"""`leeward matrix capture`: bytes between hosts, from packets and from flow exports of switches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward._quantities import bytes_text, percent_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.matrix_files import write_square
from leeward.cli.notes import print_note
from leeward.cli.options import name_flags, parse_path, split_list, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table
from leeward.cli.progress import progress, slow_notice
from leeward.errors import InputError

if TYPE_CHECKING:
    import pyarrow

    from leeward.matrix import Capture

EXAMPLES = """\b
Examples:
  leeward matrix capture examples/captures/shuffle.pcap.gz --interval 1min
  leeward matrix capture examples/captures/shuffle.pcap.gz --by rack \\
      --addresses examples/captures/hosts.yaml --cluster examples/clusters/small.yaml
  leeward matrix capture examples/captures/shuffle.pcap.gz --by service \\
      --addresses examples/captures/hosts.yaml --total --out app.npy && \\
      leeward place tasks --cluster examples/clusters/tenant.yaml --matrix app.npy
  leeward matrix capture examples/captures/shuffle.pcap.gz --interval 1min --out sent.csv && \\
      leeward matrix predict sent.csv --interval 1min

Captures are pcap or pcapng files (packets, or datagrams of sFlow, NetFlow and IPFIX), or IPFIX messages.
"""
read_port = whole_number(0, 10**9)
MOST_PAIRS = 20
"""Greatest number of pairs in the table."""
MOST_UNKNOWN = 5
"""Greatest number of addresses outside of the mapping that a note names."""


def capture(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Captures: pcap, pcapng or IPFIX messages, plain or gzip.",
            show_default=False,
        ),
    ],
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Cluster file with the hosts and racks of the map.", show_default=False
        ),
    ] = None,
    mapping: Annotated[
        str | None,
        typer.Option(
            "--addresses",
            metavar="FILE",
            help="Owners of addresses: YAML, CSV (address,host) or lines as in /etc/hosts.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="address|host|rack|service",
            help="Level of the matrix; by default host with a map, otherwise address.",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        str,
        typer.Option(metavar="DURATION", help="Length of an interval, which must divide a day: 1h, 30min."),
    ] = "1h",
    count: Annotated[
        str,
        typer.Option(
            metavar="frame|ip",
            help="Counted bytes: those of Ethernet frames without frame check sequence, or of IP packets.",
        ),
    ] = "frame",
    content: Annotated[
        str,
        typer.Option(
            metavar="auto|packets|exports",
            help="Content of the captures: traffic, or sFlow, NetFlow and IPFIX datagrams that report it.",
        ),
    ] = "auto",
    port: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PORT,...",
            help="UDP ports of exports, besides 6343, 2055, 4739 and those recognized by content.",
        ),
    ] = None,
    sampling: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Sampling rate, 1 in N packets, if the capture does not state it; by default 1.",
            show_default=False,
        ),
    ] = None,
    direction: Annotated[
        str,
        typer.Option(
            metavar="both|ingress|egress",
            help="Samples and records to count, if a switch reports packets where they enter and leave.",
        ),
    ] = "both",
    tunnels: Annotated[
        str,
        typer.Option(
            metavar="outer|inner",
            help="Addresses of packets in VXLAN, Geneve, GRE and IP in IP: of the tunnel or inside it.",
        ),
    ] = "outer",
    only_tasks: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Names of all rows of a .npy file or square; by default sorted.",
            show_default=False,
        ),
    ] = None,
    total: Annotated[
        bool,
        typer.Option(
            "--total", help="Write one square matrix of the whole capture, instead of a list or a series."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="File for the matrix: a list (.csv, .parquet) or NumPy file (.npy).",
            show_default=False,
        ),
    ] = None,
    counters: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="File for the interface counters of sFlow agents (.csv, .parquet).",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Make traffic matrices from captured packets.

    Also reads flow exports of switches and routers. Sampled traffic is scaled, and shown with its sampling
    error.
    """
    from leeward._files import check_file
    from leeward.matrix import capture as read

    for path, flag in ((out, "--out"), (counters, "--counters")):
        if path is not None:
            _check_ending(path, flag, total)
            check_file(path, flag)
    if total and out is None:
        raise InputError.about("--total", "requires --out, the file for the matrix")
    if only_tasks is not None and not (out is not None and (total or out.suffix == ".npy")):
        message = "only valid for square matrices, with --out NAME.npy or --total: a list contains the names"
        raise InputError.about("--only-tasks", message)
    network = None
    if cluster is not None:
        from leeward.cli.cluster import read as read_cluster

        network = read_cluster(cluster)
    flags = {"by": "--by", "interval": "--interval", "size": "--count", "content": "--content"}
    flags |= {"ports": "--port", "sampling": "--sampling", "mapping": "--addresses"}
    flags |= {"cluster": "--cluster", "files": "FILE", "direction": "--direction", "tunnels": "--tunnels"}
    with name_flags(**flags), _reading(files) as advance:
        result = read(
            files,
            mapping=mapping,
            cluster=network,
            by=by,
            interval=interval,
            size=count,
            content=content,
            ports=[read_port(one) for one in port or ()],
            sampling=sampling,
            counters=counters is not None,
            direction=direction,
            tunnels=tunnels,
            progress=advance,
        )
    if out is not None:
        with name_flags(tasks="--only-tasks"):
            _write(out, result, total, only_tasks)
    if counters is not None:
        _write_table(counters, result.counters)
        print_note(f"wrote {counters}: {len(result.counters):,} readings")
    if not print_data(output, _record(result), "cells", COLUMNS["matrix capture"]):
        _print(result)
    if output is not Format.json:
        _print_notes(result)
    if not len(result.cells):
        error = InputError.about(files[0], "no traffic between known places")
        if by != "address" and mapping is not None:
            error.add_note("--by address shows the traffic of all addresses, known or not")
        error.add_note("the discards above list the traffic that is not counted, with reasons")
        raise error


@contextmanager
def _reading(files: list[str]) -> Iterator[Callable[[int], None] | None]:
    """Shows the progress of reading; without a bar for compressed files, whose length is unknown."""
    sizes = [path.stat().st_size if (path := Path(file)).is_file() else 0 for file in files]
    if not sum(sizes) or any(file.endswith(".gz") for file in files):
        with slow_notice("reading"):
            yield None
    else:
        with progress("reading", sum(sizes)) as advance:
            yield advance


def _check_ending(path: Path, flag: str, total: bool) -> None:
    endings = (
        (".csv", ".npy")
        if total and flag == "--out"
        else (".csv", ".parquet", ".npy")[: 3 if flag == "--out" else 2]
    )
    if path.suffix not in endings:
        message = f"`{path}`: expected a name that ends in {' or '.join(endings)}"
        raise InputError.about(flag, message)


def _write(out: Path, result: "Capture", total: bool, tasks: str | None) -> None:
    import numpy

    from leeward._files import atomic_file

    if total:
        series = result.series(split_list(tasks))
        write_square(out, series.square(series.bytes.sum(axis=0)))
        shape = f"{len(series.tasks)} x {len(series.tasks)}"
    elif out.suffix == ".npy":
        series = result.series(split_list(tasks))
        with atomic_file(out) as temporary, temporary.open("wb") as file:
            numpy.save(file, numpy.stack([series.square(row) for row in series.bytes]), allow_pickle=False)
        shape = f"{series.intervals} x {len(series.tasks)} x {len(series.tasks)}"
    else:
        _write_table(out, result.cells)
        shape = f"{len(result.cells):,} rows"
    print_note(f"wrote {out}: {shape}")


def _write_table(path: Path, table: "pyarrow.Table") -> None:
    from pyarrow import csv, parquet

    from leeward._files import atomic_file

    with atomic_file(path) as temporary:
        if path.suffix == ".parquet":
            parquet.write_table(table, temporary)
        else:
            csv.write_csv(table, temporary, csv.WriteOptions(quoting_style="none"))


def _record(result: "Capture") -> dict[str, Any]:
    """A capture as JSON."""
    return {
        "interval_s": result.interval_s,
        "cells": result.cells.to_pylist(),
        "sources": result.sources.to_pylist(),
        "unknown": result.unknown.to_pylist(),
        "discards": result.discards.to_pylist(),
    }


def _print(result: "Capture") -> None:
    total = result.total()
    rows = total.slice(0, MOST_PAIRS).to_pylist()
    if not rows:
        return
    _print_doubts(result)
    texts = [
        (row["src"], row["dst"], bytes_text(row["bytes"]), f"{row['packets']:,}", _error(row)) for row in rows
    ]
    for name, part in (
        (f"{len(total) - MOST_PAIRS:,} more pairs", total.slice(MOST_PAIRS)),
        ("all pairs", total),
    ):
        if len(part):
            sums = {column: sum(part[column].to_pylist()) for column in ("bytes", "packets")}
            sums["stderr"] = sum(value**2 for value in part["stderr"].to_pylist()) ** 0.5
            texts.append((name, "", bytes_text(sums["bytes"]), f"{sums['packets']:,}", _error(sums)))
    print_table(("FROM", "TO", "BYTES", "PACKETS", "95 %"), "<<>>>", texts)


def _print_doubts(result: "Capture") -> None:
    """Prints above the table which discards may change it."""
    doubts = [row for row in result.discards.to_pylist() if row["doubt"]]
    for kept, title in ((False, "incomplete, without"), (True, "in doubt, with")):
        parts = [
            f"{row['count']:,} {row['reason']}" + (f" ({bytes_text(row['bytes'])})" if row["bytes"] else "")
            for row in doubts
            if row["kept"] is kept
        ]
        if parts:
            print(f"{title}: {', '.join(parts)}")


def _error(row: dict[str, Any]) -> str:
    from leeward.matrix.captures import CONFIDENT

    if not row["stderr"]:
        return ""
    return f"±{percent_text(CONFIDENT * row['stderr'] / row['bytes'])}"


def _print_notes(result: "Capture") -> None:
    """Notes below the table, on stderr."""
    lines = []
    if len(result.cells):
        times = result.cells["t_s"].to_numpy()
        intervals = int(times.max() - times.min()) // result.interval_s + 1
        noun = "interval" if intervals == 1 else "intervals"
        lines.append(f"{intervals:,} {noun} of {result.interval_s:,} s, from {_moment(int(times.min()))}")
    sources = result.sources.to_pylist()
    for row in sources[:MOST_PAIRS]:
        noun = "packets" if row["protocol"] == "packets" else "records"
        lines.append(
            f"seen by {row['name']} ({row['protocol']}): {row['flows']:,} {noun}, {bytes_text(row['bytes'])}"
        )
    if len(sources) > MOST_PAIRS:
        lines.append(f"and by {len(sources) - MOST_PAIRS:,} more")
    if len(sources) > 1:
        lines.append("traffic seen by two of these sources is counted twice")
    discards = result.discards.to_pylist()
    for is_counted in (False, True):
        for row in discards:
            if row["kept"] is is_counted:
                title = (
                    "not counted"
                    if not is_counted
                    else "counted, but doubtful"
                    if row["doubt"]
                    else "counted"
                )
                reason = f"{row['reason']}, {row['detail']}" if row["detail"] else row["reason"]
                size = f", {bytes_text(row['bytes'])}" if row["bytes"] else ""
                lines.append(
                    f"{title}: {row['count']:,} {reason}{size}: {row['meaning']} ({row['examples']})"
                )
    if len(result.unknown):
        first = result.unknown.slice(0, MOST_UNKNOWN).to_pylist()
        names = ", ".join(f"{row['address']} ({bytes_text(row['bytes'])})" for row in first)
        more = len(result.unknown) - len(first)
        lines.append(f"addresses outside of the mapping: {names}" + (f" and {more:,} more" if more else ""))
    # The lines say which traffic is missing from the matrix or counted in doubt.
    print_note("\n".join(["", *lines]), doubt=True)


def _moment(seconds: int) -> str:
    from datetime import UTC, datetime, timedelta

    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S UTC")
