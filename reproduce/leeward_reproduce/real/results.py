"""Measurements of the runs under a seed, in the folder of their scenario.

A stopped reproduction continues from them, so they belong to one scenario: the file has its hash.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from leeward._files import atomic_file
from leeward._native import Run
from leeward.errors import InputError
from leeward.hdfs.policy import RANKED
from leeward_reproduce.real.scenario_files import content_hash

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

RESULT = "real.json"
M = TypeVar("M")


def write(folder: Path, runs: "Mapping[str, DataclassInstance]", rejected: Sequence[str] = ()) -> None:
    """Writes measurements of runs by policy beside their scenario.

    Args:
        folder: Folder of the scenario.
        runs: Measurements by policy.
        rejected: Reasons for which earlier attempts of these runs do not count.
    """
    measures = {policy: asdict(one) for policy, one in runs.items()}
    content = {"scenario": content_hash(folder), "runs": measures, "rejected": list(rejected)}
    with atomic_file(folder / RESULT) as temporary:
        temporary.write_text(json.dumps(content), encoding="utf-8")


def read(folder: Path, make: Callable[..., M]) -> dict[str, M] | None:
    """Measurements of runs by policy; None if the folder has none.

    Args:
        folder: Folder of the scenario.
        make: Class of the measurements.

    Raises:
        InputError: They are of another scenario than that in the folder, or their file is not valid.
    """
    file = folder / RESULT
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        scenario, runs = content["scenario"], content["runs"]
        measures = {policy: make(**one) for policy, one in runs.items()}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _error(file, "is no valid result") from None
    if scenario != content_hash(folder):
        raise _error(file, "is of another scenario")
    return measures


def decisions_of(run: Run) -> dict[str, int]:
    """Number of decisions of the policy in a simulation, with HDFS's name of the reason for blind ones."""
    summary = run.summary()
    blind = int(summary["placed_blindly"])
    return {RANKED: int(summary["blocks"]) - blind, "no_candidate": blind}


def _error(file: Path, problem: str) -> InputError:
    return InputError.about("out", f"`{file}` {problem}; delete it, or use another folder")
