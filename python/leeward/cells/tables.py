"""Tables of runs."""

from typing import TYPE_CHECKING

from leeward._native import CellsRuns

if TYPE_CHECKING:
    import pyarrow

TABLES = ("runs", "windows")
"""Names of the tables."""


def tables(runs: CellsRuns) -> "dict[str, pyarrow.Table]":
    """Tables of all runs, by name. Times are seconds from the start of a run, and shares are from 0 to 1.

    - `runs`: a row for each run, the first with one ledger. `interval_s` is the time between digests, `loss`
      the share of lost messages, `absent` true if controllers were away. `core_` and `rack_` are means over
      windows of the links of pods and of racks: utilization of the fullest link, 98th percentile, share of
      hot links, and load beyond the capacity as a share of all load (`excess`); `core_most` is the largest
      utilization of all windows. `hot`, `rejected` and `crossed` are shares of blocks, and `wait_` the time
      until another cell had granted a block. Counts follow.
    - `windows`: a row for each run and telemetry window after the warm-up.
    """
    return {"runs": runs.runs(), "windows": runs.windows()}
