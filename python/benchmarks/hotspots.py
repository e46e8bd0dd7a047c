"""Speed and memory of `leeward hotspots` on a month of a fleet's telemetry, beside DuckDB and Polars by hand.

The file is generated, seeded, in a temporary folder: links of racks and hosts, a sample each 30 seconds, some
links hot now and then. The SQL is a plain DuckDB query of the same file for utilizations in intervals
of five minutes and the number of hot ones: a scan and a group; Polars does the same, if it is installed. Each
runs in a process of its own, so that its peak memory is its own, with the same limits (Polars has no limit of
memory). CPU seconds are of all threads; on a shared machine they are more reliable than wall-clock seconds.

    python python/benchmarks/hotspots.py [--rows 100000000] [--memory 4GB] [--threads 2] [--keep FOLDER]

A thousand million rows take about 9 GB of disk (`--rows 1000000000 --memory 16GB`).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy
import pyarrow
import yaml
from peers import package_version
from pyarrow import parquet
from record import record, record_missing, record_peer

CADENCE_S = 30
SAMPLES = 86_400
"""Samples of each link: thirty days."""
START_S = 1_767_571_200
HOUR = 3600 // CADENCE_S
NIC_BPS, UPLINK_BPS = 10_000_000_000, 20_000_000_000
LINKS = {f"h{host}:{way}": NIC_BPS for host in range(3) for way in ("egress", "ingress")} | {
    ":uplink": UPLINK_BPS,
    ":downlink": UPLINK_BPS,
}
"""Links of a rack, and their speeds."""
LINKS_PER_RACK = len(LINKS)
PEERS = {"by hand": "DuckDB", "polars": "Polars"}
"""Other programs, by the name of their process."""


def generate(folder: Path, rows: int) -> tuple[Path, Path, int]:
    """Writes telemetry and a cluster file; returns their paths and the number of rows."""
    racks = max(1, round(rows / SAMPLES / LINKS_PER_RACK))
    cluster = folder / "cluster.yaml"
    cluster.write_text(
        yaml.safe_dump({"racks": racks, "hosts_per_rack": 3, "nic": "10Gbps", "rack_link": "20Gbps"})
    )
    out = folder / "telemetry.parquet"
    if not out.exists():
        _write(out, racks)
    return out, cluster, parquet.ParquetFile(out).metadata.num_rows


def _write(out: Path, racks: int) -> None:
    """Writes telemetry in the order of time, as collectors do.

    The load of a link is drawn for each hour, and the load of each sample around it. One in 200 hours of a
    link is hot.
    """
    names = [f"r{rack}{link}" for rack in range(racks) for link in LINKS]
    units = numpy.tile(numpy.array(list(LINKS.values())) // 100_000, racks)
    schema = pyarrow.schema(
        [("link", pyarrow.string()), ("t_s", pyarrow.int64()), ("load_bps", pyarrow.int64())]
    )
    random = numpy.random.default_rng(1)
    # Whole hours, of about a million rows.
    step = max(1, 1_000_000 // (HOUR * len(names))) * HOUR
    half = out.with_suffix(".half")
    with parquet.ParquetWriter(half, schema, compression="zstd", store_schema=False) as writer:
        for first in range(0, SAMPLES, step):
            number = min(step, SAMPLES - first)
            shape = (number // HOUR, len(names))
            hours = numpy.where(
                random.integers(0, 200, shape) == 0, 85_000, random.integers(10_000, 50_000, shape)
            )
            loads = numpy.repeat(hours, HOUR, axis=0) + random.integers(0, 8_000, (number, len(names)))
            times = START_S + CADENCE_S * numpy.arange(first + 1, first + number + 1)
            indices = numpy.tile(numpy.arange(len(names), dtype=numpy.int32), number)
            links = pyarrow.DictionaryArray.from_arrays(indices, names).cast(pyarrow.string())
            columns = [links, numpy.repeat(times, len(names)), (loads * units).ravel()]
            writer.write_table(pyarrow.table(columns, schema=schema), row_group_size=1_000_000)
    half.rename(out)


_SQL = f"""
CREATE TEMP TABLE utilizations AS
SELECT link, (t_s - 1) // 300 AS start, sum(load_bps * {CADENCE_S}) AS bits, count(*) AS samples
FROM read_parquet('{{path}}') GROUP BY link, start;
WITH links AS (SELECT * FROM (VALUES ('egress', {NIC_BPS}), ('ingress', {NIC_BPS}), ('uplink', {UPLINK_BPS}),
  ('downlink', {UPLINK_BPS})) t(kind, bps))
SELECT count(*), sum((bits > 0.75 * bps * samples * {CADENCE_S})::BIGINT)
FROM utilizations JOIN links ON regexp_extract(link, '[a-z]+$') = kind
"""


def by_hand(path: str, memory: str, threads: int) -> dict[str, float]:
    """Runs the hand-written SQL; returns its time and its counts."""
    start = time.perf_counter()
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit='{memory}'; SET threads={threads}")
    counts = connection.execute(_SQL.format(path=path)).fetchone()
    assert counts is not None
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time(),
        "intervals": counts[0],
        "hot": counts[1],
    }


def by_polars(path: str, threads: int) -> dict[str, float]:
    """Runs the same scan and group in Polars; returns its time and its counts."""
    # Polars reads the variable when it is imported.
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    start = time.perf_counter()
    import polars

    kinds = {"egress": NIC_BPS, "ingress": NIC_BPS, "uplink": UPLINK_BPS, "downlink": UPLINK_BPS}
    links = polars.DataFrame({"kind": list(kinds), "bps": list(kinds.values())}).lazy()
    found = (
        polars.scan_parquet(path)
        .group_by("link", ((polars.col("t_s") - 1) // 300).alias("start"))
        .agg((polars.col("load_bps") * CADENCE_S).sum().alias("bits"), polars.len().alias("samples"))
        .with_columns(polars.col("link").str.extract("([a-z]+)$").alias("kind"))
        .join(links, on="kind")
        .select(
            polars.len().alias("intervals"),
            (polars.col("bits") > 0.75 * polars.col("bps") * polars.col("samples") * CADENCE_S)
            .sum()
            .alias("hot"),
        )
        .collect()
    )
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time(),
        "intervals": found["intervals"][0],
        "hot": found["hot"][0],
    }


def leeward(path: str, cluster: str, memory: str, threads: int) -> dict[str, float]:
    """Runs the analysis of `leeward hotspots` with its defaults; returns its time and its counts."""
    import leeward as package
    from leeward.hotspots import analyze
    from leeward.telemetry import Engine, read

    start = last = time.perf_counter()
    steps = []

    def advance(_: int) -> None:
        nonlocal last
        now = time.perf_counter()
        steps.append(now - last)
        last = now

    engine = Engine.duckdb(memory=memory, threads=threads)
    samples = read(package.Cluster(cluster), [path], engine=engine, cadence=f"{CADENCE_S}s")
    advance(1)
    analysis = analyze(samples, advance=advance)
    print("steps:", *(f"{step:.1f}" for step in steps), file=sys.stderr)
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time(),
        "intervals": analysis.extent.intervals,
        "hot": analysis.extent.hot,
    }


def peak_gigabytes() -> float:
    """Returns the peak memory of this process."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1e6 for line in status.splitlines() if line.startswith("VmHWM:"))


def main() -> None:
    """Prints a line for each program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--memory", default="4GB", help="limit of the engine; the process uses somewhat more")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="folder for the file; an existing file is used again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        path, cluster, rows = generate(folder, options.rows)
        print(f"{rows:,} samples, {path.stat().st_size / 1e9:.1f} GB; limit {options.memory}")
        print(f"{'':<10} {'s':>8} {'CPU s':>8} {'rows/s':>13} {'memory':>8} {'intervals':>12} {'hot':>10}")
        results = {}
        programs = ["by hand", "leeward"]
        record_peer("DuckDB", duckdb.__version__)
        if version := package_version("polars"):
            record_peer("Polars", version)
            programs.append("polars")
        else:
            record_missing("Polars", "the package polars is not installed")
        for program in programs:
            arguments = [program, str(path), str(cluster), options.memory, str(options.threads)]
            process = subprocess.run(
                [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, check=True
            )
            result = json.loads(process.stdout)
            results[program] = result
            print(
                f"{program:<10} {result['seconds']:>8.1f} {result['cpu']:>8.1f}"
                f" {rows / result['seconds']:>13,.0f}"
                f" {result['gigabytes']:>5.1f} GB {result['intervals']:>12,} {result['hot']:>10,}"
            )
            peer = PEERS.get(program)
            record(f"hotspots, {program}", "s", result["seconds"], peer)
            record(f"hotspots, {program}, memory", "GB", result["gigabytes"], peer)
        record("hotspots, samples", "samples", rows)
        for program in (one for one in programs if one in PEERS):
            if any(results[program][count] != results["by hand"][count] for count in ("intervals", "hot")):
                raise RuntimeError(f"other counts {program} than by hand")
            ratios = {name: results["leeward"][name] / results[program][name] for name in ("seconds", "cpu")}
            name = f"hotspots, leeward over {program}"
            record(name, "ratio", ratios["seconds"], PEERS[program])
            record(f"{name}, processor", "ratio", ratios["cpu"], PEERS[program])
            print(f"leeward over {program}: {ratios['seconds']:.2f}; of CPU time {ratios['cpu']:.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 5 and sys.argv[1] in {"leeward", *PEERS}:
        kind, path, cluster, memory, threads = sys.argv[1:]
        if kind == "leeward":
            measured = leeward(path, cluster, memory, int(threads))
        elif kind == "polars":
            measured = by_polars(path, int(threads))
        else:
            measured = by_hand(path, memory, int(threads))
        print(json.dumps(measured | {"gigabytes": peak_gigabytes()}))
    else:
        main()
