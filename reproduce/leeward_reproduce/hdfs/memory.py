"""Blocks of DataNodes in memory, of which only the ends stay: what comes before is given back to the machine.

DataNodes write blocks as always, and read nothing of them again until a client does. So the files of a
benchmark that only writes need no room for all of their bytes.
"""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

END = 1 << 20
"""Bytes at the end of a block that stay. DataNodes compute the checksum of an incomplete chunk there."""
_BLOCKS = ("rbw/blk_*", "finalized/subdir*/subdir*/blk_*")
_UNIT = 512
"""Bytes of a block of `stat`."""
_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_PERIOD_S = 0.5
_libc = ctypes.CDLL(None, use_errno=True)


def free(data: Path) -> int:
    """Gives back the memory of blocks but their ends; returns the number of freed bytes.

    Args:
        data: Folder with the data of DataNodes, a folder for each.

    Raises:
        OSError: The file system cannot give back parts of files.
    """
    freed = 0
    for pattern in _BLOCKS:
        for path in data.glob(f"*/dfs/current/BP-*/current/{pattern}"):
            # A DataNode moves a block when it is complete, and deletes it with its file.
            with suppress(FileNotFoundError):
                freed += _free(path)
    return freed


def _free(path: Path) -> int:
    before = path.stat()
    length = before.st_size - END
    if length <= 0 or before.st_blocks * _UNIT <= 2 * END:
        return 0
    descriptor = os.open(path, os.O_WRONLY)
    try:
        mode, size = ctypes.c_int(_PUNCH_HOLE | _KEEP_SIZE), ctypes.c_long(length)
        if _libc.fallocate(descriptor, mode, ctypes.c_long(0), size):
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), str(path))
        return max(before.st_blocks - os.fstat(descriptor).st_blocks, 0) * _UNIT
    finally:
        os.close(descriptor)


@contextmanager
def freeing(data: Path) -> Iterator[None]:
    """Gives back the memory of blocks again and again, until the end of the block.

    Raises:
        OSError: The file system cannot give back parts of files.
    """
    ended = threading.Event()
    errors: list[OSError] = []

    def work() -> None:
        while not ended.wait(_PERIOD_S):
            try:
                free(data)
            except OSError as error:
                errors.append(error)
                return

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if errors:
        raise errors[0]
