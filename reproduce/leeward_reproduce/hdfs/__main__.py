"""`make hdfs-lab`: a real HDFS in a lab, with a controller and agents, until Ctrl-C."""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

from leeward._quantities import bytes_literal, read_bytes
from leeward.errors import InputError
from leeward_reproduce.hdfs.class_path import missing
from leeward_reproduce.hdfs.machine import Shape
from leeward_reproduce.hdfs.observed import ObservedCluster, up
from leeward_reproduce.hdfs.settings import POLICIES

MOST_DATANODES = 32
"""Greatest number of DataNodes. Each has about 200 MB of memory."""
SMALLEST_BLOCK = 1 << 20
"""Smallest block that the NameNode accepts, in bytes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Brings up a cluster, and removes it after Ctrl-C; returns the exit status."""
    policy, shape = _parse(arguments)
    lacks = missing()
    if lacks is not None:
        print(f"error: {lacks}", file=sys.stderr)
        return 1
    try:
        with up(shape, policy, note=lambda text: print(text, file=sys.stderr, flush=True)) as cluster:
            for line in lines(cluster):
                print(line, flush=True)
            while True:
                cluster.check()
                time.sleep(1.0)
    except KeyboardInterrupt:
        print("the cluster is removed", file=sys.stderr)
        return 0
    except (OSError, InputError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def lines(cluster: ObservedCluster) -> list[str]:
    """Addresses of a cluster, and a command that writes a file."""
    at_host = f"sudo leeward lab exec --name {cluster.network.name} --host {cluster.hosts[0]}"
    return [
        f"hosts      {' '.join(cluster.hosts)}",
        f"policy     {cluster.policy}",
        f"dashboard  {cluster.controller_url} with the token {cluster.token}",
        f"NameNode   {cluster.namenode_url}",
        f"a file     {at_host} -- {cluster.write_client()} -put FILE /",
        "end        Ctrl-C",
    ]


def _parse(arguments: Sequence[str] | None) -> tuple[str, Shape]:
    """Policy and shape of the command line."""
    default = Shape()
    parser = argparse.ArgumentParser(prog="make hdfs-lab", description=(__doc__ or "").partition("\n")[0])

    def add(name: str, help_text: str, value: Any) -> None:
        parser.add_argument(
            name, type=type(value), default=value, metavar="VALUE", help=f"{help_text} (default: {value})"
        )

    parser.add_argument(
        "--policy", choices=POLICIES, default="leeward", help="policy of the NameNode (default: leeward)"
    )
    add("--racks", "number of racks", default.racks)
    add("--hosts-per-rack", "number of hosts of each rack", default.hosts_per_rack)
    add("--nic", "rate of the link of each host", default.nic)
    add("--rack-link", "rate of the link of each rack", default.rack_link)
    add("--block", "size of a block", bytes_literal(default.block))
    options = parser.parse_args(arguments)
    for flag, value in (("--racks", options.racks), ("--hosts-per-rack", options.hosts_per_rack)):
        if value < 1:
            parser.error(f"{flag} {value}: expected at least 1")
    datanodes = options.racks * options.hosts_per_rack
    if datanodes > MOST_DATANODES:
        parser.error(f"{datanodes} hosts: expected at most {MOST_DATANODES}")
    try:
        block = read_bytes("--block", options.block)
        shape = Shape(options.racks, options.hosts_per_rack, options.nic, options.rack_link, block)
    except InputError as error:
        parser.error(str(error))
    if block < SMALLEST_BLOCK:
        parser.error(f"--block {options.block}: expected at least {bytes_literal(SMALLEST_BLOCK)}")
    return options.policy, shape


if __name__ == "__main__":
    sys.exit(main())
