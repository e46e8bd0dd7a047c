"""Labs for Choreo's measurements: hosts with a running `leeward probe listen`, in racks under pods."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from leeward import lab
from leeward.errors import InputError

COMMAND = (str(Path(sys.executable).with_name("leeward")),)
"""The `leeward` command of this Python."""
Place = tuple[int, int]
"""A host: the number of its rack over all pods, and its number in the rack."""
_ALONE = threading.Lock()
"""Lock for one network at a time: two networks would disturb each other's measurements."""
_UNLIMITED = "1Tbps"
"""Rate of links without a limit: no machine carries it."""


class UnableError(Exception):
    """Reason why a measurement between namespaces is impossible."""


class Network:
    """Hosts in racks under pods, each with a running `leeward probe listen`."""

    def __init__(self, network: lab.Network) -> None:
        """Takes a lab whose hosts have names of `host_name`."""
        self.lab = network
        self.hosts = [_place(host.name) for host in network.hosts]

    def limit(self, host: Place, rate: float, bucket: str = "16kB") -> None:
        """Limits the sending rate of a host, in bits per second; packets of a bucket pass at once."""
        self.lab.limit(f"{host_name(host)}:egress", f"{round(rate)}bps", burst=bucket)

    def host_list(self, hosts: Sequence[Place] | None = None) -> str:
        """Hosts in the form of `--hosts`."""
        return ",".join(f"{host_name(host)}={address(host)}" for host in hosts or self.hosts)

    def probe(self, *arguments: str) -> Any:
        """JSON output of a `leeward probe` command, run at the core.

        Raises:
            UnableError: The command fails.
        """
        return output_of(self.lab.command("core", (*COMMAND, "probe", *arguments, "-o", "json")))


def output_of(command: Sequence[str]) -> Any:
    """JSON output of a command.

    Raises:
        UnableError: The command fails.
    """
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    if result.returncode:
        *_, note = ["it ended", *result.stderr.strip().splitlines()]
        raise UnableError(note.removeprefix("error: "))
    return json.loads(result.stdout)


def host_name(host: Place) -> str:
    """Name of a host."""
    return f"h{host[0]}-{host[1]}"


def _place(name: str) -> Place:
    rack, _, host = name[1:].partition("-")
    return int(rack), int(host)


def address(host: Place) -> str:
    """Address of a host."""
    return f"10.{host[0]}.{host[1]}.2"


def _environment() -> dict[str, str]:
    """Environment in which another Python process finds the same modules."""
    return dict(os.environ) | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@contextmanager
def network(*pods: Sequence[int], paths: Mapping[Place, float] | None = None) -> Iterator[Network]:
    """Makes a network, and removes it.

    Args:
        pods: For each pod, the number of hosts in each of its racks.
        paths: Rate of each path out of a host, in bits per second. The network then has no pods, and each
            path has its own limit. By default, nothing is limited.

    Raises:
        UnableError: Namespaces are unavailable, or no listener starts in them.
    """
    if os.geteuid() != 0:
        raise UnableError("namespaces need root")
    with _ALONE, ExitStack() as stack:
        try:
            built = Network(stack.enter_context(lab.up(_cluster(pods, paths))))
        except (InputError, OSError) as error:
            raise UnableError(str(error)) from None
        for host in built.hosts:
            stack.enter_context(_listening(built.lab, host_name(host)))
        yield built


def _cluster(pods: Sequence[Sequence[int]], paths: Mapping[Place, float] | None) -> dict[str, Any]:
    """Cluster of a network: a tree without limits, or pipes."""
    racks: list[dict[str, Any]] = []
    for pod, within in enumerate(pods):
        for hosts in within:
            names = [{"name": host_name((len(racks), host))} for host in range(hosts)]
            racks.append({"hosts": names} | ({} if paths else {"pod": f"p{pod}"}))
    if not paths:
        links = {"nic": _UNLIMITED, "rack_link": _UNLIMITED, "pod_link": _UNLIMITED}
        return {"racks": racks, "pods": len(pods), **links}
    pairs = [
        {"from": host_name(source), "to": host_name(other), "rate": f"{round(rate)}bps"}
        for source, rate in paths.items()
        for other in paths
        if other != source
    ]
    return {"shape": "pipe", "racks": racks, "pairs": pairs}


@contextmanager
def _listening(network: lab.Network, host: str) -> Iterator[None]:
    command = (*COMMAND, "probe", "listen", "--listen", "0.0.0.0:7601")
    with network.start(host, command, stderr=subprocess.PIPE, env=_environment()) as process:
        try:
            line = process.stderr.readline() if process.stderr else ""
            if not line.startswith("listening"):
                raise UnableError(line.strip() or "nothing listens in a namespace")
            yield
        finally:
            process.terminate()
