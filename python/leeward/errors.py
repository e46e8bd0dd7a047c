"""The one error for input that cannot be used."""


class InputError(ValueError):
    """Input that was refused: a file, a text or a table; where it is wrong and what was expected.

    Printed on one line: `cluster.yaml:7:12: racks[3].uplink: ...`.

    Attributes:
        file: The file as the user named it, or what stands in for one (`<text>`, `flows`).
        line: Line from 1, where known.
        column: Column of that line from 1, where known.
        field: The field, as a path (`racks[3].uplink`) or the name of a table's column, where known.
        message: What is wrong and what was expected. For a table it begins with the row, counted from 0.
    """

    def __init__(
        self, file: str, line: int | None, column: int | None, field: str | None, message: str
    ) -> None:
        """Takes the attributes, in order."""
        super().__init__(file, line, column, field, message)
        self.file = file
        self.line = line
        self.column = column
        self.field = field
        self.message = message

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return ": ".join(part for part in (place, self.field, self.message) if part is not None)
