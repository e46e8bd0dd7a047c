"""`leeward tenant`: apps on hosts that a tenant rents. One file for each command."""

from leeward.cli.groups import group
from leeward.cli.tenant import run, worker

EXAMPLES = """\b
Examples:
  leeward tenant run examples/apps/wordcount.yaml --hosts vm0=10.0.0.2,vm1=10.0.0.3,vm2=10.0.0.4 --host-cpus 8
  leeward tenant run examples/apps/wordcount.yaml --hosts-file hosts.yaml --again 60s

The hosts need leeward and no rights in the network.
"""

app = group(run, worker)


@app.callback(epilog=EXAMPLES)
def tenant() -> None:
    """Run an app on rented hosts: measure, place, start, and move tasks."""
