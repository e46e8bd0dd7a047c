"""Use of the processors of this machine, by all of its programs."""

from pathlib import Path

_STAT = Path("/proc/stat")


class Processors:
    """The processors since a moment."""

    def __init__(self) -> None:
        """Takes the moment."""
        self._start = _ticks()

    def busy(self) -> float:
        """Share of their time in use, 0 to 1."""
        used, total = (now - then for now, then in zip(_ticks(), self._start, strict=True))
        return used / total if total else 0.0


def _ticks() -> tuple[int, int]:
    """Ticks in which processors were in use since the start of the machine, and all ticks."""
    ticks = [int(field) for field in _STAT.read_text(encoding="ascii").partition("\n")[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)
