"""Page of `leeward demo`: pictures and sentences of both scenes first, then tables, conditions and words."""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

import numpy

from leeward._arrays import Floats
from leeward._native import Run
from leeward._quantities import percent_text, time_text
from leeward.demo.scenes import SEEDS, BlockScene, TaskScene
from leeward.report import document
from leeward.report.document import Html
from leeward.report.page import facts, policy_words
from leeward.report.rows import comparison_rows, glossary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.image import AxesImage

TITLE = "What Leeward does"
HEAT_MAP = (
    "Each line is a rack; those with the smallest uplinks are on top. Blue: the busier link of the rack has"
    " room in that interval. Orange to red: the link carries more than 75 % of its capacity, so the rack is"
    " hot. Seed 1."
)
BORG = "Both policies place the same jobs. borg considers processors alone, as most schedulers do."
WRITE_TIMES = "Share of full blocks that take longer than a time: lower is better. Both axes are logarithmic."
HOT_COLOURS = ((0.0, "#f2f4f6"), (0.749, "#9fb4c6"), (0.75, "#e8a33d"), (1.0, "#8f1d14"))
"""Colours of utilizations: shades of blue up to the threshold of a hot link, from orange to red above."""


def tasks_sentence(scene: TaskScene) -> str:
    """The result of a scene of tasks."""
    before, after = (percent_text(scene.mean(at)) for at in (0, 1))
    difference, half = scene.difference
    return (
        f"racks are hot {before} of the time under {scene.policies[0]}, {after} under {scene.policies[1]}"
        f" ({100 * difference:+.1f} ± {100 * half:.1f} percentage points, {len(SEEDS)} seeds)"
    )


def blocks_sentence(scene: BlockScene) -> str:
    """The result of a scene of blocks: the slowest blocks, and the shares that links and hosts hold back."""
    slow = [time_text(run.summary()["full_block_write_s"]["p99"]) for run in scene.runs]
    links = [percent_text(one.links) for one in scene.held_back]
    hosts = [percent_text(one.hosts) for one in scene.held_back]
    names = [run.policy for run in scene.runs]
    return (
        f"With {scene.disks}, one full block in a hundred takes longer than {_list(slow, names)}."
        f" A rack's link holds back {_list(links, names)} of the full blocks; another block on the same"
        f" host or disk holds back {_list(hosts, names)}."
    )


def write_page(
    path: str | PathLike[str], tasks: Sequence[TaskScene], blocks: Sequence[BlockScene], source: str
) -> None:
    """Writes the page.

    Args:
        path: Path, written completely or not at all.
        tasks: The scene of tasks, and its less favourable variant.
        blocks: The scene of blocks, and its less favourable variant.
        source: Source of the arrivals of blocks.
    """
    from leeward.report import pictures

    parts: list[Html] = [
        document.section("The same jobs, placed two ways"),
        document.pictures(
            [
                (
                    "",
                    _heat_map(tasks[0].runs),
                    HEAT_MAP,
                )
            ]
        ),
        document.paragraph(f"{BORG} On average over the day, {tasks_sentence(tasks[0])}."),
        document.paragraph(
            f"With traffic of {percent_text(tasks[1].network)} of all uplinks, not"
            f" {percent_text(tasks[0].network)}, fewer racks have room: {tasks_sentence(tasks[1])}."
        ),
        document.section("The copies of blocks"),
        document.pictures(
            [
                (
                    "",
                    pictures.write_times(blocks[0].runs),
                    WRITE_TIMES,
                )
            ]
        ),
        document.paragraph(blocks_sentence(blocks[0])),
        document.paragraph(
            f"{blocks_sentence(blocks[1])} Here most of the gain comes from disks, not from the network."
        ),
        document.section("Tasks in figures", _table(tasks[0].runs)),
        document.section("Blocks in figures", *(_blocks_part(scene) for scene in blocks)),
        document.section(
            "What was simulated",
            document.listing(
                [
                    *tasks[0].runs[0].provenance,
                    facts(blocks[0].scenario.cluster),
                    *blocks[0].runs[0].provenance,
                    source,
                ]
            ),
        ),
        document.section(
            "The policies",
            policy_words("cell", tasks[0].policies),
            policy_words("replicas", [run.policy for run in blocks[0].runs]),
        ),
        document.section("The words", document.words(_words(tasks[0].runs, blocks[0].runs))),
    ]
    lead = ["Two simulations. In each, every policy gets the same arrivals and the same background traffic."]
    document.write(path, document.document(TITLE, TITLE, lead, parts))


def _list(values: Sequence[str], names: Sequence[str]) -> str:
    """Values with the names of policies: `30 s (uniform), 4.3 s (sinbad)`."""
    return ", ".join(f"{value} ({name})" for value, name in zip(values, names, strict=True))


def _table(runs: Sequence[Run]) -> Html:
    rows = ([row.quantity, *row.cells] for row in comparison_rows(runs))
    return document.table(["", *(run.policy for run in runs)], rows)


def _blocks_part(scene: BlockScene) -> Html:
    shares = [
        (title, *(percent_text(getattr(one, name)) for one in scene.held_back))
        for title, name in (
            ("full blocks at full speed", "free"),
            ("held back by a rack's link", "links"),
            ("held back by another block on a host or disk", "hosts"),
        )
    ]
    return Html(
        document.paragraph(f"With {scene.disks}:")
        + document.table(["", *(run.policy for run in scene.runs)], shares)
        + _table(scene.runs)
    )


def _words(tasks: Sequence[Run], blocks: Sequence[Run]) -> list[tuple[str, str]]:
    """Words of both tables, each once."""
    words = dict(glossary(comparison_rows(tasks), tasks[0].policy))
    return list((words | dict(glossary(comparison_rows(blocks), blocks[0].policy))).items())


def _heat_map(runs: Sequence[Run]) -> str:
    """Utilization of the busier link of each rack over time, a panel for each run."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.colors import LinearSegmentedColormap

    from leeward.report.pictures import svg
    from leeward.report.style import SETTINGS

    colours = LinearSegmentedColormap.from_list("hot", HOT_COLOURS, N=512)
    with matplotlib.rc_context(SETTINGS | {"axes.grid": False}):  # type: ignore[arg-type]
        figure, panels = pyplot.subplots(1, len(runs), figsize=(9.6, 4.2), layout="constrained", sharey=True)
        for axes, run in zip(panels, runs, strict=True):
            image = _panel(axes, run, colours)
        panels[0].set_ylabel("racks")
        bar = figure.colorbar(image, ax=panels, shrink=0.9, pad=0.01)
        bar.set_ticks([0, 0.25, 0.5, 0.75, 1], labels=["0 %", "25 %", "50 %", "75 %", "100 %"])
        bar.set_label("utilization of the busier link")
        return svg(figure)


def _panel(axes: "Axes", run: Run, colours: "Colormap") -> "AxesImage":
    busier = rack_utilization(run)
    hot = float((busier > run.hot).mean())
    hours = (run.warmup_s / 3600, run.warmup_s / 3600 + busier.shape[1] * run.sample_s / 3600)
    image = axes.imshow(
        busier,
        aspect="auto",
        cmap=colours,
        vmin=0,
        vmax=1,
        interpolation="nearest",
        extent=(*hours, busier.shape[0], 0),
    )
    axes.set_title(f"{run.policy}: {percent_text(hot)} hot", fontsize=11)
    axes.set_xlabel("hour")
    axes.set_xticks(range(4, round(hours[1]) + 1, 4))
    axes.set_yticks([])
    return image


def rack_utilization(run: Run) -> Floats:
    """Utilization of the busier link of each rack: a row for each rack, a column for each interval.

    Racks with the least uplink come first.
    """
    table = run.links()
    kind = table["kind"].to_numpy(zero_copy_only=False)
    utilization = table["utilization"].to_numpy()
    load = table["load_bps"].to_numpy()
    intervals = len(numpy.unique(table["start_s"].to_numpy()))
    sides = [utilization[kind == side].reshape(intervals, -1) for side in ("rack_uplink", "rack_downlink")]
    up = load[kind == "rack_uplink"].reshape(intervals, -1).sum(axis=0)
    # Rounded, so that racks with equal uplinks stay in their order.
    capacity = numpy.round(up / numpy.maximum(sides[0].sum(axis=0), 1e-12), -3)
    busier: Floats = numpy.maximum(*sides).T[numpy.argsort(capacity, kind="stable")]
    return busier
