"""Experiments beyond Etalon: demand has its stated form, and runs are few."""

import numpy
import pytest

from leeward_reproduce.etalon import extensions
from leeward_reproduce.etalon.perform import ALIASES, FIGURES, runs


@pytest.mark.parametrize("racks", extensions.RACKS)
def test_each_rack_sends_and_receives_a_full_circuit_week(racks: int) -> None:
    matrix = extensions.demand(racks, seed=1)
    for axis in (0, 1):
        sums = matrix.sum(axis=axis)
        assert (sums <= extensions.WEEK_BYTES).all()
        assert (sums > extensions.WEEK_BYTES - racks).all()
    assert not numpy.diag(matrix).any()
    assert (matrix == extensions.demand(racks, seed=1)).all()
    assert (matrix != extensions.demand(racks, seed=2)).any()


def test_a_small_ring_is_sent_completely() -> None:
    actual = extensions.run_scenario(
        {
            "network": {"racks": 4, "hosts_per_rack": 2, "packet_switch": False, "voq_capacity": 256},
            "scheduler": {"name": "rotor"},
            "routing": {"name": "rotorlb"},
            "workload": {"collective": {"kind": "all_to_all", "bytes": "1MB"}},
            "horizon": "1s",
        }
    )
    assert (len(actual.small), len(actual.big), actual.unfinished) == (12, 0, 0)
    # The run ends with its last flow; the rate is that of all arrivals until then.
    assert actual.ended_ms == actual.small.max() < 1000
    assert actual.gbps == pytest.approx(12 * 0.25 * 8 / actual.ended_ms)
    assert actual.gbps > 0
    assert 0 < actual.passed < 100


def test_figures_beyond_the_paper_run_at_most_three_seeds() -> None:
    chosen = {name: FIGURES[name] for name in ("12", *ALIASES["beyond"])}
    assert runs(chosen, 10) == 10 + 3 * extensions.SEEDS
    assert runs(chosen, 2) == 8


def test_flows_of_a_ring_finish_after_the_arrivals_end() -> None:
    result = extensions.rotors(1, "3ms")
    ring = [one for (_, load), one in result.items() if load == "ring"]
    assert len(ring) == len(extensions.ROTORS) + 2
    assert all(one.unfinished == 0 for one in ring), ring
    assert any(one.ended_ms > 3 for one in ring)
    # The rate is at most that of circuits, the packet switch and the hosts within racks, for eight racks.
    assert all(0 < one.gbps < 8 * (80 + 10 + 160) for one in ring)


def test_runs_are_no_longer_than_the_given_horizon() -> None:
    assert extensions.shorter("20ms", "1s") == "20ms"
    assert extensions.shorter("2s", "1s") == "1s"
