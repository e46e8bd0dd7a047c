"""Leeward at work where there is no cluster.

Here are the scenarios of `leeward demo`: an hour of a 3,000-host cluster, generated or from traces. The
modules beside are the cell of `leeward serve --demo`: jobs that arrive, send and end, placed by a controller
and by a scheduler that sees no network.
"""

from importlib.resources import files
from pathlib import Path

from leeward.data import found

TRACES = ("fb2010-coflow/FB2010-1Hr-150-0.txt", "swim-facebook/FB-2010_samples_24_times_1hr_0.tsv.gz")
"""What the scenario from traces reads, below the folder of traces."""
SETS = " ".join(name.partition("/")[0] for name in TRACES)
"""The sets of traces that these are of."""


def scenario_file() -> tuple[Path, str]:
    """The scenario to show, and in words why this one: traces where they are at hand."""
    folder, data = Path(str(files(__name__))), found()
    if data is None:
        why = f"arrivals are generated; `leeward data get {SETS}` fetches real ones"
        return folder / "generated.yaml", why
    missing = [name for name in TRACES if not (data / name).is_file()]
    if missing:
        return folder / "generated.yaml", f"arrivals are generated: {data} has no {missing[0]}"
    return folder / "traces.yaml", f"arrivals are from the traces in {data}: {' and '.join(TRACES)}"
