"""Fetching and checking files of traces.

A file appears under its name only when it is complete and its checksum is correct. A present file is checked
and never overwritten.
"""

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from io import BufferedReader
from pathlib import Path
from ssl import SSLCertVerificationError
from typing import BinaryIO, cast
from urllib.parse import quote, unquote, urlsplit

from urllib3 import Retry, Timeout
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    MaxRetryError,
    NewConnectionError,
    ProxyError,
)

from leeward._files import atomic_file, ensure_folder
from leeward._http import connections, root_cause
from leeward._native import __version__
from leeward.data.registry import TraceFile
from leeward.errors import InputError

HOST = "https://raw.githubusercontent.com"
_CHUNK = 1 << 16
_TIMEOUT = 30.0
"""Seconds without a byte."""
_REDIRECTS = Retry(total=None, connect=0, read=0, redirect=5, status=0, other=0)


class State(StrEnum):
    """State of a file on disk."""

    valid = "valid"
    missing = "missing"
    invalid = "invalid"


class FetchError(OSError):
    """A file could not be fetched, and stays missing."""


class HostError(FetchError):
    """No connection to the host can be made, so no other file can be fetched from it."""


def state(folder: Path, file: TraceFile) -> State:
    """Checks a file on disk against its checksum.

    Args:
        folder: Folder of its set.
        file: The file.
    """
    path = folder / file.name
    if not path.is_file():
        return State.missing
    digest, size = hashlib.sha256(), 0
    try:
        with gzip.open(path) if file.compressed else path.open("rb") as opened:
            for part in _parts(opened):
                digest.update(part)
                size += len(part)
                if size > file.bytes:
                    return State.invalid
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return State.invalid
    return State.valid if digest.hexdigest() == file.sha256 else State.invalid


def url(file: TraceFile) -> str:
    """Address of a file that can be fetched; LEEWARD_DATA_MIRROR replaces the host.

    Raises:
        InputError: LEEWARD_DATA_MIRROR is not an address of http, https or file.
    """
    base = os.environ.get("LEEWARD_DATA_MIRROR") or HOST
    try:
        supported = urlsplit(base).scheme in ("http", "https", "file")
    except ValueError:
        supported = False
    if not supported:
        message = f"`{base}`: expected the address of a mirror, such as https://mirror.example.org/traces"
        raise InputError.about("LEEWARD_DATA_MIRROR", message)
    return f"{base.rstrip('/')}/{quote(f'{file.repository}/{file.commit}/{file.path}')}"


def fetch(folder: Path, file: TraceFile, progress: Callable[[int], object] | None = None) -> None:
    """Fetches a file that is missing.

    Args:
        folder: Folder of its set; made if it is missing, and removed again if the download fails.
        file: The file, which has a path.
        progress: Called with the number of bytes of each part.

    Raises:
        FetchError: The download failed, ended early, or has a wrong checksum.
        HostError: No connection to the host can be made.
        OSError: The file cannot be written.
    """
    address = url(file)
    with (
        ensure_folder(folder),
        atomic_file(folder / file.name) as temporary,
        temporary.open("wb") as raw,
        _writer(file, raw) as out,
    ):
        digest, size = hashlib.sha256(), 0
        for part in _download(address):
            digest.update(part)
            size += len(part)
            if size > file.bytes:
                raise FetchError(f"{address}: more than the {file.bytes:,} bytes expected; not kept")
            out.write(part)
            if progress:
                progress(len(part))
        if size < file.bytes:
            raise FetchError(f"{address}: ended after {size:,} of {file.bytes:,} bytes; not kept")
        if digest.hexdigest() != file.sha256:
            raise FetchError(f"{address}: SHA-256 {digest.hexdigest()}, but expected {file.sha256}; not kept")


def _writer(file: TraceFile, raw: BinaryIO) -> AbstractContextManager[BinaryIO]:
    if not file.compressed:
        return nullcontext(raw)
    # The header has neither time nor name, so that equal content gives equal bytes.
    return cast("AbstractContextManager[BinaryIO]", gzip.GzipFile("", "wb", fileobj=raw, mtime=0))


def _download(address: str) -> Iterator[bytes]:
    """Bytes of a file, in parts.

    Raises:
        FetchError: The server does not answer, refuses, or closes the connection early.
        HostError: No connection to the server can be made.
    """
    error_type = FetchError
    try:
        if urlsplit(address).scheme == "file":
            with open(unquote(urlsplit(address).path), "rb") as opened:
                yield from _parts(opened)
            return
        pools = connections(address)
        try:
            response = pools.request(
                "GET",
                address,
                headers={"User-Agent": f"leeward/{__version__}"},
                timeout=Timeout(connect=_TIMEOUT, read=_TIMEOUT),
                retries=_REDIRECTS,
                preload_content=False,
                decode_content=False,
                # The caller counts bytes.
                enforce_content_length=False,
            )
        except MaxRetryError as error:
            # A redirect leads to another host, which has a pool of its own.
            if error.pool is pools.connection_from_url(address) and _is_connection_error(error):
                error_type = HostError
            raise
        try:
            if response.status != 200:
                raise FetchError(f"{address}: {response.status} {response.reason}")
            yield from response.stream(_CHUNK)
        finally:
            response.close()
    except (HTTPError, OSError) as error:
        if isinstance(error, FetchError):
            raise
        cause = root_cause(error)
        raise error_type(f"{address}: {getattr(cause, 'strerror', None) or cause}") from error


def _is_connection_error(error: MaxRetryError) -> bool:
    """True if no connection could be made: no address, no answer, a refusal, or an untrusted certificate."""
    reason = error.reason.original_error if isinstance(error.reason, ProxyError) else error.reason
    unanswered = isinstance(reason, (NewConnectionError, ConnectTimeoutError))
    return unanswered or isinstance(root_cause(error), SSLCertVerificationError)


def _parts(opened: BinaryIO | gzip.GzipFile | BufferedReader) -> Iterator[bytes]:
    while part := opened.read(_CHUNK):
        yield part
