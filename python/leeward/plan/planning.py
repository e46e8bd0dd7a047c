"""Plan of a fleet: racks over a threshold, ports or a shift for each, and simulations of both."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from leeward._quantities import MOST_BPS
from leeward.errors import InputError
from leeward.hotspots.hot import TOR, histogram
from leeward.hotspots.settings import DAY_MS
from leeward.hotspots.settings import Settings as Hotspots
from leeward.plan.ports import Ports, ports
from leeward.plan.series import Loads, Series, loads, percentiles
from leeward.plan.shift import LinkLoads, Rack, Shift, shift
from leeward.plan.simulate import Evaluator, Outcome, simulate
from leeward.telemetry import Discards, Samples, windows
from leeward.telemetry.windows import COVERAGE, INTERVAL_MS

HOT_PPM = 750_000
"""Threshold of Hotspots, section 3.1."""
PERCENTILE = 98.0
"""Percentile of Hotspots, table 2."""
MOST_PLANNED = 500
"""Greatest number of planned racks, the worst first; others are only counted."""
MOST_TARGETS = 64
"""Greatest number of racks that may take work, the quietest first."""
WAYS = {"up": "uplink", "down": "downlink"}
RUNS = ("before", "ports", "shift")
STEPS = 6
"""Number of steps of `plan`, for progress."""


@dataclass(frozen=True)
class Settings:
    """Settings of a plan.

    Attributes:
        threshold_ppm: Greatest utilization of a link, in millionths.
        percentile: Percentile of the utilization over intervals.
        interval_ms: Length of an interval.
        coverage: Least observed share of an interval.
        port_bps: Speed of a rack's uplink port; None to derive it from the capacity.
    """

    threshold_ppm: int = HOT_PPM
    percentile: float = PERCENTILE
    interval_ms: int = INTERVAL_MS
    coverage: float = COVERAGE
    port_bps: int | None = None

    @property
    def thousandths(self) -> int:
        """The percentile in thousandths of a percent."""
        return round(self.percentile * 1000)

    def __post_init__(self) -> None:
        """Checks each setting.

        Raises:
            InputError: A setting is invalid.
        """
        if not 0 < self.percentile <= 100 or self.thousandths == 0:
            raise InputError.about(
                "percentile", f"`{self.percentile:g}`: expected a number above 0 and at most 100"
            )
        if not 0 < self.threshold_ppm <= 10**6:
            share = f"`{self.threshold_ppm / 10_000:g}%`"
            raise InputError.about("threshold", f"{share}: expected more than 0 % and at most 100 %")
        if not 1000 <= self.interval_ms <= DAY_MS:
            raise InputError.about("interval", f"`{self.interval_ms} ms`: expected from 1 s to 1 d")
        if not 0 <= self.coverage <= 1:
            raise InputError.about("coverage", f"`{self.coverage:g}`: expected a share from 0 to 1")
        if self.port_bps is not None and not 0 < self.port_bps <= MOST_BPS:
            raise InputError.about("port", f"`{self.port_bps}`: expected a positive rate")


@dataclass(frozen=True)
class PlannedRack:
    """A rack over the threshold.

    Attributes:
        rack: Name.
        kind: `compute`, `disk` or `mixed`.
        ports: Ports that the rack needs.
        shift: Work that would have to leave the rack.
        outcomes: Result of the simulator for each link of the rack, by name, and for each of `RUNS`.
    """

    rack: str
    kind: str
    ports: Ports
    shift: Shift
    outcomes: dict[str, dict[str, Outcome]]


@dataclass(frozen=True)
class Plan:
    """Plan that brings a fleet under its threshold.

    Attributes:
        settings: Settings of the plan.
        racks: Number of racks with a seen link.
        over: Number of racks over the threshold.
        planned: The planned racks among them, the worst first.
        taking: For each link of a rack or pod that would take work, and each of `RUNS`, the result of the
            simulator; by name.
        discards: Telemetry left out.
    """

    settings: Settings
    racks: int
    over: int
    planned: list[PlannedRack]
    taking: dict[str, dict[str, Outcome]]
    discards: Discards

    @property
    def ports(self) -> int:
        """Number of ports to add to all racks."""
        return sum(one.ports.added for one in self.planned)

    def summary(self) -> dict[str, Any]:
        """Facts about all racks together."""
        return {
            "settings": asdict(self.settings),
            "racks": self.racks,
            "over": self.over,
            "ports_added": self.ports,
            "discards": self.discards.record(),
        }

    def record(self) -> dict[str, Any]:
        """The plan, as `leeward plan -o json` prints it."""
        return self.summary() | {
            "planned": [
                {
                    "rack": rack.rack,
                    "kind": rack.kind,
                    "ports": asdict(rack.ports) | {"added": rack.ports.added},
                    "shift": asdict(rack.shift) | {"left": rack.shift.left},
                    "links": _records(rack.outcomes),
                }
                for rack in self.planned
            ],
            "taking": _records(self.taking),
        }


def plan(
    samples: Samples, settings: Settings | None = None, advance: Callable[[], None] = lambda: None
) -> Plan:
    """Makes a plan for the racks that are over a threshold.

    Args:
        samples: Samples of the links of a cluster.
        settings: Thresholds; by default those of the paper.
        advance: Called after each of `STEPS` steps.

    Raises:
        InputError: No link of a rack was seen, or the data exceeds a limit.
    """
    settings = settings or Settings()
    all_windows = windows(samples, settings.interval_ms, settings.coverage)
    links = [row for row in samples.links.to_pylist() if row["cross_section"] == TOR]
    # The time ahead of a forecast does not matter here; any multiple of the interval is valid.
    hotspot_settings = Hotspots(
        interval_ms=settings.interval_ms, coverage=settings.coverage, ahead_ms=settings.interval_ms
    )
    bins = histogram(all_windows, hotspot_settings)
    percent_of = percentiles(all_windows, bins, settings.thousandths)
    advance()
    ranks: dict[str, int] = {}
    for row in links:
        if row["link"] in percent_of:
            ranks[row["rack"]] = max(ranks.get(row["rack"], 0), percent_of[row["link"]])
    if not ranks:
        error = InputError.about("telemetry", "no uplink or downlink of a rack was seen")
        error.add_note("leeward plan needs readings of racks' links, such as r3:uplink")
        raise error
    order = sorted(ranks, key=lambda rack: (-ranks[rack], rack))
    # A bin is a percent wide, so racks from the bin of the threshold on need exact values.
    edge = settings.threshold_ppm // 10_000
    near = [rack for rack in order if ranks[rack] >= edge]
    quiet = [rack for rack in reversed(order) if ranks[rack] < edge][:MOST_TARGETS]
    measured, racks = _racks(_numbers(samples, near[: 2 * MOST_PLANNED] + quiet), samples, all_windows)
    advance()
    evaluator = Evaluator(settings.threshold_ppm, settings.thousandths)
    worst = {
        name: max(evaluator.evaluate(link.utilization).percentile for link in rack.links.values())
        for name, rack in racks.items()
    }
    over = [
        name for name in sorted(worst, key=lambda name: (-worst[name], name)) if _over(worst[name], settings)
    ]
    beyond = sum(ranks[rack] > edge for rack in near[2 * MOST_PLANNED :])
    names = over[:MOST_PLANNED]
    targets = {name: racks[name] for name in racks if name not in over}
    link_loads = LinkLoads(settings.threshold_ppm, settings.thousandths)
    needed: dict[str, tuple[Ports, Shift]] = {}
    for name in names:
        rack = racks[name]
        needed_ports = ports(list(rack.links.values()), *_limits(settings), settings.port_bps)
        needed[name] = (needed_ports, shift(rack, targets, link_loads))
    advance()
    taking = sorted({target for _, work_shift in needed.values() for target in work_shift.to})
    racks_simulated = {name: racks[name] for name in [*names, *taking]}
    outcomes = _simulate(racks_simulated, measured, link_loads, needed, evaluator, advance)
    planned = [
        PlannedRack(
            name,
            racks[name].kind,
            *needed[name],
            {link.name: outcomes[link.name] for link in racks[name].links.values()},
        )
        for name in names
    ]
    own = {name for one in planned for name in one.outcomes}
    others = {name: outcome for name, outcome in outcomes.items() if name not in own}
    return Plan(settings, len(ranks), len(over) + beyond, planned, others, samples.discards)


def _over(percentile: float, settings: Settings) -> bool:
    return round(percentile * 1e6) > settings.threshold_ppm


def _limits(settings: Settings) -> tuple[int, int]:
    return settings.threshold_ppm, settings.thousandths


def _numbers(samples: Samples, racks: list[str]) -> dict[str, dict[str, int]]:
    """Numbers of the links of racks and of their pods, by owner and `uplink` or `downlink`."""
    rack_names = set(racks)
    rows = samples.links.to_pylist()
    pods = {row["pod"] for row in rows if row["cross_section"] == TOR and row["rack"] in rack_names}
    result: dict[str, dict[str, int]] = {}
    for row in rows:
        owner = row["rack"] if row["cross_section"] == TOR else None
        if row["cross_section"] == "pod-core" and row["pod"] in pods:
            owner = row["pod"]
        elif owner not in rack_names:
            continue
        result.setdefault(owner, {})[WAYS[row["direction"]]] = row["link"]
    return result


def _racks(
    numbers: dict[str, dict[str, int]], samples: Samples, all_windows: Any
) -> tuple[Loads, dict[str, Rack]]:
    """Series of racks and their pods."""
    measured = loads(all_windows, [link for links in numbers.values() for link in links.values()])
    name_of = {row["link"]: row["name"] for row in samples.links.select(["link", "name"]).to_pylist()}

    def series_of(owner: str | None) -> dict[str, Series]:
        if owner is None:
            return {}
        names = {way: name_of[link] for way, link in numbers.get(owner, {}).items()}
        return {way: measured.links[name] for way, name in names.items() if name in measured.links}

    racks = {
        row["rack"]: Rack(row["rack"], row["kind"], row["pod"], series_of(row["rack"]), series_of(row["pod"]))
        for row in samples.racks.select(["rack", "kind", "pod"]).to_pylist()
        if row["rack"] in numbers and series_of(row["rack"])
    }
    return measured, racks


def _simulate(
    racks: dict[str, Rack],
    measured: Loads,
    link_loads: LinkLoads,
    needed: dict[str, tuple[Ports, Shift]],
    evaluator: Evaluator,
    advance: Callable[[], None],
) -> dict[str, dict[str, Outcome]]:
    """Result of each link in each of `RUNS`, by its name."""
    links = {
        link.name: link
        for rack in racks.values()
        for link in (*rack.links.values(), *rack.pod_links.values())
    }
    now = {name: link.now_bps for name, link in links.items()}
    more = dict(now)
    for name, (needed_ports, _) in needed.items():
        for link in racks[name].links.values():
            more[link.name] = max(now[link.name], float(needed_ports.needed * needed_ports.speed_bps))
    result: dict[str, dict[str, Outcome]] = {name: {} for name in links}
    runs = zip(RUNS, (({}, None), ({}, more), (link_loads.loads, now)), strict=True)
    for run, (loads_moved, capacities) in runs:
        for name, utilization in simulate(racks, measured, loads_moved, capacities).items():
            result[name][run] = evaluator.evaluate(utilization)
        advance()
    return result


def _records(outcomes: dict[str, dict[str, Outcome]]) -> dict[str, dict[str, dict[str, Any]]]:
    return {name: {run: asdict(outcome) for run, outcome in runs.items()} for name, runs in outcomes.items()}
