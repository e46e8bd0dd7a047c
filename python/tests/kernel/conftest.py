"""Fixtures of the tests of the lab's parts in C: the parts, their hosts, and control groups."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from support.kernel import KERNEL, TESTS, run
from support.labs import two_hosts
from support.parts import lack, require, require_root


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the parts that this system can build."""
    require("make")
    require("cc", package="gcc")
    if folder := os.environ.get("LEEWARD_KERNEL"):
        return Path(folder)
    out = tmp_path_factory.mktemp("kernel")
    run("make", "-s", "-C", KERNEL, f"OUT={out}", timeout=300)
    return out


@pytest.fixture(scope="session")
def loader(parts: Path) -> Path:
    """The loader, on a system that can run it."""
    require_root()
    require("clang")
    require("tc", "ip", "ss", package="iproute2")
    if not Path("/sys/kernel/btf/vmlinux").exists():
        lack("the kernel has no BTF")
    if not (parts / "leeward-bpf").exists():
        lack("no bpf/libbpf.h: as root, apt-get install libbpf-dev")
    return parts / "leeward-bpf"


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the C programs of the tests."""
    require("cc", package="gcc")
    out = tmp_path_factory.mktemp("programs")
    for source in TESTS.glob("*.c"):
        if not source.name.endswith(".bpf.c"):
            static = ["-static"] if source.stem == "talk" else []
            run(
                "cc",
                "-O2",
                "-Wall",
                "-Wextra",
                *static,
                "-o",
                out / source.stem,
                source,
                "-lpthread",
                "-lrt",
                "-ldl",
            )
    return out


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[str, str]]:
    """Namespaces of two hosts of a lab."""
    with two_hosts() as names:
        for name in names:
            # A client that a busy machine delays for longer than its timeout keeps its window.
            settings = ["net.ipv4.tcp_ecn=0", "net.ipv4.tcp_slow_start_after_idle=0"]
            # The kernel lets a socket queue more in its host, so that windows fill queues and cause losses.
            settings += ["net.ipv4.tcp_pacing_ss_ratio=1000", "net.ipv4.tcp_pacing_ca_ratio=1000"]
            run("ip", "netns", "exec", name, "sysctl", "-qw", *settings)
            # A queue splits large packets and drops some of the parts, which TCP then repairs as losses.
            run(*f"ip -n {name} link set eth0 gso_max_segs 65535".split())
        yield names


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup of version 2."""
    require_root()
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    roots = [fields[1] for fields in mounts if fields[2] == "cgroup2"]
    if not roots:
        lack("no cgroup2 file system is mounted")
    group = Path(roots[0]) / f"leeward-kernel-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        # Processes that a test has left.
        (group / "cgroup.kill").write_text("1")
        for _ in range(100):
            # Processes leave a cgroup a little after their end.
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)
        else:
            group.rmdir()
