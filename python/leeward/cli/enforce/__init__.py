"""`leeward enforce`: applies promises to hosts. One file for each command."""

from leeward.cli.enforce import net, nfs
from leeward.cli.groups import group

EXAMPLES = """\b
Examples:
  sudo leeward enforce net --workloads packed.yaml
  sudo leeward enforce net --workloads packed.yaml --status
  sudo leeward enforce net --controller https://leeward:7600 --token-file /etc/leeward/enforcer.token
  leeward enforce nfs --export 127.0.0.1:/vol --allow 10.0.0.0/8 --workloads packed.yaml
"""

app = group(net, nfs)


@app.callback(epilog=EXAMPLES)
def enforce() -> None:
    """Enforce priorities and rate limits of workloads.

    `leeward slo pack` and `prioritize` decide priorities and rate limits, and so does a controller. An
    enforcer on each host applies them to the packets that leave it, and one at each file server to the
    requests of its clients.
    """
