"""Figures 7 and 8 and section 4.3, between namespaces: real packets, limits by `tc`, and no other traffic.

These measurements show that the tools work, and their errors. They say nothing about clouds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from leeward._arrays import Floats
from leeward.report.style import COLOURS, LINES
from leeward_reproduce.choreo import paper
from leeward_reproduce.choreo.namespaces import Network, Place, UnableError, address, network
from leeward_reproduce.rows import Reason, Row, measured_row, missing_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST, MOST = 60e6, 110e6
"""Range of the limits of hosts, in bits per second: a busy machine can carry these rates."""
EVERY_S, TIMES = 0.5, 120
"""Seconds between the trains of a path, and their number: one minute in all. The paper has TCP for half an
hour."""
LAGS_S = (1, 5, 10, 30)
"""Lags in seconds, which stand for the paper's minutes."""
PATHS = 3
PAIRS = 20
"""Number of pairs of paths of each kind (section 4.3)."""
LASTS = "2s"
"""Duration of a transfer of these pairs."""
_ALONE = "limits by `tc tbf`, and nobody else there"


@dataclass(frozen=True)
class PathStability:
    """Repeated measurements of a path."""

    rates: Floats
    """Rates in bits per second, one for each train."""
    lags: list[dict[str, Any]]
    """Errors as shares for each lag, from `leeward probe steady`."""


@dataclass(frozen=True)
class PathLengths:
    """All paths of a network."""

    hops: Floats
    rates: Floats
    """Rates in Mb/s."""


@dataclass(frozen=True)
class InterferenceResult:
    """Result of `leeward probe bottlenecks` on a network."""

    four: float
    """Percent of pairs of paths between four hosts that take rate from each other."""
    one: float
    """Percent of pairs of paths from one source that take rate from each other."""
    sum: float
    """Sum of the rates of two paths from one source, in percent of the rate of one path alone."""
    kind: str


def stability() -> list[PathStability]:
    """Figure 7: several paths, one after the other.

    Raises:
        UnableError: Namespaces are unavailable; or trains failed, so the rates have unequal intervals.
    """
    with network((2, 2)) as testbed:
        _hose(testbed)
        lags = ",".join(f"{lag}s" for lag in LAGS_S)
        times = ("--every", f"{round(1000 * EVERY_S)}ms", "--times", str(TIMES), "--lags", lags)
        pairs = [(testbed.hosts[at], testbed.hosts[(at + 2) % 4]) for at in range(PATHS)]
        paths = [testbed.probe("steady", *map(address, pair), *times) for pair in pairs]
    return [
        PathStability(numpy.array([one["rate_bps"] for one in path["samples"]]), path["lags"])
        for path in paths
    ]


def lengths() -> PathLengths:
    """Figure 8: hops and rates of all paths of a hose, in four racks under two pods.

    Raises:
        UnableError: Namespaces are unavailable.
    """
    with network((2, 2), (2, 2)) as testbed:
        _hose(testbed)
        mesh = testbed.probe("mesh", "--hosts", testbed.host_list(), "--hops")
    names = [host["name"] for host in mesh["hosts"]]
    hops = mesh["topology"]["hops"]
    pairs = [
        (hops[names.index(one["from"])][names.index(one["to"])], one["rate_bps"] / 1e6)
        for one in mesh["paths"]
    ]
    counted = numpy.array([one for one in pairs if one[0] is not None], dtype=float)
    return PathLengths(counted[:, 0], counted[:, 1])


def protocol() -> dict[str, InterferenceResult]:
    """Section 4.3: interference between paths of four hosts, and between paths from one source.

    One network is a hose, as the paper's clouds are. The other one has pipes, unlike any of these clouds.

    Raises:
        UnableError: Namespaces are unavailable.
    """
    result = {}
    with network((3, 3)) as testbed:
        _hose(testbed)
        result["hose"] = _recognise(testbed)
        rates = _rates(testbed.hosts)
    with network((3, 3), paths=rates) as testbed:
        result["pipes"] = _recognise(testbed)
    return result


def _recognise(testbed: Network) -> InterferenceResult:
    output = testbed.probe(
        "bottlenecks", "--hosts", testbed.host_list(), "--pairs", str(PAIRS), "--for", LASTS
    )
    four, one = (100 * output[f"{key}_share"] / len(output[key]) for key in ("between_four", "from_one"))
    return InterferenceResult(four, one, 100 * output["sum"], output["kind"])


def _rates(hosts: Sequence[Place]) -> dict[Place, float]:
    return {
        host: float(rate) for host, rate in zip(hosts, numpy.linspace(LEAST, MOST, len(hosts)), strict=True)
    }


def _hose(testbed: Network) -> None:
    for host, rate in _rates(testbed.hosts).items():
        testbed.limit(host, rate)


_STABLE = Reason(
    "these paths are stable by construction, so what differs is the error of a train and the load of this"
    " machine"
)


def rows_stability(results: list[PathStability] | UnableError) -> list[Row]:
    """Rows of figure 7."""
    words = "error of a rate {} s earlier, {}"
    if isinstance(results, UnableError):
        name, paper_value = paper.STABILITY["median"]
        return [missing_row("7", words.format(LAGS_S[0], name), "%", paper_value, str(results))]
    note = (
        f"{PATHS} paths of a hose, {TIMES} trains each, one every {EVERY_S} s; means over paths: seconds"
        f" stand for the paper's minutes and trains for its transfers of 10 s; {_ALONE}, so that what"
        " differs is this machine's"
    )
    return [
        measured_row(
            "7",
            words.format(lag, name),
            "%",
            [100 * _lag(path, lag)[key] for path in results],
            paper_value,
            note,
            _STABLE,
        )
        for lag in LAGS_S
        for key, (name, paper_value) in paper.STABILITY.items()
    ]


def _lag(path: PathStability, seconds: float) -> dict[str, Any]:
    return next(lag for lag in path.lags if lag["lag_s"] == seconds)


def rows_lengths(results: PathLengths | UnableError) -> list[Row]:
    """Rows of figure 8."""
    words = "correlation of hops and rates"
    if isinstance(results, UnableError):
        return [missing_row("8", words, "", None, str(results))]
    note = f"a hose of 60 to 110 Mbit/s, four racks in two pods; {_ALONE}"
    result = [
        measured_row(
            "8",
            f"rate of paths of {count:.0f} hops, mean",
            "Mb/s",
            [float(results.rates[results.hops == count].mean())],
            None,
            note,
        )
        for count in numpy.unique(results.hops)
    ]
    label = f"the paper shows a picture and says that there is little correlation; {note}"
    value = float(numpy.corrcoef(results.hops, results.rates)[0, 1])
    return [*result, measured_row("8", words, "", [value], None, label)]


def rows_protocol(results: dict[str, InterferenceResult] | UnableError) -> list[Row]:
    """Rows of section 4.3."""
    four = "pairs of paths between four hosts that take from each other"
    one = "pairs of paths from one source that take from each other"
    if isinstance(results, UnableError):
        return [
            missing_row("4.3", words, "%", paper_value, str(results))
            for words, paper_value in ((four, 0.0), (one, 100.0))
        ]
    result = []
    for name, interference in results.items():
        # The paper's clouds are hoses.
        paper_four, paper_one = (0.0, 100.0) if name == "hose" else (None, None)
        note = (
            f"recognised as: {interference.kind}; {PAIRS} pairs of each kind, transfers of {LASTS}, six hosts"
        )
        result += [
            measured_row("4.3", f"{name}: {four}", "%", [interference.four], paper_four, note),
            measured_row("4.3", f"{name}: {one}", "%", [interference.one], paper_one, note),
            measured_row(
                "4.3",
                f"{name}: two paths from one source, of one alone",
                "%",
                [interference.sum],
                paper_one,
                note,
            ),
        ]
    return result


def draw_stability(results: list[PathStability]) -> "Figure":
    """Figure 7: the distribution of errors, for each lag."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.4), layout="constrained")
    for lag, line in zip(LAGS_S, LINES, strict=False):
        steps = round(lag / EVERY_S)
        deviations = [100 * numpy.abs(1 - path.rates[:-steps] / path.rates[steps:]) for path in results]
        values = numpy.sort(numpy.concatenate(deviations))
        share = 100 * numpy.arange(1, len(values) + 1) / len(values)
        axes.plot(values, share, linestyle=line, color=COLOURS["choreo"], label=f"{lag} s earlier")
    paper_values = [paper.STABILITY[key][1][1] for key in ("median", "p95")]
    axes.plot(paper_values, [50, 95], "x", color="#111111", label="the paper, minutes on EC2")
    axes.set_xlim(0, 10)
    axes.set_ylim(0, 101)
    axes.set_xlabel("error of the earlier rate, %")
    axes.set_ylabel("measurements with at most this, %")
    axes.legend(loc="lower right")
    return figure


def draw_lengths(results: PathLengths) -> "Figure":
    """Figure 8: the rate of each path by its hops."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.2), layout="constrained")
    axes.plot(results.hops, results.rates, "o", color=COLOURS["choreo"], alpha=0.5)
    axes.set_xlim(0, 9)
    axes.set_xticks([1, 2, 4, 6, 8])
    axes.set_ylim(0, 1.1 * results.rates.max())
    axes.set_xlabel("hops of the path")
    axes.set_ylabel("rate, Mb/s")
    return figure
