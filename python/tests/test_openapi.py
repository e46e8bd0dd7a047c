"""The service follows its OpenAPI document: it accepts valid requests, rejects invalid ones.

Schemathesis generates the requests from `/v1/openapi.json`. The test adds existing names,
and a valid request for each operation that Schemathesis seldom generates one for.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
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
from leeward.client.types import TaskReport

Serve = Callable[..., AbstractContextManager[str]]
Operation = APIOperation[Any, Any, Any, Any]
Tried = Case[Operation]

EXAMPLES = 10
"""Number of valid requests, and of invalid requests, of each operation."""
ROLES = ("read", "report", "place", "admin")
"""Roles of tokens; each includes the ones before it."""
CLUSTER = {
    "racks": [{"count": 3, "hosts": 2, "tags": ["ssd"]}],
    "nic": "1Gbps",
    "oversubscription": 2,
    "cpus": 8,
    "priorities": 7,
    "devices": [{"read": "200MB/s", "write": "120MB/s", "capacity": "1TB", "type": "ssd"}],
}
LINK, DEVICE = [{"rate": "1MB/s", "burst": "1MB"}], [{"rate": "5%", "burst": "8ms"}]
WORKLOAD = {
    "name": "web",
    "client": "r0h0",
    "server": "r1h0",
    "slo": {"percentile": 99.9, "latency": "1s"},
    "curves": {"network-in": LINK, "storage": DEVICE, "network-out": LINK},
}
PATHS = {
    "enforcer": "nfs@r0h0",
    "host": "r0h0",
    "id": "0",
    "job": "web",
    "link": "r0:uplink",
    "name": "web",
    "rack": "r0",
}
"""Existing names, by path parameter."""
ENDED = "ended@r0h0"
"""An enforcer to remove."""
FIELDS = {
    "client": "r0h0",
    "collocate": "r1h1",
    "exclude": "r2",
    "existing": "r1h0",
    "host": "r0h0",
    "hosts": "r0h1",
    "link": "r0:uplink",
    "prefer": "r1h1",
    "policy": "uniform",
    "reader": "r0h0",
    "server": "r1h0",
    "storage": "ssd",
    "tags": "ssd",
    "workload": "web",
    "writer": "r0h0",
}
"""Existing names, by the fields of bodies that use them."""
HOSTS = [f"r{rack}h{host}" for rack in range(3) for host in range(2)]
"""Existing hosts, for fields with several distinct names."""
NUMBER = r" *([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)([eE][+-]?[0-9]+)? *"
"""The number in the pattern of a quantity; most numbers that match it are too large for their units."""
BUSY = "urn:leeward:problem:busy"
LEFT_OUT = {"/v1/events": "it is a stream, which does not end; test_client.py tests it"}
WAIT = {
    "GET /v1/snapshot": {"wait": "1ms", "interval": "1ms"},
    "GET /v1/workloads": {"wait": "1ms"},
    "GET /v1/enforcers/{enforcer}/promises": {"wait": "1ms"},
}
"""Parameters that keep requests from waiting for up to a minute."""
BATCHES = ("/v1/commitments/batch", "/v1/place/batch")
"""Operations that answer each item by itself: a text that is no quantity rejects its item only."""
NOT_ACCEPTED = {"GET /v1/demo": "the service is no demo", "PUT /v1/demo": "likewise"}
"""Operations that need not accept any request, and the reasons."""
APP = {
    "tasks": [{"name": "a", "cpus": 1, "egress": {"mean": "1Mbps"}}, {"name": "b"}],
    "transfers": [{"from": "a", "to": "b", "bytes": "1MB"}],
}
BLOCK = {"size": "1MiB", "replicas": 1}
VALID_BODIES: dict[str, Callable[[], Any]] = {
    "POST /v1/commitments": lambda: {"hosts": ["r0h0", "r1h0"], "tasks": {"app": APP}},
    "POST /v1/commitments/batch": lambda: {"commitments": [{"hosts": ["r0h0"], "replicas": BLOCK}]},
    "POST /v1/migrations/{id}": lambda: {"answer": "done"},
    "POST /v1/place/tasks": lambda: {"app": APP, "job": "web"},
    "POST /v1/place/volumes": lambda: {"workload": _workload("index", server=None)},
    "POST /v1/probes": lambda: {"kind": "path", "hosts": ["r0h0", "r0h1"]},
    "POST /v1/reports": lambda: _second() | {"links": [{"link": "r2:uplink", "load_bps": 1_000_000}]},
    "POST /v1/workloads": lambda: {"workload": _workload("mail", server="r1h1")},
    "PUT /v1/cluster": lambda: CLUSTER | {"name": "another"},
    "PUT /v1/enforcers/{enforcer}": lambda: {"kind": "nfs", "host": "r0h0"},
    "PUT /v1/workloads/{name}": lambda: {"workload": WORKLOAD},
}
"""Valid bodies by operation: generated bodies are seldom valid, because their fields depend on each other."""
EXPECTED_REFUSALS = re.compile(
    r"has no such|has this name|has the tag|unknown host|unknown policy|no policy|\btwice\b|is a duplicate"
    r"|two tasks|to itself|not both|needs? one|too large|too much|at most|more than nothing"
    r"|on one line|above the peak"
    r"|must not be negative|expected a time above 0|expected a share from|the window ends"
    r"|expected one of `trace`|expected the host that has the volume|the decision sets it"
    r"|files cannot be named|expected ([0-9.]+ to|at least) [0-9.]+ s|takes no part in measurements"
    r"|one for each|two copies|already expired|in the future|has the type|has the label|needs its own"
    r"|give `replicas` or `tasks`|expected a time before|expected the name of the executor|expected no reason"
    r"|needs \d+ chunks|none is missing|rebuilds a stripe|give `stored` with it"
    r"|no mode is given|is drawn by|in a report of their own|the cluster is a tree|each once|no stage"
    r"|expected none: only an? |expected the reason or|expected 1s to|expected the name of the path"
    r"|expected the size of the volume"
)
"""Errors of bodies that match their schema: errors about existing objects, or about several fields."""

SEVERAL_PARAMETERS = ("/v1/enforcers/{enforcer}/promises", "/v1/snapshot", "/v1/summary")
"""Reads whose parameters depend on each other."""
NOW = datetime.now(UTC)
# Reports of future times are invalid.
TIMES = st.integers(-1800, 0).map(lambda seconds: (NOW + timedelta(seconds=seconds)).isoformat())


@dataclass(frozen=True)
class Service:
    """A service, and the ids of existing objects for paths or operations whose ids differ from `PATHS`."""

    url: str
    ids: Mapping[str, str]

    def existing_path_parameters(self, operation: Operation) -> dict[str, str]:
        """Returns a value for each path parameter of an operation."""
        names = [one.name for one in operation.path_parameters]
        own = self.ids.get(operation.label) or self.ids.get(operation.path)
        return {name: own or PATHS[name] for name in names}


def _second() -> dict[str, str]:
    """Returns a window of one second that has just ended."""
    now = datetime.now(UTC)
    return {"from": (now - timedelta(seconds=1)).isoformat(), "until": now.isoformat()}


def _workload(name: str, server: str | None) -> dict[str, Any]:
    workload = WORKLOAD | {"name": name, "server": server}
    return {field: value for field, value in workload.items() if value is not None}


def _advised_move(client: Client) -> str:
    """Reports a hot rack with movable tasks until a move is advised; returns the id of the move."""
    app = {"tasks": [{"name": "t", "tolerant": True}]}
    placed = [client.place_tasks(app) for _ in range(8)]
    hot = placed[0]["hosts"][0][:2]
    tasks: list[TaskReport] = [
        {"decision": one["id"], "task": 0, "egress_bps": 300_000_000, "ingress_bps": 0}
        for one in placed
        if one["hosts"][0][:2] == hot
    ]
    for _ in range(100):
        until = datetime.now(UTC)
        links = {link["link"]: 0.0 for link in client.links()} | {f"{hot}:uplink": 0.95e9}
        client.report(until - timedelta(milliseconds=90), until, links=links, tasks=tasks)
        for move in client.migrations():
            return move["id"]
        time.sleep(0.1)
    raise AssertionError("no move is advised")


@pytest.fixture(scope="module")
def service(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("openapi")
    policies = {"replicas": "sinbad:without_telemetry=default", "tasks": "borg", "moves": "utp"}
    # No host listens at these addresses: a survey of them exists, and its measurements fail.
    probes = {"addresses": dict.fromkeys(HOSTS, "127.0.0.1:9")}
    (folder / "settings.json").write_text(json.dumps({"policies": policies, "probes": probes}))
    with serve(folder, CLUSTER, "--config", "settings.json") as url:
        client = Client(url)
        assert client.place_replicas("256MiB")["id"] == PATHS["id"]
        client.promise(WORKLOAD)
        for enforcer in (PATHS["enforcer"], ENDED):
            client.acknowledge(enforcer, "nfs", "r0h0", lease="1h")
        survey = client.begin_probe("path", ["r0h0", "r0h1"])["id"]
        reserved = client.place_replicas("1MiB", reserve="1h")["id"]
        ids = {"/v1/probes/{id}": survey, "/v1/migrations/{id}": _advised_move(client)}
        ids["DELETE /v1/enforcers/{enforcer}"] = ENDED
        yield Service(url, ids | {"/v1/decisions/{id}/confirm": reserved})


@pytest.fixture(scope="module")
def document(service: Service) -> dict[str, Any]:
    return _open(Http(service.url))[0]


def _open(http: Http) -> tuple[dict[str, Any], dict[str, str | None]]:
    """Returns the document without its roles, and the role of each operation."""
    document: dict[str, Any] = http.ask("GET", "/v1/openapi.json").body
    for path in LEFT_OUT:
        del document["paths"][path]
    del document["components"]["securitySchemes"]
    needed = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            security = operation.pop("security")
            needed[f"{method.upper()} {path}"] = security[0]["bearer"][0] if security else None
    return document, needed


def _schema(document: dict[str, Any], url: str) -> BaseSchema:
    schemathesis.openapi.format("date-time", TIMES)
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=url)
    schema.hook("map_body")(lambda _, body: _with_integers(body))
    return schema


def _with_existing_names(document: dict[str, Any]) -> dict[str, Any]:
    """Returns a document whose bodies and queries have schemas of their own, with existing names."""
    here, there = "#/components/schemas/", "#/components/schemas/Known"
    schemas = document["components"]["schemas"]
    restricted: dict[str, Any] = json.loads(json.dumps(schemas).replace(here, there))
    paths: dict[str, Any] = json.loads(json.dumps(document["paths"]))
    for operation in (one for methods in paths.values() for one in methods.values()):
        for part in operation.keys() & {"parameters", "requestBody"}:
            operation[part] = json.loads(json.dumps(operation[part]).replace(here, there))
    restricted = {f"Known{name}": _restrict(schema) for name, schema in restricted.items()}
    return document | {"paths": paths, "components": {"schemas": schemas | restricted}}


def _restrict(schema: Any) -> Any:
    """Returns a schema with existing names in known fields, and with quantities below 100 of a unit."""
    if isinstance(schema, list):
        return [_restrict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: _restrict(part) for name, part in schema.items()}
    if "pattern" in schema:
        schema["pattern"] = schema["pattern"].replace(NUMBER, "[1-9][0-9]?")
    # The numbers of a model depend on each other.
    schema.get("properties", {}).pop("model", None)
    for name, field in schema.get("properties", {}).items():
        text = field.get("items", field)
        if name in FIELDS and "string" in text.get("type", ()):
            text.update(
                {"enum": HOSTS} if field.get("uniqueItems") else {"const": FIELDS[name]}, type="string"
            )
            text.pop("pattern", None)
    return schema


def _with_integers(body: Any) -> Any:
    """Returns a body with `3` for `3.0`. Both are integers in JSON Schema; the service accepts only `3`."""
    if isinstance(body, dict):
        return {name: _with_integers(value) for name, value in body.items()}
    if isinstance(body, list):
        return [_with_integers(value) for value in body]
    return int(body) if isinstance(body, float) and body.is_integer() else body


def _operations(schema: BaseSchema) -> list[Operation]:
    """Returns every operation. Those that change the cluster, which all others use, come last."""
    operations = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    assert len(operations) > 30
    return sorted(operations, key=lambda operation: operation.path == "/v1/cluster")


def _send_examples(
    cases: st.SearchStrategy[Tried], times: int, ask: Callable[[Tried, requests.Session], Response]
) -> Counter[int]:
    """Sends a number of generated requests; returns the count of each status."""
    seen: Counter[int] = Counter()

    @settings(
        max_examples=times,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def send(case: Tried) -> None:
        seen[ask(case, session).status_code] += 1

    with requests.Session() as session:
        send()
    return seen


def _check_answer(case: Tried, answer: Response) -> None:
    """Checks an answer against its schema. A status of 500 or above is an error, except for busy probes."""
    busy = case.operation.label == "POST /v1/probes" and answer.json().get("type") == BUSY
    assert answer.status_code < 500 or busy, answer.text
    case.validate_response(answer, checks=[response_schema_conformance])


def _try(
    service: Service,
    operation: Operation,
    mode: GenerationMode,
    check: Callable[[Tried, Response], None],
) -> Counter[int]:
    """Sends requests of an operation, for existing and other objects; returns the count of each status."""
    path, query = service.existing_path_parameters(operation), WAIT.get(operation.label)
    existing = operation.as_strategy(mode, path_parameters=path or None, query=query)
    cases = st.one_of(existing, operation.as_strategy(mode, query=query)) if path else existing

    def ask(case: Tried, session: requests.Session) -> Response:
        answer = case.call(session=session)
        _check_answer(case, answer)
        check(case, answer)
        return answer

    return _send_examples(cases, EXAMPLES, ask)


def test_valid_requests_are_accepted(document: dict[str, Any], service: Service) -> None:
    def check_accepted(case: Tried, answer: Response) -> None:
        if case.operation.path == "/v1/cluster":
            assert answer.status_code in (200, 412, 422), answer.text
        elif answer.status_code == 503 and case.operation.path == "/v1/probes":
            assert "is running" in answer.json()["detail"], answer.text
        elif answer.status_code == 422 and (case.operation.body or case.operation.path in SEVERAL_PARAMETERS):
            assert EXPECTED_REFUSALS.search(answer.json()["detail"]), answer.text
        else:
            assert answer.status_code in (200, 201, 204, 404, 409), answer.text

    described = _schema(_with_existing_names(document), service.url)
    for operation in _operations(described):
        if body := VALID_BODIES.get(operation.label):
            case = operation.Case(path_parameters=service.existing_path_parameters(operation), body=body())
            answer = case.call()
            assert answer.status_code in (200, 201), answer.text
            _check_answer(case, answer)
        statuses = _try(service, operation, GenerationMode.POSITIVE, check_accepted)
        accepted = sum(times for status, times in statuses.items() if status < 300)
        assert accepted or operation.label in VALID_BODIES | NOT_ACCEPTED, f"{operation.label}: {statuses}"


def test_invalid_requests_are_rejected(document: dict[str, Any], service: Service) -> None:
    def check_rejected(case: Tried, answer: Response) -> None:
        if case.operation.path in BATCHES and answer.status_code == 200:
            assert any(400 <= one["status"] < 500 for one in answer.json()["results"]), answer.text
        else:
            case.validate_response(answer, checks=[negative_data_rejection])

    for operation in _operations(_schema(document, service.url)):
        if operation.query or operation.body:
            statuses = _try(service, operation, GenerationMode.NEGATIVE, check_rejected)
            assert sum(statuses.values()) > 0, operation.label


def test_each_role_is_authorized_as_documented(
    serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("roles")
    tokens = {role: f"token of {role}" for role in ROLES}
    lines = [f"{role} {role} {sha256(token.encode()).hexdigest()}\n" for role, token in tokens.items()]
    (folder / "tokens").write_text("".join(lines))
    with serve(folder, CLUSTER, "--tokens", "tokens", "--task-policy", "borg") as url:
        document, needed = _open(Http(url, tokens["read"]))
        for operation in _operations(_schema(_with_existing_names(document), url)):
            role = needed[operation.label]

            def ask(case: Tried, session: requests.Session, role: str | None = role) -> Response:
                for token in (None, "of nobody", *tokens.values()):
                    headers = {"authorization": f"Bearer {token}"} if token else {}
                    answer = case.call(session=session, headers=headers)
                    _check_answer(case, answer)
                    allowed = role is None or token in [tokens[one] for one in ROLES[ROLES.index(role) :]]
                    refused = 403 if token in tokens.values() else 401
                    is_refused = answer.status_code in (401, 403)
                    assert is_refused != allowed, f"{case.operation.label}, {token}: {answer.text}"
                    assert allowed or answer.status_code == refused, answer.text
                return answer

            path = {one.name: PATHS[one.name] for one in operation.path_parameters}
            query = WAIT.get(operation.label)
            cases = operation.as_strategy(GenerationMode.POSITIVE, path_parameters=path or None, query=query)
            _send_examples(cases, 2, ask)
