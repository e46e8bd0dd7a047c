"""The scenarios of `leeward demo`: an hour of a 3,000-host cluster, generated or from traces."""

import os
from importlib.resources import files
from pathlib import Path

TRACES = ("fb2010-coflow/FB2010-1Hr-150-0.txt", "swim-facebook/FB-2010_samples_24_times_1hr_0.tsv.gz")
"""What the scenario from traces reads, below the folder that LEEWARD_DATA names."""


def scenario_file() -> tuple[Path, str]:
    """The scenario to show, and in words why this one: traces where they are at hand."""
    folder = Path(str(files(__name__)))
    data = os.environ.get("LEEWARD_DATA")
    if not data:
        return folder / "generated.yaml", "LEEWARD_DATA is not set: arrivals are generated"
    missing = [name for name in TRACES if not Path(data, name).is_file()]
    if missing:
        return folder / "generated.yaml", f"LEEWARD_DATA has no {missing[0]}: arrivals are generated"
    return folder / "traces.yaml", "arrivals are from the traces in LEEWARD_DATA"
