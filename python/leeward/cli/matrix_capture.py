"""`leeward matrix capture`: bytes between hosts, from packets and from flow exports of switches."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward._quantities import bytes_text
from leeward.cli.capture_output import (
    TABLES,
    check_ending,
    error_text,
    print_doubts,
    print_notes,
    reading,
    write_table,
)
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.matrix_files import write_square
from leeward.cli.notes import print_note
from leeward.cli.options import name_flags, parse_path, split_list, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table
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
            metavar="address|host|rack|service|class",
            help="Level of the matrix; by default host with a map, otherwise address. For class, the rows are"
            " loads of links by class of service.",
            show_default=False,
        ),
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=DSCP,...",
            help="DSCP of each class, such as PC=ef,NC=af41+36,BE=*; by default each DSCP is a class.",
            show_default=False,
        ),
    ] = None,
    class_out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=FILE,...",
            help="Files for the loads of each class (.csv, .parquet), for impact --class-telemetry.",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Length of an interval, which must divide a day: 1h, 30min. By default 1h; 1min for class.",
            show_default=False,
        ),
    ] = None,
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
    from leeward.cli import matrix_classes
    from leeward.matrix import capture as read
    from leeward.matrix.captures import CLASS

    by_class = by == CLASS
    class_files = matrix_classes.read_files(class_out)
    for given, flag in ((classes, "--classes"), (class_out, "--class-out")):
        if given and not by_class:
            raise InputError.about(flag, f"only valid with --by {CLASS}")
    if by_class and total:
        raise InputError.about("--total", f"not valid with --by {CLASS}")
    _check_files(out, counters, total, only_tasks, arrays=not by_class)
    network = None
    if cluster is not None:
        from leeward.cli.cluster import read as read_cluster

        network = read_cluster(cluster)
    flags = {"by": "--by", "interval": "--interval", "size": "--count", "content": "--content"}
    flags |= {"ports": "--port", "sampling": "--sampling", "mapping": "--addresses"}
    flags |= {"cluster": "--cluster", "files": "FILE", "direction": "--direction", "tunnels": "--tunnels"}
    settings: dict[str, Any] = {
        "interval": ("1min" if by_class else "1h") if interval is None else interval,
        "size": count,
        "content": content,
        "ports": [read_port(one) for one in port or ()],
        "sampling": sampling,
        "counters": counters is not None,
        "direction": direction,
        "tunnels": tunnels,
    }
    if by_class:
        with name_flags(**flags, classes="--classes"), reading(files) as advance:
            loads = matrix_classes.read(
                files, mapping=mapping, cluster=network, classes=classes, progress=advance, **settings
            )
        _write_counters(counters, loads.counters)
        matrix_classes.show(loads, out, class_files, output)
        has_traffic = len(loads.loads) > 0
    else:
        with name_flags(**flags), reading(files) as advance:
            result = read(files, mapping=mapping, cluster=network, by=by, progress=advance, **settings)
        if out is not None:
            with name_flags(tasks="--only-tasks"):
                _write(out, result, total, only_tasks)
        _write_counters(counters, result.counters)
        if not print_data(output, _record(result), "cells", COLUMNS["matrix capture"]):
            _print(result)
        if output is not Format.json:
            print_notes(result, result.cells["t_s"])
        has_traffic = len(result.cells) > 0
    if not has_traffic:
        of_classes = " of these classes" if classes else ""
        error = InputError.about(files[0], f"no traffic{of_classes} between known places")
        if classes:
            error.add_note("without --classes, each code point is a class")
        if by != "address" and mapping is not None:
            error.add_note("--by address shows the traffic of all addresses, known or not")
        error.add_note("the discards above list the traffic that is not counted, with reasons")
        raise error


def _check_files(
    out: Path | None, counters: Path | None, total: bool, only_tasks: str | None, *, arrays: bool
) -> None:
    """Checks files of output before captures are read; with `arrays`, the matrix may be a NumPy file."""
    from leeward._files import check_file

    if out is not None:
        check_ending(out, "--out", (".csv", ".npy") if total else (*TABLES, ".npy")[: 2 + arrays])
        check_file(out, "--out")
    if counters is not None:
        check_ending(counters, "--counters")
        check_file(counters, "--counters")
    if total and out is None:
        raise InputError.about("--total", "requires --out, the file for the matrix")
    if only_tasks is not None and not (out is not None and (total or out.suffix == ".npy")):
        message = "only valid for square matrices, with --out NAME.npy or --total: a list contains the names"
        raise InputError.about("--only-tasks", message)


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
        write_table(out, result.cells)
        shape = f"{len(result.cells):,} rows"
    print_note(f"wrote {out}: {shape}")


def _write_counters(path: Path | None, readings: "pyarrow.Table") -> None:
    if path is not None:
        write_table(path, readings)
        print_note(f"wrote {path}: {len(readings):,} readings")


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
    print_doubts(result)
    texts = [
        (row["src"], row["dst"], bytes_text(row["bytes"]), f"{row['packets']:,}", error_text(row))
        for row in rows
    ]
    for name, part in (
        (f"{len(total) - MOST_PAIRS:,} more pairs", total.slice(MOST_PAIRS)),
        ("all pairs", total),
    ):
        if len(part):
            sums = {column: sum(part[column].to_pylist()) for column in ("bytes", "packets")}
            sums["stderr"] = sum(value**2 for value in part["stderr"].to_pylist()) ** 0.5
            texts.append((name, "", bytes_text(sums["bytes"]), f"{sums['packets']:,}", error_text(sums)))
    print_table(("FROM", "TO", "BYTES", "PACKETS", "95 %"), "<<>>>", texts)
