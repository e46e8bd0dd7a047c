"""Effect of placement on storage: figure 10 over racks after a day, and section 7.4 over machines."""

from collections.abc import Mapping

import numpy

from leeward._arrays import Floats
from leeward_reproduce.rows import Reason, Row, measured_row
from leeward_reproduce.sinbad import paper
from leeward_reproduce.sinbad.sweeps import (
    DAY,
    DAY_DOWN,
    DAY_FEW,
    DAY_TABLES,
    HOUR,
    MACHINES,
    OPT,
    REMOTE_RACKS,
    policy,
    short,
)
from leeward_reproduce.sweeps import Cells, Sweep

SWEEPS = (DAY_TABLES, DAY_DOWN, DAY, DAY_FEW, HOUR)
MACHINE_SWEEPS = (MACHINES,)
RACK_BYTES = 20 * 3e12
"""Bytes that the disks of a rack hold; our choice, because the paper gives no capacity for its simulation."""
MACHINE_BYTES = 4 * 400e9
_FIRST = Reason(
    "first copies, which sinbad does not place, are most of the deviation",
    "first copies and other copies apart, under seed 1",
)
_FAR = 1.5
"""Multiple of the mean above which a rack has far too much; the paper gives no number."""


def by_rack(cells: Cells, policy: str, seed: int, column: str) -> Floats:
    """Bytes or blocks of each rack at the end of a run."""
    hosts = cells.table("hosts", policy, seed)
    racks = hosts["rack"].dictionary_encode().combine_chunks()
    amounts = hosts[column].to_numpy().astype(numpy.float64)
    return numpy.bincount(racks.indices.to_numpy(), amounts, len(racks.dictionary)).astype(numpy.float64)


def rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Figure 10."""
    day, tables, result = results[DAY], results[DAY_TABLES], []
    mean = by_rack(tables, policy("uniform", 1), 1, "bytes").mean()
    for remote, name in ((1, "uniform"), (1, OPT), (1, "leeward"), (2, "uniform"), (2, OPT)):
        ours = policy(name, remote)
        cells = day if ours in DAY.policies else results[DAY_FEW]
        cv = cells.figures("rack_storage_cv", ours)
        label = f"Cv of bytes by rack after a day, {short(name)}, {remote} remote"
        note = f"{len(cv)} seed{'s' * (len(cv) != 1)}" if cells is not day else ""
        result.append(measured_row("10", label, "", cv, None, note))
        shares = [100 * one * mean / RACK_BYTES for one in cv]
        label = f"standard deviation of bytes by rack after a day, {short(name)}, {remote} remote"
        note = "of a rack's 60 TB, which are ours; bytes a rack as under seed 1"
        result.append(measured_row("10", label, "% of capacity", shares, None, note))
    for cells, where in ((tables, ""), (results[DAY_DOWN], ", with 4 % of racks down in the trace")):
        for name in ("uniform", OPT, "leeward"):
            stored = by_rack(cells, policy(name, 1), 1, "bytes")
            far = 100 * float((stored > _FAR * stored.mean()).mean())
            paper_value = (0.0, paper.FAR_TOO_MUCH) if name == OPT and where else None
            note = "in the paper, the racks that were down most of the time" if paper_value else ""
            label = (
                f"racks with over {_FAR} times the mean after a day{where}, {short(name)}, 1 remote, seed 1"
            )
            result.append(measured_row("10", label, "%", [far], paper_value, note))
    hour = results[HOUR]
    for remote in REMOTE_RACKS:
        for name in ("uniform", "sinbad", OPT, "leeward"):
            for quantity, tier in (("rack_storage_cv", "rack"), ("host_storage_cv", "machine")):
                cv = hour.figures(quantity, policy(name, remote))
                result.append(
                    measured_row(
                        "10", f"Cv of bytes by {tier} after an hour, {short(name)}, {remote} remote", "", cv
                    )
                )
    return result


def machine_rows(results: Mapping[Sweep, Cells]) -> list[Row]:
    """Section 7.4 on machines."""
    machines, result = results[MACHINES], []
    deviation: dict[str, list[float]] = {}
    for name in machines.sweep.policies:
        stored = [machines.table("hosts", name, seed)["bytes"].to_numpy() for seed in machines.seeds]
        deviation[name] = [float(one.std()) for one in stored]
        if name == "uniform":
            total = [float(one.sum()) / 1e12 for one in stored]
            note = "set so on average, before the last, long job is cut off"
            result.append(measured_row("7.4", "stored in an hour", "TB", total, paper.STORAGE_TB, note))
        label = f"standard deviation of bytes by machine after an hour, {name}"
        values = [one / 1e9 for one in deviation[name]]
        result.append(measured_row("7.4", label, "GB", values, paper.STORAGE_GB.get(name), reason=_FIRST))
    for name in ("sinbad", "leeward"):
        pairs = zip(deviation[name], deviation["uniform"], strict=True)
        grown = [100 * (ours - base) / MACHINE_BYTES for ours, base in pairs]
        paper_value = paper.STORAGE_SHARE if name == "sinbad" else None
        label = f"growth of that deviation: {name} - uniform"
        note = "10 % is tolerable" if paper_value else ""
        result.append(measured_row("7.4", label, "% of capacity", grown, paper_value, note, _FIRST))
    return result
