"""The file and the DataNodes of a block, as `hdfs fsck -blockId` shows them."""

import re
from dataclasses import dataclass

from leeward.errors import InputError

_ID = re.compile(r"blk_-?\d{1,19}(_\d+)?")
_FILE = "Block belongs to: "
_REPLICA = "Block replica on datanode/rack: "


@dataclass(frozen=True)
class Block:
    """A block, or the group of blocks of a stripe.

    Attributes:
        name: Its name, such as `blk_1073741825`.
        path: File to which it belongs.
        hosts: Names of the hosts that store it.
    """

    name: str
    path: str
    hosts: list[str]


def block_name(text: str) -> str:
    """Name of a block without its generation stamp.

    Raises:
        InputError: The text is not the name of a block.
    """
    if _ID.fullmatch(text) is None:
        message = f"`{text[:60]}`: expected the name of a block, such as blk_1073741825"
        raise InputError.about("block", message)
    return "_".join(text.split("_")[:2])


def read_block(name: str, text: str) -> Block | None:
    """The block that the output of fsck describes; None if it describes none."""
    path: str | None = None
    hosts: list[str] = []
    for line in text.splitlines():
        if line.startswith(_FILE):
            path = line.removeprefix(_FILE)
        elif line.startswith(_REPLICA):
            # Host and location are one word: `dn1.example.com/row1/rack7`.
            hosts.append(line.removeprefix(_REPLICA).split()[0].partition("/")[0])
    return None if path is None else Block(name, path, hosts)
