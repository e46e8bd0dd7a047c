"""The experiments on EC2, simulated: figures 6, 7 and 11, and blocks kept in memory (section 7.6).

The topology is unknown, so every machine is a fault domain of its own and its links are the bottlenecks.
There are no racks: each copy goes to another machine. Decisions are immediate (q = 0). Jobs of bins 1 to 4
shuffle before they write, and replicas slow the shuffles down, as on real machines. A second sweep has
shuffles that belong to no job and are as uneven as in section 4.3, to which the generator is fitted. The bin
of a job is determined by its share of time in writing under `uniform`.
"""

from collections.abc import Callable, Mapping

import numpy

from leeward._arrays import Floats, Mask
from leeward_reproduce.rows import Reason, Row, measured_row
from leeward_reproduce.sinbad import paper
from leeward_reproduce.sinbad.pairs import Jobs, job_pairs, quotient, quotients, ratios
from leeward_reproduce.sinbad.sweeps import MACHINES, MACHINES_APART, MACHINES_LOAD, MACHINES_MEMORY
from leeward_reproduce.sweeps import Cells, Sweep

SWEEPS = (MACHINES, MACHINES_APART)
SIZE_SWEEPS = (MACHINES,)
MEMORY_SWEEPS = (MACHINES_MEMORY,)
LOAD_SWEEPS = (MACHINES_LOAD,)
SIZES = ((0, "under 100 MB"), (1e8, "100 MB to 1 GB"), (1e9, "1 to 10 GB"), (1e10, "10 GB and more"))
"""Classes of jobs by bytes written: lower bound and name. The paper's text lacks the classes of figure 7."""
LOADS = dict(zip(MACHINES_LOAD.values, ("0.5x", "1x", "2x"), strict=True))

_BLOCKS = {"full blocks": "full_block_write_s.mean", "all blocks": "block_write_s.mean"}
_LOADED = {"full blocks": "full_block_write_s.mean", "jobs, end to end": "job_s.mean"}
_Wanted = Callable[[Jobs], Mask]
_CROWDED = Reason(
    "a reducer fetches from up to 20 machines, so a copy on its link gets as little as a 21st part",
    "shuffles apart from jobs (`6`)",
)
_APART = "shuffles apart from jobs, as uneven as in section 4.3"


def time_factors(cells: Cells, name: str, what: str, needed: _Wanted) -> list[float]:
    """Mean time under uniform over mean time under a policy, by seed, over the same jobs.

    Args:
        cells: The sweep.
        name: The policy.
        what: `time`, from submission to the last write, or `writing`, from the first write to the last.
        needed: Selects the jobs that count.
    """
    result = []
    for after, before, both in job_pairs(cells, name, cells, "uniform"):
        selection = both & needed(before)
        result += quotient(getattr(before, what)[selection], getattr(after, what)[selection])
    return result


def of_bin(number: int) -> _Wanted:
    """Jobs of a bin of table 3."""
    return lambda jobs: jobs.bin == number


def of_size(at: int) -> _Wanted:
    """Jobs of one of `SIZES`."""
    low, high = SIZES[at][0], SIZES[at + 1][0] if at + 1 < len(SIZES) else numpy.inf
    return lambda jobs: (jobs.bytes >= low) & (jobs.bytes < high)


def all_jobs(jobs: Jobs) -> Mask:
    """All jobs."""
    return numpy.ones(len(jobs.bytes), dtype=bool)


def rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Section 7.2 on machines, and figure 6."""
    machines, result = results[MACHINES], []
    for name in ("sinbad", "leeward"):
        is_paper, against = name == "sinbad", f"uniform / {name}"
        for cells, note in ((machines, "shuffles belong to jobs"), (results[MACHINES_APART], _APART)):
            for words, quantity in _BLOCKS.items():
                values = ratios(cells, quantity, name, "uniform")
                paper_value = paper.MACHINES_BLOCKS if is_paper and words == "full blocks" else None
                label = f"section 7.2: {words}, {note}: {against}"
                why = _CROWDED if cells is machines else None
                result.append(measured_row("6", label, "x", values, paper_value, reason=why))
        for words, what, reported in (
            ("a job's writing", "writing", paper.MACHINES_WRITES),
            ("jobs, end to end", "time", paper.MACHINES_JOBS),
        ):
            values = time_factors(machines, name, what, all_jobs)
            result.append(
                measured_row("6", f"{words}: {against}", "x", values, reported if is_paper else None)
            )
        for number in range(1, 6):
            values = time_factors(machines, name, "time", of_bin(number))
            paper_value = paper.BEST_BIN if is_paper and number == 5 else None
            note = "the largest in the paper" if paper_value else ""
            result.append(
                measured_row(
                    "6", f"jobs of bin {number}, end to end: {against}", "x", values, paper_value, note
                )
            )
            values = time_factors(machines, name, "writing", of_bin(number))
            result.append(measured_row("6", f"jobs of bin {number}, writing: {against}", "x", values))
        pairs = job_pairs(machines, name, machines, "uniform")
        gains = [gain for pair in pairs if len(gain := gains_of(pair))]
        values = [100 * float((gain <= 1.01).mean()) for gain in gains]
        paper_value = paper.MACHINES_NO_GAIN if is_paper else None
        reason = _without_full_blocks(machines) if paper_value else None
        label = f"jobs that gain at most 1 %: {against}"
        result.append(measured_row("6", label, "%", values, paper_value, reason=reason))
        values = [float(numpy.quantile(gain, 0.85)) for gain in gains]
        paper_value = paper.MACHINES_BEST if is_paper else None
        result.append(
            measured_row("6", f"least gain of the best 15 % of jobs: {against}", "x", values, paper_value)
        )
    return result


def _without_full_blocks(cells: Cells) -> Reason | None:
    """Reason with the share of jobs of which Sinbad places nothing, under the default policy."""
    shares = []
    for seed in cells.seeds:
        blocks, files = cells.table("blocks", "uniform", seed), cells.table("files", "uniform", seed)
        full = blocks["file"].to_numpy()[blocks["full"].to_numpy(zero_copy_only=False)]
        jobs = files["job"].to_numpy(zero_copy_only=False)
        count = len(cells.table("jobs", "uniform", seed))
        if count:
            shares.append(1 - len(numpy.unique(jobs[full])) / count)
    if not shares:
        return None
    share = 100 * numpy.mean(shares)
    text = f"{share:.0f} % of these jobs write no full block, so Sinbad places nothing of theirs"
    return Reason(text, "a count of these jobs")


def gains_of(pair: tuple[Jobs, Jobs, Mask]) -> Floats:
    """The factor of each job, end to end."""
    after, before, both = pair
    timed = both & (after.time > 0)
    gains: Floats = before.time[timed] / after.time[timed]
    return gains


def size_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Figure 7."""
    machines, result = results[MACHINES], []
    for name in ("sinbad", "leeward"):
        for at, (_, words) in enumerate(SIZES):
            for what, which in (("time", "end to end"), ("writing", "writing")):
                values = time_factors(machines, name, what, of_size(at))
                note = (
                    "the paper: no significant difference between sizes"
                    if name == "sinbad" and not at
                    else ""
                )
                label = f"jobs that write {words}, {which}: uniform / {name}"
                result.append(measured_row("7", label, "x", values, None, note))
    return result


def load_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Figure 11."""
    cells, result = results[MACHINES_LOAD], []
    once, twice = MACHINES_LOAD.values[1:]
    for name in ("sinbad", "leeward"):
        for value, load in LOADS.items():
            for words, quantity in _LOADED.items():
                values = ratios(cells, quantity, name, "uniform", value)
                note = (
                    "the paper: gains shrink at twice the rate" if name == "sinbad" and load == "2x" else ""
                )
                result.append(
                    measured_row(
                        "11", f"{words}, {load} arrival rate: uniform / {name}", "x", values, None, note
                    )
                )
    for name in cells.sweep.policies:
        values = quotients(*(cells.by_seed("job_s.mean", name, value) for value in (twice, once)))
        paper_value = paper.TWICE_THE_LOAD if name != "leeward" else None
        note = "the load itself doubles here; the paper's grew by some amount" if name == "uniform" else ""
        result.append(
            measured_row("11", f"jobs, 2x arrival rate / 1x: {name}", "x", values, paper_value, note)
        )
    return result


def memory_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Section 7.6 on machines."""
    cells, result, figure = results[MACHINES_MEMORY], [], "7.6-machines"
    for name in ("sinbad", "leeward"):
        paper_value = paper.MACHINES_MEMORY if name == "sinbad" else {}
        against = f"uniform / {name}"
        blocks = ratios(cells, "full_block_write_s.mean", name, "uniform")
        note = "caches are never full" if paper_value else ""
        result.append(
            measured_row(
                figure, f"full blocks: {against}", "x", blocks, paper_value.get("blocks"), note, _CROWDED
            )
        )
        writing = time_factors(cells, name, "writing", all_jobs)
        result.append(
            measured_row(figure, f"a job's writing: {against}", "x", writing, paper_value.get("writes"))
        )
        whole = time_factors(cells, name, "time", all_jobs)
        result.append(
            measured_row(
                figure,
                f"jobs, end to end: {against}",
                "x",
                whole,
                paper_value.get("jobs"),
                reason=_without_full_blocks(cells) if paper_value else None,
            )
        )
    return result
