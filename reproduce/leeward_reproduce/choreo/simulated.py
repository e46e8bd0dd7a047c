"""Figures 2, 6, 7 and 8 and section 4.3 in the packet simulator: without root, and determined by a seed.

TCP replaces netperf, and trains go through the same network; the probe's own code computes rates from the
arrivals of trains. Ten machines are in four racks at random. A path has two hops within a rack, and four
between racks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy

from leeward import _native
from leeward._arrays import Floats
from leeward_reproduce.choreo import packet_network, paper, workload
from leeward_reproduce.choreo.namespace_figures import (
    EVERY_S,
    LAGS_S,
    LASTS,
    LEAST,
    MOST,
    PAIRS,
    TIMES,
    InterferenceResult,
    PathLengths,
    PathStability,
)
from leeward_reproduce.choreo.namespace_figures import draw_lengths as draw_paths
from leeward_reproduce.choreo.namespace_figures import draw_stability as draw_steady
from leeward_reproduce.choreo.namespaces import UnableError
from leeward_reproduce.choreo.packet_network import (
    Network,
    Path,
    Place,
    Train,
    Transfer,
    estimate_rates,
    measure_transfers,
)
from leeward_reproduce.rows import Reason, Row, measured_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIMULATED = "in the packet simulator"
RACKS = 4
TRANSFER_S = 0.5
"""Length of a TCP transfer in seconds; the first tenth of it does not count. The paper's transfers take 10
s."""
SLOT_S = 0.01
"""Window in which the probe counts the arrivals of a transfer."""
APART_S = 0.2
"""Seconds between trains of 10 x 200 from one machine: each train ends before the next begins."""
PACKETS = (50, 200, 1000, 2000)
"""Lengths of bursts to try, in packets."""
BURSTS = (10, 20, 50)
PATHS = 4
"""Paths of different rates on which trains are tried."""
SEEN, OTHERS = 3, 6
"""Figure 7: number of measured paths, and number of other hosts, which are on and off."""
MEAN_S = 5.0
"""Mean of the exponential on-periods and off-periods of the other hosts, in seconds, as in figure 4."""
LINKS = {"with room above": 1e9, "with a full link above": 250e6}
"""Rates of the shared link of figure 7, in bits per second: the hosts' limits add up to 765 Mbit/s."""
HOSTS = 6
"""Hosts of section 4.3."""

Grid = dict[tuple[int, int], list[float]]
"""Errors of a train in percent, one for each path, by its number of bursts and the packets of a burst."""


@dataclass(frozen=True)
class Mesh:
    """All paths between ten machines."""

    hops: Floats
    tcp: Floats
    """Rates of TCP in Mb/s."""
    trains: Floats
    """Rates of trains in Mb/s."""


@cache
def mesh(seed: int) -> Mesh:
    """Figures 2 and 8: rates of all paths, by TCP on one path at a time, and by trains sent at once."""
    random = numpy.random.default_rng([seed, 9])
    machines = [1e6 * rate for rate in workload.ec2(random)]
    racks = [int(rack) for rack in random.integers(RACKS, size=workload.MACHINES)]
    places = [(rack, number) for number, rack in enumerate(racks)]
    network = Network(RACKS, workload.MACHINES, dict(zip(places, machines, strict=True)))
    trains = [
        Train((places[at], places[(at + step) % workload.MACHINES]), 10, 200, APART_S * (step - 1))
        for step in range(1, workload.MACHINES)
        for at in range(workload.MACHINES)
    ]
    hops = [2.0 if one.path[0][0] == one.path[1][0] else 4.0 for one in trains]
    tcp = [_tcp(network, one.path) for one in trains]
    return Mesh(numpy.array(hops), numpy.array(tcp) / 1e6, estimate_rates(network, trains) / 1e6)


def _tcp(network: Network, path: Path) -> float:
    """Rate of TCP on a path, in bits per second."""
    tenth = TRANSFER_S / 10
    (arrivals,) = measure_transfers(network, [Transfer(path)], [path], TRANSFER_S, tenth)
    return float(8 * arrivals[1:].mean() / tenth)


def errors(seed: int, bucket: int, rate: float | None) -> Grid:
    """Figure 6: trains against TCP, on a path with a rate in Mb/s; None selects paths with EC2's rates."""
    machines = workload.ec2(numpy.random.default_rng([seed, 10]))[:PATHS] if rate is None else [rate]
    path = ((0, 0), (1, 0))
    networks = [Network(2, 1, {path[0]: 1e6 * machine}, bucket) for machine in machines]
    tcp = [_tcp(network, path) for network in networks]
    return {
        (bursts, count): [
            100 * abs(float(estimate_rates(network, [Train(path, bursts, count)])[0]) / actual - 1)
            for network, actual in zip(networks, tcp, strict=True)
        ]
        for bursts in BURSTS
        for count in PACKETS
    }


def stability(seed: int) -> dict[str, list[PathStability]]:
    """Figure 7: nine hosts behind a link of each rate; three always send, and six are on and off."""
    random = numpy.random.default_rng([seed, 11])
    rates = [float(rate) for rate in numpy.linspace(LEAST, MOST, SEEN)]
    rates += [float(rate) for rate in random.uniform(LEAST, MOST, OTHERS)]
    paths = [((0, at), (at + 1, 0)) for at in range(SEEN + OTHERS)]
    limits = {path[0]: rate for path, rate in zip(paths, rates, strict=True)}
    seconds = EVERY_S * TIMES
    transfers = [Transfer(path) for path in paths[:SEEN]]
    for path in paths[SEEN:]:
        transfers += _now_and_then(random, path, limits[path[0]], seconds)
    result = {}
    for name, link in LINKS.items():
        network = Network(len(paths) + 1, len(paths), limits, link=link)
        # TCP searches for its rate in the first interval.
        arrivals = measure_transfers(network, transfers, paths[:SEEN], seconds + EVERY_S, EVERY_S)[:, 1:]
        result[name] = [_steady(8 * path / EVERY_S) for path in arrivals]
    return result


def _now_and_then(random: numpy.random.Generator, path: Path, rate: float, seconds: float) -> list[Transfer]:
    """Transfers of a host that is on and off: each as large as its limit allows while it is on."""
    result = []
    now, is_on = 0.0, bool(random.random() < 0.5)
    while now < seconds:
        lasts = float(random.exponential(MEAN_S))
        if is_on:
            result.append(Transfer(path, now, max(1, round(rate * lasts / 8))))
        now, is_on = now + lasts, not is_on
    return result


def _steady(rates: Floats) -> PathStability:
    return PathStability(rates, _native.probe_stability(list(rates), EVERY_S, [float(lag) for lag in LAGS_S]))


def lengths(seed: int) -> PathLengths:
    """Figure 8: hops and TCP's rates of all paths between ten machines."""
    results = mesh(seed)
    return PathLengths(results.hops, results.tcp)


def protocol(seed: int) -> dict[str, InterferenceResult]:
    """Section 4.3, on a hose and on pipes; the probe's own code draws the pairs and recognises the network.

    On pipes a host has an interface for each other host, so that each path has a limit of its own.
    """
    rates = numpy.linspace(LEAST, MOST, HOSTS)
    hose: dict[Place, float] = {(host, 0): float(rates[host]) for host in range(HOSTS)}
    pipes: dict[Place, float] = {
        (host, other): float(rates[host]) for host in range(HOSTS) for other in range(HOSTS) if host != other
    }
    return {
        "hose": _recognise(seed, Network(HOSTS, 1, hose), lambda a, b: ((a, 0), (b, 0))),
        "pipes": _recognise(seed, Network(HOSTS, HOSTS, pipes), lambda a, b: ((a, b), (b, a))),
    }


def _recognise(seed: int, network: Network, path_of: Any) -> InterferenceResult:
    lasts, earlier = _native.seconds(LASTS), _native.probe_earlier()

    @cache
    def alone(ends: tuple[int, int]) -> list[int]:
        path = path_of(*ends)
        (arrivals,) = measure_transfers(network, [Transfer(path)], [path], lasts, SLOT_S)
        return _slots(arrivals)

    def try_pair(pair: tuple[tuple[int, int], tuple[int, int]]) -> Any:
        one, other = (path_of(*ends) for ends in pair)
        transfers = [Transfer(one, earlier), Transfer(other)]
        beside, second = measure_transfers(network, transfers, [one, other], lasts + earlier, SLOT_S)
        return pair, alone(pair[0]), _slots(beside[round(earlier / SLOT_S) :]), _slots(second)

    pairs = _native.probe_questions(HOSTS, PAIRS, seed)
    result = _native.probe_recognised(LASTS, *([try_pair(each) for each in kind] for kind in pairs))
    four, one = (100 * result[f"{key}_share"] / result[key] for key in ("between_four", "from_one"))
    return InterferenceResult(four, one, 100 * result["sum"], result["kind"])


def _slots(arrivals: Floats) -> list[int]:
    return [int(size) for size in arrivals]


def rows_rates(results: Sequence[Mesh]) -> list[Row]:
    """Rows of figure 2."""
    note = (
        f"TCP for {TRANSFER_S:g} s on each of 90 paths between ten machines, whose limits are drawn by what"
        f" the paper reports, with buckets of {packet_network.BUCKET // 1000} kB; trains of 10 x 200"
    )

    def typical(rates: Floats) -> float:
        return 100 * float(((rates >= 900) & (rates <= 1100)).mean())

    def row(words: str, unit: str, values: Sequence[float], paper_value: float | None) -> Row:
        return measured_row("2", f"{SIMULATED}: {words}", unit, values, paper_value, note)

    deviations = [float(100 * numpy.abs(one.trains / one.tcp - 1).mean()) for one in results]
    return [
        row(
            "paths on which TCP gets 900 to 1,100 Mb/s",
            "%",
            [typical(one.tcp) for one in results],
            paper.EC2_TYPICAL,
        ),
        row("rate of TCP, mean", "Mb/s", [float(one.tcp.mean()) for one in results], paper.EC2_MEAN),
        row(
            "rate of TCP, median", "Mb/s", [float(numpy.median(one.tcp)) for one in results], paper.EC2_MEDIAN
        ),
        row("rate by trains, mean", "Mb/s", [float(one.trains.mean()) for one in results], None),
        row("error of trains against TCP, mean", "%", deviations, None),
    ]


KNOWN = Reason(
    "links are known and carry nothing else; the paper's error has changes of TCP's rate and others' traffic"
    " in it"
)
"""Reason of smaller errors than the paper's."""


def rows_errors(
    results: Sequence[Grid], cloud: str, bucket: int, train: tuple[int, int], error: float
) -> list[Row]:
    """Rows of figure 6, beside the paper's error of one train."""
    note = (
        f"rates of {cloud}, against {TRANSFER_S:g} s of TCP each, and nobody else there; beside the paper's"
        f" of {cloud}, whose limiters and other users are not known"
    )
    words = f"{SIMULATED}, bucket of {bucket // 1000} kB: error of trains of {{}} x {{}}"
    return [
        measured_row(
            "6",
            words.format(*one),
            "%",
            [float(numpy.mean(grid[one])) for grid in results],
            error if one == train else None,
            note,
            KNOWN,
        )
        for one in results[0]
    ]


_STABLE = Reason(
    "the source limits these paths, so that traffic of others takes nothing from them",
    "paths with a full link above, whose errors grow with the lag",
)


def rows_stability(results: Sequence[dict[str, list[PathStability]]]) -> list[Row]:
    """Rows of figure 7."""
    note = (
        f"{SEEN} hosts that always send and {OTHERS} that are on and off for {MEAN_S:g} s on average, behind"
        f" one link of {{}} Mbit/s; TCP in {TIMES} windows of {EVERY_S} s, which stand for the paper's"
        " transfers of 10 s and seconds for its minutes; means over paths"
    )
    result = []
    for name, link in LINKS.items():
        for lag in LAGS_S:
            for key, (name_text, paper_value) in paper.STABILITY.items():
                values = [
                    float(numpy.mean([100 * _lag(path, lag)[key] for path in one[name]])) for one in results
                ]
                words = f"{SIMULATED}, {name}: error of a rate {lag} s earlier, {name_text}"
                # The paper has no path behind a full link.
                beside = paper_value if name == next(iter(LINKS)) else None
                result.append(
                    measured_row("7", words, "%", values, beside, note.format(round(link / 1e6)), _STABLE)
                )
    return result


def _lag(path: PathStability, seconds: float) -> dict[str, Any]:
    return next(lag for lag in path.lags if lag["lag_s"] == seconds)


def draw_stability(
    outcomes: Sequence[dict[str, list[PathStability]]], results: list[PathStability] | UnableError
) -> "Figure":
    """Figure 7: paths between namespaces; without namespaces, simulated paths with room above."""
    if isinstance(results, UnableError):
        return draw_steady([path for one in outcomes for path in one[next(iter(LINKS))]])
    return draw_steady(results)


def rows_lengths(results: Sequence[PathLengths]) -> list[Row]:
    """Rows of figure 8."""
    note = f"TCP on the 90 paths of figure 2, whose ten machines are in {RACKS} racks as it comes"
    result = [
        measured_row(
            "8",
            f"{SIMULATED}: rate of paths of {hops} hops, mean",
            "Mb/s",
            [float(one.rates[one.hops == hops].mean()) for one in results],
            None,
            note,
        )
        for hops in (2, 4)
    ]
    label = f"the paper shows a picture and says that there is little correlation; {note}"
    values = [float(numpy.corrcoef(one.hops, one.rates)[0, 1]) for one in results]
    return [
        *result,
        measured_row("8", f"{SIMULATED}: correlation of hops and rates", "", values, None, label),
    ]


def draw_lengths(outcomes: Sequence[PathLengths], results: PathLengths | UnableError) -> "Figure":
    """Figure 8: paths between namespaces; without namespaces, simulated paths of the first seed."""
    return draw_paths(outcomes[0] if isinstance(results, UnableError) else results)


def rows_protocol(results: Sequence[dict[str, InterferenceResult]]) -> list[Row]:
    """Rows of section 4.3."""
    result = []
    for name in results[0]:
        kinds = sorted({one[name].kind for one in results})
        note = (
            f"recognised as: {', '.join(kinds)}; {PAIRS} pairs of each kind, transfers of {LASTS}, six hosts"
        )
        # The paper's clouds are hoses.
        none, every = (0.0, 100.0) if name == "hose" else (None, None)
        rows = (
            ("pairs of paths between four hosts that take from each other", "four", none),
            ("pairs of paths from one source that take from each other", "one", every),
            ("two paths from one source, of one alone", "sum", every),
        )
        for words, key, paper_value in rows:
            values = [float(getattr(one[name], key)) for one in results]
            result.append(
                measured_row("4.3", f"{SIMULATED}, {name}: {words}", "%", values, paper_value, note)
            )
    return result
