r"""Networks of namespaces on this machine, whose links `tc` limits: real kernels, no real switches.

hosts of rack 0 -- tor0 --\
                            agg0 --\
hosts of rack 1 -- tor1 --/         core      tor, agg and core forward packets, so that each is a hop
                                   /
hosts of rack 2 -- tor2 --- agg1 -/
"""

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from leeward_reproduce.choreo.namespaces import COMMAND, UnableError

Place = tuple[int, int]
"""A host: the number of its rack over all pods, and its number in the rack."""
_ALONE = threading.Lock()
"""Lock for one network at a time: two networks would disturb each other's measurements."""
_NUMBERS = itertools.count()
_QUEUE = 1_514_000
"""Queue at a limit, in bytes: a thousand packets, as at an interface. A single sender does not fill it."""


class Network:
    """Hosts in racks under pods, each with a running `leeward probe listen`."""

    def __init__(self, prefix: str, pods: Sequence[Sequence[int]]) -> None:
        """Names the hosts of pods; all namespaces of the network have names with the prefix."""
        self.prefix = prefix
        racks = [count for pod in pods for count in pod]
        self.hosts = [(rack, host) for rack, count in enumerate(racks) for host in range(count)]

    def limit(self, host: Place, rate: float, bucket: str = "16kb") -> None:
        """Limits the rate of a host, in bits per second."""
        shape = ("tbf", "rate", _bps(rate), "burst", bucket, "limit", str(_QUEUE))
        _run("tc", "-n", self._name(host), "qdisc", "replace", "dev", "eth0", "root", *shape)

    def limit_paths(self, host: Place, rates: Mapping[Place, float]) -> None:
        """Limits the rates from a host to other hosts, each separately."""
        on = ("tc", "-n", self._name(host))
        to = ("dev", "eth0", "parent", "1:")
        _run(*on, "qdisc", "replace", "dev", "eth0", "root", "handle", "1:", "htb")
        for number, (other, rate) in enumerate(rates.items(), 1):
            kind = f"1:{number}"
            _run(*on, "class", "add", *to, "classid", kind, "htb", "rate", _bps(rate), "quantum", "1514")
            _run(*on, "qdisc", "add", "dev", "eth0", "parent", kind, "bfifo", "limit", str(_QUEUE))
            match = ("u32", "match", "ip", "dst", f"{address(other)}/32", "flowid", kind)
            _run(*on, "filter", "add", *to, "protocol", "ip", "prio", "1", *match)

    def limit_from(self, host: Place, rates: Mapping[Place, float]) -> None:
        """Limits the rates from other hosts to a host, each separately, behind the limits of these hosts."""
        on = ("tc", "-n", f"{self.prefix}-tor{host[0]}")
        to = ("dev", f"h{host[1]}", "parent", "1:")
        # Class 0 does not exist: other traffic passes at once.
        _run(*on, "qdisc", "replace", *to[:2], "root", "handle", "1:", "htb", "default", "0")
        for number, (other, rate) in enumerate(rates.items(), 1):
            kind = f"1:{number}"
            _run(*on, "class", "add", *to, "classid", kind, "htb", "rate", _bps(rate), "quantum", "1514")
            _run(*on, "qdisc", "add", *to[:2], "parent", kind, "bfifo", "limit", str(_QUEUE))
            match = ("u32", "match", "ip", "src", f"{address(other)}/32", "flowid", kind)
            _run(*on, "filter", "add", *to, "protocol", "ip", "prio", "1", *match)

    def join(self, one: Place, other: Place, rate: float) -> None:
        """Connects two hosts directly, like virtual machines on one machine; in bits per second each way."""
        ends = ((one, other), (other, one))
        names = [f"m{host[0]}-{host[1]}" for _, host in ends]
        (first, second) = (self._name(host) for host, _ in ends)
        _run(
            *("ip", "link", "add", names[0], "netns", first, "type", "veth"),
            *("peer", "name", names[1], "netns", second),
        )
        shape = ("tbf", "rate", _bps(rate), "burst", "64kb", "limit", str(_QUEUE))
        for (host, _), name in zip(ends, names, strict=True):
            _run("ip", "-n", self._name(host), "link", "set", name, "gso_max_segs", "1", "up")
            _run("tc", "-n", self._name(host), "qdisc", "replace", "dev", name, "root", *shape)
        for (host, far), name in zip(ends, names, strict=True):
            source = ("dev", name, "src", address(host))
            _run("ip", "-n", self._name(host), "route", "add", f"{address(far)}/32", *source)

    def host_list(self, hosts: Sequence[Place] | None = None) -> str:
        """Hosts in the form of `--hosts`."""
        return ",".join(f"h{host[0]}-{host[1]}={address(host)}" for host in hosts or self.hosts)

    def probe(self, *arguments: str) -> Any:
        """JSON output of a `leeward probe` command, run at the core.

        Raises:
            UnableError: The command fails.
        """
        command = ("ip", "netns", "exec", f"{self.prefix}-core", *COMMAND, "probe", *arguments, "-o", "json")
        result = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
        if result.returncode:
            *_, note = ["it ended", *result.stderr.strip().splitlines()]
            raise UnableError(note.removeprefix("error: "))
        return json.loads(result.stdout)

    def _name(self, host: Place) -> str:
        return f"{self.prefix}-h{host[0]}-{host[1]}"


def address(host: Place) -> str:
    """Address of a host."""
    return f"10.{host[0]}.{host[1]}.2"


def _bps(rate: float) -> str:
    return f"{round(rate)}bit"


def _environment() -> dict[str, str]:
    """Environment in which another Python process finds the same modules."""
    return dict(os.environ) | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _run(*command: str) -> None:
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UnableError(f"{command[0]}: {error.strerror}") from None
    if result.returncode:
        raise UnableError(f"{' '.join(command)}: {result.stderr.strip()}")


@contextmanager
def network(*pods: Sequence[int]) -> Iterator[Network]:
    """Makes a network, and removes it.

    Args:
        pods: For each pod, the number of hosts in each of its racks.

    Raises:
        UnableError: Namespaces are unavailable, or no listener starts in them.
    """
    if os.geteuid() != 0:
        raise UnableError("namespaces need root")
    with _ALONE, ExitStack() as stack:
        prefix = f"lwchoreo-{os.getpid()}-{next(_NUMBERS)}"

        def add(name: str) -> str:
            full = f"{prefix}-{name}"
            _run("ip", "netns", "add", full)
            stack.callback(subprocess.run, ["ip", "netns", "del", full], check=False, capture_output=True)
            _run("ip", "-n", full, "link", "set", "lo", "up")
            forward = "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv4/icmp_ratelimit"
            _run("ip", "netns", "exec", full, "sh", "-c", forward)
            return full

        core = add("core")
        racks = itertools.count()
        for pod, within in enumerate(pods):
            agg = add(f"agg{pod}")
            _cable((agg, "up0", f"10.254.{pod}.2"), (core, f"down{pod}", f"10.254.{pod}.1"))
            _route(agg, "default", f"10.254.{pod}.1")
            for hosts in within:
                rack = next(racks)
                tor = add(f"tor{rack}")
                _cable((tor, "up0", f"10.255.{rack}.2"), (agg, f"down{rack}", f"10.255.{rack}.1"))
                _route(tor, "default", f"10.255.{rack}.1")
                _route(agg, f"10.{rack}.0.0/16", f"10.255.{rack}.2")
                _route(core, f"10.{rack}.0.0/16", f"10.254.{pod}.2")
                for host in range(hosts):
                    name, gateway = add(f"h{rack}-{host}"), f"10.{rack}.{host}.1"
                    _cable((name, "eth0", address((rack, host))), (tor, f"h{host}", gateway))
                    _route(name, "default", gateway)
                    stack.enter_context(_listening(name))
        yield Network(prefix, pods)


def _cable(*ends: tuple[str, str, str]) -> None:
    (one, end, _), (other, far, _) = ends
    _run("ip", "link", "add", end, "netns", one, "type", "veth", "peer", "name", far, "netns", other)
    for namespace, name, address in ends:
        _run("ip", "-n", namespace, "addr", "add", f"{address}/30", "dev", name)
        # Without segmentation offload, packets in a queue are as large as on a wire.
        _run("ip", "-n", namespace, "link", "set", name, "gso_max_segs", "1", "up")


def _route(namespace: str, to: str, via: str) -> None:
    _run("ip", "-n", namespace, "route", "add", to, "via", via)


@contextmanager
def _listening(namespace: str) -> Iterator[None]:
    command = ("ip", "netns", "exec", namespace, *COMMAND, "probe", "listen", "--listen", "0.0.0.0:7601")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=_environment()) as process:
        try:
            line = process.stderr.readline() if process.stderr else ""
            if not line.startswith("listening"):
                raise UnableError(line.strip() or "nothing listens in a namespace")
            yield
        finally:
            process.terminate()
