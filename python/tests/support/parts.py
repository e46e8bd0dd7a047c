"""Checks for requirements of tests: Prometheus, Spark, network namespaces, programs of Debian packages.

Continuous integration has all of these. A test without its requirements fails there and is skipped elsewhere.
"""

import os
import shutil
from typing import NoReturn

import pytest


def lack(reason: str) -> NoReturn:
    """Ends a test that lacks a requirement: fails it under CI, else skips it.

    The variable `CI` marks continuous integration if it is set, and not empty, `false` or `0`.
    """
    if os.environ.get("CI", "") not in ("", "false", "0"):
        pytest.fail(f"CI must have this part: {reason}", pytrace=False)
    pytest.skip(reason)


def require(*programs: str, package: str | None = None) -> None:
    """Requires programs of the system; a hint names their Debian package, or the programs themselves."""
    for program in programs:
        if shutil.which(program) is None:
            lack(f"no {program}: as root, apt-get install {package or program}")


def require_root() -> None:
    """Requires root, as network namespaces do."""
    if os.geteuid() != 0:
        lack("network namespaces need root")
