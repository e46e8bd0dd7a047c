"""Sweeps of `leeward simulate`: several seeds, settings, or both."""

import json
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leeward._files import atomic_file, check_folder
from leeward.cli.notes import print_note, print_warning
from leeward.cli.options import name_flags
from leeward.cli.output import Format, print_data, print_table, print_text, print_words
from leeward.cli.progress import STEPS, progress, simulated_time_text, slow_notice, steps
from leeward.cli.scenario_runs import read, warn_of_refusals
from leeward.errors import InputError
from leeward.report.intervals import interval_rows
from leeward.report.rows import glossary

_OPTIONS = {"policies": "--policy", "seed": "--seed and --seeds"}
"""Options that replace the settings that a sweep rejects."""


def sweep(
    scenario: str,
    policies: Sequence[str] | None,
    seed: int | None,
    seeds: int,
    options: Sequence[str],
    jobs: int | None,
    backend: str,
    tables: bool,
    out: Path | None,
    output: Format,
) -> None:
    """Runs a sweep with progress on stderr, prints its summary, and writes it to the folder, if there is one.

    Args:
        scenario: Path of the scenario file.
        policies: Names of policies; by default those of the scenario.
        seed: First seed; by default the scenario's.
        seeds: Number of seeds.
        options: Values of `--set`.
        jobs: Number of parallel runs.
        backend: Backend of the runs.
        tables: Keeps the tables of the runs.
        out: Folder of results.
        output: Format of the summary.
    """
    from leeward.sweep import run, summarize
    from leeward.sweep.settings import parse
    from leeward.sweep.store import SUMMARY, TABLE

    if out:
        check_folder(out, "--out")
    model = read(scenario)
    policies = model.policies if policies is None else policies
    first = model.seed if seed is None else seed
    seed_range = range(first, first + seeds)
    with name_flags(settings="--set"):
        settings = parse(options)
    total = len(policies) * seeds * math.prod(len(values) for values in settings.values())
    title = f"simulating {', '.join(policies)} under {seeds} seed{'s' * (seeds > 1)}"
    wait_text = f"reading the workloads of {model.name}"
    if backend != "threading":
        wait_text = f"{title} on {backend}: progress appears as runs end"
    with (
        remarks_to_stderr(),
        _hint_options(),
        name_flags(policies="--policy", seeds="--seeds", settings="--set", backend="--backend", out="--out"),
        resumable(out),
        progress(title, STEPS * total, amount=simulated_time_text(model.horizon_s * total)) as advance,
        slow_notice(wait_text) as on_begin,
    ):
        cells = run(
            scenario,
            policies,
            seeds=seed_range,
            settings=settings,
            jobs=jobs,
            backend=backend,
            tables=tables,
            out=out,
            progress=steps(advance, on_begin),
        )
    rows = summarize(cells).to_pylist()
    document: dict[str, Any] = {
        "baseline": policies[0],
        "seeds": list(seed_range),
        "summary": rows,
        "cells": cells.to_pylist(),
    }
    if not print_data(output, document, "summary", list(rows[0])):
        show(rows, policies, seed_range)
    warn_of_refusals(document["cells"])
    if out:
        with atomic_file(out / SUMMARY) as temporary:
            temporary.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n")
        print_note(f"\nwrote {out}/{TABLE} and {SUMMARY}")


def show(rows: list[dict[str, Any]], policies: Sequence[str], seeds: range) -> None:
    """Prints a table for each setting."""
    by_setting: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        values = [(name.removeprefix("set."), row[name]) for name in row if name.startswith("set.")]
        by_setting.setdefault(" ".join(f"{path}={value}" for path, value in values), []).append(row)
    if len(seeds) > 1:
        means = "mean and 95 % confidence interval; ratios and differences compare runs with the same seed"
        print_note(f"{len(seeds)} seeds, {seeds[0]} to {seeds[-1]}: {means}")
    for at, (setting, setting_rows) in enumerate(by_setting.items()):
        if setting:
            print_text(("\n" if at else "") + setting)
        table = interval_rows(setting_rows, policies)
        sides = "<" + ">" * len(policies)
        print_table(("", *policies), sides, [(row.quantity, *row.cells) for row in table])
    print_words(glossary(table, policies[0]))


@contextmanager
def _hint_options() -> Iterator[None]:
    """Adds a hint to errors about settings that are options of a sweep: the option to use."""
    try:
        yield
    except InputError as error:
        if options := _OPTIONS.get(error.file.removeprefix("--set ")):
            error.add_note(f"use {options} instead")
        raise


class _Notes(logging.Handler):
    """Prints messages as notes, and warnings as warnings."""

    def emit(self, record: logging.LogRecord) -> None:
        (print_warning if record.levelno >= logging.WARNING else print_note)(record.getMessage())


@contextmanager
def remarks_to_stderr() -> Iterator[None]:
    """Prints log messages of a sweep about its folder on stderr."""
    log, handler = logging.getLogger("leeward.sweep"), _Notes()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)


@contextmanager
def resumable(out: Path | None) -> Iterator[None]:
    """Prints how to resume a sweep that is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        if out:
            print_note(f"stopped; the same command resumes from {out}", doubt=True)
        else:
            print_note("stopped; nothing is saved, since only a sweep with --out can resume", doubt=True)
        raise
