"""Style of policies in pictures, numbers of axes, and labels of curves.

A policy has one colour throughout the project, whatever its settings; line styles distinguish settings of one
policy in the same picture. A curve has its label where it is farthest from the others, so that pictures read
in grey too; without room for labels there is a legend.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from leeward._arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLOURS = {
    "uniform": "#6f6f6f",
    "sinbad": "#0b62a4",
    "sinbad-file": "#4aa3df",
    "ccp": "#b07d00",
    "rehdfs": "#7b3fa0",
    "leeward": "#c4411d",
    "random": "#9a9a9a",
    "round-robin": "#b3a369",
    "minimum-machines": "#8c6d5a",
    "choreo": "#1b7f79",
    "choreo-exact": "#0f4d49",
    "borg": "#5a6a7a",
    "utp-reactive": "#e08e45",
    "utp-proactive": "#5fb3bf",
    "utp": "#00798c",
    "fair": "#7a7a7a",
    "sebf": "#a3326b",
}
OTHER = "#2f7d32"
"""Colour of a policy that is not listed."""
LINES: list[Any] = ["-", "--", "-.", ":", (0, (6, 1)), (0, (3, 1, 1, 1, 1, 1))]

# Settings independent of time and place: equal runs give equal bytes.
SETTINGS = {
    "svg.hashsalt": "leeward",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
}

# In pixels of a picture at its layout resolution.
_WIDTH = 9.5
"""Greatest width of a character of a name."""
_HEIGHT = 17.0
_GAP = 4.0
"""Distance between a name and its curve."""
_APART = 8.0
"""Least distance between two curves where one of them has its label."""
_ROOM = 40.0
"""Distance from other curves beyond which more does not help."""


def styles(policies: Sequence[str]) -> list[dict[str, Any]]:
    """Colour and line of each policy: by its name, and by its position among policies of this name."""
    names = [policy.partition(":")[0] for policy in policies]
    return [
        {"color": COLOURS.get(name, OTHER), "linestyle": LINES[names[:at].count(name) % len(LINES)]}
        for at, name in enumerate(names)
    ]


def plain(axis: "Axis", ticks: Iterable[float]) -> None:
    """Puts plain numbers at those of `ticks` that are within an axis."""
    from matplotlib.ticker import NullFormatter, NullLocator

    low, high = sorted(axis.get_view_interval())
    visible = [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
    axis.set_ticks(visible, [f"{tick:g}" for tick in visible])
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def decades(low: int, high: int, steps: Sequence[int] = (1, 2, 5)) -> list[float]:
    """Steps of each power of ten: 1, 2, 5, 10, 20, ..."""
    return [float(f"{step}e{power}") for power in range(low, high) for step in steps]


def name_curves(figure: "Figure", axes: "Axes") -> None:
    """Labels each curve where it is farthest from the others, or else in a legend."""
    figure.draw_without_rendering()
    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    curves = [_points(axes, line) for line in lines]
    free = axes.get_window_extent()
    places: list[_Place] = []
    for at, line in enumerate(lines):
        others = [other for n, other in enumerate(curves) if n != at and len(other)]
        place = _place(curves[at], others, places, free, _WIDTH * len(str(line.get_label())))
        if place is None:
            axes.legend(loc="best")
            return
        places.append(place)
    for line, place in zip(lines, places, strict=True):
        middle = ((place.left + place.right) / 2, (place.low + place.high) / 2)
        x, y = axes.transData.inverted().transform(middle)
        axes.text(
            x,
            y,
            str(line.get_label()),
            ha="center",
            va="center",
            color=line.get_color(),
            fontweight="bold",
        )


@dataclass(frozen=True)
class _Place:
    """A box for a name, in pixels."""

    left: float
    right: float
    low: float
    high: float

    def distances(self, points: Floats) -> Floats:
        """Distance of each point from the box."""
        dx = numpy.maximum(numpy.maximum(self.left - points[:, 0], points[:, 0] - self.right), 0)
        dy = numpy.maximum(numpy.maximum(self.low - points[:, 1], points[:, 1] - self.high), 0)
        return numpy.asarray(numpy.hypot(dx, dy))

    def meets(self, other: "_Place") -> bool:
        across = self.left < other.right and self.right > other.left
        return across and self.low < other.high and self.high > other.low

    def within(self, box: Any) -> bool:
        across = self.left >= box.x0 and self.right <= box.x1
        return bool(across and self.low >= box.y0 and self.high <= box.y1)


def _points(axes: "Axes", line: Any) -> Floats:
    """Points along the visible part of a curve, in pixels."""
    points = axes.transData.transform(line.get_path().vertices)
    points = points[numpy.isfinite(points).all(axis=1)]
    if len(points) < 2:
        return numpy.asarray(points)
    along = numpy.concatenate([[0], numpy.cumsum(numpy.hypot(*numpy.diff(points, axis=0).T))])
    distances = numpy.linspace(0, along[-1], 300)
    return numpy.column_stack([numpy.interp(distances, along, points[:, column]) for column in (0, 1)])


def _place(
    points: Floats, others: Sequence[Floats], labels: Sequence[_Place], box: Any, width: float
) -> _Place | None:
    """Position of a curve's label: close to it, at a point that is far from the other curves."""
    best: tuple[float, _Place] | None = None
    for x, y in points[::3]:
        # A label at a place where curves run together would seem to belong to each of them.
        distance = min((float(numpy.hypot(*(other - (x, y)).T).min()) for other in others), default=_ROOM)
        if distance < _APART:
            continue
        for side, height in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1)):
            middle, level = x + side * (width / 2 + _GAP), y + height * (_HEIGHT / 2 + _GAP)
            place = _Place(middle - width / 2, middle + width / 2, level - _HEIGHT / 2, level + _HEIGHT / 2)
            if not place.within(box) or any(place.meets(other) for other in labels):
                continue
            own_distance = float(place.distances(points).min())
            nearest_other = min((float(place.distances(other).min()) for other in others), default=_ROOM)
            room = min(distance, nearest_other, _ROOM) + min(own_distance, _GAP)
            if own_distance > 1 and nearest_other > _GAP and (best is None or room > best[0]):
                best = room, place
    return best[1] if best else None
