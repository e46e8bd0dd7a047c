"""Machines of a lab, and programs that run there."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from leeward import _native


@dataclass(frozen=True)
class Machine:
    """A host, rack or pod of a lab, or its core.

    Attributes:
        name: Name in the cluster file.
        place: Name by its place: `r3h1`, `r3`, `p0` or `core`.
        address: IPv4 address.
        namespace: Network namespace.
        disks: Folders of its disks.
        is_host: False for a machine that forwards packets.
        prefix: Program and arguments that run what follows them at the machine.
    """

    name: str
    place: str
    address: str
    namespace: str
    disks: list[str]
    is_host: bool
    prefix: list[str]


class Machines:
    """Machines of a lab that is up.

    Args:
        name: Name of the lab.
        machines: Its machines.
    """

    def __init__(self, name: str, machines: list[Machine]) -> None:
        """Wraps the machines of a lab."""
        self.name = name
        """Name of the lab."""
        self.machines = machines
        """Hosts, and then racks, pods and the core."""

    @property
    def hosts(self) -> list[Machine]:
        """Hosts in the order of the cluster."""
        return [machine for machine in self.machines if machine.is_host]

    def machine(self, name: str) -> Machine:
        """Machine of a name of the cluster file, or of a place.

        Raises:
            InputError: There is none.
        """
        prefix = _native.lab_prefix(self.name, name)
        return next(machine for machine in self.machines if machine.prefix == prefix)

    def command(self, machine: str, command: Sequence[str | PathLike[str]]) -> list[str]:
        """Program and arguments that run a command at a machine.

        Raises:
            InputError: There is no such machine.
        """
        return [*_native.lab_prefix(self.name, machine), *map(str, command)]

    def run(
        self,
        machine: str,
        command: Sequence[str | PathLike[str]],
        *,
        check: bool = True,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command at a machine, and returns its result with its output as text.

        Args:
            machine: Name of a host, rack or pod, or `core`.
            command: Program and its arguments.
            check: True if a status other than 0 raises an error.
            **options: Other options of `subprocess.run`. By default, the output is captured.

        Raises:
            InputError: There is no such machine.
            subprocess.CalledProcessError: The program failed.
        """
        options = {"capture_output": True, "text": True} | options
        result: subprocess.CompletedProcess[str] = subprocess.run(
            self.command(machine, command), check=check, **options
        )
        return result

    def start(
        self, machine: str, command: Sequence[str | PathLike[str]], **options: Any
    ) -> subprocess.Popen[str]:
        """Starts a command at a machine. It ends with the lab, if it has not ended before.

        Args:
            machine: Name of a host, rack or pod, or `core`.
            command: Program and its arguments.
            **options: Options of `subprocess.Popen`. By default, streams are text.

        Raises:
            InputError: There is no such machine.
        """
        process: subprocess.Popen[str] = subprocess.Popen(
            self.command(machine, command), **({"text": True} | options)
        )
        return process


def machines(name: str) -> list[Machine]:
    """Machines of a lab that is up: hosts, and then racks, pods and the core.

    Raises:
        OSError: No lab of this name is up.
    """
    return [Machine(**machine) for machine in _native.lab_machines(name)]


def command_prefix(name: str, machine: str) -> list[str]:
    """Program and arguments that run what follows them at a machine of a lab that is up.

    Raises:
        InputError: There is no such machine.
        OSError: No lab of this name is up.
    """
    return _native.lab_prefix(name, machine)
