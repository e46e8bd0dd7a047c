"""Spans of OpenTelemetry (OTLP in JSON) and of Jaeger: one form for both.

https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding has the first, which collectors write with
one document on each line. The second is what the API and the page of Jaeger return.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leeward.impact.records import text, whole

KINDS = {1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}
"""Kinds of spans by their numbers in OTLP."""
HOST = ("leeward.host", "k8s.node.name", "host.name", "hostname")
"""Attributes that name the host of a process. In Kubernetes, `host.name` is often that of the pod."""
_FAILED = (2, "STATUS_CODE_ERROR")


@dataclass(frozen=True, slots=True)
class Span:
    """A span.

    Attributes:
        trace: Trace.
        span: Name of the span in its trace.
        parent: Name of the span that caused it; empty for the first span of a trace.
        name: Kind of its work.
        kind: One of `KINDS`, or empty.
        end_ns: End in nanoseconds since 1970; None if it is unknown.
        duration_ns: Duration; negative if the clock was set back, None if it is unknown.
        host: Host of its process; empty if it is unknown.
        failed: True if the work failed.
        attributes: Further values by their names.
    """

    trace: str
    span: str
    parent: str
    name: str
    kind: str
    end_ns: int | None
    duration_ns: int | None
    host: str
    failed: bool
    attributes: Mapping[str, Any]

    def first(self, names: tuple[str, ...]) -> str | None:
        """Value of the first attribute that has one."""
        return next((found for name in names if (found := text(self.attributes.get(name)))), None)


def spans_of(document: Any) -> Iterator[Span]:
    """Spans of a JSON document.

    Raises:
        ValueError: The document has no spans of a known form.
    """
    if isinstance(document, dict) and "resourceSpans" in document:
        for resource in _objects(document["resourceSpans"]):
            yield from _otlp(resource)
        return
    traces = document.get("data", [document]) if isinstance(document, dict) else document
    known = [trace for trace in _objects(traces) if "spans" in trace]
    if not known and traces:
        message = "expected spans of OpenTelemetry (`resourceSpans`) or Jaeger (`data`, `spans`)"
        raise ValueError(f"{message}, or an answer of Prometheus (`resultType`)")
    for trace in known:
        processes = trace.get("processes")
        for span in _objects(trace["spans"]):
            yield _jaeger(span, processes if isinstance(processes, dict) else {})


def _otlp(resource: dict[str, Any]) -> Iterator[Span]:
    described = resource.get("resource")
    shared = _attributes(described.get("attributes")) if isinstance(described, dict) else {}
    for name in ("scopeSpans", "instrumentationLibrarySpans"):
        for scope in _objects(resource.get(name)):
            for span in _objects(scope.get("spans")):
                attributes = _attributes(span.get("attributes"))
                start = whole(span.get("startTimeUnixNano"))
                end = whole(span.get("endTimeUnixNano"))
                kind = span.get("kind")
                status = span.get("status")
                yield Span(
                    text(span.get("traceId")) or "",
                    text(span.get("spanId")) or "",
                    text(span.get("parentSpanId")) or "",
                    text(span.get("name")) or "",
                    _kind(kind),
                    end,
                    None if start is None or end is None else end - start,
                    _host(attributes, shared),
                    isinstance(status, dict) and status.get("code") in _FAILED,
                    attributes,
                )


def _jaeger(span: dict[str, Any], processes: Mapping[str, Any]) -> Span:
    attributes = _tags(span.get("tags"))
    process = span.get("process", processes.get(str(span.get("processID"))))
    shared = _tags(process.get("tags")) if isinstance(process, dict) else {}
    start, duration = whole(span.get("startTime"), 2**52), whole(span.get("duration"), 2**52)
    parents = [one for one in _objects(span.get("references")) if one.get("refType") == "CHILD_OF"]
    parent = parents[0].get("spanID") if parents else span.get("parentSpanId", span.get("parentSpanID"))
    failed = attributes.get("error") in (True, "true") or attributes.get("otel.status_code") == "ERROR"
    return Span(
        text(span.get("traceID")) or "",
        text(span.get("spanID")) or "",
        text(parent) or "",
        text(span.get("operationName")) or "",
        _kind(attributes.get("span.kind")),
        None if start is None or duration is None else 1000 * (start + duration),
        None if duration is None else 1000 * duration,
        _host(attributes, shared),
        failed,
        attributes,
    )


def _kind(kind: object) -> str:
    if isinstance(kind, int):
        return KINDS.get(kind, "")
    name = kind.removeprefix("SPAN_KIND_").lower() if isinstance(kind, str) else ""
    return name if name in KINDS.values() else ""


def _host(attributes: Mapping[str, Any], shared: Mapping[str, Any]) -> str:
    values = (text(one.get(name)) for one in (attributes, shared) for name in HOST)
    return next((value for value in values if value), "")


def _objects(value: object) -> list[dict[str, Any]]:
    """Objects of a list; nothing for another value."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _attributes(value: object) -> dict[str, Any]:
    """Attributes of OTLP: a list of keys, each with a value of one type."""
    result = {}
    for one in _objects(value):
        key, typed = one.get("key"), one.get("value")
        if isinstance(key, str) and isinstance(typed, dict):
            names = ("stringValue", "intValue", "doubleValue", "boolValue")
            result[key] = next((typed[name] for name in names if name in typed), None)
    return result


def _tags(value: object) -> dict[str, Any]:
    """Tags of Jaeger: a list of keys with values."""
    return {one["key"]: one.get("value") for one in _objects(value) if isinstance(one.get("key"), str)}
