"""`leeward lab`: scenarios of the packet simulator on real kernels. One file for each command."""

from leeward.cli.groups import group
from leeward.cli.lab import check, compare, down, run

EXAMPLES = """\b
Examples:
  sudo leeward lab check
  sudo leeward lab run examples/circuits/strobe.yaml --dilation 40 --out results
  sudo leeward lab compare examples/circuits/strobe.yaml --dilation 40
  sudo leeward lab down
"""

app = group(check, run, compare, down)


@app.callback(epilog=EXAMPLES)
def lab() -> None:
    """Run a reconfigurable datacenter of real kernels on this machine.

    Hosts are network namespaces with the kernel's TCP, and a switch in user space carries their packets in
    real time. Virtual time runs slower than real time by the dilation. The lab requires root, and removes
    everything that it made when it ends. `lab down` removes what a killed lab left.
    """
