"""Tables of docs/reference/speed.md, from the figures in docs/reference/speed.json."""

import json
from pathlib import Path
from typing import Any

import yaml

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "reference" / "speed.json"
SCALES = {
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "us")),
    "ms": ((1e3, "s"), (1, "ms"), (1e-3, "us")),
    "us": ((1e6, "s"), (1e3, "ms"), (1, "us")),
    "bytes/s": ((1e9, "GB/s"), (1e6, "MB/s")),
    "ratio": ((1, "times"),),
    "MB": ((1, "MB"),),
    "GB": ((1, "GB"),),
    "%": ((1, "%"),),
}
"""Factors and names of the units that a figure may be shown in, the largest first."""
RATES = ((1e6, "million"), (1, ""))
ROWS: dict[str, list[tuple[str, str]]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
"""Rows of each table: description, and name of the figure."""
RACKS = (4, 8, 16, 32, 64, 128)
CIRCUITS = (
    ("released solver, C, constants", "circuits, released solver"),
    ("`solstice-etalon`, the same days", "circuits, solstice-etalon"),
    ("`solstice`", "circuits, solstice"),
    ("`eclipse`", "circuits, eclipse"),
    ("demand served by `solstice-etalon`", "circuits served, solstice-etalon"),
    ("by `solstice`", "circuits served, solstice"),
    ("by `eclipse`", "circuits served, eclipse"),
)
"""Rows of the table of circuits, by number of racks."""


def table(name: str, path: Path = FIGURES) -> str:
    """Text of a table.

    Args:
        name: A key of `ROWS`, `circuits`, or `machine`.
        path: File of figures.

    Raises:
        KeyError: No table has this name.
    """
    document = json.loads(path.read_text())
    if name == "machine":
        return _machine(document)
    figures = document["figures"]
    if name == "circuits":
        head = ["| racks | " + " | ".join(map(str, RACKS)) + " |", "| --- |" + " ---: |" * len(RACKS)]
        rows = [
            f"| {title} | "
            + " | ".join(display(figures[f"{figure}, {racks} racks"], False) for racks in RACKS)
            + " |"
            for title, figure in CIRCUITS
        ]
        return "\n".join([*head, *rows, ""])
    # Some figures need reference results, traces or PostgreSQL, which a machine may lack. The file of the
    # repository has all of them, as a test requires.
    rows = [f"| {title} | {display(figures[figure])} |" for title, figure in ROWS[name] if figure in figures]
    return "\n".join(["| measurement | median (least to greatest) |", "| --- | --- |", *rows, ""])


def _machine(document: dict[str, Any]) -> str:
    machine = document["machine"]
    return (
        f"* Machine: {machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, Linux"
        f" {machine['kernel']}.\n"
        f"* Date: {document['date']}, at commit {document['commit']}.\n"
        f"* Runs: {document['runs']}; load average before a run: at most {document['load_before']}, from"
        " the run before and from other programs.\n"
    )


def display(figure: dict[str, Any], spread: bool = True) -> str:
    """A figure with its unit: `1.2 (1.1 to 1.3) million` or `28 us`."""
    unit = figure["unit"]
    scales = SCALES.get(unit, RATES)
    factor, name = next((scale for scale in scales if figure["median"] >= scale[0]), scales[-1])
    median, least, most = (_number(figure[key] / factor) for key in ("median", "least", "most"))
    between = f" ({least} to {most})" if spread and least != most else ""
    return f"{median}{between} {name}".strip()


def _number(value: float) -> str:
    """Three significant digits."""
    return f"{float(f'{value:.3g}'):,g}" if value < 1e15 else str(value)
