"""`leeward device profile --nfs`: the ways to an export, and files that are made and removed."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from leeward import __version__, _libnfs, _mounts, _native, _nfs, _nfs_client
from leeward._libnfs import LibraryError, change
from leeward._mounts import mounts
from leeward._nfs import check_reached, find_mount, libnfs_file, parse_export, sent_and_received
from leeward.errors import InputError

Run = Callable[..., subprocess.CompletedProcess[str]]

FIO = """\
#!{python}
# Output of fio 3.33 with the engine `nfs`, or without it if `{engine}` is not so.
import json, sys
from pathlib import Path
arguments = sys.argv[1:]
given = dict(word.lstrip("-").split("=", 1) for word in arguments if "=" in word)
if "enghelp" in given:
    found = "{engine}" == "nfs" == given["enghelp"]
    print("nfs_url                 : URL in libnfs format" if found else "IO engine nfs not found")
    sys.exit(not found)
names = [word.partition("=")[0] for word in arguments]
if "nfs_url" in given:
    assert names.index("--ioengine") < names.index("--nfs_url") and "--end_fsync" not in names
    assert Path.cwd().name.startswith("leeward-nfs-")
else:
    assert "--end_fsync" in names or given["name"] != "fill"
    open(given["filename"], "r+b").write(b"measured")
def side(share):
    percentiles = {{f"{{float(p):f}}": 1000 for p in given.get("percentile_list", "50").split(":")}}
    count = 100_000 if share else 0
    moved = {{"io_bytes": 10_000 * share, "io_kbytes": 9 * share, "iops": 1000 * share, "total_ios": count}}
    return moved | {{"lat_ns": {{"percentile": percentiles}}}}
reads, writes = {{"randread": (1, 0), "randrw": (1, 1)}}.get(given["rw"], (0, 1))
job = {{"jobname": given["name"], "error": 0, "read": side(reads), "write": side(writes)}}
print(json.dumps({{"fio version": "fio-3.33", "jobs": [job]}}))
"""
PROFILE = ("device", "profile", "--sizes", "4KiB,64KiB", "--for", "1s", "--file-size", "1MiB")


@pytest.fixture
def fio(tmp_path: Path) -> Callable[[str], str]:
    """Makes a recorded fio with an engine; returns a PATH with it."""

    def make(engine: str) -> str:
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "fio").write_text(FIO.format(python=sys.executable, engine=engine))
        (folder / "fio").chmod(0o755)
        return f"{folder}:{os.environ['PATH']}"

    return make


@pytest.mark.parametrize(
    ("text", "server", "path", "url"),
    [
        ("nas1:/vol", "nas1", "/vol", "nfs://nas1/vol"),
        ("10.0.0.7:/", "10.0.0.7", "/", "nfs://10.0.0.7/"),
        ("[fd00::7]:/vol/a", "fd00::7", "/vol/a", "nfs://fd00::7/vol/a"),
        ("nfs://nas1/vol?version=4&uid=0", "nas1", "/vol", "nfs://nas1/vol?version=4&uid=0"),
        ("nas1:/my vol", "nas1", "/my vol", "nfs://nas1/my vol"),
    ],
)
def test_exports_are_parsed(text: str, server: str, path: str, url: str) -> None:
    export = parse_export(text)
    assert (export.server, export.path, export.url) == (server, path, url)
    assert str(export) == text
    assert export.by_url == text.startswith("nfs://")


@pytest.mark.parametrize(
    "text",
    [
        *("", "nas1", "nas1:", "nas1:vol", ":/vol", "[fd00::7]/vol", "fd00::7:/vol", "nfs://", "nfs://nas1"),
        *("nfs:///vol", "nas1:/vol?version=4", "nas1:/a\n/b", "nas1:/a/../b", "nas1:/\x00"),
    ],
)
def test_a_text_that_names_no_export_is_rejected(text: str) -> None:
    with pytest.raises(InputError, match=r"(?s)^--nfs: .*: expected "):
        parse_export(text)


MOUNTED = """\
22 1 8:2 / / rw - ext4 /dev/sda2 rw
30 22 0:45 / /mnt rw - nfs4 nas1:/vol rw,vers=4.2,proto=tcp,rsize=1048576,wsize=524288,addr=10.0.0.7
31 22 0:46 / /mnt/deep rw - nfs nas1:/vol/deep rw,vers=3,addr=10.0.0.7
32 22 0:47 /part /part rw - nfs4 nas2:/ rw,addr=10.0.0.8
33 22 0:48 / /six rw - nfs4 [fd00::7]:/vol rw,addr=fd00::7
34 22 0:49 / /again rw - nfs4 nas1:/vol rw,addr=10.0.0.7
35 22 0:50 / /cifs rw - cifs nas1:/cifs rw
"""


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        # The later mount of the same export.
        ("nas1:/vol", "/again"),
        ("NAS1:/vol/a/b", "/again/a/b"),
        ("10.0.0.7:/vol", "/again"),
        ("nas1:/vol/deep", "/mnt/deep"),
        ("nas1:/vol/deep/a", "/mnt/deep/a"),
        ("nas1:/volume", None),
        ("nas1:/", None),
        ("nas2:/part/a", "/part/a"),
        ("nas2:/other", None),
        ("[fd00::7]:/vol", "/six"),
        ("nas1:/cifs", None),
    ],
)
def test_the_mount_of_an_export_is_found(
    monkeypatch: pytest.MonkeyPatch, text: str, folder: str | None
) -> None:
    monkeypatch.setattr(_nfs, "_addresses", lambda _server: set())
    found = find_mount(parse_export(text), mounts(MOUNTED))
    assert (None if found is None else str(found.folder)) == folder


def test_a_mount_is_found_by_the_address_of_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_nfs, "_addresses", lambda server: {"10.0.0.7"} if server == "storage" else set())
    found = find_mount(parse_export("storage:/vol/deep"), mounts(MOUNTED))
    assert found is not None
    assert str(found.folder) == "/mnt/deep"
    assert found.text() == "through the mount of nas1:/vol/deep (nfs, vers=3)"
    assert find_mount(parse_export("stranger:/vol"), mounts(MOUNTED)) is None


STATISTICS = """\
device /dev/sda2 mounted on / with fstype ext4
device nas1:/vol mounted on /mnt with fstype nfs4 statvers=1.1
»opts:»rw,vers=4.2,rsize=1048576
»age:»100
»bytes:»1 2 3 4 5 6 7 8
»RPC iostats version: 1.1  p/v: 100003/4 (nfs)
»xprt:»tcp 0 0 1 0 100 2019 2019 0 2019 0 2 0 0
»per-op statistics
»        NULL: 1 1 0 44 24 0 0 0 0
»        READ: 10 10 0 1760 42000 3 20 24 0
»       WRITE: 5 5 0 21000 600 1 30 32 0
device nas1:/other mounted on /other with fstype nfs4 statvers=1.1
»per-op statistics
»        READ: 10 10 0 1 1 3 20 24 0
""".replace("»", "\t")


def test_bytes_of_calls_and_replies_are_those_of_the_mount() -> None:
    mount = mounts(MOUNTED)[1]
    assert sent_and_received(mount, STATISTICS) == (44 + 1760 + 21000, 24 + 42000 + 600)
    assert sent_and_received(mount, "") is None
    assert sent_and_received(mount, "device a mounted on /mnt with\nper-op statistics\nREAD: a b c\n") is None


def test_an_export_is_profiled_through_its_mount(
    monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path, fio: Callable[[str], str]
) -> None:
    place = tmp_path / "mounted"
    (place / "deep").mkdir(parents=True)
    (place / "deep" / "precious").write_text("precious")
    listed = tmp_path / "mountinfo"
    listed.write_text(f"30 22 0:45 / {place} rw - nfs4 nas1:/vol rw,vers=4.2,rsize=1048576,addr=10.0.0.7\n")
    monkeypatch.setattr(_mounts, "LIST", listed)
    monkeypatch.setattr(_nfs, "STATISTICS", tmp_path / "none")
    result = run(*PROFILE, "--nfs", "nas1:/vol/deep", "--name", "vol", "-o", "json", PATH=fio("none"))
    assert result.returncode == 0, result.stderr
    device = json.loads((tmp_path / "device.json").read_text())
    way = "through the mount of nas1:/vol (nfs4, vers=4.2, rsize=1048576)"
    assert f"libaio, direct, {way}, reads in mixes: 50 %; network: " in device["measured"]
    assert f"measured {way}; network: 60 kB to the client by reads, 70 kB to the server" in result.stderr
    assert "65.5 MB/s (reads) or 65.5 MB/s (writes), the link was the limit" in result.stderr
    document = json.loads(result.stdout)
    # Five loads of each of two sizes, and the fill: three of the five read, and three write.
    assert document == device | {
        "network": {"read_bytes": 60_000, "write_bytes": 70_000, "sent_bytes": None, "received_bytes": None}
    }
    assert [path.name for path in (place / "deep").iterdir()] == ["precious"]


def test_bytes_with_headers_are_the_difference_of_two_readings(
    monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path, fio: Callable[[str], str]
) -> None:
    (tmp_path / "mounted").mkdir()
    listed = tmp_path / "mountinfo"
    listed.write_text(f"30 22 0:45 / {tmp_path / 'mounted'} rw - nfs4 nas1:/vol rw\n")
    monkeypatch.setattr(_mounts, "LIST", listed)
    readings = iter([(1000, 2000), (91_000, 82_000)])
    monkeypatch.setattr(_nfs, "sent_and_received", lambda _mount: next(readings))
    result = run(*PROFILE, "--nfs", "nas1:/vol", "-o", "json", PATH=fio("none"))
    assert result.returncode == 0, result.stderr
    network = json.loads(result.stdout)["network"]
    assert (network["sent_bytes"], network["received_bytes"]) == (90_000, 80_000)
    assert "with headers 80 kB to the client and 90 kB to the server" in result.stderr


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Actions on folders of exports, instead of libnfs."""
    done: list[tuple[str, str]] = []

    def record(action: str, _export: Any, folder: str) -> str:
        done.append((action, folder))
        return ""

    monkeypatch.setattr(_nfs, "_change", record)
    return done


def test_an_export_without_a_mount_is_profiled_through_libnfs(
    monkeypatch: pytest.MonkeyPatch,
    run: Run,
    tmp_path: Path,
    fio: Callable[[str], str],
    changes: list[tuple[str, str]],
) -> None:
    monkeypatch.setattr(_mounts, "LIST", tmp_path / "none")
    result = run(*PROFILE, "--nfs", "nas1:/vol", PATH=fio("nfs"))
    assert result.returncode == 0, result.stderr
    (made, folder), removed = changes
    assert (made, removed) == ("make", ("remove", folder))
    assert folder.startswith(".leeward-profile-")
    device = json.loads((tmp_path / "device.json").read_text())
    assert " nfs, through libnfs, nas1:/vol, writes committed at the end, reads in" in device["measured"]
    assert "without headers" in device["measured"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "device.fio.json", "device.json"]


def test_a_url_is_profiled_through_libnfs_also_if_it_is_mounted(
    monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path, fio: Callable[[str], str]
) -> None:
    listed = tmp_path / "mountinfo"
    listed.write_text(f"30 22 0:45 / {tmp_path} rw - nfs4 nas1:/vol rw\n")
    monkeypatch.setattr(_mounts, "LIST", listed)
    result = run(*PROFILE, "--nfs", "nfs://nas1/vol?version=4", "--dry-run", PATH=fio("nfs"))
    assert (result.returncode, result.stderr) == (0, "")
    lines = [shlex.split(line) for line in result.stdout.splitlines()]
    assert len(lines) == 1 + 2 * 5
    for line in lines:
        assert "--nfs_url=nfs://nas1/vol?version=4" in line
        assert line[-1] == "--filename=FOLDER/data"


def test_a_url_without_an_engine_is_refused(
    monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path, fio: Callable[[str], str]
) -> None:
    monkeypatch.setattr(_mounts, "LIST", tmp_path / "none")
    path = fio("none")
    result = run(*PROFILE, "--nfs", "nfs://nas1/vol", PATH=path)
    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        "error: --nfs: `nfs://nas1/vol`: fio has no engine `nfs`",
        (
            "hint: give SERVER:/PATH, for NFS version 3; or install fio with libnfs: its --enghelp=nfs has"
            " nfs_url"
        ),
    ]
    engine = run(*PROFILE, "--nfs", "nas1:/vol", "--io-engine", "psync", PATH=path)
    assert engine.stderr.startswith("error: --io-engine: has no effect on an export that is measured through")
    forced = run(*PROFILE, "--nfs", "nas1:/vol", "--force", PATH=path)
    assert forced.stderr.startswith("error: --force: has no effect with --nfs")


@dataclass
class OwnClient:
    """Leeward's client without a server. A load has 1000 requests for each open one, of 900 us each."""

    replays: list[dict[str, Any]] = field(default_factory=list)
    """Arguments of each replay."""
    removed: list[str] = field(default_factory=list)
    """Names of removed files."""
    problem: str = ""
    """Error of each replay."""

    def replay(self, arguments: dict[str, Any], requests: Sequence[tuple[str, int, int]]) -> dict[str, Any]:
        if self.problem:
            raise InputError.about("--nfs", self.problem)
        self.replays.append(arguments)
        assert all(place % size == 0 and place + size <= 1 << 20 for _, size, place in requests)
        sent = [requests[at % len(requests)] for at in range(1000 * arguments.get("closed", 1))]
        if "out" in arguments:
            rows = [f"0,{kind},{size},{place},0,0.0009,done\n" for kind, size, place in sent]
            header = "seconds,kind,size,offset,late_s,latency_s,state\n"
            Path(arguments["out"]).write_text("".join([header, *rows]))
        reads, writes = ([size for own, size, _ in sent if own == kind] for kind in ("read", "write"))
        counts = {"reads": len(reads), "writes": len(writes), "elapsed_s": 1.0, "failed": 0, "unanswered": 0}
        return counts | {"read_bytes": sum(reads), "written_bytes": sum(writes), "problem": None}

    def remove(self, arguments: str) -> None:
        self.removed.append(json.loads(arguments)["file"])


@pytest.fixture
def own_client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> OwnClient:
    """Leeward's client for exports that are not mounted."""
    client = OwnClient()
    monkeypatch.setattr(_mounts, "LIST", tmp_path / "none")
    monkeypatch.setattr(_nfs_client, "_replay", client.replay)
    monkeypatch.setattr(_native, "remove_nfs_file", client.remove)
    return client


def test_an_export_without_a_mount_and_without_an_engine_is_profiled_by_a_client_of_leeward(
    run: Run, tmp_path: Path, fio: Callable[[str], str], own_client: OwnClient
) -> None:
    result = run(*PROFILE, "--nfs", "nas1:/vol", "-o", "json", PATH=fio("none"))
    assert result.returncode == 0, result.stderr
    device = json.loads((tmp_path / "device.json").read_text())
    sizes = (4096, 65_536)
    assert device["table"] == [
        {"size_bytes": size, "read_iops": 32_000, "write_iops": 32_000} for size in sizes
    ]
    assert {row["kind"] for row in device["unloaded"]} == {"read", "write"}
    assert all(row["seconds"] == pytest.approx(0.0009) for row in device["unloaded"])
    way = "NFSv3, through Leeward's client, nas1:/vol, each write on the device before its reply, reads in"
    assert f"leeward {__version__}, 1 s a point over 1048576 bytes, {way}" in device["measured"]
    made, *loads = own_client.replays
    assert made["new"]
    assert [load["closed"] for load in loads] == [32, 32, 32, 1, 1] * 2
    assert {load["file"] for load in loads} == {made["file"], *own_client.removed}
    assert not any(load.get("new") for load in loads)
    network = json.loads(result.stdout)["network"]
    # Of each size: reads at saturation, half of a mix, and single reads; and so for writes, with the file.
    moved = sum(sizes) * (32_000 + 16_000 + 1000)
    assert (network["read_bytes"], network["write_bytes"]) == (moved, moved + (1 << 20))
    lines = (tmp_path / "device.nfs.jsonl").read_text().splitlines()
    assert [json.loads(line)["read_percent"] for line in lines] == [100, 0, 50, 100, 0] * 2


def test_the_loads_of_the_own_client_are_shown_and_its_limits_are_errors(
    run: Run, tmp_path: Path, fio: Callable[[str], str], own_client: OwnClient
) -> None:
    path = fio("none")
    shown = run(*PROFILE, "--nfs", "nas1:/vol", "--dry-run", PATH=path)
    assert shown.stdout.splitlines()[1:3] == [
        "saturation: 4 KiB, 100 % reads, 32 at once",
        "saturation: 4 KiB, 0 % reads, 32 at once",
    ]
    large = run("device", "profile", "--nfs", "nas1:/vol", "--sizes", "2MiB", PATH=path)
    assert large.stderr.startswith("error: --sizes: `2 MiB`: expected at most 1 MiB without a mount")
    small = run(
        *("device", "profile", "--nfs", "nas1:/vol", "--sizes", "4KiB", "--file-size", "64KiB"), PATH=path
    )
    assert small.stderr.startswith("error: --file-size: `64 KiB`: expected at least 1 MiB without a mount")
    assert not own_client.replays
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


@pytest.mark.parametrize(
    ("problem", "hint", "is_removed"),
    [
        ("nas1:/vol: `x`: the file exists", "", False),
        ("nas1:/vol: `x`: no space left at the server", "", True),
        ("nas1:/vol: `x`: permission denied", "hint: the export must let this host and user write", True),
        ("nas1:/vol: no NFS version 3 at 10.0.0.7:2049: refused", "hint: mount the export, or install", True),
    ],
)
def test_a_file_that_cannot_be_made_is_an_error_and_nothing_is_left(
    run: Run, fio: Callable[[str], str], own_client: OwnClient, problem: str, hint: str, is_removed: bool
) -> None:
    own_client.problem = problem
    result = run(*PROFILE, "--nfs", "nas1:/vol", PATH=fio("none"))
    assert result.returncode == 2
    first, *rest = result.stderr.splitlines()
    assert first == f"error: --nfs: {problem}"
    assert rest[0].startswith(hint) if hint else not rest, rest
    assert len(own_client.removed) == is_removed


def test_a_folder_that_is_not_on_the_mount_is_refused(
    monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path
) -> None:
    listed = tmp_path / "mountinfo"
    listed.write_text(f"30 22 0:45 / {tmp_path} rw - nfs4 nas1:/vol rw\n")
    monkeypatch.setattr(_mounts, "LIST", listed)
    result = run(*PROFILE, "--nfs", "nas1:/vol/none")
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: --nfs: `{tmp_path}/none`: No such file or directory")


def test_a_server_that_does_not_answer_is_an_error_after_a_time_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    silent = tmp_path / "silent.py"
    silent.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(_nfs, "REACHED_S", 0.3)
    monkeypatch.setattr(_libnfs, "__file__", str(silent))
    with (
        pytest.raises(InputError, match=r"^--nfs: `nas1:/vol`: the server did not answer within 300 ms"),
        libnfs_file(parse_export("nas1:/vol"), pytest.fail),
    ):
        pytest.fail("the folder was made")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "stat").write_text("#!/bin/sh\nexec sleep 60\n")
    (folder / "stat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    mounted = find_mount(parse_export("nas1:/vol"), mounts(MOUNTED))
    assert mounted is not None
    with pytest.raises(InputError, match=r"^--nfs: `/again`: the server did not answer within 300 ms"):
        check_reached(mounted)


def test_the_folder_is_removed_after_an_error_and_a_failure_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    actions: list[str] = []

    def fail_to_remove(action: str, _export: Any, _folder: str) -> str:
        actions.append(action)
        return "NFS3ERR_ROFS" if action == "remove" else ""

    monkeypatch.setattr(_nfs, "_change", fail_to_remove)
    warnings: list[str] = []
    with pytest.raises(RuntimeError), libnfs_file(parse_export("nas1:/vol"), warnings.append):
        raise RuntimeError
    assert actions == ["make", "remove"]
    (warning,) = warnings
    assert warning.startswith("--nfs: `nas1:/vol`: cannot remove the folder .leeward-profile-")
    assert warning.endswith(": NFS3ERR_ROFS")


def test_a_refused_folder_has_a_hint_on_permissions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_nfs, "_change", lambda *_: "MKDIR failed with NFS3ERR_ACCES(-13)")
    with (
        pytest.raises(InputError, match=r"^--nfs: `nas1:/vol`: MKDIR failed with NFS3ERR_ACCES") as refused,
        libnfs_file(parse_export("nas1:/vol"), pytest.fail),
    ):
        pytest.fail("the folder was made")
    assert "insecure" in refused.value.__notes__[0]


class Library:
    """Functions of libnfs, of which some fail."""

    class Parsed:
        contents = _libnfs.Url(b"nas1", b"/vol", None)

    def __init__(self, **codes: int) -> None:
        self.codes = codes
        self.calls: list[tuple[Any, ...]] = []

    def nfs_init_context(self) -> int:
        return self.codes.get("init", 7)

    def nfs_parse_url_dir(self, _context: int, url: bytes) -> Any:
        return None if b"bad" in url else self.Parsed

    def nfs_get_error(self, _context: int) -> bytes:
        return b"what failed"

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(_context: int, *arguments: bytes) -> int:
            self.calls.append((name, *arguments))
            return self.codes.get(name, 0)

        return call


def test_a_folder_is_made_and_removed_by_libnfs() -> None:
    library = Library()
    change(library, "make", "nfs://nas1/vol", "x")
    change(library, "remove", "nfs://nas1/vol", "x")
    mount = ("nfs_mount", b"nas1", b"/vol")
    assert library.calls == [
        *(mount, ("nfs_mkdir", b"/x")),
        *(mount, ("nfs_unlink", b"/x/data"), ("nfs_rmdir", b"/x")),
    ]


@pytest.mark.parametrize(
    ("action", "url", "codes", "calls"),
    [
        ("make", "nfs://nas1/vol", {"nfs_mount": -111}, ["nfs_mount"]),
        # The folder exists, and is not ours.
        ("make", "nfs://nas1/vol", {"nfs_mkdir": -17}, ["nfs_mount", "nfs_mkdir"]),
        ("make", "nfs://bad", {}, []),
        ("remove", "nfs://nas1/vol", {"nfs_unlink": -13}, ["nfs_mount", "nfs_unlink"]),
    ],
)
def test_a_failed_call_of_libnfs_is_an_error_and_ends_the_change(
    action: str, url: str, codes: dict[str, int], calls: list[str]
) -> None:
    library = Library(**codes)
    with pytest.raises(LibraryError, match="what failed"):
        change(library, action, url, "x")
    assert [call[0] for call in library.calls] == calls


def test_a_file_that_fio_did_not_make_is_no_obstacle_to_removing_the_folder() -> None:
    library = Library(nfs_unlink=-2)
    change(library, "remove", "nfs://nas1/vol", "x")
    assert [call[0] for call in library.calls] == ["nfs_mount", "nfs_unlink", "nfs_rmdir"]
