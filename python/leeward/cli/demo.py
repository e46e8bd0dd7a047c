"""`leeward demo`: an hour of a 3,000-host cluster under HDFS's default placement and under Sinbad."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from leeward.cli.output import Format, FormatOption
from leeward.cli.simulate import run, show

EXAMPLES = """\b
Examples:
  leeward demo
  leeward demo --page results/demo.html
  LEEWARD_DATA=~/traces leeward demo           real traces instead of generated arrivals
"""


PAGE = Path("leeward-demo.html")


def demo(
    page: Annotated[Path, typer.Option(help="Where to write the page with pictures.")] = Path(
        "leeward-demo.html"
    ),
    output: FormatOption = Format.table,
) -> None:
    """Replay an hour on 150 racks x 20 hosts under HDFS's default placement and under Sinbad, and compare.

    Prints a table and writes a page with pictures. Columns are policies, rows what came of them; both saw the
    same files to write and the same background.
    """
    from leeward.demo import scenario_file
    from leeward.report import write_page
    from leeward.simulation import read_scenario

    path, why = scenario_file()
    print(why, file=sys.stderr)
    scenario = read_scenario(path)
    runs = run(scenario, scenario.policies, None, None)
    show(runs, output)
    write_page(page, scenario, runs)
    print(f"\nThe page with pictures: {page.resolve().as_uri()}", file=sys.stderr)
