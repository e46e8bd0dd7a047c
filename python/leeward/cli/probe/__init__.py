"""`leeward probe`: active measurements of a network. One file for each command."""

from leeward.cli.groups import group
from leeward.cli.probe import bottlenecks, calibrate, cross, hops, listen, mesh, path, steady

EXAMPLES = """\b
Examples:
  leeward probe listen                                  on every host; on this one for a first look
  leeward probe path here 127.0.0.1
  leeward probe mesh --hosts 10.0.0.1,10.0.0.2,10.0.0.3 --out measured.yaml
  leeward probe bottlenecks --hosts 10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4

A host is an address where `leeward probe listen` runs, as every other host knows it, with a port if it is
not 7601. This process orders measurements between two other hosts, and one sends to the other. With
--controller, agents measure path, mesh and bottlenecks, and hosts have their names in the cluster.
"""

app = group(listen, path, mesh, bottlenecks, cross, hops, steady, calibrate)


@app.callback(epilog=EXAMPLES)
def probe() -> None:
    """Measure a network by sending packets."""
