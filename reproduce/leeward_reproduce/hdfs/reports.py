"""Reports that arrive late or never: `python reports.py PORT CONTROLLER_PORT DELAY_S LOSS SEED`.

Agents send their reports to this port instead of to the controller at the same machine. A report is
acknowledged at once and goes on after the delay, unless it is lost. So agents notice nothing, as with
heartbeats that have no answer. The script imports the standard library only.
"""

import asyncio
import contextlib
import random
import sys

LISTENING = "listening"
"""Line that it prints when agents can connect."""
_ANSWER = b'{"links":2}'
_ACKNOWLEDGEMENT = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
    len(_ANSWER),
    _ANSWER,
)


async def _request(reader: asyncio.StreamReader) -> bytes:
    """The next request of a connection, with its head and its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = [line.partition(b":") for line in head.lower().split(b"\r\n")]
    length = next((int(value) for name, _, value in lines if name == b"content-length"), 0)
    return head + await reader.readexactly(length)


async def _pass_on(request: bytes, port: int, delay_s: float) -> None:
    await asyncio.sleep(delay_s)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        status = await reader.readline()
        writer.close()
    except OSError as error:
        print(f"the controller has no report: {error}", file=sys.stderr, flush=True)
        return
    if b" 200 " not in status:
        print(f"the controller rejects a report: {status.decode().strip()}", file=sys.stderr, flush=True)


async def serve(port: int, controller_port: int, delay_s: float, loss: float, seed: int) -> None:
    """Passes reports on until the process ends."""
    draw = random.Random(seed)
    # The event loop holds its tasks by weak references only.
    waiting: set[asyncio.Task[None]] = set()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                request = await _request(reader)
                writer.write(_ACKNOWLEDGEMENT)
                if draw.random() >= loss:
                    task = asyncio.create_task(_pass_on(request, controller_port, delay_s))
                    waiting.add(task)
                    task.add_done_callback(waiting.discard)
        writer.close()

    server = await asyncio.start_server(connect, "0.0.0.0", port)
    print(LISTENING, flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    _port, _controller_port, _delay_s, _loss, _seed = sys.argv[1:]
    asyncio.run(serve(int(_port), int(_controller_port), float(_delay_s), float(_loss), int(_seed)))
