"""Labs of tests: two hosts of a rack, small scenarios, and checks that a lab left nothing behind."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from leeward import lab
from support.parts import require, require_root
from support.repeats import ATTEMPTS

DEVICE = "eth0"
"""Device of each host."""
ADDRESSES = ("10.0.0.2", "10.0.1.2")
OWN = f"t{os.getpid()}"
"""Beginning of the names of the labs of tests."""
DILATION = 200
"""Dilation at which slow, busy machines keep up."""
BOUND = "10ms"
"""Bound for machines on which other tests run: the figures of tests do not depend on it."""
Result = TypeVar("Result")


@contextmanager
def two_hosts() -> Iterator[tuple[str, str]]:
    """The namespaces of two hosts in a rack, whose links have no limit; without root, ends the test."""
    require_root()
    require("ip", "tc", package="iproute2")
    with lab.up({"racks": 1, "hosts_per_rack": 2, "nic": "1Tbps", "rack_link": "1Tbps"}) as network:
        one, two = network.hosts
        assert (one.address, two.address) == ADDRESSES
        yield one.namespace, two.namespace


def scenario(**fields: Any) -> dict[str, Any]:
    """Three racks of one host, two of which send through circuits."""
    return {
        "network": {"racks": 3, "hosts_per_rack": 1},
        "scheduler": {"name": "strobe"},
        "workload": {"flows": [{"from": [0, 0], "to": [1, 0], "bytes": "8MB"}]},
        "horizon": "100ms",
        **fields,
    }


def left(name: str) -> list[str]:
    """Everything on this machine that has the name of a lab."""
    folders = (
        "/run/netns",
        "/etc/netns",
        "/run/leeward-labs",
        "/var/tmp/leeward-labs",
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/blkio",
        "/sys/fs/cgroup/unified",
    )
    found = [str(path) for folder in folders if Path(folder).exists() for path in Path(folder).iterdir()]
    mounts = Path("/proc/mounts").read_text().splitlines()
    return [one for one in (*found, *mounts) if name in one]


@contextmanager
def nothing_left() -> Iterator[None]:
    """Requires root, and checks that labs of this process and of its names leave nothing behind."""
    require_root()
    require("ip", "tc", package="iproute2")
    yield
    labs = [each for each in lab.labs() if each.name.startswith(f"{OWN}-")]
    for each in labs:
        # The removal of a lab with circuits ends its process.
        if each.process != os.getpid():
            lab.remove(each.name)
    assert not labs
    assert not left(f"{OWN}-")
    assert not left(f"run-{os.getpid()}-")


def kept_up(run: Callable[[], Result]) -> Result:
    """The result of a run, which is repeated up to twice if the lab refused it on a busy machine."""
    for attempt in range(1, ATTEMPTS):
        try:
            return run()
        except TimeoutError as error:
            print(f"attempt {attempt}: {error}")
    return run()
