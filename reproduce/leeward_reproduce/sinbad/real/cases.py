"""Conditions under which pairs run: arrivals, storage and reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from leeward_reproduce.hdfs import Shape

SHAPE = Shape()
DEFAULT, SINBAD = "default", "sinbad"
"""Policies of HDFS."""
HALF_LOAD, TWICE_LOAD = 0.5, 2.0
LOADS = (HALF_LOAD, 1.0, TWICE_LOAD)
"""Multiples of the arrival rate that scenarios have: half of the files, all, or as many in addition."""
PAPER_ESTIMATOR = {"missing": "sinbad", "initial": "zero"}
"""Estimator of the paper: a missing report counts as one of a full link, and an estimate starts at zero. Both
names and values are those of `ledger` in a scenario, and of the properties of the policy in HDFS."""


@dataclass(frozen=True)
class Case:
    """Conditions of a run under each of some policies."""

    name: str
    """Name of its folder."""
    load: float = 1.0
    """Multiple of the arrival rate: one of `LOADS`."""
    in_memory: bool = False
    """True if DataNodes store blocks in memory, each as many as `CACHE` has room for."""
    delay_s: float = 0.0
    """Time that the report of an agent takes."""
    loss: float = 0.0
    """Share of reports that are lost."""
    paper_estimator: bool = False
    """True for `PAPER_ESTIMATOR`; otherwise a link without reports is unknown, and takes no block."""
    policies: Sequence[str] = (DEFAULT, SINBAD)

    def __post_init__(self) -> None:
        if self.load not in LOADS:
            raise ValueError(f"load {self.load:g}: expected one of {', '.join(f'{one:g}' for one in LOADS)}")

    @property
    def is_impaired(self) -> bool:
        """True if reports are late or lost, so that the policy may not know the loads."""
        return bool(self.delay_s or self.loss)

    @property
    def ledger(self) -> Mapping[str, str]:
        """Settings of the ledger in its scenario; empty for the defaults."""
        return PAPER_ESTIMATOR if self.paper_estimator else {}

    @property
    def properties(self) -> Mapping[str, str]:
        """Properties of the NameNode that give the policy the same estimator.

        The controller has its defaults in all cases: with `missing: sinbad` there too, missing reports would
        count twice.
        """
        return {f"dfs.leeward.sinbad.{name}": value for name, value in self.ledger.items()}

    @property
    def shape(self) -> Shape:
        """Racks, links and blocks of its cluster."""
        return replace(SHAPE, in_memory=self.in_memory)


CACHE = 6 * SHAPE.block
"""Bytes of the cache of a host in memory. Hosts write more than that in a run, so caches become full."""
BASE = Case("base")
HALF = Case("half-load", load=HALF_LOAD)
TWICE = Case("twice-load", load=TWICE_LOAD)
LATE = Case("late-reports", delay_s=1.0, policies=(SINBAD,))
"""Reports that arrive late. HDFS's policy reads none, so its runs are those of `BASE`."""
LOST = Case("lost-reports", loss=0.5, policies=(SINBAD,))
MEMORY = Case("memory", in_memory=True)
LOST_PAPER = Case("lost-reports-paper", loss=0.5, paper_estimator=True, policies=(SINBAD,))
CASES = (BASE, HALF, TWICE, LATE, LOST, MEMORY, LOST_PAPER)
"""All cases, in the order in which they run under a seed. A further one goes to the end: the place of a case
decides which of its policies is first."""
