r"""Networks of namespaces on this machine, whose links `tc` limits: real kernels, no real switches.

hosts of rack 0 -- tor0 --\
                            core      tor and core forward packets, so that each is a hop
hosts of rack 1 -- tor1 --/
"""

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

COMMAND = (str(Path(sys.executable).with_name("leeward")),)
"""The `leeward` of this Python."""
_ALONE = threading.Lock()
"""Two networks at once would measure this machine."""
_NUMBERS = itertools.count()


class UnableError(Exception):
    """Why there are no networks of namespaces here."""


class Network:
    """Hosts in racks under a core, all of which listen."""

    def __init__(self, prefix: str, racks: Sequence[int]) -> None:
        """Of what `network` made."""
        self.prefix = prefix
        self.hosts = [(rack, host) for rack, count in enumerate(racks) for host in range(count)]

    def limit(self, host: tuple[int, int], rate: str, bucket: str = "16kb") -> None:
        """Limits what a host sends."""
        shape = ("tbf", "rate", rate, "burst", bucket, "latency", "20ms")
        name = f"{self.prefix}-h{host[0]}-{host[1]}"
        _run("tc", "-n", name, "qdisc", "replace", "dev", "eth0", "root", *shape)

    def given(self, hosts: Sequence[tuple[int, int]] | None = None) -> str:
        """Hosts as `--hosts` takes them."""
        return ",".join(f"h{rack}-{host}=10.{rack}.{host}.2" for rack, host in hosts or self.hosts)

    def ask(self, *arguments: str) -> Any:
        """What a command of `leeward probe` says, asked at the core.

        Raises:
            UnableError: It fails.
        """
        command = ("ip", "netns", "exec", f"{self.prefix}-core", *COMMAND, "probe", *arguments, "-o", "json")
        made = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
        if made.returncode:
            raise UnableError(made.stderr.strip().splitlines()[-1] if made.stderr.strip() else "it ended")
        return json.loads(made.stdout)


def _environment() -> dict[str, str]:
    """Another Python finds what this one has."""
    return dict(os.environ) | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _run(*command: str) -> None:
    try:
        made = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UnableError(f"{command[0]}: {error.strerror}") from None
    if made.returncode:
        raise UnableError(f"{' '.join(command)}: {made.stderr.strip()}")


@contextmanager
def network(*racks: int) -> Iterator[Network]:
    """Makes a network, and removes it.

    Args:
        racks: How many hosts each has.

    Raises:
        UnableError: There are no namespaces here, or nothing listens in them.
    """
    if os.geteuid() != 0:
        raise UnableError("namespaces need root")
    with _ALONE, ExitStack() as made:
        prefix = f"lwchoreo-{os.getpid()}-{next(_NUMBERS)}"

        def add(name: str) -> str:
            full = f"{prefix}-{name}"
            _run("ip", "netns", "add", full)
            made.callback(subprocess.run, ["ip", "netns", "del", full], check=False, capture_output=True)
            _run("ip", "-n", full, "link", "set", "lo", "up")
            forward = "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv4/icmp_ratelimit"
            _run("ip", "netns", "exec", full, "sh", "-c", forward)
            return full

        core = add("core")
        built = Network(prefix, racks)
        for rack in range(len(racks)):
            tor = add(f"tor{rack}")
            ours, theirs = f"10.255.{rack}.2", f"10.255.{rack}.1"
            _cable((tor, "up0", ours), (core, f"down{rack}", theirs))
            _run("ip", "-n", tor, "route", "add", "default", "via", theirs)
            _run("ip", "-n", core, "route", "add", f"10.{rack}.0.0/16", "via", ours)
        for rack, host in built.hosts:
            name = add(f"h{rack}-{host}")
            ours, theirs = f"10.{rack}.{host}.2", f"10.{rack}.{host}.1"
            _cable((name, "eth0", ours), (f"{prefix}-tor{rack}", f"h{host}", theirs))
            _run("ip", "-n", name, "route", "add", "default", "via", theirs)
            made.enter_context(_listening(name))
        yield built


def _cable(*ends: tuple[str, str, str]) -> None:
    (one, end, _), (other, far, _) = ends
    _run("ip", "link", "add", end, "netns", one, "type", "veth", "peer", "name", far, "netns", other)
    for namespace, name, address in ends:
        _run("ip", "-n", namespace, "addr", "add", f"{address}/30", "dev", name)
        # A packet is a packet, also where connections share a queue.
        _run("ip", "-n", namespace, "link", "set", name, "gso_max_segs", "1", "up")


@contextmanager
def _listening(namespace: str) -> Iterator[None]:
    command = ("ip", "netns", "exec", namespace, *COMMAND, "probe", "listen", "--listen", "0.0.0.0:7601")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=_environment()) as process:
        try:
            said = process.stderr.readline() if process.stderr else ""
            if not said.startswith("listening"):
                raise UnableError(said.strip() or "nothing listens in a namespace")
            yield
        finally:
            process.terminate()
