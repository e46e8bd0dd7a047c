"""`leeward demo`: two simulations that show what Leeward does, tasks and blocks, with a page of pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward._files import check_file
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import name_flags, parse_path, split_list
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.progress import STEPS, progress, steps
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward._native import Run, Scenario
    from leeward.demo.scenes import BlockScene, Simulate

EXAMPLES = """\b
Examples:
  leeward demo
  leeward demo --report demo.html
  leeward demo --policy ccp,my_module:my_policy
  LEEWARD_DATA=~/traces leeward demo           blocks of real traces instead of generated ones
"""
SSD = "SSDs that write 400 MB/s, faster than a host receives"
HDD = "the disks of Sinbad's simulations, which write 50 MB/s"


def demo(
    report: Annotated[
        Path, typer.Option(metavar="FILE", parser=parse_path, help="File for the HTML page with pictures.")
    ] = Path("leeward-demo.html"),
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY,...",
            help="Further policies for the blocks of the second simulation, such as ccp, or one of your own,"
            " as my_module:my_policy.",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Show what Leeward does, in two simulations.

    First, a day of the same jobs on 960 hosts, placed without and with regard to the network. Second, an hour
    of block writes on 3,000 hosts under HDFS's default placement (uniform), Sinbad and leeward, and under the
    policies of --policy. Writes a page with pictures.
    """
    from leeward._extras import missing
    from leeward._policies import choose
    from leeward.demo import scenario_file
    from leeward.demo.page import tasks_sentence, write_page
    from leeward.demo.scenes import BUSIER_NETWORK, NETWORK, block_scenario, block_scene, task_scene
    from leeward.simulation import check_chosen

    check_file(report, "--report")
    no_pictures = missing("plot")
    more = split_list(policy) or []
    path, source = scenario_file()
    disks = (("SSD", "ssd.yaml", SSD), ("HDD", "cluster.yaml", HDD))
    # The first scene takes half a minute, so the policies of the second one are checked before it.
    with name_flags(policies="--policy"):
        chosen = choose([*block_scenario(path, disks[0][1]).policies, *more])
        twice = next((label for label in chosen.labels if chosen.labels.count(label) > 1), None)
        if twice is not None:
            raise InputError.about("policies", f"`{twice}` is given twice")
        check_chosen(chosen, "replicas")
    networks = (("tasks", NETWORK), ("tasks, busier uplinks", BUSIER_NETWORK))
    tasks = [task_scene(network, _simulate(f"scene 1 of 2: {title}")) for title, network in networks]
    blocks = [
        block_scene(path, cluster, words, _simulate(f"scene 2 of 2: blocks, {title}", more))
        for title, cluster, words in disks
    ]
    if no_pictures is None:
        write_page(report, tasks, blocks, source)
    document = {
        "tasks": [scene.record() for scene in tasks],
        "blocks": [scene.record() for scene in blocks],
        "arrivals": source,
    }
    rows = [
        {"disks": scene.disks, "policy": policy} | figures
        for scene in blocks
        for policy, figures in scene.record()["policies"].items()
    ]
    if print_data(output, document, rows, COLUMNS["demo"]):
        return
    print_text(f"tasks: {tasks_sentence(tasks[0])}")
    print_text(f"with busier uplinks: {tasks_sentence(tasks[1])}\n")
    _print_blocks(blocks)
    print_note(
        f"\npage with pictures: {report.resolve().as_uri()}"
        if no_pictures is None
        else f"\nno page with pictures: {no_pictures}"
    )


def _simulate(title: str, more: "Sequence[str]" = ()) -> "Simulate":
    """Runs all policies of a scenario, and more, under seeds, with one line of progress."""

    def run(scenario: "Scenario", seeds: "Sequence[int]") -> "Sequence[Run]":
        from leeward.simulation import simulate

        names = [*scenario.policies, *more]
        with (
            name_flags(policies="--policy"),
            progress(title, STEPS * len(names) * len(seeds)) as advance,
        ):
            return simulate(scenario, names, list(seeds), progress=steps(advance))

    return run


def _print_blocks(scenes: "Sequence[BlockScene]") -> None:
    """Prints a row for each policy, with both kinds of disks."""
    from leeward._quantities import percent_text, time_text

    rows = [
        (
            run.policy,
            disks,
            time_text(run.summary()["full_block_write_s"]["mean"]),
            time_text(run.summary()["full_block_write_s"]["p99"]),
            percent_text(shares.links),
            percent_text(shares.hosts),
        )
        for disks, scene in zip(("SSD", "HDD"), scenes, strict=True)
        for run, shares in zip(scene.runs, scene.held_back, strict=True)
    ]
    headers = ("POLICY", "DISKS", "BLOCK TIME", "99TH PERCENTILE", "HELD BACK BY LINKS", "BY HOSTS AND DISKS")
    print_table(headers, "<<>>>>", rows)
