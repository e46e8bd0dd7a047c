"""`make hdfs-demo`: real blocks beside a hot link, placed by HDFS's policy and by Leeward's.

Background traffic fills most of the link into one rack. Hosts write files of one block, in pairs of runs: in
a pair the same ones at the same times under each policy. A single pair would show chance as much as policy.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy

from leeward._quantities import bytes_text, counted, read_rate
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
LONGEST_S = 3600.0
"""Longest run, in seconds."""
MOST_PAIRS = 100
"""Greatest number of pairs of runs."""
CLEAR_POINTS = 3
"""Least difference of two mean utilizations, in percentage points, that counts as one."""
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


def table(outcomes: Mapping[str, Sequence[Outcome]], link_bps: float) -> list[tuple[str, ...]]:
    """Rows of the comparison: a name, and the mean and range of the runs of each policy."""

    def row(name: str, value: Callable[[Outcome], float], text: Callable[[float], str]) -> tuple[str, ...]:
        return name, *(_spread([value(one) for one in runs], text) for runs in outcomes.values())

    first, *_ = next(iter(outcomes.values()))
    return [
        *(
            row(f"bytes into {link.partition(':')[0]}", partial(Outcome.carried, link=link), bytes_text)
            for link in first.links("downlink")
        ),
        row(f"utilization of the link into {HOT}", lambda one: _used(one, link_bps), _percent),
        row("Cv of links into racks", lambda one: one.cv("downlink", STEP_S), _two_digits),
        row("Cv of links out of racks", lambda one: one.cv("uplink", STEP_S), _two_digits),
        row("block time, median", lambda one: quantile(one.files, 0.5), _seconds),
        row("block time, p99", lambda one: quantile(one.files, 0.99), _seconds),
    ]


def summary(outcomes: Mapping[str, Sequence[Outcome]], link_bps: float) -> str:
    """The comparison of two policies in sentences."""
    (name, (default, other)) = list(outcomes)[1], outcomes.values()
    before, after = ([100 * _used(one, link_bps) for one in runs] for runs in (default, other))
    changes = [late - early for early, late in zip(before, after, strict=True)]
    change = math.fsum(changes) / len(changes)
    result = "no clear difference"
    if abs(change) >= CLEAR_POINTS and (max(changes) < 0 or min(changes) > 0):
        result = f"it is {'cooler' if change < 0 else 'hotter'} by {abs(change):.0f} points"
    return (
        f"Background takes {SHARE:.0%} of the link into {HOT}. With the blocks of HDFS's policy the link is"
        f" {math.fsum(before) / len(before):.0f}% full, and with those of {name}"
        f" {math.fsum(after) / len(after):.0f}%: {result} ({min(changes):+.0f} to {max(changes):+.0f} in"
        f" {counted(len(changes), 'pair')})."
    )


def _spread(values: Sequence[float], text: Callable[[float], str]) -> str:
    """The mean of values, and their range if there are several."""
    mean = text(math.fsum(values) / len(values))
    return mean if len(values) == 1 else f"{mean} ({text(min(values))} to {text(max(values))})"


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _two_digits(value: float) -> str:
    return f"{value:.2f}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s"


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
    parser.add_argument(
        "--policy",
        choices=POLICIES[1:],
        default="leeward",
        help="policy beside the default (default: leeward)",
    )
    parser.add_argument("--pairs", type=int, default=3, help="number of pairs of runs (default: 3)")
    parser.add_argument("--seconds", type=float, default=45.0, help="length of each run (default: 45)")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the writes of the first pair (default: 1)"
    )
    options = parser.parse_args(arguments)
    if not 30 <= options.seconds <= LONGEST_S:
        parser.error(f"--seconds {options.seconds:g}: expected 30 to {LONGEST_S:g}")
    if not 1 <= options.pairs <= MOST_PAIRS:
        parser.error(f"--pairs {options.pairs}: expected 1 to {MOST_PAIRS}")
    if options.seed < 0:
        parser.error(f"--seed {options.seed}: expected at least 0")
    lacks = missing()
    if lacks is not None:
        print(f"error: {lacks}", file=sys.stderr)
        return 1
    try:
        _show(options.policy, options.pairs, options.seconds, options.seed)
    except KeyboardInterrupt:
        print("interrupted: the cluster is removed", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def order(policies: Sequence[str], pairs: int) -> list[tuple[int, str]]:
    """Pair and policy of each run. Each pair begins with the policy that the one before ended with."""
    turns = [policies if pair % 2 == 0 else policies[::-1] for pair in range(pairs)]
    return [(pair, policy) for pair, turn in enumerate(turns) for policy in turn]


def _show(policy: str, pairs: int, seconds: float, seed: int) -> None:
    began = time.monotonic()

    def note(text: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s  {text}", file=sys.stderr, flush=True)

    with up(SHAPE, "default", note=note) as cluster:
        link_bps = read_rate("rack_link", SHAPE.rack_link)
        note(f"dashboard: {cluster.controller_url} with the token {cluster.token}")
        note(f"NameNode: {cluster.namenode_url}/jmx")
        note(f"background: {SHARE:.0%} of the link into {HOT}")
        outcomes: dict[str, list[Outcome]] = {"default": [], policy: []}
        for pair, name in order(list(outcomes), pairs):
            if name != cluster.policy:
                note(f"restarting the NameNode with policy {name}")
                cluster.use(name)
            load = draw(cluster.hosts, link_bps, seconds, seed + pair)
            blocks = f"{len(load.writes)} blocks of {bytes_text(SHAPE.block, None)}"
            note(f"pair {pair + 1} of {pairs}: writing {blocks} by policy {name}")
            watch = Watch(cluster.counters.read, link_bps, note)
            outcomes[name].append(run(cluster, load, f"{name}-{pair}", watch))
            _note_decisions(cluster, note)
        note("removing the cluster")
    print_table(["", *outcomes], "<" + ">" * len(outcomes), table(outcomes, link_bps))
    print(f"\n{summary(outcomes, link_bps)}")


def _note_decisions(cluster: ObservedCluster, note: Callable[[str], object]) -> None:
    state = namenode.policy_state(cluster.namenode_url)
    if state is not None:
        counts = ", ".join(f"{count} {reason}" for reason, count in state.decisions.items() if count)
        note(f"decisions of {state.policy} since its start: {counts}")


if __name__ == "__main__":
    sys.exit(main())
