"""Demonstrations of Leeward without a cluster.

This module has the scenarios of `leeward demo`: an hour of a 3,000-host cluster, generated or from traces.
The other modules simulate the cell of `leeward serve --demo`: jobs arrive, send and end. A controller and a
scheduler without network information place the same jobs.
"""

from importlib.resources import files
from pathlib import Path

from leeward.data import data_folder

TRACES = ("fb2010-coflow/FB2010-1Hr-150-0.txt", "swim-facebook/FB-2010_samples_24_times_1hr_0.tsv.gz")
"""Files of the scenario from traces, below the folder of traces."""
SETS = " ".join(name.partition("/")[0] for name in TRACES)
"""Names of the sets of these traces."""


def scenario_file() -> tuple[Path, str]:
    """Scenario of the demo, from traces if they are present, and the reason for the choice."""
    folder, data = Path(str(files(__name__))), data_folder()
    if data is None:
        why = f"arrivals are generated; `leeward data get {SETS}` fetches real ones"
        return folder / "generated.yaml", why
    missing = [name for name in TRACES if not (data / name).is_file()]
    if missing:
        return folder / "generated.yaml", f"arrivals are generated: {data} has no {missing[0]}"
    return folder / "traces.yaml", f"arrivals are from the traces in {data}: {' and '.join(TRACES)}"
