"""Speed of policies in Python beside those in Rust: decisions with their commits, on 3,000 hosts.

Each case places blocks of three copies by `Session.place_batch`: one after another, or in batches of 256. All
cases see the same cluster and the same loads. A vectorised policy decides a batch in one call, from arrays.
Seconds are of one processor.
"""

import time
from typing import Any

import numpy as np
from record import record

import leeward
from leeward.policy import RequestBatch, View

RACKS, HOSTS_PER_RACK = 150, 20
CLUSTER = {"racks": RACKS, "hosts_per_rack": HOSTS_PER_RACK, "nic": "1Gbps", "oversubscription": 10}
BATCH = 256
BLOCK = 256 << 20


class Vectorised:
    """Puts each copy into a rack of its own, among the racks with most left, in turn."""

    def place_batch(self, requests: RequestBatch, view: View) -> Any:
        """Hosts of all requests, from one sort of the racks and one draw."""
        random = np.random.default_rng(requests.seed)
        best = np.argpartition(-view.rack_residual_in, 48)[:48]
        racks = best[(np.arange(len(requests))[:, None] + (0, 16, 32)) % 48]
        return racks * HOSTS_PER_RACK + random.integers(0, HOSTS_PER_RACK, racks.shape)


def spread(request: Any, view: View) -> list[int]:
    """Three hosts in different racks, without a look at the network."""
    first = request.id * 7 % (RACKS - 2)
    return [(first + step) * HOSTS_PER_RACK for step in range(3)]


def scored(request: Any, view: View) -> Any:
    """The rate left into each host, as its score."""
    return view.residual_in


def session(policy: Any, loads: dict[str, float]) -> leeward.Session:
    """Returns a session with the loads of one report, which stay known."""
    result = leeward.Session(CLUSTER, replicas=policy, ledger={"unknown_after": 1e6})
    result.report(loads)
    return result


def measure(policy: Any, batch: int, count: int, loads: dict[str, float]) -> float:
    """Returns the decisions in a second of the processor."""
    working = session(policy, loads)
    random = np.random.default_rng(1)
    seconds, done = 0.0, 0
    while done < count:
        sizes = np.full(batch, BLOCK, dtype=np.int64)
        writers = random.integers(0, RACKS * HOSTS_PER_RACK, batch)
        start = time.process_time()
        placed = working.place_batch(sizes, writers)
        seconds += time.process_time() - start
        if placed.refused:
            raise RuntimeError(placed.refused[0])
        done += batch
        working.release(placed, stored=False)
    return done / seconds


def measure_rounds(count: int, loads: dict[str, float]) -> float:
    """Returns the rounds in a second: a report of a rack's links, a placement, a commit and two releases."""
    working = session("sinbad", loads)
    names = working.cluster.host_names()
    uplinks = [link for link in loads if link.endswith(("uplink", "downlink"))]
    start = time.process_time()
    for number in range(count):
        working.report({link: loads[link] for link in uplinks[2 * number % len(uplinks) :][:2]})
        placed = working.place_replicas(BLOCK, writer=names[number % len(names)])
        kept = working.commit_replicas([names[number % len(names)]], BLOCK)
        working.release([placed, kept])
    return count / (time.process_time() - start)


def main() -> None:
    """Prints a line for each case."""
    random = np.random.default_rng(1)
    links = leeward.Cluster(CLUSTER).links().to_pylist()
    loads = {link["name"]: random.uniform(0, 0.8) * link["capacity_bps"] for link in links}
    cases: list[tuple[str, Any, int]] = [
        ("Rust, uniform", "uniform", 1),
        ("Rust, sinbad", "sinbad", 1),
        ("Rust, leeward", "leeward", 1),
        ("Python, hosts", spread, 1),
        ("Python, scores", scored, 1),
        ("Rust, uniform, in batches", "uniform", BATCH),
        ("Python, vectorised, in batches", Vectorised(), BATCH),
    ]
    print(f"{'policy':<32} {'decisions/s':>12} {'us each':>8} {'over uniform':>13}")
    uniform: dict[int, float] = {}
    for name, policy, batch in cases:
        measure(policy, batch, 10 * batch, loads)
        rate = measure(policy, batch, 20_000 if batch == 1 else 200_000, loads)
        us = 1e6 / rate
        over = us - uniform.setdefault(batch, us)
        print(f"{name:<32} {rate:>12,.0f} {us:>8.1f} {over:>+10.1f} us")
        record(f"policy, {name}", "decisions/s", rate)
        record(f"policy, {name}, over uniform", "us", max(over, 0.0))
    rounds = measure_rounds(2_000, loads)
    print(f"{'session: report, place, commit, release':<45} {rounds:,.0f} rounds/s")
    record("session, rounds", "rounds/s", rounds)


if __name__ == "__main__":
    main()
