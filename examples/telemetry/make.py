"""Makes `links.parquet` and `latencies.csv.gz` beside it: two hours of six racks, made up.

How latencies grow with utilization is put in here, so it says nothing of any network:

    python examples/telemetry/make.py
"""

import gzip
from pathlib import Path

import pyarrow
from pyarrow import compute, csv, parquet

from leeward import Cluster
from leeward.impact.synthetic import Kind, plant

HERE = Path(__file__).parent
KINDS = (
    Kind("chunk-read", [1 + 4 * (at / 19) ** 3 for at in range(20)], share=0.2, base_ms=60, medium="hdd"),
    Kind("file-write", [1 + 6 * (at / 19) ** 2 for at in range(20)], share=0.6, base_ms=25, medium="hdd"),
    Kind("file-read", [1 + 5 * (at / 19) ** 2 for at in range(20)], share=0.5, base_ms=20, medium="ssd"),
)


def main() -> None:
    """Makes the files."""
    links = Cluster(HERE.parent / "clusters" / "racks.yaml").links()
    made = plant(links, KINDS, per_bucket=120, even=False, seed=7)
    names = links["name"].take(made.samples["link"])
    rate = compute.divide(made.samples["bits"], 30)
    seconds = compute.divide(made.samples["t_ms"], 1000)
    telemetry = pyarrow.table({"link": names, "load_bps": rate, "t_s": seconds})
    parquet.write_table(telemetry, HERE / "links.parquet", compression="zstd")
    rows = made.latencies.sort_by("t_ms")
    shorter = {
        "t_ms": compute.round(rows["t_ms"]).cast("int64"),
        "latency_ms": compute.round(rows["latency_ms"], 2),
        **{name: rows[name] for name in ("operation", "medium", "src", "dst")},
    }
    # Without a date of its own in the header, the same rows are the same bytes.
    with (
        (HERE / "latencies.csv.gz").open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed,
    ):
        csv.write_csv(pyarrow.table(shorter), packed, csv.WriteOptions(quoting_style="none"))


if __name__ == "__main__":
    main()
