"""The loader of the BPF programs: it attaches them, takes them along, and says why it fails."""

import signal
import subprocess
import time
from pathlib import Path

from support.kernel import controls, end, loaded, name_of, run
from support.parts import require


def refuse(loader: Path, *arguments: str | Path) -> str:
    """The one line that the loader prints when it fails."""
    result = subprocess.run(
        [str(part) for part in (loader, *arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("leeward-bpf: ")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def attached(cgroup: Path) -> list[str]:
    """The programs of a cgroup."""
    require("bpftool")
    lines = run("bpftool", "cgroup", "show", cgroup).splitlines()
    return [line for line in lines if line.split()[:1] and line.split()[0].isdigit()]


def test_all_that_the_loader_attaches_goes_with_it(loader: Path, cgroup: Path, tmp_path: Path) -> None:
    arguments = (
        "--cgroup", cgroup, "--timers", "rto_min_us=100000,delack_max_us=40000", "--retcp", name_of("re"),
        "--tdtcp", name_of("td"), "--adu", tmp_path / "socket",
    )  # fmt: skip
    for stop in (None, signal.SIGTERM, signal.SIGKILL):
        with loaded(loader, *arguments) as program:
            assert {name_of("re"), name_of("td")} <= set(controls())
            assert len(attached(cgroup)) == 6
            if stop is None:
                assert set(end(program)) == {"timers", "retcp", "tdtcp"}
            else:
                program.send_signal(stop)
                program.communicate(timeout=20)
        # The kernel frees links after their process has ended.
        for _ in range(100):
            if not {name_of("re"), name_of("td")} & set(controls()) and not attached(cgroup):
                break
            time.sleep(0.1)
        assert not {name_of("re"), name_of("td")} & set(controls()), stop
        assert not attached(cgroup), stop


def test_the_loader_says_why_it_fails(loader: Path, cgroup: Path, tmp_path: Path) -> None:
    assert "--cgroup is required" in refuse(loader, "--retcp", "x")
    assert "nothing to load" in refuse(loader, "--cgroup", cgroup)
    assert "No such file" in refuse(loader, "--cgroup", tmp_path / "none", "--retcp", "x")
    assert "is not in a cgroup2 file system" in refuse(loader, "--cgroup", tmp_path, "--retcp", "x")
    assert "1 to 15 letters" in refuse(loader, "--cgroup", cgroup, "--retcp", "x" * 16)
    assert "alpha must be at least 1" in refuse(loader, "--cgroup", cgroup, "--retcp", "x,alpha=0.5")
    assert "beta must be at most 1" in refuse(loader, "--cgroup", cgroup, "--retcp", "x,beta=1.5")
    assert "unknown key: gamma" in refuse(loader, "--cgroup", cgroup, "--retcp", "x,gamma=1")
    assert "at most 200000" in refuse(loader, "--cgroup", cgroup, "--timers", "rto_min_us=400000")
    assert "retcp.bpf.o: No such file" in refuse(
        loader, "--cgroup", cgroup, "--retcp", "x", "--objects", tmp_path
    )
    assert "in use on this machine: reno" in refuse(loader, "--cgroup", cgroup, "--retcp", "reno")
    with loaded(loader, "--cgroup", cgroup, "--retcp", name_of("re")):
        assert f"in use on this machine: {name_of('re')}" in refuse(
            loader, "--cgroup", cgroup, "--tdtcp", name_of("re")
        )
