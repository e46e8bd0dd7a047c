"""Rows of figures on real disks: the thesis, the simulator, the bed, and what is expected of the bed.

The thesis has a single run of each experiment: 100 % if it keeps the SLOs, else 0 %. Intervals are over
seeds.
"""

from dataclasses import dataclass
from math import fsum

from leeward_reproduce.real.rows import Values, agreement, row
from leeward_reproduce.rows import Row
from leeward_reproduce.slo import paper
from leeward_reproduce.slo.real import chapter3, chapter4, chapter5
from leeward_reproduce.slo.real.bench import Outcomes
from leeward_reproduce.slo.real.cases import NAMES, PERCENTILE
from leeward_reproduce.slo.real.overhead import Overhead
from leeward_reproduce.slo.real.quantities import (
    Runs,
    all_within,
    at_least,
    at_most,
    carried,
    condition_rows,
    kept,
    late_of_thousand,
    milliseconds,
    promise_rows,
    requests,
    share_within,
    values,
    windows_missed,
    worst,
)
from leeward_reproduce.slo.real.scenario import Scenario

AT = f"at {PERCENTILE:g} %"
LEAST_REQUESTS = 1e5
"""Requests within their limits that have to be seen."""
MOST_ADDED_US, LEAST_THROUGHPUT = 150.0, 90.0
"""Largest latency that the storage enforcer may add, in microseconds, and least throughput through it, in
percent of the throughput without it."""
_MILD = "drawn gaps have milder bursts than a real trace, so that the burst of this limit is small"
OVERRUNS = {"enforced": "as the thesis enforces", "demoted": "demoted at disks alone"}
"""Treatments of requests over a limit, in words."""


@dataclass(frozen=True)
class Results:
    """All runs that the selected figures need.

    Attributes:
        outcomes: Runs of each case, seed by seed.
        overhead: Overhead of the storage enforcer; None if no figure needs it.
    """

    outcomes: Outcomes
    overhead: Overhead | None = None


def within(results: Results) -> list[Row]:
    """Requests of workloads within their limits against their bounds."""
    figure, outcomes = "within", results.outcomes[chapter3.WITHIN_CASE]
    sent = row(figure, "PM: requests within limits", "requests", values(outcomes, requests("pm")))
    return [
        at_least(sent, LEAST_REQUESTS),
        *promise_rows(figure, outcomes, "pm", "PM"),
        *condition_rows(figure, outcomes),
    ]


def limited(results: Results) -> list[Row]:
    """Figure 3.2."""
    figure, outcomes = "3.2", results.outcomes[chapter3.LIMITED]
    note = "B, which is first, floods the disk; A is M, and C is L"
    first = chapter3.LIMITS[0]
    result = promise_rows(figure, outcomes, first.name, _words(first.name))
    for policy in chapter3.LIMITS:
        words = _words(policy.name)
        for which, name in (("M", "A"), ("L", "C")):
            latency = values(outcomes, milliseconds(policy.name, name))
            result.append(row(figure, f"{words}: {which}, latency {AT}", "ms", latency))
        both = values(outcomes, all_within(policy.name, ("A", "C")))
        value = paper.LIMITED["all" if policy is first else "one"]
        own = f"{note}; {_MILD}" if policy.name == "medium-rate" else note
        of_both = row(figure, f"{words}: seeds with both within", "%", both, value, own)
        result.append(at_least(of_both, 100) if policy is first else at_most(of_both, 0))
    return result + condition_rows(figure, outcomes)


def _words(policy: str) -> str:
    return policy.replace("-", " ")


def shared(results: Results) -> list[Row]:
    """Figure 3.3."""
    figure, outcomes = "3.3", results.outcomes[chapter3.SHARED]
    names = tuple(chapter3.SLOS)
    result = promise_rows(figure, outcomes, "pm", "PM")
    for policy, words in NAMES.items():
        value = paper.SHARED if policy == "pm" else None
        label = f"{words}: of three, within {AT}"
        of_three = row(figure, label, "workloads", values(outcomes, kept(policy, names)), value)
        if policy == "pm":
            of_three = at_least(of_three, 3)
        elif policy in ("ps", "fifo"):
            of_three = at_most(of_three, 2)
        over = values(outcomes, worst(policy, names))
        copied = values(outcomes, carried(policy, chapter3.copy_name("s0")))
        result += [
            of_three,
            row(figure, f"{words}: latency over SLO {AT}, the worst of three", "x", over),
            row(figure, f"{words}: copied", "MB/s", copied),
        ]
    medians = {
        f"PM: {name}, median latency": values(outcomes, milliseconds("pm", name, "p50")) for name in names
    }
    result += [row(figure, label, "ms", of_seeds) for label, of_seeds in medians.items()]
    result += [agreement(figure, label, of_seeds) for label, of_seeds in medians.items()]
    return result + condition_rows(figure, outcomes)


def bursts(results: Results) -> list[Row]:
    """Figure 3.5."""
    figure, result = "3.5", []
    for letter, case in chapter3.BURSTY.items():
        outcomes = results.outcomes[case]
        for policy in ("pm", "fifo"):
            label = f"{letter}: {NAMES[policy]}"
            latency = values(outcomes, milliseconds(policy, letter, "p99"))
            share = values(outcomes, all_within(policy, (letter,), "p99"))
            value = paper.BURSTS.get((letter, policy, 99.0))
            holds = row(figure, f"{label}: seeds within the SLO at 99 %", "%", share, value)
            result += [
                row(figure, f"{label}: latency at 99 %", "ms", latency),
                at_least(holds, 100) if policy == "pm" else holds,
            ]
        result += promise_rows(figure, outcomes, "pm", f"{letter}: PM")
        result += condition_rows(figure, outcomes, f"{letter}: ")
    return result


def isolated(results: Results) -> list[Row]:
    """Figure 3.6."""
    figure, result = "3.6", []
    for words, case in (("beside D", chapter3.CALM), ("beside E", chapter3.FLOODED)):
        outcomes = results.outcomes[case]
        for policy in ("pm", "fifo"):
            is_kept = case is chapter3.CALM or policy == "pm"
            label = f"C {words}: {NAMES[policy]}"
            latency = values(outcomes, milliseconds(policy, "C"))
            share = values(outcomes, all_within(policy, ("C",)))
            value = paper.ISOLATED["calm" if case is chapter3.CALM else "pm" if is_kept else "others"]
            holds = row(figure, f"{label}: seeds within the SLO", "%", share, value)
            result += [
                row(figure, f"{label}: latency {AT}", "ms", latency),
                at_least(holds, 100) if is_kept else at_most(holds, 0),
            ]
        result += promise_rows(figure, outcomes, "pm", f"{words}: PM")
        result += condition_rows(figure, outcomes, f"{words}: ")
    return result


def linked(results: Results) -> list[Row]:
    """Figure 3.7."""
    figure, outcomes = "3.7", results.outcomes[chapter3.LINKED]
    names = tuple(chapter3.LINK_SLOS)
    result = promise_rows(figure, outcomes, "pm", "client ingress: PM")
    for policy in chapter3.LINKED.policies:
        label = f"client ingress: {NAMES[policy.name]}"
        value = paper.BOTTLENECK if policy.name == "pm" else None
        words = f"{label}: of four, within {AT}"
        of_four = row(figure, words, "workloads", values(outcomes, kept(policy.name, names)), value)
        if policy.name == "pm":
            of_four = at_least(of_four, 4)
        elif not policy.network:
            of_four = at_most(of_four, 3)
        over = values(outcomes, worst(policy.name, names))
        result += [of_four, row(figure, f"{label}: latency over SLO, the worst of four", "x", over)]
    return result + condition_rows(figure, outcomes)


def orders(results: Results) -> list[Row]:
    """Figure 3.9. The case of each order has the same seeds."""
    figure = "3.9"
    of_orders = [results.outcomes[case] for case in chapter3.ORDERS]
    every = [one for outcomes in of_orders for one in outcomes]
    names = tuple(chapter3.SLOS)
    result = promise_rows(figure, every, "pm", "PM")
    for policy, least in (("pm", 6.0), ("by-slo", 4.0)):
        holds = [values(outcomes, all_within(policy, names)) for outcomes in of_orders]
        seeds = len(of_orders[0])
        orders_kept = Values(
            [fsum(one.simulator[at] for one in holds) / 100 for at in range(seeds)],
            [fsum(one.real[at] for one in holds) / 100 for at in range(seeds)],
            seeds,
        )
        label = f"{NAMES[policy]}: orders of six with all within {AT}"
        of_six = row(figure, label, "orders", orders_kept, paper.ORDERS[policy])
        over = values(every, worst(policy, names))
        result += [
            at_least(of_six, least),
            row(figure, f"{NAMES[policy]}: latency over SLO {AT}, the worst of three", "x", over),
        ]
    return result + condition_rows(figure, every)


def admitted(results: Results) -> list[Row]:
    """Figure 4.10."""
    figure, outcomes = "4.10", results.outcomes[chapter4.ADMITTED]
    missed = row(
        figure,
        "SNC: of these miss an SLO in a window of 3 min",
        "%",
        values(outcomes, windows_missed("snc")),
        0.0,
    )
    note = f"of {chapter4.WORKLOADS} that arrive"
    return [
        row(figure, "SNC: admitted", "workloads", values(outcomes, _placed), note=note),
        at_most(missed, 0),
        row(figure, f"SNC: latency over SLO {AT}, the worst", "x", values(outcomes, worst("snc"))),
        *condition_rows(figure, outcomes),
    ]


def _placed(_: Runs, scenario: Scenario) -> float:
    return float(len(scenario.members))


def _servers(_: Runs, scenario: Scenario) -> float:
    return float(len({one.server for one in scenario.members}))


def held_out(figure: str, results: Results) -> list[Row]:
    """Figure 5.5 or 5.6."""
    note = f"of {chapter5.WORKLOADS} that arrive; margin of {chapter5.MARGIN:.0%}"
    cases = chapter5.CASES[figure]
    own = results.outcomes[cases["own"]]
    result = [
        row(figure, "packed", "workloads", values(own, _placed), note=note),
        row(figure, "servers", "servers", values(own, _servers)),
    ]
    for half, case in cases.items():
        outcomes = results.outcomes[case]
        for policy in case.policies:
            label = f"{half} half, {OVERRUNS[policy.name]}"
            value = paper.HELD_OUT if half == "held-out" else None
            share = values(outcomes, share_within(policy.name))
            late = values(outcomes, late_of_thousand(policy.name))
            over = values(outcomes, worst(policy.name))
            result += [
                at_least(
                    row(figure, f"{label}: workloads within their SLO", "%", share, value),
                    100 if half == "own" else 95,
                ),
                row(figure, f"{label}: late requests, of a thousand", "", late),
                row(figure, f"{label}: largest {PERCENTILE:g} % latency over its SLO", "x", over),
            ]
        result += condition_rows(figure, outcomes, f"{half} half: ")
    return result


def overhead(results: Results) -> list[Row]:
    """Overhead of the storage enforcer, with intervals over pairs of measurements."""
    figure, measured = "overhead", results.overhead
    assert measured is not None
    count, note = len(measured.latency_s), "the interval is over pairs of measurements"

    def of_pairs(quantity: str, unit: str, numbers: list[float]) -> Row:
        return row(figure, quantity, unit, Values([], numbers, count), note=note)

    added = [1e6 * (through - direct) for direct, through in measured.latency_s]
    shares = [100 * through / direct for direct, through in measured.bytes_per_s]
    return [
        at_most(of_pairs("median latency that it adds", "us", added), MOST_ADDED_US),
        at_least(of_pairs("throughput, of that without it", "%", shares), LEAST_THROUGHPUT),
        of_pairs("median latency without it", "us", [1e6 * direct for direct, _ in measured.latency_s]),
        of_pairs("throughput without it", "MB/s", [direct / 1e6 for direct, _ in measured.bytes_per_s]),
    ]
