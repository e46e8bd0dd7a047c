"""Runs of scenarios on beds. Those that a folder has already are not made again."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from leeward_reproduce.hdfs.usage import RejectedRunError
from leeward_reproduce.real import results
from leeward_reproduce.slo.real import bed, scenario
from leeward_reproduce.slo.real.calibration import calibrate
from leeward_reproduce.slo.real.cases import Case
from leeward_reproduce.slo.real.measures import Measures
from leeward_reproduce.slo.real.run import FILE, VOLUME, Advance, run
from leeward_reproduce.slo.real.scenario import Scenario
from leeward_reproduce.slo.real.simulator import simulate_all
from leeward_reproduce.slo.real.traffic import FILE_BYTES

ATTEMPTS = 3
"""Largest number of attempts of a run, of which the first that is not rejected counts."""
T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """A scenario with its runs by policy: those of the simulator, and those on a bed."""

    scenario: Scenario
    simulator: Mapping[str, Measures]
    real: Mapping[str, Measures]


Outcomes = Mapping[Case, Sequence[Outcome]]
"""Runs of each case, seed by seed."""


def make_outcomes(cases: Sequence[Case], seeds: int, folder: Path, advance: Advance) -> Outcomes:
    """Makes the runs of cases, or reads them.

    Args:
        cases: The cases. Those that follow one another on the same machines share a bed.
        seeds: Number of seeds.
        folder: Folder of the scenarios with their results.
        advance: Called with the completed share.

    Raises:
        InputError: A folder has runs of another scenario.
        OSError: A run is absent and a bed cannot run on this machine, a run failed, or all of its attempts
            were rejected.
    """
    scenarios = {
        case: [scenario.write(folder / case.name / f"seed-{seed}", case, seed) for seed in case.seeds(seeds)]
        for case in cases
    }
    real = perform([one for of_case in scenarios.values() for one in of_case], advance)
    return {
        case: [Outcome(one, simulate_all(one), real[one.folder]) for one in of_case]
        for case, of_case in scenarios.items()
    }


def perform(scenarios: Sequence[Scenario], advance: Advance) -> dict[Path, dict[str, Measures]]:
    """Makes the runs of scenarios, or reads them. Returns measurements by folder and policy."""
    found = {one.folder: results.read(one.folder, Measures) for one in scenarios}
    absent = [one for one in scenarios if found[one.folder] is None]
    total = sum(_seconds(one) for one in scenarios) or 1.0
    done = total - sum(_seconds(one) for one in absent)
    advance(done / total)
    while absent:
        same = _machines(absent[0].case)
        mine = [one for one in absent if _machines(one.case) == same]
        absent = [one for one in absent if _machines(one.case) != same]
        with bed.up(mine[0].case.shape) as machines:
            tails = prepare(machines, mine[0].case)
            for one in mine:
                runs: dict[str, Measures] = {}
                rejected: list[str] = []
                for policy in one.case.order(one.seed):

                    def share(part: float, done: float = done, one: Scenario = one) -> None:
                        advance((done + part * one.case.seconds) / total)

                    made = attempt(partial(run, machines, one, policy, tails, share), rejected)
                    runs[policy.name] = made
                    done += one.case.seconds
                results.write(one.folder, runs, rejected)
                found[one.folder] = runs
    return {folder: runs for folder, runs in found.items() if runs is not None}


def prepare(machines: bed.Bed, case: Case) -> dict[str, float]:
    """Makes the files of a bed and its switch ready, and measures its servers; see `calibrate`."""
    files = [machines.disk(server) / VOLUME / FILE for server in machines.servers]
    # Disks take their bytes at their own rates.
    with ThreadPoolExecutor(len(files)) as pool:
        list(pool.map(lambda file: bed.write_file(file, FILE_BYTES), files))
    if case.priority_switch:
        machines.use_priority_switch()
    return attempt(partial(calibrate, machines), [])


def attempt(make: Callable[[], T], rejected: list[str]) -> T:
    """Makes a run until it counts, and adds the reasons of rejected attempts.

    Raises:
        RejectedRunError: All attempts were rejected.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return make()
        except RejectedRunError as error:
            rejected.append(str(error))
    return make()


def _machines(case: Case) -> object:
    """Parts of a case that are those of a bed."""
    return case.shape, case.priority_switch


def _seconds(one: Scenario) -> float:
    return one.case.seconds * len(one.case.policies)
