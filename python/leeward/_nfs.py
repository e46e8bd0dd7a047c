"""Ways to an NFS export: a mount of the kernel, libnfs, or Leeward's client. A profile is taken through one.

A profile writes only into a file that it made. On a mount this is a new file, and so for Leeward's client
(`_nfs_client`). Through libnfs it is a file in a new folder, because NFS makes a folder only if none of this
name exists.
"""

import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from leeward import _libnfs
from leeward._fio_run import check_installed, has_option
from leeward._mounts import Mount, mounts
from leeward._quantities import duration_text
from leeward.errors import InputError

ENGINE, ENGINE_OPTION = "nfs", "nfs_url"
KINDS = ("nfs", "nfs4")
REACHED_S = 20.0
"""Time within which a server must answer."""
SHOWN_OPTIONS = ("vers", "proto", "rsize", "wsize", "nconnect")
"""Options of a mount that change its speed."""
STATISTICS = Path("/proc/self/mountstats")
PERMISSION = "the export must let this host and user write; without root, it needs the option `insecure`"
"""Hint for a refused file or folder."""


@dataclass(frozen=True)
class Export:
    """A folder that an NFS server exports.

    Attributes:
        server: Name or address of the server, without brackets.
        path: Absolute path on the server.
        url: URL for libnfs.
        by_url: True if the user gave a URL, which has settings of libnfs.
    """

    server: str
    path: str
    url: str
    by_url: bool

    def __str__(self) -> str:
        server = f"[{self.server}]" if ":" in self.server else self.server
        return self.url if self.by_url else f"{server}:{self.path}"


def parse_export(text: str) -> Export:
    """Parses `server:/path`, `[fd00::1]:/path`, or a URL of libnfs, `nfs://server/path?version=4`.

    Raises:
        InputError: The text has another form.
    """
    by_url = text.startswith("nfs://")
    if by_url:
        # libnfs takes the text before the path as the server, so an IPv6 address has no brackets.
        server, slash, rest = text.removeprefix("nfs://").partition("/")
        path = slash + rest.partition("?")[0]
    elif text.startswith("["):
        server, _, path = text[1:].partition("]:")
    else:
        server, _, path = text.partition(":")
    if not (text.isprintable() and server and path.startswith("/")) or (not by_url and "?" in path):
        message = f"`{text[:80]}`: expected SERVER:/PATH, such as nas1:/vol, or a URL such as nfs://nas1/vol"
        raise InputError.about("--nfs", message)
    if "/../" in f"{path}/":
        raise InputError.about("--nfs", f"`{text[:80]}`: expected a path without `..`")
    return Export(server, path, text if by_url else f"nfs://{server}{path}", by_url)


@dataclass(frozen=True)
class Mounted:
    """The export below a mount point.

    Attributes:
        folder: Folder of the export.
        mount: The mount.
    """

    folder: Path
    mount: Mount

    def text(self) -> str:
        """Description for the profile."""
        options = self.mount.options
        shown = [f"{name}={options[name]}" for name in SHOWN_OPTIONS if name in options]
        return f"through the mount of {self.mount.source} ({', '.join((self.mount.kind, *shown))})"


def find_mount(export: Export, mounted: Iterable[Mount] | None = None) -> Mounted | None:
    """The mount with the longest part of an export's path; of equal ones the last, which covers the others.

    Args:
        export: The export.
        mounted: Mounts to search; by default those of this process.
    """
    best: tuple[int, Mounted] | None = None
    addresses: set[str] | None = None
    for mount in mounts() if mounted is None else mounted:
        # The server of a mount may be an address in brackets.
        server, colon, path = mount.source.rpartition(":/")
        if mount.kind not in KINDS or not colon:
            continue
        top = PurePosixPath(f"/{path}") / mount.root.lstrip("/")
        if not PurePosixPath(export.path).is_relative_to(top):
            continue
        names = {server.strip("[]").lower(), mount.options.get("addr", "").lower()}
        if export.server.lower() not in names:
            addresses = _addresses(export.server) if addresses is None else addresses
            if not names & addresses:
                continue
        below = PurePosixPath(export.path).relative_to(top)
        found = Mounted(Path(mount.point) / below, mount)
        if best is None or len(top.parts) >= best[0]:
            best = len(top.parts), found
    return best[1] if best else None


def _addresses(server: str) -> set[str]:
    with suppress(OSError, UnicodeError):
        return {str(found[4][0]).lower() for found in socket.getaddrinfo(server, None)}
    return set()


def check_reached(mounted: Mounted) -> None:
    """Checks that the server of a mount answers: a request to another one waits for a long time.

    Raises:
        InputError: It does not answer, or the folder does not exist.
    """
    command = ["stat", "--file-system", "--", str(mounted.folder)]
    try:
        ended = subprocess.run(command, capture_output=True, check=False, timeout=REACHED_S)
    except subprocess.TimeoutExpired:
        message = f"the server did not answer within {duration_text(REACHED_S)}"
        raise InputError.about("--nfs", f"`{mounted.folder}`: {message}") from None
    except OSError:
        # Without this program the first request of the measurement waits instead.
        return
    if ended.returncode:
        why = ended.stderr.decode(errors="replace").strip().rpartition(": ")[2] or "cannot read it"
        raise InputError.about("--nfs", f"`{mounted.folder}`: {why}")


def has_engine() -> bool:
    """True if fio opens exports without a mount. Debian builds fio without that."""
    return shutil.which("fio") is not None and has_option(ENGINE, ENGINE_OPTION)


def check_engine(export: Export) -> None:
    """Checks that fio opens exports without a mount.

    Raises:
        InputError: fio is not installed, or has no engine for NFS.
    """
    check_installed()
    if not has_option(ENGINE, ENGINE_OPTION):
        missing = InputError.about("--nfs", f"`{export}`: fio has no engine `{ENGINE}`")
        missing.add_note(
            f"give SERVER:/PATH, for NFS version 3; or install fio with libnfs: its --enghelp={ENGINE} has"
            f" {ENGINE_OPTION}"
        )
        raise missing


@contextmanager
def libnfs_file(export: Export, warn: Callable[[str], object]) -> Iterator[str]:
    """Path of a new file in a new folder of an export; both are removed at the end.

    Args:
        export: The export.
        warn: Called with a message if they cannot be removed.

    Raises:
        InputError: libnfs is not installed, the server does not answer, or it refuses the folder.
    """
    folder = f".leeward-profile-{secrets.token_hex(8)}"
    if problem := _change("make", export, folder):
        error = InputError.about("--nfs", f"`{export}`: {problem}")
        if "ACCES" in problem or "PERM" in problem:
            error.add_note(PERMISSION)
        raise error
    try:
        yield f"{folder}/{_libnfs.FILE}"
    finally:
        if problem := _change("remove", export, folder):
            warn(f"--nfs: `{export}`: cannot remove the folder {folder}: {problem}")


def _change(action: str, export: Export, folder: str) -> str:
    """Makes or removes a folder of an export; returns the problem, or an empty text."""
    # Isolated, because the folder of this module has files with names of the standard library.
    command = [sys.executable, "-I", _libnfs.__file__, action, export.url, folder]
    try:
        ended = subprocess.run(command, capture_output=True, check=False, timeout=REACHED_S)
    except subprocess.TimeoutExpired:
        return f"the server did not answer within {duration_text(REACHED_S)}"
    if not ended.returncode:
        return ""
    lines = ended.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"libnfs ended with code {ended.returncode}"


def sent_and_received(mount: Mount, text: str | None = None) -> tuple[int, int] | None:
    """Bytes of all calls and of all replies of a mount so far; None where the kernel has no such list.

    Args:
        mount: The mount.
        text: Content of the kernel's list; by default that of this process.
    """
    if text is None:
        try:
            text = STATISTICS.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
    sent = received = 0
    begun = operations = False
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["device"]:
            begun = words[2:5] == ["mounted", "on", mount.point.replace(" ", "\\040")]
            operations = False
        elif begun and words == ["per-op", "statistics"]:
            operations = True
        elif begun and operations and len(words) > 5 and all(word.isdecimal() for word in words[1:6]):
            # Operation: calls, transmissions, timeouts, bytes sent, bytes received, ...
            sent, received = sent + int(words[4]), received + int(words[5])
    return (sent, received) if sent or received else None
