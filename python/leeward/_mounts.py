"""Mounts of this process, from the kernel's list `/proc/self/mountinfo`."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

LIST = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """A mounted file system.

    Attributes:
        number: Number of its device.
        root: Folder of the file system that is mounted.
        point: Folder where it is mounted.
        kind: Type of the file system, such as `nfs4`.
        source: Device, or `server:/path`.
        options: Options of the file system.
        read_only: True if it is mounted for reading only.
    """

    number: int
    root: str
    point: str
    kind: str
    source: str
    options: dict[str, str]
    read_only: bool


def mounts(text: str | None = None) -> list[Mount]:
    """Mounts in the order of the kernel: a later mount covers an earlier one at the same place.

    Args:
        text: Content of the kernel's list; by default that of this process. Unknown lines are left out.
    """
    if text is None:
        try:
            text = LIST.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            # A system without the list.
            return []
    return [mount for line in text.splitlines() if (mount := _mount(line))]


def _mount(line: str) -> Mount | None:
    # 36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue
    first, dash, last = line.partition(" - ")
    fields, rest = first.split(" "), last.split(" ")
    if not dash or len(fields) < 6 or len(rest) < 3:
        return None
    major, colon, minor = fields[2].partition(":")
    if not (colon and major.isdecimal() and minor.isdecimal()):
        return None
    own = fields[5].split(",")
    shared = dict(_option(option) for option in rest[2].split(","))
    return Mount(
        os.makedev(int(major), int(minor)),
        _unescape(fields[3]),
        _unescape(fields[4]),
        rest[0],
        _unescape(rest[1]),
        shared,
        "ro" in own or "ro" in shared,
    )


def _option(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _unescape(text: str) -> str:
    """A name of the list, in which blanks and backslashes are octal numbers."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
