"""Outcomes of experiments that are kept in a folder, so that a stopped reproduction goes on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leeward._files import whole_file
from leeward._native import __version__


def kept(folder: Path, figure: str, seed: int, of: object, make: Callable[[int], Any]) -> Any:
    """The outcome of a figure under a seed, from its file if it is there and of the same inputs.

    Args:
        folder: Of all outcomes.
        figure: Its name.
        seed: Which.
        of: What outcomes rest on, as JSON.
        make: Makes it.
    """
    path = folder / f"{figure}-{seed}.json"
    rests = json.loads(json.dumps([__version__, of]))
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["of"] == rests:
            return found["outcome"]
    except (OSError, ValueError, KeyError, TypeError):
        pass  # Not there, or cut off: it is made again.
    # As it will be read again.
    outcome = json.loads(json.dumps(make(seed)))
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps({"of": rests, "outcome": outcome}) + "\n", encoding="utf-8")
    return outcome
