"""Runs fio, and reads its JSON output. Errors name the option `--fio`."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from leeward._quantities import duration_text
from leeward.errors import InputError

HINT = "install it with your system's packages: apt-get install fio, or dnf install fio"
PATIENCE_S = 5.0
"""Time that fio has to end after a signal."""
PROBLEMS = ("fio:", "nfs:", "Failed NFS")
"""Begin of lines in which fio, or its engine for NFS, says what failed."""


def fio_error(message: str) -> InputError:
    """Error about a measurement with fio."""
    return InputError.about("--fio", message)


def run_fio(
    command: Sequence[str],
    what: str,
    keep: Callable[[str], object],
    *,
    limit: float | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> tuple[dict[str, Any], str]:
    """Runs fio with one job.

    Args:
        command: Command line, with the JSON output format.
        what: Name of the job in errors.
        keep: Called with the output before it is interpreted.
        limit: Seconds after which fio is ended.
        folder: Current folder of fio; by default that of this process.

    Returns:
        The results of the job, and the version of fio.

    Raises:
        InputError: fio is not installed, failed, or did not end within the limit.
    """
    check_installed()
    try:
        code, stdout, stderr = _run(command, limit, folder)
    except subprocess.TimeoutExpired:
        raise fio_error(f"{what}: fio did not end within {duration_text(limit or 0)}") from None
    keep(stdout)
    version = ""
    try:
        # Warnings may precede the JSON.
        document = json.loads(stdout[max(stdout.find("{"), 0) :])
        version, (result,) = str(document["fio version"]), document["jobs"]
    except (ValueError, KeyError, TypeError, RecursionError):
        result = None
    if code or not isinstance(result, dict) or result.get("error"):
        lines = [line for line in (stderr + stdout).splitlines() if line.startswith(PROBLEMS)]
        if lines:
            why = lines[0]
        elif code:
            why = f"fio ended with code {code} and no message"
        else:
            why = f"the output of {version or _version()} is not as known from fio 2 and 3"
        raise fio_error(f"{what}: {why}")
    return result, version


def check_installed() -> None:
    """Checks that fio is installed.

    Raises:
        InputError: It is not.
    """
    if shutil.which("fio") is None:
        missing = fio_error("fio is not installed")
        missing.add_note(HINT)
        raise missing


def has_option(engine: str, option: str) -> bool:
    """True if the installed fio has an I/O engine with this option."""
    try:
        _code, stdout, stderr = _run(["fio", f"--enghelp={engine}"], 60, None)
    except (subprocess.TimeoutExpired, OSError):
        return False
    # Versions differ in the exit code of this help.
    return any(line.split()[:1] == [option] for line in (stdout + stderr).replace(":", " ").splitlines())


def _version() -> str:
    shown = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return shown if shown.startswith("fio-") else "this fio"


def _run(
    command: Sequence[str], limit: float | None, folder: str | os.PathLike[str] | None
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a program. An exception ends the program and its children."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=folder,
        # fio has a process for each job. The group has no other processes than these.
        process_group=0,
    )
    with process:
        try:
            stdout, stderr = process.communicate(timeout=limit)
        except BaseException:
            _end(process)
            raise
        return process.returncode, stdout, stderr


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a program and its children: with a signal that lets it clean up, then with one that does not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_S)
            return
