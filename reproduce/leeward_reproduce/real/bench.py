"""Runs of scenarios on clusters. Those that a folder has already are not made again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from leeward_reproduce.hdfs import ObservedCluster, Shape, up
from leeward_reproduce.hdfs.usage import RejectedRunError
from leeward_reproduce.real import results

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

M = TypeVar("M", bound="DataclassInstance")
ATTEMPTS = 3
"""Largest number of attempts of a run, of which the first that is not rejected counts."""
Advance = Callable[[float], object]
"""Function that is called with the completed share."""


@dataclass(frozen=True)
class Task(Generic[M]):
    """Runs of a scenario, one by each policy.

    Attributes:
        folder: Folder of the scenario, which gets the results.
        shape: Racks, links and blocks of the cluster.
        policies: Policies of HDFS, in the order of their runs.
        measure: Makes a run by a policy, and returns its measurements.
        properties: Further properties of the NameNode.
    """

    folder: Path
    shape: Shape
    policies: Sequence[str]
    measure: Callable[[ObservedCluster, str, Advance], M]
    properties: Mapping[str, str] = field(default_factory=dict)

    def shares_cluster(self, other: "Task[M]") -> bool:
        """True if the runs of both may be on one cluster."""
        return (self.shape, self.properties) == (other.shape, other.properties)


def perform(tasks: Sequence[Task[M]], kind: Callable[..., M], advance: Advance) -> list[dict[str, M]]:
    """Makes the runs of tasks, or reads them. Tasks with equal shapes and properties share a cluster.

    Args:
        tasks: The tasks.
        kind: Class of the measurements.
        advance: Called with the share of completed runs.

    Returns:
        Measurements by policy, task by task.

    Raises:
        InputError: A folder has runs of another scenario.
        OSError: A run is absent and the cluster cannot run on this machine, a run failed, or all of its
            attempts were rejected.
    """
    found = [results.read(task.folder, kind) for task in tasks]
    absent = [at for at, runs in enumerate(found) if runs is None]
    count = sum(len(task.policies) for task in tasks)
    done = count - sum(len(tasks[at].policies) for at in absent)
    advance(done / count)
    while absent:
        first = tasks[absent[0]]
        mine = [at for at in absent if tasks[at].shares_cluster(first)]
        absent = [at for at in absent if at not in mine]
        with up(first.shape, first.policies[0], properties=first.properties) as cluster:
            for at in mine:
                runs: dict[str, M] = {}
                rejected: list[str] = []
                for policy in tasks[at].policies:
                    if cluster.policy != policy:
                        cluster.use(policy)

                    def share(part: float, done: int = done) -> None:
                        advance((done + part) / count)

                    runs[policy] = _attempt(partial(tasks[at].measure, cluster, policy, share), rejected)
                    done += 1
                results.write(tasks[at].folder, runs, rejected)
                found[at] = runs
    return [runs for runs in found if runs is not None]


def _attempt(measure: Callable[[], M], rejected: list[str]) -> M:
    """Makes a run until it counts, and adds the reasons of rejected attempts.

    Raises:
        RejectedRunError: All attempts were rejected.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return measure()
        except RejectedRunError as error:
            rejected.append(str(error))
    return measure()
