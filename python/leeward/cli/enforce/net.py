"""`leeward enforce net`: applies priorities and rate limits to the packets that leave this host."""

import json
import signal
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from leeward import _native
from leeward._quantities import bytes_text, rate_text
from leeward.cli.common import runs_until_stopped
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_error, print_note
from leeward.cli.output import Format, FormatOption, print_data, print_table
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward slo pack examples/slo/volumes.yaml --cluster examples/slo/servers.yaml --out packed.yaml \\
      && leeward enforce net --workloads packed.yaml --addresses examples/slo/hosts.txt --host serversh0 \\
      --interface eth0 --rate 10Gbps --dry-run
  sudo leeward enforce net --workloads packed.yaml --addresses hosts.txt
  sudo leeward enforce net --workloads packed.json --host r0h1 --interface bond0 --interval 1s
  sudo leeward enforce net --controller https://leeward:7600 --token-file /etc/leeward/enforcer.token
  sudo leeward enforce net --workloads packed.yaml --status -o json
  sudo leeward enforce net --undo

The enforcer runs until it is interrupted (Ctrl-C) or terminated, and then undoes everything. It reads its
files again when they change. With --controller it follows the promises of a controller and acknowledges
them; without a response for the length of the lease, it undoes everything until a controller answers.
`leeward-enforce-net` is the same program without Python.

The exit code is 1 if nothing can be enforced, and, with --dry-run and --status, if a promise is not enforced.
"""


@runs_until_stopped
def net(
    workloads: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File of `leeward slo pack --out`, or the JSON of `leeward slo pack`, `prioritize` or"
            " `admit`.",
            show_default=False,
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
            metavar="NAME", help="Name of this enforcer at the controller.", show_default="net@HOST"
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
            metavar="HOST", help="Name of the host in the cluster.", show_default="the machine's name"
        ),
    ] = None,
    interface: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,...", help="Interfaces to program.", show_default="all physical interfaces"
        ),
    ] = None,
    addresses: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Addresses of hosts, and of workloads whose client has its own: YAML, CSV (address,host) or"
            " lines as in /etc/hosts.",
            show_default="those of the machine's resolver",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Rate of the interfaces.", show_default="95 % of their speed"),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Time between two comparisons with the kernel.", show_default="5s"
        ),
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Report changes by another hand, and do not mend them.")
    ] = False,
    clear_dscp: Annotated[
        bool,
        typer.Option(
            "--clear-dscp",
            help="Set the DSCP of all other packets to 0, so that no program gives itself a priority.",
        ),
    ] = False,
    leave: Annotated[
        bool,
        typer.Option("--leave", help="Leave everything in place at the end, for a restart without a gap."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the programs of tc and nft, and change nothing.")
    ] = False,
    status: Annotated[
        bool,
        typer.Option("--status", help="Compare the kernel with the promises once, with counters, and exit."),
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Undo everything that a killed enforcer left, and exit.")
    ] = False,
    output: FormatOption = Format.table,
) -> None:
    """Enforce priorities and rate limits on the packets that leave this host.

    Each workload gets a class of HTB with its priority and its token buckets, and its packets get the DSCP
    of their priority, by nftables. All other packets come last. The kernel is compared with the promises at
    each interval, and changes by another hand are mended. Interfaces with a root qdisc of another owner are
    left alone.
    """
    if output is not Format.table and not (dry_run or status):
        raise InputError.about("--output", "only valid with --dry-run or --status")

    def print_line(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    # Without a handler of Python, these signals would end the process before the undo. The second one comes
    # when the terminal is closed, unless the command runs under nohup.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    arguments = {
        "workloads": workloads,
        "controllers": controller or [],
        "name": name,
        "lease": lease,
        "token_file": token_file,
        "ca": ca,
        "dscp": dscp,
        "host": host,
        "interfaces": interface or [],
        "addresses": addresses,
        "rate": rate,
        "interval": interval,
        "report_only": report_only,
        "clear_dscp": clear_dscp,
        "leave": leave,
        "dry_run": dry_run,
        "status": status,
        "undo": undo,
    }
    record = _native.enforce_net(json.dumps(arguments), print_line)
    if record is None:
        return
    text = record.pop("text", None)
    if print_data(output, record, "workloads", COLUMNS["enforce net"]):
        pass
    elif text is not None:
        print(text, end="")
    else:
        _print_status(record)
    for note in record["notes"]:
        print_note(f"note: {note}")
    failures = _failures(record)
    for line in failures:
        print_error(line)
    if failures:
        raise typer.Exit(1)


def _print_status(record: Mapping[str, Any]) -> None:
    """Prints the workloads with their limits and counters."""
    print_table(
        ("WORKLOAD", "INTERFACE", "DIRECTION", "DSCP", "CLASS", "LIMITS", "STATE", "SENT", "DROPS", "HELD"),
        "<<<<<<<>>>",
        [
            (
                one["workload"],
                one["interface"],
                one["direction"] or "-",
                one["dscp"] or "-",
                one["class"] or "-",
                ", ".join(
                    f"{rate_text(8 * limit['rate_bytes_s'])} + {bytes_text(limit['burst_bytes'])}"
                    for limit in one["limits"]
                )
                or "-",
                one["state"],
                "-" if one["bytes"] is None else bytes_text(one["bytes"]),
                "-" if one["drops"] is None else f"{one['drops']:,}",
                "-" if one["overlimits"] is None else f"{one['overlimits']:,}",
            )
            for one in record["workloads"]
        ],
    )


def _failures(record: Mapping[str, Any]) -> list[str]:
    """Errors about interfaces and workloads that are not enforced."""
    lines = [f"{one['interface']}: {one['problem']}" for one in record["interfaces"] if one.get("problem")]
    for one in record["workloads"]:
        if one["why"]:
            lines.append(f"{one['interface']}: {one['workload']} is not enforced: {one['why']}")
        elif one["state"] == "missing":
            lines.append(f"{one['interface']}: {one['workload']}: the kernel differs from the promise")
    return lines
