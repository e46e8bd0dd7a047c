"""Measurements between namespaces: what is measured is what `tc` limits, and tasks go where there is more."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from leeward import Cluster, place_tasks
from leeward.reproduce import reproduce
from leeward.reproduce.choreo import between
from leeward.reproduce.choreo.namespaces import Network, UnableError, network

NOT_HERE = ("need root", "No such file", "Operation not permitted", "Read-only file system")
"""What a machine says that lets nobody make namespaces."""


@contextmanager
def made(*pods: tuple[int, ...]) -> Iterator[Network]:
    """A network, where there can be one."""
    try:
        with network(*pods) as built:
            yield built
    except UnableError as error:
        # What was asked of a network that is there must not fail.
        if any(why in str(error) for why in NOT_HERE):
            pytest.skip(str(error))
        raise


def test_an_app_goes_where_a_measured_network_gives_more(tmp_path: Path) -> None:
    with made((2, 1)) as built:
        limits = dict(zip(built.hosts, (30e6, 90e6, 30e6), strict=True))
        for host, rate in limits.items():
            built.limit(host, rate)
        said = built.ask("mesh", "--hosts", built.given(), "--hops", "--bursts", "20")
    assert said["topology"]["racks"] == [["h0-0", "h0-1"], ["h1-0"]]
    for one in said["paths"]:
        limit = next(rate for (r, h), rate in limits.items() if one["from"] == f"h{r}-{h}")
        assert 0.75 * limit < one["rate_bps"] < 1.15 * limit, one
    measured = Cluster(said["cluster"])
    assert (measured.shape, measured.racks) == ("pipe", 2)
    app = tmp_path / "app.yaml"
    app.write_text(
        "tasks: [{ name: map, cpus: 1 }, { name: reduce, cpus: 1 }]\n"
        "transfers: [{ from: map, to: reduce, bytes: 1GB }]\n"
    )
    # One task a host: nothing can stay where it is.
    single = Cluster(said["cluster"].replace("shape: pipe\n", "shape: pipe\ncpus: 1\n"))
    decision = place_tasks(single, app, policy="choreo")
    assert decision["tasks"][0]["host"] == "h0-1", decision


def test_pipes_are_no_hose() -> None:
    with made((2, 2)) as built:
        for host in built.hosts:
            built.limit_paths(host, {other: 30e6 for other in built.hosts if other != host})
        said = built.ask("bottlenecks", "--hosts", built.given(), "--pairs", "1", "--for", "1500ms")
    assert said["kind"] == "pipe", said


def test_without_root_a_row_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    rows = reproduce("choreo", ["2", "7", "8", "4.3"], seeds=1, out=tmp_path)
    why = "not measured: namespaces need root"
    missing = [row.figure for row in rows if row.ours is None and row.note == why]
    assert missing == ["2", "7", "8", "4.3", "4.3"]
    assert any(row.figure == "2" and row.paper and row.ours for row in rows)
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == ["2.png", "2.svg"]


def test_a_path_of_which_trains_failed_is_no_steady_path(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        hosts = ((0, 0), (0, 1), (1, 0), (1, 1))

        def limit(self, *_: object) -> None:
            pass

        def ask(self, *_: str) -> dict[str, Any]:
            return {"samples": [{"rate_bps": 1e8}], "errors": ["it takes too long"] * 2, "lags": []}

    monkeypatch.setattr(between, "network", lambda *_: nullcontext(Failing()))
    with pytest.raises(UnableError, match=r"^6 of 360 trains could not be measured$"):
        between.stability()
