"""Choreo's measurements in the packet simulator."""

import numpy
import pytest

from leeward import _native, packets
from leeward_reproduce.choreo import simulated
from leeward_reproduce.choreo.packet_network import (
    Network,
    Train,
    Transfer,
    estimate_rates,
    measure_transfers,
)

PATH = ((0, 0), (1, 0))


def test_paths_and_trains_follow_the_rate_limit_of_the_source() -> None:
    network = Network(2, 1, {PATH[0]: 300e6})
    (arrived,) = measure_transfers(network, [Transfer(PATH)], [PATH], 0.5, 0.05)
    assert len(arrived) == 10
    assert 8 * arrived[1:].mean() / 0.05 == pytest.approx(300e6 * 1448 / 1500, rel=0.002)
    (estimate,) = estimate_rates(network, [Train(PATH, 10, 200)])
    assert estimate == pytest.approx(300e6 * 1472 / 1500, rel=0.01)
    # The content of a large bucket passes at the rate of the wire.
    (short,) = estimate_rates(Network(2, 1, {PATH[0]: 300e6}, bucket=128_000), [Train(PATH, 10, 50)])
    assert short > 1.1 * estimate


def test_a_transfer_that_ends_early_is_counted_once() -> None:
    network = Network(2, 1, {PATH[0]: 100e6})
    (arrived,) = measure_transfers(network, [Transfer(PATH, size=1_000_000)], [PATH], 0.5, 0.05)
    assert len(arrived) == 10
    assert arrived.sum() == 1_000_000
    assert not arrived[3:].any()


def test_trains_have_a_table_and_lost_trains_have_no_rate() -> None:
    # All but the first packets are lost at a queue that is full.
    run = packets.simulate(
        {
            "network": {"racks": 2, "hosts_per_rack": 1, "packet_rate": "1kbps", "voq_capacity": 1},
            "trains": [{"from": [0, 0], "to": [1, 0], "packets": 2, "bursts": 1}],
            "horizon": "1s",
        }
    )
    (row,) = run.trains().to_pylist()
    assert (row["sent_packets"], row["received_packets"], row["rate_bps"]) == (2, 0, None)
    assert packets.tables(run)["trains"].to_pylist() == packets.summary(run)["trains"] == [row]


def test_a_mesh_repeats_with_its_seed_and_has_the_hops_of_its_racks() -> None:
    actual = simulated.mesh(3)
    simulated.mesh.cache_clear()
    again = simulated.mesh(3)
    assert (actual.tcp == again.tcp).all()
    assert (actual.trains == again.trains).all()
    assert set(actual.hops) == {2.0, 4.0}
    # All paths of a machine have the rate of its limit; every tenth path is of the same machine.
    by_machine = actual.tcp.reshape(9, 10)
    assert (numpy.ptp(by_machine, axis=0) < 0.01 * by_machine.mean(axis=0)).all()
    assert (numpy.abs(actual.trains / actual.tcp - 1) < 0.05).all()


def test_paths_are_steady_unless_the_uplink_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "TIMES", 40)
    monkeypatch.setattr(simulated, "LAGS_S", (1, 5))
    actual = simulated.stability(1)
    mean = {
        name: [numpy.mean([lag["mean"] for lag in path.lags]) for path in paths]
        for name, paths in actual.items()
    }
    assert all(len(path.rates) == 40 for paths in actual.values() for path in paths)
    assert max(mean["with room above"]) < 0.01 < min(mean["with a full link above"])


def test_hose_and_pipe_limits_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "PAIRS", 4)
    actual = simulated.protocol(2)
    hose, pipes = actual["hose"], actual["pipes"]
    assert (hose.kind, hose.four, hose.one) == ("hose", 0.0, 100.0)
    assert hose.sum == pytest.approx(100, abs=3)
    assert (pipes.kind, pipes.four, pipes.one) == ("pipe", 0.0, 0.0)
    assert pipes.sum == pytest.approx(200, abs=6)


def test_stability_is_computed_by_the_probe_module() -> None:
    (stability,) = _native.probe_stability([8e8, 1e9, 5e8], 1.0, [1.0])
    assert (stability["pairs"], stability["median"], stability["mean"], stability["p95"]) == (
        2,
        0.2,
        0.6,
        1.0,
    )
    assert _native.probe_stability([8e8], 1.0, [1.0]) == []
