"""Telemetry that no analysis can use, counted by reason: nothing is dropped silently."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

EXAMPLES = 3
"""Number of examples of each reason."""


@dataclass
class Discards:
    """Counts of samples that were left out or corrected, by reason.

    Attributes:
        counts: Number of samples of each reason; in the order of first occurrence.
        examples: A few of each reason, as text.
        links: Number of readings that each link lost, by reason; links by their number in the cluster.
    """

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    links: dict[int, dict[str, int]] = field(default_factory=dict)

    def count(self, reason: str, number: int, *examples: str) -> None:
        """Adds to a reason; its first few examples are kept."""
        if number == 0:
            return
        self.counts[reason] = self.counts.get(reason, 0) + number
        examples_of_reason = self.examples.setdefault(reason, [])
        examples_of_reason.extend(
            example
            for example in examples[: EXAMPLES - len(examples_of_reason)]
            if example not in examples_of_reason
        )

    def lose(self, link: int, reason: str, number: int) -> None:
        """Adds to the readings that a link lost, besides `count`."""
        reasons = self.links.setdefault(link, {})
        reasons[reason] = reasons.get(reason, 0) + number

    def add(self, other: "Discards") -> None:
        """Adds another's counts to these."""
        for reason, number in other.counts.items():
            self.count(reason, number, *other.examples.get(reason, ()))
        for link, reasons in other.links.items():
            for reason, number in reasons.items():
                self.lose(link, reason, number)

    def __iter__(self) -> Iterator[tuple[str, int, list[str]]]:
        """Reasons, the most frequent first, with their counts and examples."""
        for reason, number in sorted(self.counts.items(), key=lambda item: (-item[1], item[0])):
            yield reason, number, self.examples.get(reason, [])

    def record(self) -> list[dict[str, Any]]:
        """The counts as JSON."""
        return [{"reason": reason, "count": count, "examples": examples} for reason, count, examples in self]

    @property
    def total(self) -> int:
        """Number of all samples."""
        return sum(self.counts.values())
