"""Cases of figures 5.5 and 5.6: workloads that WorkloadCompactor packs, with released traces.

Limits follow from the first half of each trace. The cases replay the beginning of the first half, which
limits know, and of the second half, which they do not. Requests have a fifth of their bytes, as links and
disks have a fifth of the rate, and all of them are reads (`chapter3`). Times are those of the traces.
"""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy

from leeward.slo import pack
from leeward_reproduce.slo import workloads
from leeward_reproduce.slo.real import scenario
from leeward_reproduce.slo.real.cases import Case, Decision, Member, Policy
from leeward_reproduce.slo.real.layout import Shape
from leeward_reproduce.slo.real.traffic import FILE_BYTES, Requests, halves

WORKLOADS, SERVERS = 12, 5
"""Workloads that are drawn, and servers. A workload that does not fit is left out."""
TRACE_S, PART_S = 600.0, 100.0
"""Length of the released traces, and of the replayed beginning of a half, in seconds."""
SCALE = 5
"""Number by which sizes are divided."""
LEAST = 512
"""Least size of a request, in bytes."""
MARGIN = 0.1
"""Safety margin of limits and bounds (section 5.4.2)."""
SAME, RANDOM = (0.25,), (0.25, 0.5, 1.0)
"""SLOs in seconds of figures 5.5 and 5.6. The thesis' 100 and 150 ms are about a slice of a throttle."""
PACKED = Shape(clients=WORKLOADS, servers=SERVERS, disk="40MB/s", disk_size="256MiB")
ENFORCED = Policy("enforced", priorities="decided")
DEMOTED = Policy("demoted", priorities="decided", unlimited=("network-in", "network-out"))
"""Requests over a limit are demoted at disks, and never held on links."""
HALVES = ("own", "held-out")


@cache
def _released(file: str) -> Requests:
    """Requests of a released trace at a fifth of their bytes, as reads."""
    content = Path(file).read_bytes()
    text = (gzip.decompress(content) if file.endswith(".gz") else content).decode("ascii")
    cells = [line.split(",") for line in text.split()]
    times = [int(at) / 1e9 for at, *_ in cells]
    sizes = [max(int(size, 16) // SCALE, LEAST) for _, size, *_ in cells]
    count = len(times)
    # From place to place and never at 0, so that the kernel of a server reads nothing ahead.
    places = 65_536 * (1 + numpy.arange(count, dtype=numpy.int64) * 7 % (FILE_BYTES // 65_536 - 17))
    order = numpy.argsort(times, kind="stable")
    return Requests(
        numpy.array(times)[order].round(6), numpy.array(sizes)[order], numpy.full(count, True), places
    )


def _arriving(slos: Sequence[float], half: str, random: numpy.random.Generator) -> Sequence[Member]:
    """Workloads with a trace and an SLO each. The draws do not depend on the half."""
    paths = workloads.paths()
    chosen = random.choice(len(paths), WORKLOADS, replace=False)
    members = []
    for at, trace in enumerate(chosen):
        first, second = halves(_released(paths[int(trace)]), TRACE_S)
        slo = float(random.choice(slos))
        sent = first if half == "own" else second
        sent = sent.where(sent.seconds < PART_S)
        # A trace without requests in this part would be none.
        if len(sent) >= 2 and len(first) >= 2:
            members.append(Member(f"w{at}", f"c{at}", "s0", slo, first, sent))
    return members


def _pack(folder: Path, case: Case, arriving: Sequence[Member]) -> Decision:
    """Packs workloads as `leeward slo pack` does."""
    slos = {one.name: one.slo for one in arriving if one.slo is not None}
    content = scenario.content(case, arriving, case.policies[0], slos, {}, {}, is_declared=True)
    open_fields = ("server", "priority", "limits")
    volumes = [
        {name: value for name, value in one.items() if name not in open_fields}
        for one in content["workloads"]
    ]
    # All disks are alike, and packing counts all links of a path.
    fields = {name: value for name, value in content.items() if name not in ("devices", "congestion", "over")}
    file = folder / "volumes.yaml"
    scenario.dump(file, fields | {"device": "disk-s0.yaml", "workloads": volumes})
    record = pack(file, folder / scenario.CLUSTER, method=case.method)
    placed = {one["workload"]: one for one in record["workloads"]}
    limits = {
        name: {stage["stage"]: _limits(stage) for stage in one["stages"]} for name, one in placed.items()
    }
    priorities = {
        name: {stage["stage"]: int(stage["priority"]) for stage in one["stages"]}
        for name, one in placed.items()
    }
    servers = {name: str(one["server"]).partition(":")[0] for name, one in placed.items()}
    members = [replace(one, server=servers[one.name]) for one in arriving if one.name in placed]
    return Decision(members, limits, priorities)


def _limits(stage: Mapping[str, Any]) -> list[dict[str, str]]:
    """Limits of a packed workload at a stage, as SLO files have them."""
    return [scenario.literal(stage["stage"], one["rate"], one["burst"]) for one in stage["limits"]]


def _case(figure: str, slos: Sequence[float], half: str) -> Case:
    return Case(
        f"{figure}-{half}",
        PACKED,
        PART_S,
        (ENFORCED,) if half == "own" else (ENFORCED, DEMOTED),
        partial(_arriving, slos, half),
        margin=MARGIN,
        most_seeds=1,
        method="best",
        decide=_pack,
    )


CASES = {
    figure: {half: _case(figure, slos, half) for half in HALVES}
    for figure, slos in (("5.5", SAME), ("5.6", RANDOM))
}
"""Cases of each figure by the half that is replayed."""
