"""Scripts of `make`: the refusal of other systems, and the line of progress."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_other_systems_are_refused_in_one_line_and_a_hint(tmp_path: Path) -> None:
    uname = tmp_path / "uname"
    uname.write_text("#!/bin/sh\necho Darwin\n")
    uname.chmod(0o755)
    refused = run(["scripts/prerequisites"], PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        "error: missing Linux: Leeward runs on Linux only, and this is Darwin",
        "hint: a virtual machine or a container with Linux",
    ]


def test_missing_java_and_maven_are_named_with_their_command_and_fail_no_build(tmp_path: Path) -> None:
    programs = {"cargo": "cargo 1.99.0", "cc": "cc", "c++": "c++", "javac": "javac 17.0.9", "mvn": "Maven"}
    for name, version in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho {version}\n")
        (tmp_path / name).chmod(0o755)
    settings = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHON": sys.executable}
    complete = run(["scripts/prerequisites"], **settings)
    assert (complete.returncode, complete.stderr) == (0, "")
    (tmp_path / "javac").write_text("#!/bin/sh\necho javac 11.0.2\n")
    old = run(["scripts/prerequisites"], **settings)
    assert old.returncode == 0
    assert old.stderr == (
        "note: no Java 17 or no Maven, which the policy for HDFS needs;"
        " as root: apt-get install default-jdk-headless maven\n"
    )


def test_progress_shows_no_output_of_a_command_that_succeeds(tmp_path: Path) -> None:
    log = tmp_path / "folder" / "log"
    done = run(["scripts/progress", str(log), sys.executable, "-c", "print('   Compiling serde v1.0.1')"])
    assert (done.returncode, log.read_text()) == (0, "   Compiling serde v1.0.1\n")
    assert "building what the demo needs" in done.stderr
    assert "compiling serde, 1 of " in done.stderr
    assert done.stdout == ""


def test_progress_prints_the_end_of_the_log_of_a_command_that_fails(tmp_path: Path) -> None:
    code = "[print('line', i) for i in range(100)]; raise SystemExit('no space')"
    failed = run(["scripts/progress", str(tmp_path / "log"), sys.executable, "-c", code])
    lines = failed.stderr.splitlines()
    assert failed.returncode == 1
    assert "line 99" in lines
    assert "no space" in lines
    assert "line 50" not in lines
