"""The scenes of `leeward demo`: sentences and pictures come from the runs."""

from collections.abc import Sequence
from pathlib import Path

import numpy
import pytest

from leeward import Cluster, simulate
from leeward._native import Run, Scenario
from leeward.demo import scenes
from leeward.demo.held_back import held_back
from leeward.demo.page import blocks_sentence, rack_utilization, tasks_sentence, write_page
from leeward.demo.scenes import FOLDER, BlockScene, TaskScene, block_scene, task_scene


def short(scenario: Scenario, seeds: Sequence[int]) -> Sequence[Run]:
    """Runs a scenario; the test shortened it."""
    return simulate(scenario, None, list(seeds))


@pytest.fixture(scope="module")
def tasks() -> TaskScene:
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(scenes, "SEEDS", (1, 2))
        text = (FOLDER / "tasks.yaml").read_text()

        def shorten(scenario: Scenario, seeds: Sequence[int]) -> Sequence[Run]:
            short_text = text.replace("horizon: 1d", "horizon: 3h")
            return short(Scenario.from_text(short_text, FOLDER), seeds)

        return task_scene(scenes.NETWORK, shorten)


@pytest.fixture(scope="module")
def blocks() -> BlockScene:
    text = (FOLDER / "generated.yaml").read_text()

    def shorten(scenario: Scenario, seeds: Sequence[int]) -> Sequence[Run]:
        short_text = text.replace("cluster.yaml", "ssd.yaml").replace("horizon: 1h", "horizon: 5min")
        return short(Scenario.from_text(short_text, FOLDER), seeds)

    return block_scene(FOLDER / "generated.yaml", "ssd.yaml", "SSDs", shorten)


def test_the_busier_variant_is_the_file_with_another_load() -> None:
    loads: list[str] = []

    def stop(scenario: Scenario, seeds: Sequence[int]) -> Sequence[Run]:
        loads.append(f"{scenario.name} {list(seeds)}")
        raise KeyboardInterrupt

    for network in (scenes.NETWORK, scenes.BUSIER_NETWORK):
        with pytest.raises(KeyboardInterrupt):
            task_scene(network, stop)
    assert f"network: {scenes.NETWORK}," in (FOLDER / "tasks.yaml").read_text()
    assert loads == ["a day of tasks [1, 2, 3, 4, 5]"] * 2


def test_the_sentence_of_tasks_has_the_shares_of_the_runs(tasks: TaskScene) -> None:
    assert tasks.policies == ("borg", "leeward")
    for run, shares in zip(tasks.runs, tasks.hot_shares, strict=True):
        assert run.summary()["tasks"]["hot_tor_share"] == shares[0]
        hot = float((rack_utilization(run) > run.hot).mean())
        assert 0 <= hot <= 1
    assert tasks.mean(1) < tasks.mean(0)
    mean, _half = tasks.difference
    assert mean == pytest.approx(tasks.mean(1) - tasks.mean(0))
    assert f"{100 * mean:+.1f}" in tasks_sentence(tasks)


def test_racks_of_the_heat_map_are_sorted_by_uplink(tasks: TaskScene) -> None:
    utilization = rack_utilization(tasks.runs[0])
    table = tasks.runs[0].links()
    assert utilization.shape == (48, len(numpy.unique(table["start_s"].to_numpy())))
    racks = ("r0", "r47")
    busier = []
    for rack in racks:
        ways = [table.filter(numpy.isin(table["link"], f"{rack}:{way}")) for way in ("uplink", "downlink")]
        busier.append(numpy.maximum(*(way["utilization"].to_numpy() for way in ways)))
    assert numpy.array_equal(utilization[0], busier[0])
    assert numpy.array_equal(utilization[-1], busier[1])


def test_shares_of_blocks_add_up_and_depend_on_the_speed_of_disks(blocks: BlockScene) -> None:
    for one in blocks.held_back:
        assert one.free + one.links + one.hosts == pytest.approx(1)
        assert min(one.free, one.links, one.hosts) >= 0
    sentence = blocks_sentence(blocks)
    assert "(uniform)" in sentence
    assert "(leeward)" in sentence
    # Compared with disks of 50 MB/s, nearly every block is fast, and a link needs less room for a block.
    slow_disks = held_back(blocks.runs[0], Cluster(str(FOLDER / "cluster.yaml")))
    assert slow_disks.free > blocks.held_back[0].free
    assert slow_disks.links < blocks.held_back[0].links


def test_the_page_begins_with_the_picture_and_its_sentence(
    tasks: TaskScene, blocks: BlockScene, tmp_path: Path
) -> None:
    path = tmp_path / "demo.html"
    write_page(path, [tasks, tasks], [blocks, blocks], "arrivals are generated")
    page = path.read_text()
    assert page.index("<svg") < page.index(tasks_sentence(tasks)) < page.index("<table")
    assert page.count("<svg") == 2
    assert "The words" in page[page.rindex("<table") :]
