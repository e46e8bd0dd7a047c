"""One cell: a run, and the data for comparisons with other runs on the same arrivals.

Runs are compared write by write, as `Run.compare` does (Sinbad section 7.1), but from tables of write times:
so an earlier cell can be compared with a new one, and with another baseline.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy
import pyarrow

from leeward._arrays import Floats
from leeward._native import Run, Scenario
from leeward.data import hint_fetch
from leeward.simulation import TABLES
from leeward.sweep.plan import Cell, Variant

SAME_WITHIN = 0.01
"""Two write times within this share of each other count as equal."""


COFLOW_CLASSES = ("SN", "LN", "SW", "LW")
"""Classes of coflows, as `Run.coflows` names them."""
ANY = {"replicas": "uniform", "cell": "borg", "apps": "borg", "coflows": "fair"}
"""A policy of each kind, for runs whose results do not matter."""


@dataclass(frozen=True)
class Outcome:
    """Stored data of a run."""

    arrivals: list[str]
    """Sources of the arrivals: a line for each workload."""
    summary: dict[str, Any]
    writes: pyarrow.Table
    """Write times: see `writes`."""
    tables: dict[str, pyarrow.Table]
    """The run's own tables, if requested."""


def make(cell: Cell, tables: bool, progress: Callable[[int, float], object] | None) -> Outcome:
    """Runs a cell.

    Args:
        cell: The cell.
        tables: True to keep the run's tables.
        progress: Called with 0 and the completed share.

    Raises:
        InputError: A file, the policy or a setting is invalid.
    """
    own: dict[str, Callable[[int], Any]] = {cell.policy: cell.own.start} if cell.own else {}
    with hint_fetch():
        (run,) = _scenario(cell.variant).run([cell.policy], [cell.seed], 1, progress, own)
    run_tables = {name: getattr(run, name)() for name in TABLES} if tables else {}
    return Outcome(run.provenance, run.summary(), writes(run), run_tables)


class _ArrivalsReadError(Exception):
    """Raised once arrivals were read."""


def check_arrivals(variant: Variant, seed: int) -> None:
    """Reads the arrivals, and stops before the simulation.

    Raises:
        InputError: A file of the arrivals is missing or invalid.
    """

    def stop(_: int, share: float) -> None:
        raise _ArrivalsReadError

    with hint_fetch(), suppress(_ArrivalsReadError):
        scenario = _scenario(variant)
        scenario.run([ANY[scenario.kind]], [seed], 1, stop)


@lru_cache(maxsize=4)
def _scenario(variant: Variant) -> Scenario:
    return variant.read()


def writes(run: Run) -> pyarrow.Table:
    """The write times of a run.

    Returns:
        A row for each block, file, job, read, app and coflow: `kind`; `number` and `block`, which identify it
        in every run on the same arrivals; `full`, true for a full block; `counts`, true if it, or its file,
        began after the warm-up; `time_s`, null without an end.
    """
    blocks, files, jobs, reads = run.blocks(), run.files(), run.jobs(), run.reads()
    counts_of_file = files["start_s"].to_numpy() >= run.warmup_s
    rows = [
        (
            "block",
            blocks["file"].to_numpy(),
            blocks["block"].to_numpy(),
            blocks["full"].to_numpy(),
            counts_of_file[blocks["file"].to_numpy()],
            _durations(blocks, "asked_s"),
        )
    ]
    others = (("file", files, "start_s"), ("job", jobs, "start_s"), ("read", reads, "asked_s"))
    for kind, table, start in others:
        # The number of a read is not its row: the set of reads differs by policy.
        row_numbers = numpy.arange(len(table), dtype=numpy.uint32)
        numbers = table["read"].to_numpy() if kind == "read" else row_numbers
        none = numpy.zeros(len(table), dtype=numpy.uint32)
        counts = table[start].to_numpy() >= run.warmup_s
        rows.append((kind, numbers, none, none.astype(bool), counts, _durations(table, start)))
    apps = run.apps()
    if len(apps):
        numbers = numpy.arange(len(apps), dtype=numpy.uint32)
        none = numpy.zeros(len(apps), dtype=numpy.uint32)
        counts = apps["arrived_s"].to_numpy() >= run.warmup_s
        rows.append(("app", numbers, none, none.astype(bool), counts, _durations(apps, "arrived_s")))
    coflows = run.coflows()
    if len(coflows):
        numbers = numpy.arange(len(coflows), dtype=numpy.uint32)
        # The number of the class stands for that of a block. A coflow without flows has no class.
        known = {name: number for number, name in enumerate(COFLOW_CLASSES)}
        classes = [known.get(name, len(known)) for name in coflows["class"].to_pylist()]
        block = numpy.array(classes, dtype=numpy.uint32)
        none = numpy.zeros(len(coflows), dtype=bool)
        # A coflow without flows takes no time under any policy.
        counts = (coflows["arrived_s"].to_numpy() >= run.warmup_s) & (coflows["flows"].to_numpy() > 0)
        rows.append(("coflow", numbers, block, none, counts, _durations(coflows, "arrived_s")))
    kinds = numpy.concatenate([numpy.repeat(kind, len(numbers)) for kind, numbers, *_ in rows])
    number, block, full, counts, times = (
        numpy.concatenate([row[column] for row in rows]) for column in range(1, 6)
    )
    return pyarrow.table(
        {
            "kind": pyarrow.array(kinds).dictionary_encode(),
            "number": number,
            "block": block,
            "full": full,
            "counted": counts,
            "time_s": pyarrow.array(times, from_pandas=True),
        }
    )


def compare(ours: pyarrow.Table, baseline: pyarrow.Table) -> dict[str, Any]:
    """Comparison of a run with another on the same arrivals, bit-identical to `Run.compare`.

    Args:
        ours: Write times of a run.
        baseline: Write times of the baseline.
    """
    parts = {"blocks": ("block", None), "full_blocks": ("block", True), "partial_blocks": ("block", False)}
    parts |= {"files": ("file", None), "jobs": ("job", None)}
    if any("read" in table["kind"].combine_chunks().dictionary.to_pylist() for table in (ours, baseline)):
        parts["reads"] = ("read", None)
    if "app" in ours["kind"].combine_chunks().dictionary.to_pylist():
        parts |= {"apps": ("app", None)}
    comparison: dict[str, Any] = {
        name: _pairs(_select(ours, kind, full), _select(baseline, kind, None))
        for name, (kind, full) in parts.items()
    }
    if "coflow" in ours["kind"].combine_chunks().dictionary.to_pylist():
        mine, theirs = _select(ours, "coflow", None), _select(baseline, "coflow", None)
        comparison["coflows"] = _pairs(mine, theirs)
        # The key ends in the number of the class.
        classes = mine["key"] & numpy.uint64(0xFFFFFFFF)
        comparison["coflow_classes"] = {
            name: _pairs({part: values[classes == number] for part, values in mine.items()}, theirs)
            for number, name in enumerate(COFLOW_CLASSES)
        }
    return comparison | {"same_within": SAME_WITHIN}


def _select(writes: pyarrow.Table, kind: str, full: bool | None) -> dict[str, Any]:
    kinds = writes["kind"].combine_chunks()
    codes = {name: code for code, name in enumerate(kinds.dictionary.to_pylist())}
    selection = kinds.indices.to_numpy() == codes.get(kind, -1)
    if full is not None:
        selection &= writes["full"].to_numpy(zero_copy_only=False) == full
    number = writes["number"].to_numpy()[selection].astype(numpy.uint64)
    return {
        "key": (number << numpy.uint64(32)) | writes["block"].to_numpy()[selection],
        "counted": writes["counted"].to_numpy(zero_copy_only=False)[selection],
        "time": writes["time_s"].to_numpy(zero_copy_only=False)[selection],
    }


def _pairs(ours: dict[str, Any], baseline: dict[str, Any]) -> dict[str, Any]:
    order = numpy.argsort(baseline["key"])
    keys, times = baseline["key"][order], baseline["time"][order]
    positions = numpy.searchsorted(keys, ours["key"])
    paired = positions < len(keys)
    paired[paired] = keys[positions[paired]] == ours["key"][paired]
    before = numpy.full(len(positions), numpy.nan)
    before[paired] = times[positions[paired]]
    both = ours["counted"] & numpy.isfinite(ours["time"]) & numpy.isfinite(before)
    after, before = ours["time"][both], before[both]
    count, total = len(after), _sum(after)
    faster = int(numpy.count_nonzero(after < before * (1 - SAME_WITHIN)))
    slower = int(numpy.count_nonzero(after > before * (1 + SAME_WITHIN)))
    twice = int(numpy.count_nonzero((after * 2 <= before) & (after < before)))
    return {
        "count": count,
        "factor": _sum(before) / total if total > 0 else 1.0,
        "faster": faster / max(count, 1),
        "same": (count - faster - slower) / max(count, 1),
        "slower": slower / max(count, 1),
        "twice_as_fast": twice / max(count, 1),
    }


def _sum(values: Floats) -> float:
    """Sum from first to last; numpy adds in another order."""
    return float(numpy.add.accumulate(values)[-1]) if len(values) else 0.0


def _durations(table: pyarrow.Table, start: str) -> Floats:
    """Seconds from a start to the finish; NaN without a finish."""
    return numpy.asarray(table["finished_s"].to_numpy(zero_copy_only=False) - table[start].to_numpy())
