"""Runs of the lab with congestion controls of the kernel's BPF programs, through the command."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leeward.lab import kernel_parts
from support.labs import BOUND, DILATION, nothing_left, scenario
from support.parts import lack
from support.repeats import ATTEMPTS

Run = Callable[..., subprocess.CompletedProcess[str]]
REFUSALS = ("fell behind", "lost outside the switch")
"""Errors of runs on a machine that is too busy."""


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Requires root and the loader of BPF programs, and checks that a test leaves nothing behind."""
    if not (Path(kernel_parts.folder()) / "leeward-bpf").exists():
        lack("no leeward-bpf: as root, apt-get install clang libbpf-dev gcc, and then make -C kernel")
    with nothing_left():
        yield


def run_scenario(run: Run, folder: Path, **fields: Any) -> dict[str, Any]:
    """The document of `leeward lab run`, which is repeated if the machine was too busy."""
    file = folder / "scenario.json"
    file.write_text(json.dumps(scenario(**fields)))
    for _ in range(ATTEMPTS):
        result = run("lab", "run", str(file), "--dilation", str(DILATION), "--bound", BOUND, "-o", "json")
        if not any(reason in result.stderr for reason in REFUSALS):
            break
        print(result.stderr)
    assert result.returncode == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.mark.parametrize(
    ("tcp", "program"), [({"control": "retcp"}, "retcp"), ({"control": "reno", "divisions": 2}, "tdtcp")]
)
def test_a_window_follows_each_circuit(run: Run, tmp_path: Path, tcp: dict[str, Any], program: str) -> None:
    document = run_scenario(run, tmp_path, tcp=tcp)
    assert document["totals"]["finished"] == 1
    counters = document["counters"]
    assert set(counters) == {program, "timers"}
    # A circuit that goes is known by the first packet after it, so the last one may not be.
    assert counters[program]["ups"] > 0
    assert 0 <= counters[program]["ups"] - counters[program]["downs"] <= 1
    assert counters["timers"] == {"connections": 2, "rejected": 0}


def test_reno_has_no_window_for_circuits(run: Run, tmp_path: Path) -> None:
    document = run_scenario(run, tmp_path, tcp={"control": "reno"})
    assert set(document["counters"]) == {"timers"}
