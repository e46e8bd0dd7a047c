"""`leeward probe`: active measurements of a network. One file for each command."""

from leeward.cli.groups import group
from leeward.cli.probe import bottlenecks, calibrate, cross, hops, listen, mesh, path, steady

EXAMPLES = """\b
Examples:
  leeward probe listen                                  on every host; for a first test, on this host
  leeward probe path here 127.0.0.1
  leeward probe mesh --hosts 10.0.0.1,10.0.0.2,10.0.0.3 --out measured.yaml
  leeward probe bottlenecks --hosts 10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4

A host is given by the address at which all other hosts reach its `leeward probe listen`, with the port if it
is not 7601. For a measurement between two other hosts, this process sends only the request. With
--controller, agents run the measurements of path, mesh and bottlenecks, and a host is given by its name in
the cluster.
"""

app = group(listen, path, mesh, bottlenecks, cross, hops, steady, calibrate)


@app.callback(epilog=EXAMPLES)
def probe() -> None:
    """Measure a network by sending packets."""
