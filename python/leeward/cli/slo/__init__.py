"""`leeward slo`: workloads with tail latency objectives. One file for each command."""

from leeward.cli.groups import group
from leeward.cli.slo import admit, bound, change, check, curve, model, pack, prioritize, status

EXAMPLES = """\b
Examples:
  leeward slo curve examples/slo/mail.csv.gz --device examples/slo/ssd.json
  leeward slo model examples/slo/mail.csv.gz
  leeward slo bound examples/slo/w.yaml --cluster examples/slo/cluster.yaml
  leeward slo prioritize examples/slo/w.yaml --cluster examples/slo/cluster.yaml
  leeward slo admit examples/slo/w.yaml --cluster examples/slo/cluster.yaml --arriving examples/slo/new.yaml
  leeward slo pack examples/slo/volumes.yaml --cluster examples/slo/servers.yaml --out packed.yaml
  leeward slo check examples/slo/w.yaml --cluster examples/slo/cluster.yaml --replay
  leeward slo status
"""

app = group(curve, model, bound, prioritize, admit, pack, check, status, change)


@app.callback(epilog=EXAMPLES)
def slo() -> None:
    """Keep objectives for tail latency, such as 99.9 % within 20 ms.

    A trace of requests describes a workload; a profile describes a device. A workload file lists workloads
    with their objectives and their hosts in a cluster. `status` and `change` are about the promises of a
    running controller.
    """
