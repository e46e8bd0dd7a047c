"""The service is as it describes itself: right is understood, wrong refused, answers have their shape.

Schemathesis makes the requests of what `/v1/openapi.json` says; besides, it is told the names that there are.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import APIOperation, BaseSchema, Case, GenerationMode, Response
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import negative_data_rejection, response_schema_conformance

from leeward import Client
from leeward.client.http import Http

Served = Callable[..., AbstractContextManager[str]]
Operation = APIOperation[Any, Any, Any, Any]
Tried = Case[Operation]

EXAMPLES = 8
"""Requests of each operation, right and wrong."""
CLUSTER = {
    "racks": [{"count": 3, "hosts": 2, "tags": ["ssd"]}],
    "nic": "1Gbps",
    "oversubscription": 2,
    "cpus": 8,
    "priorities": 7,
    "devices": [{"read": "200MB/s", "write": "120MB/s", "capacity": "1TB"}],
}
LINK, DEVICE = [{"rate": "1MB/s", "burst": "1MB"}], [{"rate": "5%", "burst": "8ms"}]
WORKLOAD = {
    "name": "web",
    "client": "r0h0",
    "server": "r1h0",
    "slo": {"percentile": 99.9, "latency": "1s"},
    "curves": {"network-in": LINK, "storage": DEVICE, "network-out": LINK},
}
PATHS = {"host": "r0h0", "id": "0", "job": "web", "link": "r0:uplink", "name": "web", "rack": "r0"}
"""What there is, by what it is called in paths."""
FIELDS = {
    "client": "r0h0",
    "collocate": "r1h1",
    "exclude": "r2",
    "host": "r0h0",
    "hosts": "r0h1",
    "link": "r0:uplink",
    "policy": "uniform",
    "server": "r1h0",
    "tags": "ssd",
    "workload": "web",
    "writer": "r0h0",
}
"""What there is, by the fields of bodies that it stands in."""
HOSTS = [f"r{rack}h{host}" for rack in range(3) for host in range(2)]
"""The same, where several are wanted and no two alike."""
NUMBER = r" *([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)([eE][+-]?[0-9]+)? *"
"""The number of a quantity in its pattern; most that fit it are too large for their units."""
LEFT_OUT = {"/v1/events": "it is a stream, which does not end; test_client.py listens to it"}
WAIT = {"/v1/snapshot": {"wait": "1ms"}}
"""Parameters that would have requests wait for up to a minute."""
NOT_DONE = {
    "GET /v1/demo": "the service is no demo",
    "PUT /v1/demo": "likewise",
    "POST /v1/migrations/{id}": "nothing is advised",
    "PUT /v1/cluster": "what makes a cluster no schema says",
    "POST /v1/probes": "no agent listens",
    "GET /v1/probes/{id}": "nothing was measured",
    "DELETE /v1/probes/{id}": "likewise",
    "POST /v1/place/tasks": "its fields hang together in many ways",
    "POST /v1/place/volumes": "likewise",
    "POST /v1/reports": "few windows are of the last second",
    "POST /v1/workloads": "its fields hang together in many ways",
}
"""Operations of which no right request has to be done, and why."""
BEYOND = re.compile(
    r"has no such|has this name|has the tag|unknown host|unknown policy|no policy|\btwice\b|two tasks"
    r"|to itself|not both|needs one|too large|too much|at most|more than nothing|on one line|above the peak"
    r"|must not be negative|expected a time above 0|expected a share from|the window ends"
    r"|expected one of `trace`|expected the host that has the volume|it is what is decided"
    r"|files cannot be named|expected [0-9.]+ to [0-9.]+ s|takes part in no measurements"
    r"|in a report of their own"
)
"""What may be told of a right body all the same: it is about what there is, or about fields together."""

NOW = datetime.now(UTC)
# A report is not of the time ahead.
TIMES = st.integers(-1800, 0).map(lambda seconds: (NOW + timedelta(seconds=seconds)).isoformat())


@pytest.fixture(scope="module")
def service(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    policies = ["--policy", "sinbad:without_telemetry=default", "--task-policy", "borg"]
    with served(tmp_path_factory.mktemp("openapi"), CLUSTER, *policies) as url:
        client = Client(url)
        assert client.place_replicas("256MiB")["id"] == PATHS["id"]
        client.promise(WORKLOAD)
        yield url


@pytest.fixture(scope="module")
def document(service: str) -> dict[str, Any]:
    document: dict[str, Any] = Http(service).ask("GET", "/v1/openapi.json").body
    for path in LEFT_OUT:
        del document["paths"][path]
    # The service has no tokens.
    del document["components"]["securitySchemes"]
    for methods in document["paths"].values():
        for operation in methods.values():
            del operation["security"]
    return document


def _loaded(document: dict[str, Any], service: str) -> BaseSchema:
    schemathesis.openapi.format("date-time", TIMES)
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=service)
    schema.hook("map_body")(lambda _, body: _whole(body))
    return schema


def _reachable(document: dict[str, Any]) -> dict[str, Any]:
    """A document of which bodies and queries have types of their own, with names that there are."""
    here, there = "#/components/schemas/", "#/components/schemas/Known"
    schemas = document["components"]["schemas"]
    known: dict[str, Any] = json.loads(json.dumps(schemas).replace(here, there))
    paths: dict[str, Any] = json.loads(json.dumps(document["paths"]))
    for operation in (one for methods in paths.values() for one in methods.values()):
        for part in operation.keys() & {"parameters", "requestBody"}:
            operation[part] = json.loads(json.dumps(operation[part]).replace(here, there))
    known = {f"Known{name}": _within_reach(schema) for name, schema in known.items()}
    return document | {"paths": paths, "components": {"schemas": schemas | known}}


def _within_reach(schema: Any) -> Any:
    """A schema of names that there are, where they are known, and of quantities below a hundred of a unit."""
    if isinstance(schema, list):
        return [_within_reach(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: _within_reach(part) for name, part in schema.items()}
    if "pattern" in schema:
        schema["pattern"] = schema["pattern"].replace(NUMBER, "[1-9][0-9]?")
    # The numbers of a model hang together.
    schema.get("properties", {}).pop("model", None)
    for name, field in schema.get("properties", {}).items():
        text = field.get("items", field)
        if name in FIELDS and "string" in text.get("type", ()):
            text.update(
                {"enum": HOSTS} if field.get("uniqueItems") else {"const": FIELDS[name]}, type="string"
            )
            text.pop("pattern", None)
    return schema


def _whole(body: Any) -> Any:
    """A body with `3` for `3.0`: both are whole to a JSON schema, to the service only what is written so."""
    if isinstance(body, dict):
        return {name: _whole(value) for name, value in body.items()}
    if isinstance(body, list):
        return [_whole(value) for value in body]
    return int(body) if isinstance(body, float) and body.is_integer() else body


def _asked(schema: BaseSchema) -> list[Operation]:
    """Every operation; what changes the cluster, of which all others speak, comes last."""
    found = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(found) > 30
    return sorted(found, key=lambda operation: operation.path == "/v1/cluster")


def _try(
    operation: Operation,
    mode: GenerationMode,
    check: Callable[[Tried, Response], None],
) -> Counter[int]:
    """Asks for an operation some times, what is known and what is not; every answer is as it is described."""
    path = {one.name: PATHS[one.name] for one in operation.path_parameters}
    query = WAIT.get(operation.path)
    known = operation.as_strategy(mode, path_parameters=path or None, query=query)
    cases = st.one_of(known, operation.as_strategy(mode, query=query)) if path else known
    seen: Counter[int] = Counter()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def tried(case: Tried) -> None:
        answer = case.call(session=session)
        seen[answer.status_code] += 1
        assert answer.status_code < 500 or answer.status_code == 503, answer.text
        case.validate_response(answer, checks=[response_schema_conformance])
        check(case, answer)

    with requests.Session() as session:
        tried()
    return seen


def test_what_is_right_is_understood(document: dict[str, Any], service: str) -> None:
    def understood(case: Tried, answer: Response) -> None:
        if case.operation.path == "/v1/cluster":
            assert answer.status_code in (200, 412, 422), answer.text
        elif answer.status_code == 422 and case.operation.body:
            assert BEYOND.search(answer.json()["detail"]), answer.text
        else:
            assert answer.status_code in (200, 201, 204, 404, 409), answer.text

    described = _loaded(_reachable(document), service)
    for operation in _asked(described):
        seen = _try(operation, GenerationMode.POSITIVE, understood)
        done = sum(times for status, times in seen.items() if status < 300)
        assert done or operation.label in NOT_DONE, f"{operation.label}: {seen}"


def test_what_is_wrong_is_refused(document: dict[str, Any], service: str) -> None:
    def refused(case: Tried, answer: Response) -> None:
        case.validate_response(answer, checks=[negative_data_rejection])

    for operation in _asked(_loaded(document, service)):
        if operation.query or operation.body:
            assert sum(_try(operation, GenerationMode.NEGATIVE, refused).values()) > 0, operation.label
