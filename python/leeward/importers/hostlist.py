"""Lists of hosts in Slurm's notation: `node[01-16,20],login1`, `r[1-4]n[01-32]`."""

import re
from itertools import product

_NUMBERS = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


def expand(text: str, most: int) -> list[str]:
    """Names of a list, in its order; numbers keep their leading zeros.

    Args:
        text: The list.
        most: Greatest number of names.

    Raises:
        ValueError: The text is not such a list, or has more names; the message names the expected form.
    """
    names: list[str] = []
    for part in _parts(text):
        pieces = re.split(r"\[([^\[\]]*)\]", part)
        choices = [
            _numbers(piece, most) if odd % 2 else [piece]
            for odd, piece in enumerate(pieces)
            if piece or odd % 2
        ]
        if any(bracket in piece for piece in pieces[::2] for bracket in "[]"):
            raise ValueError(f"`{part[:60]}`: expected every `[` to be closed by a `]`")
        count = 1
        for choice in choices:
            count *= len(choice)
        if count + len(names) > most:
            raise ValueError(f"`{part[:60]}`: more than {most:,} names")
        names += ["".join(choice_parts) for choice_parts in product(*choices)]
    return names


def _parts(text: str) -> list[str]:
    """Parts between commas outside of brackets."""
    parts = [part.strip() for part in re.split(r",(?![^\[]*\])", text)]
    if not all(parts):
        raise ValueError(f"`{text[:60]}`: expected names separated by single commas")
    return parts


def _numbers(text: str, most: int) -> list[str]:
    """Numbers in brackets."""
    result: list[str] = []
    for part in text.split(","):
        match = _NUMBERS.fullmatch(part.strip())
        if match is None or len(part) > 40:
            raise ValueError(f"`[{text[:60]}]`: expected numbers and ranges, as in [01-16,20]")
        first, last = match[1], match[2] or match[1]
        if int(first) > int(last):
            raise ValueError(f"`[{text[:60]}]`: the range {part.strip()} ends before it begins")
        if int(last) - int(first) + 1 + len(result) > most:
            raise ValueError(f"`[{text[:60]}]`: more than {most:,} names")
        result += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return result
