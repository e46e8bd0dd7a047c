"""Active measurement: sends packets to find the rates of a network (Choreo, section 3).

Hosts take part by `leeward probe listen`. A host is given by the address at which all other hosts reach it:
`10.0.0.7` or `10.0.0.7:7601`. The source `here` is this process. Results are dictionaries: rates end in
`_bps`, times in `_s`, and shares are fractions of one.

    >>> from leeward import probe
    >>> probe.parse_hosts(["a=10.0.0.1", "10.0.0.2:7601"])
    [('a', '10.0.0.1'), ('10.0.0.2', '10.0.0.2:7601')]
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Any, Literal

from leeward import _native
from leeward.errors import InputError, whole_number

__all__ = [
    "Train",
    "bottlenecks",
    "calibrate",
    "cross",
    "hops",
    "mesh",
    "parse_hosts",
    "path",
    "split_address",
    "steady",
]

Progress = Callable[[int, int], object]
"""Called with the number of steps done and the total."""
Host = tuple[str, str]
"""Name of a host, and its address."""
_MOST = 2**32 - 1
MOST_PORT = 65_535


@dataclass(frozen=True)
class Train:
    """A packet train: bursts of UDP packets sent back to back, with a pause between them."""

    bursts: int = 10
    """K of the paper."""
    packets: int = 200
    """B of the paper, for each burst."""
    payload: int = 1472
    """P of the paper, for each packet, in bytes."""
    gap: str = "1ms"
    """Pause between bursts."""

    def _fields(self) -> tuple[int, int, int, str]:
        for name in ("bursts", "packets", "payload"):
            whole_number(name, getattr(self, name), 0, _MOST)
        return self.bursts, self.packets, self.payload, self.gap


def parse_hosts(hosts: Sequence[str]) -> list[Host]:
    """Hosts from texts `NAME=ADDRESS`, or from addresses that serve as names.

    Raises:
        InputError: A name is invalid in a cluster file, or an address is no host name and no IP address.
    """
    result: list[Host] = []
    shorts = [split_address(host)[0] for host in hosts]
    for host, short in zip(hosts, shorts, strict=True):
        name, equals, address = host.partition("=")
        if not equals:
            # The port is in the name only if two hosts share an address.
            name, address = (short if shorts.count(short) == 1 else host), host
            name = re.sub(r"[^A-Za-z0-9._-]", "-", name)
        if not re.fullmatch(r"[A-Za-z0-9._-]+", name) or not address.strip():
            expected = "expected ADDRESS or NAME=ADDRESS; a name has letters, digits, `.`, `_` and `-` only"
            raise InputError.about("hosts", f"`{host}`: {expected}")
        address = address.strip()
        bare, port = split_address(address)
        if not _is_host(bare) or (port is not None and int(port) > MOST_PORT):
            raise InputError.about("hosts", f"`{host}`: expected a host name or an IP address")
        result.append((name, address))
    return result


def split_address(address: str) -> tuple[str, str | None]:
    """Host name or IP address, and port, of `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`."""
    match = re.fullmatch(r"\[(.+)\](?::(\d{1,5}))?|([^:]+)(?::(\d{1,5}))?", address)
    return (match[1] or match[3], match[2] or match[4]) if match else (address, None)


def _is_host(text: str) -> bool:
    if ":" not in text:
        return re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", text) is not None
    # With an interface, as in `fe80::1%eth0`.
    ip, percent, interface = text.partition("%")
    try:
        IPv6Address(ip)
    except ValueError:
        return False
    return not percent or re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", interface) is not None


def path(
    source: str,
    destination: str,
    *,
    train: Train | None = None,
    times: int = 1,
    secret: str | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Measures a path by consecutive trains and returns the result of each.

    Args:
        source: Host at the start of the path; `here` is this process.
        destination: Host at the end of the path.
        train: Settings of the trains; by default K = 10, B = 200, P = 1472 and 1 ms.
        times: Number of trains.
        secret: Shared secret of all hosts, if they have one.
        progress: Called with each step.

    Raises:
        InputError: An argument is out of bounds.
        OSError: A host is unreachable or refuses, or no packet arrives.
    """
    whole_number("times", times, 1, 1_000_000)
    fields = (train or Train())._fields()
    return _native.probe_path(source, destination, fields, times, secret, progress)


def mesh(
    hosts: Sequence[Host],
    *,
    train: Train | None = None,
    at_once: int = 1_000,
    hops: bool = False,
    bottlenecks: bool = False,
    duration: str = "3s",
    pairs: int = 20,
    seed: int = 1,
    shape: Literal["pipe", "hose"] | None = None,
    name: str = "measured",
    secret: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measures every path between hosts, in rounds of pairs without a common host.

    Args:
        hosts: At least two hosts.
        train: Settings of the trains.
        at_once: Number of paths measured at once. With 1, trains cannot meet inside the network either.
        hops: True to count hops too, so that the resulting cluster has racks.
        bottlenecks: True to search for bottlenecks too, so that the resulting cluster has shared links. With
            `hops`, the search tests the links out of racks and subtrees.
        duration: Length of each transfer of the search.
        pairs: Number of pairs of paths that the search draws, as in `bottlenecks`.
        seed: Seed of the draw of pairs.
        shape: Shape of the resulting cluster: a rate for each path (`pipe`), or also a limit of each source
            (`hose`). By default, the shape that the search finds, or `pipe` without a search.
        name: Name of that cluster.
        secret: Shared secret of all hosts, if they have one.
        progress: Called with each step.

    Returns:
        `hosts`; `paths`, each with its `rate_bps` or its `error`; `topology`, if hops were counted;
        `bottlenecks`, as the function of this name returns them, if they were searched; and `cluster`, the
        text of a cluster file, or `None` if a path could not be measured.

    Raises:
        InputError: An argument is out of bounds.
        OSError: Hops cannot be counted.
    """
    whole_number("at_once", at_once, 1, _MOST)
    whole_number("pairs", pairs, 1, 10_000)
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise InputError.about("name", f"`{name}`: expected letters, digits, `.`, `_` and `-` only")
    fields = (train or Train())._fields()
    search = (duration, pairs, seed) if bottlenecks else None
    return _native.probe_mesh(list(hosts), fields, at_once, hops, search, shape, name, secret, progress)


def hops(
    hosts: Sequence[Host], *, secret: str | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """Counts the hops between hosts, and fits them to a multi-rooted tree.

    Returns:
        `hosts`; `hops`, a matrix; `racks` and `subtrees`, lists of lists of names; and `misfits`, the pairs
        that fit no tree.

    Raises:
        InputError: There are too few hosts.
        OSError: A host is unreachable or refuses.
    """
    return _native.probe_hops(list(hosts), secret, progress)


def bottlenecks(
    hosts: Sequence[Host],
    *,
    duration: str = "3s",
    pairs: int = 20,
    seed: int = 1,
    hops: bool = False,
    secret: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Searches for paths that take rate from each other, and for the kind of the network.

    Args:
        hosts: At least three hosts; four, for pairs of paths without a common end.
        duration: Length of each transfer.
        pairs: Number of pairs of paths to try between four hosts, and number of pairs from one source.
        seed: Seed of the draw of pairs.
        hops: True to count hops too, so that the links out of racks and subtrees are tried.
        secret: Shared secret of all hosts, if they have one.
        progress: Called with each step.

    Returns:
        `between_four` and `from_one`, the experiments; `kind`: `hose`, `pipe`, `inside`, `mixed` or `None`;
        `uplinks` and `subtrees`, results for the links out of racks and of subtrees; `shared_links`, the
        bottlenecks among them with their capacities; and `errors` of failed transfers, whose experiments are
        left out.

    Raises:
        InputError: An argument is out of bounds.
        OSError: A host is unreachable or refuses, from the first transfer on, or in every experiment.
    """
    whole_number("pairs", pairs, 1, 10_000)
    return _native.probe_bottlenecks(list(hosts), duration, pairs, seed, hops, secret, progress)


def calibrate(
    hosts: Sequence[Host],
    *,
    paths: int = 4,
    train: Train | None = None,
    bursts: Sequence[int] = (),
    packets: Sequence[int] = (),
    duration: str = "10s",
    secret: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compares trains with bulk transfers and returns the cheapest of the most accurate trains.

    Args:
        hosts: At least two hosts.
        paths: Number of paths to measure between the hosts.
        train: Settings that all trains share: the payload and the pause.
        bursts: Numbers of bursts to try; by default 10, 20 and 50.
        packets: Numbers of packets in a burst to try; by default from 50 to 4,000.
        duration: Length of a transfer.
        secret: Shared secret of all hosts, if they have one.
        progress: Called with each step.

    Raises:
        InputError: An argument is out of bounds.
        OSError: A host is unreachable or refuses, or every measurement failed.
    """
    whole_number("paths", paths, 1, 1_000_000)
    if len(hosts) < 2:
        raise InputError.about("hosts", f"{len(hosts)} given: expected at least 2")
    for name, values in (("bursts", bursts), ("packets", packets)):
        for value in values:
            whole_number(name, value, 1, _MOST)
    fields = (train or Train())._fields()
    grid = (list(bursts), list(packets))
    return _native.probe_calibrate(list(hosts), paths, fields, *grid, duration, secret, progress)


def cross(
    source: str,
    destination: str,
    *,
    duration: str = "10s",
    rate: str | None = None,
    congestion: Literal["cubic", "reno", "bbr"] | None = None,
    own: Sequence[int] = (1, 2, 4, 8),
    secret: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Estimates the number of competing connections on a path, in connections that always send.

    Args:
        source: Host at the start of the path; `here` is this process.
        destination: Host at the end of the path.
        duration: Time with one connection, and then with a second one, at most 30 s.
        rate: Rate of the path, if known; otherwise both connections measure it.
        congestion: Congestion control of the connections; by default that of the source's system. Connections
            of the same control are counted best.
        own: Numbers of own connections for which to predict the rate of one connection.
        secret: Shared secret of all hosts, if they have one.
        progress: Called with each step.

    Returns:
        `connections`, or `None` if the second connection took no rate from others; `advantage`, the rate of
        the second connection relative to that of the first; `plausible`; and `over_time`.

    Raises:
        InputError: An argument is out of bounds.
        OSError: A host is unreachable or refuses.
    """
    counts = [whole_number("own", count, 1, 10_000) for count in own]
    return _native.probe_cross(source, destination, duration, rate, congestion, counts, secret, progress)


def steady(
    source: str,
    destination: str,
    *,
    train: Train | None = None,
    every: str = "10s",
    times: int = 60,
    lags: Sequence[str] = ("1min", "5min", "10min", "30min"),
    secret: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measures a path repeatedly and returns the error of an earlier measurement for a later one.

    Args:
        source: Host at the start of the path; `here` is this process.
        destination: Host at the end of the path.
        train: Settings of the trains.
        every: Time between measurements.
        times: Number of measurements.
        lags: Ages of the earlier measurement; those beyond the measured time are left out.
        secret: Shared secret of all hosts, if they have one.
        progress: Called with each step, and several times in between.

    Returns:
        `samples`, `errors` of failed trains, and `lags` with their errors as shares.

    Raises:
        InputError: An argument is out of bounds.
        OSError: A host is unreachable or refuses, from the first train on.
    """
    whole_number("times", times, 2, 1_000_000)
    fields = (train or Train())._fields()
    return _native.probe_steady(source, destination, fields, every, times, list(lags), secret, progress)
