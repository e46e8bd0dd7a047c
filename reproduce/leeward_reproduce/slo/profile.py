"""Figure 2.3: the profile of an SSD, as it was released with WorkloadCompactor."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leeward import data
from leeward_reproduce.rows import Row, computed_row, missing_row
from leeward_reproduce.slo import workloads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = tuple(512 << power for power in range(12))
"""Request sizes of rows in bytes, up to 1 MiB; sizes that the profile lacks have no row."""

Outcome = list[dict[str, float]] | None


def table(_: int) -> Outcome:
    """Rows of the profile, which are the same for every seed; None without a profile."""
    folder = data.data_folder()
    path = folder / workloads.SET / workloads.PROFILE if folder else None
    if path is None or not path.is_file():
        return None
    results: list[dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))["bandwidthTable"]
    return results


def rows(outcomes: Sequence[Outcome]) -> list[Row]:
    """Figure 2.3."""
    results = outcomes[0]
    if results is None:
        return [
            missing_row(
                "2.3",
                "profile of an SSD",
                "",
                None,
                f"there is no {workloads.PROFILE} in the folder of traces",
            )
        ]
    result = []
    by_size = {int(row["requestSize"]): row for row in results}
    note = "the profile that is released; the thesis has its values in a picture only"
    for size in [size for size in SIZES if size in by_size]:
        for kind in ("read", "write"):
            rate = by_size[size][f"{kind}Bandwidth"]
            label = f"{kind}s of {size / 1024:g} KiB"
            result.append(computed_row("2.3", label, "MB/s", rate / 1e6, None, note))
    why = "the released profile has none; `leeward device profile` measures them on a device that is there"
    return [*result, missing_row("2.3", "tail latency without queueing (c)", "", None, why)]


def picture(rows: Sequence[Row]) -> "Figure":
    """Bandwidth by size of request."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.6, 3.2), layout="constrained")
    for kind, line in (("read", "-"), ("write", "--")):
        visible = [row for row in rows if row.unit == "MB/s" and row.quantity.startswith(f"{kind}s")]
        sizes = [float(row.quantity.split()[2]) for row in visible]
        axes.plot(
            sizes, [row.ours or 0.0 for row in visible], line, marker="o", color="#111111", label=f"{kind}s"
        )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("request, KiB")
    axes.set_ylabel("MB/s at saturation")
    axes.legend()
    return figure


def constants() -> Any:
    """Inputs of the outcomes."""
    folder = data.data_folder()
    path = folder / workloads.SET / workloads.PROFILE if folder else None
    return [SIZES, path.stat().st_size if path and path.is_file() else None]
