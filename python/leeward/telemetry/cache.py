"""The cache of Prometheus' answers: what is there, and how it is cleared.

    FOLDER/SERVER/QUERY/START-END.parquet   readings after START up to END, in milliseconds since 1970
    FOLDER/SERVER/QUERY/about.json          address of the server, and the query

SERVER is a digest of all that may change an answer to the same query: the address, and the identity of the
client (tenant and other headers, the user or client). Pieces that begin with `UNSURE` may be incomplete. They
serve one run.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from leeward._files import atomic_file
from leeward.data.folder import folder as user_folder

if TYPE_CHECKING:
    from leeward.telemetry.http import Server

UNSURE = "unsure-"
"""Beginning of the names of pieces that the next run does not use."""
ABOUT = "about.json"
_PIECE = re.compile(r"(?:unsure-)?(\d{1,15})-(\d{1,15})\.parquet", re.ASCII)


@dataclass(frozen=True)
class CachedQuery:
    """Cached answers to a query.

    Attributes:
        server: Address of the server; empty if the cache is of an earlier version.
        query: The query.
        first_ms: Start of the first piece, in milliseconds since 1970.
        last_ms: End of the last piece.
        pieces: Number of pieces.
        size_bytes: Size of the pieces.
        folder: Folder of the pieces.
    """

    server: str
    query: str
    first_ms: int
    last_ms: int
    pieces: int
    size_bytes: int
    folder: Path


def cache_folder(keep: str | PathLike[str] | None) -> Path:
    """Folder of the cache; by default in the user's cache."""
    return Path(keep) if keep is not None else user_folder() / "prometheus"


def server_folder(folder: Path, server: "Server") -> Path:
    """Folder of the answers of a server to one identity (`Access.identity`)."""
    return folder / hashlib.sha256(f"{server.url}\n{server.access.identity}".encode()).hexdigest()[:12]


def query_folder(folder: Path, query: str, steps: bool) -> Path:
    """Folder of the pieces of a query, or of a query in steps."""
    return folder / hashlib.sha256(f"{steps} {query}".encode()).hexdigest()[:16]


def describe(folder: Path, url: str, query: str) -> None:
    """Makes the folder of a query, and notes in it what it is."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ABOUT).exists():
        with atomic_file(folder / ABOUT) as temporary:
            temporary.write_text(json.dumps({"server": url, "query": query}) + "\n")


def cached_pieces(folder: Path) -> Iterator[tuple[int, int]]:
    """Start and end of the complete pieces of a query."""
    for file in folder.glob("*.parquet"):
        match = _PIECE.fullmatch(file.name)
        if match and not file.name.startswith(UNSURE):
            yield int(match[1]), int(match[2])


def clear(folder: Path, since_ms: int, until_ms: int) -> None:
    """Deletes the pieces of a query that overlap a time."""
    for start, end in list(cached_pieces(folder)):
        if start < until_ms and end > since_ms:
            (folder / f"{start}-{end}.parquet").unlink(missing_ok=True)


def cached_queries(folder: Path) -> list[CachedQuery]:
    """All queries in a cache, by server and query."""
    found = []
    for place in sorted(folder.glob("*/*/")):
        files = [(match, file) for file in place.glob("*.parquet") if (match := _PIECE.fullmatch(file.name))]
        about = {"server": "", "query": ""}
        try:
            about |= json.loads((place / ABOUT).read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError):
            if not files:
                continue
        found.append(
            CachedQuery(
                str(about["server"]),
                str(about["query"]),
                min((int(match[1]) for match, _ in files), default=0),
                max((int(match[2]) for match, _ in files), default=0),
                len(files),
                sum(file.stat().st_size for _, file in files),
                place,
            )
        )
    return sorted(found, key=lambda one: (one.server, one.query, one.folder))


def delete(query: CachedQuery) -> None:
    """Deletes the cached answers to a query. Other files in its folder stay."""
    for file in query.folder.glob("*.parquet"):
        if _PIECE.fullmatch(file.name):
            file.unlink(missing_ok=True)
    (query.folder / ABOUT).unlink(missing_ok=True)
    for folder in (query.folder, query.folder.parent):
        try:
            folder.rmdir()
        except OSError:
            return
