"""Labs with circuits that stand for programs: a process of their own keeps the switch."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Any

from leeward import _native
from leeward.errors import InputError
from leeward.lab import kernel_parts
from leeward.lab.machines import Machines, machines
from leeward.lab.runs import Scenario, check_dilation, default_dilation
from leeward.lab.state import remove, text_of
from leeward.packets import read


class StandingLab(Machines):
    """Lab with circuits that `stand_up` brought up. A `with` block removes it at its end."""

    def __init__(self, name: str, dilation: int, notes: list[str]) -> None:
        """Wraps a lab that is up; `stand_up` makes one."""
        super().__init__(name, machines(name))
        self.dilation = dilation
        """Real seconds for each virtual second."""
        self.notes = notes
        """Missing parts of the lab, each with the reason."""
        self._is_up = True

    def view(self) -> dict[str, Any]:
        """The lab now; see `view`."""
        return view(self.name)

    def down(self) -> None:
        """Ends the programs in the lab, and removes it; does nothing if this object has removed it.

        Raises:
            OSError: The lab is not up, or a part cannot be removed.
        """
        if self._is_up:
            remove(self.name)
            self._is_up = False

    def __enter__(self) -> "StandingLab":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.down()


def stand_up(
    scenario: Mapping[str, Any] | str | PathLike[str],
    *,
    name: str = "lab",
    dilation: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> StandingLab:
    """Brings up the hosts and the switch of a scenario, without its workload, for programs that run in it.

    Programs see virtual time: a link of 80 Gb/s carries 80 Gb in one of their seconds. The switch runs in a
    process of its own, which `leeward lab down` ends.

    >>> from leeward import lab
    >>> with lab.stand_up("examples/lab/eight-racks.yaml") as circuits:   # doctest: +SKIP
    ...     print(circuits.run("r0h1", ["ping", "-c", "3", "-i", "0.002", "r3h1"]).stdout)
    ...     print(circuits.view()["circuit_bytes"])

    Args:
        scenario: A scenario of the packet simulator: a file, or its content.
        name: Name of the lab.
        dilation: Real seconds for each virtual second. By default `default_dilation`.
        progress: Called with the share of the hosts that are up.

    Raises:
        InputError: The scenario is invalid, or kernels cannot run it.
        OSError: No root, no TUN devices, or a lab of this name is up.
    """
    document: Any = dict(scenario) if isinstance(scenario, Mapping) else str(Path(fspath(scenario)).resolve())
    # The scenario is read here first: an invalid one starts no process.
    wanted = default_dilation(scenario) if dilation is None else check_dilation(dilation)
    try:
        order = json.dumps({"scenario": document, "name": name, "dilation": wanted})
    except TypeError as error:
        problem = "functions of Python stay in this process: `lab.stand` keeps a lab up with them"
        raise InputError.about("scenario", problem) from error
    with subprocess.Popen(
        [sys.executable, "-m", "leeward.lab.process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(order)
            process.stdin.close()
            values: dict[str, Any] = {"error": "the process of the lab ended without a message"}
            for message in map(json.loads, process.stdout):
                if "share" not in message:
                    values = message
                elif progress:
                    progress(message["share"])
        except BaseException:
            # The process that keeps the lab is in the group of the one that was started here, and closes
            # its output at its end.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.stdout.read()
            raise
    if values.get("is_input"):
        raise InputError.about("scenario", values["error"])
    if "error" in values:
        raise OSError(values["error"])
    return StandingLab(name, wanted, values["notes"])


def stand(
    scenario: Scenario,
    *,
    name: str = "lab",
    dilation: int,
    ready: Callable[[dict[str, Any]], object],
    progress: Callable[[float], object] | None = None,
) -> None:
    """Keeps a lab of a scenario up in this process, until a signal raises an exception.

    Args:
        scenario: Argument of `leeward.packets.read`. Its scheduler may be a Python function.
        name: Name of the lab.
        dilation: Real seconds for each virtual second.
        ready: Called when programs may run, with their `environment` and the `notes` of the lab. An error
            after that is also one of `failures`.
        progress: Called with the share of the hosts that are up, now and then as long as the lab stands.

    Raises:
        InputError: The scenario is invalid, or kernels cannot run it.
        OSError: No root, no TUN devices, or a lab of this name is up.
    """
    wanted = check_dilation(dilation)
    is_ready = False

    def on_ready(values: dict[str, Any]) -> None:
        nonlocal is_ready
        is_ready = True
        ready(values)

    try:
        _native.stand_lab(read(scenario), name, wanted, kernel_parts.folder(), on_ready, progress)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        # A panic of the native code is no `Exception`.
        if is_ready:
            with suppress(OSError):
                _native.record_lab_failure(name, text_of(error))
        raise


def view(name: str) -> dict[str, Any]:
    """A lab with circuits at a moment of the last quarter of a second.

    Returns:
        `at_s`, the virtual time; `dilation`; `racks`; `circuits` that are up, as pairs of racks; for each
        pair of racks, by source and then destination, `queued_packets`, `capacity_packets` and, if the
        schedule needs it, `demand_bytes`; for each rack, `packet_bytes` and `circuit_bytes` sent to others;
        `dropped_packets` of the switch; `lost_packets`, which were lost outside it; `late_p99_s`, the
        lateness of packets in virtual time, or None without packets; `remarks` of the lab's parts, such as
        settings that a kernel has rejected.

    Raises:
        OSError: No lab of this name stands; the message has the error that ended the last one.
    """
    text = _native.lab_view(name)
    if text is None:
        raise OSError(f"lab `{name}`: has no circuits, or no view yet")
    values: dict[str, Any] = json.loads(text)
    return values
