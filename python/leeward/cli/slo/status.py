"""`leeward slo status`: promises of a running service, and where they are enforced."""

import json
import sys
import time
from typing import Annotated, Any

import typer

from leeward._quantities import duration_text, read_milliseconds, time_text
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
from leeward.cli.options import name_flags
from leeward.cli.output import Format, FormatOption, print_csv, print_json, print_table, print_words
from leeward.client import Client
from leeward.client.promise_types import Enforcer, Workload

EXAMPLES = """\b
Examples:
  leeward slo status
  leeward slo status --every 10s
  leeward slo status -o csv | grep unenforced
"""
SHOWN_WINDOW_S = 3600.0
"""Window whose burn rate the table shows."""
WORDS = (
    ("state", "decided, partial, enforced or seen; unenforced after silence, a refusal or a drift"),
    ("enforced", "places where an enforcer has applied the promise, of all places that it needs"),
    ("burn", "share of late requests in an hour, relative to the share that the SLO permits"),
    ("alerts", "fast, slow or lasting, by the burn rates of a long and a short window"),
)


def status(
    every: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Show them again after this time, until Ctrl-C.", show_default=False
        ),
    ] = None,
    controller: ControllerOption = CONTROLLER,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Show the promises of a controller: decided, enforced where, and seen.

    For each workload with a promised SLO: its bound, the latency that its requests have, where enforcers
    apply its priorities and limits, and how fast it uses up what its SLO permits. A place without an enforcer
    is no error: the promise is decided, and nothing applies it there. With --every and -o json, each time is
    one line.
    """
    with name_flags(every="--every"):
        pause = None if every is None else read_milliseconds("every", every) / 1000
    service = client(controller, token_file, ca, 0.0)
    is_first = True
    with controller_errors():
        while True:
            _show(_read(service), output, pause is not None, is_first)
            if pause is None:
                return
            is_first = False
            time.sleep(pause)


def _read(service: Client) -> dict[str, Any]:
    """All promises and enforcers, with the version of the promises."""
    page = service.workloads_page()
    workloads = list(page["items"])
    while page["next"] is not None:
        page = service.workloads_page(after=page["next"])
        workloads += page["items"]
    enforcers = list(service.enforcers())
    return {"set": page["set"], "version": page["version"], "workloads": workloads, "enforcers": enforcers}


def _show(document: dict[str, Any], output: Format, repeated: bool, header: bool) -> None:
    if output is Format.json:
        print(json.dumps(document, allow_nan=False)) if repeated else print_json(document)
    elif output is Format.csv:
        print_csv(document["workloads"], COLUMNS["slo status"], header)
    else:
        _print(document, words=header)
        if repeated:
            print()
    sys.stdout.flush()


def _print(document: dict[str, Any], words: bool) -> None:
    workloads: list[Workload] = document["workloads"]
    enforcers: list[Enforcer] = document["enforcers"]
    if not workloads:
        print_note("no workload has a promised SLO; POST /v1/workloads and POST /v1/place/volumes grant one")
    else:
        print_table(
            ("WORKLOAD", "SLO", "BOUND", "SEEN", "STATE", "ENFORCED", "VERSION", "BURN", "ALERTS"),
            "<<>><>>><",
            [_row(workload) for workload in workloads],
        )
    if enforcers:
        print()
        print_table(
            ("ENFORCER", "KIND", "HOST", "STATE", "APPLIED", "CURRENT", "WORKLOADS", "LEASE"),
            "<<<<>>>>",
            [_enforcer_row(one) for one in enforcers],
        )
    for workload in workloads:
        for text in _open_places(workload):
            print_note(f"{workload['name']}: {text}")
    if workloads and words:
        print_words(WORDS)


def _row(workload: Workload) -> tuple[str, ...]:
    slo, enforcement = workload["slo"], workload["enforcement"]
    promised = f"{slo['percentile']:g} % in {time_text(slo['latency_s'])}"
    head = (workload["name"], promised, time_text(workload["bound_s"]), time_text(workload["seen_s"]))
    if enforcement is None:
        return (*head, "-", "-", "-", "-", "")
    places = enforcement["places"]
    applied = sum(place["state"] == "applied" for place in places)
    rates = {one["window_s"]: one["rate"] for one in enforcement["burn"]}
    burn = rates.get(SHOWN_WINDOW_S)
    return (
        *head,
        enforcement["state"],
        f"{applied} of {len(places)}",
        str(workload["version"]),
        "-" if burn is None else f"{burn:.3g}",
        ", ".join(enforcement["alerts"]),
    )


def _enforcer_row(enforcer: Enforcer) -> tuple[str, ...]:
    version = enforcer["version"]
    return (
        enforcer["enforcer"],
        enforcer["kind"],
        enforcer["host"],
        enforcer["state"],
        "-" if version is None else str(version),
        str(enforcer["current"]),
        str(len(enforcer["workloads"])),
        duration_text(enforcer["lease_s"]),
    )


def _open_places(workload: Workload) -> list[str]:
    """Places where the promise is not applied, each with the reason."""
    places = [] if workload["enforcement"] is None else workload["enforcement"]["places"]
    reasons = {
        "absent": "no {kind} enforcer has registered for {host}",
        "pending": "{enforcer} has not yet applied version {needed}",
        "expired": "{enforcer} is silent, and its lease has run out",
        "refused": "{enforcer} cannot apply it: {detail}",
        "drifted": "another program has changed what {enforcer} applied: {detail}",
    }
    return [
        f"{place['stage']}: " + reasons[place["state"]].format(**place, needed=workload["version"])
        for place in places
        if place["state"] in reasons
    ]
