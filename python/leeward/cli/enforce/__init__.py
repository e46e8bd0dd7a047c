"""`leeward enforce`: applies promises to hosts. One file for each command."""

from leeward.cli.enforce import nfs
from leeward.cli.groups import group

EXAMPLES = """\b
Examples:
  leeward enforce nfs --export 127.0.0.1:/vol --traces traces
  leeward enforce nfs --export 127.0.0.1:/vol --workloads packed.yaml --cluster cluster.yaml
"""

app = group(nfs)


@app.callback(epilog=EXAMPLES)
def enforce() -> None:
    """Enforce priorities and rate limits of workloads.

    `leeward slo pack` and `prioritize` decide priorities and rate limits. An enforcer at a server applies
    them to the requests of its clients.
    """
