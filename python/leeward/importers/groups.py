"""Groups of names that are joined pair by pair."""


class Groups:
    """Groups of names; each group has one of them as its representative."""

    def __init__(self) -> None:
        """No groups yet."""
        self._to: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Representative of a group."""
        path = []
        while (to := self._to.setdefault(name, name)) != name:
            path.append(name)
            name = to
        for member in path:
            self._to[member] = name
        return name

    def join(self, one: str, other: str) -> None:
        """Merges two groups."""
        first, second = sorted((self.of(one), self.of(other)))
        self._to[second] = first
