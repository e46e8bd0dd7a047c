"""Access to a Prometheus server: headers, credentials, certificates and a proxy.

The file is that of promtool's `--http.config.file`:
https://prometheus.io/docs/prometheus/latest/configuration/promtool/#http_config_file
"""

import base64
import hashlib
import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from math import isnan, nan
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit
from urllib.request import getproxies

import yaml
from urllib3.exceptions import HTTPError

from leeward._http import connections, root_cause
from leeward.errors import InputError

TOKEN_TIMEOUT_S = 30.0
"""Time limit of a request for a token, in seconds."""
MOST_TOKEN_BYTES = 1 << 20
SPARE_S = 10.0
"""Seconds before the end of a token at which the next one is requested."""
_FIELDS = ("basic_auth", "authorization", "oauth2", "http_headers", "tls_config", "proxy_url")
_OAUTH2 = (
    *("client_id", "client_secret", "client_secret_file", "scopes", "token_url", "endpoint_params"),
    *("tls_config", "proxy_url"),
)


@dataclass
class OAuth2:
    """Client credentials that a server exchanges for tokens (RFC 6749, section 4.4).

    Attributes:
        url: Address of the token server.
        client_id: Name of the client.
        client_secret: Its secret.
        parameters: Further parameters of the request, such as `scope`.
        tls: TLS settings of the token server.
        proxy: Proxy for the token server.
        server_name: Name that the token server's certificate must have; by default that of the address.
        token: The current token, and the time of the clock until which it is valid.
    """

    url: str
    client_id: str
    client_secret: str
    parameters: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    proxy: str | None = None
    server_name: str | None = None
    token: tuple[str, float] | None = None

    def header(self, clock: Callable[[], float]) -> str:
        """The header `Authorization`, with a token that is still valid.

        Raises:
            InputError: The token server is unreachable, or gives no token.
        """
        if self.token is None or clock() >= self.token[1]:
            self.token = self._request(clock())
        return f"Bearer {self.token[0]}"

    def _request(self, now: float) -> tuple[str, float]:
        body = urlencode({"grant_type": "client_credentials"} | self.parameters)
        # Both are encoded as in a form (RFC 6749, section 2.3.1).
        both = f"{quote_plus(self.client_id)}:{quote_plus(self.client_secret)}"
        pair = base64.b64encode(both.encode()).decode()
        try:
            response = connections(self.url, self.tls, self.proxy, self.server_name).request(
                "POST",
                self.url,
                body=body.encode(),
                headers={
                    "Content-Type": "application/x-www-form-urlencoded",
                    "Accept": "application/json",
                    "Authorization": f"Basic {pair}",
                },
                timeout=TOKEN_TIMEOUT_S,
                redirect=False,
                preload_content=False,
            )
            try:
                text, status = response.read(MOST_TOKEN_BYTES), response.status
            finally:
                response.close()
        except (HTTPError, OSError) as error:
            raise InputError.about(self.url, f"no token: {root_cause(error)}") from None
        if status != HTTPStatus.OK:
            shown = " ".join(text[:120].decode(errors="replace").split())
            raise InputError.about(self.url, f"no token: the server answers {status}: {shown}")
        try:
            answer = json.loads(text)
            # Some servers write a number as a text, or null.
            token, lifetime = answer["access_token"], float(answer.get("expires_in") or 60)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            token, lifetime = None, nan
        # Such an answer may contain a token, which no error may show.
        if not isinstance(token, str) or isnan(lifetime):
            message = "it answers 200 without `access_token`, or with an `expires_in` that is no number"
            raise InputError.about(self.url, f"no token: {message}")
        if not token.isascii() or any(ord(letter) < 33 for letter in token):
            raise InputError.about(self.url, "no token: it has an invalid character")
        return token, now + max(0.0, lifetime - SPARE_S)


@dataclass(frozen=True)
class Access:
    """Credentials and certificates for a server.

    Attributes:
        headers: Headers of each request.
        tls: TLS settings for the check of the server's certificate.
        oauth2: Client credentials, if tokens are requested.
        proxy: Address of a proxy; by default the environment names it.
        server_name: Name that the server's certificate must have; by default that of the address.
        client: Path of the client's certificate.
    """

    headers: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    oauth2: OAuth2 | None = None
    proxy: str | None = None
    server_name: str | None = None
    client: str | None = None

    def all_headers(self, clock: Callable[[], float]) -> dict[str, str]:
        """Headers of the next request.

        Raises:
            InputError: The token server gives no token.
        """
        if self.oauth2 is None:
            return self.headers
        return self.headers | {"Authorization": self.oauth2.header(clock)}

    @property
    def identity(self) -> str:
        """The identity of the client, as a digest: answers may depend on it.

        Of a basic authorization the user counts, and of OAuth 2 the client, so that a new password or token
        is the same identity. All other headers count with their values: a tenant, a bearer token.
        """
        headers = {name.lower(): text for name, text in self.headers.items()}
        kind, _, text = headers.get("authorization", "").partition(" ")
        if kind == "Basic":
            headers["authorization"] = base64.b64decode(text).decode().partition(":")[0]
        client = self.oauth2 and (self.oauth2.url, self.oauth2.client_id, self.oauth2.parameters)
        # The proxy and the name decide which server answers.
        proxies = self.proxy or getproxies()
        server = (proxies, self.server_name)
        parts = json.dumps([sorted(headers.items()), client, self.client, server], sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()[:12]


def read_access(path: str | PathLike[str]) -> Access:
    """Reads a file of credentials and certificates, as promtool's `--http.config.file`.

    The fields are `basic_auth` (`username`, and `password` or `password_file`), `authorization` (`type`, and
    `credentials` or `credentials_file`), `oauth2` (`client_id`, `client_secret` or `client_secret_file`,
    `token_url`, `scopes`, `endpoint_params`, `tls_config`, `proxy_url`), `http_headers` (for each name its
    value, or a list of one), `tls_config` (`ca_file`, `cert_file`, `key_file`, `server_name`,
    `insecure_skip_verify`), and `proxy_url`. Relative paths are from the folder of the file.

    Raises:
        InputError: The file cannot be read, or a field is invalid.
    """
    name, folder = str(path), Path(path).parent
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError.about(name, getattr(error, "strerror", None) or "not text") from None
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or "not readable as YAML"
        raise InputError(name, mark and mark.line + 1, None, None, why) from None
    fields = _fields(name, "", content, _FIELDS)
    headers: dict[str, str] = {}
    for header, value in _fields(name, "http_headers", fields.get("http_headers", {}), None).items():
        item = value[0] if isinstance(value, list) and len(value) == 1 else value
        headers[header] = _text(name, f"http_headers.{header}", item)
    if "basic_auth" in fields:
        where = "basic_auth"
        basic = _fields(name, where, fields[where], ("username", "password", "password_file"))
        user = _text(name, f"{where}.username", basic.get("username"))
        pair = f"{user}:{_secret(name, folder, where, basic, 'password')}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    if "authorization" in fields:
        where = "authorization"
        content = _fields(name, where, fields[where], ("type", "credentials", "credentials_file"))
        kind = _text(name, f"{where}.type", content.get("type", "Bearer"))
        headers["Authorization"] = f"{kind} {_secret(name, folder, where, content, 'credentials')}"
    oauth2 = _oauth2(name, folder, fields["oauth2"]) if "oauth2" in fields else None
    if sum(one in fields for one in ("basic_auth", "authorization", "oauth2")) > 1:
        raise InputError.about(name, "expected one of basic_auth, authorization and oauth2")
    for header, text in headers.items():
        if not (header + text).isascii() or any(ord(letter) < 32 for letter in header + text):
            raise InputError(name, None, None, header, "a header has an invalid character")
    tls = fields.get("tls_config")
    context = _tls(name, folder, "tls_config", tls)
    client = str(folder / str(tls["cert_file"])) if tls and "cert_file" in tls else None
    return Access(
        headers, context, oauth2, _proxy(name, "", fields), _server_name(name, "tls_config", tls), client
    )


def _server_name(name: str, where: str, tls: Any) -> str | None:
    if not tls or "server_name" not in tls:
        return None
    return _text(name, f"{where}.server_name", tls["server_name"])


def _proxy(name: str, where: str, fields: Mapping[str, Any]) -> str | None:
    if "proxy_url" not in fields:
        return None
    field_name, url = f"{where}.proxy_url".strip("."), _text(name, where, fields["proxy_url"])
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(name, None, None, field_name, "expected the address of a proxy: http://proxy:3128")
    return url


def _oauth2(name: str, folder: Path, content: Any) -> OAuth2:
    where = "oauth2"
    fields = _fields(name, where, content, _OAUTH2)
    url = _text(name, f"{where}.token_url", fields.get("token_url"))
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError(name, None, None, f"{where}.token_url", "expected an address: https://sso/token")
    given = _fields(name, f"{where}.endpoint_params", fields.get("endpoint_params", {}), None)
    parameters = {one: _text(name, f"{where}.endpoint_params.{one}", text) for one, text in given.items()}
    scopes = fields.get("scopes", [])
    if not isinstance(scopes, list):
        raise InputError(name, None, None, f"{where}.scopes", "expected a list")
    if scopes:
        parameters["scope"] = " ".join(_text(name, f"{where}.scopes", scope) for scope in scopes)
    return OAuth2(
        url,
        _text(name, f"{where}.client_id", fields.get("client_id")),
        _secret(name, folder, where, fields, "client_secret"),
        parameters,
        _tls(name, folder, f"{where}.tls_config", fields.get("tls_config")),
        _proxy(name, where, fields),
        _server_name(name, f"{where}.tls_config", fields.get("tls_config")),
    )


def _tls(name: str, folder: Path, where: str, content: Any) -> ssl.SSLContext | None:
    if content is None:
        return None
    fields = _fields(
        name, where, content, ("ca_file", "cert_file", "key_file", "server_name", "insecure_skip_verify")
    )
    try:
        ca = fields.get("ca_file")
        context = ssl.create_default_context(cafile=None if ca is None else str(folder / str(ca)))
        if "cert_file" in fields:
            key = fields.get("key_file")
            context.load_cert_chain(
                folder / str(fields["cert_file"]), None if key is None else folder / str(key)
            )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(name, None, None, where, f"a certificate cannot be read: {why}") from None
    skip = fields.get("insecure_skip_verify", False)
    if not isinstance(skip, bool):
        raise InputError(name, None, None, f"{where}.insecure_skip_verify", "expected true or false")
    if skip:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _fields(name: str, where: str, content: Any, names: tuple[str, ...] | None) -> Mapping[str, Any]:
    if not isinstance(content, dict):
        raise InputError(name, None, None, where or None, "expected fields with values")
    for key in content:
        if names is not None and key not in names:
            field_name = f"{where}.{key}".strip(".")
            raise InputError(name, None, None, field_name, f"no such field; expected {', '.join(names)}")
    return {str(key): value for key, value in content.items()}


def _text(name: str, where: str, value: Any) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool) or not str(value):
        raise InputError(name, None, None, where, "expected a text")
    return str(value)


def _secret(name: str, folder: Path, where: str, fields: Mapping[str, Any], kind: str) -> str:
    """A secret, or the content of its file."""
    if f"{kind}_file" not in fields:
        return _text(name, f"{where}.{kind}", fields.get(kind))
    file = folder / _text(name, f"{where}.{kind}_file", fields[f"{kind}_file"])
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text"
        raise InputError(name, None, None, f"{where}.{kind}_file", f"{file}: {why}") from None
