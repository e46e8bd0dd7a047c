"""`leeward lab exec`: runs a program at a host of a lab."""

import os
import shutil
import sys
from typing import Annotated

import typer

from leeward.cli.lab.options import NameOption, name_of_lab
from leeward.cli.notes import print_warning

EXAMPLES = """\b
Examples:
  sudo leeward lab exec --host r0h1 -- iperf3 -c r3h1
  sudo leeward lab exec --name hose --host core -- ip route
  sudo leeward lab exec --host r0h1 -- sh -c 'ls $LEEWARD_DISK'
"""


def execute(
    command: Annotated[
        list[str], typer.Argument(metavar="PROGRAM...", help="Program and its arguments.", show_default=False)
    ],
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST",
            help="Name of a host, rack or pod in the cluster file, or its place: r0h1, r0, p0 or core.",
            show_default=False,
        ),
    ],
    name: NameOption = None,
) -> None:
    """Run a program at a host of a lab.

    The program runs in the namespace and the control group of the host. The command becomes the program: its
    exit status and signals are those of the program.
    """
    from leeward import lab

    prefix = lab.command_prefix(name_of_lab(name), host)
    if os.geteuid() != 0:
        raise OSError("programs in a lab require root: run `leeward lab exec` with sudo")
    program = shutil.which(command[0])
    if program is None:
        raise OSError(f"{command[0]}: no such program")
    if any(word.startswith("LD_PRELOAD=") for word in prefix) and lab.is_static(program):
        print_warning(f"{command[0]}: a static program sees real time, and does not report what it writes")
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(prefix[0], [*prefix, *command])
