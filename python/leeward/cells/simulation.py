"""Runs of scenarios of cells."""

import json
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from leeward import _native
from leeward._native import CellsRuns, CellsScenario
from leeward.errors import InputError

Scenario = CellsScenario | Mapping[str, Any] | str | PathLike[str]


def read(scenario: Scenario, base: str | PathLike[str] = ".") -> CellsScenario:
    """Reads a scenario of cells.

    Args:
        scenario: A file (YAML or JSON), or its content as a mapping.
        base: Folder of the file of the cluster, for a mapping that names one.

    Raises:
        InputError: A file cannot be read, or a field is invalid.
    """
    if isinstance(scenario, CellsScenario):
        return scenario
    if not isinstance(scenario, Mapping):
        return _native.CellsScenario.from_file(str(scenario))
    try:
        text = json.dumps(scenario)
    except (TypeError, ValueError) as error:
        raise InputError.about("scenario", f"{error}: expected JSON values") from None
    return _native.CellsScenario.from_text(text, str(base), "scenario")


def simulate(
    scenario: Scenario,
    *,
    base: str | PathLike[str] = ".",
    progress: Callable[[float], object] | None = None,
) -> CellsRuns:
    """Makes all runs of a scenario of cells: one ledger, and cells for each interval, loss and absence.

    Args:
        scenario: Argument of `read`.
        base: Argument of `read`.
        progress: Called with the completed share of all runs.

    Returns:
        Records of the runs: see `tables` and `summary`.

    Raises:
        InputError: The scenario is invalid, or has too many blocks.
    """
    return read(scenario, base).run(progress)
