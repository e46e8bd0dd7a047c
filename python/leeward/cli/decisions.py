"""`leeward decisions`: search of the decisions that a service has stored."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from leeward.cli.controller import (
    CONTROLLER,
    CaOption,
    ControllerOption,
    TokenFileOption,
    client,
    controller_errors,
)
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import choice_option, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.report import read_time, start_time
from leeward.client.types import Decision

EXAMPLES = """\b
Examples:
  leeward decisions                               the latest 20
  leeward decisions --ref blk_1073741825          where a block went
  leeward decisions --host r3h1 --since 2h        what was placed on a host
  leeward decisions --policy sinbad --fallback -o csv
  leeward explain 42                              one decision with its reasons

All given conditions must hold. The search covers all decisions that the service has stored.
"""
MOST = 100_000
"""Largest number of decisions of an output."""


class Kind(StrEnum):
    """Kind of a request."""

    replicas = "replicas"
    tasks = "tasks"
    workload = "workload"
    volumes = "volumes"


def _text(metavar: str, description: str) -> Any:
    return typer.Option(metavar=metavar, help=description, show_default=False)


def decisions(
    kind: Annotated[
        Kind | None, choice_option(Kind, "--kind", description="Only decisions of this kind.")
    ] = None,
    since: Annotated[
        str | None, _text("TIME", "Only later ones: a duration before the end, such as `24h`, or a time.")
    ] = None,
    until: Annotated[str | None, _text("TIME", "Only earlier ones; by default all.")] = None,
    ref: Annotated[str | None, _text("TEXT", "About the thing with this name in the client's words.")] = None,
    client_name: Annotated[
        str | None,
        typer.Option("--client", metavar="NAME", help="For this client.", show_default=False),
    ] = None,
    key: Annotated[str | None, _text("KEY", "With this idempotency key.")] = None,
    job: Annotated[
        str | None, _text("NAME", "About tasks of this job, or of the app with this name.")
    ] = None,
    host: Annotated[str | None, _text("HOST", "With this host.")] = None,
    rack: Annotated[str | None, _text("NAME", "With a host in this rack.")] = None,
    policy: Annotated[str | None, _text("POLICY", "Of this policy, with or without its settings.")] = None,
    fallback: Annotated[
        bool, typer.Option("--fallback", help="Only those that Leeward's policy left to the default policy.")
    ] = False,
    most: Annotated[
        int,
        typer.Option("-n", "--most", metavar="N", parser=whole_number(1, MOST), help="Largest number."),
    ] = 20,
    controller: ControllerOption = CONTROLLER,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Search the stored decisions, the latest first."""
    from leeward.summary.rows import subject

    service = client(controller, token_file, ca, 0.0)
    end = None if until is None else read_time("--until", until)
    start = None if since is None else start_time("--since", since, end or datetime.now(UTC))
    with controller_errors():
        found = list(
            service.decisions(
                kind,
                most + 1,
                since=start,
                until=end,
                ref=ref,
                client=client_name,
                key=key,
                job=job,
                host=host,
                rack=rack,
                policy=policy,
                fallback=True if fallback else None,
            )
        )
    shown = found[:most]
    if print_data(output, shown, shown, COLUMNS["decisions"]):
        return
    if not shown:
        print_text("no decision meets the conditions")
        return
    print_table(
        ("DECISION", "TIME", "KIND", "WHAT", "CLIENT", "POLICY", "RACKS", "BOTTLENECK"),
        "<<<<<<<<",
        [_row(one, subject(one)) for one in shown],
    )
    if len(found) > most:
        print_note(f"there are more than {most}; --most shows more")


def _row(decision: Decision, subject: str) -> tuple[str, ...]:
    limit = decision["limit"]
    racks = decision["racks"]
    names = ", ".join(racks[:4]) + (f" and {len(racks) - 4} more" if len(racks) > 4 else "")
    return (
        decision["id"],
        decision["time"].replace("T", " ").partition(".")[0],
        decision["kind"],
        subject,
        decision["client"] or "-",
        decision["policy"] + (" (fallback)" if decision["note"] and not decision["by_default"] else ""),
        names or "-",
        "-" if limit is None or limit["at"] is None else limit["at"],
    )
