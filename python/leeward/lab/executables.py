"""Programs that the lab's libraries do not reach."""

import struct
from os import PathLike

_MAGIC = b"\x7fELF\x02\x01"
"""Beginning of a program in the Executable and Linkable Format: 64 bits, the least byte first."""
_INTERPRETER = 3
"""Kind of the program header with the dynamic loader, PT_INTERP."""


def is_static(program: str | PathLike[str]) -> bool:
    """Whether a program is statically linked: it has no dynamic loader, which preloads libraries.

    Virtual time and reports of what programs write are such libraries. A script is not static, whatever its
    interpreter is.

    Raises:
        OSError: The file cannot be read.
    """
    with open(program, "rb") as file:
        header = file.read(64)
        if len(header) < 64 or not header.startswith(_MAGIC):
            return False
        (offset,) = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        file.seek(offset)
        table = file.read(size * count)
    kinds = [table[at : at + 4] for at in range(0, len(table), max(size, 1))]
    return struct.pack("<I", _INTERPRETER) not in kinds
