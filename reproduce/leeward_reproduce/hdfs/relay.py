"""Ports of this machine that lead into the lab: `python relay.py DESCRIPTOR:PORT...`.

A socket stays in the network of the process that opened it. The parent opens listening sockets on the
machine, and this process, which runs in a namespace of the lab, connects their peers to ports of the
namespace. The script imports the standard library only.
"""

import asyncio
import contextlib
import socket
import sys

_BYTES = 1 << 16


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


async def _serve(descriptor: int, port: int) -> asyncio.Server:
    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
            inner_writer.close()
        writer.close()

    return await asyncio.start_server(connect, sock=socket.socket(fileno=descriptor))


async def main(pairs: list[str]) -> None:
    """Relays until the process ends."""
    servers = [await _serve(*(int(part) for part in pair.split(":"))) for pair in pairs]
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
