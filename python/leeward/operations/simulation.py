"""Runs of scenarios of operations."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from leeward import _native
from leeward._inputs import operations_text
from leeward._native import Cluster, OperationsRun, OperationsScenario
from leeward.errors import InputError

Scenario = OperationsScenario | Mapping[str, Any] | str | PathLike[str]
_NAME = "<mapping>"


def read(scenario: Scenario, base: str | PathLike[str] = ".") -> OperationsScenario:
    """Reads a scenario of operations.

    Args:
        scenario: A file (YAML or JSON), or a mapping with its fields. `cluster` of a mapping may be a
            `Cluster`, or anything that `Cluster(...)` takes. Numbers may be those of NumPy, lists may be
            tables, and numbers of sizes are bytes.
        base: Folder of the file of the cluster, for a mapping that names one.

    Raises:
        InputError: A file cannot be read, or a field is invalid.
    """
    if isinstance(scenario, OperationsScenario):
        return scenario
    if not isinstance(scenario, Mapping):
        return _native.OperationsScenario.from_file(str(scenario))
    text, cluster = operations_text(scenario)
    network = None if cluster is None else Cluster(cluster)
    try:
        return _native.OperationsScenario.from_text(text, str(base), _NAME, network)
    except InputError as error:
        # A position in the JSON text has no meaning for the author of a mapping.
        if error.file != _NAME:
            raise
        raise InputError(_NAME, None, None, error.field, error.message) from None


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
