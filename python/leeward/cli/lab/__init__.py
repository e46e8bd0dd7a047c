"""`leeward lab`: networks of real kernels on this machine. One file for each command."""

from leeward.cli.groups import add, group
from leeward.cli.lab import check, compare, down, execute, labs, run, top, up

EXAMPLES = """\b
Examples:
  sudo leeward lab up examples/lab/four-racks.yaml
  sudo leeward lab exec --host r0h1 -- ping -c 1 r3h1
  leeward lab top
  sudo leeward lab check
  sudo leeward lab run examples/circuits/strobe.yaml --dilation 60 --out results
  sudo leeward lab compare examples/circuits/strobe.yaml --dilation 60
  sudo leeward lab down
"""

app = group(up)
# The names of these two commands are those of functions of Python.
app.command("exec", epilog=execute.EXAMPLES, context_settings={"allow_interspersed_args": False})(
    execute.execute
)
app.command("list", epilog=labs.EXAMPLES)(labs.labs)
for _module in (top, down, check, run, compare):
    add(app, _module)


@app.callback(epilog=EXAMPLES)
def lab() -> None:
    """Run networks of real kernels on this machine.

    Hosts are network namespaces with the kernel's TCP. `lab up` brings up a network for programs: that
    of a cluster file, in real time, or a reconfigurable datacenter. `lab run` runs a scenario of the packet
    simulator. With circuits, a switch in user space carries all packets, and virtual time runs slower than
    real time by the dilation. The lab requires root. `lab down` removes labs, and the remains of killed
    labs.
    """
