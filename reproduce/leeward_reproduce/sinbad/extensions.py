"""Experiments beyond the paper.

The experiments are: reports that are late, lost or wrong; ten times the racks; other arrival rates on racks;
the policy `leeward`; and public traces of the same cluster in place of the generator.
"""

from collections.abc import Mapping

from leeward_reproduce.rows import Row, measured_row
from leeward_reproduce.sinbad.pairs import differences, quotients, ratios
from leeward_reproduce.sinbad.sweeps import (
    DELAYS,
    HOUR,
    LARGE,
    LOAD,
    LOSSES,
    LOSSES_SINBAD,
    NOISE,
    OPT,
    REMOTE_RACKS,
    TRACES,
    UNEVEN,
    policy,
    short,
)
from leeward_reproduce.sweeps import Cells, Sweep

REPORT_SWEEPS = (LOAD, DELAYS, LOSSES, LOSSES_SINBAD, NOISE)
LARGE_SWEEPS = (LARGE,)
LOAD_SWEEPS = (LOAD,)
LEEWARD_SWEEPS = (HOUR, UNEVEN)
TRACE_SWEEPS = (TRACES,)

_MEAN, _P95 = "full_block_write_s.mean", "full_block_write_s.p95"
_TIMES = (("full blocks, mean", _MEAN), ("full blocks, p95", _P95))
_ALL = (*_TIMES, ("all blocks, mean", "block_write_s.mean"), ("all blocks, p95", "block_write_s.p95"))


def report_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Reports that are late, lost or wrong, against `uniform`, which reads none."""
    right, result = results[LOAD], []
    for remote in REMOTE_RACKS:
        base = right.by_seed(_MEAN, policy("uniform", remote), "1")
        for name in ("sinbad", "leeward"):
            values = ratios(right, _MEAN, policy(name, remote), policy("uniform", remote), "1")
            label = f"full blocks, mean, as they should be: uniform / {name}, {remote} remote"
            result.append(measured_row("reports", label, "x", values))
        for sweep, words in (
            (DELAYS, "{} late"),
            (LOSSES, "a share of {} lost"),
            (LOSSES_SINBAD, "a share of {} lost, each taken as a full link"),
            (NOISE, "wrong by a standard deviation of {}"),
        ):
            cells = results[sweep]
            for value in sweep.values:
                for ours in (one for one in sweep.policies if f"remote_racks={remote}" in one):
                    factors = quotients(base, cells.by_seed(_MEAN, ours, value))
                    name = ours.partition(":")[0]
                    label = f"full blocks, mean, {words.format(value)}: uniform / {name}, {remote} remote"
                    result.append(measured_row("reports", label, "x", factors))
    return result


def large_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Ten times the racks, with ten times the arrivals."""
    return _by_remote("large", results[LARGE], ("sinbad", "leeward"), "uniform", _TIMES)


def load_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Arrivals at 0.5, 1 and 2 times the rate, on the racks of the simulation."""
    cells, result = results[LOAD], []
    for load in LOAD.values:
        result += _by_remote("load", cells, ("sinbad", "leeward"), "uniform", _TIMES, load)
    return result


def leeward_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """`leeward` against the others, on even and on uneven uplinks."""
    hour, uneven, result = results[HOUR], results[UNEVEN], []
    for base in ("uniform", "sinbad", OPT):
        result += _by_remote("leeward", hour, ("leeward",), base, _ALL)
    for remote in REMOTE_RACKS:
        for quantity, tier in (("rack_storage_cv", "rack"), ("host_storage_cv", "machine")):
            for base in ("uniform", "sinbad"):
                values = differences(hour, quantity, policy("leeward", remote), policy(base, remote))
                label = f"Cv of stored bytes by {tier}: {base} - leeward, {remote} remote"
                result.append(measured_row("leeward", label, "", values, None, _wins(values, 0.0)))
    for base in ("uniform", "sinbad", "ccp"):
        result += _by_remote("leeward", uneven, ("leeward",), base, _ALL)
    return result


def trace_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Public traces of the same cluster."""
    cells = results[TRACES]
    result = _by_remote("traces", cells, ("sinbad", OPT, "leeward"), "uniform", _TIMES)
    return result + _by_remote("traces", cells, ("leeward",), "sinbad", _TIMES)


def _by_remote(
    figure: str,
    cells: Cells,
    names: tuple[str, ...],
    base: str,
    quantities: tuple[tuple[str, str], ...],
    value: str | None = None,
) -> list[Row]:
    result = []
    for remote in REMOTE_RACKS:
        for name in names:
            for words, quantity in quantities:
                factors = ratios(cells, quantity, policy(name, remote), policy(base, remote), value)
                where = ", uneven uplinks" if cells.sweep == UNEVEN else ""
                where += f", {value}x the arrivals" if value else ""
                label = f"{words}{where}: {short(base)} / {short(name)}, {remote} remote"
                note = _wins(factors, 1.0) if name == "leeward" else ""
                if OPT in (name, base):
                    note = "; ".join(filter(None, [note, "sinbad-file's waiting counts, 5 s on average"]))
                result.append(measured_row(figure, label, "x", factors, None, note))
    return result


def _wins(values: list[float], even: float) -> str:
    """Note with the number of seeds under which a policy is better."""
    return f"better under {sum(value > even for value in values)} of {len(values)} seeds"
