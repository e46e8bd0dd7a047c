"""Programs on this host that end with the helper, however the helper ends."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping

# The watching shell reads a pipe that only the helper holds open, and kills the group at its end.
_GUARD = (
    'exec 3<&0 </dev/null; (read -r _; kill -KILL 0) <&3 >/dev/null 2>&1 & exec 3<&-; exec /bin/sh -c "$1"'
)


def start(
    line: str,
    environment: Mapping[str, str] | None = None,
    *,
    stdout: int | None = None,
    stderr: int | None = None,
) -> subprocess.Popen[str]:
    """Starts a command line of `sh` in a process group of its own, without input.

    Args:
        line: The command line.
        environment: Variables besides those of this process.
        stdout: As for `subprocess.Popen`.
        stderr: As for `subprocess.Popen`.
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "sh", line],
        env=os.environ | dict(environment or {}),
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    """Kills a command with everything that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
