"""Reasons of differences in latency, and the variants that test them.

Latencies are measured in the request simulator, without TCP, and in the simulator of operations over TCP. So
the row of the same quantity over TCP tests the reason that a simulator has no TCP.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from leeward_reproduce.rows import Reason, row_key

OVER_TCP = ", over TCP"
"""End of the labels of rows over TCP."""


@dataclass(frozen=True)
class Cause:
    """A possible cause of a difference.

    Attributes:
        text: The reason.
        variant: End of the label of the row that tests the reason; None without one.
    """

    text: str
    variant: str | None = None

    def reason(self, figure: str, label: str) -> Reason:
        """The reason of a row of a figure whose label begins so."""
        return Reason(
            self.text, variant="" if self.variant is None else row_key(figure, label + self.variant)
        )


@dataclass(frozen=True)
class Causes:
    """Causes of a difference, by its side.

    Attributes:
        slower: Of operations that suffer more from a busy link than the paper's; None if not known.
        faster: Of operations that suffer less.
    """

    slower: Cause | None = None
    faster: Cause | None = None

    def reason(
        self, figure: str, label: str, values: Sequence[float], paper: float | None, is_tolerance: bool
    ) -> Reason | None:
        """Reason of a row.

        Args:
            figure: Figure of the row.
            label: Beginning of its label, without the words at its end.
            values: Values of the row, one for each seed.
            paper: Value of the paper.
            is_tolerance: True for a load-tolerance, which is smaller for operations that suffer more.
        """
        if paper is None or not values:
            return None
        is_slower = bool((numpy.mean(values) < paper) if is_tolerance else (numpy.mean(values) > paper))
        cause = self.slower if is_slower else self.faster
        return None if cause is None else cause.reason(figure, label)


UNKNOWN = Causes()
"""Causes of differences that nothing explains."""
