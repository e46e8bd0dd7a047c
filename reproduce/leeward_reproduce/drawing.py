"""Writes the pictures of a reproduction to files. Equal runs write equal bytes."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward._files import atomic_file
from leeward.report.style import SETTINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write(folder: Path, name: str, draw: "Callable[[], Figure] | None") -> None:
    """Writes a picture as SVG and PNG. If `draw` is None, removes the files of an earlier call."""
    pictures: dict[str, bytes] = {}
    if draw:
        with settings():
            pictures = render(draw())
        folder.mkdir(parents=True, exist_ok=True)
    for kind in ("svg", "png"):
        path = folder / f"{name}.{kind}"
        if kind not in pictures:
            path.unlink(missing_ok=True)
            continue
        with atomic_file(path) as temporary:
            temporary.write_bytes(pictures[kind])


def render(fig: "Figure") -> dict[str, bytes]:
    """Renders a picture as SVG and PNG, and closes it."""
    from matplotlib import pyplot

    result = {}
    for kind, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
        out = BytesIO()
        fig.savefig(out, format=kind, metadata=metadata, dpi=120)
        result[kind] = out.getvalue()
    pyplot.close(fig)
    return result


def settings() -> Any:
    """Context with the plot style of the project."""
    import matplotlib

    return matplotlib.rc_context(SETTINGS | {"figure.constrained_layout.h_pad": 0.1})  # type: ignore[arg-type]
