"""`leeward traces`: requests of workloads, at real servers. One file for each command."""

from leeward.cli.groups import group
from leeward.cli.traces import replay

EXAMPLES = """\b
Examples:
  leeward traces replay examples/slo/mail.csv.gz --nfs nas:/vol
  leeward traces replay examples/slo/mail.csv.gz --nfs nas:/vol --nfsport 12049 --mountport 12049 --for 1min
"""

app = group(replay)


@app.callback(epilog=EXAMPLES)
def traces() -> None:
    """Replay traces of requests at a real server.

    `leeward slo check --replay` replays traces in a simulation, and `leeward enforce nfs` records them.
    """
