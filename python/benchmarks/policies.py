"""Speed of policies in Python beside those in Rust: decisions with their commits, on 3,000 hosts.

Each case places blocks of three copies in a session: one after another, or in batches of 256. All cases see
the same cluster and the same loads. A vectorised policy decides a batch in one call, from arrays. Seconds are
of one processor.
"""

import time
from typing import Any

import numpy as np
from record import record

import leeward
from leeward import _native
from leeward._policies import choose_one
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


def chosen(request: Any, view: View) -> list[int]:
    """Three hosts in different racks, without a look at the network."""
    first = request.id * 7 % (RACKS - 2)
    return [(first + step) * HOSTS_PER_RACK for step in range(3)]


def scored(request: Any, view: View) -> Any:
    """The rate left into each host, as its score."""
    return view.residual_in


def session(policy: Any, loads: dict[str, float]) -> _native.EngineSession:
    """Returns a session with the loads of one report."""
    label, own = choose_one(policy)
    result = _native.EngineSession(leeward.Cluster(CLUSTER), label, "leeward", own_replicas=own)
    result.report(list(loads), list(loads.values()))
    return result


def measure(policy: Any, batch: int, count: int, loads: dict[str, float]) -> float:
    """Returns the decisions in a second of the processor."""
    engine = session(policy, loads)
    random = np.random.default_rng(1)
    seconds, done = 0.0, 0
    while done < count:
        sizes = np.full(batch, BLOCK, dtype=np.int64)
        writers = random.integers(0, RACKS * HOSTS_PER_RACK, batch)
        start = time.process_time()
        numbers, _, reasons = engine.place_batch(sizes, writers)
        seconds += time.process_time() - start
        if reasons:
            raise RuntimeError(reasons[0])
        done += batch
        engine.release(numbers, stored=False)
    return done / seconds


def main() -> None:
    """Prints a line for each case."""
    random = np.random.default_rng(1)
    links = leeward.Cluster(CLUSTER).links().to_pylist()
    loads = {link["name"]: random.uniform(0, 0.8) * link["capacity_bps"] for link in links}
    cases: list[tuple[str, Any, int]] = [
        ("Rust, uniform", "uniform", 1),
        ("Rust, sinbad", "sinbad", 1),
        ("Rust, leeward", "leeward", 1),
        ("Python, hosts", chosen, 1),
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


if __name__ == "__main__":
    main()
