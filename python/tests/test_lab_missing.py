"""Machines that lack something that the lab needs: one line says what, and what works without."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leeward import lab
from support.fixtures import LEEWARD
from support.labs import BOUND, DILATION, OWN, kept_up, nothing_left, scenario
from support.parts import lack, require

Run = Callable[..., subprocess.CompletedProcess[str]]
CLUSTER = {"racks": 2, "hosts_per_rack": 1, "nic": "100Mbps", "oversubscription": 1}
NO_TUN = "mount -t tmpfs none /dev/net"
NO_BTF = "mount -t tmpfs none /sys/kernel/btf"
NO_CGROUP2 = "for folder in $(awk '$3 == \"cgroup2\" {print $2}' /proc/mounts); do umount $folder; done"
SETUID = "import os; from leeward import lab, packets; os.setuid(65534);"


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Requires root, and checks that a test leaves nothing behind."""
    with nothing_left():
        yield


def file_of(folder: Path, content: dict[str, Any]) -> str:
    path = folder / "input.json"
    path.write_text(json.dumps(content))
    return str(path)


def elsewhere(change: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs `leeward` on this machine after a change of its mounts, which no other process sees."""
    require("unshare", package="util-linux")
    command = ["unshare", "--mount", "sh", "-ec", f'{change}\nexec "$@"', "sh", *variables_of(variables)]
    return subprocess.run(
        [*command, str(LEEWARD), *arguments], capture_output=True, text=True, check=False, timeout=120
    )


def variables_of(variables: dict[str, str]) -> list[str]:
    return ["env", *(f"{name}={value}" for name, value in variables.items())]


def run_options(file: str) -> tuple[str, ...]:
    return ("lab", "run", file, "--dilation", str(DILATION), "--bound", BOUND, "-o", "json")


def error_of(result: subprocess.CompletedProcess[str]) -> str:
    """The one line of a command that failed."""
    assert result.returncode in {1, 2}, result
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("error: ")
    return result.stderr


@pytest.mark.parametrize(
    "call",
    [
        f"lab.run({scenario()!r})",
        f"lab.up({CLUSTER!r})",
        f"lab.remove('{OWN}-none')",
        f"lab.stand(packets.read({scenario()!r}), dilation=100, ready=print)",
    ],
    ids=["run", "up", "remove", "stand"],
)
def test_without_root(call: str) -> None:
    # The code imports its modules first, because the other user cannot read their files.
    code = f"{SETUID}\ntry: {call}\nexcept OSError as error: print(error)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == (
        "network namespaces require root: run the command with sudo;"
        " `leeward circuits simulate` runs scenarios without\n"
    )


def test_without_tun_devices_networks_of_clusters_work(tmp_path: Path) -> None:
    file = file_of(tmp_path, scenario())
    line = error_of(elsewhere(NO_TUN, *run_options(file)))
    assert line == (
        "error: /dev/net/tun: No such file or directory (os error 2): labs with circuits require TUN devices"
        " (modprobe tun); labs of cluster files, and `leeward circuits simulate`, work without\n"
    )
    name = f"{OWN}-tun"
    assert error_of(elsewhere(NO_TUN, "lab", "up", file, "--name", name)) == line
    result = elsewhere(NO_TUN, "lab", "up", file_of(tmp_path, CLUSTER), "--name", name)
    assert result.returncode == 0, result.stderr
    lab.remove(name)


@pytest.mark.parametrize(
    ("change", "variables", "reason"),
    [
        ("", {"LEEWARD_KERNEL": "/none"}, "no leeward-bpf: install the packages clang libbpf-dev gcc,"),
        (NO_BTF, {}, "no /sys/kernel/btf/vmlinux: this kernel loads no BPF programs"),
        (NO_CGROUP2, {}, "cgroup2: not mounted: mount -t cgroup2"),
    ],
)
def test_without_bpf_programs_the_controls_of_the_kernel_work(
    tmp_path: Path, change: str, variables: dict[str, str], reason: str
) -> None:
    for tcp, field in (({"control": "retcp"}, "tcp.control"), ({"divisions": 2}, "tcp.divisions")):
        result = elsewhere(change, *run_options(file_of(tmp_path, scenario(tcp=tcp))), **variables)
        line = error_of(result)
        assert f"{field}: {reason}" in line
        assert line.endswith("; `reno`, `cubic` and `dctcp` work without\n")
    file = file_of(tmp_path, scenario(horizon="20ms"))

    def run() -> dict[str, Any]:
        result = elsewhere(change, *run_options(file), **variables)
        if "fell behind" in result.stderr or "lost outside" in result.stderr:
            raise TimeoutError(result.stderr)
        assert result.returncode == 0, result.stderr
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    document = kept_up(run)
    assert document["counters"] == {}
    assert [note for note in document["notes"] if f"the kernel's own delays apply: {reason}" in note]


def test_a_loader_that_fails_is_an_error_for_controls_only(tmp_path: Path) -> None:
    loader = tmp_path / "leeward-bpf"
    loader.write_text("#!/bin/sh\necho 'leeward-bpf: timers: cannot be loaded' >&2\nexit 1\n")
    loader.chmod(0o755)
    file, variables = file_of(tmp_path, scenario(tcp={"control": "retcp"})), {"LEEWARD_KERNEL": str(tmp_path)}
    assert ": timers: cannot be loaded" in error_of(elsewhere("", *run_options(file), **variables))
    name = f"{OWN}-loader"
    file = file_of(tmp_path, scenario(scheduler={"name": "solstice", "demand": "adu"}))
    options = ("--name", name, "--dilation", str(DILATION))
    result = elsewhere("", "lab", "up", file, *options, **variables)
    assert result.returncode == 0, result.stderr
    for note in ("tcp.ack_delay: the kernel's own delays apply", "static programs report no demand"):
        assert f"{note}: {loader}: timers: cannot be loaded" in result.stderr
    lab.remove(name)


def test_without_libraries_programs_run_in_real_time(tmp_path: Path) -> None:
    name = f"{OWN}-parts"
    wanted = scenario(scheduler={"name": "solstice", "demand": "adu"})
    options = ("--name", name, "--dilation", str(DILATION))
    result = elsewhere("", "lab", "up", file_of(tmp_path, wanted), *options, LEEWARD_KERNEL="/none")
    assert result.returncode == 0, result.stderr
    for reason in (
        "programs see real time: no libleeward_vt.so: install the packages gcc libc6-dev",
        "programs report no demand: no libleeward_adu.so: install the packages gcc libc6-dev",
    ):
        assert f"warning: {reason}" in result.stderr
    lab.remove(name)


def test_without_iproute2(tmp_path: Path) -> None:
    result = elsewhere("", *run_options(file_of(tmp_path, scenario())), PATH="/none")
    assert "No such file or directory (os error 2): is iproute2 installed?" in error_of(result)


def test_an_address_range_that_the_machine_uses_does_not_matter() -> None:
    code = (
        "from leeward import lab\n"
        f"with lab.up({CLUSTER!r}) as network:\n"
        "    network.run('r0h0', ['ping', '-c', '1', '-W', '5', 'r1h0'])\n"
        f"with lab.stand_up({scenario()!r}, name='{OWN}-range', dilation={DILATION}) as circuits:\n"
        "    circuits.run('r0h0', ['ping', '-c', '1', '-W', '0.1', 'r1h0'])\n"
    )
    require("ping", package="iputils-ping")
    addresses = "ip link set lo up; ip addr add 10.0.0.2/8 dev lo; ip addr add 10.1.0.2/8 dev lo"
    command = ["unshare", "--net", "sh", "-ec", f'{addresses}\nexec "$@"', "sh", sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr


def test_a_static_program_is_named(tmp_path: Path) -> None:
    require("cc", package="gcc")
    (tmp_path / "hello.c").write_text('#include <stdio.h>\nint main(void) { puts("hello"); }\n')
    for options in (["-static"], ["-static-pie"], []):
        program = tmp_path / ("dynamic" if not options else options[0].lstrip("-"))
        subprocess.run(["cc", *options, "-o", program, tmp_path / "hello.c"], check=True)
        assert lab.is_static(program) == bool(options)
    assert not lab.is_static(tmp_path / "hello.c")
    with lab.stand_up(scenario(), name=f"{OWN}-static", dilation=DILATION) as circuits:
        if not any(word.startswith("LD_PRELOAD=") for word in circuits.hosts[0].prefix):
            lack("no libleeward_vt.so: as root, apt-get install gcc, and then make -C kernel")
        for name, warning in (
            ("dynamic", ""),
            (
                "static",
                f"warning: {tmp_path / 'static'}: a static program sees real time, and does not report",
            ),
        ):
            words = [str(LEEWARD), "lab", "exec", "--name", circuits.name, "--host", "r0h0", "--"]
            result = subprocess.run(
                [*words, str(tmp_path / name)], capture_output=True, text=True, check=True, timeout=60
            )
            assert result.stdout == "hello\n"
            assert result.stderr.startswith(warning)
            assert result.stderr.count("\n") == bool(warning)


@pytest.mark.parametrize(
    ("fields", "dilation", "reason"),
    [
        (
            {"tcp": {"min_timeout": "1s"}},
            240,
            "tcp.min_timeout: 1s: a dilation of 240 makes this 4min of real time, and the kernel takes",
        ),
        ({"tcp": {"mss": 80}}, 40, "tcp.mss: 80: must be 88 to 65483 in the lab"),
        (
            {
                "network": {"racks": 257, "hosts_per_rack": 1},
                "workload": {"flows": [{"from": [0, 0], "to": [256, 0], "bytes": "1MB"}]},
            },
            40,
            "network.racks: 257: a lab has addresses for at most 256",
        ),
    ],
)
def test_what_the_kernel_does_not_take(
    run: Run, tmp_path: Path, fields: dict[str, Any], dilation: int, reason: str
) -> None:
    file = file_of(tmp_path, scenario(**fields))
    assert reason in error_of(run("lab", "run", file, "--dilation", str(dilation)))
