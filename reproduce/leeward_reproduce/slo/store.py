"""Outcomes of experiments in a folder, from which a stopped reproduction continues."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leeward._files import atomic_file
from leeward._native import __version__


def load_or_make(folder: Path, figure: str, seed: int, of: object, make: Callable[[int], Any]) -> Any:
    """Outcome of a figure under a seed, from its file if that has the same inputs.

    Args:
        folder: Folder of all outcomes.
        figure: Name of the figure.
        seed: The seed.
        of: Inputs of outcomes, as JSON.
        make: Makes it.
    """
    path = folder / f"{figure}-{seed}.json"
    rests = json.loads(json.dumps([__version__, of]))
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        if results["of"] == rests:
            return results["outcome"]
    except (OSError, ValueError, KeyError, TypeError):
        pass  # Not there, or cut off: it is made again.
    # In the form in which it will be read.
    outcome = json.loads(json.dumps(make(seed)))
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps({"of": rests, "outcome": outcome}) + "\n", encoding="utf-8")
    return outcome
