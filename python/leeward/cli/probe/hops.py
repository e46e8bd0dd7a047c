"""`leeward probe hops`: hop distances between hosts."""

from collections.abc import Iterator
from typing import Any

from leeward._quantities import NONE
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.output import Format, FormatOption, print_data, print_table
from leeward.cli.probe.options import HostsOption, SecretOption, hosts_of, secret_of, survey_progress

EXAMPLES = """\b
Examples:
  leeward probe hops --hosts 10.0.0.1,10.0.0.2,10.0.0.3
"""


def hops(hosts: HostsOption, secret: SecretOption = None, output: FormatOption = Format.table) -> None:
    """Count the hops between hosts, and group them by rack."""
    from leeward import probe

    targets, key = hosts_of(hosts), secret_of(secret)
    with survey_progress("counting hops") as on_progress:
        result = probe.hops(targets, secret=key, progress=on_progress)
    if print_data(output, result, _pairs(result), COLUMNS["probe hops"]):
        return
    rows = zip(result["hosts"], result["hops"], strict=True)
    print_table(
        ("FROM", *result["hosts"]),
        "<" + ">" * len(result["hosts"]),
        [(name, *(NONE if one is None else str(one) for one in row)) for name, row in rows],
    )
    print()
    print_topology(result)


def _pairs(result: dict[str, Any]) -> Iterator[dict[str, object]]:
    """Hops of each pair of hosts."""
    for source, row in zip(result["hosts"], result["hops"], strict=True):
        for destination, hops in zip(result["hosts"], row, strict=True):
            if source != destination:
                yield {"from": source, "to": destination, "hops": hops}


def print_topology(topology: dict[str, Any]) -> None:
    """Prints racks, and the hosts that fit no tree."""
    print_table(
        ("RACK", "HOSTS"),
        "<<",
        [(f"r{number}", ", ".join(rack)) for number, rack in enumerate(topology["racks"])],
    )
    if topology["misfits"]:
        print()
        print_table(
            ("FROM", "TO", "HOPS", "FITS NO TREE"),
            "<<><",
            [
                (one["from"], one["to"], NONE if one["hops"] is None else str(one["hops"]), one["why"])
                for one in topology["misfits"]
            ],
        )
