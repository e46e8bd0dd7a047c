"""Results of `leeward serve --demo` over seeds: shares of hot racks under both placers.

    python python/benchmarks/demo.py [SEEDS] [STEPS]

Each seed runs a service of its own, with a step of 30 simulated seconds every 100 ms. Steps in which the cell
fills do not count.
"""

import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from leeward import Client, ProblemError

ARMS = ("default", "leeward")
STEP_S = 30
INTERVAL_S = 0.1


def shares(seed: int, steps: int) -> dict[str, float]:
    """Returns the mean share of hot racks under each placer, in percent."""
    command = [str(Path(sys.executable).with_name("leeward")), "serve", "--demo", "--listen", "127.0.0.1:0"]
    command += ["--seed", str(seed), "--speed", str(STEP_S / INTERVAL_S), "--interval", f"{INTERVAL_S}s"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            client = Client(process.stderr.readline().split()[-1])
            while True:
                time.sleep(1)
                try:
                    arms = client.demo()["history"]["arms"]
                except ProblemError:
                    continue
                by_arm = {arm["name"]: [hot for hot in arm["hot_share"] if hot is not None] for arm in arms}
                if len(by_arm[ARMS[0]]) >= steps:
                    break
            moves = sum(1 for move in client.migrations("done"))
            process.send_signal(signal.SIGINT)
            process.wait(60)
        finally:
            process.kill()
    means = {name: 100 * statistics.fmean(hot[:steps]) for name, hot in by_arm.items()}
    print(f"seed {seed}: " + ", ".join(f"{name} {means[name]:.2f} %" for name in ARMS) + f"; {moves} moves")
    return means


def main() -> None:
    """Prints a line for each seed, and their means."""
    seeds, steps = (int(text) for text in (*sys.argv[1:], *("5", "240")[len(sys.argv) - 1 :]))
    rows = [shares(seed, steps) for seed in range(1, seeds + 1)]
    for name in ARMS:
        values = [row[name] for row in rows]
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        print(f"{name}: {statistics.fmean(values):.2f} % of racks hot, deviation over seeds {spread:.2f}")


if __name__ == "__main__":
    main()
