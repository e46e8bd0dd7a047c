"""Demo beside a controller: simulated time follows the clock, and the comparison is published."""

import threading
import time
from collections.abc import Callable

from leeward._native import Cluster
from leeward.client import Client
from leeward.demo.arms import BlindPlacer, ControllerPlacer, Placer
from leeward.demo.cell import Cell, Network
from leeward.demo.driver import Driver

BASELINE = "borg"
"""Policy of today's schedulers: spreads over racks, then balances hosts, by counts and processors."""
LATE = 2.0
"""Intervals of delay before a warning."""


def build_driver(
    client: Client, policy: str, cell: Cell, seed: int, step_s: float, interval_s: float
) -> Driver:
    """A driver with the two arms `default` and `leeward`, the second of which uses a controller.

    Args:
        client: Client of a controller that serves only the cell's cluster.
        policy: Policy of the controller for tasks.
        cell: The simulated cell.
        seed: Seed of jobs, and of the baseline's ties.
        step_s: Length of a step.
        interval_s: Interval of the reports that the controller expects.
    """
    cluster = Cluster(cell.cluster)
    network = Network.of(cluster)
    placer = ControllerPlacer(client, network, policy, interval_s)
    placers: dict[str, Placer] = {"default": BlindPlacer(cluster, BASELINE, seed), "leeward": placer}
    driver = Driver(cell, network, placers, seed, step_s)
    # The first report says that the empty cell carries no load.
    placer.report(driver.utilization("leeward"), [])
    return driver


def run(
    client: Client,
    driver: Driver,
    interval_s: float,
    stop: threading.Event,
    tell: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Advances by a step each interval and publishes the comparison, until it is stopped.

    Args:
        client: Client of the controller, with an admin token.
        driver: The driver.
        interval_s: Time between steps, and so between reports.
        stop: Set to end the loop.
        tell: Called with warnings.
        clock: Clock in seconds, with any origin.
    """
    speed, start, warning_sent, refused = driver.step_s / interval_s, clock(), False, 0
    client.set_demo(driver.comparison(speed))
    while not stop.wait(max(0.0, start + driver.steps * interval_s - clock())):
        driver.step()
        client.set_demo(driver.comparison(speed))
        if driver.refused > refused:
            refused = driver.refused
            tell(f"{refused} jobs so far were refused by one of the two policies, and run under neither")
        late = (clock() - start) / interval_s - driver.steps
        if late > LATE and not warning_sent:
            warning_sent = True
            behind = f"the demo is {late * interval_s:.0f} s behind"
            tell(f"this machine is busy: {behind}, and slower than its stated speed")
