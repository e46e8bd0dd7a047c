"""All analyses of hotspots, from one set of samples."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import ibis
import pyarrow

from leeward._display import Pictures
from leeward.errors import InputError
from leeward.hotspots import durations, hot
from leeward.hotspots.causes import Causes, Tables, causes
from leeward.hotspots.forecast import Forecast, forecast
from leeward.hotspots.imbalance import Imbalance, imbalance
from leeward.hotspots.places import hot_places
from leeward.hotspots.settings import Settings
from leeward.telemetry import Discards, Engine, Windows, windows
from leeward.telemetry.samples import Samples
from leeward.telemetry.times import moment_text

EXACT = 2**53
"""Greatest whole number up to which doubles are exact."""
CELLS = 168
"""Columns of the heat map: the hours of a week."""
STEPS = 6
"""Number of steps of `analyze`, for progress."""


@dataclass(frozen=True)
class Extent:
    """Extent of the analyzed telemetry.

    Attributes:
        first_ms: Start of the first interval; None without intervals.
        end_ms: End of the last interval.
        interval_ms: Length of an interval.
        cadence_ms: Usual time between samples of a link.
        links: Number of links of the cluster.
        seen: Number of links with at least one judged interval.
        intervals: Number of judged link-intervals.
        thin: Number of link-intervals that were seen for too short a time.
        hot: Number of hot link-intervals.
    """

    first_ms: int | None
    end_ms: int | None
    interval_ms: int
    cadence_ms: int
    links: int
    seen: int
    intervals: int
    thin: int
    hot: int


@dataclass(frozen=True)
class Analysis:
    """Hotspots of a fleet. Tables are sorted; the modules that make them document their columns.

    Attributes:
        settings: Thresholds.
        extent: Extent of the telemetry.
        hot_places: `places.hot_places`, the answer in short.
        cross_sections: `hot.by_cross_section`.
        kinds: `hot.by_kind`.
        links: `hot.by_link`.
        units: `hot.unit_errors`.
        utilization: `hot.utilization`.
        heat: `hot.heat`.
        runs: `durations.named_runs`.
        durations: `durations.distribution`.
        classes: `durations.by_class`.
        causes: `causes.causes`.
        imbalance: `imbalance.imbalance`.
        forecast: `forecast.forecast`.
        discards: Rows left out.
        unseen: Names of links of the cluster without a judged interval.
    """

    settings: Settings
    extent: Extent
    hot_places: pyarrow.Table
    cross_sections: pyarrow.Table
    kinds: pyarrow.Table
    links: pyarrow.Table
    units: pyarrow.Table
    utilization: pyarrow.Table
    heat: pyarrow.Table
    runs: pyarrow.Table
    durations: pyarrow.Table
    classes: pyarrow.Table
    causes: Causes
    imbalance: Imbalance
    forecast: Forecast
    discards: Discards
    unseen: Sequence[str] = ()

    def tables(self) -> Mapping[str, pyarrow.Table]:
        """All tables by name, as in an output folder and in JSON."""
        result = {
            "hot_places": self.hot_places,
            "cross_sections": self.cross_sections,
            "kinds": self.kinds,
            "links": self.links,
            "unit_errors": self.units,
            "utilization": self.utilization,
            "heat": self.heat,
            "runs": self.runs,
            "durations": self.durations,
            "classes": self.classes,
            "changes": self.causes.runs,
            "causes": self.causes.by_cause,
            "findings": self.causes.findings,
            "split": self.causes.split,
            "provision": self.causes.provision.racks,
            "unevenness": self.imbalance.unevenness,
            "cv": self.imbalance.cv,
            "longer": self.imbalance.longer,
            "stability": self.imbalance.stability,
            "hot_now": self.forecast.now,
            "scores": _scores(self.forecast),
        }
        if self.causes.tasks is not None:
            result |= {
                "jobs": self.causes.tasks.jobs,
                "racks": self.causes.tasks.racks,
                "concentration": self.causes.tasks.concentrated,
            }
        if self.causes.served is not None:
            result["served"] = self.causes.served
        return result

    def plot(self) -> Pictures:
        """The pictures of the page of `leeward hotspots --report`; a notebook shows them."""
        from leeward.hotspots.report.page import page_pictures

        return Pictures(tuple(page_pictures(self)))

    def summary(self) -> dict[str, Any]:
        """All except tables: settings, extent, scores of forecasts, discards."""
        tasks = self.causes.tasks
        fleet = self.causes.provision
        names = ("ahead_ms", "learnt", "scored", "base_rate", "used")
        return {
            "settings": asdict(self.settings),
            "extent": asdict(self.extent),
            "imbalance_interval_ms": self.imbalance.interval_ms,
            "forecast": {name: getattr(self.forecast, name) for name in names},
            "guideline": {"cpu_bps": fleet.cpu_bps, "disk_bps_per_tb": fleet.disk_bps_per_tb},
            "correlation": None if tasks is None or tasks.correlation is None else list(tasks.correlation),
            "discards": self.discards.record(),
            "unseen": list(self.unseen),
        }


def analyze(
    samples: Samples,
    settings: Settings | None = None,
    tables: Tables | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Analysis:
    """Finds hotspots, their durations and causes.

    Args:
        samples: Samples of the links of a cluster.
        settings: Thresholds; by default those of the papers.
        tables: Other tables of the fleet.
        advance: Called with 1 after each of `STEPS` steps.

    Raises:
        InputError: No link was seen, or a link's capacity in an interval exceeds exact doubles.
    """
    settings, tables = settings or Settings(), tables or Tables()
    all_windows = windows(samples, settings.interval_ms, settings.coverage)
    advance(1)
    bins = hot.histogram(all_windows, settings)
    extent = _extent(all_windows, bins)
    discards = Discards()
    discards.add(samples.discards)
    tables = _within(samples.engine, tables, extent, discards)
    hot_rows = durations.hot_intervals(all_windows, settings)
    runs = durations.runs(all_windows, hot_rows)
    by_hour = hot.hours(all_windows)
    links = hot.by_link(all_windows, bins, by_hour, runs)
    advance(1)
    sections, kinds = hot.by_cross_section(all_windows, bins), hot.by_kind(all_windows, bins)
    pictures = hot.utilization(all_windows, bins), hot.heat(all_windows, CELLS)
    advance(1)
    cause_results = causes(all_windows, links, by_hour, hot_rows, runs, tables, settings)
    advance(1)
    imbalances = imbalance(all_windows, by_hour, settings)
    advance(1)
    ahead = forecast(all_windows, hot_rows, settings)
    advance(1)
    named_runs = durations.named_runs(all_windows, runs, settings)
    names = dict(zip(samples.links["link"].to_pylist(), samples.links["name"].to_pylist(), strict=True))
    lost = {names[link]: reasons for link, reasons in samples.discards.links.items()}
    intervals = ((extent.end_ms or 0) - (extent.first_ms or 0)) // extent.interval_ms
    return Analysis(
        settings,
        extent,
        hot_places(links, named_runs, cause_results, extent.end_ms, lost, intervals),
        sections,
        kinds,
        links,
        hot.unit_errors(links, samples),
        *pictures,
        named_runs,
        durations.distribution(all_windows, runs),
        durations.by_class(all_windows, runs, settings),
        cause_results,
        imbalances,
        ahead,
        discards,
        _unseen(all_windows, bins),
    )


def _within(engine: Engine, tables: Tables, extent: Extent, discards: Discards) -> Tables:
    """Rows of the tables of the fleet at the analyzed times; other rows count as discards.

    The table of requests stays complete: requests in intervals without telemetry get their own bucket.

    Raises:
        InputError: A table has no row in this time.
    """
    assert extent.first_ms is not None
    assert extent.end_ms is not None
    within: dict[str, ibis.Table] = {}
    for name in ("split", "tasks"):
        table = getattr(tables, name)
        if table is None:
            continue
        inside = table.t_ms.between(extent.first_ms, extent.end_ms)
        counts = table.agg(
            rows=table.count(), there=inside.ifelse(1, 0).sum(), first=table.t_ms.min(), last=table.t_ms.max()
        )
        row = engine.arrow(counts).to_pylist()[0]
        if row["rows"] and not row["there"]:
            ours = f"{moment_text(extent.first_ms)} to {moment_text(extent.end_ms)}"
            theirs = f"{moment_text(row['first'])} to {moment_text(row['last'])}"
            message = f"no row is in the time of the telemetry, {ours}: {row['rows']:,} rows, {theirs}"
            raise InputError.about(name, message)
        discards.count("outside", row["rows"] - (row["there"] or 0), f"{name}: not of the telemetry's time")
        within[name] = table.filter(inside)
    return replace(tables, **within)


def _extent(all_windows: Windows, bins: ibis.Table) -> Extent:
    engine, samples = all_windows.samples.engine, all_windows.samples
    row = engine.arrow(
        bins.agg(
            seen=bins.link.nunique(),
            intervals=bins.intervals.sum().cast("int64"),
            hot=bins.hot.sum().cast("int64"),
        )
    ).to_pylist()[0]
    table = all_windows.table
    most = engine.arrow(
        table.agg(most=table.capacity_bits.max(), first=table.start_ms.min(), last=table.start_ms.max())
    ).to_pylist()[0]
    thin = engine.arrow(all_windows.thin.agg(n=all_windows.thin.count()))["n"][0].as_py()
    if most["first"] is None:
        message = f"no link was seen for long enough in any of {thin:,} intervals"
        error = InputError.about("telemetry", message)
        error.add_note(
            "--coverage sets the share of an interval that must be seen, --cadence the length of a sample"
        )
        raise error
    if most["most"] >= EXACT:
        message = f"a link can carry {most['most']:.1e} bits in an interval; at most 2^53 can be counted"
        error = InputError.about("telemetry", message)
        error.add_note("shorten --interval")
        raise error
    return Extent(
        most["first"],
        most["last"] + all_windows.interval_ms,
        all_windows.interval_ms,
        samples.cadence_ms,
        samples.links.num_rows,
        row["seen"],
        row["intervals"],
        thin,
        row["hot"],
    )


def _unseen(all_windows: Windows, bins: ibis.Table) -> list[str]:
    """Names of links without a judged interval, in the order of the links."""
    links = all_windows.samples.links
    seen = set(all_windows.samples.engine.arrow(bins.select("link").distinct())["link"].to_pylist())
    names = zip(links["link"].to_pylist(), links["name"].to_pylist(), strict=True)
    return [name for link, name in names if link not in seen]


def _scores(result: Forecast) -> pyarrow.Table:
    names = ("skill", "over_base")
    rows = []
    for score in result.scores:
        row: dict[str, Any] = {"predictor": score.predictor, "brier": score.brier}
        row |= {"precision": score.precision, "recall": score.recall}
        for name in names:
            value, low, high = getattr(score, name) or (None, None, None)
            row |= {name: value, f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    numbers = ["brier", "precision", "recall"]
    numbers += [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    schema = pyarrow.schema(
        [("predictor", pyarrow.string()), *((name, pyarrow.float64()) for name in numbers)]
    )
    return pyarrow.Table.from_pylist(rows, schema)
