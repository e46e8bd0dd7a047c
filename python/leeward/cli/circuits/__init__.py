"""`leeward circuits`: networks with circuits that change. One file for each command."""

from leeward.cli.circuits import schedule, simulate
from leeward.cli.groups import group

EXAMPLES = """\b
Examples:
  leeward circuits schedule examples/circuits/demand.csv --scheduler solstice,eclipse,rotor
  leeward circuits simulate examples/circuits/strobe.yaml
"""

app = group(schedule, simulate)


@app.callback(epilog=EXAMPLES)
def circuits() -> None:
    """Schedule and simulate circuits between racks.

    Circuits complement a packet switch. A scheduler turns a demand matrix into days and nights: circuits are
    up during a day, and change during a night. A network under a schedule is simulated packet by packet.
    """
