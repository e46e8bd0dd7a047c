"""Schedules of a demand matrix, and the bytes that they serve."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy

from leeward import _native
from leeward._arrays import Ints
from leeward.circuits.network import Network
from leeward.circuits.user_schedules import UserScheduler, run_scheduler, scheduler_name
from leeward.errors import InputError


@dataclass(frozen=True)
class Circuit:
    """A circuit of a day, and the bytes of the demand that it carries on this day."""

    source: int
    destination: int
    bytes: int


@dataclass(frozen=True)
class Day:
    """A day of a schedule.

    Attributes:
        start_s: Time at which circuits come up, from the beginning of the week.
        length_s: Time that circuits are up, without the preceding night.
        served_bytes: Bytes of the demand that circuits carry.
        circuit_bytes: Capacity of one circuit during the day, in bytes.
        circuits: Circuits, by destination.
    """

    start_s: float
    length_s: float
    served_bytes: int
    circuit_bytes: int
    circuits: tuple[Circuit, ...]

    @property
    def used(self) -> float:
        """Used share of the capacity of its circuits; 0 without circuits."""
        most = self.circuit_bytes * len(self.circuits)
        return self.served_bytes / most if most else 0.0


@dataclass(frozen=True)
class Schedule:
    """A schedule, and the bytes of its demand that it serves.

    Attributes:
        scheduler: Name of the scheduler, with settings.
        racks: Number of racks.
        night_s: Gap before each day.
        length_s: Length of all nights and days.
        week_s: Greatest permitted length.
        within_bytes: Bytes of the diagonal: traffic within racks, which crosses no switch and takes no part.
        demand_bytes: Bytes of the demand, without the diagonal.
        served_bytes: Bytes of the demand on circuits.
        left_bytes: Bytes left for packets.
        packets_take_s: Time of an idle packet switch for the left bytes, which is that of its busiest port.
        pairs: Number of pairs of racks that have a circuit on some day.
        days: The days, in order.
        left: Bytes left, by pair: rows are sources.
    """

    scheduler: str
    racks: int
    night_s: float
    length_s: float
    week_s: float
    within_bytes: int
    demand_bytes: int
    served_bytes: int
    left_bytes: int
    packets_take_s: float
    pairs: int
    days: tuple[Day, ...]
    left: Ints

    @property
    def served(self) -> float:
        """Share of the demand on circuits; 1 without demand."""
        return self.served_bytes / self.demand_bytes if self.demand_bytes else 1.0

    @property
    def up(self) -> float:
        """Share of the time in which circuits are up; 0 without days."""
        return sum(day.length_s for day in self.days) / self.length_s if self.length_s else 0.0

    def record(self) -> dict[str, Any]:
        """The fields as values of JSON."""
        return {
            "scheduler": self.scheduler,
            "racks": self.racks,
            "night_s": self.night_s,
            "length_s": self.length_s,
            "week_s": self.week_s,
            "within_bytes": self.within_bytes,
            "demand_bytes": self.demand_bytes,
            "served_bytes": self.served_bytes,
            "left_bytes": self.left_bytes,
            "packets_take_s": self.packets_take_s,
            "pairs": self.pairs,
            "days": [
                {
                    "start_s": day.start_s,
                    "length_s": day.length_s,
                    "served_bytes": day.served_bytes,
                    "circuit_bytes": day.circuit_bytes,
                    "circuits": [vars(circuit) for circuit in day.circuits],
                }
                for day in self.days
            ],
            "left": self.left.tolist(),
        }


def read(path: str | PathLike[str]) -> Ints:
    """Reads a demand matrix: bytes from each rack to each other; rows are sources.

    Args:
        path: A square of numbers without a header, with commas, semicolons, tabs or other white space
            between them; or a NumPy file (`.npy`).

    Returns:
        Whole bytes, shape (racks, racks). The diagonal is traffic within racks.

    Raises:
        InputError: The file cannot be read, is not square, or has an entry that is not a number of bytes.
    """
    if Path(path).suffix.lower() == ".npy":
        from leeward import _npy

        rows = _npy.read(path)
        try:
            return _check_demand(rows)
        except InputError as error:
            raise InputError(str(path), None, None, error.field, error.message) from None
    return numpy.array(_native.read_demand(str(path)), dtype=numpy.int64)


def schedule(
    demand: Any,
    scheduler: str | UserScheduler = "solstice",
    network: Network | None = None,
    *,
    settings: str | None = None,
) -> Schedule:
    """Makes a schedule for a demand, and computes the bytes that it serves.

    Args:
        demand: Bytes from each rack to each other, as an array or as rows, with a row for each source; or
            the path of a file that `read` reads. The diagonal is traffic within racks, which crosses no
            switch: schedules leave it out and report its sum.
        scheduler: One of `schedulers()`, with settings after colons: `eclipse:keep_min_day=true`; or a
            function of the demand and the network that returns days, each as its length (`"180us"`, or
            seconds) and its circuits, (source, destination). Without days, packets carry all of the demand.
        network: Rates and times; by default Etalon's.
        settings: Settings of the scheduler as YAML, instead of settings after colons.

    Returns:
        The schedule. It respects `week` and `min_day` of the network only if the scheduler guarantees this.

    Raises:
        InputError: The demand, the network, the scheduler or a day is invalid; the error names the row and
            column, or the day.
    """
    texts = (network or Network()).texts()
    matrix = read(demand) if isinstance(demand, str | PathLike) else _check_demand(demand)
    rows = matrix.tolist()
    if callable(scheduler):
        name = scheduler_name(scheduler)
        if settings is not None:
            message = f"the function `{name}` takes no settings; expected the name of a scheduler"
            raise InputError.about("settings", message)
        between = matrix.copy()
        numpy.fill_diagonal(between, 0)
        days = run_scheduler(scheduler, between, network or Network())
        fields = _native.evaluate_circuits(rows, texts, days, name)
    else:
        fields = _native.schedule_circuits(rows, texts, scheduler, settings)
    week_days = [
        Day(**{**day, "circuits": tuple(Circuit(**circuit) for circuit in day["circuits"])})
        for day in fields["days"]
    ]
    left = numpy.array(fields["left"], dtype=numpy.int64)
    return Schedule(**{**fields, "days": tuple(week_days), "left": left})


def schedulers() -> list[dict[str, Any]]:
    """Every registered scheduler: `name`, `aliases`, `summary`, `source`, and `settings` as JSON schema."""
    return [
        {key: value for key, value in plug_in.items() if key != "kind"}
        for plug_in in _native.plug_ins()
        if plug_in["kind"] == "scheduler"
    ]


def _check_demand(demand: Any) -> Ints:
    """A demand as whole bytes.

    Raises:
        InputError: The demand is invalid; the error names `demand`.
    """
    rows: list[list[float]] = []
    try:
        for row in demand:
            rows.append([float(entry) for entry in row])
    except (TypeError, ValueError):
        message = f"row {len(rows)}: expected numbers of bytes, one for each rack"
        raise InputError.about("demand", message) from None
    return numpy.array(_native.check_demand(rows), dtype=numpy.int64)
