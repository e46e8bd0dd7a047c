"""The fluid simulator on measured loads: what links would have carried with other capacities or loads.

Each link's load in each interval is background of that rate. What is above a capacity is not carried later:
the link is full, and the rest is lost to the count.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pyarrow
from pyarrow import compute, csv

from leeward._native import Scenario, rate_text
from leeward.plan.series import Loads, Numbers, Series, nearest_rank
from leeward.plan.shift import Rack

MOST_DAYS = 90
"""Simulated at once; a scenario has 100 at most."""
MOST_INTERVALS = 2_000_000
"""Of links, simulated at once."""
_FAST = "900Tbps"
"""Of hosts and racks that are in no plan: they are never in the way."""


@dataclass(frozen=True)
class Outcome:
    """A link in one run.

    Attributes:
        hot: In how many intervals it was hot.
        intervals: Of so many.
        percentile: Of its utilization, a share.
        most: Its highest utilization.
    """

    hot: int
    intervals: int
    percentile: float
    most: float


@dataclass(frozen=True)
class Judge:
    """When a link is hot, and which percentile is shown.

    Attributes:
        hot_ppm: Above so many millionths it is hot.
        thousandths: Of a percent.
    """

    hot_ppm: int
    thousandths: int

    def __call__(self, utilization: Numbers) -> Outcome:
        """What is said of a link's utilization in the intervals in which it was seen."""
        # A mean of a constant rate may differ from it by rounding; a millionth is the grain elsewhere.
        ppm = numpy.floor(utilization * 1e6 + 1e-3)
        return Outcome(
            int((ppm > self.hot_ppm).sum()),
            len(ppm),
            nearest_rank(ppm, self.thousandths) / 1e6,
            float(ppm.max()) / 1e6,
        )


def simulate(
    racks: Mapping[str, Rack],
    loads: Loads,
    carried: Mapping[str, Numbers],
    capacities: Mapping[str, float] | None,
) -> dict[str, Numbers]:
    """The utilization of all links of racks and of their pods, in intervals in which each was seen.

    Args:
        racks: Those in the plan.
        loads: What was measured.
        carried: By name of the link, what is carried instead of that.
        capacities: By name of the link, its capacity in bits per second; None: those that were measured, as
            they changed.
    """
    links = {link.name: link for rack in racks.values() for link in rack.links.values()}
    links |= {link.name: link for rack in racks.values() for link in rack.pod_links.values()}
    if not links:
        return {}
    at_once = min(
        MOST_DAYS * 86_400_000 // loads.interval_ms, max(MOST_INTERVALS // len(links), 1), loads.count
    )
    found: dict[str, list[Numbers]] = {name: [] for name in links}
    for begin in range(0, loads.count, at_once):
        part = slice(begin, min(begin + at_once, loads.count))
        with _scenario(racks, links, part, loads.interval_ms, carried, capacities) as file:
            run = Scenario.from_file(file).run(["uniform"], [1])[0]
        for (name, link), load in zip(links.items(), _loads(run.links(), list(links)), strict=True):
            # The table's own utilization is of the capacity at the end of an interval, where the next begins.
            found[name].append(load / _capacity(link, part, capacities))
    return {name: numpy.concatenate(parts)[links[name].seen] for name, parts in found.items()}


def _loads(table: Any, names: Sequence[str]) -> Numbers:
    """What each of some links carried in each interval: a row for each link."""
    number = compute.index_in(table["link"], pyarrow.array(names))
    there = compute.is_valid(number)
    load = table["load_bps"].filter(there).to_numpy()
    # Of each link there is a row for each interval, in order.
    order = numpy.argsort(number.filter(there).to_numpy(), kind="stable")
    by_link: Numbers = load[order].reshape(len(names), -1)
    return by_link


@contextmanager
def _scenario(
    racks: Mapping[str, Rack],
    links: Mapping[str, Series],
    part: slice,
    interval_ms: int,
    carried: Mapping[str, Numbers],
    capacities: Mapping[str, float] | None,
) -> Iterator[Path]:
    """A scenario file, for as long as it is needed."""
    interval = interval_ms / 1000
    events, start = [], {}
    load = numpy.empty((len(links), part.stop - part.start))
    for row, (name, link) in enumerate(links.items()):
        values = _capacity(link, part, capacities)
        start[name] = values[0]
        for at in numpy.flatnonzero(numpy.diff(values)) + 1:
            capacity = _rate(values[at])
            events.append({"at": f"{float(at * interval)!r}s", "link": name, "capacity": capacity})
        load[row] = numpy.nan_to_num(carried.get(name, link.load_bps)[part])
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "cluster.json").write_text(json.dumps(_cluster(racks, start)), encoding="utf-8")
        _write_rates(base / "rates.csv", list(links), load, interval)
        scenario = {
            "cluster": "cluster.json",
            "workloads": [{"rates": {"file": "rates.csv"}}],
            "policies": ["uniform"],
            # Nothing is placed: a single rack is enough.
            "fault_domains": 0,
            "horizon": f"{(part.stop - part.start) * interval!r}s",
            "sample": f"{interval!r}s",
            "telemetry": {"interval": f"{interval!r}s"},
            "events": sorted(events, key=lambda event: float(event["at"][:-1])),
        }
        (base / "scenario.json").write_text(json.dumps(scenario), encoding="utf-8")
        yield base / "scenario.json"


def _write_rates(path: Path, names: Sequence[str], load: Numbers, interval: float) -> None:
    """The rate of each link from each time on at which it changes, in order of time.

    Args:
        path: Of the file.
        names: Of the links.
        load: A row for each link, a column for each interval.
        interval: Its length, in seconds.
    """
    changes = numpy.ones(load.shape, dtype=bool)
    changes[:, 1:] = numpy.diff(load) != 0
    at, link = numpy.nonzero(changes.T)
    named = pyarrow.DictionaryArray.from_arrays(link.astype(numpy.int32), names)
    # A double is written with as many digits as it takes to read it again.
    columns = {"t_s": at * interval, "link": named.cast(pyarrow.string()), "rate_bps": load[link, at]}
    with path.open("wb") as stream:
        stream.write(f"{','.join(columns)}\n".encode())
        csv.write_csv(pyarrow.table(columns), stream, csv.WriteOptions(include_header=False))


def _capacity(link: Series, part: slice, capacities: Mapping[str, float] | None) -> Numbers:
    """A link's capacity in each interval; where it was not seen, what it has now."""
    if capacities is not None:
        return numpy.full(part.stop - part.start, capacities[link.name])
    known = link.capacity_bps[part]
    return numpy.where(numpy.isnan(known), link.now_bps, known)


def _rate(bps: float) -> str:
    return rate_text(max(round(bps), 1))


def _cluster(racks: Mapping[str, Rack], start: Mapping[str, float]) -> dict[str, object]:
    """A cluster of the racks alone, each with one host, and their pods."""

    def link(name: str) -> dict[str, str]:
        ways = (("up", f"{name}:uplink"), ("down", f"{name}:downlink"))
        return {way: _rate(start[of]) if of in start else _FAST for way, of in ways}

    pods = list(dict.fromkeys(rack.pod for rack in racks.values() if rack.pod is not None))
    made: dict[str, object] = {
        "hosts_per_rack": 1,
        "nic": _FAST,
        "racks": [
            {"name": rack.name, "link": link(rack.name)} | ({} if rack.pod is None else {"pod": rack.pod})
            for rack in racks.values()
        ],
    }
    if pods:
        made["pods"] = [{"name": pod, "link": link(pod)} for pod in pods]
    return made
