"""Runs all benchmarks several times, and writes their figures to docs/reference/speed.json.

`results` describes the file. `make tables` then writes the tables of docs/reference/speed.md from it. If a
benchmark fails, the file stays as it was. Other work slows a benchmark down, so the file is not written
while the load average before a run is above 0.5, unless `--load-ok` is given: the file and the page then
show that load.

`--quick` runs a subset of each part once, in less than five minutes after the build, and writes
target/bench-quick.json, whatever the load. `--parts` measures some parts, and keeps the others as they are.
The parts of the integrations take long and need Maven or Go, so they are measured only by name.

    python python/benchmarks/collect.py [--runs 5] [--parts circuits,hdfs] [--quick] [--load-ok]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import results
from results import ROOT, Run

MOST_LOAD = 0.5
"""Greatest load average before a run on a machine without other work."""
SETTLE_S = 180
"""Longest wait for the load average to fall, which has the build or the run before in it."""
POLL_S = 5
QUICK_S = 300
"""Time of a quick run, after the build."""
QUICK = ROOT / "target" / "bench-quick.json"
REFUSED = ROOT / "target" / "bench-refused.json"


INTEGRATIONS = ("hdfs", "hdfs-times", "hdfs-full", "hdfs-snapshots", "kubernetes")
"""Parts that are measured only if `--parts` names them: they take long, and need Maven or Go."""


class BusyError(Exception):
    """Other programs run on the machine."""


@dataclass(frozen=True)
class Program:
    """A program that records figures.

    Attributes:
        part: Its part of the file.
        command: The command with its arguments.
        quick: Further arguments in a quick run; None if the quick run leaves the program out.
    """

    part: str
    command: tuple[str, ...]
    quick: tuple[str, ...] | None = ()


def _rust(part: str, crate: str, name: str, *arguments: str, quick: tuple[str, ...] | None = ()) -> Program:
    command = ("cargo", "bench", "--locked", "-p", f"leeward-{crate}", "--bench", name)
    return Program(part, (*command, "--", *arguments), quick)


def _python(part: str, name: str, *arguments: str, quick: tuple[str, ...] | None = ()) -> Program:
    return Program(part, (sys.executable, f"python/benchmarks/{name}.py", *arguments), quick)


def programs(rows: int, memory: str) -> list[Program]:
    """All programs that record figures. Other benchmarks print comparisons.

    Args:
        rows: Samples of the benchmark of hotspots.
        memory: Limit of memory of the benchmark of hotspots.
    """
    return [
        _rust("simulation", "fluid", "fluid"),
        _rust("simulation", "requests", "requests"),
        _python("simulation", "fluid"),
        _python("simulation", "beside_simgrid", quick=("--quick",)),
        _rust("packets", "circuits", "switch"),
        _rust("packets", "packets", "packets"),
        _rust("packets", "operations", "operations"),
        _rust("placement", "placement", "decision"),
        _rust("placement", "placement", "tasks"),
        _python("placement", "policies"),
        _rust("service", "controller", "service"),
        _rust("service", "controller", "load", "--seconds", "5"),
        _rust("service", "controller", "load", "--seconds", "5", "--curve", quick=None),
        _rust("service", "controller", "hour", quick=None),
        _rust("calculus", "calculus", "curve"),
        _rust("calculus", "calculus", "snc"),
        _rust("slos", "slo", "pack"),
        _rust("slos", "slo", "slo"),
        _rust("slos", "shaping", "shaping"),
        _rust("circuits", "circuits", "schedule"),
        _python("circuits", "beside_scipy", quick=("--quick",)),
        _rust("analysis", "capture", "read"),
        _python(
            "analysis",
            "hotspots",
            *("--memory", memory, "--rows", str(rows)),
            quick=("--rows", str(min(rows, 2_000_000))),
        ),
        _python("analysis", "beside_captures", quick=("--megabytes", "32")),
        *(_python(part, "integrations", part, quick=None) for part in INTEGRATIONS),
    ]


def selected(all_programs: Iterable[Program], parts: list[str] | None, quick: bool) -> list[Program]:
    """The programs to run.

    Raises:
        ValueError: A part does not exist, or a quick run has nothing of the parts.
    """
    known = {program.part: None for program in all_programs}
    if unknown := [part for part in parts or () if part not in known]:
        raise ValueError(f"--parts: no part {unknown[0]!r}; expected some of {', '.join(known)}")
    wanted = parts or [part for part in known if part not in INTEGRATIONS]
    chosen = [
        program
        for program in all_programs
        if program.part in wanted and not (quick and program.quick is None)
    ]
    if not chosen:
        raise ValueError(f"--quick: has nothing of {', '.join(wanted)}; measure it without --quick")
    return chosen


def build(chosen: Iterable[Program]) -> None:
    """Builds all benchmarks in Rust, so that no build is in a load average or a run."""
    for program in chosen:
        if program.command[:2] == ("cargo", "bench"):
            command = program.command[: program.command.index("--")]
            subprocess.run((*command, "--no-run"), cwd=ROOT, check=True)


def execute(program: Program, quick: bool, file: str) -> None:
    """Runs a program, whose figures go to a file."""
    command = (*program.command, *((program.quick or ()) if quick else ()))
    start = time.monotonic()
    subprocess.run(command, cwd=ROOT, env=os.environ | {"LEEWARD_BENCH": file}, check=True)
    print(f"{' '.join(command[1:])}: {time.monotonic() - start:.0f} s", file=sys.stderr)


def run_part(chosen: Iterable[Program], execute: Callable[[Program, str], None]) -> Run:
    """Runs the programs of a part once, and returns what they recorded."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        for program in chosen:
            execute(program, file.name)
        return results.read_run(Path(file.name).read_text())


def settled(load: Callable[[], float], wait: Callable[[float], None]) -> float:
    """Load average as soon as it is at most `MOST_LOAD`, or after `SETTLE_S`."""
    for _ in range(SETTLE_S // POLL_S):
        if (now := load()) <= MOST_LOAD:
            return now
        wait(POLL_S)
    return load()


@dataclass
class Measured:
    """Runs by part, and the load averages before and after each run of all parts."""

    runs: dict[str, list[Run]]
    before: list[float]
    after: list[float]

    def put_into(self, document: dict[str, Any]) -> None:
        """Replaces the measured parts of a document."""
        for part, runs in self.runs.items():
            conditions = results.conditions(runs, self.before, self.after)
            results.replace_part(document, part, conditions, results.summarize(part, runs))


def measure(
    chosen: list[Program],
    count: int,
    execute: Callable[[Program, str], None],
    *,
    load: Callable[[], float],
    wait: Callable[[float], None],
    any_load: bool,
) -> tuple[Measured, BusyError | None]:
    """Runs all programs `count` times.

    Args:
        chosen: The programs.
        count: Number of runs.
        execute: Runs a program.
        load: The load average of the last minute.
        wait: Waits for some seconds.
        any_load: Measures on a busy machine too, without a wait.

    Returns:
        The completed runs, and the error that ended them early: the machine is busy before a run.
    """
    parts = list(dict.fromkeys(program.part for program in chosen))
    measured = Measured({part: [] for part in parts}, [], [])
    for number in range(count):
        before = load() if any_load else settled(load, wait)
        if before > MOST_LOAD and not any_load:
            text = f"the load average before run {number + 1} is {before:.1f}; expected at most {MOST_LOAD}"
            return measured, BusyError(text)
        done = {
            part: run_part([program for program in chosen if program.part == part], execute) for part in parts
        }
        for part, run in done.items():
            measured.runs[part].append(run)
        measured.before.append(before)
        measured.after.append(load())
    return measured, None


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, help="number of runs; by default 5, and 1 for --quick")
    parser.add_argument("--parts", type=lambda text: text.split(","), help="parts to measure, by commas")
    parser.add_argument("--quick", action="store_true", help=f"a subset, to {QUICK.relative_to(ROOT)}")
    parser.add_argument("--load-ok", action="store_true", help="write the file although the machine is busy")
    parser.add_argument("--rows", type=int, default=10_000_000, help="samples of the benchmark of hotspots")
    parser.add_argument("--memory", default="4GB", help="limit of memory of the benchmark of hotspots")
    options = parser.parse_args(words)
    if options.runs is None:
        options.runs = 1 if options.quick else 5
    if options.runs < 1:
        parser.error(f"--runs {options.runs}: expected at least 1")
    return options


def main() -> int:
    """Runs the benchmarks and writes the file."""
    options = arguments()
    try:
        chosen = selected(programs(options.rows, options.memory), options.parts, options.quick)
        build(chosen)
        start = time.monotonic()
        measured, busy = measure(
            chosen,
            options.runs,
            lambda program, file: execute(program, options.quick, file),
            load=lambda: os.getloadavg()[0],
            wait=time.sleep,
            any_load=options.quick or options.load_ok,
        )
    except (ValueError, subprocess.CalledProcessError) as error:
        print(f"error: {error}\nhint: no file of figures has changed", file=sys.stderr)
        return 1
    path = REFUSED if busy else QUICK if options.quick else results.FIGURES
    if measured.before:
        # A quick run or an incomplete one has nothing of earlier runs.
        document = results.read() if path == results.FIGURES else results.empty()
        measured.put_into(document)
        results.write(document, path)
        print(f"wrote {path.relative_to(ROOT)}: {len(document['figures'])} figures")
    if busy:
        print(f"error: {busy}\nhint: wait until other programs end, or use --load-ok", file=sys.stderr)
        return 1
    if options.quick and (seconds := time.monotonic() - start) > QUICK_S:
        print(
            f"note: the quick run took {seconds:.0f} s, and at most {QUICK_S} are expected", file=sys.stderr
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
