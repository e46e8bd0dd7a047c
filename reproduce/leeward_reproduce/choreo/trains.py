"""Figures 2 and 6: estimates of trains on known links, in the packet simulator and between namespaces.

The links that are known are token buckets behind a queue, fed at 10 Gb/s, and nothing else: no clouds. Their
rates are those of section 2.2; what their buckets hold is ours, and is said. Bulk TCP is the rate of the link
less headers. Between namespaces both are real, and links a tenth as fast.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from leeward import _native
from leeward._arrays import Floats
from leeward.report.style import COLOURS, OTHER, plain
from leeward_reproduce.choreo import paper, simulated, workload
from leeward_reproduce.choreo.namespaces import UnableError, network
from leeward_reproduce.choreo.simulated import Grid, Mesh
from leeward_reproduce.rows import Row, measured_row, missing_row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE = 10e9
"""Rate of a virtual machine's sender at the limiter, in bits per second. Ours."""
QUEUE = 4_000_000
"""Queue at the limiter, in bytes: more than any burst except the longest. Ours."""
BURSTS = (10, 20, 50)
PACKETS = (50, 100, 200, 500, 1000, 2000, 4000)
"""The grid of figure 6."""
PAYLOAD, HEADERS, TCP_PAYLOAD = 1472, 42, 1448
MB = 1e6
MACHINES = (300, 600, 940, 960, 980, 1000, 1020, 1040, 1060, 1080)
"""Rates in Mb/s of figure 2 between namespaces: ten machines of which eight are typical of EC2."""
TENTH = 0.1
"""Rates between namespaces that a busy machine can carry."""


@dataclass(frozen=True)
class Kind:
    """A cloud of the paper: its limiters, and its best train."""

    bucket: int
    """Size of a limiter's bucket in bytes. Ours."""
    rate: float | None
    """The one rate of all machines in Mb/s; None if they differ."""
    packets: int
    """Packets of a burst, in trains of ten."""
    error: float
    """Error of that train, in percent."""


KINDS = {
    "EC2": Kind(16_000, None, 200, paper.EC2_ERROR),
    "Rackspace": Kind(128_000, paper.RACKSPACE_RATE, 2000, paper.RACKSPACE_ERROR),
}
REAL_PACKETS = (50, 200, 1000, 2000)
"""Lengths of bursts to try between namespaces."""
REAL_RATE = 100e6
REAL_PATHS = 4


@dataclass(frozen=True)
class Rates:
    """Estimates of trains on paths, and rates of TCP there, in Mb/s."""

    trains: Floats
    tcp: Floats
    seconds: float = 0.0
    """Time of the measurement."""


@dataclass(frozen=True)
class Paths:
    """Figure 2 under a seed."""

    known: dict[str, Rates]
    simulated: Mesh


@dataclass(frozen=True)
class TrainErrors:
    """Figure 6 under a seed."""

    known: dict[str, Grid]
    simulated: dict[str, Grid]


@dataclass(frozen=True)
class Calibration:
    """Result of `leeward probe calibrate` on a kind of network."""

    errors: dict[tuple[int, int], float]
    """Mean over paths, in percent."""
    chosen: tuple[int, int]


def rates(seed: int) -> Paths:
    """Figure 2: all 90 paths between ten machines, on known links and in the packet simulator."""
    random = numpy.random.default_rng([seed, 6])
    result = {}
    for name, kind in KINDS.items():
        machines = workload.ec2(random) if kind.rate is None else [kind.rate] * workload.MACHINES
        links = numpy.repeat(machines, workload.MACHINES - 1)
        trains = [_train(10, kind.packets, rate * MB, kind.bucket) / MB for rate in links]
        result[name] = Rates(numpy.array(trains), _tcp(links))
    return Paths(result, simulated.mesh(seed))


def mesh() -> Rates:
    """The same between namespaces, a tenth as fast, by `leeward probe mesh`.

    Raises:
        UnableError: Namespaces are unavailable.
    """
    with network((len(MACHINES) // 2, len(MACHINES) // 2)) as testbed:
        limits = dict(zip(testbed.hosts, MACHINES, strict=True))
        for host, rate in limits.items():
            testbed.limit(host, TENTH * rate * MB)
        start = time.monotonic()
        paths = testbed.ask("mesh", "--hosts", testbed.host_list())["paths"]
        seconds = time.monotonic() - start
    by_name = {f"h{rack}-{number}": TENTH * rate for (rack, number), rate in limits.items()}
    links = numpy.array([by_name[one["from"]] for one in paths])
    return Rates(numpy.array([one["rate_bps"] / MB for one in paths]), _tcp(links), seconds)


def errors(seed: int) -> TrainErrors:
    """Figure 6, on known links and in the packet simulator."""
    random = numpy.random.default_rng([seed, 7])
    result = {}
    for name, kind in KINDS.items():
        machines = workload.ec2(random) if kind.rate is None else [kind.rate]
        result[name] = {
            (bursts, packets): [_error(bursts, packets, rate * MB, kind.bucket) for rate in machines]
            for bursts in BURSTS
            for packets in PACKETS
        }
    ours = {name: simulated.errors(seed, kind.bucket, kind.rate) for name, kind in KINDS.items()}
    return TrainErrors(result, ours)


def calibrate() -> dict[str, Calibration]:
    """Figure 6 between namespaces, by `leeward probe calibrate`.

    Raises:
        UnableError: Namespaces are unavailable.
    """
    result = {}
    with network((3,)) as testbed:
        for name, kind in KINDS.items():
            for host in testbed.hosts:
                testbed.limit(host, REAL_RATE, f"{kind.bucket}b")
            grid = ("--bursts", _comma_list(BURSTS), "--packets", _comma_list(REAL_PACKETS))
            say = ("--hosts", testbed.host_list(), *grid, "--paths", str(REAL_PATHS), "--for", "5s")
            label = testbed.ask("calibrate", *say)
            means = {_numbers(one["train"]): 100 * one["error"] for one in label["trains"]}
            result[name] = Calibration(means, _numbers(label["best"]))
    return result


def _comma_list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _numbers(train: dict[str, Any]) -> tuple[int, int]:
    return train["bursts"], train["packets"]


def _tcp(links: Floats | Sequence[float]) -> Floats:
    """Rates of bulk TCP on links."""
    return numpy.asarray(links, dtype=float) * TCP_PAYLOAD / (PAYLOAD + HEADERS)


def _train(bursts: int, packets: int, rate: float, bucket: int) -> float:
    train = (bursts, packets, PAYLOAD, "1ms")
    return float(_native.probe_modelled(train, LINE, rate, bucket, QUEUE)["rate_bps"])


def _error(bursts: int, packets: int, rate: float, bucket: int) -> float:
    return 100 * abs(_train(bursts, packets, rate, bucket) / float(_tcp([rate])[0]) - 1)


_DRAWN = "links are drawn by what the paper reports, so that this tests trains and not a cloud"
_FAST = "what a limiter's bucket holds passes at the rate of the wire, and adds to what trains say"
_TENTH = (
    "ten hosts limited by `tc tbf` at a tenth of EC2's rates, eight of them typical, with buckets of 16 kB;"
    " each path once, by one train"
)
_REAL = f"{REAL_PATHS} paths of 100 Mbit/s against 5 s of TCP each"


def rows_rates(outcomes: Sequence[Paths], real: Rates | UnableError) -> list[Row]:
    """Rows of figure 2."""

    def rows_of(name: str, words: str, unit: str, value: Any, paper_value: float | None, note: str) -> Row:
        values = [float(value(one.known[name].trains)) for one in outcomes]
        return measured_row("2", f"{name}: {words}", unit, values, paper_value, note)

    note = f"{_DRAWN}; {_FAST}"
    typical = "paths that trains put at {} Mb/s"
    result = [
        rows_of("EC2", typical.format("900 to 1,100"), "%", _within(900, 1100), paper.EC2_TYPICAL, note),
        rows_of("EC2", "rate that trains say, mean", "Mb/s", numpy.mean, paper.EC2_MEAN, note),
        rows_of("EC2", "rate that trains say, median", "Mb/s", numpy.median, paper.EC2_MEDIAN, note),
        rows_of("Rackspace", "rate that trains say, mean", "Mb/s", numpy.mean, paper.RACKSPACE_RATE, note),
        rows_of("Rackspace", typical.format("285 to 315"), "%", _within(285, 315), 100.0, note),
    ]
    for name in KINDS:
        deviations = [float(_deviation(one.known[name]).mean()) for one in outcomes]
        result.append(
            measured_row("2", f"{name}: error of trains against TCP, mean", "%", deviations, None, note)
        )
    result += simulated.rows_rates([one.simulated for one in outcomes])
    if isinstance(real, UnableError):
        return [*result, missing_row("2", "between namespaces: error of trains", "%", None, str(real))]
    count = len(real.trains)
    near = _within(90, 110)(real.trains)
    return [
        *result,
        measured_row(
            "2", "between namespaces: paths at 90 to 110 Mb/s", "%", [near], paper.EC2_TYPICAL, _TENTH
        ),
        measured_row(
            "2",
            "between namespaces: error of trains against TCP, mean",
            "%",
            [_deviation(real).mean()],
            None,
            _TENTH,
        ),
        measured_row(
            "2",
            f"between namespaces: time of {count} paths",
            "s",
            [real.seconds],
            paper.MESH_S,
            "the paper says less than three minutes, with setting up servers; five trains at a time here",
        ),
    ]


def _within(least: float, most: float) -> Any:
    return lambda rates: 100 * float(((least <= rates) & (rates <= most)).mean())


def _deviation(results: Rates) -> Floats:
    return 100 * numpy.abs(results.trains / results.tcp - 1)


def rows_errors(outcomes: Sequence[TrainErrors], real: dict[str, Calibration] | UnableError) -> list[Row]:
    """Rows of figure 6: the trains that the paper names, and the gain of longer bursts."""
    result: list[Row] = []
    for name, kind in KINDS.items():
        note = (
            f"links that are known, with buckets of {kind.bucket // 1000} kB and nobody else there; the"
            " paper's limiters are not known, and its error is TCP's from one time to the next too"
        )
        for train in dict.fromkeys([(10, 200), (10, kind.packets), (50, 4000)]):
            values = [float(numpy.mean(one.known[name][train])) for one in outcomes]
            paper_value = kind.error if train == (10, kind.packets) else None
            result.append(
                measured_row(
                    "6", f"{name}: error of trains of {_words(train)}", "%", values, paper_value, note
                )
            )
    for name, kind in KINDS.items():
        grids = [one.simulated[name] for one in outcomes]
        result += simulated.rows_errors(grids, name, kind.bucket, (10, kind.packets), kind.error)
    if isinstance(real, UnableError):
        return [*result, missing_row("6", "between namespaces: error of trains", "%", None, str(real))]
    for name, one in real.items():
        kind, label = KINDS[name], f"between namespaces, bucket of {KINDS[name].bucket // 1000} kB"
        note = f"{_REAL}; beside the paper's of {name}, whose limiters and other users are not known"
        for train, error in one.errors.items():
            paper_value = kind.error if train == (10, kind.packets) else None
            result.append(
                measured_row(
                    "6", f"{label}: error of trains of {_words(train)}", "%", [error], paper_value, note
                )
            )
        why = f"{note}; chosen is the cheapest within two points of the best"
        selection, paper_value = one.chosen[0] * one.chosen[1], 10 * kind.packets
        result.append(
            measured_row(
                "6", f"{label}: packets of the train to use", "packets", [selection], paper_value, why
            )
        )
    return result


def _words(train: tuple[int, int]) -> str:
    return f"{train[0]} x {train[1]}"


def draw_rates(outcomes: Sequence[Paths], real: Rates | UnableError) -> "Figure":
    """Figure 2: the distribution of rates over paths."""
    from matplotlib import pyplot

    visible = {
        name: (
            numpy.concatenate([one.known[name].trains for one in outcomes]),
            numpy.concatenate([one.known[name].tcp for one in outcomes]),
        )
        for name in KINDS
    }
    if isinstance(real, Rates):
        visible["between namespaces"] = real.trains, real.tcp
    else:
        visible[simulated.SIMULATED] = (
            numpy.concatenate([one.simulated.trains for one in outcomes]),
            numpy.concatenate([one.simulated.tcp for one in outcomes]),
        )
    figure, panels = pyplot.subplots(1, len(visible), figsize=(9.6, 3.2), sharey=True, layout="constrained")
    for axes, (name, (trains, tcp)) in zip(panels, visible.items(), strict=True):
        _distribution(axes, tcp, "TCP", {"color": OTHER, "linestyle": "--"})
        _distribution(axes, trains, "trains", {"color": COLOURS["choreo"]})
        axes.set_xlim(0, 1.15 * max(trains.max(), tcp.max()))
        axes.set_xlabel(f"{name}: rate, Mb/s")
    panels[0].set_ylabel("paths with at most this, %")
    panels[0].legend(loc="upper left")
    return figure


def _distribution(axes: "Axes", values: Floats, label: str, style: dict[str, Any]) -> None:
    share = 100 * numpy.arange(1, len(values) + 1) / len(values)
    axes.step(numpy.sort(values), share, where="post", label=label, **style)


def draw_errors(outcomes: Sequence[TrainErrors], real: dict[str, Calibration] | UnableError) -> "Figure":
    """Figure 6: the error of trains by the packets of a burst."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(KINDS), figsize=(9.6, 3.4), sharey=True, layout="constrained")
    for axes, (name, kind) in zip(panels, KINDS.items(), strict=True):
        for bursts, line in zip(BURSTS, ("-", "--", ":"), strict=True):
            means = [
                numpy.mean([value for one in outcomes for value in one.known[name][bursts, packets]])
                for packets in PACKETS
            ]
            axes.plot(PACKETS, means, line, color=COLOURS["choreo"], label=f"{bursts} bursts")
        if isinstance(real, UnableError):
            grids = [one.simulated[name] for one in outcomes]
            label = {train: float(numpy.mean([grid[train] for grid in grids])) for train in grids[0]}
            where = simulated.SIMULATED
        else:
            label, where = real[name].errors, "between namespaces"
        across, deviations = [packets for _, packets in label], list(label.values())
        axes.plot(across, deviations, "o", color=OTHER, markersize=4, label=f"{where}, the same")
        axes.plot([kind.packets], [kind.error], "x", color="#111111", label="the paper, 10 bursts")
        axes.set_xscale("log")
        plain(axes.xaxis, PACKETS)
        axes.set_ylim(0, 55)
        axes.set_xlabel(f"{name}, buckets of {kind.bucket // 1000} kB: packets of a burst")
    panels[0].set_ylabel("error, %")
    panels[0].legend()
    return figure
