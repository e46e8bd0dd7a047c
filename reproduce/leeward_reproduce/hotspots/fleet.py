"""Synthetic telemetry of a fleet with planted hotspots, for parts of figures 3, 6 and 7.

No simulated run has data for these parts. Links carry little (`leeward.telemetry.synthetic`), except in runs
of hot intervals that are drawn by seed, at rates that are stated here. The owners of the hot intervals of
mixed racks are drawn too, and so is the bandwidth per processor of jobs. `leeward.hotspots` then finds the
planted runs, as it would in an operator's fleet. The result shows the form of a figure, and that the analysis
finds all of the planted runs. Rates and shares are our choice, not those of the paper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy
import pyarrow

from leeward import Cluster
from leeward._arrays import Floats
from leeward.hotspots import Settings, Tables, analyze, hot
from leeward.telemetry import Engine, Samples
from leeward.telemetry.synthetic import Plant, telemetry
from leeward_reproduce.figures import Experiment, Results
from leeward_reproduce.hotspots import paper
from leeward_reproduce.hotspots.sweeps import HERE
from leeward_reproduce.links import START_MS
from leeward_reproduce.rows import Row, reference_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLUSTER = HERE / "clusters" / "fleet.yaml"
INTERVAL_MS = 300_000
DAY = 288
"""Number of intervals in a day."""
DAYS, SHORT_DAYS = 2, 1
HOT = {"host-ToR": 0.005, "ToR-pod": 0.04, "pod-core": 0.01}
"""Approximate share of the time for which links of a cross-section are hot."""
LENGTH = 6.0
"""Average number of intervals of a hot run."""
UTILIZATION = 0.9
"""Utilization of a hot link."""
OWNED = {"storage": (0.4, 0.45, 0.45), "compute": (0.4, 0.2, 0.7), "both": (0.2, 0.35, 0.55)}
"""Owner of a hot interval of a mixed rack, with its probability, and with the shares of the link's capacity
that storage and compute use."""
JOBS, SPREAD = 61, 0.9
"""Number of jobs, and the standard deviation of the logarithm of their bandwidth per processor."""
CPUS = 10
"""Number of processors of a job."""
_MADE_UP = "a made-up fleet, in which just this was planted; the paper's value is for reference only"


@dataclass(frozen=True)
class Fleet:
    """Planted hotspots of a fleet, or those that the analysis finds.

    Attributes:
        hot: Number of hot link-intervals, and number of all link-intervals, of each cross-section.
        owned: Number of hot intervals of mixed racks, by owner.
        storage: Share of storage in the traffic of these intervals.
        jobs: Bandwidth per processor of each job over that of the median job, sorted.
    """

    hot: Mapping[str, tuple[int, int]]
    owned: Mapping[str, int]
    storage: float
    jobs: Floats


def plant_hotspots(seed: int, days: int) -> tuple[Fleet, Samples, Tables]:
    """Plants hotspots in a fleet; returns the planted hotspots, and the fleet's telemetry and tables."""
    random = numpy.random.default_rng([seed, 0])
    network, engine = Cluster(CLUSTER), Engine.duckdb(threads=1)
    links, racks = network.links(), network.rack_table()
    mixed = {row["rack"] for row in racks.to_pylist() if row["kind"] == "mixed"}
    counts = {name: [0, 0] for name in HOT}
    plants: list[Plant] = []
    split: list[dict[str, Any]] = []
    owned = dict.fromkeys(OWNED, 0)
    for link in links.to_pylist():
        marked = _hot_intervals(random, days * DAY, HOT[link["cross_section"]])
        count = counts[link["cross_section"]]
        count[0] += int(marked.sum())
        count[1] += len(marked)
        plants += _plants(link["name"], marked)
        if link["cross_section"] == hot.TOR and link["rack"] in mixed:
            for at in numpy.flatnonzero(marked).tolist():
                owner = str(random.choice(list(OWNED), p=[likely for likely, *_ in OWNED.values()]))
                owned[owner] += 1
                split.append(_split(link, at, *OWNED[owner][1:]))
    table = telemetry(
        links,
        plants,
        start_ms=START_MS,
        end_ms=START_MS + days * DAY * INTERVAL_MS,
        cadence_ms=INTERVAL_MS,
        seed=seed,
    )
    needs = numpy.sort(numpy.exp(SPREAD * random.standard_normal(JOBS)))
    tables = Tables(
        split=engine.table(pyarrow.Table.from_pylist(split)),
        tasks=engine.table(pyarrow.Table.from_pylist(_tasks(needs, racks["rack"].to_pylist()))),
    )
    storage = sum(number * OWNED[name][1] for name, number in owned.items())
    both = UTILIZATION * sum(owned.values())
    hot_of = {name: (count[0], count[1]) for name, count in counts.items()}
    truth = Fleet(hot_of, owned, storage / both if both else 0.0, needs / numpy.median(needs))
    return truth, Samples(engine, engine.table(table), links, racks, INTERVAL_MS), tables


def analyze_fleet(samples: Samples, tables: Tables) -> Fleet:
    """Analyzes telemetry with `leeward.hotspots`."""
    result = analyze(samples, Settings(), tables)
    counts = dict.fromkeys(HOT, (0, 0))
    for row in result.cross_sections.to_pylist():
        before = counts[row["cross_section"]]
        counts[row["cross_section"]] = before[0] + row["hot"], before[1] + row["intervals"]
    rows = result.causes.split.to_pylist()
    storage, compute = (sum(row[f"{name}_kbits"] for row in rows) for name in ("storage", "compute"))
    assert result.causes.tasks is not None, "the tables have tasks"
    return Fleet(
        counts,
        {name: sum(row[name] for row in rows) for name in OWNED},
        storage / (storage + compute) if storage + compute else 0.0,
        numpy.sort(result.causes.tasks.jobs["normalized"].to_numpy()),
    )


def _run(seed: int, short: bool) -> Fleet:
    _, samples, tables = plant_hotspots(seed, SHORT_DAYS if short else DAYS)
    return analyze_fleet(samples, tables)


FLEET = Experiment("fleet", _run)
"""Analysis of synthetic telemetry."""


def section_rows(results: Results) -> list[Row]:
    """Figure 3: rate of hot links of ToRs over the rates of other cross-sections."""
    rates = [
        {name: hot_ / every for name, (hot_, every) in fleet.hot.items()} for fleet in results.outcomes[FLEET]
    ]
    stated = ", ".join(f"{name} {100 * rate:g} %" for name, rate in HOT.items())
    note = f"{_MADE_UP}; hot in about: {stated}"
    return [
        reference_row(
            "3",
            f"rate of ToRs over that of {words}, planted",
            "x",
            [rate[hot.TOR] / rate[name] for rate in rates if rate[name]],
            paper_value,
            note,
        )
        for name, words, paper_value in (
            ("host-ToR", "hosts' links", paper.TORS_OVER_HOSTS),
            ("pod-core", "the core's links", paper.TORS_OVER_CORE),
        )
    ]


def split_rows(results: Results) -> list[Row]:
    """Figure 6: owners of the hotspots of mixed racks."""
    fleets = [fleet for fleet in results.outcomes[FLEET] if sum(fleet.owned.values())]
    result = []
    for name, words in (("storage", "storage's"), ("compute", "compute's"), ("both", "both's")):
        shares = [100 * fleet.owned[name] / sum(fleet.owned.values()) for fleet in fleets]
        note = f"{_MADE_UP}; drawn at {100 * OWNED[name][0]:g} %"
        result.append(
            reference_row("6", f"hot intervals of mixed racks that are {words}", "%", shares, None, note)
        )
    traffic = [100 * fleet.storage for fleet in fleets]
    label = "traffic of mixed racks in hot intervals that is storage's"
    return [*result, reference_row("6", label, "%", traffic, paper.STORAGE_SHARE, _MADE_UP)]


def job_rows(results: Results) -> list[Row]:
    """Figure 7: bandwidth per compute unit of jobs."""
    most = [float(fleet.jobs[-1]) for fleet in results.outcomes[FLEET]]
    wide = [100 * float((fleet.jobs > Settings().intensive).mean()) for fleet in results.outcomes[FLEET]]
    note = f"{_MADE_UP}; {JOBS} jobs, log-normal, of a standard deviation of {SPREAD:g}"
    return [
        reference_row(
            "7", "bandwidth per compute unit, most over median job", "x", most, paper.WIDEST_JOB, note
        ),
        reference_row("7", "jobs of more than twice the median's", "%", wide, None, note),
    ]


def owners(results: Results, _: Sequence[Row]) -> "Figure":
    """Figure 6: a bar for each owner of hotspots, over all seeds."""
    from matplotlib import pyplot

    sums = {name: sum(fleet.owned[name] for fleet in results.outcomes[FLEET]) for name in OWNED}
    fig, axes = pyplot.subplots(figsize=(6.4, 3.4), layout="constrained")
    shares = [100 * number / max(sum(sums.values()), 1) for number in sums.values()]
    axes.bar(range(len(sums)), shares, 0.6, color="#5a6a7a")
    axes.set_xticks(range(len(sums)), ["storage's alone", "compute's alone", "both's"])
    axes.set_ylabel("hot intervals of mixed racks, %")
    axes.set_title("planted in a made-up fleet", fontsize=9)
    return fig


def needs(results: Results, _: Sequence[Row]) -> "Figure":
    """Figure 7: cumulative distribution of the bandwidth per compute unit of jobs, over all seeds."""
    from matplotlib import pyplot

    values = numpy.sort(numpy.concatenate([fleet.jobs for fleet in results.outcomes[FLEET]]))
    fig, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
    axes.step(values, 100 * numpy.arange(1, len(values) + 1) / len(values), where="post", color="#5a6a7a")
    axes.axvline(paper.WIDEST_JOB, color="#111111", linewidth=0.8)
    words = "the paper: some jobs\nhave more than this"
    axes.annotate(words, (paper.WIDEST_JOB, 8), (-6, 0), textcoords="offset points", ha="right", fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel("bandwidth per processor, over the median job's")
    axes.set_ylabel("jobs with at most this, %")
    axes.set_title("planted in a made-up fleet", fontsize=9)
    return fig


def _hot_intervals(random: numpy.random.Generator, intervals: int, rate: float) -> Any:
    """Draws the hot intervals of a link, as a mask."""
    marked = numpy.zeros(intervals, dtype=bool)
    for _ in range(random.poisson(rate * intervals / LENGTH)):
        start = int(random.integers(intervals))
        marked[start : start + int(random.geometric(1 / LENGTH))] = True
    return marked


def _plants(name: str, marked: Any) -> list[Plant]:
    """The runs of a link's hot intervals."""
    edges = numpy.flatnonzero(numpy.diff(numpy.concatenate([[0], marked.astype(int), [0]])))
    times = (START_MS + INTERVAL_MS * edges).tolist()
    pairs = zip(times[::2], times[1::2], strict=True)
    return [Plant(name, start, end, UTILIZATION) for start, end in pairs]


def _split(link: Mapping[str, Any], at: int, storage: float, compute: float) -> dict[str, Any]:
    """Row with the loads of a rack's storage and compute in an interval."""
    return {
        "rack": link["rack"],
        "t_ms": START_MS + INTERVAL_MS * (at + 1),
        "storage_bps": storage * link["capacity_bps"],
        "compute_bps": compute * link["capacity_bps"],
        "direction": link["direction"],
    }


def _tasks(needs: Floats, racks: Sequence[str]) -> list[dict[str, Any]]:
    """A row of tasks for each job, on the racks in turn, with equal load in both directions."""
    return [
        {
            "rack": racks[at % len(racks)],
            "t_ms": START_MS + INTERVAL_MS,
            "job": f"job{at}",
            "cpus": float(CPUS),
            "tx_bps": float(need) * CPUS * 5e7,
            "rx_bps": float(need) * CPUS * 5e7,
            "tasks": 1.0,
        }
        for at, need in enumerate(needs)
    ]
