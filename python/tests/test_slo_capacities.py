"""Bounds beside links of extreme rates: the right bound or an error, never a bound that is too low."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


def _system(tmp_path: Path, fast: str) -> tuple[str, str]:
    """One workload behind two others, each at one of its two links of 20 MB/s; all other links are fast."""
    hosts = [
        {"name": "a", "nic": {"up": "20MB/s", "down": fast}},
        {"name": "b", "nic": {"up": fast, "down": "20MB/s"}},
        {"name": "c", "nic": fast},
        {"name": "d", "nic": fast},
    ]
    cluster = {"racks": [{"name": "r", "hosts": hosts}], "rack_link": "1Tbps"}
    flows = (("f", "a", "b", 1, 5, 25), ("h1", "a", "c", 0, 10, 100), ("h2", "d", "b", 0, 10, 100))
    workloads = [
        {
            "name": name,
            "client": client,
            "server": server,
            "priority": priority,
            "slo": {"percentile": 99, "latency": "15s"},
            "unloaded": "0s",
            "stages": ["network-in"],
            "curves": {"network-in": [{"rate": f"{rate}MB/s", "burst": f"{burst}MB"}]},
        }
        for name, client, server, priority, rate, burst in flows
    ]
    file = {"margin": "0%", "bounds": {"unit": "fluid"}, "workloads": workloads}
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))
    (tmp_path / "w.json").write_text(json.dumps(file))
    return str(tmp_path / "w.json"), str(tmp_path / "cluster.json")


@pytest.mark.parametrize("fast", ["1Gbps", "30000Tbps", "100000Tbps", "1000000Tbps"])
@pytest.mark.parametrize("method", ["best", "dnc", "priority-meister"])
def test_links_of_any_rate_do_not_lower_a_bound(run: Run, tmp_path: Path, fast: str, method: str) -> None:
    # 100 / (20 - 10) = 10 s at each link, and then the burst of 25 MB at 10 MB/s: 22.5 s, which is reached.
    workloads, cluster = _system(tmp_path, fast)
    result = run("slo", "bound", workloads, "--cluster", cluster, "--method", method, "-o", "json")
    first = json.loads(result.stdout)["workloads"][0]
    assert (result.returncode, first["met"]) == (1, False)
    assert first["bound_s"] == pytest.approx(22.5, rel=1e-6)
