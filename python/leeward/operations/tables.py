"""Tables of a run."""

from typing import TYPE_CHECKING

from leeward._native import OperationsRun

if TYPE_CHECKING:
    import pyarrow

TABLES = ("operations", "jobs", "workers", "links")
"""Names of a run's tables."""


def tables(run: OperationsRun) -> "dict[str, pyarrow.Table]":
    """Tables of a run, by name. Times are seconds from the start of the run.

    - `operations`: kind of the job and of the operation, ends, bytes, start and end, latency, and its part on
      the network; the rest is the time in the server. `degraded` is true if other chunks replaced the one
      of `server`.
    - `jobs`: start and end of each job.
    - `workers`: start and end of each worker of a stage, and the time that it computed.
    - `links`: traffic of the links of racks and pods by window and class: bytes and packets that were sent,
      packets that were dropped or marked, and `wait_s`, the mean time that a sent packet waited.
    """
    return {
        "operations": run.operations(),
        "jobs": run.jobs(),
        "workers": run.workers(),
        "links": run.links(),
    }
