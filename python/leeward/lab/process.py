"""Process of a lab with circuits: `python -m leeward.lab.process`.

It reads an order from standard input, brings up the lab, writes a line of JSON for each share of the hosts,
and one when the lab is ready or has failed, closes its standard output, and keeps the lab until SIGTERM.
"""

import json
import os
import signal
import sys
from typing import Any

from leeward.errors import InputError
from leeward.lab.standing import stand
from leeward.lab.state import text_of


def main() -> int:
    """Runs the process; returns its exit status."""
    signal.signal(signal.SIGTERM, _end)
    order = json.load(sys.stdin)
    # The process that ordered the lab is not its parent, and need not wait for its end.
    if os.fork():
        os._exit(0)
    is_ready = False

    def write(values: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(values) + "\n")
        sys.stdout.flush()

    def report(share: float) -> None:
        if not is_ready:
            write({"share": share})

    def answer(values: dict[str, Any]) -> None:
        nonlocal is_ready
        is_ready = True
        write(values)
        # The process that reads the output goes on at its end.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)

    try:
        stand(
            order["scenario"],
            name=order["name"],
            dilation=order["dilation"],
            ready=answer,
            progress=report,
        )
    except SystemExit:
        raise
    except BaseException as error:
        # A later error is recorded for `leeward lab list`.
        if not is_ready:
            answer({"error": text_of(error), "is_input": isinstance(error, InputError)})
        return 1
    return 0


def _end(_signal: int, _frame: object) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main())
