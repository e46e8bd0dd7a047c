"""Rows of figures 6, 7, 8 and 9 and of section 7.4, which share their runs."""

import math
from collections.abc import Callable

import numpy

from leeward_reproduce.real.rows import agreement, row, values
from leeward_reproduce.rows import Reason, Row
from leeward_reproduce.sinbad import paper
from leeward_reproduce.sinbad.real import quantities
from leeward_reproduce.sinbad.real.cases import BASE, DEFAULT, SHAPE, SINBAD, Case
from leeward_reproduce.sinbad.real.pairs import Results, Runs
from leeward_reproduce.sinbad.real.quantities import mean, ratio, tail
from leeward_reproduce.sinbad.real.scenario import SIZES

CASES = (BASE,)
POLICIES = (DEFAULT, SINBAD)
ONE = "files of one block"
FILES = "files of one to four blocks; the paper's are all writes of a job"
_ONE_HOT = Reason("one of four racks is hot, so that most blocks of HDFS's policy avoid it by chance")
_TEXTS = {
    "downlink": "links into racks",
    "uplink": "links out of racks",
    "ingress": "links into machines",
    "egress": "links out of machines",
}
_RACKS = {"downlink": paper.CV_DECREASE["rack_downlink_cv"], "uplink": paper.CV_DECREASE["rack_uplink_cv"]}
_MACHINES = {
    "ingress": paper.MACHINES_CV_DECREASE["host_ingress_cv"],
    "egress": paper.MACHINES_CV_DECREASE["host_egress_cv"],
}
"""Decreases in the paper by direction: of figures 8 and 9."""
_REASONS = {
    "downlink": Reason("background, which does not move, is most of the load"),
    "uplink": Reason("writers are not placed, and background comes from outside of racks"),
    "egress": Reason("writers are not placed, and background comes from outside of racks"),
    "ingress": Reason("background goes into one machine of each rack, and does not move"),
}
_FEW = Reason(
    f"34 blocks of three copies on average, on {SHAPE.racks * SHAPE.hosts_per_rack} machines; the paper's are"
    " thousands"
)


def blocks(results: Results) -> list[Row]:
    """Figure 6."""
    pairs = results[BASE]
    times = {policy: values(quantities.time(policy), pairs) for policy in POLICIES}
    return [
        row(
            "6",
            "blocks, mean: default / sinbad",
            "x",
            values(ratio(mean, 1), pairs),
            paper.MACHINES_BLOCKS,
            ONE,
            _ONE_HOT,
        ),
        row(
            "6",
            "files, mean: default / sinbad",
            "x",
            values(ratio(mean), pairs),
            paper.MACHINES_WRITES,
            FILES,
            _ONE_HOT,
        ),
        row("6", "files, median: default / sinbad", "x", values(ratio(_median), pairs)),
        row("6", "files, 90th percentile: default / sinbad", "x", values(ratio(tail), pairs)),
        *(row("6", f"time of a file, mean: {policy}", "s", times[policy]) for policy in POLICIES),
        *(agreement("6", f"time of a file, mean: {policy}", times[policy]) for policy in POLICIES),
        placed_by_hdfs("6", BASE, results),
        *(
            row("6", f"processors in use: {policy}", "%", values(quantities.busy(policy), pairs))
            for policy in POLICIES
        ),
    ]


def placed_by_hdfs(figure: str, case: Case, results: Results, words: str = "") -> Row:
    """The share of the blocks of `sinbad` in a case that HDFS's default policy placed."""
    of_seeds = values(quantities.placed_by_hdfs(SINBAD), results[case])
    return row(figure, f"blocks that HDFS's policy placed{words}: sinbad", "%", of_seeds)


def sizes(results: Results) -> list[Row]:
    """Figure 7."""
    note = "the paper: no significant difference between sizes"
    return [
        row(
            "7",
            f"files of {size} block{'s' * (size > 1)}, mean: default / sinbad",
            "x",
            values(ratio(mean, size), results[BASE]),
            note=note,
        )
        for size in SIZES
    ]


def storage(results: Results) -> list[Row]:
    """Section 7.4."""
    mean_gb = 1000 * paper.STORAGE_TB / paper.MACHINES
    reported = {
        DEFAULT: paper.STORAGE_GB["uniform"] / mean_gb,
        SINBAD: paper.STORAGE_GB["sinbad"] / mean_gb,
    }
    growth = reported[SINBAD] - reported[DEFAULT]
    return [
        *(_stored("machine", policy, results, reported[policy]) for policy in POLICIES),
        _stored_growth("machine", results, growth),
        *(_stored("rack", policy, results) for policy in POLICIES),
        _stored_growth("rack", results),
        *(
            agreement("7.4", f"Cv of bytes by {by}: {policy}", values(_stored_cv(by, policy), results[BASE]))
            for by in ("machine", "rack")
            for policy in POLICIES
        ),
    ]


def rack_imbalance(results: Results) -> list[Row]:
    """Figure 8."""
    return _imbalance("8", results, _RACKS)


def machine_imbalance(results: Results) -> list[Row]:
    """Figure 9."""
    return _imbalance("9", results, _MACHINES)


def _imbalance(figure: str, results: Results, reported: dict[str, float]) -> list[Row]:
    pairs = results[BASE]
    levels = {
        f"median Cv, {_TEXTS[way]}: {policy}": values(quantities.median_cv(policy, way), pairs)
        for way in reported
        for policy in POLICIES
    }
    return [
        *(
            row(
                figure,
                f"decrease of the median Cv, {_TEXTS[way]}: default - sinbad",
                "",
                values(_decrease(way), pairs),
                decrease,
                reason=_REASONS[way],
            )
            for way, decrease in reported.items()
        ),
        *(row(figure, text, "", of_seeds) for text, of_seeds in levels.items()),
        *(agreement(figure, text, of_seeds) for text, of_seeds in levels.items()),
    ]


def _decrease(way: str) -> Callable[[Runs], float]:
    return lambda runs: runs[DEFAULT].cv[way] - runs[SINBAD].cv[way]


def _stored(by: str, policy: str, results: Results, reported: float | None = None) -> Row:
    text = f"Cv of bytes by {by} after the run: {policy}"
    return row("7.4", text, "", values(_stored_cv(by, policy), results[BASE]), reported, reason=_FEW)


def _stored_growth(by: str, results: Results, reported: float | None = None) -> Row:
    def growth(runs: Runs) -> float:
        return _stored_cv(by, SINBAD)(runs) - _stored_cv(by, DEFAULT)(runs)

    text = f"growth of the Cv of bytes by {by}: sinbad - default"
    return row("7.4", text, "", values(growth, results[BASE]), reported, reason=_FEW)


def _stored_cv(by: str, policy: str) -> Callable[[Runs], float]:
    """Standard deviation over mean of the bytes by `machine` or `rack`; NaN without bytes."""

    def cv(runs: Runs) -> float:
        total: dict[str, int] = {}
        for host, count in runs[policy].stored.items():
            place = host.partition("h")[0] if by == "rack" else host
            total[place] = total.get(place, 0) + count
        stored = numpy.array(list(total.values()), dtype=numpy.float64)
        return float(stored.std() / stored.mean()) if stored.any() else math.nan

    return cv


def _median(numbers: list[float]) -> float:
    return float(numpy.median(numbers))
