"""A controller for tests: `leeward serve` at a free port."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, Any

LEEWARD = Path(sys.executable).with_name("leeward")


@contextmanager
def served(folder: Path, cluster: dict[str, Any], *arguments: str) -> Iterator[str]:
    """Serves a cluster; gives the address. It is stopped at the end, and must end well."""
    (folder / "c.json").write_text(json.dumps(cluster))
    command = [str(LEEWARD), "serve", "--cluster", "c.json", "--listen", "127.0.0.1:0", *arguments]
    if "--store" not in arguments:
        command += ["--store", "memory"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield address(process)
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()


def address(process: subprocess.Popen[str]) -> str:
    """Where a service says that it listens; what it says afterwards is read and dropped."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith("listening on "):
            Thread(target=_drain, args=(process.stderr,), daemon=True).start()
            return line.split()[2]
    raise AssertionError("".join(said))


def _drain(stream: IO[str]) -> None:
    for _ in stream:
        pass
