"""Runs of packet simulator scenarios."""

import json
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from leeward import _native
from leeward._native import PacketRun, PacketScenario
from leeward.circuits.network import Network
from leeward.circuits.user_schedules import NsDays, run_scheduler, scheduler_name
from leeward.errors import InputError


def read(scenario: PacketScenario | Mapping[str, Any] | str | PathLike[str]) -> PacketScenario:
    """Reads a scenario of the packet simulator.

    Args:
        scenario: A file (YAML or JSON), or its content as a mapping. In a mapping, the `name` of the
            `scheduler` may be a function. It takes a demand and the network, and returns days, as for
            `leeward.circuits.schedule`.

    Raises:
        InputError: The file cannot be read, or a field is invalid.
    """
    if isinstance(scenario, PacketScenario):
        return scenario
    if not isinstance(scenario, Mapping):
        return _native.PacketScenario.from_file(str(scenario))
    scheduler = scenario.get("scheduler")
    function = scheduler.get("name") if isinstance(scheduler, Mapping) else None
    if scheduler is None or not callable(function):
        return _native.PacketScenario.from_text(_text(scenario), "scenario")

    def days(rows: list[list[int]], network: tuple[str, str, str, str, str]) -> NsDays:
        return run_scheduler(function, rows, Network(*network))

    name = scheduler_name(function)
    text = _text({**scenario, "scheduler": {**scheduler, "name": name}})
    return _native.PacketScenario.from_text(text, "scenario", (name, days))


def _text(scenario: Mapping[str, Any]) -> str:
    """JSON text of a scenario.

    Raises:
        InputError: A value has no form in JSON.
    """
    try:
        return json.dumps(scenario)
    except (TypeError, ValueError) as error:
        message = f"{error}: expected JSON values"
        raise InputError.about("scenario", message) from None


def simulate(
    scenario: PacketScenario | Mapping[str, Any] | str | PathLike[str],
    *,
    progress: Callable[[float], object] | None = None,
) -> PacketRun:
    """Runs a scenario of the packet simulator.

    Args:
        scenario: Argument of `read`.
        progress: Called with the completed share of the horizon.

    Returns:
        Records of the run: see `tables`, `summary`, and `PacketRun`.

    Raises:
        InputError: The scenario is invalid, or its scheduler returns no schedule.
    """
    return read(scenario).run(progress)
