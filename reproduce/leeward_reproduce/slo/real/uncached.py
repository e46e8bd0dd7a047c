"""Keeps the files of a folder out of the page cache: `python uncached.py FOLDER`.

Reads of clients then reach the disk, as those of volumes that are larger than the memory of their server. The
script imports the standard library only, and runs until it is ended.
"""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

PERIOD_S = 0.02
"""Time between two rounds. At 40 MB/s, at most 0.8 MB are in the cache."""
SEARCH_S = 1.0
"""Time between two searches for new files."""


def drop(descriptors: dict[Path, int]) -> None:
    """Drops the clean pages of open files."""
    for descriptor in descriptors.values():
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def search(folder: Path, descriptors: dict[Path, int]) -> None:
    """Opens new files, and closes those that are gone."""
    files = {path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}
    for path in set(descriptors) - files:
        os.close(descriptors.pop(path))
    for path in files - set(descriptors):
        with suppress(OSError):
            descriptors[path] = os.open(path, os.O_RDONLY)


def main(folder: Path) -> None:
    """Drops pages until the process ends."""
    descriptors: dict[Path, int] = {}
    searched = -SEARCH_S
    while True:
        if time.monotonic() - searched >= SEARCH_S:
            search(folder, descriptors)
            searched = time.monotonic()
        drop(descriptors)
        time.sleep(PERIOD_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
