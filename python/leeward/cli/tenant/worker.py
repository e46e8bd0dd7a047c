"""`leeward tenant worker`: the helper on a host, which `leeward tenant run` starts."""

import sys

from leeward.cli.common import runs_until_stopped

EXAMPLES = """\b
Examples:
  leeward tenant worker < /dev/null      to see whether a host can start it

`leeward tenant run` starts it on each host. It reads orders on stdin, and ends when they end.
"""


@runs_until_stopped
def worker() -> None:
    """Send, receive and run commands for `leeward tenant run`."""
    from leeward.tenant.worker import main

    main(sys.stdin, sys.stdout)
