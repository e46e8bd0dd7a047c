"""Choreo's lab: it has the rates of its topology, and apps send real bytes in it."""

import numpy
import pytest

from leeward_reproduce.choreo import lab, lab_runs, topology, workload
from leeward_reproduce.perform import reproduce
from support.parts import require_root


def test_a_lab_has_the_rates_of_its_topology() -> None:
    drawn = topology.Topology([1000.0] * 10, {(0, 1): 400.0}, (2, 3))
    assert [drawn.path(*pair) for pair in ((0, 1), (1, 0), (2, 3), (3, 2))] == [400, 1000, 4000, 4000]
    require_root()
    with lab.lab(drawn) as built:
        rates = {(pair["from"], pair["to"]): pair for pair in built.measured["pairs"]}
        ran = lab_runs.run_apps(built, "choreo", [(0.0, workload.App([(4.0, 0)] * 2, [(0, 1, 10**6)]))], 1)
    assert float(rates["h0", "h1"]["rate"].removesuffix("bps")) == pytest.approx(40e6, rel=0.15)
    assert rates["h2", "h3"]["same_machine"]
    assert float(numpy.median(numpy.abs(built.errors))) < 0.1
    ((seconds, hosts),) = ran
    assert set(hosts) == {"h2", "h3"}
    assert 0 < seconds < 1


def test_papers_without_a_lab_reject_it() -> None:
    with pytest.raises(ValueError, match="`sinbad` has no figures that run in a lab"):
        reproduce("sinbad", lab=True)
