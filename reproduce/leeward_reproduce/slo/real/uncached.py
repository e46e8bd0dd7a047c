"""Keeps the files of a folder out of the page cache: `python uncached.py FOLDER`.

Reads of clients then reach the disk, as those of volumes that are larger than the memory of their server. A
page is dropped when two looks in a row found it complete. Between the end of its I/O and the copy to its
reader, a page looks like any other one, and a server that finds it dropped there reads it from the disk
again. The script imports the standard library only, and runs until it is ended.
"""

import ctypes
import mmap
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PERIOD_S = 0.05
"""Time between two looks. A complete page stays for one to two of them: at 40 MB/s, at most 4 MB."""
SEARCH_S = 1.0
"""Time between two searches for new files."""
PAGE = mmap.PAGESIZE
_RUN = re.compile(b"\x01+")
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_LIBC.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
_FAILED = ctypes.c_void_p(-1).value


def runs(before: bytes, now: bytes) -> Iterator[tuple[int, int]]:
    """Ranges of pages that are complete in two lists, which have a byte for each page: 1 if complete."""
    both = int.from_bytes(before, "big") & int.from_bytes(now, "big")
    for run in _RUN.finditer(both.to_bytes(len(now), "big")):
        yield run.span()


class File:
    """A file whose pages are dropped. It is mapped, so that the kernel lists its pages, and never read."""

    def __init__(self, path: Path) -> None:
        """Opens a file.

        Raises:
            OSError: It is not there, or is empty, or cannot be mapped.
        """
        self.descriptor = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self.descriptor).st_size
        self._pages = ctypes.create_string_buffer(-(-self.size // PAGE))
        self._seen = bytes(len(self._pages))
        self._address = _LIBC.mmap(None, self.size, mmap.PROT_READ, mmap.MAP_SHARED, self.descriptor, 0)
        if self._address == _FAILED:
            os.close(self.descriptor)
            raise OSError(ctypes.get_errno(), f"cannot map {path}")

    def drop(self) -> None:
        """Drops the clean pages that are complete, and were so at the last call."""
        if _LIBC.mincore(self._address, self.size, self._pages):
            return
        complete = self._pages.raw
        for start, end in runs(self._seen, complete):
            os.posix_fadvise(self.descriptor, start * PAGE, (end - start) * PAGE, os.POSIX_FADV_DONTNEED)
        self._seen = complete

    def close(self) -> None:
        """Closes the file."""
        _LIBC.munmap(self._address, self.size)
        os.close(self.descriptor)


def search(folder: Path, files: dict[Path, File]) -> None:
    """Opens new files and those that have another size, and closes those that are gone."""
    found: dict[Path, int] = {}
    for path in folder.rglob("*"):
        with suppress(OSError):
            if path.is_file() and not path.is_symlink():
                found[path] = path.stat().st_size
    for path in [path for path, file in files.items() if found.get(path) != file.size]:
        files.pop(path).close()
    for path in found.keys() - files.keys():
        with suppress(OSError):
            files[path] = File(path)


def main(folder: Path) -> None:
    """Drops pages until the process ends."""
    files: dict[Path, File] = {}
    searched = -SEARCH_S
    while True:
        if time.monotonic() - searched >= SEARCH_S:
            search(folder, files)
            searched = time.monotonic()
        for file in files.values():
            file.drop()
        time.sleep(PERIOD_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
