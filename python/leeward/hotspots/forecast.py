"""Forecast for a hot link: hot or cool after a number of minutes.

Placement needs this forecast before it waits for a hotspot to pass, or moves work away from it. Two simple
forecasts are baselines:

* *persistence*: every hot link is still hot;
* *base rate*: the chance is the share of all past hot intervals whose link was hot again that much later.

The *hazard* table refines the base rate by facts about a hot link: the length of its run so far (1, 2, 3-4,
5-8, ... intervals), its excess above the threshold (in steps of 5 %) and the time of day (six blocks, UTC).
The chance of a cell is the share of its past hot intervals that stayed hot. It is shrunk towards the chance
of the parent (the cell without the last feature), which has the weight of `PRIOR_WEIGHT` observations::

    chance(cell) = (stayed + PRIOR_WEIGHT x chance(parent)) / (seen + PRIOR_WEIGHT)

The table learns from the first part of the time and is scored on the rest: Brier score (mean squared error of
the chance), skill against each baseline (1 - its Brier score / theirs), precision and recall of "still hot"
at a chance of one half. The confidence intervals of skills come from a bootstrap over links. Forecasts use
the hazard table only if it beats both baselines with 95 % confidence, else the better baseline. A forecast
never claims more than its score supports. Intervals without telemetry are not scored.
"""

from dataclasses import dataclass

import ibis
import numpy
import pyarrow

from leeward._arrays import Floats
from leeward.hotspots.settings import HOUR_MS, Settings
from leeward.telemetry import Windows

PRIOR_WEIGHT = 20.0
"""Weight of a parent's chance, in observations."""
LEAST = 30
"""Least number of hot intervals to learn from, and to score."""
LENGTHS = 10
"""Classes of the length of a run: up to 2^9 intervals and more."""
LEVELS, LEVEL_PPM = 6, 50_000
BLOCKS = 6
"""Blocks of a day."""
RESAMPLES = 1000
PREDICTORS = ("persistence", "base rate", "hazard")


@dataclass(frozen=True)
class Score:
    """Score of a predictor on held-out time.

    Attributes:
        predictor: `persistence`, `base rate` or `hazard`.
        brier: Mean squared error of its chance.
        precision: Share of its forecasts "still hot" that were right; None without such forecasts.
        recall: Share of links that stayed hot with the forecast "still hot"; None if no link stayed hot.
        skill: 1 - its Brier score / persistence's, and its 95 % interval; None if persistence makes no error.
        over_base: Skill against the base rate.
    """

    predictor: str
    brier: float
    precision: float | None
    recall: float | None
    skill: tuple[float, float, float] | None
    over_base: tuple[float, float, float] | None


@dataclass(frozen=True)
class Forecast:
    """Learned numbers, their scores, and forecasts for links that are hot at the end.

    Attributes:
        ahead_ms: Time ahead.
        learnt: Number of hot intervals learned from.
        scored: Number of scored hot intervals of later time.
        base_rate: Share of the intervals learned from that stayed hot.
        scores: Score of each predictor; empty without enough intervals.
        used: Predictor of the forecasts; None without enough intervals.
        now: Links that are hot in the last interval: `name`, `since_ms`, `ppm`, `chance` (of being hot
            later), `like_it` (number of similar hot intervals of the past). Longest first.
    """

    ahead_ms: int
    learnt: int
    scored: int
    base_rate: float | None
    scores: tuple[Score, ...]
    used: str | None
    now: pyarrow.Table


def forecast(windows: Windows, hot: ibis.Table, settings: Settings) -> Forecast:
    """Learns, scores and forecasts.

    Args:
        windows: All intervals.
        hot: Hot intervals, from `durations.hot_intervals`.
        settings: Thresholds, time ahead, and split of the time.
    """
    engine, ahead = windows.samples.engine, settings.ahead_ms
    ends = engine.arrow(
        windows.table.agg(first=windows.table.start_ms.min(), last=windows.table.start_ms.max())
    )
    first, last = (ends[name][0].as_py() or 0 for name in ("first", "last"))
    cut = first + int((last + windows.interval_ms - first) * settings.train)
    cells = _cells(windows, hot, settings, cut, cut - ahead - windows.interval_ms)
    train, test = cells["later"] == 0, cells["later"] == 1
    learnt, scored = (int(cells["n"][part].sum()) for part in (train, test))
    indices = numpy.stack([cells["length"], cells["level"], cells["block"]], axis=1)
    enough = learnt >= LEAST and scored >= LEAST
    counts = _counts(indices[train], cells["n"][train], cells["stayed"][train])
    rate = float(cells["stayed"][train].sum() / learnt) if learnt else None
    scores: tuple[Score, ...] = ()
    if enough and rate is not None:
        held_out = {name: cells[name][test] for name in ("link", "n", "stayed")}
        scores = _scores(held_out, _chances(counts, rate)[tuple(indices[test].T)], rate, settings.seed)
    predictor = _best_predictor(scores) if scores else None
    now = _now(windows, hot, last, settings, counts, rate, predictor)
    return Forecast(ahead, learnt, scored, rate, scores, predictor, now)


def _features(table: ibis.Table, settings: Settings) -> ibis.Table:
    """A hot interval's run length class, level and block of the day."""
    length = ibis.literal(0)
    for power in range(1, LENGTHS):
        length = length + (table.elapsed > 2 ** (power - 1)).ifelse(1, 0)
    level = ibis.least((table.ppm - settings.hot_ppm) // LEVEL_PPM, LEVELS - 1)
    hour = table.start_ms // HOUR_MS % 24
    return table.mutate(
        length=length.cast("int64"), level=level.cast("int64"), block=(hour // (24 // BLOCKS)).cast("int64")
    )


def _cells(
    windows: Windows, hot: ibis.Table, settings: Settings, cut: int, learn_to: int
) -> dict[str, numpy.ndarray]:
    """Counts of hot intervals whose later interval was seen: by link, cell and part of the time."""
    features = _features(hot, settings)
    now = features.select(
        "link", "length", "level", "block", at_ms="start_ms", then=features.start_ms + settings.ahead_ms
    )
    later = windows.table.select("link", "start_ms", "ppm")
    pairs = now.join(later, [("link", "link"), ("then", "start_ms")])
    part = ibis.ifelse(pairs.at_ms <= learn_to, 0, ibis.ifelse(pairs.at_ms >= cut, 1, 2))
    rows = pairs.mutate(later=part, stays=(pairs.ppm > settings.hot_ppm).ifelse(1, 0))
    keys = ("later", "link", "length", "level", "block")
    grouped = rows.group_by(*keys).agg(n=rows.count(), stayed=rows.stays.sum().cast("int64"))
    table = windows.samples.engine.arrow(grouped.order_by(*keys))
    return {name: table[name].to_numpy() for name in (*keys, "n", "stayed")}


def _counts(indices: numpy.ndarray, n: numpy.ndarray, stayed: numpy.ndarray) -> Floats:
    """Seen and stayed of each cell, shape (2, lengths, levels, blocks)."""
    counts = numpy.zeros((2, LENGTHS, LEVELS, BLOCKS))
    for count, values in zip(counts, (n, stayed), strict=True):
        numpy.add.at(count, tuple(indices.T), values)
    return counts


def _chances(counts: Floats, rate: float) -> Floats:
    """The chance of each cell, shrunk towards its parent's: shape (lengths, levels, blocks)."""
    parent: Floats = numpy.full((LENGTHS, 1, 1), rate)
    for axes in ((2, 3), (3,), ()):
        seen, stayed = counts.sum(axis=axes, keepdims=True) if axes else counts
        parent = (stayed + PRIOR_WEIGHT * parent) / (seen + PRIOR_WEIGHT)
    return parent


def _scores(held_out: dict[str, numpy.ndarray], hazard: Floats, rate: float, seed: int) -> tuple[Score, ...]:
    n, stayed = held_out["n"].astype(float), held_out["stayed"].astype(float)
    chances = (numpy.ones(len(n)), numpy.full(len(n), rate), hazard)
    errors = [stayed * (1 - p) ** 2 + (n - stayed) * p**2 for p in chances]
    _, link = numpy.unique(held_out["link"], return_inverse=True)
    by_link: Floats = numpy.stack([numpy.bincount(link, error) for error in errors], axis=1)
    resamples = _resample(by_link, seed)
    result = []
    for index, (name, chance) in enumerate(zip(PREDICTORS, chances, strict=True)):
        says_hot = chance >= 0.5
        right = float(stayed[says_hot].sum())
        result.append(
            Score(
                name,
                float(errors[index].sum() / n.sum()),
                right / float(n[says_hot].sum()) if says_hot.any() else None,
                right / float(stayed.sum()) if stayed.any() else None,
                *(_skill(by_link.sum(axis=0), resamples, index, other) for other in (0, 1)),
            )
        )
    return tuple(result)


def _resample(by_link: Floats, seed: int) -> Floats:
    """Sums over links drawn with replacement, shape (resamples, predictors)."""
    random, links = numpy.random.default_rng(seed), len(by_link)
    draws = (numpy.bincount(random.integers(0, links, links), minlength=links) for _ in range(RESAMPLES))
    return numpy.stack([draw @ by_link for draw in draws])


def _skill(error: Floats, resamples: Floats, index: int, other: int) -> tuple[float, float, float] | None:
    """1 - error / other's, and the interval of 95 % of resamples; None if the other makes no error."""
    if not error[other]:
        return None
    valid = resamples[resamples[:, other] > 0]
    low, high = numpy.quantile(1 - valid[:, index] / valid[:, other], [0.025, 0.975])
    return float(1 - error[index] / error[other]), float(low), float(high)


def _best_predictor(scores: tuple[Score, ...]) -> str:
    """The hazard table if it beats both baselines with 95 % confidence, else the better baseline."""
    persistence, base, hazard = scores
    if all(skill and skill[1] > 0 for skill in (hazard.skill, hazard.over_base)):
        return hazard.predictor
    return base.predictor if base.brier < persistence.brier else persistence.predictor


def _now(
    windows: Windows,
    hot: ibis.Table,
    last: int,
    settings: Settings,
    counts: Floats,
    rate: float | None,
    predictor: str | None,
) -> pyarrow.Table:
    engine = windows.samples.engine
    places = engine.table(windows.samples.links.select(["link", "name"]))
    features = _features(hot.filter(hot.start_ms == last), settings).join(places, "link")
    rows = engine.arrow(features.order_by("run_ms", "link")).to_pylist()
    hazard = _chances(counts, rate) if rate is not None else None
    result = []
    for row in rows:
        cell = (row["length"], row["level"], row["block"])
        chance: float | None = None
        if predictor == "hazard" and hazard is not None:
            chance = float(hazard[cell])
        elif predictor is not None:
            chance = rate if predictor == "base rate" else 1.0
        result.append(
            {
                "name": row["name"],
                "since_ms": row["run_ms"],
                "ppm": row["ppm"],
                "chance": chance,
                "like_it": int(counts[0][cell]) if predictor == "hazard" else int(counts[0].sum()),
            }
        )
    return pyarrow.Table.from_pylist(result, _NOW_SCHEMA)


_NOW_SCHEMA = pyarrow.schema(
    [
        ("name", pyarrow.string()),
        ("since_ms", pyarrow.int64()),
        ("ppm", pyarrow.int64()),
        ("chance", pyarrow.float64()),
        ("like_it", pyarrow.int64()),
    ]
)
