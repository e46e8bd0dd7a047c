"""Scenarios: policies compared on the same arrivals, in a simulated datacenter.

>>> import leeward
>>> runs = leeward.simulate("scenario.yaml", policies=["uniform", "sinbad"])  # doctest: +SKIP
>>> runs[1].compare(runs[0])["full_blocks"]["factor"]  # doctest: +SKIP
1.6
>>> runs[1].blocks().to_pandas()  # doctest: +SKIP
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any

from leeward import _native
from leeward._inputs import scenario_text
from leeward._native import Cluster, Run, Scenario
from leeward._policies import Chosen, Policies, choose
from leeward.data import data_folder, hint_fetch
from leeward.errors import MOST_SEED, InputError, whole_number

TABLES = (
    *("blocks", "files", "jobs", "links", "balance", "hotspots", "hosts"),
    *("tasks", "moves", "cell", "reads", "repairs"),
    *("apps", "migrations", "coflows"),
)
"""Names of the tables of a run."""
ScenarioSource = Scenario | str | PathLike[str] | Mapping[str, Any]
"""A scenario, the path of its file, or a mapping with its fields."""
_NAME = "scenario"
"""Name of a scenario in a mapping, for errors."""


def read_scenario(path: ScenarioSource, data: str | PathLike[str] | None = None) -> Scenario:
    """Reads a scenario.

    Args:
        path: The path of its file; or a mapping with its fields, in which paths are from the current folder.
            Its `cluster` may be a `Cluster`, or anything that `Cluster(...)` takes. In place of the `file` of
            a workload there may be a table with the columns of its list, or an array for `matrix`.
        data: Folder of `data:...` files; by default the value of LEEWARD_DATA, or else the user's cache,
            where `leeward data get` puts traces.

    Raises:
        InputError: The scenario or its cluster is invalid.
    """
    if isinstance(path, Scenario):
        return path
    if not isinstance(path, Mapping):
        return Scenario.from_file(path, data or data_folder())
    text, cluster, tables = scenario_text(path)
    network = None if cluster is None else Cluster(cluster)
    try:
        return Scenario.from_text(text, ".", data or data_folder(), _NAME, network, tables)
    except InputError as error:
        # A position in the JSON text has no meaning for the author of a mapping.
        if error.file != _NAME:
            raise
        raise InputError(_NAME, None, None, error.field, error.message) from None


def simulate(
    scenario: ScenarioSource,
    policies: Policies | None = None,
    seeds: Sequence[int] | None = None,
    *,
    jobs: int | None = None,
    progress: Callable[[int, float], object] | None = None,
) -> list[Run]:
    """Runs a scenario under every policy and seed; all policies see the same arrivals.

    The same scenario, policy and seed give bit-identical results, whatever else runs.

    Args:
        scenario: A scenario, or anything that `read_scenario` takes.
        policies: Names with settings, such as `sinbad:remote_racks=2`; policies of your own, as functions,
            classes or objects (see `leeward.policy`), or as `module:name`. By default those of the scenario.
            A single one needs no list.
        seeds: Whole numbers from 0 to 2^64 - 1; by default the seed of the scenario.
        jobs: Number of runs at once, at least 1; by default the number of processors.
        progress: Called with the number of a run and the completed share of it.

    Returns:
        A run for each seed and policy: all policies of the first seed, then of the next.

    Raises:
        InputError: A file, a policy, a setting or an argument is invalid, or a policy of your own gave a
            wrong answer. Exceptions of such a policy are raised as they are.
    """
    jobs = runs_at_once(jobs)
    if seeds is not None:
        seeds = [whole_number("seeds", seed, 0, MOST_SEED) for seed in seeds]
        if not seeds:
            raise InputError.about("seeds", "expected at least one")
    scenario = read_scenario(scenario)
    chosen = Chosen(scenario.policies, {}) if policies is None else choose(policies)
    policy_names = chosen.labels
    if not policy_names:
        raise InputError.about("policies", "expected at least one")
    seeds = [scenario.seed] if seeds is None else seeds
    if policies is not None:
        # The policies of a scenario were checked with it.
        check_chosen(chosen, scenario.kind)
    jobs = min(jobs, len(policy_names) * len(seeds))
    with hint_fetch(), name_policy("policies"):
        return scenario.run(policy_names, seeds, jobs, progress, chosen.starts)


def check_policies(policies: Sequence[str], kind: str = "replicas") -> None:
    """Checks that policies exist and that their settings are valid.

    Args:
        policies: Names with settings.
        kind: Kind of the runs: `replicas`, `cell`, `apps` or `coflows`.

    Raises:
        InputError: A policy or a setting is invalid.
    """
    with name_policy("policies"):
        for policy in policies:
            _native.check_policy(policy, kind)


def check_chosen(chosen: Chosen, kind: str) -> None:
    """Checks policies of an argument for a kind of runs.

    Raises:
        InputError: A policy or a setting is invalid, or a policy of the user cannot place such requests.
    """
    check_policies(chosen.registered, kind)
    if chosen.own and kind == "coflows":
        label = next(iter(chosen.own))
        raise InputError.about("policies", f"`{label}`: nothing is placed in a scenario of coflows")


def runs_at_once(jobs: int | None) -> int:
    """Number of runs at once: the given one, or the number of processors.

    Raises:
        InputError: The number is less than one.
    """
    return _processors() if jobs is None else whole_number("jobs", jobs, 1)


def _processors() -> int:
    """Processors available to this process, or of the machine if the system does not state them."""
    # Only Linux has this function.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def name_policy(argument: str) -> Iterator[None]:
    """Adds the argument to errors about a policy, and the setting as `sinbad.interval`."""
    try:
        yield
    except InputError as error:
        if error.file != "policy" and (error.file, error.field) != ("request", "policy"):
            raise
        setting = re.match(r"settings of ([^:]+):(?:\d+:)* (?:([\w.\[\]]+): )?", error.message)
        field = ".".join(part for part in setting.groups() if part) if setting else None
        message = error.message[setting.end() :] if setting else error.message
        raise InputError(argument, None, None, field, message) from None
