"""Figures 2 and 6: what trains say of links that are known, and of links between namespaces.

The links that are known are token buckets behind a queue, fed at 10 Gb/s, and nothing else: no clouds. Their
rates are those of section 2.2; what their buckets hold is ours, and is said. Bulk TCP is the rate of the link
less headers. Between namespaces both are real, and slower.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from leeward import _native
from leeward.report.style import COLOURS
from leeward.reproduce.choreo import paper, world
from leeward.reproduce.choreo.namespaces import UnableError, network
from leeward.reproduce.rows import Row, measured, missing, reference

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE = 10e9
"""What a virtual machine's sender gives to the limiter, in bits per second. Ours."""
QUEUE = 4_000_000
"""What waits at the limiter, in bytes: more than any burst but the longest. Ours."""
BURSTS = (10, 20, 50)
PACKETS = (50, 100, 200, 500, 1000, 2000, 4000)
"""The grid of figure 6."""
PAYLOAD, HEADERS, TCP_PAYLOAD = 1472, 42, 1448
SMALL, LARGE = (16_000, "16kb"), (128_000, "128kb")
"""Buckets, in bytes and as `tc` reads them."""
KINDS = {"EC2": (SMALL, None), "Rackspace": (LARGE, 300.0)}
"""Bucket, and the one rate in Mb/s of all machines; none if they differ."""
REAL = (50, 200, 1000, 2000)
"""Packets of bursts that are tried between namespaces."""
REAL_RATE = "100mbit"

Grid = dict[tuple[int, int], float]
"""The mean error of each train, by K and B."""


@dataclass(frozen=True)
class Calibrated:
    """Figure 6 under one seed."""

    known: dict[str, Grid]
    """By the kind of network."""
    real: dict[str, Grid] | str | None
    """By the bucket, between namespaces, or why there are none; None where they are not tried."""


def rates(seed: int) -> dict[str, list[float]]:
    """Figure 2: what trains say of all 90 paths between ten machines, in Mb/s."""
    random = numpy.random.default_rng([seed, 6])
    made = {}
    for kind, ((bucket, _), flat) in KINDS.items():
        machines = world.ec2(random) if flat is None else [flat] * world.MACHINES
        paths = [rate for rate in machines for _ in range(world.MACHINES - 1)]
        # Rackspace takes the longer train, as in the paper.
        packets = 200 if flat is None else 2000
        made[kind] = [_train(10, packets, rate * 1e6, bucket) / 1e6 for rate in paths]
    return made


def rows_rates(outcomes: Sequence[dict[str, list[float]]]) -> list[Row]:
    """Rows of figure 2."""

    def share(kind: str, least: float, most: float) -> list[float]:
        paths = [numpy.array(one[kind]) for one in outcomes]
        return [100 * float(((least <= one) & (one <= most)).mean()) for one in paths]

    drawn = "rates are drawn as the paper reports them, so that this tests the trains and not the network"
    over = "trains are too fast by what the bucket lets pass, so that more of them are over 1,100"
    words = "{}: paths that trains put at {} Mb/s"
    return [
        reference(
            "2", words.format("EC2", "900 to 1,100"), "%", share("EC2", 900, 1100), 80.0, f"{drawn}; {over}"
        ),
        reference("2", words.format("EC2", "over 1,100"), "%", share("EC2", 1100, 1e9), None, ""),
        reference(
            "2", words.format("Rackspace", "285 to 315"), "%", share("Rackspace", 285, 315), 100.0, drawn
        ),
    ]


def calibrated(seed: int) -> Calibrated:
    """Figure 6, on links that are known; under the first seed between namespaces too."""
    random = numpy.random.default_rng([seed, 7])
    known: dict[str, Grid] = {}
    for kind, ((bucket, _), flat) in KINDS.items():
        machines = world.ec2(random) if flat is None else [flat]
        known[kind] = {
            (bursts, packets): float(
                numpy.mean([_error(bursts, packets, rate * 1e6, bucket) for rate in machines])
            )
            for bursts in BURSTS
            for packets in PACKETS
        }
    return Calibrated(known, _between() if seed == 1 else None)


def _between() -> dict[str, Grid] | str:
    try:
        with network(2) as built:
            made: dict[str, Grid] = {}
            for _, bucket in (SMALL, LARGE):
                built.limit((0, 0), REAL_RATE, bucket)
                numbers = ",".join(map(str, REAL))
                grid = ("--bursts", "10", "--packets", numbers, "--paths", "1", "--for", "5s")
                said = built.ask("calibrate", "--hosts", built.given(), *grid)
                trains = [(one["train"], 100 * one["error"]) for one in said["trains"]]
                made[bucket] = {(train["bursts"], train["packets"]): error for train, error in trains}
            return made
    except UnableError as error:
        return str(error)


def _train(bursts: int, packets: int, rate: float, bucket: int) -> float:
    train = (bursts, packets, PAYLOAD, "1ms")
    return float(_native.probe_modelled(train, LINE, rate, bucket, QUEUE)["rate_bps"])


def _error(bursts: int, packets: int, rate: float, bucket: int) -> float:
    bulk = rate * TCP_PAYLOAD / (PAYLOAD + HEADERS)
    return 100 * abs(_train(bursts, packets, rate, bucket) / bulk - 1)


def rows_calibrated(outcomes: Sequence[Calibrated]) -> list[Row]:
    """Rows of figure 6: the trains that the paper names, and how much longer bursts help."""
    made: list[Row] = []
    bucket = {
        kind: f"links that are known, with a bucket of {size} bytes" for kind, ((size, _), _) in KINDS.items()
    }
    asked = {"EC2": ((10, 200), paper.EC2_ERROR), "Rackspace": ((10, 2000), paper.RACKSPACE_ERROR)}
    for kind, (train, known) in asked.items():
        for bursts, packets in dict.fromkeys([(10, 200), train, (50, 4000)]):
            values = [one.known[kind][bursts, packets] for one in outcomes]
            said = f"{kind}: error of trains of {bursts} x {packets}"
            value = known if (bursts, packets) == train else None
            made.append(reference("6", said, "%", values, value, bucket[kind]))
    for one in outcomes:
        if one.real is None:
            continue
        if isinstance(one.real, str):
            made.append(missing("6", "between namespaces: error of trains", "%", None, one.real))
            continue
        for size, grid in one.real.items():
            for (bursts, packets), error in grid.items():
                said = f"between namespaces, bucket {size}: error of trains of {bursts} x {packets}"
                note = (
                    f"one train and one transfer of TCP over 5 s, at {REAL_RATE}; measured once, not by seed"
                )
                made.append(measured("6", said, "%", [error], None, note))
    return made


def draw_rates(outcomes: Sequence[dict[str, list[float]]]) -> "Figure":
    """Figure 2: the distribution of rates over paths."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(KINDS), figsize=(8.6, 3.2), sharey=True, layout="constrained")
    for axes, kind in zip(panels, KINDS, strict=True):
        values = numpy.sort(numpy.concatenate([one[kind] for one in outcomes]))
        axes.plot(values, numpy.arange(1, len(values) + 1) / len(values), color=COLOURS["choreo"])
        axes.set_xlim(200, 1200)
        axes.set_xlabel(f"{kind}: rate that trains say, Mb/s")
    panels[0].set_ylabel("paths with at most this")
    return figure


def draw_calibrated(outcomes: Sequence[Calibrated]) -> "Figure":
    """Figure 6: the error of trains by the packets of a burst."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(KINDS), figsize=(8.6, 3.2), sharey=True, layout="constrained")
    lines: Any = zip(BURSTS, ("-", "--", ":"), strict=True)
    for bursts, line in lines:
        for axes, kind in zip(panels, KINDS, strict=True):
            errors = [
                numpy.mean([one.known[kind][bursts, packets] for one in outcomes]) for packets in PACKETS
            ]
            axes.plot(PACKETS, errors, line, color=COLOURS["choreo"], marker="o", label=f"{bursts} bursts")
            axes.set_xscale("log")
            axes.set_xlabel(f"{kind}: packets of a burst")
    panels[0].set_ylabel("error, %")
    panels[0].legend(fontsize=8)
    return figure
