"""The command that runs the control plane, built by Go from `experiment` in the module of the scheduler."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

MODULE = Path(__file__).parents[4] / "integrations" / "kubernetes" / "scheduler"
"""Go module of the control plane, in the sources of Leeward."""
BINARY = MODULE.parents[2] / "dist" / "leeward-experiment"
"""The built command. Go builds only changed packages."""
VERSION = (1, 26)
"""Least version of Go."""
_GO = Path("/usr/local/go/bin/go")
"""Where the archive of Go has its command, which is often not in the path."""
_LINES = 15
"""Lines of Go's output in an error."""


def missing() -> str | None:
    """Parts that this machine lacks, in a line; None if it lacks nothing."""
    needed = ".".join(map(str, VERSION))
    lacks = []
    version = go_version()
    if version is None:
        lacks.append(f"Go {needed} (https://go.dev/dl)")
    elif version < VERSION:
        lacks.append(f"Go {needed} (`go` is version {'.'.join(map(str, version))})")
    if not (MODULE / "go.mod").is_file():
        lacks.append("the sources of Leeward (folder integrations/kubernetes)")
    return f"missing for the control plane: {', '.join(lacks)}" if lacks else None


def go_version() -> tuple[int, ...] | None:
    """Version of Go; None without it."""
    command = _go()
    if command is None:
        return None
    text = subprocess.run([command, "version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def build(note: Callable[[str], object] = lambda _: None) -> Path:
    """Builds the command, and returns its path. The first build takes ten minutes of processor time.

    Args:
        note: Called with the next step.

    Raises:
        OSError: A part is missing, or the build failed.
    """
    lacks, command = missing(), _go()
    if lacks is not None or command is None:
        raise OSError(lacks)
    note("building the control plane with Go, which takes ten minutes of processor time the first time")
    BINARY.parent.mkdir(exist_ok=True)
    built = subprocess.run(
        # With the flags of the tests, so that one build of Kubernetes does for both.
        (command, "build", "-o", str(BINARY), "./experiment"),
        cwd=MODULE,
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        end = "\n".join(built.stderr.splitlines()[-_LINES:])
        raise OSError(f"go build failed in {MODULE}:\n{end}")
    return BINARY


def _go() -> str | None:
    return shutil.which("go") or (str(_GO) if _GO.is_file() else None)


if __name__ == "__main__":
    # `make kubernetes-demo` looks for missing parts before it builds Leeward.
    sys.exit(missing())
