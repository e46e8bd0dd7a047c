"""The fluid simulator beside SimGrid, on the same flows in one run: processor time, and agreement.

SimGrid comes from Debian's package libsimgrid-dev, and needs g++. It runs with the settings of an ideal
fluid and with the update of all flows at each event (`network/optim:Full`), which is the fastest for these
flows. Times are processor seconds of one thread, without the construction of the platform or the cluster.

    python python/benchmarks/beside_simgrid.py [--quick]
"""

import argparse
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy
import pyarrow
from fluid import CLUSTER, HOSTS_PER_RACK, RACK_BYTES_PER_SECOND, RACKS, make_flows
from record import record, record_missing, record_peer

import leeward

HEADER = Path("/usr/include/simgrid/s4u.hpp")
SOURCE = Path(__file__).with_suffix(".cpp")
NIC, RACK_LINK = 125e6, RACK_BYTES_PER_SECOND
"""Bytes per second."""
SETTINGS = ("model:CM02", "optim:Full", "crosstraffic:0", "weight-S:0", "bandwidth-factor:1")
"""Settings of SimGrid's network."""
CASES = ((50_000, 0.7), (50_000, 0.9))
QUICK_CASES = ((5_000, 0.7),)
COLUMNS = ("t_arrival_s", "src", "dst", "size_bytes")
TOLERANCE = 0.01
"""Largest relative difference of the mean flow completion times. SimGrid has a limit of precision."""


def between_racks(count: int, load: float) -> pyarrow.Table:
    """Flows as in the benchmark `fluid`, all between different racks, with whole bytes."""
    flows = make_flows(count, load)
    random = numpy.random.default_rng(2)
    source = flows["src"].to_numpy()
    rack = (source // HOSTS_PER_RACK + random.integers(1, RACKS, count)) % RACKS
    target = rack * HOSTS_PER_RACK + random.integers(0, HOSTS_PER_RACK, count)
    columns = {"dst": target, "size_bytes": numpy.ceil(flows["size_bytes"].to_numpy())}
    return pyarrow.table({name: columns.get(name, flows[name]) for name in flows.column_names})


def by_simgrid(program: Path, flows: pyarrow.Table, folder: Path) -> tuple[str, float, float]:
    """Version of SimGrid, its processor seconds, and the mean flow completion time."""
    path = folder / "flows"
    with path.open("w") as file:
        for at, source, target, size in zip(*(flows[name].to_pylist() for name in COLUMNS), strict=True):
            file.write(f"{at!r} {source} {target} {int(size)}\n")
    rates = (RACKS, HOSTS_PER_RACK, NIC, RACK_LINK)
    command = [str(program), *map(str, rates), str(path), *(f"--cfg=network/{one}" for one in SETTINGS)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return output[0], float(output[1]), float(output[2]) / flows.num_rows


def by_leeward(flows: pyarrow.Table) -> tuple[float, float]:
    """Processor seconds of Leeward, and the mean flow completion time."""
    cluster = leeward.Cluster(CLUSTER)
    start = time.process_time()
    finished = leeward.fluid.simulate_flows(cluster, flows)
    seconds = time.process_time() - start
    return seconds, float(finished["fct_s"].to_numpy().mean())


def main() -> None:
    """Prints a line for each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small case")
    options = parser.parse_args()
    if not HEADER.exists() or shutil.which("g++") is None:
        record_missing("SimGrid", "libsimgrid-dev or g++ is not installed")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        program = folder / "beside_simgrid"
        compile_it = ["g++", "-std=c++17", "-O2", str(SOURCE), "-o", str(program), "-lsimgrid"]
        subprocess.run(compile_it, check=True)
        print(f"{'flows':>8} {'load':>5} {'SimGrid CPU s':>14} {'Leeward CPU s':>14} {'ratio':>7}")
        version = ""
        for count, load in QUICK_CASES if options.quick else CASES:
            flows = between_racks(count, load)
            version, theirs, their_mean = by_simgrid(program, flows, folder)
            ours, our_mean = by_leeward(flows)
            if abs(their_mean - our_mean) > TOLERANCE * our_mean:
                raise RuntimeError(f"mean completion times of {their_mean} s and {our_mean} s")
            name = f"beside SimGrid, {RACKS * HOSTS_PER_RACK} hosts, {count} flows at load {load}"
            record(name, "ratio", theirs / ours, peer="SimGrid")
            record(f"{name}, SimGrid", "s", theirs, peer="SimGrid")
            record(f"{name}, Leeward", "s", ours)
            print(f"{count:>8} {load:>5} {theirs:>14.3f} {ours:>14.3f} {theirs / ours:>7.1f}")
        record_peer("SimGrid", version)


if __name__ == "__main__":
    main()
