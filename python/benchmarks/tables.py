"""Tables of measured figures in pages, from docs/reference/speed.json, `tables.yaml` and `constants.yaml`.

No page has a figure of speed that was typed by hand. A figure that the file lacks is shown as not measured.
"""

import json
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent
FIGURES = FOLDER.parents[1] / "docs" / "reference" / "speed.json"
SCALES = {
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "us")),
    "ms": ((1e3, "s"), (1, "ms"), (1e-3, "us")),
    "us": ((1e6, "s"), (1e3, "ms"), (1, "us")),
    "bytes/s": ((1e9, "GB/s"), (1e6, "MB/s")),
    "ratio": ((1, "times"),),
    "kB": ((1e3, "MB"), (1, "kB")),
    "MB": ((1, "MB"),),
    "GB": ((1, "GB"),),
    "%": ((1, "%"),),
}
"""Factors and names of the units that a figure may be shown in, the largest first."""
RATES = ((1e6, "million"), (1, ""))
NOT_MEASURED = "not measured with this version"
TABLES: dict[str, Any] = yaml.safe_load((FOLDER / "tables.yaml").read_text())
"""Tables by name; `tables.yaml` explains their forms."""
CONSTANTS: dict[str, Any] = yaml.safe_load((FOLDER / "constants.yaml").read_text())
"""Figures of programs that `make bench` does not run, and comparisons that were made once."""


def table(name: str, path: Path = FIGURES) -> str:
    """Text of a table.

    Args:
        name: A key of `tables.yaml`, `conditions`, or `compared`.
        path: File of figures.

    Raises:
        KeyError: No table has this name.
    """
    document = json.loads(path.read_text())
    if name == "conditions":
        return _conditions(document["parts"])
    if name == "compared":
        return _compared()
    form = TABLES[name]
    if isinstance(form, list):
        rows = [[title, _cell(document["figures"], figure)] for title, figure in form]
        return _text(["measurement", "median (least to greatest)"], rows)
    if "constants" in form:
        return _constants(form["constants"])
    if "peers" in form:
        rows = [[title, *_beside(document, figure, peer)] for title, figure, peer in form["peers"]]
        return _text(["measurement", "median (least to greatest)", "other program"], rows)
    return _grid(document["figures"], form)


def figures_of(name: str) -> set[str]:
    """Names of the measured figures in a table of `tables.yaml`."""
    form = TABLES[name]
    if isinstance(form, list):
        return {figure for _, figure in form}
    if "peers" in form:
        return {figure for _, figure, _ in form["peers"]}
    rows = form.get("rows", [])
    names: set[str] = {pattern.format(key) for _, pattern in rows for _, key in form["columns"]}
    return names.difference(CONSTANTS["figures"], form.get("without", []))


def _grid(figures: dict[str, Any], form: dict[str, Any]) -> str:
    """A table with a figure in each cell; `without` has the names of figures that do not exist."""
    spread, rows = form.get("spread", True), []
    for title, pattern in form["rows"]:
        names = [pattern.format(key) for _, key in form["columns"]]
        without = form.get("without", [])
        rows.append([title, *("" if name in without else _cell(figures, name, spread) for name in names)])
    return _text([form["first"], *(header for header, _ in form["columns"])], rows)


def _cell(figures: dict[str, Any], name: str, spread: bool = True) -> str:
    if constant := CONSTANTS["figures"].get(name):
        return display({"unit": constant["unit"], "median": constant["value"]}, spread=False)
    return display(figures[name], spread) if name in figures else NOT_MEASURED


def _beside(document: dict[str, Any], name: str, peer: str) -> tuple[str, str]:
    """Figure beside another program, and this program with its version or the reason why it is missing."""
    figure = document["figures"].get(name)
    found = [conditions["peers"].get(peer, {}) for conditions in document["parts"].values()]
    if figure is None:
        reasons = [one["missing"] for one in found if "missing" in one]
        return (f"not measured: {reasons[0]}" if reasons else NOT_MEASURED), peer
    version = document["parts"][figure["part"]]["peers"][peer]["version"]
    return display(figure), f"{peer} {version}" if version else f"{peer}, version not recorded"


def _conditions(parts: dict[str, Any]) -> str:
    """Conditions of all parts; parts with the same conditions share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for part, one in parts.items():
        loads = [
            "not recorded" if one[key] is None else f"{one[key]}" for key in ("load_before", "load_after")
        ]
        machine = _machine(one["machine"]) + (f"; {one['note']}" if "note" in one else "")
        key = (one["date"], one["commit"], str(one["runs"]), *loads, machine)
        rows.setdefault(key, []).append(part)
    head = ["parts", "date", "commit", "runs", "load before a run", "load after a run", "machine, notes"]
    return _text(head, [[", ".join(names), *key] for key, names in rows.items()])


def _machine(machine: dict[str, Any]) -> str:
    known = [machine.get("processor"), f"{machine['cores']} cores"]
    known.append(f"{machine['memory_gb']} GB" if machine.get("memory_gb") else None)
    known.append(f"Linux {machine['kernel']}" if machine.get("kernel") else None)
    return ", ".join(one for one in known if one)


def _constants(rows: list[tuple[str, str]]) -> str:
    """Constants with the program, the machine and the date of each."""
    cells = []
    for title, name in rows:
        source = CONSTANTS["sources"][CONSTANTS["figures"][name]["source"]]
        cells.append([title, _cell({}, name), source["program"], f"{source['machine']}; {source['date']}"])
    return _text(["work", "constant", "program", "machine and date"], cells)


def _compared() -> str:
    rows = [
        [one["work"], one["program"], one["result"], f"{one['machine']}; {one['date']}"]
        for one in CONSTANTS["comparisons"]
    ]
    return _text(["work", "other program", "result", "machine and date"], rows)


def _text(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def display(figure: dict[str, Any], spread: bool = True) -> str:
    """A figure with its unit: `1.2 (1.1 to 1.3) million` or `28 us`."""
    unit = figure["unit"]
    scales = SCALES.get(unit, RATES)
    factor, name = next((scale for scale in scales if figure["median"] >= scale[0]), scales[-1])
    median, least, most = (
        _number(figure.get(key, figure["median"]) / factor) for key in ("median", "least", "most")
    )
    between = f" ({least} to {most})" if spread and least != most else ""
    return f"{median}{between} {name}".strip()


def _number(value: float) -> str:
    """Three significant digits."""
    return f"{float(f'{value:.3g}'):,g}" if value < 1e15 else str(value)
