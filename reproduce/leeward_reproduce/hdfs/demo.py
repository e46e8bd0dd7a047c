"""`make hdfs-demo`: real blocks beside a hot link, placed by HDFS's policy and then by Leeward's.

Background traffic fills most of the link into one rack. Hosts write files of one block, under each policy
the same ones at the same times.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import numpy

from leeward._quantities import bytes_text, read_rate
from leeward.cli.output import print_table
from leeward_reproduce.hdfs import namenode
from leeward_reproduce.hdfs.class_path import missing
from leeward_reproduce.hdfs.load import Load, Stream, Write, run
from leeward_reproduce.hdfs.machine import Shape
from leeward_reproduce.hdfs.observed import ObservedCluster, up
from leeward_reproduce.hdfs.outcome import Outcome, quantile
from leeward_reproduce.hdfs.settings import POLICIES

HOT = "r1"
"""Rack with the hot link."""
SHARE = 0.7
"""Share of this link that background traffic uses."""
SHAPE = Shape(block=4 << 20)
"""Its blocks take 0.34 s on an idle link between racks, as blocks of 256 MiB do on a link of 6.4 Gb/s."""
BLOCKS_PER_S = 2.4
LEAD_S = 5.0
"""Time of the background before the first write, in which its telemetry arrives."""
TAIL_S = 10.0
"""Time after the last write."""
STEP_S = 5.0
"""Length of an interval of link loads, in seconds."""
_WATCH_S = 15.0
"""Time between two lines about the links."""


def draw(hosts: Sequence[str], link_bps: float, seconds: float, seed: int) -> Load:
    """Draws writes of one block at random times by random hosts, over background into the hot rack."""
    random = numpy.random.default_rng(seed)
    last = seconds - TAIL_S
    times = numpy.sort(random.uniform(LEAD_S, last, round(BLOCKS_PER_S * (last - LEAD_S))))
    writes = [Write(float(at), str(random.choice(hosts)), SHAPE.block) for at in times]
    target = next(host for host in hosts if host.startswith(f"{HOT}h"))
    return Load(writes, [Stream(0.0, None, target, SHARE * link_bps)], seconds)


def table(outcomes: dict[str, Outcome], link_bps: float) -> list[tuple[str, ...]]:
    """Rows of the comparison: a name, and the value under each policy."""
    first = next(iter(outcomes.values()))
    rows = [
        (
            f"bytes into {link.partition(':')[0]}",
            *(bytes_text(round(one.carried(link))) for one in outcomes.values()),
        )
        for link in first.links("downlink")
    ]
    used = [_used(one, link_bps) for one in outcomes.values()]
    return [
        *rows,
        (f"utilization of the link into {HOT}", *(f"{share:.0%}" for share in used)),
        ("Cv of links into racks", *(f"{one.cv('downlink', STEP_S):.2f}" for one in outcomes.values())),
        ("Cv of links out of racks", *(f"{one.cv('uplink', STEP_S):.2f}" for one in outcomes.values())),
        ("block time, median", *(f"{quantile(one.files, 0.5):.2f} s" for one in outcomes.values())),
        ("block time, p99", *(f"{quantile(one.files, 0.99):.2f} s" for one in outcomes.values())),
    ]


def summary(outcomes: dict[str, Outcome], link_bps: float) -> str:
    """The comparison of two policies in sentences."""
    (name, (default, other)) = list(outcomes)[1], outcomes.values()
    before, after = (round(100 * _used(one, link_bps)) for one in (default, other))
    change = "as hot" if after == before else "cooler" if after < before else "hotter"
    return (
        f"Background takes {SHARE:.0%} of the link into {HOT}. With the blocks of HDFS's policy the link is"
        f" {before}% full, and with those of {name} {after}%: it is {change}."
    )


def _used(outcome: Outcome, link_bps: float) -> float:
    """Mean utilization of the link into the hot rack."""
    return 8 * outcome.carried(f"{HOT}:downlink") / outcome.seconds / link_bps


class Watch:
    """Lines about the links into racks while a run goes on, from its first call on."""

    def __init__(
        self, read: Callable[[], dict[str, int]], link_bps: float, note: Callable[[str], object]
    ) -> None:
        """Takes a function that reads the bytes of all links, their rate, and a function that prints."""
        self._read = read
        self._link_bps = link_bps
        self._note = note
        self._last: tuple[float, dict[str, int]] | None = None

    def __call__(self, _share: float) -> None:
        """Prints a line if the last one is old enough."""
        now, bytes_now = time.monotonic(), self._read()
        then, before = self._last or (now, bytes_now)
        if now - then < _WATCH_S:
            self._last = then, before
            return
        used = [
            f"{link.partition(':')[0]} {8 * (count - before[link]) / (now - then) / self._link_bps:.0%}"
            for link, count in bytes_now.items()
            if link.endswith(":downlink")
        ]
        self._note(f"links into racks: {', '.join(used)}")
        self._last = now, bytes_now


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demo; returns its exit status."""
    parser = argparse.ArgumentParser(prog="make hdfs-demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--policy", choices=POLICIES[1:], default="leeward", help="policy beside the default")
    parser.add_argument("--seconds", type=float, default=75.0, help="length of each of the two runs")
    parser.add_argument("--seed", type=int, default=1, help="seed of the writes")
    options = parser.parse_args(arguments)
    if options.seconds < 30:
        parser.error(f"--seconds {options.seconds:g}: expected at least 30")
    lacks = missing()
    if lacks is not None:
        print(f"error: {lacks}", file=sys.stderr)
        return 1
    try:
        _show(options.policy, options.seconds, options.seed)
    except KeyboardInterrupt:
        print("interrupted: the cluster is removed", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _show(policy: str, seconds: float, seed: int) -> None:
    began = time.monotonic()

    def note(text: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s  {text}", file=sys.stderr, flush=True)

    with up(SHAPE, "default", note=note) as cluster:
        link_bps = read_rate("rack_link", SHAPE.rack_link)
        load = draw(cluster.hosts, link_bps, seconds, seed)
        note(f"dashboard: {cluster.controller_url} with the token {cluster.token}")
        note(f"NameNode: {cluster.namenode_url}/jmx")
        note(f"background: {SHARE:.0%} of the link into {HOT}")
        outcomes: dict[str, Outcome] = {}
        for name in ("default", policy):
            if name != cluster.policy:
                note(f"restarting the NameNode with policy {name}")
                cluster.use(name)
            note(f"writing {len(load.writes)} blocks of {bytes_text(SHAPE.block, None)} by policy {name}")
            outcomes[name] = run(cluster, load, name, Watch(cluster.counters.read, link_bps, note))
            _note_decisions(cluster, note)
        note("removing the cluster")
    print_table(["", *outcomes], "<" + ">" * len(outcomes), table(outcomes, link_bps))
    print(f"\n{summary(outcomes, link_bps)}")


def _note_decisions(cluster: ObservedCluster, note: Callable[[str], object]) -> None:
    state = namenode.policy_state(cluster.namenode_url)
    if state is not None:
        counts = ", ".join(f"{count} {reason}" for reason, count in state.decisions.items() if count)
        note(f"decisions of {state.policy}: {counts}")


if __name__ == "__main__":
    sys.exit(main())
