"""Figures 2 and 6: rates that packet trains estimate, compared with the rate of bulk TCP.

A modelled link is a queue and a token bucket, fed at 10 Gb/s, without cross traffic. Its rate is a random
draw from the rates of section 2.2, and the size of its bucket is our choice. TCP gets the rate of the link
less headers. Trains also run in the packet simulator (`simulated`) and between namespaces, on links with a
tenth of the rates.
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
from leeward_reproduce.rows import Reason, Row, measured_row, missing_row, reference_row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE = 10e9
"""Rate at which a virtual machine sends to its limiter, in bits per second; our choice."""
QUEUE = 4_000_000
"""Queue at the limiter, in bytes: more than any burst except the longest; our choice."""
BURSTS = (10, 20, 50)
PACKETS = (50, 100, 200, 500, 1000, 2000, 4000)
"""The grid of figure 6: numbers of bursts, and of packets per burst."""
PAYLOAD, HEADERS, TCP_PAYLOAD = 1472, 42, 1448
MB = 1e6
MACHINES = (300, 600, 940, 960, 980, 1000, 1020, 1040, 1060, 1080)
"""Rates in Mb/s of ten machines for figure 2 between namespaces; eight are typical of EC2."""
SCALE = 0.1
"""Factor on these rates, so that one busy computer can carry all the namespaces' traffic."""


@dataclass(frozen=True)
class Cloud:
    """A cloud of the paper: its limiters, and its best train."""

    bucket: int
    """Size of a limiter's bucket in bytes; our choice."""
    rate: float | None
    """Rate of every machine in Mb/s; None if machines differ."""
    packets: int
    """Packets per burst of the best train, which has ten bursts."""
    error: float
    """The paper's error of that train, in percent."""


CLOUDS = {
    "EC2": Cloud(16_000, None, 200, paper.EC2_ERROR),
    "Rackspace": Cloud(128_000, paper.RACKSPACE_RATE, 2000, paper.RACKSPACE_ERROR),
}
REAL_PACKETS = (50, 200, 1000, 2000)
"""Lengths of bursts to try between namespaces, in packets."""
REAL_RATE = 100e6
REAL_PATHS = 4


@dataclass(frozen=True)
class Rates:
    """Rates of paths in Mb/s, by trains and by TCP."""

    trains: Floats
    tcp: Floats
    seconds: float = 0.0
    """Duration of the measurement."""


@dataclass(frozen=True)
class Paths:
    """Results of figure 2 with one seed."""

    modelled: dict[str, Rates]
    simulated: Mesh


@dataclass(frozen=True)
class TrainErrors:
    """Results of figure 6 with one seed."""

    modelled: dict[str, Grid]
    simulated: dict[str, Grid]


@dataclass(frozen=True)
class Calibration:
    """Result of `leeward probe calibrate` with the limiters of one cloud."""

    errors: dict[tuple[int, int], float]
    """Error of each train (bursts, packets), in percent: the mean over paths."""
    chosen: tuple[int, int]
    """The train to use."""


def rates(seed: int) -> Paths:
    """Figure 2: all 90 paths between ten machines, on modelled links and in the packet simulator."""
    random = numpy.random.default_rng([seed, 6])
    result = {}
    for name, cloud in CLOUDS.items():
        machines = workload.ec2(random) if cloud.rate is None else [cloud.rate] * workload.MACHINES
        links = numpy.repeat(machines, workload.MACHINES - 1)
        trains = [_train_rate(10, cloud.packets, rate * MB, cloud.bucket) / MB for rate in links]
        result[name] = Rates(numpy.array(trains), _tcp(links))
    return Paths(result, simulated.mesh(seed))


def mesh() -> Rates:
    """Figure 2 between namespaces, by `leeward probe mesh`.

    Raises:
        UnableError: Namespaces are unavailable.
    """
    with network((len(MACHINES) // 2, len(MACHINES) // 2)) as testbed:
        limits = dict(zip(testbed.hosts, MACHINES, strict=True))
        for host, rate in limits.items():
            testbed.limit(host, SCALE * rate * MB)
        start = time.monotonic()
        paths = testbed.probe("mesh", "--hosts", testbed.host_list())["paths"]
        seconds = time.monotonic() - start
    by_name = {f"h{rack}-{number}": SCALE * rate for (rack, number), rate in limits.items()}
    links = numpy.array([by_name[one["from"]] for one in paths])
    return Rates(numpy.array([one["rate_bps"] / MB for one in paths]), _tcp(links), seconds)


def errors(seed: int) -> TrainErrors:
    """Figure 6, on modelled links and in the packet simulator."""
    random = numpy.random.default_rng([seed, 7])
    result = {}
    for name, cloud in CLOUDS.items():
        machines = workload.ec2(random) if cloud.rate is None else [cloud.rate]
        result[name] = {
            (bursts, packets): [_train_error(bursts, packets, rate * MB, cloud.bucket) for rate in machines]
            for bursts in BURSTS
            for packets in PACKETS
        }
    simulated_errors = {
        name: simulated.errors(seed, cloud.bucket, cloud.rate) for name, cloud in CLOUDS.items()
    }
    return TrainErrors(result, simulated_errors)


def calibrate() -> dict[str, Calibration]:
    """Figure 6 between namespaces, by `leeward probe calibrate`.

    Raises:
        UnableError: Namespaces are unavailable.
    """
    result = {}
    with network((3,)) as testbed:
        for name, cloud in CLOUDS.items():
            for host in testbed.hosts:
                testbed.limit(host, REAL_RATE, f"{cloud.bucket}B")
            grid = ("--bursts", _comma_list(BURSTS), "--packets", _comma_list(REAL_PACKETS))
            options = ("--hosts", testbed.host_list(), *grid, "--paths", str(REAL_PATHS), "--for", "5s")
            output = testbed.probe("calibrate", *options)
            means = {_train_size(one["train"]): 100 * one["error"] for one in output["trains"]}
            result[name] = Calibration(means, _train_size(output["best"]))
    return result


def _comma_list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _train_size(train: dict[str, Any]) -> tuple[int, int]:
    return train["bursts"], train["packets"]


def _tcp(links: Floats | Sequence[float]) -> Floats:
    """Rates of bulk TCP on idle links."""
    return numpy.asarray(links, dtype=float) * TCP_PAYLOAD / (PAYLOAD + HEADERS)


def _train_rate(bursts: int, packets: int, rate: float, bucket: int) -> float:
    """Rate that a train estimates on a modelled link, in bits per second."""
    train = (bursts, packets, PAYLOAD, "1ms")
    return float(_native.probe_modelled(train, LINE, rate, bucket, QUEUE)["rate_bps"])


def _train_error(bursts: int, packets: int, rate: float, bucket: int) -> float:
    return 100 * abs(_train_rate(bursts, packets, rate, bucket) / float(_tcp([rate])[0]) - 1)


_DRAW_NOTE = "rates of links are drawn from the paper's results, so this tests trains and not a cloud"
_BUCKET_NOTE = "bytes that a limiter's bucket admits pass at the rate of the wire, which raises the estimates"
_MESH_NOTE = (
    "ten hosts limited by `tc tbf` at a tenth of EC2's rates, eight of them typical, with buckets of 16 kB;"
    " one train on each path"
)
_TCP_NOTE = f"{REAL_PATHS} paths of 100 Mbit/s, each compared with 5 s of TCP"
_CHOSEN = Reason(
    "the length that a train needs follows from the bucket of the limiter, which is not known of the paper's"
    " clouds",
    "trains behind both buckets, in the rows above",
)


def rows_rates(outcomes: Sequence[Paths], real: Rates | UnableError) -> list[Row]:
    """Rows of figure 2."""

    def row_of(name: str, quantity: str, unit: str, value: Any, paper_value: float | None, note: str) -> Row:
        values = [float(value(one.modelled[name].trains)) for one in outcomes]
        return measured_row("2", f"{name}: {quantity}", unit, values, paper_value, note)

    note = f"{_DRAW_NOTE}; {_BUCKET_NOTE}"
    typical = "paths that trains estimate at {} Mb/s"
    result = [
        row_of("EC2", typical.format("900 to 1,100"), "%", _within(900, 1100), paper.EC2_TYPICAL, note),
        row_of("EC2", "rate by trains, mean", "Mb/s", numpy.mean, paper.EC2_MEAN, note),
        row_of("EC2", "rate by trains, median", "Mb/s", numpy.median, paper.EC2_MEDIAN, note),
        row_of("Rackspace", "rate by trains, mean", "Mb/s", numpy.mean, paper.RACKSPACE_RATE, note),
        row_of("Rackspace", typical.format("285 to 315"), "%", _within(285, 315), 100.0, note),
    ]
    for name in CLOUDS:
        deviations = [float(_deviation(one.modelled[name]).mean()) for one in outcomes]
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
            "2", "between namespaces: paths at 90 to 110 Mb/s", "%", [near], paper.EC2_TYPICAL, _MESH_NOTE
        ),
        measured_row(
            "2",
            "between namespaces: error of trains against TCP, mean",
            "%",
            [_deviation(real).mean()],
            None,
            _MESH_NOTE,
        ),
        reference_row(
            "2",
            f"between namespaces: time of {count} paths",
            "s",
            [real.seconds],
            paper.MESH_S,
            "not compared: the paper's is a bound, with the setup of servers; here, five trains run at once",
        ),
    ]


def _within(least: float, most: float) -> Any:
    """Returns a function that computes the percentage of rates within a range."""
    return lambda rates: 100 * float(((least <= rates) & (rates <= most)).mean())


def _deviation(results: Rates) -> Floats:
    return 100 * numpy.abs(results.trains / results.tcp - 1)


def rows_errors(outcomes: Sequence[TrainErrors], real: dict[str, Calibration] | UnableError) -> list[Row]:
    """Rows of figure 6: errors of the trains that the paper names, and of longer bursts."""
    result: list[Row] = []
    for name, cloud in CLOUDS.items():
        note = (
            f"known links with buckets of {cloud.bucket // 1000} kB and no cross traffic; the paper's"
            " limiters are not known, and its error includes changes of TCP's rate over time"
        )
        for train in dict.fromkeys([(10, 200), (10, cloud.packets), (50, 4000)]):
            values = [float(numpy.mean(one.modelled[name][train])) for one in outcomes]
            paper_value = cloud.error if train == (10, cloud.packets) else None
            result.append(
                measured_row(
                    "6",
                    f"{name}: error of trains of {_train_text(train)}",
                    "%",
                    values,
                    paper_value,
                    note,
                    simulated.KNOWN,
                )
            )
    for name, cloud in CLOUDS.items():
        grids = [one.simulated[name] for one in outcomes]
        result += simulated.rows_errors(grids, name, cloud.bucket, (10, cloud.packets), cloud.error)
    if isinstance(real, UnableError):
        return [*result, missing_row("6", "between namespaces: error of trains", "%", None, str(real))]
    for name, one in real.items():
        cloud, label = CLOUDS[name], f"between namespaces, bucket of {CLOUDS[name].bucket // 1000} kB"
        note = f"{_TCP_NOTE}; the paper's value is for {name}, whose limiters and cross traffic are not known"
        for train, error in one.errors.items():
            paper_value = cloud.error if train == (10, cloud.packets) else None
            result.append(
                measured_row(
                    "6",
                    f"{label}: error of trains of {_train_text(train)}",
                    "%",
                    [error],
                    paper_value,
                    note,
                    simulated.KNOWN,
                )
            )
        choice_note = f"{note}; the cheapest train whose error is within two points of the best"
        chosen_packets, paper_value = one.chosen[0] * one.chosen[1], 10 * cloud.packets
        result.append(
            measured_row(
                "6",
                f"{label}: packets of the train to use",
                "packets",
                [chosen_packets],
                paper_value,
                choice_note,
                _CHOSEN,
            )
        )
    return result


def _train_text(train: tuple[int, int]) -> str:
    return f"{train[0]} x {train[1]}"


def draw_rates(outcomes: Sequence[Paths], real: Rates | UnableError) -> "Figure":
    """Figure 2: the distribution of rates over paths."""
    from matplotlib import pyplot

    panel_rates = {
        name: (
            numpy.concatenate([one.modelled[name].trains for one in outcomes]),
            numpy.concatenate([one.modelled[name].tcp for one in outcomes]),
        )
        for name in CLOUDS
    }
    if isinstance(real, Rates):
        panel_rates["between namespaces"] = real.trains, real.tcp
    else:
        panel_rates[simulated.SIMULATED] = (
            numpy.concatenate([one.simulated.trains for one in outcomes]),
            numpy.concatenate([one.simulated.tcp for one in outcomes]),
        )
    figure, panels = pyplot.subplots(
        1, len(panel_rates), figsize=(9.6, 3.2), sharey=True, layout="constrained"
    )
    for axes, (name, (trains, tcp)) in zip(panels, panel_rates.items(), strict=True):
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

    figure, panels = pyplot.subplots(1, len(CLOUDS), figsize=(9.6, 3.4), sharey=True, layout="constrained")
    for axes, (name, cloud) in zip(panels, CLOUDS.items(), strict=True):
        for bursts, line in zip(BURSTS, ("-", "--", ":"), strict=True):
            means = [
                numpy.mean([value for one in outcomes for value in one.modelled[name][bursts, packets]])
                for packets in PACKETS
            ]
            axes.plot(PACKETS, means, line, color=COLOURS["choreo"], label=f"{bursts} bursts")
        if isinstance(real, UnableError):
            grids = [one.simulated[name] for one in outcomes]
            errors_of = {train: float(numpy.mean([grid[train] for grid in grids])) for train in grids[0]}
            where = simulated.SIMULATED
        else:
            errors_of, where = real[name].errors, "between namespaces"
        packet_counts = [packets for _, packets in errors_of]
        axes.plot(
            packet_counts,
            list(errors_of.values()),
            "o",
            color=OTHER,
            markersize=4,
            label=f"{where}, the same",
        )
        axes.plot([cloud.packets], [cloud.error], "x", color="#111111", label="the paper, 10 bursts")
        axes.set_xscale("log")
        plain(axes.xaxis, PACKETS)
        axes.set_ylim(0, 55)
        axes.set_xlabel(f"{name}, buckets of {cloud.bucket // 1000} kB: packets of a burst")
    panels[0].set_ylabel("error, %")
    panels[0].legend()
    return figure
