"""Objects of pickles. Pickles name these functions, so their names and parameters stay."""

from pathlib import Path
from typing import Any

from leeward._native import Cluster, Run, Scenario


def cluster(text: str) -> Cluster:
    """A cluster, from its text."""
    return Cluster.from_text(text)


def scenario(
    text: str, base: Path, data: Path | None, name: str, network: Cluster, tables: dict[str, Any]
) -> Scenario:
    """A scenario, from its text. The files of its workloads must still be there when it runs."""
    return Scenario.from_text(text, base, data, name, network, tables)


def run(scenario: Scenario, policy: str, seed: int, provenance: list[str], record: bytes) -> Run:
    """A run, from its records.

    Raises:
        ValueError: Another version of Leeward wrote the records.
    """
    return Run._restore(scenario, policy, seed, provenance, record)
