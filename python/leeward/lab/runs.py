"""Runs of scenarios in the lab, alone and beside the simulator."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from leeward import _native
from leeward._native import PacketRun, PacketScenario
from leeward._quantities import read_seconds
from leeward.errors import InputError
from leeward.lab import kernel_parts
from leeward.packets import read, summary

BOUND = "5us"
"""Default bound on the lateness of 99 % of the packets, in virtual time: a quarter of the shortest night."""
_LEAST_DILATION = 60
_DILATION_OF_RACK = 30
_MOST_DILATION = 100_000

Scenario = PacketScenario | Mapping[str, Any] | str | PathLike[str]
"""A scenario of the packet simulator: a file, its content, or a scenario that was read."""


@dataclass(frozen=True)
class LabRun:
    """Result of a run in the lab.

    Attributes:
        run: Records, as of the simulator: see `leeward.packets.summary` and `leeward.packets.tables`.
        timing: Dilation of the run, and how late the lab was: for `packets`, changes of `circuits` and
            computations of `schedules`, the count and the median, 99th percentile and maximum in virtual
            seconds, and the `bins` of a histogram: lists `time_s` and `count`, exact up to 1023 ns and to
            one part in 1024 above; `days_s` and `weeks_s`, the real length of each day of a circuit and of
            each week with circuits; `lost_packets` outside the switch: those of `nic_drops_packets`, and of
            `device_drops_packets` or `refused_packets`, whichever are more.
        counters: Counters of the kernels' BPF programs: by program, by name.
        notes: Settings of the scenario that the kernels did not follow, one sentence each.
    """

    run: PacketRun
    timing: dict[str, Any]
    counters: dict[str, dict[str, int]]
    notes: list[str]


@dataclass(frozen=True)
class Comparison:
    """A figure of the simulator beside that of the lab.

    Attributes:
        figure: Name of the figure.
        unit: `bps`, `share`, `s`, `flows` or `packets`.
        simulator: Value of the simulator; None without one.
        lab: Value of the lab; None without one.
    """

    figure: str
    unit: str
    simulator: float | None
    lab: float | None

    @property
    def difference(self) -> float | None:
        """The lab's value minus the simulator's, as a share of the latter; None if it is missing or 0."""
        if self.simulator is None or self.lab is None or not self.simulator:
            return None
        return self.lab / self.simulator - 1


def default_dilation(scenario: Scenario) -> int:
    """Dilation for all racks of a scenario at once: 30 for each rack, at least 60.

    On a machine with two processors, one pair of racks that sends needs 60, eight racks that all send need
    160, and 320 if circuits of all of them are full at times. `check` finds the numbers of this machine.
    """
    return max(_LEAST_DILATION, _DILATION_OF_RACK * read(scenario).racks)


def check_dilation(dilation: int) -> int:
    """Returns a valid dilation.

    Raises:
        InputError: It is too small or too large.
    """
    if not 1 <= dilation <= _MOST_DILATION:
        raise InputError.about("dilation", f"{dilation}: must be 1 to {_MOST_DILATION}")
    return dilation


def run(
    scenario: Scenario,
    *,
    dilation: int | None = None,
    bound: str | None = None,
    progress: Callable[[float], object] | None = None,
) -> LabRun:
    """Runs a scenario on kernels of this machine.

    Args:
        scenario: Argument of `leeward.packets.read`.
        dilation: Real seconds for each virtual second. By default `default_dilation`.
        bound: Largest lateness of 99 % of the packets, in virtual time; by default `BOUND`. A run that is
            later raises an error.
        progress: Called with the elapsed share of the horizon.

    Raises:
        InputError: The scenario is invalid, or kernels cannot run it.
        TimeoutError: The run was later than the bound, or packets were lost outside the switch.
        OSError: No root, no TUN devices, or a program of iproute2 failed.
    """
    scenario = read(scenario)
    dilation = default_dilation(scenario) if dilation is None else dilation
    return _run(scenario, dilation, read_seconds("bound", bound or BOUND), progress)


def measure(scenario: Scenario, dilation: int) -> LabRun:
    """Runs a scenario on kernels of this machine, however late it is.

    Raises:
        InputError: The scenario is invalid, or kernels cannot run it.
        OSError: No root, no TUN devices, or a program of iproute2 failed.
    """
    return _run(read(scenario), dilation, None, None)


def _run(
    scenario: PacketScenario,
    dilation: int,
    bound_s: float | None,
    progress: Callable[[float], object] | None,
) -> LabRun:
    parts = kernel_parts.folder()
    records, timing = _native.run_lab(scenario, check_dilation(dilation), bound_s, parts, progress)
    counters, notes = timing.pop("counters"), timing.pop("notes")
    return LabRun(records, timing, counters, notes)


def compare(simulated: PacketRun, measured: PacketRun) -> list[Comparison]:
    """Figures of a scenario's simulation beside those of its run in the lab."""
    one, other = summary(simulated), summary(measured)

    def row(figure: str, unit: str, *path: str | int) -> Comparison:
        return Comparison(figure, unit, _value(one, path), _value(other, path))

    rows = [row("throughput", "bps", "throughput_bps")]
    circuits = {(circuit["source"], circuit["destination"]) for circuit in one["circuits"]}
    for source, destination in sorted(circuits):
        shares = (circuit.utilization(source, destination) for circuit in (simulated, measured))
        rows.append(Comparison(f"circuit r{source} to r{destination}", "share", *shares))
    for path in ("packet", "circuit"):
        for share, name in (("0.5", "median"), ("0.99", "p99")):
            rows.append(row(f"latency by {path} {name}", "s", "latency_s", path, share))
    for at, flows in enumerate(one["completion"]):
        kind = f"class {flows['class']}"
        rows.append(row(f"{kind} finished", "flows", "completion", at, "finished"))
        for key, name in (("median_s", "median"), ("p99_s", "p99")):
            rows.append(row(f"{kind} completion {name}", "s", "completion", at, key))
    rows.append(row("dropped", "packets", "totals", "dropped_packets"))
    rows.append(row("data", "packets", "totals", "data_packets"))
    return rows


def _value(figures: Any, path: tuple[str | int, ...]) -> float | None:
    for key in path:
        figures = figures[key]
    return None if figures is None else float(figures)
