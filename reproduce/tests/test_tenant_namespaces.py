"""`leeward tenant run` between namespaces: it measures, places, sends, and moves tasks off a slow host."""

import threading
from pathlib import Path
from typing import Any

import numpy
import pytest

from leeward import tenant
from leeward.lab import up
from leeward_reproduce.choreo import lab, lab_runs, workload
from leeward_reproduce.perform import reproduce
from support.parts import require_root

LIMITS = {"a": 30, "b": 50, "c": 50, "d": 90, "e": 50, "f": 50}
"""Rates of six hosts in Mb/s: the fourth is the fastest by far."""
HOSTS = [{"name": name, "nic": {"up": f"{rate}Mbps", "down": "1Tbps"}} for name, rate in LIMITS.items()]
SIX = {"racks": [{"hosts": HOSTS[:3]}, {"hosts": HOSTS[3:]}], "rack_link": "1Tbps"}


def app_file(folder: Path, size: str) -> Path:
    path = folder / "app.yaml"
    path.write_text(
        "tasks: [{name: a, cpus: 1}, {name: b, cpus: 1}, {name: c, cpus: 1}]\n"
        f"transfers: [{{from: a, to: b, bytes: {size}}}, {{from: c, to: b, bytes: 2MB}}]\n"
    )
    return path


def test_an_app_runs_as_forecast_and_leaves_a_host_that_becomes_slow(tmp_path: Path) -> None:
    require_root()
    with up(SIX) as network:
        hosts = tenant.lab_hosts(network.name, cpus="1")
        settings: dict[str, Any] = {"measure": "always", "policies": "choreo"}
        small = tenant.run(app_file(tmp_path, "15MB"), hosts, **settings)
        (one,) = small["runs"]
        # The fastest host sends the large transfer.
        assert one["transfers"][0]["from_host"] == "d"
        assert one["wall_s"] == pytest.approx(one["forecast_s"], rel=0.25)
        assert small["network"]["bytes"] > 30 * 10 * 200 * 1472

        begun = threading.Event()
        slowed: list[str] = []

        def slow(text: str) -> None:
            """Slows the sender down shortly after the run has begun."""
            if text.startswith("running"):
                begun.set()

        def when_begun() -> None:
            begun.wait(60)
            source = one["transfers"][0]["from_host"]
            network.limit(f"{source}:egress", "15Mbps")
            slowed.append(source)

        thread = threading.Thread(target=when_begun)
        thread.start()
        result = tenant.run(
            app_file(tmp_path, "80MB"), hosts, again="2s", state="1MB", on_step=slow, **settings
        )
        thread.join()
    (run,) = result["runs"]
    (large, _) = run["transfers"]
    assert large["pieces"] > 1
    moved = {move["task"]: move for move in run["moves"]}
    assert moved["a"]["from"] == slowed[0]
    assert moved["a"]["state_bytes"] == 1_000_000
    # At 15 Mbit/s, the transfer alone would take 43 s.
    assert run["wall_s"] < 38
    looks = [look for look in run["looks"] if look.get("moves")]
    assert looks[0]["gain_s"] > 5
    assert looks[0]["seen_s"] > 5


def test_a_lab_has_the_rates_of_its_topology() -> None:
    topology = lab.Topology([1000.0] * 10, {(0, 1): 400.0}, (2, 3))
    assert [topology.path(*pair) for pair in ((0, 1), (1, 0), (2, 3), (3, 2))] == [400, 1000, 4000, 4000]
    require_root()
    with lab.lab(topology) as built:
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
