"""`make kubernetes-demo`: hot racks under kube-scheduler as it is, and then under Leeward's parts.

A control plane with a thousand nodes runs a cell of tasks twice, with the same tasks. The dashboard shows the
racks of the present run, and in the second run both beside each other: the first one as it was at that time.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy

from leeward import Client
from leeward.cli.output import print_table
from leeward.client import ProblemError
from leeward_reproduce.hdfs.processes import ended_by_signals
from leeward_reproduce.hotspots.kubernetes import program, scenario, service
from leeward_reproduce.hotspots.kubernetes.figures import NAMES
from leeward_reproduce.hotspots.kubernetes.measures import HOT, Measures, measure
from leeward_reproduce.hotspots.kubernetes.run import TICK_S, Links, Step, drive
from leeward_reproduce.hotspots.kubernetes.scenario import INTERVAL_S, Size

ARMS = {"default": "default", "leeward": "both"}
"""Arms of the dashboard's comparison, and those of the control plane."""
HOURS = 2.0
"""Simulated hours of a run."""
WARMUP_S = 1800.0
"""Time before the counted part of a run."""
PORT = 7600
START = datetime(2026, 1, 31, 8, tzinfo=UTC)
"""Time of the cell at the start."""
_WATCH_S = 15.0
"""Time between two lines about the racks."""
Note = Callable[[str], object]


class Comparison:
    """The runs of the demo as the dashboard compares them."""

    def __init__(self) -> None:
        """Starts before the first run."""
        self._links: Links | None = None
        self._steps: dict[str, list[Step]] = {}

    def add(self, arm: str, links: Links, step: Step) -> dict[str, Any]:
        """Adds a step of a run, and returns the comparison of all runs at this step, as in `/v1/demo`."""
        self._links = links
        mine = self._steps.setdefault(arm, [])
        mine.append(step)
        count = len(mine)
        at = START + timedelta(seconds=count * links.interval_s)
        hot = {name: [hot_share(links, one) for one in steps[:count]] for name, steps in self._steps.items()}
        return {
            "time": at.isoformat().replace("+00:00", "Z"),
            "speed": links.interval_s / TICK_S,
            "arms": [
                self._arm(name, steps[min(count, len(steps)) - 1]) for name, steps in self._steps.items()
            ],
            "history": {
                "step_s": links.interval_s,
                "arms": [{"name": name, "hot_share": values} for name, values in hot.items()],
            },
        }

    def _arm(self, name: str, step: Step) -> dict[str, Any]:
        assert self._links is not None
        racks = self._links.racks
        up, down = (step.loads_bps / self._links.capacity_bps).tolist()
        rows = zip(racks, up, down, strict=True)
        return {
            "name": name,
            "policy": NAMES[ARMS[name]],
            "hot_racks": hot_racks(self._links, step),
            "hot_share": hot_share(self._links, step),
            "racks": [{"rack": rack, "up": sent, "down": received} for rack, sent, received in rows],
        }


def hot_racks(links: Links, step: Step) -> int:
    """Number of racks with a hot link, in either direction."""
    return int((step.loads_bps > HOT * links.capacity_bps).any(axis=0).sum())


def hot_share(links: Links, step: Step) -> float:
    """Racks with a hot link, as a share of all racks."""
    return hot_racks(links, step) / len(links.racks)


class Watch:
    """Lines about a run while it goes on."""

    def __init__(self, size: Size, note: Note, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts before the first step.

        Args:
            size: Size of the run.
            note: Prints a line.
            clock: Clock in seconds, with any origin.
        """
        self._size, self._note, self._clock = size, note, clock
        self._steps = self._evicted = 0
        self._last = clock()

    def __call__(self, links: Links, step: Step) -> None:
        """Takes in a step, and prints a line if the last one is old enough."""
        self._steps += 1
        self._evicted += len(step.evicted)
        now = self._clock()
        if self._steps > 1 and now - self._last < _WATCH_S:
            return
        self._last = now
        done_h, all_h = self._steps * links.interval_s / 3600, self._size.horizon_s / 3600
        self._note(
            f"{done_h:.1f} of {all_h:.1f} h: {hot_racks(links, step)} of {len(links.racks)} racks hot,"
            f" {step.running} pods run, {step.waiting} wait, {self._evicted} were evicted"
        )


def table(measures: dict[str, Measures]) -> list[tuple[str, ...]]:
    """Rows of the comparison: a name, and the value under each arm."""
    windows = [one.window for one in measures.values()]
    racks = [one.cell for one in measures.values()]
    any_way = [100 * float(numpy.divide(one["hot_tors"], one["tors"]).mean()) for one in racks]
    evicted = [sum(one["moved"]) for one in racks]
    return [
        ("racks with a hot link", *(f"{share:.1f} %" for share in any_way)),
        ("racks hot outbound", *(f"{one.mean('hot'):.1f} %" for one in windows)),
        ("p98 of racks' outbound utilization", *(f"{one.mean('p98'):.1f} %" for one in windows)),
        ("utilization of all uplinks", *(f"{one.mean('utilization'):.1f} %" for one in windows)),
        ("network-intensive pods put on hot racks", *(f"{one.mean('violations'):.1f} %" for one in windows)),
        ("pods evicted", *(f"{count:.0f}" for count in evicted)),
    ]


def show(size: Size, seed: int, note: Note) -> dict[str, Measures]:
    """Runs both arms beside a service with a dashboard. All processes have ended after it.

    Args:
        size: Size of each run.
        seed: Seed of the tasks.
        note: Prints a line.

    Returns:
        Measurements by arms of the comparison.

    Raises:
        OSError: A part is missing, or a process failed.
    """
    command = program.build(note)
    comparison, measures = Comparison(), {}
    with ended_by_signals(), tempfile.TemporaryDirectory(prefix="leeward-kubernetes-") as name:
        folder = Path(name)
        file = scenario.write(folder / "cell", seed, size)
        with service.up(folder, file.parent / "cluster.yaml", TICK_S, service.free_port(PORT)) as url:
            client = Client(url, patience_s=5.0)
            note(f"dashboard: {url}")
            for shown, arm in ARMS.items():
                hosts = size.cell.racks * size.cell.hosts_per_rack
                note(f"{NAMES[arm]}: starting a control plane with {hosts} nodes in {size.cell.racks} racks")
                watch = Watch(size, note)

                def on_step(links: Links, step: Step, shown: str = shown, watch: Watch = watch) -> None:
                    client.set_demo(comparison.add(shown, links, step))
                    watch(links, step)

                outcome = drive(command, file, arm, seed, size, url, folder, on_step)
                measures[shown] = measure(outcome, file, size.warmup_s)
            note("ending the service")
    return measures


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demo; returns its exit status."""
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="make kubernetes-demo", description=summary)
    parser.add_argument("--hours", type=float, default=HOURS, help="simulated hours of each of the two runs")
    parser.add_argument("--seed", type=int, default=1, help="seed of the tasks")
    options = parser.parse_args(arguments)
    if not 1.0 <= options.hours <= 24.0:
        parser.error(f"--hours {options.hours:g}: expected 1 to 24")
    lacks = program.missing()
    if lacks is not None:
        print(f"error: {lacks}", file=sys.stderr)
        return 1
    began = time.monotonic()

    def note(text: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s  {text}", file=sys.stderr, flush=True)

    try:
        measures = show(Size(horizon_s=3600 * options.hours, warmup_s=WARMUP_S), options.seed, note)
    except KeyboardInterrupt:
        print("interrupted: the control plane and the service are removed", file=sys.stderr)
        return 130
    except (OSError, ProblemError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    speed = INTERVAL_S / TICK_S
    skipped = f"the first {WARMUP_S / 60:g} min do not count"
    note(f"{options.hours:g} h of each run, {speed:g} times as fast as real time; {skipped}")
    print_table(["", *measures], "<" + ">" * len(measures), table(measures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
