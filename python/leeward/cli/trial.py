"""`leeward trial`: days of a simulated cluster behind the service, step by step from shadow to on."""

import json
import os
import queue
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from leeward import _native
from leeward._files import check_file
from leeward._quantities import percent_text, read_share, time_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import parse_path, parse_seed
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text, print_words
from leeward.cli.progress import progress, simulated_time_text
from leeward.cli.report import print_summary
from leeward.client import Client, ProblemError, UnreachableError
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.demo.trial import Phase, Plan, Trial

EXAMPLES = """\b
Examples:
  leeward trial                              a week, about 20 minutes on two cores
  leeward trial --days 1 --out day.html      a day, and the page of its report
  leeward trial --canary 10% --seed 2 -o json

The cluster has 120 hosts in 12 racks, an eighth of the cluster of `leeward serve --demo`, so that a week
takes minutes. Most of this time goes to snapshots of the service, one for each ten simulated seconds.
"""
MOST_DAYS = 28
"""Greatest value of `--days`; the service stores hours for 31 days."""
SHUTDOWN_S = 45.0
"""Seconds to wait for the service to end."""
STOPPING_S = 5.0
"""Seconds to wait for the end of a service that no longer answers."""
STOPPED = "the service of the trial was stopped"
SERVICE_OPTIONS = (
    *("config", "cluster", "listen", "admin_listen", "policy", "task_policy", "moves", "mode", "off_file"),
    *("interval", "seed", "store", "durable", "tokens", "prometheus", "map", "http"),
)
"""Options of the service, which has a settings file instead."""
PHASE_HEADERS = (
    "PHASE",
    "MODE",
    "HOT LINK-HOURS",
    "SEEN",
    "WITH LEEWARD",
    "WITHOUT LEEWARD",
    "BASELINE ALONE",
)
ESTIMATE_HEADERS = ("ESTIMATE", "LINK-HOURS", "SIMULATED", "IN PHASE", "ERROR")
WORDS = (
    ("hot link-hours", "Time above the threshold for hot links, summed over all links, in the simulation."),
    ("seen", "The same time in the summary of the service, which knows the loads of reports only."),
    ("with and without Leeward", "The estimates of the summary."),
    ("baseline alone", "The simulation of the same jobs, placed by borg without the service."),
    ("error", "Estimate divided by the time that a phase really had, minus 1."),
)
"""Words of the tables and their meanings."""


def trial(
    days: Annotated[
        float,
        typer.Option(
            metavar="N",
            help="Simulated days of each phase, in whole hours: `0.25` is six hours.",
            show_default="7",
        ),
    ] = 7.0,
    canary: Annotated[
        str, typer.Option(metavar="SHARE", help="Share of the requests that Leeward decides in phase canary.")
    ] = "25%",
    seed: Annotated[
        int, typer.Option(metavar="N", parser=parse_seed, help="Seed of the jobs and of ties, from 0.")
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="Also write the report of phase shadow as one self-contained HTML page.",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Turn the service on step by step, on a week of a simulated cluster.

    The real service runs on simulated time. The same days of the same jobs pass three times: in mode shadow,
    as a canary, and in mode on. The report of the first phase says what Leeward would have done. The last
    table compares the estimates of the reports with what the simulation then had. At the end, the service is
    turned off.
    """
    from leeward.demo.trial import Plan

    if out is not None:
        check_file(out, "--out")
    plan = Plan(_hours(days), f"canary:{_share(canary)}", seed)
    result = _run(plan, out, output)
    document = result.record()
    if print_data(output, document, "phases", COLUMNS["trial"]):
        return
    _print(result)


def _hours(days: float) -> int:
    hours = 24 * days
    if not (1 <= hours <= 24 * MOST_DAYS and abs(hours - round(hours)) < 1e-6):
        message = f"{days:g}: expected whole hours, such as 0.25 for six hours, and at most {MOST_DAYS} days"
        raise InputError.about("--days", message)
    return round(hours)


def _share(text: str) -> str:
    """A share as in a mode."""
    return f"{100 * read_share('--canary', text, 0.0001, 0.9999):.4g}%"


def _run(plan: "Plan", out: Path | None, output: Format) -> "Trial":
    """Runs all phases. Shows the report of phase shadow when that ends."""
    from leeward.demo.trial import START, STEP_S, ServiceTime, Trial, run_phase, turn_off

    clock = _native.SimulatedClock(START.isoformat())
    phases: list[Phase] = []
    with _service(plan, clock) as url, ServiceTime(url, clock) as service_time:
        # Keys of placements are in the reports, which a seed repeats.
        keys = count(1)
        client = Client(url, patience_s=0.0, new_key=lambda: f"trial-{next(keys)}")
        for number, name in enumerate(plan.modes, 1):
            title = f"phase {number} of {len(plan.modes)}, {name}"
            with progress(title, plan.steps, amount=simulated_time_text(plan.steps * STEP_S)) as advance:
                phases.append(run_phase(client, service_time, plan, name, advance))
            if name == "shadow":
                _report(phases[-1], client.status()["cluster"], out, output)
        return Trial(plan, phases, turn_off(client))


@contextmanager
def _service(plan: "Plan", clock: "_native.SimulatedClock") -> Iterator[str]:
    """Runs the service in a thread; yields its address.

    Raises:
        OSError: The service was stopped by a signal, or rejected a request.
    """
    started: queue.Queue[str | BaseException | None] = queue.Queue()

    def serve(options: dict[str, str | int | None]) -> None:
        try:
            _native.serve(options, lambda url, _: started.put(url), clock=clock)
        except BaseException as error:  # the main thread raises it
            started.put(error)
        else:
            started.put(None)

    with TemporaryDirectory(prefix="leeward-trial-") as folder:
        cluster, settings = Path(folder) / "trial.json", Path(folder) / "leeward.json"
        cluster.write_text(json.dumps(plan.cell.cluster), encoding="utf-8")
        settings.write_text(json.dumps(plan.settings(str(cluster))), encoding="utf-8")
        options: dict[str, str | int | None] = {**dict.fromkeys(SERVICE_OPTIONS), "config": str(settings)}
        thread = threading.Thread(target=serve, args=(options,), daemon=True)
        thread.start()
        first: str | BaseException | None = None
        try:
            first = started.get()
            if isinstance(first, BaseException):
                raise first
            if first is None:
                raise OSError(STOPPED)
            yield first
        except UnreachableError as error:
            # A stopped service has ended its thread, or is about to.
            thread.join(STOPPING_S)
            raise OSError(str(error) if thread.is_alive() else STOPPED) from None
        except ProblemError as error:
            raise OSError(f"the service rejected a request of the trial: {error}") from None
        finally:
            # Before it listens, the service does not handle the signal, which would end the process.
            if first is None and thread.is_alive():
                first = started.get()
            # It handles the signal only if it has listened.
            if isinstance(first, str) and thread.is_alive():
                os.kill(os.getpid(), signal.SIGTERM)
            thread.join(SHUTDOWN_S)


def _report(phase: "Phase", cluster: str, out: Path | None, output: Format) -> None:
    """Shows the report of a phase, as `leeward report` does."""
    if out is not None:
        from leeward.summary.page import write_page

        write_page(out, phase.summary, cluster)
    if output is Format.table:
        print_summary(phase.summary)
        print()
    if out is not None:
        print_note(f"page written to {out}")


def _print(trial: "Trial") -> None:
    def hours(value: float) -> str:
        return f"{value:,.2f}"

    print_table(
        PHASE_HEADERS,
        "<<>>>>>",
        [
            (
                phase.name,
                phase.mode,
                hours(sum(phase.simulated_h)),
                *(
                    hours(phase.summary["hot_link_hours"][name])
                    for name in ("seen", "with_leeward", "without_leeward")
                ),
                hours(sum(phase.baseline_h)),
            )
            for phase in trial.phases
        ],
    )
    print()
    print_table(
        ESTIMATE_HEADERS,
        "<>><>",
        [
            (
                f"{one.phase}: {one.estimate.replace('_', ' ').replace('leeward', 'Leeward')}",
                hours(one.estimated_h),
                hours(one.simulated_h),
                one.simulated_phase,
                "-" if one.error is None else f"{'+' if one.error > 0 else ''}{percent_text(one.error, 0)}",
            )
            for one in trial.estimates
        ],
    )
    off = trial.off
    print_text(f"\nThe default policy ({off.policy}) decided {time_text(off.decided_s)} after `off`.")
    print_words(WORDS)
