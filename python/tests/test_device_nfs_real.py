"""Exports of a real NFS server, nfs-ganesha: folders through libnfs, profiles by Leeward's client and by fio.

The server and its clients are in namespaces of their own, so that their addresses, ports and mounts are
nobody else's, and all of their processes end with the server.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leeward import _libnfs
from support.parts import lack, require, require_root

PATIENCE_S = 60
ADDRESS = "10.77.0.1"
# ganesha needs an address that is not a loopback address, and a file system with handles of files.
SCRIPT = f"""\
set -eu
cd "$1"
ip link set lo up
ip address add {ADDRESS}/32 dev lo
mount -t tmpfs tmpfs /run
mkdir -p /run/rpcbind /run/ganesha /run/sendsigs.omit.d vol
truncate -s 256M image
mkfs.ext4 -q image
mount -o loop image vol
chmod 777 vol
rpcbind -f -w &
sleep 1
ganesha.nfsd -F -L ganesha.log -f ganesha.conf -p /run/ganesha/pid -N EVENT &
wait
"""
CONFIGURATION = """\
NFS_CORE_PARAM {{ Protocols = 3; NFS_Port = 2049; MNT_Port = 20048; NLM_Port = 20049;
    Enable_RQUOTA = false; }}
EXPORT {{ Export_Id = 1; Path = {folder}/vol; Pseudo = /vol; Protocols = 3; Access_Type = {access};
    Squash = No_Root_Squash; SecType = sys; FSAL {{ Name = VFS; }} }}
NFSv4 {{ Graceless = true; }}
"""
"""Without the last line, calls such as REMOVE have to be repeated for 90 s after the start, in NFSv3 too."""
LEEWARD = "from leeward_command import main; main()"


class Server:
    """A running server.

    Attributes:
        folder: Its folder, with the export `vol`.
        export: The export, as `--nfs` takes it.
    """

    def __init__(self, folder: Path, process: int) -> None:
        self.folder = folder
        self.export = f"{ADDRESS}:{folder}/vol"
        self._process = process

    def run(self, *command: str | Path, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        """Runs a program in the namespaces of the server, in its folder."""
        enter = ("nsenter", "--target", str(self._process), "--mount", "--net", "--pid")
        # The current folder is another one after the change of namespaces.
        shell = ("sh", "-c", 'cd "$0" && exec "$@"')
        whole: list[str | Path] = [*enter, *shell, self.folder, *command]
        return subprocess.run(whole, capture_output=True, text=True, check=False, timeout=seconds)

    def change(self, action: str, name: str, path: str = "/vol") -> subprocess.CompletedProcess[str]:
        """Makes or removes a folder of an export, as a profile does."""
        url = f"nfs://{ADDRESS}{self.folder}{path}"
        return self.run(sys.executable, "-I", _libnfs.__file__, action, url, name, seconds=30)

    def names(self) -> list[str]:
        """Names in the export."""
        return self.run("ls", "-A", "vol").stdout.split()


@pytest.fixture(params=["RW"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server that exports an empty file system."""
    require_root()
    require("ganesha.nfsd", package="nfs-ganesha nfs-ganesha-vfs")
    require("rpcbind", "unshare", "nsenter")
    if _libnfs.load() is None:
        lack("no libnfs: as root, apt-get install libnfs-utils")
    (tmp_path / "ganesha.conf").write_text(CONFIGURATION.format(folder=tmp_path, access=request.param))
    (tmp_path / "server.sh").write_text(SCRIPT)
    namespaces = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    command: list[str | Path] = ["unshare", *namespaces, "--propagation", "private"]
    command += ["sh", tmp_path / "server.sh", tmp_path]
    with (tmp_path / "output.log").open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            yield _started(tmp_path, process)
        finally:
            process.kill()
            process.wait()


def _started(folder: Path, process: subprocess.Popen[bytes]) -> Server:
    """The server when it answers."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.5)
        try:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            server = Server(folder, int(children[0]))
            made = server.change("make", "probe")
        except (OSError, IndexError, subprocess.TimeoutExpired):
            continue
        if not made.returncode:
            assert not server.change("remove", "probe").returncode
            return server
        # The answer of an export for reading only is a refusal.
        if "ROFS" in made.stderr:
            return server
    logs = [path.read_text() for path in (folder / "output.log", folder / "ganesha.log") if path.exists()]
    return lack(f"nfs-ganesha does not serve here: {' '.join(logs)[-2000:]}")


def test_a_folder_of_an_export_is_made_once_and_removed_with_its_file(server: Server) -> None:
    before = server.names()
    assert server.change("make", "ours").returncode == 0
    again = server.change("make", "ours")
    assert again.returncode == 1
    assert "EXIST" in again.stderr
    server.run("sh", "-c", "echo measured > vol/ours/data")
    assert server.change("remove", "ours").returncode == 0
    assert server.names() == before
    # What has gone already is no error.
    assert server.change("remove", "ours").returncode == 0


def test_a_folder_with_files_of_others_is_not_removed(server: Server) -> None:
    assert server.change("make", "ours").returncode == 0
    server.run("sh", "-c", "echo precious > vol/ours/precious")
    refused = server.change("remove", "ours")
    assert refused.returncode == 1
    assert "NOTEMPTY" in refused.stderr
    assert server.run("cat", "vol/ours/precious").stdout == "precious\n"


@pytest.mark.parametrize("server", ["RO"], indirect=True)
def test_an_export_for_reading_only_is_refused(server: Server) -> None:
    refused = server.change("make", "ours")
    assert refused.returncode == 1
    assert "ROFS" in refused.stderr


def test_a_path_that_is_not_exported_is_refused(server: Server) -> None:
    refused = server.change("make", "ours", path="/none")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.strip()


def test_an_export_is_profiled_through_libnfs(server: Server) -> None:
    if "nfs_url" not in server.run("fio", "--enghelp=nfs").stdout:
        # Debian builds fio without libnfs.
        pytest.skip("fio is not installed, or has no engine `nfs`")
    before = server.names()
    sizes = ("--sizes", "4KiB,64KiB", "--mixes", "50%", "--for", "1s", "--file-size", "4MiB", "--depth", "4")
    command = (sys.executable, "-c", LEEWARD, "device", "profile", "--nfs", server.export)
    result = server.run(*command, *sizes, "-o", "json")
    assert result.returncode == 0, result.stderr
    device = json.loads((server.folder / "device.json").read_text())
    assert len(device["table"]) == 2
    assert {row["kind"] for row in device["unloaded"]} == {"read", "write"}
    assert f"through libnfs, {server.export}" in device["measured"]
    network = json.loads(result.stdout)["network"]
    assert network["read_bytes"] > 4096
    assert network["write_bytes"] >= 4 << 20
    assert server.names() == before


def profile(server: Server, *options: str) -> subprocess.CompletedProcess[str]:
    """Profiles the export by Leeward's client: without fio, as far as the command can see."""
    loads = ("--sizes", "4KiB,64KiB", "--mixes", "30%", "--for", "1s", "--file-size", "4MiB", "--depth", "4")
    python = (sys.executable, "-c", LEEWARD, "device", "profile", "--nfs", server.export, *loads, *options)
    return server.run("env", "PATH=/none", *python)


def test_an_export_is_profiled_without_fio_by_a_client_of_leeward(server: Server) -> None:
    before = server.names()
    result = profile(server, "-o", "json")
    assert result.returncode == 0, result.stderr
    device = json.loads((server.folder / "device.json").read_text())
    assert [row["size_bytes"] for row in device["table"]] == [4096, 65_536]
    assert all(row["read_iops"] > 0 and row["write_iops"] > 0 for row in device["table"])
    assert {row["kind"] for row in device["unloaded"]} == {"read", "write"}
    assert f"NFSv3, through Leeward's client, {server.export}" in device["measured"]
    network = json.loads(result.stdout)["network"]
    assert network["read_bytes"] > 4096
    assert network["write_bytes"] > 4 << 20
    lines = (server.folder / "device.nfs.jsonl").read_text().splitlines()
    assert len(lines) == 2 * 5
    mixed = [one for one in map(json.loads, lines) if one["read_percent"] == 30]
    shares = [one["reads"] / (one["reads"] + one["writes"]) for one in mixed]
    assert shares == pytest.approx([0.3] * 2, abs=0.1)
    assert server.names() == before


@pytest.mark.parametrize("server", ["RO"], indirect=True)
def test_an_export_for_reading_only_has_no_profile(server: Server) -> None:
    result = profile(server)
    assert result.returncode == 2
    assert result.stderr.startswith("error: --nfs: ")
    assert "read-only file system" in result.stderr
    assert not (server.folder / "device.json").exists()
