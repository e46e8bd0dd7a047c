"""Active measurement: what a network gives, found out by sending packets (Choreo, section 3).

Hosts take part by `leeward probe listen`. A host is named by its address, `10.0.0.7` or `10.0.0.7:7601`, as
every other host knows it; `here` as a source is this process. Results are dictionaries; rates end in `_bps`,
times in `_s`, shares are parts of one.

    >>> from leeward import probe
    >>> probe.named(["a=10.0.0.1", "10.0.0.2:7601"])
    [('a', '10.0.0.1'), ('10.0.0.2', '10.0.0.2:7601')]
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from leeward import _native
from leeward.errors import InputError, whole_number

__all__ = ["Train", "bottlenecks", "calibrate", "cross", "hops", "mesh", "named", "path", "steady"]

Progress = Callable[[int, int], object]
"""Told with the steps that are done and how many there are."""
Host = tuple[str, str]
"""What a host is called, and where it listens."""
_MOST = 2**32 - 1


@dataclass(frozen=True)
class Train:
    """A packet train: bursts of UDP packets sent back to back, with a pause between them."""

    bursts: int = 10
    """K."""
    packets: int = 200
    """B, of each burst."""
    payload: int = 1472
    """P, of each packet, in bytes."""
    gap: str = "1ms"
    """The pause."""

    def _given(self) -> tuple[int, int, int, str]:
        for name in ("bursts", "packets", "payload"):
            whole_number(name, getattr(self, name), 0, _MOST)
        return self.bursts, self.packets, self.payload, self.gap


def named(hosts: Sequence[str]) -> list[Host]:
    """Hosts that are given as `NAME=ADDRESS`, or by an address that names them.

    Raises:
        InputError: A name is none that a cluster file takes.
    """
    made: list[Host] = []
    bare = [_bare(host) for host in hosts]
    for host, short in zip(hosts, bare, strict=True):
        name, given, address = host.partition("=")
        if not given:
            # A port only tells hosts apart that share an address.
            name, address = (short if bare.count(short) == 1 else host), host
            name = re.sub(r"[^A-Za-z0-9._-]", "-", name)
        if not re.fullmatch(r"[A-Za-z0-9._-]+", name) or not address.strip():
            expected = "expected ADDRESS or NAME=ADDRESS; a name has letters, digits, `.`, `_` and `-` only"
            raise InputError("hosts", None, None, None, f"`{host}`: {expected}")
        made.append((name, address.strip()))
    return made


def _bare(address: str) -> str:
    found = re.fullmatch(r"\[(.+)\](?::\d+)?|([^:]+):\d+", address)
    return (found[1] or found[2]) if found else address


def path(
    source: str,
    destination: str,
    *,
    train: Train | None = None,
    times: int = 1,
    secret: str | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Measures a path by one train after the other; what each says.

    Args:
        source: Where it begins; `here` is this process.
        destination: Where it ends.
        train: The trains; K = 10, B = 200, P = 1472 and 1 ms unless told otherwise.
        times: How many.
        secret: What all hosts share, if they were given one.
        progress: Told with each step.

    Raises:
        InputError: An argument is out of its bounds.
        OSError: A host cannot be reached, or refuses, or nothing arrives.
    """
    whole_number("times", times, 1, 1_000_000)
    given = (train or Train())._given()
    return _native.probe_path(source, destination, given, times, secret, progress)


def mesh(
    hosts: Sequence[Host],
    *,
    train: Train | None = None,
    at_once: int = 1_000,
    hops: bool = False,
    shape: Literal["pipe", "hose"] = "pipe",
    name: str = "measured",
    secret: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measures every path between hosts, in rounds of pairs that have no host in common.

    Args:
        hosts: At least two.
        train: The trains.
        at_once: How many are measured at a time. With 1, trains cannot meet inside the network either.
        hops: Whether hops are counted too, so that the cluster has racks.
        shape: Of the cluster that is made of it.
        name: Of that cluster.
        secret: What all hosts share, if they were given one.
        progress: Told with each step.

    Returns:
        `hosts`; `paths`, each with its `rate_bps` or its `error`; `topology`, where hops were counted; and
        `cluster`, the text of a cluster file, or `None` if a path could not be measured.

    Raises:
        InputError: An argument is out of its bounds.
        OSError: Hops cannot be counted.
    """
    whole_number("at_once", at_once, 1, _MOST)
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise InputError(
            "name", None, None, None, f"`{name}`: expected letters, digits, `.`, `_` and `-` only"
        )
    given = (train or Train())._given()
    return _native.probe_mesh(list(hosts), given, at_once, hops, shape, name, secret, progress)


def hops(
    hosts: Sequence[Host], *, secret: str | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """Counts the hops between hosts, and fits them to a multi-rooted tree.

    Returns:
        `hosts`; `hops`, a matrix; `racks` and `subtrees`, lists of lists of names; and `misfits`, what fits
        no tree.

    Raises:
        InputError: There are too few hosts.
        OSError: A host cannot be reached, or refuses.
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
    """Looks for paths that take from each other, and says whether the network is a hose.

    Args:
        hosts: At least three; four, for pairs of paths without a common end.
        duration: How long each transfer is.
        pairs: How many pairs of paths between four hosts are tried, and as many from one source.
        seed: Draws them.
        hops: Whether hops are counted too, so that the links out of racks are tried.
        secret: What all hosts share, if they were given one.
        progress: Told with each step.

    Returns:
        `between_four` and `from_one`, the experiments; `kind`: `hose`, `pipe`, `inside`, `mixed` or `None`;
        `uplinks`, what is known of the links out of racks; and `errors` of transfers that were not carried,
        whose experiments are left out.

    Raises:
        InputError: An argument is out of its bounds.
        OSError: A host cannot be reached, or refuses, from the first transfer on, or in every experiment.
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
    """Tries trains against bulk transfers, and says which is the cheapest of those nearly as exact as any.

    Args:
        hosts: At least two.
        paths: On how many paths between them.
        train: What all trains have in common: the payload, and the pause.
        bursts: Values of K; 10, 20 and 50 unless told otherwise.
        packets: Values of B; 50 to 4,000 unless told otherwise.
        duration: How long a transfer is.
        secret: What all hosts share, if they were given one.
        progress: Told with each step.

    Raises:
        InputError: An argument is out of its bounds.
        OSError: A host cannot be reached, or refuses, or nothing could be tried.
    """
    whole_number("paths", paths, 1, 1_000_000)
    if len(hosts) < 2:
        raise InputError("hosts", None, None, None, f"{len(hosts)} given: expected at least 2")
    for name, values in (("bursts", bursts), ("packets", packets)):
        for value in values:
            whole_number(name, value, 1, _MOST)
    given = (train or Train())._given()
    chosen = (list(bursts), list(packets))
    return _native.probe_calibrate(list(hosts), paths, given, *chosen, duration, secret, progress)


def cross(
    source: str,
    destination: str,
    *,
    duration: str = "10s",
    rate: str | None = None,
    own: Sequence[int] = (1, 2, 4, 8),
    secret: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Counts competing connections on a path, in equivalents of ones that always have something to send.

    Args:
        source: Where it begins; `here` is this process.
        destination: Where it ends.
        duration: How long a transfer is.
        rate: What the path carries, if that is known; else a second transfer finds out.
        own: For how many connections of one's own it is said what each would get.
        secret: What all hosts share, if they were given one.
        progress: Told with each step.

    Returns:
        `connections`, or `None` where a second connection took nothing from the first; `plausible`; and
        `over_time`.

    Raises:
        InputError: An argument is out of its bounds.
        OSError: A host cannot be reached, or refuses.
    """
    given = [whole_number("own", one, 1, 10_000) for one in own]
    return _native.probe_cross(source, destination, duration, rate, given, secret, progress)


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
    """Measures a path again and again, and says how well an earlier measurement stands for a later one.

    Args:
        source: Where it begins; `here` is this process.
        destination: Where it ends.
        train: The trains.
        every: The time from one to the next.
        times: How many.
        lags: How much earlier; those longer than it was measured are left out.
        secret: What all hosts share, if they were given one.
        progress: Told with each step, and some times in between.

    Returns:
        `samples`, `errors` of trains that were not measured, and `lags` with their errors as shares.

    Raises:
        InputError: An argument is out of its bounds.
        OSError: A host cannot be reached, or refuses, from the first train on.
    """
    whole_number("times", times, 2, 1_000_000)
    given = (train or Train())._given()
    return _native.probe_steady(source, destination, given, every, times, list(lags), secret, progress)
