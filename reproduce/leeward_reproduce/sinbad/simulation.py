"""The trace-driven simulation of section 7.2, and its variants: free sources, and no disks (section 7.6).

A factor is the time under the default over the time under a policy, for full blocks: Sinbad places no other
blocks. The paper decides every 10 s and yet finds 47 % of its blocks as fast as before, so its times cannot
include waiting for the decision. Here times from placing and times from asking are both shown. Blocks are as
fast if their times differ by at most 1 %.
"""

from collections.abc import Mapping

import numpy

from leeward_reproduce.rows import Reason, Row, measured_row
from leeward_reproduce.sinbad import limits, paper
from leeward_reproduce.sinbad.pairs import compared, quotient, quotients, ratios, writer_times
from leeward_reproduce.sinbad.sweeps import (
    BEST_FIT,
    FLOWS,
    HIGH_LOAD,
    HOUR,
    JOBS,
    MEMORY,
    OPT,
    REMOTE_RACKS,
    SOURCES,
    WAITS_LONG,
    policy,
    short,
)
from leeward_reproduce.sweeps import Cells, Sweep

SWEEPS = (HOUR, JOBS)
SOURCE_SWEEPS = (HOUR, SOURCES)
MEMORY_SWEEPS = (MEMORY,)
LOAD_SWEEPS = (HIGH_LOAD,)
FLOW_SWEEPS = tuple(FLOWS.values())
FIT_SWEEPS = (HOUR, BEST_FIT)

_SHARES = (
    ("faster", "full blocks faster", "faster"),
    ("same", "full blocks as fast (within 1 %)", "same"),
    ("slower", "full blocks slower", "slower"),
    ("twice", "full blocks twice as fast or more", "twice_as_fast"),
)
_TIMED = (
    (OPT, "sinbad-file, q = 10 s", False),
    ("sinbad", "sinbad, q = 0", True),
    ("leeward", "leeward", False),
)
_WRITING = "the time that a job writes; its shuffle is background and not in it"
_SHORT = "3 seeds, 10 min"
_WRITERS = "a file's blocks from placing, one after the other"
_SHUFFLE = "shuffles of the jobs are in it, and yield to what is placed; the paper's do not"


def rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Section 7.2."""
    hour = results[HOUR]
    why = limits.words(hour)
    result = _rows("7.2", hour, hour, paper.SIMULATION, why)
    for remote in REMOTE_RACKS:
        jobs, paper_value = results[JOBS], paper.SIMULATION["jobs"]
        words = "shuffle and writing"
        result += _job_rows("7.2", jobs, jobs, remote, paper_value, words, _SHUFFLE, why)
    return result + _batching(hour)


def source_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Section 7.2, with sources that are placed as well, against the default with sources as they are."""
    why, note = limits.words(results[HOUR]), "no link out of the writer counts here; its own disk does"
    return _rows("7.2-sources", results[SOURCES], results[HOUR], paper.SOURCES, why, note=note)


def memory_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Section 7.6."""
    idle = Reason("the background leaves most interfaces idle, as in section 7.2")
    at_interface = "interfaces of 1 Gb/s, at which most blocks are written under uniform too"
    together = "40 blocks are placed at once, and two at one interface or link get half of it each"
    shares = {
        "faster": idle,
        "same": Reason(at_interface),
        "slower": Reason(together),
        "twice": idle,
    }
    note = "no disks: an interface limits a write"
    return _rows("7.6", results[MEMORY], results[MEMORY], paper.MEMORY, idle, shares, note)


def fit_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Section 6.3: a copy behind the link with the least room above DiskWriteCap, or behind any such link."""
    result = []
    for remote in REMOTE_RACKS:
        for name in ("sinbad", OPT):
            fit = policy(f"{name}:best_fit=true", remote)
            pairs = compared(results[BEST_FIT], fit, results[HOUR], policy(name, remote), "placed")
            label = f"full blocks from placing: {short(name)} / the same with best fit, {remote} remote"
            note = "the paper: hurts, without a number"
            result.append(measured_row("6.3", label, "x", [pair["factor"] for pair in pairs], None, note))
    return result


def load_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Section 7.2 under more load: the factor, and how often links are hot under the default policy."""
    cells, result = results[HIGH_LOAD], []
    for value in HIGH_LOAD.values:
        for remote in REMOTE_RACKS:
            uniform, ours = policy("uniform", remote), policy("sinbad", remote)
            factors = ratios(cells, "full_block_write_s.mean", ours, uniform, value)
            note = "; ".join(filter(None, (_SHORT, _reaches(factors))))
            label = f"full blocks, {value}x the arrivals: uniform / sinbad, {remote} remote"
            result.append(measured_row("7.2-load", label, "x", factors, None, note))
        hot = [100 * share for share in cells.by_seed("hot_share", policy("uniform", 1), value).values()]
        label = f"links of racks over 75 % in 10 s, {value}x the arrivals, uniform, 1 remote"
        result.append(measured_row("7.2-load", label, "%", hot, None, _SHORT))
    return result


def flow_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Section 7.2 over a background of flows, by their number on a hot link and by the load."""
    result = []
    for load, sweep in FLOWS.items():
        cells = results[sweep]
        for ceiling in sweep.values:
            share = float(ceiling)
            flows = round(share / (1 - share))
            for remote in REMOTE_RACKS:
                uniform, ours = policy("uniform", remote), policy("sinbad", remote)
                factors = ratios(cells, "full_block_write_s.mean", ours, uniform, ceiling)
                on_link = "1 flow" if flows == 1 else f"{flows} flows"
                words = f"full blocks, {on_link} on a hot link, {load}x the arrivals"
                label = f"{words}: uniform / sinbad, {remote} remote"
                result.append(measured_row("7.2-flows", label, "x", factors, None, _reaches(factors)))
    return result


def _reaches(factors: list[float]) -> str:
    """Note of a factor that is the paper's or more."""
    reported = paper.SIMULATION["factor"]
    reaches = bool(factors) and float(numpy.mean(factors)) >= reported
    return f"the paper's {reported}x or more" if reaches else ""


def _rows(
    figure: str,
    cells: Cells,
    base: Cells,
    reported: Mapping[str, float],
    why: Reason | None,
    shares: Mapping[str, Reason] | None = None,
    note: str = "",
) -> list[Row]:
    """The rows of one simulation: `cells` against the default in `base`.

    Args:
        figure: Name of the figure.
        cells: The sweep of the policies.
        base: The sweep of the default policy.
        reported: Values of the paper.
        why: Reason of other factors.
        shares: Reasons of other shares of blocks; by default, the limits of the blocks give these.
        note: Note of the factor.
    """
    result = []
    for remote in REMOTE_RACKS:
        uniform = policy("uniform", remote)
        for name, paper_value in ((OPT, reported), ("leeward", dict[str, float]())):
            ours, against = policy(name, remote), f"uniform / {short(name)}, {remote} remote"
            pairs = compared(cells, ours, base, uniform, "placed")
            factors = [pair["factor"] for pair in pairs]
            label = f"full blocks from placing: {against}"
            result.append(
                measured_row(
                    figure, label, "x", factors, paper_value.get("factor"), note if paper_value else "", why
                )
            )
            reasons = limits.share_reasons(cells, ours, base, uniform) if shares is None else shares
            for key, words, column in _SHARES:
                values = [100 * pair[column] for pair in pairs]
                label = f"{words}: {short(name)} than uniform, {remote} remote"
                result.append(
                    measured_row(figure, label, "%", values, paper_value.get(key), reason=reasons.get(key))
                )
            with_wait = compared(cells, ours, base, uniform, "asked")
            factors = [pair["factor"] for pair in with_wait]
            note = "waiting for decisions counts, half of 10 s on average" if paper_value else ""
            result.append(
                measured_row(figure, f"full blocks from asking: {against}", "x", factors, None, note)
            )
            factors = _writers(cells, ours, base, uniform)
            of_file = _WRITERS if paper_value else ""
            label = f"writers of full blocks: {against}"
            result.append(measured_row(figure, label, "x", factors, paper_value.get("writers"), of_file, why))
        result += _job_rows(figure, cells, base, remote, reported["jobs"], "writing", _WRITING, why)
    return result


def _batching(hour: Cells) -> list[Row]:
    """Cost and gain of waiting: q = 0, 10 and 100 s, from placing and from asking."""
    result = []
    for remote in REMOTE_RACKS:
        uniform = policy("uniform", remote)
        for name, q in (("sinbad", "0 s"), (OPT, "10 s"), (WAITS_LONG, "100 s")):
            for since, counts in (("placed", "waiting does not count"), ("asked", "waiting counts")):
                pairs = compared(hour, policy(name, remote), hour, uniform, since)
                factors = [pair["factor"] for pair in pairs]
                label = f"batching: full blocks, {short(name)}, q = {q}, {counts}"
                label += f": uniform / this, {remote} remote"
                note = "the paper: no significant gain over q = 10 s" if q == "100 s" else ""
                result.append(measured_row("7.2", label, "x", factors, None, note))
    return result


def _job_rows(
    figure: str,
    cells: Cells,
    base: Cells,
    remote: int,
    paper_value: float,
    what: str,
    note: str,
    why: Reason | None,
) -> list[Row]:
    """Jobs weighted by size. Times include waiting, so the run with q = 0 is compared with the paper."""
    result = []
    for name, words, is_paper in _TIMED:
        factors = _jobs(cells, policy(name, remote), base, policy("uniform", remote))
        label = f"jobs weighted by size, {what}: uniform / {words}, {remote} remote"
        row_note = note if is_paper else "waiting for decisions counts" if name == OPT else ""
        result.append(
            measured_row(figure, label, "x", factors, paper_value if is_paper else None, row_note, why)
        )
    return result


def _writers(cells: Cells, ours: str, base: Cells, uniform: str) -> list[float]:
    result = []
    for seed in cells.seeds:
        after, before = writer_times(cells, ours, seed), writer_times(base, uniform, seed)
        both = numpy.isfinite(after) & numpy.isfinite(before)
        result += quotient(before[both], after[both])
    return result


def _jobs(cells: Cells, ours: str, base: Cells, uniform: str) -> list[float]:
    quantity = "job_communication_by_bytes_s"
    return quotients(base.by_seed(quantity, uniform), cells.by_seed(quantity, ours))
