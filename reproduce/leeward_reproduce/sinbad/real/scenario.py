"""The scenario of a pair of runs: files of the simulator, which the cluster reads as well.

All hosts write files of one, two or four blocks. Background goes into racks: one is hot, another is warm, and
which ones they are changes every 15 s. Its rate does not depend on other traffic. At half the arrival rate
every other file is left out, and at twice the rate as many files of the same sizes arrive in addition.
"""

from functools import partial
from pathlib import Path

import numpy
import yaml

from leeward._quantities import read_seconds
from leeward_reproduce.hdfs.load import Load, Stream, Write
from leeward_reproduce.real import scenario_files
from leeward_reproduce.real.scenario_files import read_csv, write_csv
from leeward_reproduce.sinbad.real.cases import DEFAULT, HALF_LOAD, SHAPE, SINBAD, TWICE_LOAD, Case

LINK_BPS, NIC_BPS = 100e6, 200e6
"""Rates of the links of racks and of hosts in `SHAPE`."""
LENGTH = "75s"
"""Length of a run."""
check_horizon = partial(scenario_files.check_horizon, least_s=40.0)
"""Checks the length of runs."""
WARMUP_S = 5.0
"""Time before the first file, in which the first reports on the background arrive."""
TAIL_S = 15.0
"""Time after the last file has begun. Files that take longer end over the last background."""
STEP_S = 5.0
"""Length of an interval of link loads. The paper has 10 s for blocks that take ten times as long."""
FILES_PER_S = 0.32
SIZES, SHARES = (1, 2, 4), (0.5, 0.3, 0.2)
"""Blocks of a file, and their shares of the files."""
_EPOCH_S = 15.0
_HOT, _WARM, _COOL = (0.70, 0.85), (0.2, 0.4), (0.02, 0.08)
"""Shares of a link that background uses: of one rack, of another, and of all others."""
POLICIES = {DEFAULT: "uniform", SINBAD: f"sinbad:threshold={SHAPE.block}B"}
"""Policies of HDFS, and of the simulator."""
_Block = tuple[float, str, int]
"""Time of arrival, writer and bytes of a file."""


def write(folder: Path, seed: int, horizon: str, case: Case) -> Path:
    """Draws a scenario and writes it into a folder: `leeward simulate` runs it. Returns its file."""
    folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng([seed, 29])
    seconds = read_seconds("horizon", horizon)
    cluster = case.shape.cluster()
    blocks = _blocks(random, seconds)
    rates = _rates(random, seconds)
    if case.load == HALF_LOAD:
        blocks = blocks[::2]
    elif case.load == TWICE_LOAD:
        blocks = sorted(blocks + _more(random, blocks, seconds))
    (folder / "cluster.yaml").write_text(yaml.safe_dump(cluster, sort_keys=False), encoding="utf-8")
    write_csv(folder / "blocks.csv", ("t_arrival_s", "writer", "size_bytes"), blocks)
    write_csv(folder / "rates.csv", ("t_s", "link", "rate_bps"), rates)
    scenario = {
        "name": "sinbad, small, on real bytes",
        "cluster": "cluster.yaml",
        "workloads": [
            {"blocks": {"file": "blocks.csv", "block": f"{SHAPE.block}B"}},
            {"rates": {"file": "rates.csv"}},
        ],
        # Agents report the links of hosts, and the controller adds them up.
        "telemetry": {"counters": ["hosts"], "delay": f"{case.delay_s:g}s", "loss": case.loss},
        "policies": [POLICIES[name] for name in case.policies],
        "horizon": horizon,
        "warmup": f"{WARMUP_S:g}s",
        "sample": f"{STEP_S:g}s",
        "seed": seed,
    }
    if case.ledger:
        scenario["ledger"] = dict(case.ledger)
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump(scenario, sort_keys=False), encoding="utf-8")
    return file


def read(file: Path) -> Load:
    """The writes and the background of a scenario, for the cluster."""
    scenario = yaml.safe_load(file.read_text(encoding="utf-8"))
    blocks, rates = (next(iter(source.values()))["file"] for source in scenario["workloads"])
    seconds = read_seconds("horizon", scenario["horizon"])
    writes = [
        Write(float(row["t_arrival_s"]), row["writer"], int(row["size_bytes"]))
        for row in read_csv(file.parent / blocks)
    ]
    streams = []
    of_host: dict[str, list[tuple[float, float]]] = {}
    for row in read_csv(file.parent / rates):
        host, _, way = row["link"].partition(":")
        # The same traffic is on the link into the rack.
        if way == "ingress":
            of_host.setdefault(host, []).append((float(row["t_s"]), float(row["rate_bps"])))
    for host, changes in of_host.items():
        # As in the simulator, the last rate lasts until all files are complete.
        ends = [*(at for at, _ in changes[1:]), None]
        streams += [
            Stream(at, end, host, rate) for (at, rate), end in zip(changes, ends, strict=True) if rate > 0
        ]
    return Load(writes, streams, seconds)


def _blocks(random: numpy.random.Generator, seconds: float) -> list[_Block]:
    count = max(round(FILES_PER_S * (seconds - TAIL_S - WARMUP_S)), 1)
    times, hosts = _times(random, seconds, count), _hosts(random, count)
    sizes = random.choice(SIZES, count, p=SHARES)
    return [(at, host, int(size) * SHAPE.block) for at, host, size in zip(times, hosts, sizes, strict=True)]


def _more(random: numpy.random.Generator, blocks: list[_Block], seconds: float) -> list[_Block]:
    """As many files of the same sizes, at other times by other hosts."""
    count = len(blocks)
    sizes = [blocks[at][2] for at in random.permutation(count)]
    return list(zip(_times(random, seconds, count), _hosts(random, count), sizes, strict=True))


def _times(random: numpy.random.Generator, seconds: float, count: int) -> list[float]:
    """Times of arrival in order."""
    times = numpy.sort(random.uniform(WARMUP_S, seconds - TAIL_S, count)).round(3)
    return [float(at) for at in times]


def _hosts(random: numpy.random.Generator, count: int) -> list[str]:
    numbers = random.integers(0, SHAPE.racks * SHAPE.hosts_per_rack, count)
    return [f"r{host // SHAPE.hosts_per_rack}h{host % SHAPE.hosts_per_rack}" for host in numbers]


def _rates(random: numpy.random.Generator, seconds: float) -> list[tuple[object, ...]]:
    """Rates into a rack, and into the same host of it."""
    targets = [f"r{rack}h{random.integers(SHAPE.hosts_per_rack)}" for rack in range(SHAPE.racks)]
    rows: list[tuple[object, ...]] = []
    for at in numpy.arange(0.0, seconds, _EPOCH_S):
        ranks = random.permutation(SHAPE.racks)
        for rack, target in enumerate(targets):
            low, high = {0: _HOT, 1: _WARM}.get(int(ranks[rack]), _COOL)
            rate = round(LINK_BPS * random.uniform(low, high))
            rows += [(float(at), f"r{rack}:downlink", rate), (float(at), f"{target}:ingress", rate)]
    return rows
