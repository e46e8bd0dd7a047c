"""Where traces lie: the folder that LEEWARD_DATA names, or else one in the user's cache.

The cache follows the XDG base directory specification: `$XDG_CACHE_HOME/leeward`, or `~/.cache/leeward`.
"""

import os
from pathlib import Path

from leeward.errors import InputError


def folder() -> Path:
    """The folder of traces, whether it is there or not.

    Raises:
        InputError: None is named, and the user has no home.
    """
    data = os.environ.get("LEEWARD_DATA")
    if data:
        return Path(data)
    # By the specification, one that is not absolute is ignored.
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (cache if cache.is_absolute() else Path.home() / ".cache") / "leeward"
    except RuntimeError as error:
        raise InputError("LEEWARD_DATA", None, None, None, f"not set, and {error}") from error


def found() -> Path | None:
    """The folder that `data:...` files of scenarios are looked up in, if there is one."""
    try:
        path = folder()
    except InputError:
        return None
    return path if os.environ.get("LEEWARD_DATA") or path.is_dir() else None
