"""Folder of traces: the value of LEEWARD_DATA, or else a folder in the user's cache.

The cache follows the XDG base directory specification: `$XDG_CACHE_HOME/leeward`, or `~/.cache/leeward`.
"""

import os
from pathlib import Path

from leeward.errors import InputError


def folder() -> Path:
    """Folder of traces, which may be missing.

    Raises:
        InputError: LEEWARD_DATA is not set, and the user has no home.
    """
    data = os.environ.get("LEEWARD_DATA")
    if data:
        return Path(data)
    # The specification ignores a relative path.
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (cache if cache.is_absolute() else Path.home() / ".cache") / "leeward"
    except RuntimeError as error:
        raise InputError.about("LEEWARD_DATA", f"not set, and {error}") from error


def data_folder() -> Path | None:
    """Folder of the `data:...` files of scenarios, if there is one."""
    try:
        path = folder()
    except InputError:
        return None
    return path if os.environ.get("LEEWARD_DATA") or path.is_dir() else None
