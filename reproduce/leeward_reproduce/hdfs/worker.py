"""Helper at a machine of the lab: `python worker.py`. It obeys orders until its standard input ends.

Orders and answers are lines of JSON. An order has an `id`, an `order` and its fields, and so has its answer.
Times are those of the monotonic clock, which all processes of a machine share. The script imports the
standard library only, so that many of them start fast.
"""

import http.client
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

CHUNK = bytes(1 << 16)
DATAGRAM = bytes(1472)
"""Payload that fills an Ethernet frame."""
FRAME = 1514
"""Bytes of this frame, as the queues of the lab count them."""
_TICK_S = 0.002
_lock = threading.Lock()
_sinks: list[socket.socket] = []
_stopped: set[str] = set()
"""Names of background traffic that has been stopped."""


def _sleep_until(at: float) -> None:
    time.sleep(max(at - time.monotonic(), 0.0))


def _body(size: int) -> Iterator[bytes]:
    while size > 0:
        yield CHUNK[:size]
        size -= len(CHUNK)


def write(order: dict[str, Any]) -> dict[str, Any]:
    """Writes a file over WebHDFS by the DataNode of this machine, which is the client of HDFS."""
    _sleep_until(order["at"])
    headers = {"content-type": "application/octet-stream", "content-length": str(order["bytes"])}
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", order["port"], timeout=order["timeout_s"])
    try:
        connection.request("PUT", order["target"], body=_body(order["bytes"]), headers=headers)
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
    finally:
        connection.close()
    if response.status != 201:
        raise RuntimeError(f"status {response.status}: {text[:300]}")
    return {"began_s": began, "ended_s": time.monotonic()}


def read(order: dict[str, Any]) -> dict[str, Any]:
    """Reads a file over WebHDFS by the DataNode of this machine, which is the client of HDFS."""
    _sleep_until(order["at"])
    began, count = time.monotonic(), 0
    connection = http.client.HTTPConnection("127.0.0.1", order["port"], timeout=order["timeout_s"])
    try:
        connection.request("GET", order["target"])
        response = connection.getresponse()
        while data := response.read(len(CHUNK)):
            count += len(data)
    finally:
        connection.close()
    if response.status != 200 or count != order["bytes"]:
        raise RuntimeError(f"status {response.status}, {count} bytes; expected {order['bytes']} bytes")
    return {"began_s": began, "ended_s": time.monotonic()}


def send(order: dict[str, Any]) -> dict[str, Any]:
    """Sends datagrams at a rate of bits per second on the wire, until a time, or until it is stopped."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect((order["address"], order["port"]))
        _sleep_until(order["at"])
        sent, now = 0, order["at"]
        while now < order["until"] and order["name"] not in _stopped:
            # A helper that had to wait for a processor sends what it has missed.
            now = min(time.monotonic(), order["until"])
            while sent < order["rate_bps"] * (now - order["at"]) / 8:
                sender.send(DATAGRAM)
                sent += FRAME
            time.sleep(_TICK_S)
    return {"sent": sent}


def stop(order: dict[str, Any]) -> dict[str, Any]:
    """Stops background traffic of a name."""
    _stopped.add(order["name"])
    return {}


def sink(order: dict[str, Any]) -> dict[str, Any]:
    """Opens a port that drops what arrives, so that the kernel does not answer with errors."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    receiver.bind(("0.0.0.0", order["port"]))
    _sinks.append(receiver)
    return {}


ORDERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "write": write,
    "read": read,
    "send": send,
    "stop": stop,
    "sink": sink,
}


def _obey(order: dict[str, Any]) -> None:
    try:
        answer = ORDERS[order["order"]](order)
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    with _lock:
        print(json.dumps({"id": order["id"], **answer}), flush=True)


def main() -> None:
    """Obeys orders."""
    for line in sys.stdin:
        threading.Thread(target=_obey, args=(json.loads(line),), daemon=True).start()


if __name__ == "__main__":
    main()
