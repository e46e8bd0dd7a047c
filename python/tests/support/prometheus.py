"""Fake servers of Prometheus, whose response to each request is a function."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs

END = 1_763_800_000
"""End of the readings, in seconds since 1970."""
Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""


@contextmanager
def servers() -> Iterator[Callable[[Callable[[int, str], Answer]], str]]:
    """Starts servers whose response is a function of the request's number and text."""
    started = []

    def start(answer: Callable[[int, str], Answer]) -> str:
        class Handler(BaseHTTPRequestHandler):
            requests = 0

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                status, headers, text = answer(Handler.requests, f"{self.path} {body} {dict(self.headers)}")
                Handler.requests += 1
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        listener = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        started.append(listener)
        return f"http://127.0.0.1:{listener.server_port}"

    try:
        yield start
    finally:
        for listener in started:
            listener.shutdown()
            listener.server_close()


def good(data: Any) -> Answer:
    return 200, {}, json.dumps({"status": "success", "data": data}).encode()


LOADS = "prometheus: {load: ifHCOutOctets}\n"


def loads(request_text: str) -> Answer:
    """Responses of a server with a counter of one link, which is scraped every half minute."""
    if "__name__" in request_text:
        return good(["ifHCOutOctets"])
    if "count_over_time" in request_text:
        return good({"resultType": "vector", "result": []})
    end, length = query_times(request_text)
    values = [[at, str(at * 10**6)] for at in range(-(-(end - length) // 30) * 30, end + 1, 30)]
    link = {"metric": {"link": "r0:uplink"}, "values": values}
    return good({"resultType": "matrix", "result": [link]})


def query_times(request_text: str) -> tuple[int, int]:
    """End and length of a query, in seconds."""
    fields = parse_qs(request_text.split()[1])
    reach = re.search(r"\[(\d+)ms\]", fields["query"][0])
    assert reach is not None
    return round(float(fields["time"][0])), int(reach[1]) // 1000
