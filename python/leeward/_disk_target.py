"""The device or file of a disk's profile: it exists, can be read, is large enough, and is not in use.

Reads change nothing. But a disk in use has other load, which changes the profile and is slowed by it. So a
disk whose file system is mounted for writing is refused, unless the user accepts this. Mounts for reading
only are accepted.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from leeward._disk import LEAST_BYTES
from leeward._mounts import Mount, mounts
from leeward._quantities import bytes_text, some
from leeward.errors import InputError

SYS = Path("/sys/dev/block")
ALLOCATED = 0.99
"""Least share of a file with blocks on the disk."""


@dataclass(frozen=True)
class Target:
    """A device or file to read.

    Attributes:
        path: Absolute path.
        size: Size in bytes.
    """

    path: Path
    size: int


def find_target(path: Path, in_use: bool) -> Target:
    """Device or file at a path.

    Args:
        path: Path of a block device, or of a regular file.
        in_use: True to accept a device that is mounted for writing, or that has another user.

    Raises:
        InputError: The path has no device or file that can be profiled.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        raise _error(path, "no such device or file") from None
    except OSError as error:
        raise _error(path, f"cannot read it: {error.strerror}") from None
    if stat.S_ISDIR(status.st_mode):
        raise _error(path, "is a folder; expected a device such as /dev/sdb, or a file on the disk")
    is_device = stat.S_ISBLK(status.st_mode)
    if not is_device and not stat.S_ISREG(status.st_mode):
        raise _error(path, "is neither a block device nor a file; expected a device such as /dev/sdb")
    size = _size(path)
    if not size:
        why = "a drive without a medium, or a loop device without a file" if is_device else "an empty file"
        raise _error(path, f"has 0 bytes, as {why}")
    if size < LEAST_BYTES:
        least = f"expected at least {bytes_text(LEAST_BYTES, None)}, on which seeks differ"
        raise _error(path, f"has {bytes_text(size, None)}; {least}")
    if is_device:
        if not in_use:
            _check_unused(path, status.st_rdev)
    elif status.st_blocks * 512 < ALLOCATED * size:
        raise _error(path, "has holes, which are not on the disk; expected a file without")
    return Target(path.resolve(), size)


def _size(path: Path) -> int:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        denied = _error(path, "no permission to read it")
        denied.add_note("run the command as root, or as a member of the group of the device")
        raise denied from None
    except OSError as error:
        raise _error(path, f"cannot read it: {error.strerror}") from None
    try:
        return os.lseek(file, 0, os.SEEK_END)
    finally:
        os.close(file)


def _check_unused(path: Path, number: int) -> None:
    """Checks that no file system, volume or other user has claimed a device for itself."""
    try:
        # Without O_CREAT, this flag claims a block device, which succeeds for one user at a time.
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise _error(path, f"cannot read it: {error.strerror}") from None
    else:
        return
    found = list(mounts_of(parts(number), mounts()))
    if found and all(mount.read_only for mount in found):
        return
    places = some([mount.point for mount in found if not mount.read_only])
    where = f"mounted at {places}" if places else "by a volume, as swap, or by a mount of another container"
    busy = _error(path, f"in use: {where}")
    busy.add_note(
        "unmount it; or give --in-use: other load then changes the profile, whose reads slow the other load"
    )
    raise busy


def parts(number: int, root: Path = SYS) -> set[int]:
    """Numbers of a device, of its partitions, and of the devices made of any of them.

    Args:
        number: Number of the device.
        root: Folder of the kernel with a folder for each device, by its number.
    """
    found: set[int] = set()
    pending = [number]
    while pending:
        each = pending.pop()
        if each in found:
            continue
        found.add(each)
        folder = root / f"{os.major(each)}:{os.minor(each)}"
        for file in [*folder.glob("*/partition"), *folder.glob("holders/*/dev")]:
            pending += _numbers(file.with_name("dev"))
    return found


def _numbers(file: Path) -> Iterator[int]:
    """The number in a file of the kernel, `8:16`; none if the device has gone."""
    try:
        major, minor = file.read_text(encoding="ascii").strip().split(":")
        yield os.makedev(int(major), int(minor))
    except (OSError, ValueError):
        return


def mounts_of(numbers: set[int], mounted: Iterable[Mount]) -> Iterator[Mount]:
    """Mounts whose file system is on one of some devices, also one with a number of its own, as Btrfs."""
    for mount in mounted:
        if mount.number in numbers:
            yield mount
            continue
        try:
            status = os.stat(mount.source)
        except OSError:
            continue
        if mount.source.startswith("/") and stat.S_ISBLK(status.st_mode) and status.st_rdev in numbers:
            yield mount


def _error(path: Path, message: str) -> InputError:
    return InputError.about("--disk", f"`{path}`: {message}")
