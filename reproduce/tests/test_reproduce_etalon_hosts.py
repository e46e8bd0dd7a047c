"""The time of hosts that is fitted on Packet80: the fit, its scenarios, and the rows."""

import math
from dataclasses import replace

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as some

from leeward import packets
from leeward_reproduce.etalon import comparison, hosts, paper
from leeward_reproduce.etalon.experiments import Rings, rings, rings_scenario
from leeward_reproduce.etalon.hosts import FITTED, HostTime, distance, fit
from leeward_reproduce.rows import row_key

TIMES = numpy.array([1.0, 3.0])
RUN = Rings(TIMES, TIMES, TIMES, TIMES, 0.0, 0.0)


@given(some.floats(0.1, hosts.MOST_US - 0.1))
def test_the_fit_finds_the_time_at_which_a_growing_value_reaches_its_target(exact: float) -> None:
    found = fit(lambda host_us: 0.5 + 0.01 * host_us, 0.5 + 0.01 * exact)
    assert found == pytest.approx(exact, abs=hosts.STEP_US)


def test_there_is_no_fit_if_the_target_is_out_of_reach() -> None:
    assert fit(lambda host_us: 1.0 + host_us, 0.9) is None
    assert fit(lambda host_us: 1.0 + host_us, 1.0 + 2 * hosts.MOST_US) is None
    # Without a flow that ends, the system is too slow.
    assert fit(lambda _: None, 1.0) is None


def test_a_time_of_hosts_delays_each_packet_twice_on_every_path() -> None:
    plain = rings_scenario(1, "10ms", 2, FITTED)
    slow = rings_scenario(1, "10ms", 2, FITTED, host_us=10.0)
    assert {
        name: slow["network"].pop(name) for name in ("downlink_delay", "circuit_delay", "local_delay")
    } == {
        "downlink_delay": "25000ns",
        "circuit_delay": "50000ns",
        "local_delay": "20000ns",
    }
    assert slow == plain
    # A segment passes two hosts.
    flow = {"from": [0, 0], "to": [1, 0], "bytes": "1kB"}
    times = []
    for host_us in (0.0, 10.0):
        network = rings_scenario(1, "10ms", 2, FITTED, host_us=host_us)["network"] | {"jitter": "0s"}
        run = packets.simulate({"network": network, "workload": {"flows": [flow]}, "horizon": "1s"})
        times.append(run.flows()["finished_s"][0].as_py())
    assert times[1] - times[0] == pytest.approx(20e-6, abs=1e-9)


def test_small_flows_take_longer_with_a_time_of_hosts() -> None:
    medians = [float(numpy.median(rings(1, "20ms", 2, FITTED, host_us=us).small)) for us in (0.0, 20.0, 50.0)]
    assert medians == sorted(medians)
    assert medians[0] < medians[-1]


def test_the_distance_is_a_geometric_mean_of_ratios_without_the_fitted_system() -> None:
    values = dict.fromkeys(paper.SYSTEMS, 1.0)

    def get(run: Rings) -> float | None:
        return float(run.packet_gib)

    runs = {system: replace(RUN, packet_gib=value) for system, value in values.items()}
    papers = [2.0 if at % 2 else 0.5 for at in range(len(paper.SYSTEMS))]
    assert distance(runs, get, papers) == pytest.approx(2.0)
    far = runs | {FITTED: replace(RUN, packet_gib=1000.0)}
    assert distance(far, get, papers) == pytest.approx(2.0)
    assert distance({}, get, papers) is None
    assert distance(runs, lambda _: None, papers) is None


def test_the_constant_is_fitted_once_and_is_that_of_all_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, str, float]] = []

    def run(seed: int, horizon: str, count: int, system: str, host_us: float | None = None) -> Rings:
        seen.append((seed, system, host_us or 0.0))
        # The median is that of the paper with 10 us.
        return replace(RUN, small=numpy.array([paper.MEDIAN_SMALL[-1] * (host_us or 0.0) / 10.0]))

    monkeypatch.setattr(hosts, "FITTED", paper.SYSTEMS[-1])
    monkeypatch.setattr(hosts, "rings", run)
    hosts.constant.cache_clear()
    try:
        times = {hosts.host_time(seed, "1s").host_us for seed in (1, 2, 3)}
    finally:
        hosts.constant.cache_clear()
    (constant,) = times
    assert constant == pytest.approx(10.0, abs=hosts.STEP_US)
    fits = {seed for seed, _, host_us in seen if host_us not in (0.0, constant)}
    assert fits == {hosts.FIT_SEED}


def test_rows_of_small_flows_name_their_row_with_the_time_of_hosts() -> None:
    runs = dict.fromkeys(paper.SYSTEMS, replace(RUN, small=numpy.array([100.0])))
    rows = {row.quantity: row for row in comparison.two_rings([runs])}
    known = {row_key("hosts", row.quantity) for row in hosts.rows([HostTime(12.0, runs, runs)])}
    tail = rows[f"table 2, completion of small flows, p99: {FITTED}"]
    assert tail.variant in known
    # The fit has this value, which is no test.
    assert rows[f"table 2, completion of small flows, median: {FITTED}"].variant == ""
    assert {row.variant for row in rows.values()} <= known | {""}


def test_rows_have_the_fit_and_the_distances_and_are_not_compared() -> None:
    runs = dict.fromkeys(paper.SYSTEMS, RUN)
    rows = {row.quantity: row for row in hosts.rows([HostTime(12.0, runs, runs)] * 3)}
    constant = rows["time that a host takes for a packet"]
    assert (constant.ours, constant.ci_low) == (12.0, None)
    fitted = rows[f"completion of small flows, median: {FITTED}"]
    assert (fitted.paper, fitted.ours, fitted.holds) == (0.65, 2.0, None)
    assert fitted.note.endswith("the fit has this value")
    assert all(row.holds is None for row in rows.values())
    name = "completion of small flows, median: distance from the paper"
    ratios = [
        max(2.0 / value, value / 2.0)
        for system, value in zip(paper.SYSTEMS, paper.MEDIAN_SMALL, strict=True)
        if system != FITTED
    ]
    expected = 100 * (math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) - 1)
    assert rows[f"{name}, without the time of hosts"].ours == pytest.approx(expected)
    assert rows[f"{name}, with the time of hosts"].ours == pytest.approx(expected)
    missing = hosts.rows([HostTime(None, runs, {})])
    assert (missing[0].quantity, missing[0].ours) == (constant.quantity, None)
    assert [row.ours is None for row in missing if row.quantity.endswith(", with the time of hosts")] == [
        True
    ] * 3
