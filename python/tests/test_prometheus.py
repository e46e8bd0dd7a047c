"""Telemetry from a real Prometheus server with a month of data, and from fake servers with faults."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from leeward import Cluster, InputError
from leeward.telemetry import Samples, read
from leeward.telemetry.access import read_access
from leeward.telemetry.http import Server, TooMuchError, server
from support.prometheus import END, LOADS, Answer, good, loads, query_times

DAY = 86_400
SCRAPE = 300
RACKS, PORTS = 3, 2
MAP = """
prometheus: {in: 'ifHCInOctets{job="snmp"}', out: 'ifHCOutOctets{job="snmp"}', speed: ifHighSpeed}
links:
  - {match: {instance: 'tor-(?P<rack>r\\d+)'}, in: '{rack}:downlink', out: '{rack}:uplink'}
"""
CLUSTER = Cluster({"racks": RACKS, "hosts_per_rack": 2, "nic": "10Gbps", "rack_link": "40Gbps"})


def octets(rack: int, port: int, way: str, step: int) -> int:
    """Synthetic number of octets of a port in a step."""
    return (1 + rack + 2 * port + (way == "Out")) * 10**8 * (5 if step % 288 in range(100, 112) else 1)


def openmetrics() -> Iterator[str]:
    """A month of a small fabric. A port restarts its counters halfway, and another loses its speed."""
    steps = range(30 * DAY // SCRAPE)
    for way in ("In", "Out"):
        yield f"# TYPE ifHC{way}Octets gauge"
        for rack in range(RACKS):
            for port in range(PORTS):
                value = 0
                for step in steps:
                    value = 0 if (rack, port, step) == (0, 0, len(steps) // 2) else value
                    value += octets(rack, port, way, step)
                    at = END - 30 * DAY + SCRAPE * step + rack
                    labels = f'job="snmp",instance="tor-r{rack}",ifName="Ethernet{port}"'
                    yield f"ifHC{way}Octets{{{labels}}} {value} {at}"
    yield "# TYPE ifHighSpeed gauge"
    for rack in range(RACKS):
        for port in range(PORTS):
            for step in steps:
                at = END - 30 * DAY + SCRAPE * step + rack
                speed = 0 if (rack, port) == (2, 1) and step >= len(steps) // 2 else 20_000
                yield f'ifHighSpeed{{job="snmp",instance="tor-r{rack}",ifName="Ethernet{port}"}} {speed} {at}'


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: Any, backfill: Any) -> Iterator[str]:
    """Address of a Prometheus server on this machine."""
    with backfill(tmp_path_factory.mktemp("prometheus"), openmetrics()) as address:
        yield address


def read_month(url: str, folder: Path, **given: Any) -> Samples:
    (folder / "map.yaml").write_text(given.pop("text", MAP))
    request: dict[str, Any] = {"since": "30d", "now_ms": 1000 * END, "keep": folder / "kept"} | given
    return read(CLUSTER, prometheus=url, map=folder / "map.yaml", **request)


def by_link(samples: Samples) -> dict[str, int]:
    names = samples.links["name"].to_pylist()
    summed = samples.table.group_by("link").agg(bits=lambda table: table.bits.sum()).order_by("link")
    return {names[row["link"]]: int(row["bits"]) for row in samples.engine.arrow(summed).to_pylist()}


def test_a_month_of_counters_is_read_without_losing_a_bit(prometheus: str, tmp_path: Path) -> None:
    samples = read_month(prometheus, tmp_path)
    steps = 30 * DAY // SCRAPE
    # The first reading of rack 0 is at the start of the period, which excludes it.
    wanted = {
        f"r{rack}:{link}": 8
        * sum(
            octets(rack, port, way, step)
            for port in range(PORTS)
            for step in range(2 if rack == 0 else 1, steps)
            if (rack, port, step) != (0, 0, steps // 2)
        )
        for rack in range(RACKS)
        for link, way in (("downlink", "In"), ("uplink", "Out"))
    }
    assert by_link(samples) == wanted
    assert (samples.cadence_ms, samples.discards.counts) == (1000 * SCRAPE, {"reset": 2, "no-speed": steps})


def test_a_port_that_carries_bits_at_a_speed_of_0_keeps_its_part_of_the_capacity(
    prometheus: str, tmp_path: Path
) -> None:
    samples = read_month(prometheus, tmp_path)
    number = samples.links["name"].to_pylist().index("r2:uplink")
    table = samples.table.filter(samples.table.link == number)
    assert set(samples.engine.arrow(table)["capacity_bps"].to_pylist()) == {40 * 10**9}


def test_a_second_run_queries_only_the_missing_pieces(prometheus: str, tmp_path: Path) -> None:
    pieces: list[int] = []

    def counted(_: str, total: int) -> Any:
        from contextlib import nullcontext

        pieces.append(total)
        return nullcontext(lambda _: None)

    first = read_month(prometheus, tmp_path, progress=counted)
    kept = sorted((tmp_path / "kept").rglob("*-*.parquet"))
    kept[3].unlink()
    again = read_month(prometheus, tmp_path, progress=counted)
    assert pieces[0] > 30
    # The second run queries the missing piece, and the last minutes, whose data may be incomplete.
    assert pieces[1] <= 1 + 3
    assert by_link(first) == by_link(again)


def test_a_missing_metric_is_reported_with_the_existing_ones(prometheus: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are: ifHCInOctets, ifHCOutOctets"):
        read_month(prometheus, tmp_path, text=MAP.replace("ifHCInOctets", "ifInOctetts"))
    with pytest.raises(InputError, match="not with these labels"):
        read_month(prometheus, tmp_path, text=MAP.replace("snmp", "snmq"))
    with pytest.raises(InputError, match="nearest: r0:uplink"):
        read_month(
            prometheus,
            tmp_path,
            text=MAP.replace("{rack}:uplink", "{rack}-uplink").replace("{rack}:down", "x"),
        )


def test_a_busy_server_is_retried_after_its_retry_after_header(fake: Any) -> None:
    url = fake(lambda number, _: (503, {"Retry-After": "7"}, b"busy") if number < 2 else good([1]))
    waits: list[float] = []
    assert Server(url, sleep=waits.append).ask("query", query="up").data == [1]
    assert waits == [7.0, 7.0]


def test_retries_end_with_an_error_after_a_time(fake: Any) -> None:
    url = fake(lambda *_: (429, {}, b"slow down"))
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    with pytest.raises(InputError, match="for 243 s, it answers 429: slow down"):
        Server(url, sleep=sleep, clock=lambda: now[0]).ask("query", query="up")


def test_an_unreachable_server_is_reported_without_retries() -> None:
    def never(_: float) -> None:
        pytest.fail("an unreachable server is retried")

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(InputError, match="cannot be reached"):
            Server(f"http://127.0.0.1:{free.getsockname()[1]}", sleep=never).ask("query", query="up")


@pytest.mark.parametrize(
    "text",
    [b"", b"<html>", b"[" * 100_000, b'{"status": "success"}', b'{"status": "error", "data": 1}', b"\xff"],
)
def test_an_answer_from_another_server_than_prometheus_is_rejected(fake: Any, text: bytes) -> None:
    url = fake(lambda *_: (200, {}, text))
    with pytest.raises(InputError, match="does not answer as Prometheus would"):
        Server(url).ask("query", query="up")


@pytest.mark.parametrize(
    "result",
    [
        3,
        [3],
        [{}],
        [{"metric": {}, "values": [[1]]}],
        [{"metric": {}, "values": [["x", "1"]]}],
        [{"metric": {}, "values": [[1e300, "1"]]}],
        [{"metric": {}, "values": [[1, None]]}],
        [{"metric": [], "values": []}],
    ],
)
def test_invalid_answers_are_rejected_and_not_cached(fake: Any, tmp_path: Path, result: Any) -> None:
    def answer(_: int, request_text: str) -> Answer:
        if "__name__" in request_text:
            return good(["ifHCInOctets"])
        if "count" in request_text:
            return good({"resultType": "vector", "result": []})
        return good({"resultType": "matrix", "result": result})

    with pytest.raises(InputError, match="does not answer as Prometheus would"):
        read_month(fake(answer), tmp_path)
    assert not list((tmp_path / "kept").rglob("*.parquet"))


def test_queries_with_too_many_samples_are_split_by_time_and_then_label(fake: Any, tmp_path: Path) -> None:
    def answer(_: int, request_text: str) -> Answer:
        if "__name__" in request_text:
            return good(["ifHCInOctets"])
        if "label%2Finstance" in request_text or "label/instance" in request_text:
            return good(["tor-r0", "tor-r1"])
        if "count" in request_text:
            return good({"resultType": "vector", "result": []})
        if "instance" not in request_text:
            return 422, {}, b'{"status":"error","error":"query processing would load too many samples"}'
        rack = "r0" if "instance%3D~" in request_text else "r1"
        values = [[END - 30 * step, str(10**6 * (100 - step))] for step in range(20, 0, -1)]
        labels = {"__name__": "x", "instance": f"tor-{rack}", "ifName": "Ethernet0"}
        return good({"resultType": "matrix", "result": [{"metric": labels, "values": values}]})

    text = MAP.replace(", speed: ifHighSpeed", "").replace(""", out: 'ifHCOutOctets{job="snmp"}'""", "")
    samples = read_month(fake(answer), tmp_path, since="10min", text=text)
    assert by_link(samples) == {"r0:downlink": 8 * 18 * 10**6, "r1:downlink": 8 * 18 * 10**6}


@pytest.mark.parametrize(
    ("status", "text"),
    [
        # Cortex and Mimir, of a label query and of a query; Thanos; VictoriaMetrics.
        (422, "the query time range exceeds the limit (query length: 720h0m0s, limit: 168h0m0s)"),
        (400, "expanding series: the query time range exceeds the limit (query length: 721h, limit: 168h)"),
        (
            422,
            "the query exceeded the maximum number of series (limit: 100000 series) (err-mimir-max-series)",
        ),
        (422, "rpc error: code = ResourceExhausted desc = exceeded series limit: limit 5 violated (got 6)"),
        (500, "expanded matching posting: exceeded chunks limit: limit 100 violated (got 101)"),
        (422, "the number of matching timeseries exceeds 300000; -search.max* command-line flag values"),
    ],
)
def test_limits_of_servers_are_met_by_smaller_pieces(
    fake: Any, tmp_path: Path, status: int, text: str
) -> None:
    """A server answers at most 3 h of readings and 7 d of label values."""

    def answer(_: int, request_text: str) -> Answer:
        refusal: Answer = status, {}, json.dumps({"status": "error", "error": text}).encode()
        if "label/" in request_text:
            fields = parse_qs(request_text.split(maxsplit=1)[0].partition("?")[2])
            reach = float(fields["end"][0]) - float(fields["start"][0])
            # Only old days have the metric.
            old = float(fields["start"][0]) < END - 20 * DAY
            return refusal if reach > 7 * DAY else good(["ifHCOutOctets"] if old else [])
        if "ms%5D" in request_text and query_times(request_text)[1] > 3 * 3600:
            return refusal
        return loads(request_text)

    samples = read_month(fake(answer), tmp_path, since="1d", until="29d", text=LOADS)
    assert by_link(samples) == {"r0:uplink": 8 * 10**6 * (DAY // 30 - 1) * 30}
    whole = read_month(fake(answer), tmp_path, since="30d", text=LOADS, keep=tmp_path / "whole")
    assert by_link(whole) == {"r0:uplink": 8 * 10**6 * (30 * DAY // 30 - 1) * 30}


def test_a_device_with_too_many_series_is_split_by_port(fake: Any, tmp_path: Path) -> None:
    def answer(_: int, request_text: str) -> Answer:
        if "label/" in request_text:
            label = request_text.split("label/", 1)[1].split("/", 1)[0]
            values = {"__name__": ["ifHCOutOctets"], "instance": ["tor-r0"], "ifName": ["e0", "e1"]}
            return good(values.get(label, []))
        if "ms%5D" in request_text and "ifName" not in request_text:
            return 422, {}, b'{"status":"error","error":"the query hit the max number of series limit"}'
        return loads(request_text)

    samples = read_month(fake(answer), tmp_path, since="1d", text=LOADS)
    assert sum(by_link(samples).values()) == 8 * 10**6 * (DAY // 30 - 1) * 30


def test_a_second_run_queries_at_most_twenty_minutes_besides_new_time(fake: Any, tmp_path: Path) -> None:
    lengths: list[int] = []

    def answer(_: int, request_text: str) -> Answer:
        if "ms%5D" in request_text:
            lengths.append(query_times(request_text)[1])
        return loads(request_text)

    url, sums = fake(answer), []
    for now, new in ((END, 3 * DAY), (END + 60, 60), (END + 540, 480)):
        lengths.clear()
        sums.append(by_link(read_month(url, tmp_path, since="3d", text=LOADS, now_ms=1000 * now)))
        assert sum(lengths) <= new + 1200
    # No sample is lost or duplicated at the edges of pieces.
    assert sums == [{"r0:uplink": 8 * 10**6 * (3 * DAY // 30 - 1) * 30}] * 3


def test_a_query_that_times_out_is_halved_at_once(fake: Any, tmp_path: Path) -> None:
    def answer(_: int, request_text: str) -> Answer:
        if "ms%5D" in request_text and query_times(request_text)[1] > 3 * 3600:
            text = {
                "status": "error",
                "errorType": "timeout",
                "error": "query timed out in expression evaluation",
            }
            return 503, {}, json.dumps(text).encode()
        return loads(request_text)

    samples = read_month(fake(answer), tmp_path, since="1d", text=LOADS)
    assert by_link(samples) == {"r0:uplink": 8 * 10**6 * (DAY // 30 - 1) * 30}


def test_rejected_queries_have_a_hint(fake: Any) -> None:
    for status, hint in ((401, "--http"), (404, "address"), (302, "address")):
        url = fake(lambda *_, status=status: (status, {"Location": "http://elsewhere"}, b""))
        with pytest.raises(InputError) as error:
            Server(url).ask("query", query="up")
        assert hint in error.value.__notes__[0]
    with pytest.raises(TooMuchError):
        Server(fake(lambda *_: (422, {}, b'{"error": "too many samples"}'))).ask("query", query="up")


def test_credentials_and_headers_are_read_from_a_file(fake: Any, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    (tmp_path / "http.yaml").write_text(
        "basic_auth: {username: me, password_file: password}\nhttp_headers: {X-Scope-OrgID: [team]}\n"
    )
    seen: list[str] = []

    def answer(_: int, request_text: str) -> Answer:
        seen.append(request_text)
        return good([])

    url = fake(answer)
    server(url, tmp_path / "http.yaml").ask("query", query="up")
    assert "Basic bWU6c2VjcmV0" in seen[0]
    assert "team" in seen[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("basic_auth: {username: me}", "basic_auth.password: expected a text"),
        ("authorization: {credentials_file: nowhere}", "authorization.credentials_file"),
        ('authorization: {credentials: "a\\nb"}', "invalid character"),
        ("tls_config: {ca_file: nowhere}", "tls_config: a certificate cannot be read"),
        ("basic: {}", "basic: no such field"),
        ("[", "expected the node content"),
    ],
)
def test_an_invalid_access_file_is_rejected_with_the_field(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "http.yaml").write_text(text)
    with pytest.raises(InputError) as error:
        read_access(tmp_path / "http.yaml")
    assert message in str(error.value)


@pytest.mark.parametrize(
    "url", ["", "prom", "ftp://prom", "http://", "http://me:pw@prom", "http://prom:x", "http://a?b"]
)
def test_an_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(InputError):
        server(url)
