"""Figures 7 and 8 and section 4.3, between namespaces: real packets, limits by `tc`, and nobody else there.

They are measured once, under the first seed: what differs from one time to the next is this machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from leeward.reproduce.choreo import paper
from leeward.reproduce.choreo.namespaces import UnableError, network
from leeward.reproduce.rows import Row, missing, reference

RATES = (60, 70, 80, 90, 100, 110)
"""What hosts may send, in Mbit/s: a hose, and what a busy machine can still carry."""
EVERY, TIMES = "500ms", 60
LAGS = ("1s", "5s", "10s")
PAIRS = 20
"""Of each kind (section 4.3)."""
ONCE = "measured once, not by seed; limits by `tc tbf`, and nobody else there"


@dataclass(frozen=True)
class Measured:
    """What was measured, or why it was not; nothing of either under seeds that are not tried."""

    made: Any = None
    why: str | None = None


def stability(seed: int) -> Measured:
    """Figure 7: one path, again and again."""

    def ask() -> Any:
        with network(2) as built:
            built.limit((0, 0), "100mbit")
            times = ("--every", EVERY, "--times", str(TIMES), "--lags", ",".join(LAGS))
            return built.ask("steady", "10.0.0.2", "10.0.1.2", *times)["lags"]

    return _once(seed, ask)


def lengths(seed: int) -> Measured:
    """Figure 8: hops and rates of all paths of a hose, of racks with two hosts."""

    def ask() -> Any:
        with network(2, 2, 2) as built:
            _hose(built)
            said = built.ask("mesh", "--hosts", built.given(), "--hops")
            hops = said["topology"]["hops"]
            names = [host["name"] for host in said["hosts"]]
            of = [
                (hops[names.index(one["from"])][names.index(one["to"])], one["rate_bps"])
                for one in said["paths"]
            ]
            return of, said["topology"]["racks"]

    return _once(seed, ask)


def protocol(seed: int) -> Measured:
    """Section 4.3: do paths between four hosts take from each other, and those from one source?"""

    def ask() -> Any:
        with network(3, 3) as built:
            _hose(built)
            return built.ask(
                "bottlenecks", "--hosts", built.given(), "--pairs", str(PAIRS), "--for", "1500ms"
            )

    return _once(seed, ask)


def _hose(built: Any) -> None:
    for host, rate in zip(built.hosts, RATES, strict=True):
        built.limit(host, f"{rate}mbit")


def _once(seed: int, ask: Any) -> Measured:
    if seed != 1:
        return Measured()
    try:
        return Measured(ask())
    except UnableError as error:
        return Measured(why=str(error))


def _of(outcomes: Sequence[Measured]) -> Measured:
    return next(
        (one for one in outcomes if one.made is not None or one.why), Measured(why="seed 1 was not run")
    )


def rows_stability(outcomes: Sequence[Measured]) -> list[Row]:
    """Rows of figure 7."""
    found = _of(outcomes)
    if found.made is None:
        return [
            missing("7", "error of an earlier rate, median", "%", paper.STABILITY_MEDIAN, found.why or "")
        ]
    note = f"one path of 100 Mbit/s, a train every {EVERY} for half a minute, where the paper has TCP for 30"
    made = []
    for lag in found.made:
        words = f"error of a rate {lag['lag_s']:.0f} s earlier"
        said = f"{note}; {ONCE}"
        made.append(
            reference("7", f"{words}, median", "%", [100 * lag["median"]], paper.STABILITY_MEDIAN, said)
        )
        made.append(reference("7", f"{words}, 95 %", "%", [100 * lag["p95"]], paper.STABILITY_95, said))
    return made


def rows_lengths(outcomes: Sequence[Measured]) -> list[Row]:
    """Rows of figure 8."""
    found = _of(outcomes)
    if found.made is None:
        return [missing("8", "correlation of hops and rates", "", None, found.why or "")]
    paths, racks = found.made
    hops, rates = numpy.array([one for one in paths if one[0] is not None]).T
    note = f"a hose of 60 to 110 Mbit/s in {len(racks)} racks; {ONCE}"
    made = [
        reference(
            "8",
            f"rate of paths of {count:.0f} hops, mean",
            "Mb/s",
            [rates[hops == count].mean() / 1e6],
            None,
            note,
        )
        for count in sorted(set(hops))
    ]
    said = "the paper shows a picture and says that there is little correlation"
    value = float(numpy.corrcoef(hops, rates)[0, 1])
    made.append(reference("8", "correlation of hops and rates", "", [value], None, f"{said}; {note}"))
    return made


def rows_protocol(outcomes: Sequence[Measured]) -> list[Row]:
    """Rows of section 4.3."""
    found = _of(outcomes)
    words = {"between_four": ("between four hosts", 0.0), "from_one": ("from one source", 100.0)}
    if found.made is None:
        return [
            missing("4.3", f"pairs of paths {said} that take from each other", "%", known, found.why or "")
            for said, known in words.values()
        ]
    made = []
    for key, (said, known) in words.items():
        count = len(found.made[key])
        value = 100 * found.made[f"{key}_share"] / count
        note = f"{count} pairs on a hose of 60 to 110 Mbit/s, recognised as: {found.made['kind']}; {ONCE}"
        made.append(
            reference("4.3", f"pairs of paths {said} that take from each other", "%", [value], known, note)
        )
    sums = 100 * found.made["sum"]
    made.append(reference("4.3", "sum of two paths from one source, of one alone", "%", [sums], 100.0, ONCE))
    return made
