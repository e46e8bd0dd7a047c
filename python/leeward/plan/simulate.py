"""Fluid simulation of measured loads: links with other capacities or loads.

Each link's load in each interval is background of that rate. Load above a capacity is not carried later: the
link is full, and the excess is lost.
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
"""Number of policies simulated at once; a scenario has 100 at most."""
MOST_INTERVALS = 2_000_000
"""Number of links simulated at once."""
_FAST = "900Tbps"
"""Rate of hosts and racks outside of the plan, which never limit."""


@dataclass(frozen=True)
class Outcome:
    """A link in one run.

    Attributes:
        hot: Number of intervals in which it was hot.
        intervals: Number of intervals.
        percentile: Percentile of its utilization, a share.
        most: Greatest utilization.
    """

    hot: int
    intervals: int
    percentile: float
    most: float


@dataclass(frozen=True)
class Judge:
    """Definition of a hot link, and the percentile to show.

    Attributes:
        hot_ppm: Utilization above which it is hot, in millionths.
        thousandths: Percentile, in thousandths of a percent.
    """

    hot_ppm: int
    thousandths: int

    def __call__(self, utilization: Numbers) -> Outcome:
        """Summary of a link's utilization in the intervals in which it was seen."""
        # A mean of a constant rate may differ from it by rounding; other modules round to millionths too.
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
    moved_loads: Mapping[str, Numbers],
    capacities: Mapping[str, float] | None,
) -> dict[str, Numbers]:
    """Utilization of all links of racks and of their pods, in intervals in which each was seen.

    Args:
        racks: Racks of the plan.
        loads: Measured loads.
        moved_loads: Loads by name of the link, instead of the measured ones.
        capacities: Capacities by name of the link, in bits per second; None: the measured ones, as they
            changed.
    """
    links = {link.name: link for rack in racks.values() for link in rack.links.values()}
    links |= {link.name: link for rack in racks.values() for link in rack.pod_links.values()}
    if not links:
        return {}
    at_once = min(
        MOST_DAYS * 86_400_000 // loads.interval_ms, max(MOST_INTERVALS // len(links), 1), loads.count
    )
    parts_of: dict[str, list[Numbers]] = {name: [] for name in links}
    for begin in range(0, loads.count, at_once):
        part = slice(begin, min(begin + at_once, loads.count))
        with _scenario(racks, links, part, loads.interval_ms, moved_loads, capacities) as file:
            run = Scenario.from_file(file).run(["uniform"], [1])[0]
        for (name, link), load in zip(links.items(), _loads(run.links(), list(links)), strict=True):
            # The table's own utilization uses the capacity at the end of an interval, where the next begins.
            parts_of[name].append(load / _capacity(link, part, capacities))
    return {name: numpy.concatenate(parts)[links[name].seen] for name, parts in parts_of.items()}


def _loads(table: Any, names: Sequence[str]) -> Numbers:
    """Load of each of some links in each interval: a row for each link."""
    number = compute.index_in(table["link"], pyarrow.array(names))
    is_listed = compute.is_valid(number)
    load = table["load_bps"].filter(is_listed).to_numpy()
    # Each link has a row for each interval, in order.
    order = numpy.argsort(number.filter(is_listed).to_numpy(), kind="stable")
    by_link: Numbers = load[order].reshape(len(names), -1)
    return by_link


@contextmanager
def _scenario(
    racks: Mapping[str, Rack],
    links: Mapping[str, Series],
    part: slice,
    interval_ms: int,
    moved_loads: Mapping[str, Numbers],
    capacities: Mapping[str, float] | None,
) -> Iterator[Path]:
    """A scenario file, for the time of the block."""
    interval = interval_ms / 1000
    events, start = [], {}
    load = numpy.empty((len(links), part.stop - part.start))
    for row, (name, link) in enumerate(links.items()):
        values = _capacity(link, part, capacities)
        start[name] = values[0]
        for at in numpy.flatnonzero(numpy.diff(values)) + 1:
            capacity = _rate(values[at])
            events.append({"at": f"{float(at * interval)!r}s", "link": name, "capacity": capacity})
        load[row] = numpy.nan_to_num(moved_loads.get(name, link.load_bps)[part])
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
    """Rate of each link from each of its changes on, in order of time.

    Args:
        path: Path of the file.
        names: Names of the links.
        load: A row for each link, a column for each interval.
        interval: Length of an interval, in seconds.
    """
    changes = numpy.ones(load.shape, dtype=bool)
    changes[:, 1:] = numpy.diff(load) != 0
    at, link = numpy.nonzero(changes.T)
    link_names = pyarrow.DictionaryArray.from_arrays(link.astype(numpy.int32), names)
    # A double is written with enough digits to read it back.
    columns = {"t_s": at * interval, "link": link_names.cast(pyarrow.string()), "rate_bps": load[link, at]}
    with path.open("wb") as stream:
        stream.write(f"{','.join(columns)}\n".encode())
        csv.write_csv(pyarrow.table(columns), stream, csv.WriteOptions(include_header=False))


def _capacity(link: Series, part: slice, capacities: Mapping[str, float] | None) -> Numbers:
    """Capacity of a link in each interval; the present one where it was not seen."""
    if capacities is not None:
        return numpy.full(part.stop - part.start, capacities[link.name])
    measured = link.capacity_bps[part]
    return numpy.where(numpy.isnan(measured), link.now_bps, measured)


def _rate(bps: float) -> str:
    return rate_text(max(round(bps), 1))


def _cluster(racks: Mapping[str, Rack], start: Mapping[str, float]) -> dict[str, object]:
    """A cluster of the racks alone, each with one host, and their pods."""

    def link(name: str) -> dict[str, str]:
        ways = (("up", f"{name}:uplink"), ("down", f"{name}:downlink"))
        return {way: _rate(start[of]) if of in start else _FAST for way, of in ways}

    pods = list(dict.fromkeys(rack.pod for rack in racks.values() if rack.pod is not None))
    result: dict[str, object] = {
        "hosts_per_rack": 1,
        "nic": _FAST,
        "racks": [
            {"name": rack.name, "link": link(rack.name)} | ({} if rack.pod is None else {"pod": rack.pod})
            for rack in racks.values()
        ],
    }
    if pods:
        result["pods"] = [{"name": pod, "link": link(pod)} for pod in pods]
    return result
