"""`leeward demo`: an hour of a 3,000-host cluster under HDFS's default placement, Sinbad and leeward."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from leeward._files import check_file
from leeward.cli.options import parse_path
from leeward.cli.output import Format, FormatOption
from leeward.cli.simulate import run, show

EXAMPLES = """\b
Examples:
  leeward demo
  leeward demo --report demo.html
  LEEWARD_DATA=~/traces leeward demo           real traces instead of generated arrivals
"""


def demo(
    report: Annotated[
        Path, typer.Option(metavar="FILE", parser=parse_path, help="File for the HTML page with pictures.")
    ] = Path("leeward-demo.html"),
    output: FormatOption = Format.table,
) -> None:
    """Replay an hour of 3,000 hosts under three policies.

    Compares HDFS's default placement (uniform), Sinbad and leeward on 150 racks of 20 hosts. Prints a table
    with a column for each policy, and writes a page with pictures. All policies get the same files to write
    and the same background traffic.
    """
    from leeward.demo import scenario_file
    from leeward.report import write_page
    from leeward.simulation import read_scenario

    check_file(report, "--report")
    path, source = scenario_file()
    print(source, file=sys.stderr)
    scenario = read_scenario(path)
    runs = run(scenario, scenario.policies, None, None)
    show(runs, output)
    write_page(report, scenario, runs)
    print(f"\nThe page with pictures: {report.resolve().as_uri()}", file=sys.stderr)
    print("For a live demo on a simulated cluster, run leeward serve --demo", file=sys.stderr)
