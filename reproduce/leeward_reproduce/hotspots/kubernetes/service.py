"""The service beside a run: `python -m leeward_reproduce.hotspots.kubernetes.service CLUSTER INTERVAL PORT`.

It is the service of `leeward serve --demo` with another cluster, so its dashboard also shows a comparison of
two schedulers. It ends with its standard input, so that nothing outlives its caller.
"""

import os
import signal
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired

from leeward import _native
from leeward.cli.trial import SERVICE_OPTIONS
from leeward_reproduce.hdfs.machine import listen
from leeward_reproduce.hdfs.processes import Process

_READY_S = 30.0
_END_S = 15.0
_MODULE = "leeward_reproduce.hotspots.kubernetes.service"


def free_port(port: int = 0) -> int:
    """A free port of the loopback interface: the given one, or another."""
    with listen(port) as reserved:
        number: int = reserved.getsockname()[1]
        return number


@contextmanager
def up(folder: Path, cluster: Path, interval_s: float, port: int) -> Iterator[str]:
    """Starts a service, and ends it at the end of the block. Yields its address.

    Args:
        folder: Folder for its log.
        cluster: Cluster file.
        interval_s: Time between two reports of a link.
        port: A free port.

    Raises:
        OSError: It is not ready in time.
    """
    url = f"http://127.0.0.1:{port}"
    command = (sys.executable, "-m", _MODULE, str(cluster), f"{1000 * interval_s:g}ms", str(port))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    log = folder / "service.log"
    with log.open("w", encoding="utf-8") as out:
        # A session of its own: an interrupt from the terminal reaches this program alone.
        child = Popen(
            command, stdin=PIPE, stdout=out, stderr=out, text=True, env=environment, start_new_session=True
        )
    process = Process("service", child, log)
    try:
        process.wait_until("listen", _READY_S, lambda: _is_ready(url))
        yield url
    finally:
        end(child, _END_S)


def end(child: "Popen[str]", seconds: float) -> None:
    """Closes the standard input of a process, which ends it, and kills it if it does not end in time."""
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(seconds)
    except TimeoutExpired:
        child.kill()
        child.wait()


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=2.0) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _serve(cluster: str, interval: str, port: str) -> None:
    def wait_for_end() -> None:
        # The buffer of `sys.stdin` would be locked at the end of the interpreter.
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait_for_end, daemon=True).start()
    given = {"cluster": cluster, "interval": interval, "listen": f"127.0.0.1:{port}", "store": "memory"}
    options: dict[str, str | int | None] = {**dict.fromkeys(SERVICE_OPTIONS), **given}
    _native.serve(options, lambda url, _: print(f"listening on {url}", file=sys.stderr), demo=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
