"""Outcomes of experiments in a folder, from which a stopped reproduction continues."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leeward._files import atomic_file
from leeward._native import __version__


def load_or_make(folder: Path, figure: str, seed: int, inputs: object, make: Callable[[int], Any]) -> Any:
    """Outcome of a figure under a seed: read from its file if the file has the same inputs, else made.

    Args:
        folder: Folder of all outcomes.
        figure: Name of the figure.
        seed: The seed.
        inputs: Inputs of the outcome, as JSON.
        make: Makes the outcome with a seed.
    """
    path = folder / f"{figure}-{seed}.json"
    identity = json.loads(json.dumps([__version__, inputs]))
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        if results["of"] == identity:
            return results["outcome"]
    except (OSError, ValueError, KeyError, TypeError):
        pass  # The file is missing or cut off: the outcome is made again.
    # The round trip through JSON gives the outcome the types that it has when read from the file.
    outcome = json.loads(json.dumps(make(seed)))
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps({"of": identity, "outcome": outcome}) + "\n", encoding="utf-8")
    return outcome
