"""A client of NFSv3 over TCP that keeps several calls open, for loads whose latencies count.

It imports the standard library only, because it runs as a program of its own at a client of the lab. The
programs of libnfs and the kernel's client send one call after another, or merge calls; this client sends what
its caller says, when it says so.
"""

import asyncio
import itertools
import os
import struct
from collections.abc import Sequence

NFS, MOUNT = 100_003, 100_005
LOOKUP, READ, WRITE, CREATE, COMMIT, MNT = 3, 6, 7, 8, 21, 1
UNSTABLE, DATA_SYNC, FILE_SYNC = 0, 1, 2
"""Ways to write: into the server's memory, or to its disk."""
_LAST = 1 << 31
"""Mark of the last fragment of a record."""
_MOST = 64 << 20
"""Largest reply, in bytes."""
_SYSTEM = 1
"""Flavor of credentials with a user and groups."""
_NO_ENTRY = 2


class NfsError(OSError):
    """A call failed, or its reply has another form."""


def opaque(data: bytes) -> bytes:
    """Bytes with their length, as XDR has them (RFC 4506, section 4.10)."""
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


class Reader:
    """Values of a reply, in order."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        """Begins at an offset."""
        self.data, self.at = data, at

    def number(self) -> int:
        """An integer of 32 bits."""
        (value,) = self.take(">I")
        return int(value)

    def take(self, form: str) -> tuple[int, ...]:
        """Integers of a form of `struct`."""
        try:
            values = struct.unpack_from(form, self.data, self.at)
        except struct.error as error:
            raise NfsError(f"a reply of {len(self.data)} bytes is too short: {error}") from error
        self.at += struct.calcsize(form)
        return values

    def opaque(self, most: int = _MOST) -> bytes:
        """Bytes with their length."""
        length = self.number()
        if length > most or self.at + length > len(self.data):
            raise NfsError(f"a reply has {length} bytes in a field of at most {most}")
        value = self.data[self.at : self.at + length]
        self.at += length + -length % 4
        return value

    def skip_attributes(self) -> None:
        """Attributes of a file, which a reply may have (RFC 1813, section 2.6)."""
        if self.number():
            self.at += 84


class Connection:
    """A connection to a server or proxy. Calls may be open at once; replies come in any order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Wraps an open connection; `connect` makes one."""
        self._reader, self._writer = reader, writer
        self._numbers = itertools.count(int.from_bytes(os.urandom(3), "big"))
        self._open: dict[int, asyncio.Future[bytes]] = {}
        body = struct.pack(">I", 0) + opaque(b"client") + struct.pack(">3I", 0, 0, 0)
        self._credential = struct.pack(">I", _SYSTEM) + opaque(body) + struct.pack(">2I", 0, 0)
        self._replies = asyncio.ensure_future(self._read())

    @classmethod
    async def connect(cls, host: str, port: int) -> "Connection":
        """Opens a connection.

        Raises:
            OSError: The server does not answer.
        """
        reader, writer = await asyncio.open_connection(host, port, limit=_MOST)
        return cls(reader, writer)

    async def call(self, program: int, procedure: int, *arguments: bytes) -> Reader:
        """Sends a call, and returns its results.

        Raises:
            OSError: The connection ended, or the server rejects the call.
        """
        xid = next(self._numbers) & 0xFFFFFFFF
        head = struct.pack(">6I", xid, 0, 2, program, 3, procedure) + self._credential
        length = len(head) + sum(map(len, arguments))
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._open[xid] = reply
        self._writer.writelines((struct.pack(">I", length | _LAST), head, *arguments))
        await self._writer.drain()
        results = Reader(await reply)
        _xid, kind, rejected = results.take(">3I")
        results.number()
        results.opaque(400)
        status = results.number()
        if (kind, rejected, status) != (1, 0, 0):
            raise NfsError(f"call {procedure} of program {program}: rejected with status {status}")
        return results

    async def _read(self) -> None:
        problem: Exception = NfsError("the server closed the connection")
        try:
            while True:
                record = b""
                is_last = False
                while not is_last:
                    (mark,) = struct.unpack(">I", await self._reader.readexactly(4))
                    is_last = bool(mark & _LAST)
                    length = mark & ~_LAST
                    if len(record) + length > _MOST:
                        raise NfsError(f"a reply of more than {_MOST} bytes")
                    record += await self._reader.readexactly(length)
                waiting = self._open.pop(int.from_bytes(record[:4], "big"), None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(record)
        except asyncio.IncompleteReadError:
            pass
        except OSError as error:
            problem = error
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(problem)
        self._open.clear()

    def close(self) -> None:
        """Closes the connection; open calls fail."""
        self._replies.cancel()
        self._writer.close()


class File:
    """A file of an export."""

    def __init__(self, connection: Connection, handle: bytes) -> None:
        """Wraps the handle of a file; `open_file` finds one."""
        self.connection, self.handle = connection, handle

    async def read(self, offset: int, size: int) -> bytes:
        """Reads bytes; fewer at the end of the file.

        Raises:
            OSError: The read failed.
        """
        arguments = opaque(self.handle) + struct.pack(">QI", offset, size)
        results = await self.connection.call(NFS, READ, arguments)
        _check(results, "READ")
        results.skip_attributes()
        results.take(">2I")
        return results.opaque()

    async def write(self, offset: int, data: bytes, stable: int = FILE_SYNC) -> None:
        """Writes bytes.

        Raises:
            OSError: The write failed, or wrote only some of the bytes.
        """
        arguments = opaque(self.handle) + struct.pack(">QII", offset, len(data), stable)
        results = await self.connection.call(NFS, WRITE, arguments, opaque(data))
        _check(results, "WRITE")
        if results.number():
            results.at += 24
        results.skip_attributes()
        if (count := results.number()) != len(data):
            raise NfsError(f"WRITE: {count} of {len(data)} bytes were written")


def _check(results: Reader, name: str) -> None:
    status = results.number()
    if status:
        raise NfsError(f"{name}: error {status} of NFS version 3")


async def mount(connection: Connection, export: str) -> bytes:
    """Handle of the root of an export, over a connection that takes calls of MOUNT.

    Raises:
        OSError: There is no such export.
    """
    results = await connection.call(MOUNT, MNT, opaque(export.encode()))
    _check(results, f"MNT {export}")
    return results.opaque(64)


async def open_file(connection: Connection, folder: bytes, names: Sequence[str]) -> File:
    """The file of a path below a folder; the last one is created if it is not there.

    Raises:
        OSError: A folder is not there, or the file cannot be created.
    """
    handle = folder
    for at, name in enumerate(names):
        place = opaque(handle) + opaque(name.encode())
        results = await connection.call(NFS, LOOKUP, place)
        status = results.number()
        if status == 0:
            handle = results.opaque(64)
        elif status == _NO_ENTRY and at == len(names) - 1:
            # Unchecked, with no attributes but the mode.
            attributes = struct.pack(">IIIIIIII", 0, 1, 0o666, 0, 0, 0, 0, 0)
            results = await connection.call(NFS, CREATE, place, attributes)
            _check(results, f"CREATE {name}")
            if not results.number():
                raise NfsError(f"CREATE {name}: the reply has no handle")
            handle = results.opaque(64)
        else:
            raise NfsError(f"LOOKUP {name}: error {status} of NFS version 3")
    return File(connection, handle)
