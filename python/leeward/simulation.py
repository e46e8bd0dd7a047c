"""Scenarios: policies tried on the same arrivals, in a simulated datacenter.

>>> import leeward
>>> runs = leeward.simulate("scenario.yaml", policies=["uniform", "sinbad"])  # doctest: +SKIP
>>> runs[1].compare(runs[0])["full_blocks"]["factor"]  # doctest: +SKIP
1.6
>>> runs[1].blocks().to_pandas()  # doctest: +SKIP
"""

import os
from collections.abc import Callable, Sequence
from os import PathLike

from leeward._native import Run, Scenario


def read_scenario(path: str | PathLike[str], data: str | PathLike[str] | None = None) -> Scenario:
    """Reads a scenario file.

    Args:
        path: The file.
        data: The folder that `data:...` files are looked up in; by default what LEEWARD_DATA names.

    Raises:
        InputError: It, or its cluster, is not right.
    """
    return Scenario.from_file(path, data or os.environ.get("LEEWARD_DATA") or None)


def simulate(
    scenario: Scenario | str | PathLike[str],
    policies: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    *,
    jobs: int | None = None,
    progress: Callable[[int, float], object] | None = None,
) -> list[Run]:
    """Runs a scenario under every policy and seed; all policies see the same arrivals.

    The same scenario, policy and seed give the same results to the last bit, whatever runs beside them.

    Args:
        scenario: A scenario, or the path of its file.
        policies: Names with settings, such as `sinbad:remote_racks=2`; by default those of the scenario.
        seeds: By default the scenario's one.
        jobs: Runs at once; by default one a processor.
        progress: Called with the number of a run and the share of it that is done.

    Returns:
        A run for each seed and policy: all policies of the first seed, then of the next.

    Raises:
        InputError: A file, a policy or a setting is not right.
    """
    if not isinstance(scenario, Scenario):
        scenario = read_scenario(scenario)
    policies = list(policies) if policies is not None else scenario.policies
    seeds = list(seeds) if seeds is not None else [scenario.seed]
    jobs = jobs or len(os.sched_getaffinity(0))
    return scenario.run(policies, seeds, jobs, progress)
