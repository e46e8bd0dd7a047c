"""Answers of Prometheus that depend on the client or may be incomplete, the cache, and several servers."""

import base64
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from leeward import Cluster, InputError
from leeward.telemetry import Samples, read
from leeward.telemetry.access import read_access
from leeward.telemetry.http import Server
from support.prometheus import END, LOADS, Answer, good, loads

DAY = 86_400
WARNING = "receive series from Addr: store-1:10901: connection refused"
CLUSTER = {"racks": 2, "hosts_per_rack": 2, "nic": "10Gbps", "rack_link": "40Gbps"}
Run = Callable[..., subprocess.CompletedProcess[str]]


def with_warnings(answer: Answer, field: str = "warnings") -> Answer:
    """The answer with a warning, as Thanos sends it if a store is down."""
    status, headers, text = answer
    return status, headers, json.dumps(json.loads(text) | {field: [WARNING]}).encode()


def read_loads(folder: Path, url: str | list[str], **given: Any) -> Samples:
    (folder / "map.yaml").write_text(LOADS)
    request: dict[str, Any] = {"since": "1d", "now_ms": 1000 * END, "keep": folder / "kept"} | given
    return read(Cluster(CLUSTER), prometheus=url, map=folder / "map.yaml", **request)


def bits(samples: Samples) -> dict[str, int]:
    names = samples.links["name"].to_pylist()
    summed = samples.table.group_by("link").agg(bits=lambda table: table.bits.sum()).order_by("link")
    return {names[row["link"]]: int(row["bits"]) for row in samples.engine.arrow(summed).to_pylist()}


@pytest.mark.parametrize("field", ["warnings", "infos"])
def test_an_answer_with_warnings_is_reported_and_queried_again(fake: Any, tmp_path: Path, field: str) -> None:
    down, asked = [True], [0]

    def answer(_: int, request_text: str) -> Answer:
        asked[0] += "ms%5D" in request_text
        whole = loads(request_text)
        if not (down[0] and "ms%5D" in request_text):
            return whole
        return with_warnings(good({"resultType": "matrix", "result": []}), field) if asked[0] % 2 else whole

    url = fake(answer)
    with_gaps = read_loads(tmp_path, url)
    assert with_gaps.discards.counts["partial"] > 0
    assert WARNING in with_gaps.discards.examples["partial"][0]
    down[0] = False
    complete = read_loads(tmp_path, url)
    assert "partial" not in complete.discards.counts
    assert bits(complete) == {"r0:uplink": 8 * 10**6 * (DAY // 30 - 1) * 30}
    assert bits(with_gaps)["r0:uplink"] < bits(complete)["r0:uplink"]


@pytest.mark.parametrize("command", ["hotspots", "plan"])
def test_a_command_with_partial_answers_has_a_code_of_its_own(
    run: Run, fake: Any, tmp_path: Path, command: str
) -> None:
    def answer(_: int, request_text: str) -> Answer:
        whole = loads(request_text)
        return with_warnings(whole) if "ms%5D" in request_text else whole

    (tmp_path / "map.yaml").write_text(LOADS)
    (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
    source = "--prometheus", fake(answer), "--map", tmp_path / "map.yaml", "--until", "2025-11-22"
    given = command, "--cluster", tmp_path / "cluster.json", *source, "--cache", tmp_path / "kept"
    for extra, code in (((), 3), (("--partial-ok",), 0), (("-q", "-o", "csv"), 3)):
        ended = run(*given, *extra)
        assert ended.returncode == code
        assert f"warning: the answer may be incomplete: {source[1]}: {WARNING}" in ended.stderr
    if command == "hotspots":
        # The doubt is among the first lines.
        assert "partial: " in "\n".join(run(*given).stdout.splitlines()[:4])
        document = json.loads(run(*given, "-o", "json").stdout)
        assert "partial" in {row["reason"] for row in document["discards"]}


def tenants(request_text: str) -> Answer:
    """Each tenant and user has a link of its own."""
    who = (
        "r1:uplink" if "'X-Scope-OrgID': 'b'" in request_text or "Basic Yjpw" in request_text else "r0:uplink"
    )
    status, headers, text = loads(request_text)
    return status, headers, text.replace(b"r0:uplink", who.encode())


@pytest.mark.parametrize(
    "files",
    [
        ["http_headers: {X-Scope-OrgID: a}", "http_headers: {X-Scope-OrgID: b}"],
        ["basic_auth: {username: a, password: p}", "basic_auth: {username: b, password: p}"],
    ],
)
def test_answers_are_cached_for_each_client(fake: Any, tmp_path: Path, files: list[str]) -> None:
    url = fake(lambda _, request_text: tenants(request_text))
    found = []
    for text in files:
        (tmp_path / "http.yaml").write_text(text)
        found.append(set(bits(read_loads(tmp_path, url, http=tmp_path / "http.yaml"))))
    assert found == [{"r0:uplink"}, {"r1:uplink"}]


def test_a_new_password_or_client_secret_is_the_same_identity(tmp_path: Path) -> None:
    def identity(text: str) -> str:
        (tmp_path / "http.yaml").write_text(text)
        return read_access(tmp_path / "http.yaml").identity

    assert identity("basic_auth: {username: a, password: p}") == identity(
        "basic_auth: {username: a, password: q}"
    )
    client = "oauth2: {client_id: %s, client_secret: %s, token_url: 'https://sso/token', scopes: [%s]}"
    assert identity(client % ("a", "s", "x")) == identity(client % ("a", "t", "x"))
    texts = [
        *("http_headers: {A: x}", "http_headers: {A: y}", "http_headers: {B: x}"),
        *("authorization: {credentials: x}", "authorization: {credentials: y}"),
        *(client % ("a", "s", "x"), client % ("b", "s", "x"), client % ("a", "s", "y")),
    ]
    assert len({identity(text) for text in texts}) == len(texts)


def test_refresh_queries_cached_answers_again(fake: Any, tmp_path: Path) -> None:
    factor = [1]

    def answer(_: int, request_text: str) -> Answer:
        status, headers, text = loads(request_text)
        if "ms%5D" in request_text:
            document = json.loads(text)
            for result in document["data"]["result"]:
                result["values"] = [[at, str(int(value) * factor[0])] for at, value in result["values"]]
            text = json.dumps(document).encode()
        return status, headers, text

    url = fake(answer)
    first = bits(read_loads(tmp_path, url))["r0:uplink"]
    factor[0] = 2
    assert bits(read_loads(tmp_path, url))["r0:uplink"] < 1.1 * first
    assert bits(read_loads(tmp_path, url, refresh=True))["r0:uplink"] == 2 * first
    assert bits(read_loads(tmp_path, url))["r0:uplink"] == 2 * first


def test_the_cache_is_listed_and_cleared(run: Run, fake: Any, tmp_path: Path) -> None:
    urls = [fake(lambda _, request_text: loads(request_text)) for _ in range(2)]
    for url in urls:
        read_loads(tmp_path, url)
    (tmp_path / "kept" / "mine.txt").write_text("not of the cache")
    cache = "--cache", tmp_path / "kept"
    rows = json.loads(run("telemetry", "cache", "list", *cache, "-o", "json").stdout)
    assert [row["server"] for row in rows] == sorted(urls)
    assert {row["query"] for row in rows} == {"ifHCOutOctets"}
    assert all(row["size_bytes"] > 0 and row["pieces"] > 0 for row in rows)
    run("telemetry", "cache", "clear", "--prometheus", urls[0], *cache)
    rows = json.loads(run("telemetry", "cache", "list", *cache, "-o", "json").stdout)
    assert [row["server"] for row in rows] == [urls[1]]
    assert "no answers of http:" in run("telemetry", "cache", "clear", "--prometheus", urls[0], *cache).stderr
    run("telemetry", "cache", "clear", *cache)
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["mine.txt"]


def test_several_servers_are_all_read_and_copies_count_once(fake: Any, tmp_path: Path) -> None:
    def other(_: int, request_text: str) -> Answer:
        status, headers, text = loads(request_text)
        return status, headers, text.replace(b"r0:uplink", b"r1:uplink")

    copies = [fake(lambda _, request_text: loads(request_text)) for _ in range(2)]
    samples = read_loads(tmp_path, [*copies, fake(other)])
    wanted = 8 * 10**6 * (DAY // 30 - 1) * 30
    assert bits(samples) == {"r0:uplink": wanted, "r1:uplink": wanted}
    assert set(samples.discards.counts) == {"replica"}


def test_a_server_of_tokens_may_have_a_certificate_of_another_name(tmp_path: Path) -> None:
    tls = "tls_config: {server_name: sso.example}"
    oauth2 = f"client_id: a, client_secret: b, token_url: 'https://192.0.2.1', {tls}"
    (tmp_path / "http.yaml").write_text(f"oauth2: {{{oauth2}}}")
    access = read_access(tmp_path / "http.yaml")
    assert access.oauth2 is not None
    assert (access.oauth2.server_name, access.server_name) == ("sso.example", None)


def test_tokens_are_requested_by_oauth2_and_renewed(fake: Any, tmp_path: Path) -> None:
    granted: list[dict[str, list[str]]] = []

    def token(number: int, request_text: str) -> Answer:
        assert base64.b64encode(b"leeward:s3cret").decode() in request_text
        granted.append(parse_qs(request_text.split()[1]))
        return 200, {}, json.dumps({"access_token": f"t{number}", "expires_in": 60}).encode()

    now, seen = [0.0], []

    def answer(_: int, request_text: str) -> Answer:
        seen.append(request_text.rpartition("Bearer ")[2][:2])
        return good([])

    (tmp_path / "secret").write_text("s3cret\n")
    (tmp_path / "http.yaml").write_text(
        f"oauth2: {{client_id: leeward, client_secret_file: secret, token_url: '{fake(token)}/token', "
        "scopes: [read, metrics], endpoint_params: {audience: prom}}"
    )
    prometheus = Server(fake(answer), read_access(tmp_path / "http.yaml"), clock=lambda: now[0])
    for time in (0.0, 30.0, 55.0):
        now[0] = time
        prometheus.ask("query", query="up")
    assert seen == ["t0", "t0", "t1"]
    assert granted[0] == {
        "grant_type": ["client_credentials"],
        "scope": ["read metrics"],
        "audience": ["prom"],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("oauth2: {client_id: a, client_secret: b}", "oauth2.token_url: expected a text"),
        ("oauth2: {client_id: a, client_secret: b, token_url: sso}", "oauth2.token_url: expected an address"),
        ("oauth2: {client_id: a, token_url: 'http://sso'}", "oauth2.client_secret: expected a text"),
        ("oauth2: {client: a}", "oauth2.client: no such field"),
        ("proxy_url: proxy", "proxy_url: expected the address of a proxy"),
        ("tls_config: {server_name: [a]}", "tls_config.server_name: expected a text"),
        (
            "oauth2: {client_id: a, client_secret: b, token_url: 'http://s', tls_config: {server_name: [a]}}",
            "oauth2.tls_config.server_name: expected a text",
        ),
        (
            "{basic_auth: {username: a, password: b}, authorization: {credentials: c}}",
            "expected one of basic_auth, authorization and oauth2",
        ),
    ],
)
def test_invalid_credentials_name_their_field(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "http.yaml").write_text(text)
    with pytest.raises(InputError, match=message.replace(".", r"\.")):
        read_access(tmp_path / "http.yaml")


def test_a_token_server_without_a_token_is_an_error(fake: Any, tmp_path: Path) -> None:
    url = fake(lambda *_: (401, {}, b'{"error": "invalid_client"}'))
    (tmp_path / "http.yaml").write_text(
        f"oauth2: {{client_id: a, client_secret: b, token_url: '{url}/token'}}"
    )
    with pytest.raises(InputError, match="no token: the server answers 401"):
        Server("http://127.0.0.1:1", read_access(tmp_path / "http.yaml")).ask("query", query="up")


@pytest.mark.parametrize(
    ("expires", "lifetime"), [('"3599"', 3589.0), ("null", 50.0), ('"soon"', None), ('"NaN"', None)]
)
def test_the_time_of_a_token_may_be_a_text_and_no_error_shows_an_answer(
    fake: Any, tmp_path: Path, expires: str, lifetime: float | None
) -> None:
    seen: list[str] = []

    def token(_: int, request_text: str) -> Answer:
        seen.append(request_text)
        return 200, {}, f'{{"access_token": "hush", "expires_in": {expires}}}'.encode()

    client = f"client_id: 'a:b', client_secret: '50%+', token_url: '{fake(token)}/token'"
    (tmp_path / "http.yaml").write_text(f"oauth2: {{{client}}}")
    oauth2 = read_access(tmp_path / "http.yaml").oauth2
    assert oauth2 is not None
    if lifetime is None:
        with pytest.raises(InputError, match="an `expires_in` that is no number") as raised:
            oauth2.header(lambda: 0.0)
        assert "hush" not in str(raised.value)
        return
    assert oauth2.header(lambda: 0.0) == "Bearer hush"
    assert oauth2.token == ("hush", lifetime)
    # The client is encoded as in a form.
    assert base64.b64encode(b"a%3Ab:50%25%2B").decode() in seen[0]


def test_the_proxy_and_the_name_of_a_server_are_part_of_the_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def identity(text: str) -> str:
        (tmp_path / "http.yaml").write_text(text)
        return read_access(tmp_path / "http.yaml").identity

    texts = ("{}", "proxy_url: 'http://a:1'", "proxy_url: 'http://b:1'", "tls_config: {server_name: a}")
    found = [identity(text) for text in texts]
    monkeypatch.setenv("http_proxy", "http://c:1")
    assert len({*found, identity("{}")}) == len(texts) + 1


def test_queries_go_through_the_proxy_of_the_file(fake: Any, tmp_path: Path) -> None:
    seen: list[str] = []

    def proxy(_: int, request_text: str) -> Answer:
        seen.append(request_text.split(maxsplit=1)[0])
        return good([1])

    (tmp_path / "http.yaml").write_text(f"proxy_url: '{fake(proxy)}'")
    prometheus = Server("http://prom.invalid:9090", read_access(tmp_path / "http.yaml"))
    assert prometheus.ask("query", query="up").data == [1]
    assert seen == ["http://prom.invalid:9090/api/v1/query"]
