"""Tables of a device's profile."""

from typing import Any

from leeward._quantities import bytes_text, percent_text, time_text, work_rate_text
from leeward.cli.output import print_table


def print_device(device: dict[str, Any]) -> None:
    """Prints requests per second and latencies without queueing, by kind and size."""
    rows = device.get("unloaded", [])
    tails = {(row["kind"], row["size_bytes"], row["percentile"]): row["seconds"] for row in rows}
    percentiles = [p for p in (50.0, 99.0, 99.9) if any(key[2] == p for key in tails)]
    headers = [
        "KIND",
        "SIZE",
        "REQUESTS/S",
        "BANDWIDTH",
        *(f"{percent_text(p / 100, None)} UNLOADED" for p in percentiles),
    ]
    cells = [
        [
            kind,
            bytes_text(row["size_bytes"], None),
            f"{row[f'{kind}_iops']:,.0f}",
            work_rate_text(row["size_bytes"] * row[f"{kind}_iops"], "bytes"),
            *(time_text(tails.get((kind, row["size_bytes"], p))) for p in percentiles),
        ]
        for kind in ("read", "write")
        for row in device["table"]
    ]
    print_table(headers, "<" + ">" * (len(headers) - 1), cells)
