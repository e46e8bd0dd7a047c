"""Speed and memory of `leeward hotspots` on a month of a fleet's telemetry, beside hand-written SQL.

The file is generated, seeded, in a temporary folder: links of racks and hosts, a sample each 30 seconds, some
links hot now and then. The SQL is what anyone would write with DuckDB to get utilizations in intervals of
five minutes and how many are hot: a scan and a group of the same file. Each runs in a process of its own, so
that its peak memory is its own, with the same limits. CPU seconds are of all threads, and tell more than
seconds on a machine that others use.

    python python/benchmarks/hotspots.py [--rows 100000000] [--memory 4GB] [--threads 2] [--keep FOLDER]

A thousand million rows take about 9 GB of disk (`--rows 1000000000 --memory 16GB`).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import yaml

CADENCE_S = 30
SAMPLES = 86_400
"""Of each link: thirty days."""
RACKS_PER_LINKS = 8
"""Links of a rack: of three hosts, and its own, each way."""
START_S = 1_767_571_200
NIC_BPS, UPLINK_BPS = 10_000_000_000, 20_000_000_000


def generate(folder: Path, rows: int) -> tuple[Path, Path, int]:
    """Writes telemetry and a cluster file; gives their paths and how many rows there are."""
    racks = max(1, round(rows / SAMPLES / RACKS_PER_LINKS))
    cluster = folder / "cluster.yaml"
    cluster.write_text(
        yaml.safe_dump({"racks": racks, "hosts_per_rack": 3, "nic": "10Gbps", "rack_link": "20Gbps"})
    )
    out = folder / "telemetry.parquet"
    if not out.exists():
        connection = duckdb.connect()
        connection.execute("SET preserve_insertion_order=false; SET memory_limit='4GB'; SET threads=2")
        connection.execute(f"SET temp_directory='{folder / 'spill'}'")
        connection.execute(_GENERATED.format(racks=racks, out=out))
    count = duckdb.sql(f"SELECT count(*) FROM '{out}'").fetchone()
    return out, cluster, int(count[0]) if count else 0


# What a link carries is a hash of its name and the hour, with a hash of each sample around it. One hour of a
# link in 200 is hot.
_GENERATED = f"""
COPY (
  WITH names AS (
    SELECT 'r' || r || e.suffix AS link, r * 8 + e.n AS id, e.bps
    FROM range({{racks}}) t(r), (VALUES
      ('h0:egress', 0, {NIC_BPS}), ('h0:ingress', 1, {NIC_BPS}), ('h1:egress', 2, {NIC_BPS}),
      ('h1:ingress', 3, {NIC_BPS}), ('h2:egress', 4, {NIC_BPS}), ('h2:ingress', 5, {NIC_BPS}),
      (':uplink', 6, {UPLINK_BPS}), (':downlink', 7, {UPLINK_BPS})) e(suffix, n, bps)
  )
  SELECT n.link, {START_S} + (s + 1) * {CADENCE_S} AS t_s,
    (n.bps // 100000 * (CASE WHEN hash(n.id * 1000003 + s // 120) % 200 = 0 THEN 85000
       ELSE 10000 + hash(n.id * 7919 + s // 120) % 40000 END + hash(n.id * 104729 + s) % 8000))::BIGINT
       AS load_bps
  FROM names n, range({SAMPLES}) t(s)
) TO '{{out}}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 1000000)
"""
_SQL = f"""
WITH links AS (SELECT * FROM (VALUES ('egress', {NIC_BPS}), ('ingress', {NIC_BPS}), ('uplink', {UPLINK_BPS}),
    ('downlink', {UPLINK_BPS})) t(kind, bps)),
  utilizations AS (
    SELECT link, (t_s - 1) // 300 AS start, sum(load_bps * {CADENCE_S}) AS bits,
      count(*) * {CADENCE_S} AS seconds
    FROM read_parquet('{{path}}') GROUP BY link, start)
SELECT count(*), sum((bits > 0.75 * bps * seconds)::BIGINT)
FROM utilizations JOIN links ON split_part(link, ':', 2) = kind
"""


def by_hand(path: str, memory: str, threads: int) -> dict[str, float]:
    """The hand-written SQL."""
    start = time.perf_counter()
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit='{memory}'; SET threads={threads}")
    found = connection.execute(_SQL.format(path=path)).fetchone()
    assert found is not None
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time(),
        "intervals": found[0],
        "hot": found[1],
    }


def leeward(path: str, cluster: str, memory: str, threads: int) -> dict[str, float]:
    """What `leeward hotspots` does with its defaults, but for its printing."""
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
    made = analyze(samples, advance=advance)
    print("steps:", *(f"{step:.1f}" for step in steps), file=sys.stderr)
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time(),
        "intervals": made.extent.intervals,
        "hot": made.extent.hot,
    }


def peak_gigabytes() -> float:
    """The most memory that this process has held so far."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1e6 for line in status.splitlines() if line.startswith("VmHWM:"))


def main() -> None:
    """Prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--memory", default="4GB", help="limit of the engine; the process takes some more")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="a folder for the file, which is used again if it is there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        path, cluster, rows = generate(folder, given.rows)
        print(f"{rows:,} samples, {path.stat().st_size / 1e9:.1f} GB; limit {given.memory}")
        print(f"{'':<10} {'s':>8} {'CPU s':>8} {'rows/s':>13} {'memory':>8} {'intervals':>12} {'hot':>10}")
        found = {}
        for which in ("by hand", "leeward"):
            arguments = [which, str(path), str(cluster), given.memory, str(given.threads)]
            process = subprocess.run(
                [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, check=True
            )
            result = json.loads(process.stdout)
            found[which] = result
            print(
                f"{which:<10} {result['seconds']:>8.1f} {result['cpu']:>8.1f}"
                f" {rows / result['seconds']:>13,.0f}"
                f" {result['gigabytes']:>5.1f} GB {result['intervals']:>12,} {result['hot']:>10,}"
            )
        ratios = {name: found["leeward"][name] / found["by hand"][name] for name in ("seconds", "cpu")}
        print(f"leeward over by hand: {ratios['seconds']:.2f}; of CPU time {ratios['cpu']:.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 5 and sys.argv[1] in {"by hand", "leeward"}:
        kind, path, cluster, memory, threads = sys.argv[1:]
        if kind == "leeward":
            found = leeward(path, cluster, memory, int(threads))
        else:
            found = by_hand(path, memory, int(threads))
        print(json.dumps(found | {"gigabytes": peak_gigabytes()}))
    else:
        main()
