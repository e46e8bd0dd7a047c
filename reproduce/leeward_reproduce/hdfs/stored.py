"""Files of a run with the bytes that hosts store of them, and a cache that evicts the oldest files."""

import time

from leeward_reproduce.hdfs.namenode import Files

_POLL_S = 0.2


class StoredFiles:
    """Complete files of a run, the oldest first."""

    def __init__(self, files: Files, replicas: int, cache: int | None = None) -> None:
        """Starts without a file.

        Args:
            files: Files of HDFS.
            replicas: Copies of each block.
            cache: Bytes that a host may store. While one stores more, the oldest files are deleted, as in the
                object cache of Sinbad section 7.6. None for no limit.
        """
        self._files = files
        self._replicas = replicas
        self._cache = cache
        self._by_file: dict[str, dict[str, int]] = {}
        self._incomplete: dict[str, int] = {}
        self.evicted = 0
        """Number of deleted files."""

    def add(self, path: str, size: int) -> None:
        """Adds a file of a size in bytes."""
        self._by_file[path] = {}
        self._incomplete[path] = self._replicas * size

    def update(self) -> None:
        """Reads the places of new copies, and deletes the oldest files while a host stores too much.

        Raises:
            OSError: The NameNode does not answer.
        """
        for path, expected in list(self._incomplete.items()):
            self._by_file[path] = self._files.stored(path)
            if sum(self._by_file[path].values()) >= expected:
                del self._incomplete[path]
        while self._cache is not None and max(self.by_host().values(), default=0) > self._cache:
            oldest = next(iter(self._by_file))
            self._files.delete(oldest)
            del self._by_file[oldest]
            self._incomplete.pop(oldest, None)
            self.evicted += 1

    def settle(self, seconds: float) -> None:
        """Waits until the NameNode knows all copies: it learns of the last ones after a file is complete.

        Raises:
            OSError: The NameNode does not answer, or does not know all copies in time.
        """
        deadline = time.monotonic() + seconds
        self.update()
        while self._incomplete:
            if time.monotonic() > deadline:
                path, expected = next(iter(self._incomplete.items()))
                known = sum(self._by_file[path].values())
                raise OSError(f"{path}: {known} of {expected} bytes stored after {seconds:g} s")
            time.sleep(_POLL_S)
            self.update()

    def by_host(self) -> dict[str, int]:
        """Bytes of all files on each host that has some."""
        total: dict[str, int] = {}
        for hosts in self._by_file.values():
            for host, count in hosts.items():
                total[host] = total.get(host, 0) + count
        return total
