"""Speed and memory of `simulate_flows`: 3,000 hosts, flows of mixed sizes at a load of 0.7 on the rack links.

Each case runs in a process of its own, so that its peak memory is its own. Seconds are of one processor;
events are arrivals and completions; memory is the peak less that after the imports and the cluster, so that
it includes the table of flows.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from record import record

import leeward

RACKS, HOSTS_PER_RACK = 150, 20
CLUSTER = {"racks": RACKS, "hosts_per_rack": HOSTS_PER_RACK, "nic": "1Gbps", "oversubscription": 10}
RACK_BYTES_PER_SECOND = HOSTS_PER_RACK * 125e6 / 10


def make_flows(count: int, load: float, seed: int = 1) -> pa.Table:
    """Returns Poisson arrivals between random hosts, with Pareto sizes of mean 1 MB cut at 1 GB."""
    random = np.random.default_rng(seed)
    sizes = np.minimum(1e9, (1e6 * 0.2 / 1.2) * (1 + random.pareto(1.2, count)))
    # All but one in RACKS of the flows leave their rack.
    rate = load * RACKS * RACK_BYTES_PER_SECOND / sizes.mean() * RACKS / (RACKS - 1)
    return pa.table(
        {
            "t_arrival_s": np.cumsum(random.exponential(1 / rate, count)),
            "src": random.integers(0, RACKS * HOSTS_PER_RACK, count),
            "dst": random.integers(0, RACKS * HOSTS_PER_RACK, count),
            "size_bytes": sizes,
        }
    )


def peak_megabytes() -> float:
    """Returns the peak memory of this process. `getrusage` would include the memory of its parent."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1e3 for line in status.splitlines() if line.startswith("VmHWM:"))


def measure(path: str) -> dict[str, float]:
    """Simulates the flows in an Arrow file; returns their number, the CPU time and the memory."""
    cluster = leeward.Cluster(CLUSTER)
    before = peak_megabytes()
    flows = pyarrow.ipc.open_file(path).read_all()
    start = time.process_time()
    finished = leeward.fluid.simulate_flows(cluster, flows)
    seconds = time.process_time() - start
    return {"flows": finished.num_rows, "seconds": seconds, "megabytes": peak_megabytes() - before}


def main() -> None:
    """Prints a line for each case."""
    print(f"{'flows':>10} {'load':>5} {'CPU s':>8} {'events/s':>11} {'memory':>8}")
    for count, load in [(50_000, 0.7), (50_000, 0.9), (1_000_000, 0.7)]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "flows.arrow"
            flows = make_flows(count, load)
            with pyarrow.ipc.new_file(path, flows.schema) as file:
                file.write_table(flows)
            process = subprocess.run([sys.executable, __file__, path], capture_output=True, check=True)
        result = json.loads(process.stdout)
        seconds, megabytes = result["seconds"], result["megabytes"]
        record(f"fluid in Python, {count:,} flows at load {load}", "events/s", 2 * count / seconds)
        record(f"fluid in Python, {count:,} flows at load {load}, memory", "MB", megabytes)
        print(f"{count:>10,} {load:>5} {seconds:>8.2f} {2 * count / seconds:>11,.0f} {megabytes:>5.0f} MB")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        main()
