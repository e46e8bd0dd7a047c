"""Fluid simulation of measured loads, with changed capacities or loads of links.

The load of a link in an interval becomes background traffic at that rate. Load above the capacity is dropped,
not carried over to later intervals.
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

from leeward._native import Scenario
from leeward._quantities import rate_literal
from leeward.plan.series import Loads, Numbers, Series, nearest_rank
from leeward.plan.shift import Rack

MOST_DAYS = 90
"""Longest simulation, in days. The horizon of a scenario is at most 100 days."""
MOST_LINK_INTERVALS = 2_000_000
"""Largest number of links times intervals in one simulation, unless a single interval exceeds it."""
_UNLIMITED = "900Tbps"
"""Rate of NICs, and of links outside of the plan: high enough to be no bottleneck."""


@dataclass(frozen=True)
class Outcome:
    """Utilization of a link in one run.

    Attributes:
        hot: Number of intervals in which the link was hot.
        intervals: Number of intervals in which it was seen.
        percentile: Percentile of its utilization, a share.
        most: Greatest utilization, a share.
    """

    hot: int
    intervals: int
    percentile: float
    most: float


@dataclass(frozen=True)
class Evaluator:
    """Evaluates utilization by a threshold and a percentile.

    Attributes:
        hot_ppm: Utilization above which a link is hot, in millionths.
        thousandths: Percentile, in thousandths of a percent.
    """

    hot_ppm: int
    thousandths: int

    def evaluate(self, utilization: Numbers) -> Outcome:
        """Returns the outcome for a link, from its utilization in the intervals in which it was seen."""
        # The mean of a constant rate may differ from the rate by rounding. Other modules also use millionths.
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
    """Simulates all links of racks and of their pods.

    Args:
        racks: Racks of the plan.
        loads: Measured loads.
        moved_loads: Loads by name of the link, which replace the measured ones.
        capacities: Capacities by name of the link, in bits per second; None for the measured ones, with their
            changes.

    Returns:
        Utilization by name of the link, in the intervals in which the link was seen.
    """
    links = {link.name: link for rack in racks.values() for link in rack.links.values()}
    links |= {link.name: link for rack in racks.values() for link in rack.pod_links.values()}
    if not links:
        return {}
    at_once = min(
        MOST_DAYS * 86_400_000 // loads.interval_ms, max(MOST_LINK_INTERVALS // len(links), 1), loads.count
    )
    parts_by_link: dict[str, list[Numbers]] = {name: [] for name in links}
    for begin in range(0, loads.count, at_once):
        part = slice(begin, min(begin + at_once, loads.count))
        with _scenario(racks, links, part, loads.interval_ms, moved_loads, capacities) as file:
            run = Scenario.from_file(file).run(["uniform"], [1])[0]
        for (name, link), load in zip(links.items(), _loads(run.links(), list(links)), strict=True):
            # The table's own utilization uses the capacity after a change at the end of the interval.
            parts_by_link[name].append(load / _capacity(link, part, capacities))
    return {name: numpy.concatenate(parts)[links[name].seen] for name, parts in parts_by_link.items()}


def _loads(table: Any, names: Sequence[str]) -> Numbers:
    """Loads in a table of links: a row for each name, a column for each interval."""
    number = compute.index_in(table["link"], pyarrow.array(names))
    is_listed = compute.is_valid(number)
    load = table["load_bps"].filter(is_listed).to_numpy()
    # For each link, the table has a row for each interval, in order.
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
    """Writes a scenario, and deletes its files when the block ends."""
    interval = interval_ms / 1000
    events, start = [], {}
    load = numpy.empty((len(links), part.stop - part.start))
    for row, (name, link) in enumerate(links.items()):
        values = _capacity(link, part, capacities)
        start[name] = values[0]
        for index in numpy.flatnonzero(numpy.diff(values)) + 1:
            capacity = _rate(values[index])
            events.append({"at": f"{float(index * interval)!r}s", "link": name, "capacity": capacity})
        load[row] = numpy.nan_to_num(moved_loads.get(name, link.load_bps)[part])
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        (base / "cluster.json").write_text(json.dumps(_cluster(racks, start)), encoding="utf-8")
        _write_rates(base / "rates.csv", list(links), load, interval)
        scenario = {
            "cluster": "cluster.json",
            "workloads": [{"rates": {"file": "rates.csv"}}],
            "policies": ["uniform"],
            # Allows a cluster of a single rack. No data is placed.
            "fault_domains": 0,
            "horizon": f"{(part.stop - part.start) * interval!r}s",
            "sample": f"{interval!r}s",
            "telemetry": {"interval": f"{interval!r}s"},
            "events": sorted(events, key=lambda event: float(event["at"][:-1])),
        }
        (base / "scenario.json").write_text(json.dumps(scenario), encoding="utf-8")
        yield base / "scenario.json"


def _write_rates(path: Path, names: Sequence[str], load: Numbers, interval: float) -> None:
    """Writes a row for each change of a link's rate, in order of time.

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
    # The CSV writer keeps all digits of a double.
    columns = {"t_s": at * interval, "link": link_names.cast(pyarrow.string()), "rate_bps": load[link, at]}
    with path.open("wb") as stream:
        stream.write(f"{','.join(columns)}\n".encode())
        csv.write_csv(pyarrow.table(columns), stream, csv.WriteOptions(include_header=False))


def _capacity(link: Series, part: slice, capacities: Mapping[str, float] | None) -> Numbers:
    """Capacity of a link in each interval; in intervals without telemetry, its last known capacity."""
    if capacities is not None:
        return numpy.full(part.stop - part.start, capacities[link.name])
    measured = link.capacity_bps[part]
    return numpy.where(numpy.isnan(measured), link.now_bps, measured)


def _rate(bps: float) -> str:
    return rate_literal(max(round(bps), 1))


def _cluster(racks: Mapping[str, Rack], start: Mapping[str, float]) -> dict[str, object]:
    """Cluster file with only the racks of the plan, with one host each, and their pods."""

    def link(owner: str) -> dict[str, str]:
        directions = (("up", f"{owner}:uplink"), ("down", f"{owner}:downlink"))
        return {way: _rate(start[name]) if name in start else _UNLIMITED for way, name in directions}

    pods = list(dict.fromkeys(rack.pod for rack in racks.values() if rack.pod is not None))
    result: dict[str, object] = {
        "hosts_per_rack": 1,
        "nic": _UNLIMITED,
        "racks": [
            {"name": rack.name, "link": link(rack.name)} | ({} if rack.pod is None else {"pod": rack.pod})
            for rack in racks.values()
        ],
    }
    if pods:
        result["pods"] = [{"name": pod, "link": link(pod)} for pod in pods]
    return result
