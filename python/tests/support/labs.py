"""Two hosts of a lab, for tests that need namespaces."""

from collections.abc import Iterator
from contextlib import contextmanager

from leeward import lab
from support.parts import require, require_root

DEVICE = "eth0"
"""Device of each host."""
ADDRESSES = ("10.0.0.2", "10.0.1.2")


@contextmanager
def two_hosts() -> Iterator[tuple[str, str]]:
    """The namespaces of two hosts in a rack, whose links have no limit; without root, ends the test."""
    require_root()
    require("ip", "tc", package="iproute2")
    with lab.up({"racks": 1, "hosts_per_rack": 2, "nic": "1Tbps", "rack_link": "1Tbps"}) as network:
        one, two = network.hosts
        assert (one.address, two.address) == ADDRESSES
        yield one.namespace, two.namespace
