"""UTP: figures 15 to 18, and tables 2 and 3."""

from collections.abc import Mapping, Sequence

from leeward_reproduce.figures import Results
from leeward_reproduce.hotspots import paper
from leeward_reproduce.hotspots.sweeps import (
    FLEET,
    FLEET_LOADS,
    PILOT,
    PILOT_GROWN,
    PILOT_LEEWARD,
    PILOT_STRICT,
    STRICT,
)
from leeward_reproduce.hotspots.windows import (
    Window,
    change,
    change_of,
    half,
    paired_p_value,
    run,
    student_p_value,
)
from leeward_reproduce.rows import Reason, Row, change_row, computed_row, measured_row
from leeward_reproduce.sweeps import Cells

FLEET_SWEEPS = (FLEET,)
PILOT_SWEEPS = (PILOT, PILOT_GROWN)
MOVES_SWEEPS = (PILOT,)
OBJECTIVES_SWEEPS = (PILOT, PILOT_STRICT)
LEEWARD_SWEEPS = (PILOT, PILOT_LEEWARD)

METRIC_WORDS = {
    "hot": "ToRs hot outbound",
    "p98": "p98 of ToRs' outbound utilization",
    "utilization": "utilization of all uplinks",
    "moves": "tasks moved",
    "violations": "network-intensive tasks put on hot ToRs",
}
"""Names of metrics in rows."""
LOADS = Reason("the paper publishes neither its loads nor the objectives of its scheduler")
_GROWTH = Reason(
    "the paper's cell grew between its windows for other reasons, and both policies have the same tasks here",
    "10.9 % more traffic, in the rows below",
)
_TWO_WINDOWS = "medians over days of two windows, with other tasks in each"
_ONE_WINDOW = "medians over days of one window, with the same tasks under both; ours"
_TABLE_2 = {"hot": paper.HOT_TORS, "p98": paper.P98, "utilization": paper.UTILIZATION}
_TABLE_3 = {"moves": paper.MOVES, "violations": paper.VIOLATIONS}

Pairs = Sequence[tuple[Window, Window]]
"""For each seed: the window before the change, of one policy, and the window after it, of another policy."""


def windows(
    cells: Cells, before: str, after: str, after_cells: Cells | None = None, value: str | None = None
) -> Pairs:
    """The windows before and after a change; the window after it may be of another sweep (`after_cells`)."""
    late = after_cells or cells
    first = [half(run(cells, before, seed, value), 0) for seed in cells.seeds]
    second = [half(run(late, after, seed, value), 1) for seed in cells.seeds]
    return list(zip(first, second, strict=True))


def _same(cells: Cells, before: str, after: str) -> Pairs:
    """The second window of each of two policies; the same tasks run in both windows."""
    return [(half(run(cells, before, seed), 1), half(run(cells, after, seed), 1)) for seed in cells.seeds]


def fleet_rows(results: Results) -> list[Row]:
    """Figure 15: hot compute ToRs of a fleet."""
    fleet, result = results[FLEET], []
    by_load = {load: windows(fleet, "borg", "utp", value=load) for load in FLEET_LOADS}
    sums = [
        tuple(sum(pair[at].mean("hot") for pair in pairs) for at in (0, 1))
        for pairs in zip(*by_load.values(), strict=True)
    ]
    label = "ToRs hot outbound, all cells: change of the mean, borg to utp"
    note = "the fleet is cells under three loads; the paper does not describe its own"
    values = _flat([change_of(before, after) for before, after in sums])
    result.append(change_row("15", label, values, paper.FLEET_HOT_TORS, note, LOADS))
    both = [
        [
            sum(run(fleet, policy, seed, load).mean("hot") for load in FLEET_LOADS)
            for policy in ("borg", "utp")
        ]
        for seed in fleet.seeds
    ]
    values = _flat([change_of(before, after) for before, after in both])
    note = "means of whole runs, with the same tasks under both; ours"
    result.append(change_row("15", f"{label}, same tasks", values, None, note))
    for load, pairs in by_load.items():
        words = f"at a load of {float(load):.0%}"
        values = [before.mean("hot") for before, _ in pairs]
        result.append(measured_row("15", f"ToRs hot outbound under borg, {words}", "%", values))
        values = _flat([change_of(before.mean("hot"), after.mean("hot")) for before, after in pairs])
        if values:
            result.append(change_row("15", f"ToRs hot outbound: change of the mean, {words}", values))
    return result


def pilot_rows(results: Results) -> list[Row]:
    """Figure 16 and table 2: one cell before and after UTP."""
    pilot, result = results[PILOT], []
    pairs = windows(pilot, "borg", "utp")
    result += _changes("table-2", "borg to utp", pairs, _TABLE_2, _TWO_WINDOWS)
    result += _changes(
        "table-2", "borg to utp, same tasks", _same(pilot, "borg", "utp"), _TABLE_2, _ONE_WINDOW
    )
    result += _significance("table-2", tuple(_TABLE_2), pairs, pilot, ("borg", "utp"))
    grown = windows(pilot, "borg", "utp", results[PILOT_GROWN])
    note = "the growth that the paper's cell saw, put in"
    result += _changes("table-2", "borg to utp with 10.9 % more traffic", grown, _TABLE_2, note)
    for at, policy in ((0, "borg"), (1, "utp")):
        values = [float(pair[at].mean("p98")) for pair in pairs]
        note = f"the paper: below {paper.THRESHOLD:g} %" if policy == "utp" else ""
        result.append(
            measured_row("table-2", f"{METRIC_WORDS['p98']} under {policy}, mean", "%", values, None, note)
        )
    return result


def moves_rows(results: Results) -> list[Row]:
    """Figures 17 and 18, and table 3: the reactive part alone, and both parts."""
    pilot, result = results[PILOT], []
    pairs = windows(pilot, "utp-reactive", "utp")
    result += _changes("table-3", "utp-reactive to utp", pairs, _TABLE_3, _TWO_WINDOWS)
    same = _same(pilot, "utp-reactive", "utp")
    result += _changes("table-3", "utp-reactive to utp, same tasks", same, _TABLE_3, _ONE_WINDOW)
    result += _significance("table-3", tuple(_TABLE_3), pairs, pilot, ("utp-reactive", "utp"))
    factors = {"moves": paper.MOVES_FACTOR, "violations": paper.VIOLATIONS_FACTOR}
    for metric, reported in factors.items():
        values = [
            before.mean(metric) / after.mean(metric) for before, after in pairs if after.mean(metric) > 0
        ]
        label = f"{METRIC_WORDS[metric]}: mean under utp-reactive / utp"
        note = "the paper in words, of averages; its medians are those above"
        result.append(measured_row("table-3", label, "x", values, reported, note, LOADS))
    return result


def objectives_rows(results: Results) -> list[Row]:
    """Cost of UTP for other objectives (section 5.1: no cost), and cost of spread, which ranks above UTP."""
    pilot, strict, result = results[PILOT], results[PILOT_STRICT], []
    for quantity, words, unit in (
        ("tasks.unplaced", "tasks that never had a host", ""),
        ("tasks.wait_s.mean", "mean wait for a host", "s"),
        ("tasks.processors", "share of processors in use", ""),
        ("tasks.stretch.mean", "time of tolerant tasks over their work alone", ""),
    ):
        before, after = pilot.by_seed(quantity, "borg"), pilot.by_seed(quantity, "utp")
        values = [after[seed] - before[seed] for seed in before if seed in after]
        note = "the paper: no regression of a key objective, without numbers"
        result.append(measured_row("objectives", f"{words}: utp less borg", unit, values, None, note))
    named = {"utp": "utp", STRICT: "utp, spread task by task (`spread: 0`)"}
    for metric in ("hot", "violations"):
        for policy, cells in (("utp", pilot), (STRICT, strict)):
            values = _means(cells, policy, metric)
            result.append(measured_row("objectives", f"{METRIC_WORDS[metric]}: {named[policy]}", "%", values))
    return result


def leeward_rows(results: Results) -> list[Row]:
    """`leeward` against `utp`, on the same arrivals."""
    pilot, leeward, result = results[PILOT], results[PILOT_LEEWARD], []
    for metric in ("hot", "p98", "moves", "violations"):
        ours, theirs = _means(leeward, "leeward", metric), _means(pilot, "utp", metric)
        unit = "a day" if metric == "moves" else "%"
        # `leeward` runs under the first seeds only.
        values = [one - other for one, other in zip(ours, theirs, strict=False)]
        note = "three seeds: single tasks are decided alike" if metric == "hot" else ""
        result.append(
            measured_row("leeward", f"{METRIC_WORDS[metric]}: leeward less utp", unit, values, None, note)
        )
    return result


def _changes(figure: str, words: str, pairs: Pairs, reported: Mapping[str, float], note: str) -> list[Row]:
    """Rows with the change of the median of samples."""
    result = []
    for metric, paper_value in reported.items():
        values = _flat([change(before.samples(metric), after.samples(metric)) for before, after in pairs])
        reason = _GROWTH if metric == "utilization" else LOADS
        label = f"{METRIC_WORDS[metric]}: change, {words}"
        result.append(change_row(figure, label, values, paper_value, note, reason))
    return result


def _significance(
    figure: str, metrics: Sequence[str], pairs: Pairs, cells: Cells, policies: tuple[str, str]
) -> list[Row]:
    """P-values of two tests: the paper's test of the samples of two windows, and a paired test over seeds."""
    result = []
    for metric in metrics:
        results = [student_p_value(before.samples(metric), after.samples(metric)) for before, after in pairs]
        share = 100 * sum(p < 0.05 for p in results) / len(results)
        label = f"{METRIC_WORDS[metric]}: seeds with p < 0.05 by Student's t, two windows"
        note = "the paper's test, on five days and five; it reports a significant change"
        result.append(computed_row(figure, label, "%", share, None, note))
        if len(cells.seeds) > 1:
            p = paired_p_value(*(_means(cells, policy, metric) for policy in policies))
            note = "the same tasks under both policies, means of whole runs; ours, and stronger"
            result.append(
                computed_row(
                    figure, f"{METRIC_WORDS[metric]}: p of a paired test over seeds", "", p, None, note
                )
            )
    return result


def _means(cells: Cells, policy: str, metric: str) -> list[float]:
    """The mean of a whole run, by seed."""
    return [run(cells, policy, seed).mean(metric) for seed in cells.seeds]


def _flat(lists: Sequence[Sequence[float]]) -> list[float]:
    return [value for values in lists for value in values]
