"""Answers of Prometheus, Thanos, Mimir and VictoriaMetrics, in the forms of several versions."""

import json
from pathlib import Path
from typing import Any

import pytest

from leeward import Cluster, InputError
from leeward.telemetry import Samples, read
from leeward.telemetry.http import Server
from support.prometheus import END, LOADS, Answer, good, loads

CLUSTER = {"racks": 1, "hosts_per_rack": 2, "nic": "10Gbps", "rack_link": "40Gbps"}
LENGTH = 7200
WHOLE = {"r0:uplink": 8 * 10**6 * (LENGTH - 30)}
TIMES = {"evalTotalTime": 0.002, "execQueueTime": 0.0001, "execTotalTime": 0.003}
"""Parts of `stats`, as Prometheus names them."""


def read_loads(folder: Path, url: str) -> Samples:
    (folder / "map.yaml").write_text(LOADS)
    return read(
        Cluster(CLUSTER),
        prometheus=url,
        map=folder / "map.yaml",
        since="2h",
        now_ms=1000 * END,
        keep=folder / "kept",
    )


def bits(samples: Samples) -> dict[str, int]:
    names = samples.links["name"].to_pylist()
    summed = samples.table.group_by("link").agg(bits=lambda table: table.bits.sum())
    return {names[row["link"]]: int(row["bits"]) for row in samples.engine.arrow(summed).to_pylist()}


def with_fields(answer: Answer, fields: dict[str, Any], of_data: dict[str, Any]) -> Answer:
    """The answer with more fields beside `data`, and within it if it has results."""
    status, headers, text = answer
    document = json.loads(text) | fields
    if isinstance(document["data"], dict):
        document["data"] |= of_data
    return status, headers, json.dumps(document).encode()


@pytest.mark.parametrize(
    ("fields", "of_data"),
    [
        ({}, {}),
        ({}, {"stats": {"timings": TIMES, "samples": {"totalQueryableSamples": 240, "peakSamples": 240}}}),
        ({"warnings": [], "infos": []}, {}),
        ({"warnings": None}, {"analysis": None}),
        ({"stats": {"seriesFetched": "1", "executionTimeMsec": 3}}, {}),
        ({"isPartial": False, "stats": {"seriesFetched": "1"}, "trace": {"message": "query"}}, {}),
    ],
    ids=["Prometheus 2", "stats", "Prometheus 3", "Thanos", "VictoriaMetrics", "VictoriaMetrics cluster"],
)
def test_the_same_counters_are_read_from_the_answers_of_every_server(
    fake: Any, tmp_path: Path, fields: dict[str, Any], of_data: dict[str, Any]
) -> None:
    samples = read_loads(tmp_path, fake(lambda _, text: with_fields(loads(text), fields, of_data)))
    assert bits(samples) == WHOLE
    assert samples.discards.counts == {}


def test_a_partial_answer_of_victoriametrics_is_reported_and_not_cached(fake: Any, tmp_path: Path) -> None:
    url = fake(lambda _, text: with_fields(loads(text), {"isPartial": True}, {}))
    samples = read_loads(tmp_path, url)
    assert samples.discards.counts["partial"] > 0
    assert "isPartial: a storage node did not answer" in samples.discards.examples["partial"][0]
    assert all(path.name.startswith("unsure") for path in (tmp_path / "kept").rglob("*.parquet"))


def test_values_that_are_no_count_are_reported(fake: Any, tmp_path: Path) -> None:
    invalid = {300: "NaN", 900: "+Inf", 1500: "-Inf"}

    def answer(_: int, request_text: str) -> Answer:
        status, headers, text = loads(request_text)
        document = json.loads(text)
        if "ms%5D" in request_text:
            for reading in document["data"]["result"][0]["values"]:
                reading[1] = invalid.get(reading[0] % 2400, reading[1])
        return status, headers, json.dumps(document).encode()

    samples = read_loads(tmp_path, fake(answer))
    assert bits(samples) == WHOLE
    assert samples.discards.counts == {"not-a-number": 9}


def queried(data: Any, version: Any = "3.1.0") -> Any:
    """A server that answers queries with `data`, and names its version."""

    def answer(_: int, request_text: str) -> Answer:
        if "status/buildinfo" in request_text:
            return (404, {}, b"404 page not found") if version is None else good({"version": version})
        return good(data) if "ms%5D" in request_text else loads(request_text)

    return answer


SERIES = {"metric": {"link": "r0:uplink"}}
HISTOGRAM = {"count": "7", "sum": "21", "buckets": [[0, "1", "2", "7"]]}


@pytest.mark.parametrize(
    "data",
    [
        {"resultType": "vector", "result": []},
        {"resultType": "scalar", "result": [END, "1"]},
        {"resultType": "streams", "result": [{"stream": {}, "values": []}]},
        {"resultType": "matrix", "result": None},
        {"resultType": "matrix", "result": [SERIES]},
        {"resultType": "matrix", "result": [SERIES | {"values": {"0": "1"}}]},
        {"result": []},
        [SERIES],
    ],
)
def test_an_answer_of_an_unknown_form_is_an_error_with_the_version(
    fake: Any, tmp_path: Path, data: Any
) -> None:
    with pytest.raises(InputError, match=r"version 3\.1\.0 of the server answers in an unknown form: `"):
        read_loads(tmp_path, fake(queried(data)))
    for version in (None, 3):
        with pytest.raises(InputError, match="it does not answer as Prometheus would: `"):
            read_loads(tmp_path, fake(queried(data, version)))
    assert not list((tmp_path / "kept").rglob("*.parquet"))


@pytest.mark.parametrize("values", [{}, {"values": [[END, "7"]]}])
def test_native_histograms_are_no_counters(fake: Any, tmp_path: Path, values: dict[str, Any]) -> None:
    series = SERIES | values | {"histograms": [[END, HISTOGRAM]]}
    with pytest.raises(InputError, match="'link': 'r0:uplink'} has native histograms; expected a counter"):
        read_loads(tmp_path, fake(queried({"resultType": "matrix", "result": [series]})))


def test_a_query_that_is_rejected_as_post_is_sent_as_get(fake: Any, tmp_path: Path) -> None:
    def answer(_: int, request_text: str) -> Answer:
        address, rest = request_text.split(maxsplit=1)
        if "label/" in address:
            return loads(request_text)
        if "?" not in address:
            return 405, {}, b"Method Not Allowed"
        return loads(f"{address.partition('?')[0]} {address.partition('?')[2]} {rest}")

    assert bits(read_loads(tmp_path, fake(answer))) == WHOLE


def refusal(kind: str, text: str) -> bytes:
    return json.dumps({"status": "error", "errorType": kind, "error": text}).encode()


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        # Prometheus; VictoriaMetrics, whose kind is the status; Thanos; Mimir without prefix and tenant.
        (400, refusal("bad_data", 'invalid parameter "query": 1:5: parse error'), "400: invalid parameter"),
        (422, refusal("422", "error when executing query: unknown func"), "422: error when executing query"),
        (500, refusal("internal", "no StoreAPIs matched"), "500: no StoreAPIs matched"),
        (404, b"404 page not found\n", "404: 404 page not found"),
        (401, b"no org id\n", "401: no org id"),
        # A proxy, in HTML; an error that is no text; a body that is cut; none.
        (403, b"<html>\n<head><title>403 Forbidden</title></head>", "403: <html> <head><title>403 Forbidden"),
        (400, b'{"status": "error", "error": {"code": 7}}', "400: {'code': 7}"),
        (400, b'{"status": "error", "err', '400: {"status": "error", "err'),
        (418, b"", "the server answers 418"),
        (405, b"Method Not Allowed", "405: Method Not Allowed"),
        (200, refusal("execution", "no such query"), "does not answer as Prometheus would"),
    ],
)
def test_a_refusal_in_any_form_is_an_error_with_its_text(
    fake: Any, status: int, body: bytes, message: str
) -> None:
    with pytest.raises(InputError) as raised:
        Server(fake(lambda *_: (status, {}, body))).ask("query", query="up")
    assert message in str(raised.value)
