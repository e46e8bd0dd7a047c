"""Runs a scenario in the simulator and in the lab, and measures both alike."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from leeward import lab, packets

T = TypeVar("T")
Scenario = Mapping[str, Any]

LINUX = {"rack": "always", "undo": True, "quick_acks": 16, "growth_acks": 200}
"""Rules of Linux's TCP that the paper's scenarios do not have: losses by time (RFC 8985; the only rule since
Linux 6.17), needless reductions of the window that are undone, and acknowledgements of single segments. With
the lab's buffers, a long flow raises its window with 67 to 350 segments."""
STEPS = (1.0, 1.5, 2.0, 3.0, 4.0)
"""Multiples of a dilation, which a scenario tries until a run keeps up."""
EASY_S = 1e-6
"""Lateness of 99 % of packets, in virtual seconds, below which the next scenario tries a smaller step. It is
a fifth of the default bound."""


@dataclass(frozen=True)
class Both(Generic[T]):
    """A measurement of a scenario in the simulator and in the lab."""

    simulator: T
    lab: T | None
    """None if the lab did not keep up."""
    timing: dict[str, Any]
    """Timing of the lab; empty if it did not keep up."""
    note: str
    """Dilation and remarks of the lab, or the reason why it was not measured."""


class Bench:
    """Runs scenarios, each once, under the rules of TCP in `LINUX`.

    A slow machine needs larger dilations in all scenarios. So a scenario begins with the step that the last
    scenario of the same dilation needed.

    Args:
        progress: Called after each scenario that a figure asks for, also one that has run before.
    """

    def __init__(self, progress: Callable[[], object]) -> None:
        """Makes a bench without results."""
        self._progress = progress
        self._steps: dict[int, int] = {}
        self._runs: dict[str, tuple[packets.PacketRun, lab.LabRun | None, str]] = {}

    def both(self, scenario: Scenario, dilation: int, measure: Callable[[packets.PacketRun], T]) -> Both[T]:
        """Measures a scenario in the simulator, and in the lab under a dilation or a larger one.

        Raises:
            InputError: The scenario is invalid, or kernels cannot run it.
            OSError: No root, no TUN devices, or a program of iproute2 failed.
        """
        scenario = {**scenario, "tcp": {**scenario.get("tcp", {}), **LINUX}}
        key = json.dumps(scenario, sort_keys=True)
        if key not in self._runs:
            self._runs[key] = (packets.simulate(dict(scenario)), *self._run(scenario, dilation))
        self._progress()
        simulated, measured, note = self._runs[key]
        if measured is None:
            return Both(measure(simulated), None, {}, note)
        return Both(measure(simulated), measure(measured.run), measured.timing, note)

    def _run(self, scenario: Scenario, dilation: int) -> tuple[lab.LabRun | None, str]:
        rejected: list[str] = []
        for step in range(self._steps.get(dilation, 0), len(STEPS)):
            used = round(dilation * STEPS[step])
            try:
                result = lab.run(dict(scenario), dilation=used)
            except TimeoutError as error:
                rejected.append(f"a run under dilation {used} was rejected: {error}")
                continue
            is_easy = result.timing["packets"]["p99_s"] < EASY_S
            self._steps[dilation] = max(step - 1, 0) if is_easy else step
            return result, "; ".join([f"dilation {used}", *rejected, *result.notes])
        return None, "; ".join(rejected)
