"""Summary at the beginning of a page of results: how many rows hold, and the results that matter most."""

from collections.abc import Sequence
from dataclasses import dataclass

from leeward_reproduce.rows import FAR, INSIDE, NEAR_POINTS, Row
from leeward_reproduce.table import aligned, deviation_text, ours_text, paper_text

_HEADERS = ("result", "quantity", "paper", "ours", "deviation")
_SIDES = "<<>>>"


@dataclass(frozen=True)
class MainResult:
    """A row that matters most of all rows of a paper.

    Attributes:
        name: `main` for the result that the paper is known for, `less favourable` for a variant of it.
        figure: Figure of the row.
        quantity: Quantity of the row.
    """

    name: str
    figure: str
    quantity: str


@dataclass(frozen=True)
class Counts:
    """Numbers of compared rows.

    Attributes:
        compared: All compared rows.
        hold: Those that hold.
        inside: Of the others, those whose interval includes the paper's value and is narrow enough to say so.
        tested: Of the rest, those whose reason was tested and holds.
        untested: Of the rest, those whose reason was not tested, was refuted by its test, or is not known.
    """

    compared: int
    hold: int
    inside: int
    tested: int
    untested: int


def counts(rows: Sequence[Row]) -> Counts:
    """Counts rows. Rows that are not compared do not count."""
    compared = [row for row in rows if row.holds is not None]
    far = [row for row in compared if not row.holds]
    inside = sum(row.reason.startswith(INSIDE.text) for row in far)
    tested = sum(bool(row.tested) and not row.is_refuted for row in far) - inside
    return Counts(len(compared), len(compared) - len(far), inside, tested, len(far) - inside - tested)


def summary(rows: Sequence[Row], main: Sequence[MainResult] = ()) -> str:
    """A sentence and a table of Markdown; empty without a compared row.

    Args:
        rows: Rows of all figures.
        main: Results that matter most; those without a row are left out.
    """
    total = counts(rows)
    if not total.compared:
        return ""
    by_name = {(row.figure, row.quantity): row for row in rows}
    found = [(one.name, by_name.get((one.figure, one.quantity))) for one in main]
    cells = [
        (name, f"{row.quantity} ({row.figure})", paper_text(row), ours_text(row), deviation_text(row))
        for name, row in found
        if row is not None
    ]
    tables = ["\n".join(aligned(_HEADERS, _SIDES, cells))] if cells else []
    return "\n\n".join([_sentence(total), *tables])


def _sentence(total: Counts) -> str:
    far = total.compared - total.hold
    hold = (
        f"**{total.hold} of {total.compared} compared rows hold**: they are within {FAR:g} % of the paper's"
        f" value, or are changes within {NEAR_POINTS:g} percentage points of the paper's and have its sign."
    )
    if not far:
        return hold
    return (
        f"{hold} Of the other {far}, {total.inside} have an interval that includes the paper's value,"
        f" {total.tested} have a tested reason, and {total.untested} have a reason that was not tested or was"
        " refuted by its test, or none."
    )
