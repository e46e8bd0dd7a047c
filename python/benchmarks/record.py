"""Record of figures: a line of JSON in the file that the environment variable LEEWARD_BENCH names."""

import json
import os
from pathlib import Path


def record(name: str, unit: str, value: float) -> None:
    """Appends a figure to the file; without the variable, does nothing."""
    path = os.environ.get("LEEWARD_BENCH")
    if path:
        with Path(path).open("a") as file:
            file.write(json.dumps({"name": name, "unit": unit, "value": value}) + "\n")
