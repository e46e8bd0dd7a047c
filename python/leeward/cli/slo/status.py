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
from leeward.cli.notes import print_error, print_note
from leeward.cli.options import name_flags
from leeward.cli.output import Format, FormatOption, print_csv, print_json, print_table, print_words
from leeward.client import Client, ProblemError, UnreachableError
from leeward.client.problems import NotControllerError
from leeward.client.promise_types import EnforcementPlace, Enforcer, Workload
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward slo status
  leeward slo status --every 10s
  leeward slo status --check
  leeward slo status -o csv | grep unenforced

With --check, the exit code is 1 if a promise is not enforced, or if its SLO is used up too fast.
"""
TOO_MANY_REQUESTS = 429
SERVER_ERRORS = 500
"""Status of a response that may be another one later: the least of the second kind."""
SHOWN_WINDOW_S = 3600.0
"""Window whose burn rate the table shows."""
ENFORCED = ("enforced", "seen")
"""States of a promise that enforcers apply at all of its places."""
PLACES = {
    "drifted": "drifted",
    "refused": "refused",
    "expired": "silent",
    "pending": "pending",
}
"""Words for places whose enforcer does not apply a promise."""
WORDS = (
    ("seen", "latency at the SLO's percentile, without the network if it is that at the server"),
    ("state", "decided, partial, enforced or seen; unenforced after silence, a refusal or a drift"),
    ("enforced", "places where an enforcer has applied the promise, of all places that it needs"),
    ("burn", "share of late requests in an hour, relative to the share that the SLO permits"),
    ("late", "late requests, and the number that the SLO permits of all requests that were counted"),
    ("alerts", "fast, slow or lasting, by the burn rates of a long and a short window"),
)


def status(
    every: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Show them again after this time, until Ctrl-C.", show_default=False
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit with code 1 if a promise is not enforced, or if an alert fires."),
    ] = False,
    controller: ControllerOption = CONTROLLER,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Show the promises of a controller: decided, enforced where, and seen.

    For each workload with a promised SLO: its bound, the latency that its requests have, where enforcers
    apply its priorities and limits, and how fast it uses up what its SLO permits. A place without an enforcer
    is no error: the promise is decided, and nothing applies it there. With --every and -o json, each time is
    one line; while the controller is unavailable, an error is shown each time.
    """
    if check and every is not None:
        raise InputError.about("--check", "has no effect with --every, which goes on")
    with name_flags(every="--every"):
        pause = None if every is None else read_milliseconds("every", every) / 1000
    service = client(controller, token_file, ca, 0.0)
    is_first = True
    with controller_errors():
        if pause is None:
            document = _read(service)
            _show(document, output, repeated=False, header=True)
            failures = [line for one in document["workloads"] for line in _failures(one)] if check else []
            for line in failures:
                print_error(line)
            if failures:
                raise typer.Exit(1)
            return
        while True:
            if (read := _read_if_available(service)) is not None:
                _show(read, output, repeated=True, header=is_first)
                is_first = False
            time.sleep(pause)


def _read_if_available(service: Client) -> dict[str, Any] | None:
    """All promises and enforcers; None, after an error line, if the controller is unavailable for now.

    Raises:
        ProblemError: The controller rejects the request.
        NotControllerError: The server is not a controller.
    """
    try:
        return _read(service)
    except NotControllerError:
        raise
    except UnreachableError as error:
        print_error(f"--controller: {error}")
    except ProblemError as error:
        if error.status != TOO_MANY_REQUESTS and error.status < SERVER_ERRORS:
            raise
        print_error(f"--controller: {error}")
    return None


def _failures(workload: Workload) -> list[str]:
    """Reasons why a promise is not kept, as far as enforcers know."""
    enforcement = workload["enforcement"]
    if enforcement is None:
        return []
    lines = []
    if enforcement["state"] not in ENFORCED:
        lines.append(f"{workload['name']} is not enforced: {enforcement['state']}")
    if enforcement["alerts"]:
        alerts = ", ".join(enforcement["alerts"])
        lines.append(f"{workload['name']} uses up its SLO too fast: {alerts}")
    return lines


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
            ("WORKLOAD", "SLO", "BOUND", "SEEN", "STATE", "ENFORCED", "VERSION", "BURN", "LATE", "ALERTS"),
            "<<>><<>>><",
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
    for since, names in _counted(workloads).items():
        print_note(f"requests count since {since}: {', '.join(names)}")
    if workloads and words:
        print_words(WORDS)


def _counted(workloads: list[Workload]) -> dict[str, list[str]]:
    """Names of workloads by the time since which their requests count."""
    names: dict[str, list[str]] = {}
    for workload in workloads:
        enforcement = workload["enforcement"]
        if enforcement is not None and (since := enforcement["counted_since"]) is not None:
            names.setdefault(since, []).append(workload["name"])
    return names


def _row(workload: Workload) -> tuple[str, ...]:
    slo, enforcement = workload["slo"], workload["enforcement"]
    promised = f"{slo['percentile']:g} % in {time_text(slo['latency_s'])}"
    head = (workload["name"], promised, time_text(workload["bound_s"]))
    if enforcement is None:
        return (*head, time_text(workload["seen_s"]), "-", "-", "-", "-", "-", "")
    # An enforcer at the server sees no network.
    seen = time_text(workload["seen_s"]) + (" at the server" if enforcement["seen_by"] is not None else "")
    rates = {one["window_s"]: one["rate"] for one in enforcement["burn"]}
    burn = rates.get(SHOWN_WINDOW_S)
    return (
        *head,
        seen,
        enforcement["state"],
        _places_text(enforcement["places"]),
        str(workload["version"]),
        "-" if burn is None else f"{burn:.3g}",
        _late_text(workload),
        ", ".join(enforcement["alerts"]),
    )


def _places_text(places: list[EnforcementPlace]) -> str:
    """Number of places that are enforced, with the others that have an enforcer: `2 of 3, 1 drifted`."""
    states = [place["state"] for place in places]
    parts = [f"{states.count('applied')} of {len(states)}"]
    parts += [f"{states.count(state)} {word}" for state, word in PLACES.items() if state in states]
    return ", ".join(parts)


def _late_text(workload: Workload) -> str:
    """Late requests and the number of permitted ones: `3 of 10`."""
    total = workload["enforcement"]["total"] if workload["enforcement"] is not None else None
    if total is None or total["requests"] == 0:
        return "-"
    permitted = total["requests"] * (1 - workload["slo"]["percentile"] / 100)
    return f"{total['late']:,} of {permitted:,.3g}"


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
