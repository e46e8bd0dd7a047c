"""Stragglers, failures and choices of the paper's text, for which it reports no numbers.

Its replay has stragglers and tasks that fail (section 7.1), its related work names rebuild storms (section
9), and its discussion names sources that are placed as well and the makespan of a job's writers (section 8).
"""

from collections.abc import Mapping

from leeward_reproduce.rows import Row, measured_row
from leeward_reproduce.sinbad.pairs import quotients, ratios
from leeward_reproduce.sinbad.sweeps import (
    CHOICES,
    FAULTS,
    JOB_ENDS,
    LOAD,
    MAKESPAN,
    OPT,
    REMOTE_RACKS,
    REPAIRS,
    policy,
)
from leeward_reproduce.sweeps import Cells, Sweep

SWEEPS = (LOAD, FAULTS, REPAIRS, CHOICES, JOB_ENDS)

_FULL = "full_block_write_s.mean"
_FAULTS = "5 % of the tasks are slower by five, and 1 % fail once"


def rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Factors under faults, after the failure of a rack, with free sources, and by the order of jobs."""
    result = []
    for remote in REMOTE_RACKS:
        uniform = policy("uniform", remote)
        for name in ("sinbad", "leeward"):
            ours, against = policy(name, remote), f"uniform / {name}, {remote} remote"
            for cells, words, note in (
                (results[FAULTS], "with stragglers and failures", _FAULTS),
                (results[REPAIRS], "while a rack is repaired", "rack r7 fails after 5 min"),
            ):
                factors = ratios(cells, _FULL, ours, uniform)
                result.append(
                    measured_row("failures", f"full blocks {words}: {against}", "x", factors, None, note)
                )
            repairs = ratios(results[REPAIRS], "repairs.time_s.mean", ours, uniform)
            result.append(measured_row("failures", f"time to repair a block: {against}", "x", repairs))
        result += _choices(results, remote)
        result.append(_order(results[JOB_ENDS], remote))
    return result


def _choices(results: Mapping[Sweep, Cells], remote: int) -> list[Row]:
    """Time of full blocks if tasks cannot choose over that if they can, under the same policy."""
    result = []
    for name in ("uniform", "sinbad", "leeward"):
        base = results[LOAD].by_seed(_FULL, policy(name, remote), "1")
        for count in CHOICES.values:
            chosen = results[CHOICES].by_seed(_FULL, policy(name, remote), count)
            label = f"full blocks under {name}: drawn sources / the best of {count}, {remote} remote"
            result.append(measured_row("failures", label, "x", quotients(base, chosen)))
    return result


def _order(cells: Cells, remote: int) -> Row:
    """Time of jobs if the shortest writers are first, over that if the longest writers of jobs are first."""
    factors = ratios(cells, "job_s.mean", policy(MAKESPAN, remote), policy(OPT, remote))
    label = f"jobs, 3x the arrivals: sinbad-file / the same with makespan, {remote} remote"
    return measured_row("failures", label, "x", factors)
