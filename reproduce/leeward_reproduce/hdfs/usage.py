"""Decisions of the policy in the NameNode during a run, and the use of the processors."""

from collections.abc import Callable, Mapping

from leeward.hdfs.policy import RANKED
from leeward_reproduce.hdfs.processors import Processors

MOST_BY_HDFS = 0.05
"""Largest share of the blocks of a run that HDFS's default policy may place for a policy of Leeward."""


class RejectedRunError(OSError):
    """A run that does not count, because the machine was too busy during it."""


class Usage:
    """Decisions and processors since a moment."""

    def __init__(self, decisions: Callable[[], Mapping[str, int]]) -> None:
        """Takes the moment.

        Args:
            decisions: Function that reads the numbers of decisions so far, by reason.

        Raises:
            OSError: The NameNode does not answer.
        """
        self._read = decisions
        self._before = dict(decisions())
        self._processors = Processors()

    def decisions(self) -> dict[str, int]:
        """Number of decisions by reason, without those of which there are none.

        Raises:
            OSError: The NameNode does not answer.
        """
        counts = {reason: count - self._before.get(reason, 0) for reason, count in self._read().items()}
        return {reason: count for reason, count in counts.items() if count}

    def busy(self) -> float:
        """Share of the processors' time in use, 0 to 1."""
        return self._processors.busy()


def by_hdfs(decisions: Mapping[str, int]) -> int:
    """Number of decisions that HDFS's default policy made."""
    return sum(decisions.values()) - decisions.get(RANKED, 0)


def check_decisions(run: str, decisions: Mapping[str, int]) -> None:
    """Checks that the policy of a run placed its blocks.

    Args:
        run: Name of the run.
        decisions: Number of its decisions by reason.

    Raises:
        RejectedRunError: HDFS's default policy placed more of them than `MOST_BY_HDFS`.
    """
    count, total = by_hdfs(decisions), sum(decisions.values())
    if count > MOST_BY_HDFS * total or total == 0:
        reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(decisions.items()) if reason != RANKED)
        raise RejectedRunError(
            f"{run}: {count} of {total} blocks placed by HDFS's default policy ({reasons or 'no decision'});"
            " the run does not count. Start the command again on a machine with less load"
        )
