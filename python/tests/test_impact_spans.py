"""Latencies from spans and histograms: the same curves as from a table, and nothing is dropped in silence."""

import gzip
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import leeward
from leeward import InputError
from leeward.impact import Impact, Settings, measure, tables
from leeward.impact.synthetic import START_MS, Kind, plant
from leeward.telemetry import Engine, Samples
from leeward.telemetry.samples import COLUMNS

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER = leeward.Cluster("racks: 4\nhosts_per_rack: 2\nnic: 10Gbps\nrack_link: 10Gbps\n")
LINKS = CLUSTER.links()
NUMBER = dict(zip(LINKS["name"].to_pylist(), LINKS["link"].to_pylist(), strict=True))
ENGINE = Engine.duckdb(threads=1)
SPAN = 30_000
CAPACITY = 10**10
FEW = Settings(least=2, resamples=0)


def samples(table: pyarrow.Table) -> Samples:
    return Samples(ENGINE, ENGINE.table(table), LINKS, CLUSTER.rack_table(), SPAN)


def telemetry(levels: Mapping[str, Sequence[float]]) -> Samples:
    """Telemetry of links: the utilization of each interval, in order."""
    rows = [
        (NUMBER[name], START_MS + SPAN * (at + 1), SPAN, round(share * CAPACITY * 30), CAPACITY)
        for name, shares in levels.items()
        for at, share in enumerate(shares)
    ]
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in COLUMNS.items()])
    result = pyarrow.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema)
    return samples(result)


BUSY = telemetry({"r0:uplink": (0.12, 0.62), "r1:downlink": (0.32, 0.02)})


def in_buckets(impact: Impact) -> dict[tuple[str, float], int]:
    return {
        (curve.name, bucket.low_ppm / 10_000): bucket.latencies
        for curve in impact.curves
        for bucket in curve.buckets
        if curve.part == "total"
    }


def ns(seconds: float) -> int:
    return START_MS * 1_000_000 + round(seconds * 1e9)


def attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    kinds = {str: "stringValue", int: "intValue", float: "doubleValue", bool: "boolValue"}
    return [{"key": key, "value": {kinds[type(value)]: value}} for key, value in values.items()]


def otlp(host: str, *spans: Mapping[str, Any]) -> dict[str, Any]:
    """A document with the spans of one process."""
    resource = {"attributes": attributes({"service.name": "store", "host.name": host})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}


def span(
    name: str,
    end_ns: int,
    took_ns: int,
    number: int = 1,
    *,
    parent: int = 0,
    kind: int = 3,
    values: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    found = {
        "traceId": f"{number:032x}",
        "spanId": f"{number + kind:016x}",
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(end_ns - took_ns),
        "endTimeUnixNano": str(end_ns),
        "attributes": attributes(values or {}),
    }
    return found | ({"parentSpanId": f"{parent + 3:016x}"} if parent else {})


def write(path: Path, *documents: object) -> Path:
    """Writes a document on each line."""
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path


def test_spans_give_the_curves_of_the_same_latencies_in_a_table(tmp_path: Path) -> None:
    kinds = [Kind("file-read", [1 + at / 10 for at in range(20)], share=0.4), Kind("file-write", [1.0] * 20)]
    generated = plant(LINKS, kinds, per_bucket=20)
    parquet.write_table(generated.latencies, tmp_path / "l.parquet")
    clients, servers = [], []
    for number, row in enumerate(generated.latencies.to_pylist(), 1):
        took, network = round(row["latency_ms"] * 1e6), round(row["network_ms"] * 1e6)
        end = round(row["t_ms"] * 1000) * 1000
        ends = (row["src"], row["dst"])
        client, server = ends if row["operation"] == "file-write" else ends[::-1]
        values = {"leeward.medium": row["medium"]}
        name = {"file-read": "GET", "file-write": "file-write"}[row["operation"]]
        clients.append(otlp(f"{client}.example.org", span(name, end, took, number, values=values)))
        # The server's clock is an hour ahead.
        below = span(name, end + 3600 * 10**9, took - network, number, parent=number, kind=2)
        servers.append(otlp(server.upper(), below))
    write(tmp_path / "clients.jsonl", *clients)
    (tmp_path / "servers.json.gz").write_bytes(gzip.compress(json.dumps(servers[0]).encode()))
    write(tmp_path / "more.jsonl", *servers[1:])
    files = [tmp_path / name for name in ("clients.jsonl", "servers.json.gz", "more.jsonl")]
    source = samples(generated.samples)
    options = Settings(least=10, resamples=20)
    expected = measure(tmp_path / "l.parquet", source, options)
    actual = measure(files, source, options, names={"GET": "file-read"})
    assert tables.record(actual)["curves"] == tables.record(expected)["curves"]
    assert {curve.part for curve in actual.curves} == {"total", "network"}
    assert actual.discards.counts == {"server-side": 800}
    assert actual.rows == 1600 == actual.latencies + actual.discards.total


def test_each_span_is_a_latency_or_counted(tmp_path: Path) -> None:
    good = span("file-read", ns(20), 10**7, 1, values={"server.address": "r0h0:9000", "leeward.class": "PC"})
    failed = span("file-read", ns(20), 10**7, 2) | {"status": {"code": "STATUS_CODE_ERROR"}}
    other = span("heartbeat", ns(20), 10**7, 3, kind=1)
    unknown = span("file-read", ns(20), 10**7, 4)
    backwards = span("file-read", ns(20), -5, 5, values={"server.address": "r0h0"})
    no_end = good | {"endTimeUnixNano": None, "spanId": "1"}
    stated = span("x", ns(50), 10**7, 6, values={"leeward.operation": "backup", "leeward.links": "r0:uplink"})
    path = write(tmp_path / "s.jsonl", otlp("r1h0", good, failed, other, unknown, backwards, no_end, stated))
    options = Settings(by=("operation", "class"), least=2, resamples=0)
    result = measure(path, BUSY, options, operations={"backup": "src:uplink"})
    assert in_buckets(result) == {("file-read PC", 10.0): 1, ("backup (not stated)", 60.0): 1}
    assert result.discards.counts == {
        "failed": 1,
        "other-span": 1,
        "no-place": 1,
        "negative": 1,
        "no-time": 1,
    }
    assert result.rows == 7


def test_a_query_crosses_the_links_of_all_machines_of_its_trace(tmp_path: Path) -> None:
    query = span("SELECT", ns(20), 10**9, 1, kind=2, values={"leeward.compute_ratio": 0.25})
    below = [span("scan", ns(19), 10**8, 1, parent=1, kind=1)]
    path = write(tmp_path / "q.jsonl", otlp("r2h0", query), otlp("r1h0", *below))
    levels = {"r1:downlink": [0.4], "r1:uplink": [0.1], "r2:downlink": [0.2], "r2:uplink": [0.7]}
    options = Settings(by=("operation", "compute"), least=2, resamples=0)
    result = measure(path, telemetry(levels), options, names={"SELECT": "query"})
    (curve,) = result.curves
    assert (curve.split, curve.buckets[0].low_ppm) == (
        {"operation": "query", "compute": "0.2 to 0.3"},
        700_000,
    )


def jaeger(host: str, *spans: Mapping[str, Any]) -> dict[str, Any]:
    process = {"serviceName": "store", "tags": [{"key": "hostname", "type": "string", "value": host}]}
    given = [{"traceID": "1", "processID": "p1", **span} for span in spans]
    return {"data": [{"traceID": "1", "spans": given, "processes": {"p1": process}}]}


def test_spans_of_jaeger_are_read_with_their_tags_and_references(tmp_path: Path) -> None:
    at = START_MS * 1000
    tags: list[dict[str, Any]] = [
        {"key": "span.kind", "value": "client"},
        {"key": "http.request.body.size", "type": "int64", "value": 4096},
    ]
    client: dict[str, Any] = {
        "spanID": "a",
        "operationName": "PutBlock",
        "startTime": at + 20_000_000 - 7000,
        "duration": 7000,
        "tags": tags,
    }
    server = {
        "spanID": "b",
        "operationName": "PutBlock",
        "references": [{"refType": "CHILD_OF", "traceID": "1", "spanID": "a"}],
        "startTime": at,
        "duration": 4000,
        "tags": [{"key": "span.kind", "value": "server"}],
    }
    failed = client | {"spanID": "c", "tags": [*tags, {"key": "error", "value": True}]}
    path = tmp_path / "j.json"
    documents = [jaeger("r0h0", client, failed)["data"][0], jaeger("r1h1", server)["data"][0]]
    path.write_text(json.dumps({"data": documents}, indent=2))
    options = Settings(by=("operation", "size"), least=2, resamples=0)
    result = measure(path, BUSY, options, names={"PutBlock": "file-write"})
    total, network = sorted(result.curves, key=lambda curve: curve.part, reverse=True)
    assert total.split == {"operation": "file-write", "size": "0 to 10kB"}
    assert total.buckets[0].low_ppm == 300_000
    assert total.buckets[0].ns["p95"] == pytest.approx(7e6, rel=0.005)
    assert network.buckets[0].ns["p95"] == pytest.approx(3e6, rel=0.005)
    assert result.discards.counts == {"failed": 1, "server-side": 1}


BOUNDS = ("0.001", "0.002", "0.004", "0.008", "+Inf")


def histogram(counts: Mapping[int, Sequence[int]], **labels: str) -> list[str]:
    """Lines of a histogram: cumulated counts by time in seconds since the start."""
    rest = "".join(f',{name}="{value}"' for name, value in labels.items())
    name = "http_server_request_duration_seconds_bucket"
    return [
        f'{name}{{le="{bound}"{rest}}} {count} {START_MS + 1000 * second}'
        for second, cumulated in counts.items()
        for bound, count in zip(BOUNDS, cumulated, strict=True)
    ]


SERVER = {"http_server_request_duration_seconds": "file-read"}


def test_growth_of_a_histogram_is_latencies_of_its_host_between_readings(tmp_path: Path) -> None:
    lines = histogram(
        {5: (0, 0, 0, 0, 0), 25: (100, 100, 100, 100, 100), 35: (100,) * 5, 55: (100, 100, 140, 150, 151)},
        instance="r0h1.example.org:9100",
    )
    path = tmp_path / "m.prom"
    path.write_text("\n".join(["# TYPE http_server_request_duration_seconds histogram", *lines]) + "\n")
    result = measure(path, BUSY, FEW, names=SERVER)
    (curve,) = result.curves
    quiet, busy = curve.buckets
    assert (quiet.low_ppm, quiet.latencies, busy.low_ppm, busy.latencies) == (100_000, 100, 600_000, 51)
    # Latencies are evenly spread within a bucket, here in steps of an eighth.
    assert quiet.ns["median"] == pytest.approx(0.5e6, rel=0.15)
    assert 0.002e9 < busy.ns["median"] < 0.004e9 < busy.ns["p95"] < 0.008e9
    assert (result.rows, result.latencies) == (151, 151)
    assert any(line.startswith("1 latencies are above the last bound") for line in result.warnings)


def test_restarts_gaps_and_other_metrics_are_counted(tmp_path: Path) -> None:
    whole = {5: (10,) * 5, 25: (20,) * 5, 45: (5,) * 5, 900: (9,) * 5}
    lines = histogram(whole, node="r0h0")
    lines += [f'other_bytes_bucket{{le="1"}} 5 {START_MS}', f"up 1 {START_MS}"]
    path = tmp_path / "m.prom"
    path.write_text("\n".join(lines) + "\n")
    result = measure(path, BUSY, FEW, names=SERVER)
    assert result.discards.counts == {"reset": 1, "gap": 4, "other-histogram": 1}
    assert (result.rows, result.latencies) == (16, 10)


def test_an_answer_of_prometheus_is_read_as_its_text(tmp_path: Path) -> None:
    series = [
        {
            "metric": {
                "__name__": "rpc_client_duration_milliseconds_bucket",
                "le": bound,
                "operation": "chunk-read",
                "host": "r1h0",
                "medium": "ssd",
            },
            "values": [[START_MS / 1000 + 5, "0"], [START_MS / 1000 + 25, count]],
        }
        for bound, count in (("1", "0"), ("10", "6"), ("+Inf", "6"))
    ]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    path = write(tmp_path / "a.json", answer)
    result = measure(path, BUSY, FEW)
    (curve,) = result.curves
    assert curve.split == {"operation": "chunk-read", "medium": "ssd"}
    # A client's reads come in over the downlink of its rack.
    assert (curve.buckets[0].low_ppm, curve.buckets[0].latencies) == (300_000, 6)
    assert curve.buckets[0].ns["median"] == pytest.approx(5.5e6, rel=0.2)


def test_a_table_may_have_counts_of_equal_latencies(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    at = START_MS + 20_000
    rows = [f"{at},5,file-read,r0,3", f"{at},50,file-read,r0,", f"{at},5,file-read,r0,0"]
    rows += [f"{at},5,file-read,r0,1.5", f"{at},5,file-read,r9,4", f"{at},5,file-read,r0,x"]
    path.write_text("\n".join(["t_ms,latency_ms,operation,src,count", *rows]) + "\n")
    result = measure(path, BUSY, FEW)
    assert (result.latencies, result.rows) == (4, 11)
    assert result.discards.counts == {"out-of-range": 2, "unknown-place": 4, "not-a-number": 1}
    assert result.curves[0].buckets[0].sum_us == 65_000


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ('{"a": 1}\n', "s.json:1: expected spans of OpenTelemetry (`resourceSpans`) or Jaeger"),
        ("[1, 2]", "s.json:1: expected spans of OpenTelemetry"),
        ("{\n", "s.json: not readable as JSON"),
        ('{"resourceSpans": []}\n{"x\n', "s.json:2: not readable as JSON"),
        ('{"resourceSpans": [], "x": ' + "[" * 100_000 + "}", "s.json: not readable as JSON"),
        ('{"resourceSpans": []}', "s.json: no spans, and no histograms with buckets (`le`)"),
        ('{"data": {"resultType": "vector", "result": []}}', "s.json: resultType: `vector`: one reading"),
        ('{"data": {"resultType": "matrix", "result": [5]}}', "s.json: result: expected series with"),
        (
            '{"data": {"resultType": "matrix", "result": [{"metric": {}, "histograms": []}]}}',
            "s.json: result: native histograms",
        ),
        (
            '{"data": {"resultType": "matrix", "result": [{"metric": {"le": "1"}, "values": [["NaN", 1]]}]}}',
            "s.json: values: `['NaN', 1]`: expected [time, text]",
        ),
        ('file_read_bucket{le="1"} 1 1\n', "s.json: no histogram is a known kind of operation; it has file_"),
        ('file_read_bucket{le="1"} 1\n', "no time after the value"),
    ],
)
def test_other_content_is_rejected_with_its_place(tmp_path: Path, content: str, error: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(content)
    with pytest.raises(InputError) as raised:
        measure(path, BUSY, FEW)
    assert error in str(raised.value).replace(f"{tmp_path}/", "")


def test_names_need_spans_and_a_rule(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", otlp("r0h0", span("GET", ns(20), 10**6)))
    with pytest.raises(InputError, match="no span is a known kind of operation; the most frequent are GET"):
        measure(path, BUSY, FEW)
    with pytest.raises(InputError, match="names: GET: `fetch`: no rule for the links of this operation"):
        measure(path, BUSY, FEW, names={"GET": "fetch"})
    table = tmp_path / "l.csv"
    table.write_text(f"t_ms,latency_ms,operation,src\n{START_MS + 20_000},5,file-read,r0\n")
    with pytest.raises(InputError, match="names: only valid with files of spans or histograms"):
        measure(table, BUSY, FEW, names={"GET": "file-read"})
    both = measure([table, path], BUSY, FEW, names={"GET": "file-read"})
    assert (both.rows, both.discards.counts) == (2, {"no-place": 1})


json_strategy = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["resourceSpans", "resource", "scopeSpans", "spans", "data", "attributes", "key", "value"]
            )
            | st.sampled_from(["traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"])
            | st.sampled_from(["duration", "startTime", "tags", "references", "process", "metric", "result"]),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


@pytest.mark.hypothesis
@given(json_strategy)
def test_no_document_fails_otherwise_than_with_an_input_error(tmp_path_factory: Any, document: Any) -> None:
    known = span("file-read", ns(20), 10**6, values={"server.address": "r0h0"})
    path = write(tmp_path_factory.mktemp("drawn") / "s.jsonl", otlp("r1h0", known), document)
    try:
        result = measure(path, BUSY, FEW)
    except InputError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 (an error is not required)
    else:
        assert result.latencies + result.discards.total == result.rows


def test_the_command_takes_spans_and_names_the_option_in_errors(run: Run, tmp_path: Path) -> None:
    spans = [span("GET", ns(20 + 30 * at), 10**7, at + 1, values={"server.address": "r0"}) for at in range(4)]
    write(tmp_path / "s.jsonl", otlp("r1", *spans))
    given = (
        *("impact", "--cluster", str(EXAMPLES / "clusters/racks.yaml"), "--latency", "s.jsonl"),
        *("--telemetry", str(EXAMPLES / "telemetry/links.parquet"), "--least", "2", "--resamples", "0"),
    )
    result = run(*given, "--operation", "GET=file-read", "-o", "json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["curves"][0]["split"]["operation"] == "file-read"
    refused = run(*given)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "s.jsonl: no span is a known kind of operation" in refused.stderr
    assert "--operation 'GET=file-read' makes spans of this name file reads" in refused.stderr
    assert "error: --operation: GET: `x`: no rule" in run(*given, "--operation", "GET=x").stderr
