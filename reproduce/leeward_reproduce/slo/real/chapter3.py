"""Cases of chapter 3: the workloads of table 3.1 on a shared disk, and behind a shared link.

All requests are reads: Linux throttles reads and writes of a disk each by themselves, and synchronous writes
of a loop device wait for the machine's own disk. The copy keeps about as many requests open as the readahead
of Linux's client.

One rule chooses the SLOs of all figures, before a run and without a look at its results: those of the
simulation of the figure, times the least power of two with which the bounds on this disk are within
(`Case.factors`).
"""

from collections.abc import Sequence
from functools import partial
from itertools import permutations
from math import sqrt

import numpy

from leeward._quantities import read_rate
from leeward_reproduce.slo import bottleneck, bursty, contention, misbehaving, schedulers
from leeward_reproduce.slo.real import disks
from leeward_reproduce.slo.real.cases import BY_SLO, FIFO, PM, PS, Case, Member, Policy
from leeward_reproduce.slo.real.layout import Shape
from leeward_reproduce.slo.real.traffic import Mix, Requests, copy, draw

DISK = Shape(clients=4, servers=1, disk="10MB/s", disk_size="256MiB")
"""A disk on which requests of the mix take some 3 ms on average, as on a disk with short seeks."""
MIX = Mix(contention.SIZES)
FACTORS = tuple(2.0**power for power in range(6))
"""Factors of SLOs: the least one counts for which PriorityMeister's bounds are within."""
OPEN = 16
"""Requests that the copy keeps open: readahead of Linux's client before 5.4 had 15 (`NFS_MAX_READAHEAD`)."""
SHARED_S, LINK_S, WITHIN_S = 30.0, 30.0, 95.0
"""Lengths in seconds of the runs of figures 3.3 and 3.7, and of the check of bounds."""
SHORT_S = 20.0
"""Length in seconds of the runs of figures 3.2, 3.5, 3.6 and 3.9."""
SLOS = dict(zip(schedulers.LETTERS, schedulers.SLOS, strict=True))
"""SLOs of figures 3.3 and 3.9 before their factor."""
RANKED = dict(zip("BAC", misbehaving.RANKED_SLOS, strict=True))
"""SLOs of figure 3.2 before their factor, in the order of priorities; that of B is not used."""
BURSTS = ("G", "H")
ISOLATED = dict(zip("CD", misbehaving.ISOLATED_SLOS, strict=True))
"""SLOs of figure 3.6 before their factor."""
FLOOD_FROM, FLOOD_S = 6.0, 8.0
"""Time of the flood of figure 3.2."""
DECLARED_S = float(misbehaving.SECONDS)
"""Length of the trace that B declares: bursts of low rates are those of a long time. It sends the start."""
LOW, HIGH = misbehaving.LOW, misbehaving.HIGH
MEDIUM = sqrt(LOW * HIGH)
"""Rates of limits at the disk of B, whose load is 0.05."""
LIMITS = (
    Policy("all-three", priorities="slo", rates=(LOW, MEDIUM, HIGH)),
    Policy("low-rate", priorities="slo", rates=(LOW,)),
    Policy("medium-rate", priorities="slo", rates=(MEDIUM,)),
    Policy("high-rate", priorities="slo", rates=(HIGH,)),
)
"""Limits of figure 3.2; all three come first, because SLOs follow from their bounds."""


def _drawn(
    random: numpy.random.Generator,
    rate: int,
    load: float,
    gap_c2: float,
    seconds: float,
    mix: Mix = MIX,
    from_s: float = 0.0,
) -> Requests:
    """Requests with a load of a disk of `rate` bytes per second."""
    per_second = load / mix.mean(lambda size: disks.work(rate, size))
    return draw(random, mix, per_second, gap_c2, from_s, seconds)


def _stored(random: numpy.random.Generator, letter: str, client: str, slo: float, seconds: float) -> Member:
    """A workload of table 3.1 on the disk."""
    load, gap_c2 = contention.TABLE[letter]
    requests = _drawn(random, DISK.disk_rate("s0"), load, gap_c2, seconds)
    return Member(letter, client, "s0", slo, requests)


def copy_name(server: str) -> str:
    """Name of workload L at a server."""
    return f"L-{server}"


def _copy(client: str, server: str, rate: int, seconds: float) -> Member:
    """Workload L."""
    return Member(copy_name(server), client, server, None, copy(seconds, rate), open=OPEN)


def _shared(slos: dict[str, float], seconds: float, random: numpy.random.Generator) -> Sequence[Member]:
    """A, B, C and the copy. Their requests do not depend on their SLOs."""
    stored = [
        _stored(random, letter, f"c{at}", slos[letter], seconds) for at, letter in enumerate(sorted(slos))
    ]
    return [*stored, _copy("c3", "s0", DISK.disk_rate("s0"), seconds)]


def _limited(random: numpy.random.Generator) -> Sequence[Member]:
    """B floods the disk for a while, before A and C."""
    lengths = {"B": DECLARED_S, "A": SHORT_S, "C": SHORT_S}
    first, medium, low = (
        _stored(random, letter, f"c{at}", slo, lengths[letter])
        for at, (letter, slo) in enumerate(RANKED.items())
    )
    load, gap_c2 = contention.FLOOD[0], contention.TABLE["B"][1]
    flood = _drawn(random, DISK.disk_rate("s0"), load, gap_c2, FLOOD_S, from_s=FLOOD_FROM)
    declared = first.declared
    at = declared.seconds
    sent = declared.where((at < FLOOD_FROM) | ((at >= FLOOD_FROM + FLOOD_S) & (at < SHORT_S))).beside(flood)
    rates = LIMITS[0].rates
    return [
        Member("B", first.client, "s0", first.slo, declared, sent, rates=rates, counts=False),
        medium,
        low,
    ]


def _bursty(letter: str, random: numpy.random.Generator) -> Sequence[Member]:
    """A workload of some burstiness and the copy."""
    one = _stored(random, letter, "c0", bursty.SLO, SHORT_S)
    return [one, _copy("c1", "s0", DISK.disk_rate("s0"), SHORT_S)]


def _isolated(floods: bool, random: numpy.random.Generator) -> Sequence[Member]:
    """C beside D as declared, or beside E, which is D misbehaving."""
    one, other = (
        _stored(random, letter, f"c{at}", slo, SHORT_S) for at, (letter, slo) in enumerate(ISOLATED.items())
    )
    if not floods:
        return [one, other]
    load, gap_c2 = contention.FLOOD
    flood = _drawn(random, DISK.disk_rate("s0"), load, gap_c2, SHORT_S)
    return [one, Member("D", other.client, "s0", other.slo, other.declared, flood, counts=False)]


LINK_SLOS = bottleneck.SLOS
"""SLOs of figure 3.7 before their factor: K has the tightest one."""
LINK = Shape(clients=1, servers=4, disks=("2400kB/s", "15MB/s", "15MB/s", "100MB/s"), disk_size="256MiB")
"""A client whose link all servers share. C, I and J load their disks as in table 3.1; that of K is fast."""


def _linked(random: numpy.random.Generator) -> Sequence[Member]:
    """Four workloads of one client on servers of their own; the link into the client is the bottleneck."""
    link = read_rate("link", LINK.link) / 8
    members = []
    for at, (letter, slo) in enumerate(LINK_SLOS.items()):
        load, gap_c2 = (0.05, contention.TABLE["C"][1]) if letter == "C" else contention.LINKS[letter]
        sizes = {"C": contention.SIZES, "K": contention.MEMORY}.get(letter, contention.LARGE)
        mix = Mix(sizes)
        # Bytes on the network as SLO files count them.
        per_second = load * link / mix.mean(lambda size: 200 + 1.1 * size)
        requests = draw(random, mix, per_second, gap_c2, 0.0, LINK_S)
        members.append(Member(letter, "c0", f"s{at}", slo, requests))
    return members


WITHIN = Shape(clients=8, servers=2, disk="20MB/s", disk_size="256MiB")
"""Machines on which many small requests are sent in a short time."""
WITHIN_LOADS = {"A": (0.15, 1.3), "B": (0.15, 14.0), "C": (0.15, 2.2)}
"""Loads of the disk and C^2 of gaps of three workloads on each server."""


def _within(random: numpy.random.Generator) -> Sequence[Member]:
    """Three workloads within their limits and a copy on each of two servers."""
    rate = WITHIN.disk_rate("s0")
    members = []
    for server in range(WITHIN.servers):
        for at, (letter, (load, gap_c2)) in enumerate(WITHIN_LOADS.items()):
            requests = _drawn(random, rate, load, gap_c2, WITHIN_S, Mix(((4096, 1.0),)))
            slo = SLOS[letter] / 2
            members.append(Member(f"{letter}{server}", f"c{4 * server + at}", f"s{server}", slo, requests))
        members.append(_copy(f"c{4 * server + 3}", f"s{server}", rate, WITHIN_S))
    return members


WITHIN_CASE = Case("within", WITHIN, WITHIN_S, (PM,), _within, FACTORS, most_seeds=1)
LIMITED = Case("3.2", DISK, SHORT_S, LIMITS, _limited, FACTORS)
SHARED = Case("3.3", DISK, SHARED_S, (PM, BY_SLO, PS, FIFO), partial(_shared, SLOS, SHARED_S), FACTORS)
BURSTY = {
    letter: Case(f"3.5-{letter}", DISK, SHORT_S, (PM, FIFO), partial(_bursty, letter), FACTORS)
    for letter in BURSTS
}
CALM = Case("3.6-D", DISK, SHORT_S, (PM, FIFO), partial(_isolated, False), FACTORS)
FLOODED = Case("3.6-E", DISK, SHORT_S, (PM, FIFO), partial(_isolated, True), FACTORS)
LINKED = Case("3.7", LINK, LINK_S, (PM, BY_SLO, PS), _linked, FACTORS, priority_switch=True)
ORDERS = tuple(
    Case(
        f"3.9-{number}",
        DISK,
        SHORT_S,
        (PM, BY_SLO),
        partial(_shared, dict(zip(SLOS, slos, strict=True)), SHORT_S),
        FACTORS,
        most_seeds=1,
    )
    for number, slos in enumerate(permutations(SLOS.values()), 1)
)
"""All orders of the three SLOs."""
