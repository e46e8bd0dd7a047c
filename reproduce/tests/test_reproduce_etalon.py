"""Etalon's figures in the packet simulator, in runs that are shorter than the paper's."""

from pathlib import Path

import pytest

from leeward.errors import InputError
from leeward_reproduce.etalon import paper
from leeward_reproduce.etalon.experiments import LongFlowRun, improvement
from leeward_reproduce.perform import reproduce


def test_day_week_and_rates_of_the_network_are_reproduced() -> None:
    rows = reproduce("etalon", ["1"], seeds=2, horizon="200ms")
    assert [row.quantity for row in rows] == [
        "day of a circuit",
        "week",
        "rate of the packet path",
        "rate of a circuit",
    ]
    assert all(row.deviation_percent is not None and abs(row.deviation_percent) < 2 for row in rows)


def test_figures_are_close_to_the_paper_and_drawn(tmp_path: Path) -> None:
    rows = reproduce("etalon", ["5a", "6a", "6b", "9"], seeds=1, horizon="400ms", out=tmp_path)
    used = [row for row in rows if row.figure == "6a"]
    ours = [row.ours or 0.0 for row in used]
    assert ours == sorted(ours)
    assert all(abs(row.deviation_percent or 0.0) < 30 for row in used)
    # A row with a large deviation has a reason, and no other row has one.
    far = [row for row in rows if abs(row.deviation_percent or 0.0) > 15]
    assert far == [row for row in rows if row.reason]
    assert far == [row for row in rows if row.holds is False]
    assert {path.name for path in (tmp_path / "pictures").glob("*.svg")} == {
        "5a.svg",
        "6a.svg",
        "6b.svg",
        "9.svg",
    }


def test_ring_figures_have_rows_for_every_system() -> None:
    rows = reproduce("etalon", ["13", "2"], seeds=1, horizon="30ms")
    assert {row.figure for row in rows} == {"12", "16"}
    assert sum(row.figure == "16" for row in rows) == 66
    packets = {row.quantity: row.ours for row in rows if row.figure == "16"}
    assert packets["sent by circuits: Packet10"] == 0
    assert (packets["sent by circuits: ADU+Resize"] or 0) > 0


def test_improvement_is_measured_at_equal_utilization() -> None:
    def flow_run(used: float, median: float) -> LongFlowRun:
        return LongFlowRun(used, {"all": median}, 0.0)

    static = [flow_run(20, 100.0), flow_run(60, 200.0), flow_run(100, 400.0)]
    assert improvement(static, flow_run(80, 150.0)) == pytest.approx(50.0)
    # Beyond the static queues the nearest one counts.
    assert improvement(static, flow_run(10, 150.0)) == pytest.approx(-50.0)
    # A larger queue that fills the circuit no more than a smaller one does not count.
    full = [flow_run(60, 100.0), flow_run(99.4, 200.0), flow_run(99.6, 400.0)]
    assert improvement(full, flow_run(99.6, 150.0)) == pytest.approx(25.0)


@pytest.mark.parametrize("horizon", ["1ms", "soon"])
def test_invalid_horizons_are_rejected(horizon: str) -> None:
    with pytest.raises(InputError, match="horizon"):
        reproduce("etalon", ["1"], horizon=horizon)


def test_section_6_has_rows_for_all_systems_and_for_leeward() -> None:
    rows = reproduce("etalon", ["20", "leeward"], seeds=2, horizon="30ms")
    assert {row.figure for row in rows} == {"19", "leeward"}
    assert all(row.ours is not None for row in rows)
    by_quantity = {row.quantity: row for row in rows}
    for system, value in zip(paper.FILES_SYSTEMS, paper.FILES_TAILS, strict=True):
        row = by_quantity[f"figure 20, p99 of writes: {system}"]
        # No write ends within 30 ms; an unfinished write counts with its time until the end.
        assert (row.paper, row.unit) == (value, "ms")
        assert row.ours == pytest.approx(30)
    # Within a turn, the copies of a rack's blocks are in one other rack, as under reHDFS.
    assert by_quantity["of a rack's copies in the rack with most, the paper's job: leeward"].ours == 100
    assert by_quantity["p99 of writes against reHDFS, the paper's job: leeward"].ours == 0
