"""`leeward kubernetes`: Leeward in a Kubernetes cluster. One file for each kind of command."""

from leeward.cli.groups import group
from leeward.cli.kubernetes import plugin, trial

EXAMPLES = """\b
Examples:
  leeward kubernetes trial --prometheus http://prom:9090 --since 7d --record week
  leeward kubernetes trial examples/kubernetes/week
  leeward kubernetes top --nodes
  leeward kubernetes explain pod/web-0
"""

app = group(trial)
plugin.add_commands(app)


@app.callback(epilog=EXAMPLES)
def kubernetes() -> None:
    """Try the plugin NetworkLoad on last week's pods, and look at a cluster that has it.

    `trial` needs nothing but kubectl and Prometheus. The other commands are those of the kubectl plugin
    `kubectl leeward`.
    """
