"""Parts of the lab in C, which `make -C kernel` builds."""

import os
from pathlib import Path

VARIABLE = "LEEWARD_KERNEL"
"""Environment variable with a folder of parts, instead of those of the package."""


def folder() -> str:
    """The folder in which the lab looks for its parts. Parts may be missing there."""
    return os.environ.get(VARIABLE) or str(Path(__file__).with_name("kernel"))
