"""What telemetry had that no analysis could use, counted by reason: nothing is dropped in silence."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

EXAMPLES = 3
"""Of each reason at most."""


@dataclass
class Discards:
    """Counts of samples that were left out or mended, by reason.

    Attributes:
        counts: For each reason how many samples; in the order in which reasons were met.
        examples: For each reason a few of them, as text.
    """

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def count(self, reason: str, number: int, *examples: str) -> None:
        """Adds to a reason; of its examples the first few are kept."""
        if number == 0:
            return
        self.counts[reason] = self.counts.get(reason, 0) + number
        kept = self.examples.setdefault(reason, [])
        kept.extend(example for example in examples[: EXAMPLES - len(kept)] if example not in kept)

    def add(self, other: "Discards") -> None:
        """Adds another's counts to these."""
        for reason, number in other.counts.items():
            self.count(reason, number, *other.examples.get(reason, ()))

    def __iter__(self) -> Iterator[tuple[str, int, list[str]]]:
        """Reasons, the most frequent first, with their counts and examples."""
        for reason, number in sorted(self.counts.items(), key=lambda item: (-item[1], item[0])):
            yield reason, number, self.examples.get(reason, [])

    def record(self) -> list[dict[str, Any]]:
        """The same as plain values, for programs."""
        return [{"reason": reason, "count": count, "examples": examples} for reason, count, examples in self]

    @property
    def total(self) -> int:
        """How many samples in all."""
        return sum(self.counts.values())
