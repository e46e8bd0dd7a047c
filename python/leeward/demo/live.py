"""The demo beside a controller: simulated time goes on as the clock does, and the comparison is shown."""

import threading
import time
from collections.abc import Callable

from leeward._native import Cluster
from leeward.client import Client
from leeward.demo.arms import Asked, Blind, Placer
from leeward.demo.cell import Cell, Network
from leeward.demo.driver import Driver

BASELINE = "borg"
"""What schedulers do today: spread over racks, then balance of hosts, by counts and processors."""
LATE = 2.0
"""Intervals by which it may be behind before somebody is told."""


def made(client: Client, policy: str, cell: Cell, seed: int, step_s: float, interval_s: float) -> Driver:
    """A driver with the two arms `default` and `leeward`, the second of which asks a controller.

    Args:
        client: Of a controller that serves the cell's cluster, and nothing else.
        policy: What that places tasks by.
        cell: What is simulated.
        seed: Of jobs, and of the baseline's ties.
        step_s: How much time passes in a step.
        interval_s: How often the controller expects reports.
    """
    cluster = Cluster(cell.cluster)
    network = Network.of(cluster)
    asked = Asked(client, network, policy, interval_s)
    placers: dict[str, Placer] = {"default": Blind(cluster, BASELINE, seed), "leeward": asked}
    driver = Driver(cell, network, placers, seed, step_s)
    # Nothing runs yet, and so much is seen.
    asked.seen(driver.utilization("leeward"), [])
    return driver


def run(
    client: Client,
    driver: Driver,
    interval_s: float,
    stop: threading.Event,
    tell: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Makes a step each interval and shows how it stands, until it is stopped.

    Args:
        client: Of the controller, with a token that may change everything.
        driver: What is run.
        interval_s: Time between steps, and so between reports.
        stop: Set when it is to end.
        tell: Says something to whoever started it.
        clock: Seconds from any origin.
    """
    speed, start, told, refused = driver.step_s / interval_s, clock(), False, 0
    client.set_demo(driver.comparison(speed))
    while not stop.wait(max(0.0, start + driver.steps * interval_s - clock())):
        driver.step()
        client.set_demo(driver.comparison(speed))
        if driver.refused > refused:
            refused = driver.refused
            tell(f"{refused} jobs so far were refused under one of them, and run under neither")
        late = (clock() - start) / interval_s - driver.steps
        if late > LATE and not told:
            told = True
            behind = f"the demo is {late * interval_s:.0f} s behind"
            tell(f"this machine is busy: {behind}, and slower than it says")
