"""The cell of a run: files of a scenario, which the simulator and the control plane read.

The racks are those of the pilot cell, and jobs are drawn with its load and its run times by the generator of
`leeward serve --demo`: the first jobs run at the start, and others arrive. The list of their tasks is the
workload of both. Their rates are the same too: the control plane's program draws them as the simulator does.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from leeward import Cluster
from leeward._quantities import read_seconds
from leeward.demo.cell import Cell
from leeward.demo.jobs import Arrivals
from leeward_reproduce.real import scenario_files
from leeward_reproduce.real.scenario_files import write_csv

POLICIES = {
    "default": "borg",
    "network-load": "utp-proactive",
    "evictor": "utp-reactive",
    "both": "utp",
}
"""Arms of the control plane, and the policies of the simulator that correspond to them."""
CELL = replace(
    Cell(),
    uplinks=((30, 0.7), (40, 1.0), (30, 1.4)),
    hosts_per_rack=10,
    service_s=5 * 86_400.0,
    batch_s=4 * 3600.0,
)
"""The racks of `clusters/compute.yaml`, and the run times of the workload `cell`."""
LENGTH = "3h"
"""Length of a run."""
WARMUP_S = 3600.0
"""Time before the counted part: the first tasks have come at once, and pods have moved since."""
INTERVAL_S = 60.0
"""Time between two reports of a link. The paper's figures are of intervals of five minutes."""
SAMPLE_S = 300.0
RESTART_S = 60.0
"""Time for which a moved task is down."""
PEAK = 2.0
"""Peak over mean of each task's rate, as of the workload `cell`."""
NETWORK_SHARE = 0.5
"""Share of a tolerant task's work that waits for the network; the default of a list of tasks."""
_MEMORY_OF_PROCESSOR = 2 << 30
"""Memory of a task for each processor: half of that of the hosts, so that processors run out first."""
_MEMORY_OF_HOST = 128 << 30
check_horizon = partial(scenario_files.check_horizon, least_s=WARMUP_S + 2 * SAMPLE_S)
"""Checks the length of runs."""


@dataclass(frozen=True)
class Size:
    """Size of the cell and lengths of a run.

    Attributes:
        cell: Racks, hosts and jobs.
        horizon_s: Length in seconds.
        warmup_s: Part of it before the counted part.
    """

    cell: Cell = CELL
    horizon_s: float = read_seconds("horizon", LENGTH)
    warmup_s: float = WARMUP_S

    @property
    def cluster(self) -> dict[str, Any]:
        """The cluster in the fields of a cluster file: the racks of the cell, without pods."""
        fields = {name: value for name, value in self.cell.cluster.items() if "pod" not in name}
        return fields | {"name": "cell", "kind": "compute", "memory": f"{_MEMORY_OF_HOST}B"}


def write(folder: Path, seed: int, size: Size) -> Path:
    """Draws a scenario and writes it into a folder: `leeward simulate` runs it. Returns its file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump(size.cluster, sort_keys=False), encoding="utf-8")
    nodes = [
        (host["host"], host["rack"], size.cell.cpus, _MEMORY_OF_HOST)
        for host in Cluster(file).host_table().to_pylist()
    ]
    write_csv(folder / "nodes.csv", ("node", "rack", "cpus", "memory_bytes"), nodes)
    write_csv(folder / "tasks.csv", COLUMNS, list(_tasks(size, seed)))
    scenario = {
        "name": "a cell under kube-scheduler",
        "cluster": "cluster.yaml",
        "workloads": [
            {"tasks": {"file": "tasks.csv", "restart": f"{RESTART_S:g}s", "network_share": NETWORK_SHARE}}
        ],
        "telemetry": {"interval": f"{INTERVAL_S:g}s"},
        "policies": list(POLICIES.values()),
        "horizon": f"{size.horizon_s:g}s",
        "warmup": f"{size.warmup_s:g}s",
        "sample": f"{SAMPLE_S:g}s",
        "seed": seed,
    }
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump(scenario, sort_keys=False), encoding="utf-8")
    return file


COLUMNS = (
    "arrive_s",
    "duration_s",
    "cpus",
    "memory_bytes",
    "job",
    "egress_bps",
    "ingress_bps",
    "peak_factor",
    "tolerant",
)
"""Columns of the list of tasks."""


def _tasks(size: Size, seed: int) -> Iterator[tuple[object, ...]]:
    """Tasks in the order of arrival."""
    for job in Arrivals(size.cell, seed, 0.0).until(size.horizon_s):
        if job.arrives_s >= size.horizon_s:
            break
        for egress_bps, ingress_bps in zip(job.egress_bps, job.ingress_bps, strict=True):
            yield (
                round(job.arrives_s, 3),
                max(round(job.ends_s - job.arrives_s, 3), 1.0),
                job.cpus,
                job.cpus * _MEMORY_OF_PROCESSOR,
                job.name,
                round(float(egress_bps)),
                round(float(ingress_bps)),
                PEAK,
                str(job.tolerant).lower(),
            )
