"""`leeward enforce nfs`: an NFSv3 proxy that queues, prioritises and limits requests, and records traces."""

import json
import signal
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from leeward import _native
from leeward._quantities import bytes_text, time_text
from leeward.cli.common import runs_until_stopped
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.options import choice, whole_number
from leeward.cli.output import Format, FormatOption, print_csv, print_table

EXAMPLES = """\b
Examples:
  leeward enforce nfs --export 127.0.0.1:/vol --allow 10.0.0.0/8 --traces traces
  leeward enforce nfs --export 127.0.0.1:/vol --allow all --workloads packed.yaml --host r0h7
  leeward enforce nfs --export 127.0.0.1:/vol --allow 10.0.0.0/8 --controller https://leeward:7600 \\
      --host r0h7 --device ssd.json
  leeward enforce nfs --export nas:/a,nas:/b --workloads packed.yaml --allow 10.0.0.0/8 \\
      --workload mail=/a,web=/b --listen 10.0.0.7:2049,10.0.0.7:2050
  leeward enforce nfs --export nas:/vol --mountport 20048 --reserved-port --allow 10.0.0.0/8 -o json

Clients mount through the proxy at its port, for NFS and for MOUNT:
  mount -t nfs -o vers=3,proto=tcp,port=12049,mountport=12049,nolock proxy:/vol /mnt

The proxy runs until it is interrupted (Ctrl-C) or terminated. SIGHUP reads the workloads again. With
--controller it follows the promises of a controller and acknowledges them; without a response for the length
of the lease, all requests are best effort until a controller answers.
`leeward-nfs` is the same program without Python.
"""


class Over(StrEnum):
    """Handling of requests over a limit."""

    demoted = "demoted"
    held = "held"


MOST = 2**31
"""Greatest number of connections, threads or requests."""


@runs_until_stopped
def nfs(
    export: Annotated[
        list[str],
        typer.Option(
            metavar="SERVER:PATH,...",
            help="Exports to serve; several are volumes on one device.",
            show_default=False,
        ),
    ],
    listen: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT,...",
            help="Address for the clients of each export, in the same order; port 0 selects a free port.",
            show_default="0.0.0.0:12049, and the following ports",
        ),
    ] = None,
    nfsport: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            parser=whole_number(1, 65_535),
            help="Port of the server's NFS.",
            show_default="2049",
        ),
    ] = None,
    mountport: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            parser=whole_number(1, 65_535),
            help="Port of the server's MOUNT.",
            show_default="from its port mapper",
        ),
    ] = None,
    reserved_port: Annotated[
        bool,
        typer.Option(
            "--reserved-port",
            help="Connect to the server from reserved ports, as exports with the option `secure` require.",
        ),
    ] = False,
    any_port: Annotated[
        bool,
        typer.Option(
            "--any-port",
            help="Accept clients from any port also with --reserved-port. Otherwise it accepts them from"
            " reserved ports alone, whose calls the server takes for those of a machine's root.",
        ),
    ] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS,...",
            help="Addresses and prefixes of clients that may connect, or `all`. The server sees the proxy"
            " alone, so the client lists of its exports do not apply. Required unless it listens on"
            " loopback.",
            show_default=False,
        ),
    ] = None,
    workloads: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Workloads with priorities and limits, an SLO file; `leeward slo pack` writes one.",
            show_default="none, all requests are best effort",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Cluster file of the workloads, which get the priorities and limits that their file lacks.",
            show_default="none, their file states them",
        ),
    ] = None,
    controller: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL,...",
            help="URLs of controllers, http or https, whose promises are enforced; several share a store.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Name of this enforcer at the controller.", show_default="nfs@HOST"
        ),
    ] = None,
    lease: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Length of the lease: without a controller for this time, everything is best effort.",
            show_default="15s",
        ),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File with a token of role `report`.", show_default=False),
    ] = None,
    ca: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="PEM file with the certificate authorities of the controller.",
            show_default="the system's",
        ),
    ] = None,
    dscp: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="DSCP of packets to controllers: a name, such as cs6, or 0 to 63.",
            show_default="the system's, usually 0",
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="Name of the server in the cluster: a host, or HOST:DEVICE for the volumes of one device.",
            show_default="the only server of the workloads; with a controller, the machine's name",
        ),
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH,...",
            help="Exports of workloads, for clients with several workloads.",
            show_default="all exports",
        ),
    ] = None,
    over: Annotated[
        Over | None,
        typer.Option(
            parser=choice(Over),
            metavar="held|demoted",
            help="Requests over a limit: demoted, they come after all others; or held, they wait for tokens.",
            show_default="that of the workloads' file or the promise, or demoted",
        ),
    ] = None,
    addresses: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Addresses of hosts or workloads: YAML, CSV (address,host) or lines as in /etc/hosts.",
            show_default="the system's names",
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Device file, JSON or YAML, for the storage stage.",
            show_default=False,
        ),
    ] = None,
    outstanding: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(1, MOST),
            help="Requests at the device at once.",
            show_default="from the device file, or 1",
        ),
    ] = None,
    outstanding_reads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(1, MOST),
            help="Reads at the device at once.",
            show_default="from the device file",
        ),
    ] = None,
    outstanding_writes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(1, MOST),
            help="Writes at the device at once.",
            show_default="from the device file",
        ),
    ] = None,
    outstanding_read_bytes: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE|none",
            help="Bytes of reads at the device at once.",
            show_default="from the device file",
        ),
    ] = None,
    outstanding_write_bytes: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE|none",
            help="Bytes of writes at the device at once.",
            show_default="from the device file",
        ),
    ] = None,
    behind: Annotated[
        str | None,
        typer.Option(
            metavar="N,SIZE|none",
            help="Requests and bytes that start behind a request of a higher priority; one of the two is"
            " enough.",
            show_default="from the device file",
        ),
    ] = None,
    write_batch: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE,SIZE|none",
            help="Bytes of nearly sequential writes that start together, and the largest gap between two of"
            " them.",
            show_default="from the device file",
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            metavar="priority|fifo|shares|deadline",
            help="Order of requests at the device. Any other than priority is for comparisons.",
            show_default="priority",
        ),
    ] = None,
    traces: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder for traces of the requests, a file for each workload.",
            show_default=False,
        ),
    ] = None,
    trace_time: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Longest time of a trace file.", show_default="1h"),
    ] = None,
    trace_limit: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Greatest size of all traces in the folder.", show_default="10GB"),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Time between two reports.", show_default="one report at the end"
        ),
    ] = None,
    message: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Largest payload of a call or reply.", show_default="4MiB"),
    ] = None,
    buffer: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Bytes of calls and replies that the proxy holds.", show_default="256MiB"
        ),
    ] = None,
    connections: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=whole_number(1, MOST),
            help="Greatest number of connections.",
            show_default="1024",
        ),
    ] = None,
    patience: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Longest time of a request at the server, after which others may start.",
            show_default="30s",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N", parser=whole_number(1, 256), help="Threads of the proxy.", show_default="1"
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Queue, prioritise and limit the requests of NFSv3 clients, and record traces.

    READ, WRITE and COMMIT wait in the queue of their workload, which is known by the address of the client
    and the export. Other calls pass on at once. The highest priority within its limits comes first, and
    requests over the limits of their workload come last.
    """
    arguments = {
        "exports": export,
        "listen": listen or [],
        "nfsport": nfsport,
        "mountport": mountport,
        "reserved_port": reserved_port,
        "any_port": any_port,
        "allow": allow or [],
        "workloads": workloads,
        "cluster": cluster,
        "controllers": controller or [],
        "name": name,
        "lease": lease,
        "token_file": token_file,
        "ca": ca,
        "dscp": dscp,
        "host": host,
        "workload_exports": workload or [],
        "over": over,
        "addresses": addresses,
        "device": device,
        "outstanding": outstanding,
        "outstanding_reads": outstanding_reads,
        "outstanding_writes": outstanding_writes,
        "outstanding_read_bytes": outstanding_read_bytes,
        "outstanding_write_bytes": outstanding_write_bytes,
        "behind": behind,
        "write_batch": write_batch,
        "order": order,
        "traces": traces,
        "trace_time": trace_time,
        "trace_limit": trace_limit,
        "interval": interval,
        "message": message,
        "buffer": buffer,
        "connections": connections,
        "patience": patience,
        "jobs": jobs,
    }
    # The proxy has handlers of its own. Python's would end the command with an error afterwards.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _native.enforce_nfs(json.dumps(arguments), _print_line, _Reports(output).write)


def _print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class _Reports:
    """Reports on stdout in a format."""

    def __init__(self, output: Format) -> None:
        self.output = output
        self.count = 0

    def write(self, text: str) -> None:
        """Writes a report, which is JSON on one line."""
        self.count += 1
        if self.output == Format.json:
            print(text, flush=True)
            return
        report = json.loads(text)
        if self.output == Format.csv:
            rows = ({"at_s": report["at_s"], **row} for row in report["workloads"])
            print_csv(rows, COLUMNS["enforce nfs"], header=self.count == 1)
        else:
            if self.count > 1:
                print()
            _print_report(report)
        sys.stdout.flush()


def _print_report(report: dict[str, Any]) -> None:
    print_table(
        ("WORKLOAD", "PRIORITY", "READS", "WRITES", "READ", "WRITTEN", "OVER", "P50", "P99", "P99.9", "LATE"),
        "<>>>>>>>>>>",
        [
            (
                row["workload"],
                "last" if row["priority"] is None else str(row["priority"]),
                f"{row['reads']:,}",
                f"{row['writes']:,}",
                bytes_text(row["read_bytes"]),
                bytes_text(row["written_bytes"]),
                f"{row['over_limit']:,}",
                *(_time(row["latency"][name]) for name in ("p50_s", "p99_s", "p999_s")),
                "-" if row["slo"] is None else f"{row['late']:,}",
            )
            for row in report["workloads"]
        ],
    )


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else time_text(seconds)
