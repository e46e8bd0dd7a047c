"""Runs of scenarios of operations."""

import json
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from leeward import _native
from leeward._native import OperationsRun, OperationsScenario
from leeward.errors import InputError

Scenario = OperationsScenario | Mapping[str, Any] | str | PathLike[str]


def read(scenario: Scenario, base: str | PathLike[str] = ".") -> OperationsScenario:
    """Reads a scenario of operations.

    Args:
        scenario: A file (YAML or JSON), or its content as a mapping.
        base: Folder of the file of the cluster, for a mapping that names one.

    Raises:
        InputError: A file cannot be read, or a field is invalid.
    """
    if isinstance(scenario, OperationsScenario):
        return scenario
    if not isinstance(scenario, Mapping):
        return _native.OperationsScenario.from_file(str(scenario))
    try:
        text = json.dumps(scenario)
    except (TypeError, ValueError) as error:
        raise InputError.about("scenario", f"{error}: expected JSON values") from None
    return _native.OperationsScenario.from_text(text, str(base), "scenario")


def simulate(
    scenario: Scenario,
    *,
    base: str | PathLike[str] = ".",
    progress: Callable[[float], object] | None = None,
) -> OperationsRun:
    """Runs a scenario of operations.

    Args:
        scenario: Argument of `read`.
        base: Argument of `read`.
        progress: Called with the completed share of the horizon.

    Returns:
        Records of the run: see `tables`, `latencies`, `telemetry` and `summary`.

    Raises:
        InputError: The scenario is invalid, or jobs arrive faster than they end.
    """
    return read(scenario, base).run(progress)
