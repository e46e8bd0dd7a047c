"""`leeward circuits`: networks whose circuits change with demand. One file a command."""

import typer

from leeward.cli.circuits import schedule, simulate

EXAMPLES = """\b
Examples:
  leeward circuits schedule examples/circuits/demand.csv --scheduler solstice,eclipse,rotor
  leeward circuits simulate examples/circuits/strobe.yaml
"""

app = typer.Typer(rich_markup_mode=None)
app.command("schedule", epilog=schedule.EXAMPLES)(schedule.schedule)
app.command("simulate", epilog=simulate.EXAMPLES)(simulate.simulate)


@app.callback(epilog=EXAMPLES)
def circuits() -> None:
    """Schedule and simulate circuits between racks.

    Circuits change, and are there besides a packet switch. A demand matrix becomes a schedule of days, in
    which circuits are up, and nights, in which they change. A network under a schedule is simulated packet by
    packet.
    """
