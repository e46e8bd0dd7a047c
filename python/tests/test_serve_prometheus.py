"""A service that queries a real Prometheus, which scrapes a switch whose counters the test drives."""

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

Serve = Callable[..., AbstractContextManager[str]]
CLUSTER = {"racks": 2, "hosts_per_rack": 2, "nic": "1Gbps", "rack_link": "2Gbps"}
MAP = r"""
prometheus: {in: 'ifHCInOctets{job="snmp"}', out: 'ifHCOutOctets{job="snmp"}', speed: ifHighSpeed}
links:
  - match: {instance: 'tor-(?P<rack>r\d+)', ifName: 'up\d'}
    in: '{rack}:downlink'
    out: '{rack}:uplink'
  - match: {instance: 'tor-(?P<rack>r\d+)', ifName: 'port(?P<port>\d+)'}
    in: '{rack}h{port-1}:egress'
    out: '{rack}h{port-1}:ingress'
"""
SCRAPE = """
global: {scrape_interval: 300ms, scrape_timeout: 250ms}
scrape_configs:
  - job_name: snmp
    static_configs: [{targets: ["127.0.0.1:%d"], labels: {instance: tor-r0}}]
"""


class Switch:
    """An exporter of counters of ports. A test sets their rates, and may restart them from 0."""

    def __init__(self) -> None:
        self.unavailable = False
        self._lock = threading.Lock()
        self._at = time.monotonic()
        ports = ("up1", "up2", "port1", "port2")
        self._rates = {(way, port): 0.0 for way in ("In", "Out") for port in ports}
        self._octets = dict.fromkeys(self._rates, 1e12)

    def carry(self, **bps: float) -> None:
        """Sets the rates of ports in bits per second: `In_up1=1e8` is for inbound traffic of `up1`."""
        with self._lock:
            self._count()
            self._rates |= {_split(name): rate for name, rate in bps.items()}

    def restart(self) -> None:
        """Sets all counters to 0."""
        with self._lock:
            self._octets = dict.fromkeys(self._octets, 0.0)

    def text(self) -> str:
        """Returns the metrics."""
        with self._lock:
            self._count()
            counted = [
                f'ifHC{way}Octets{{ifName="{port}"}} {octets:.0f}'
                for (way, port), octets in self._octets.items()
            ]
        speeds = [f'ifHighSpeed{{ifName="{port}"}} 1000' for way, port in self._rates if way == "In"]
        return "\n".join([*counted, *speeds, ""])

    def _count(self) -> None:
        now = time.monotonic()
        for key, rate in self._rates.items():
            self._octets[key] += rate / 8 * (now - self._at)
        self._at = now


def _split(name: str) -> tuple[str, str]:
    way, port = name.split("_")
    return way, port


@pytest.fixture
def switch() -> Iterator[tuple[Switch, int]]:
    """A switch, and the TCP port of its exporter."""
    exporter = Switch()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = exporter.text().encode()
            self.send_response(503 if exporter.unavailable else 200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write(b"" if exporter.unavailable else text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield exporter, server.server_port
    server.shutdown()
    server.server_close()


def test_loads_hotspots_and_silent_links_are_read_from_prometheus(
    tmp_path: Path, switch: tuple[Switch, int], start_prometheus: Any, serve: Serve
) -> None:
    exporter, port = switch
    (tmp_path / "map.yaml").write_text(MAP)
    exporter.carry(In_up1=3e8, In_up2=2e8, Out_up1=9e8, Out_up2=8e8, In_port2=4e8)
    with start_prometheus(tmp_path, SCRAPE % port) as prometheus:
        arguments = ("--prometheus", prometheus, "--map", "map.yaml", "--interval", "300ms")
        with serve(tmp_path, CLUSTER, *arguments) as url:

            def get(path: str) -> Any:
                with urllib.request.urlopen(url + path, timeout=20) as answer:
                    return json.load(answer)

            def wait_until(what: str, condition: Callable[[], bool]) -> None:
                end = time.monotonic() + 30
                while not condition():
                    assert time.monotonic() < end, (what, get("/v1/status")["telemetry"])
                    time.sleep(0.05)

            def carries(link: str, bps: float) -> bool:
                seen = get(f"/v1/links/{link}")["measured_bps"]
                return seen is not None and abs(seen - bps) <= 0.05 * bps + 1e5

            loads = {"r0:downlink": 5e8, "r0:uplink": 1.7e9, "r0h1:egress": 4e8, "r0h1:ingress": 0.0}
            for link, bps in loads.items():
                wait_until(f"{link} carries {bps}", partial(carries, link, bps))
            wait_until(
                "85 % is hot", lambda: [one["link"] for one in get("/v1/hotspots")["items"]] == ["r0:uplink"]
            )
            telemetry = get("/v1/status")["telemetry"]
            assert (telemetry["state"], telemetry["problem"], telemetry["ports"], telemetry["links"]) == (
                "answers",
                None,
                8,
                6,
            )
            # The service discards the interval of the restart; otherwise the link would seem very hot in it.
            exporter.restart()
            exporter.carry(Out_up1=1e8, Out_up2=1e8)
            wait_until("it cools", lambda: (get("/v1/links/r0:uplink")["measured_bps"] or 2e9) < 1.2e9)
            assert get("/v1/hotspots")["items"] == []
            exporter.unavailable = True
            wait_until("it is unknown", lambda: get("/v1/links/r0:uplink")["measured_bps"] is None)
            wait_until(
                "the link is silent", lambda: "r0:uplink" in get("/v1/status")["telemetry"]["silent_links"]
            )
            exporter.unavailable = False
            wait_until("it is seen again", lambda: get("/v1/links/r0:uplink")["measured_bps"] is not None)
            wait_until("all links are seen", lambda: get("/v1/status")["telemetry"]["silent"] == 0)
