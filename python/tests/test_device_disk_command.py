"""`leeward device profile --disk`: devices and files that can be profiled, and the command."""

import csv
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leeward import _mounts
from leeward._disk import LEAST_BYTES, Read, distances
from leeward._disk_target import find_target, mounts_of, parts
from leeward._fio_replay import FioReplay
from leeward._mounts import mounts
from leeward.errors import InputError
from leeward.traces import open_trace
from support.parts import lack, require, require_root

Run = Callable[..., subprocess.CompletedProcess[str]]

FIO = """\
#!{python}
# Replays an iolog on a disk: 4 ms, and 12 ms times the root of the share of the whole disk, 200 MB/s, and
# three streams; or, as `{device}` says, on an SSD, or not at all.
import json, sys
from pathlib import Path
given = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
assert "--readonly" in sys.argv and given["ioengine"] == "psync" and given["direct"] == "1"
file = Path(given["replay_redirect"])
size, before = file.stat().st_size, file.stat().st_mtime_ns
if "{device}" == "broken":
    print("fio: pid=7, err=5/file:io_u.c:1876, func=io_u error, error=Input/output error", file=sys.stderr)
    sys.exit(1)
ends, last, log = [], 0, []
for line in Path(given["read_iolog"]).read_text().splitlines()[3:-1]:
    name, action, offset, count = line.split()
    offset, count = int(offset), int(count)
    assert (name, action) == ("disk", "read") and offset + count <= size
    seek = 0 if offset in ends else 0.004 + 0.012 * (abs(offset - last) / size) ** 0.5
    ends = [end for end in ends if end != offset][-2 if offset not in ends else -3:] + [offset + count]
    last = offset
    seconds = 9e-5 if "{device}" == "ssd" else seek + count / 200e6
    log.append(f"0, {{round(1e9 * seconds)}}, 0, {{count}}, {{offset}}, 0")
Path(given["write_lat_log"] + "_lat.1.log").write_text("\\n".join(log) + "\\n")
print(json.dumps({{"fio version": "fio-3.33", "jobs": [{{"jobname": "replay", "error": 0}}]}}))
"""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A file of 1 GiB without holes. Its blocks are reserved and not written."""
    path = tmp_path / "disk"
    with path.open("wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, LEAST_BYTES)
        except OSError as error:
            pytest.skip(f"no room for a file of 1 GiB: {error.strerror}")
    return path


@pytest.fixture
def fio(tmp_path: Path) -> Callable[[str], str]:
    """Makes a recorded fio for a kind of device; returns a PATH with it."""

    def make(device: str) -> str:
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "fio").write_text(FIO.format(python=sys.executable, device=device))
        (folder / "fio").chmod(0o755)
        return f"{folder}:{os.environ['PATH']}"

    return make


PROFILE = ("device", "profile", "--disk", "disk")


def test_a_disk_is_profiled_and_the_profile_read_by_other_commands(
    run: Run, tmp_path: Path, disk: Path, fio: Callable[[str], str]
) -> None:
    path = fio("disk")
    before = disk.stat()
    result = run(*PROFILE, "--out", "hdd.json", "--name", "hdd", "-o", "json", PATH=path)
    assert result.returncode == 0, result.stderr
    assert "reading disk (1.07 GB) for at most 5 min; nothing is written to it" in result.stderr
    assert "writes were not measured" in result.stderr
    assert "wrote hdd.json, and the outputs of fio to hdd.fio.json and hdd.fio.log" in result.stderr
    assert (disk.stat().st_mtime_ns, disk.stat().st_size) == (before.st_mtime_ns, before.st_size)
    device = json.loads((tmp_path / "hdd.json").read_text())
    document = json.loads(result.stdout)
    assert {name: document[name] for name in device} == device
    assert (device["name"], device["outstanding"]) == ("hdd", 1)
    assert device["measured"].startswith("fio-3.33, reads of 4096 bytes one at a time, direct")
    assert device["disk"]["history"] == 3
    assert device["disk"]["read_bytes_per_second"] == pytest.approx(200e6, rel=1e-4)
    for row in device["disk"]["seek"]:
        expected = 0.004 + 0.012 * (row["distance_bytes"] / LEAST_BYTES) ** 0.5
        assert row["seconds"] == pytest.approx(expected, rel=1e-4)
    assert [row["distance_bytes"] for row in document["seeks"]] == list(distances(LEAST_BYTES))
    assert len(document["rates"]) == 8
    (tmp_path / "t.csv").write_text("seconds,kind,size,offset\n1,read,4096,0\n2,read,4096,536870912\n")
    statistics = open_trace(tmp_path / "t.csv", device=tmp_path / "hdd.json").statistics()
    assert next(one["total"] for one in statistics["stages"] if one["stage"] == "storage") > 0.012


def test_a_table_and_csv_have_the_seek_times(run: Run, disk: Path, fio: Callable[[str], str]) -> None:
    path = fio("disk")
    table = run(*PROFILE, PATH=path)
    headers = "DISTANCE SEEK FORWARD BACKWARD 10 % 90 % PAIRS"
    assert table.stdout.splitlines()[0].split() == headers.split()
    assert len(table.stdout.splitlines()) == 1 + len(distances(LEAST_BYTES))
    assert "rate: 200 MB/s, 200 MB/s to 200 MB/s by place; history: 3" in table.stderr
    rows = list(csv.DictReader(io.StringIO(run(*PROFILE, "-o", "csv", PATH=path).stdout)))
    assert [int(row["distance_bytes"]) for row in rows] == list(distances(LEAST_BYTES))
    assert {(row["kind"], row["size_bytes"], row["percentile"]) for row in rows} == {("read", "4096", "")}


def test_an_ssd_is_refused_with_the_way_to_profile_it(
    run: Run, tmp_path: Path, disk: Path, fio: Callable[[str], str]
) -> None:
    result = run(*PROFILE, PATH=fio("ssd"))
    assert result.returncode == 2
    assert "error: --disk: reads 537 MB or more apart take 90 us" in result.stderr
    assert "no seeks of a disk, as on an SSD, a RAM disk or a throttled device" in result.stderr
    assert "hint: leeward device profile --fio DIR measures such a device" in result.stderr
    assert not (tmp_path / "device.json").exists()


def test_an_error_of_the_disk_is_that_of_fio(run: Run, disk: Path, fio: Callable[[str], str]) -> None:
    result = run(*PROFILE, PATH=fio("broken"))
    assert result.returncode == 2
    assert result.stderr.splitlines()[1] == (
        "error: --disk: 128 reads: fio: pid=7, err=5/file:io_u.c:1876, func=io_u error,"
        " error=Input/output error"
    )


def test_a_missing_fio_is_reported(run: Run, tmp_path: Path, disk: Path) -> None:
    (tmp_path / "bin").mkdir()
    result = run(*PROFILE, PATH=str(tmp_path / "bin"))
    assert result.returncode == 2
    assert result.stderr.splitlines()[0] == "error: --disk: fio is not installed"
    assert "hint: install it" in result.stderr


def test_a_dry_run_prints_a_command_that_only_reads(run: Run, tmp_path: Path, disk: Path) -> None:
    result = run(*PROFILE, "--dry-run")
    assert (result.returncode, result.stderr) == (0, "")
    (line,) = result.stdout.splitlines()
    words = shlex.split(line)
    assert words[:2] == ["fio", "--readonly"]
    assert f"--replay_redirect={disk.resolve()}" in words
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--fio: expected one of --fio, --disk and --nfs"),
        (("--disk", "disk", "--fio", "."), "--fio and --disk: expected one of --fio, --disk and --nfs"),
        (("--disk", "disk", "--sizes", "4KiB"), "--sizes: has no effect with --disk"),
        (("--disk", "disk", "--for", "1s"), "--for: has no effect with --disk"),
        (("--disk", "disk", "--force"), "--force: has no effect with --disk"),
        (("--fio", ".", "--duration", "1min"), "--duration: has no effect with --fio"),
        (("--fio", ".", "--in-use"), "--in-use: has no effect with --fio"),
        (("--disk", "disk", "--duration", "1s"), "--duration: `1s`: expected 10s to 24h"),
        (("--disk", "disk", "--duration", "48h"), "--duration: `48h`: expected 10s to 24h"),
        (("--disk", "none"), "--disk: `none`: no such device or file"),
        (("--disk", "."), "--disk: `.`: is a folder; expected a device such as /dev/sdb"),
        (("--disk", "/dev/null"), "--disk: `/dev/null`: is neither a block device nor a file"),
        (("--disk", "empty"), "--disk: `empty`: has 0 bytes, as an empty file"),
        (("--disk", "small"), "--disk: `small`: has 4 KiB; expected at least 1 GiB, on which seeks differ"),
        (("--disk", "sparse"), "--disk: `sparse`: has holes, which are not on the disk"),
    ],
)
def test_an_invalid_option_or_device_is_rejected(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "small").write_bytes(bytes(4096))
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2 * LEAST_BYTES)
    result = run("device", "profile", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {message}")


def test_a_file_without_permission_is_rejected(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read every file")
    (tmp_path / "disk").touch(mode=0)
    with pytest.raises(InputError, match="no permission to read it"):
        find_target(tmp_path / "disk", in_use=False)


MOUNTINFO = """\
22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw
36 22 8:17 / /srv/a\\040b rw,noatime shared:5 master:1 - xfs /dev/sdb1 rw,attr2
37 22 0:45 /@data /data ro,relatime - btrfs /dev/none rw,subvol=/@data
38 22 0:50 / /mnt rw - nfs4 nas1:/vol rw,vers=4.2,rsize=1048576,addr=10.0.0.7
a line of another form
39 22 x:1 / /broken rw - ext4 /dev/sdc rw
40 22 8:33 / /short rw
"""


def test_mounts_are_read_from_the_list_of_the_kernel() -> None:
    found = mounts(MOUNTINFO)
    assert [mount.point for mount in found] == ["/", "/srv/a b", "/data", "/mnt"]
    assert [mount.read_only for mount in found] == [False, False, True, False]
    assert found[1].number == os.makedev(8, 17)
    assert (found[2].root, found[2].kind, found[2].source) == ("/@data", "btrfs", "/dev/none")
    assert found[3].options["addr"] == "10.0.0.7"
    assert found[3].options["rw"] == ""


def test_the_mounts_of_this_process_are_known() -> None:
    assert any(mount.point == "/" for mount in mounts())


def test_the_mounts_of_a_disk_are_those_of_its_partitions_and_of_volumes_on_them(tmp_path: Path) -> None:
    def folder(path: str, number: str, partition: bool = False) -> None:
        place = tmp_path / path
        place.mkdir(parents=True)
        (place / "dev").write_text(f"{number}\n")
        if partition:
            (place / "partition").write_text("1\n")

    folder("8:16", "8:16")
    folder("8:16/sdb1", "8:17", partition=True)
    folder("8:16/queue", "9:99")
    folder("8:17/holders/dm-0", "253:0")
    folder("253:0/holders/dm-1", "253:1")
    folder("8:16/sdb2", "broken", partition=True)
    expected = {(8, 16), (8, 17), (253, 0), (253, 1)}
    found = parts(os.makedev(8, 16), tmp_path)
    assert {(os.major(number), os.minor(number)) for number in found} == expected
    assert [mount.point for mount in mounts_of(found, mounts(MOUNTINFO))] == ["/srv/a b"]


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Path]:
    """A block device of 1 GiB: a loop device over a file with holes."""
    require_root()
    require("losetup", package="mount")
    backing = tmp_path / "backing"
    with backing.open("wb") as file:
        file.truncate(LEAST_BYTES)
    made = subprocess.run(
        ["losetup", "--find", "--show", backing], capture_output=True, text=True, check=False
    )
    if made.returncode:
        lack(f"no loop device: {made.stderr.strip()}")
    device = Path(made.stdout.strip())
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def test_a_device_mounted_for_writing_is_refused_unless_the_user_accepts_it(
    tmp_path: Path, loop: Path
) -> None:
    require("mkfs.ext4", package="e2fsprogs")
    assert find_target(loop, in_use=False).size == LEAST_BYTES
    subprocess.run(["mkfs.ext4", "-q", loop], check=True)
    place = tmp_path / "mounted"
    place.mkdir()
    for options, refused in (("rw", True), ("ro", False)):
        subprocess.run(["mount", "-o", options, loop, place], check=True)
        try:
            if refused:
                with pytest.raises(InputError, match=f"in use: mounted at {place}"):
                    find_target(loop, in_use=False)
                assert find_target(loop, in_use=True).path == loop
            else:
                assert find_target(loop, in_use=False).path == loop
        finally:
            subprocess.run(["umount", place], check=True)


def test_a_device_with_an_unknown_user_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, loop: Path
) -> None:
    subprocess.run(["mkfs.ext4", "-q", loop], check=True)
    place = tmp_path / "mounted"
    place.mkdir()
    subprocess.run(["mount", loop, place], check=True)
    try:
        monkeypatch.setattr(_mounts, "LIST", tmp_path / "none")
        with pytest.raises(InputError, match="in use: by a volume, as swap, or by a mount of another"):
            find_target(loop, in_use=False)
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_device_without_a_medium_is_refused() -> None:
    require_root()
    empty = [path for path in Path("/sys/block").glob("loop*/size") if path.read_text().strip() == "0"]
    if not empty:
        pytest.skip("every loop device has a file")
    device = Path("/dev") / empty[0].parent.name
    if not device.exists():
        pytest.skip(f"no {device}")
    with pytest.raises(InputError, match="has 0 bytes, as a drive without a medium, or a loop"):
        find_target(device, in_use=False)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_reads_a_loop_device_that_has_no_seeks(run: Run, loop: Path) -> None:
    result = run("device", "profile", "--disk", str(loop), "--duration", "1min")
    assert result.returncode == 2
    assert "no seeks of a disk, as on an SSD, a RAM disk or a throttled device" in result.stderr


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_replays_reads_in_order_with_their_latencies(tmp_path: Path, disk: Path) -> None:
    outputs: list[str] = []
    logs: list[str] = []
    replay = FioReplay(disk, outputs.append, logs.append)
    reads = [Read(4096 * at * 7919 % LEAST_BYTES // 4096 * 4096, 4096) for at in range(64)]
    reads.append(Read(0, 1 << 20))
    try:
        seconds = replay(reads, 30)
    except InputError as error:
        if "direct" in str(error) or "Invalid argument" in str(error):
            pytest.skip("the file system of temporary files has no direct I/O")
        raise
    assert len(seconds) == len(reads)
    assert all(0 < each < 30 for each in seconds)
    assert replay.version.startswith("fio-")
    assert len(logs[0].splitlines()) == len(reads)
    # The time limit ends a replay, and the result is that of the first reads.
    some = replay([Read(0, 1 << 20)] * 20_000, 1)
    assert 0 < len(some) <= 20_000
