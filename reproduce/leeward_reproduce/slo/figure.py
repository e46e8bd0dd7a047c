"""A figure of the thesis: its experiment, its rows and its picture."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leeward_reproduce.rows import Row


@dataclass(frozen=True)
class Figure:
    """A figure of the thesis."""

    title: str
    experiment: Callable[[int], Any]
    """Runs the experiment with a seed."""
    rows: Callable[[Sequence[Any]], list[Row]]
    """Makes rows from the results of all seeds."""
    draw: Callable[[Sequence[Row]], Any] | None = None
    """Draws the rows; None without a picture."""
    constants: Callable[[], object] = tuple
    """Inputs of the experiment besides the traces. Stored results with other inputs are not reused."""
    max_seeds: int | None = None
    """Maximum number of seeds, for a long experiment."""
    released: bool = True
    """True if the experiment needs the released traces."""

    def seeds(self, count: int) -> range:
        """Seeds from 1 to `count`, or to `max_seeds` if that is less."""
        return range(1, 1 + min(count, self.max_seeds or count))
