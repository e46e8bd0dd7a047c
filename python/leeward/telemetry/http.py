"""Requests to Prometheus' HTTP API, one at a time, with retries while the server is busy.

https://prometheus.io/docs/prometheus/latest/querying/api/
"""

import base64
import json
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml
from urllib3 import BaseHTTPResponse, PoolManager
from urllib3.exceptions import HTTPError

from leeward._http import backoff_s, connections, retry_after_s, root_cause
from leeward._quantities import bytes_text
from leeward.errors import InputError

TIMEOUT_S = 120.0
"""Time limit of the start of an answer, in seconds."""
PATIENCE_S = 300.0
"""Seconds of retries to a busy server."""
FIRST_WAIT_S = 1.0
"""Seconds before the first retry."""
LONGEST_WAIT_S = 60.0
MOST_BYTES = 512 * 2**20
"""Greatest size of an answer."""
_BUSY = (408, 429, 502, 503, 504)
_FIELDS = ("basic_auth", "authorization", "http_headers", "tls_config")


class TooMuchError(InputError):
    """A server rejects a query whose answer would be too large, or take too long."""


@dataclass(frozen=True)
class Access:
    """Credentials and certificates for a server.

    Attributes:
        headers: Headers of each request.
        tls: TLS settings for the check of the server's certificate.
    """

    headers: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True)
class Server:
    """A Prometheus server.

    Attributes:
        url: Address, to which `/api/v1/...` is added.
        access: Credentials and certificates.
        sleep: Waits for some seconds.
        clock: Clock in seconds, with any origin.
    """

    url: str
    access: Access = field(default_factory=Access)
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def ask(self, path: str, **parameters: str | list[str]) -> Any:
        """The `data` of an answer.

        Args:
            path: Path below `/api/v1/`, such as `query`.
            parameters: Parameters.

        Raises:
            InputError: The server is unreachable, rejects the query, or does not answer as Prometheus.
            TooMuchError: The answer would be too large, or take too long.
        """
        start, waits = self.clock(), backoff_s(FIRST_WAIT_S, LONGEST_WAIT_S)
        while True:
            wait = next(waits)
            try:
                response = self._request(path, urlencode(parameters, doseq=True))
                try:
                    if 200 <= response.status < 300:
                        return self._data(response)
                    status, (text, kind) = response.status, _beginning(response)
                finally:
                    response.close()
                # Prometheus' own limit of a query; a retry would not make the same query shorter.
                if kind == "timeout":
                    raise self._too_much(text)
                if status not in _BUSY:
                    raise self._rejection(status, text)
                why = f"it answers {status}: {text}".strip(": ")
                retry_after = retry_after_s(response.headers.get("retry-after"))
            except (HTTPError, OSError) as error:
                cause = root_cause(error)
                if isinstance(cause, ssl.SSLCertVerificationError):
                    raise self._unsafe(cause) from None
                if isinstance(cause, ConnectionRefusedError) or "Name or service" in str(cause):
                    # Waiting does not help: the host or the server does not exist.
                    raise self._unreachable(cause) from None
                why, retry_after = str(cause) or type(cause).__name__, 0.0
            pause = min(max(wait, retry_after), LONGEST_WAIT_S)
            if self.clock() - start + pause > PATIENCE_S:
                raise self._unreachable(f"for {self.clock() - start:.0f} s, {why}")
            self.sleep(pause)

    @cached_property
    def _connections(self) -> PoolManager:
        return connections(self.url, self.access.tls)

    def _request(self, path: str, query: str) -> BaseHTTPResponse:
        """The response to one request; a redirect is not followed, since a password must not go elsewhere."""
        url, headers = f"{self.url}/api/v1/{path}", self.access.headers
        # Selectors may exceed the length of an address; only GET answers names of labels.
        if path.startswith("label/"):
            method, url, body = "GET", f"{url}?{query}", None
        else:
            method, body = "POST", query.encode()
            headers = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        return self._connections.request(
            method,
            url,
            body=body,
            headers=headers,
            timeout=TIMEOUT_S,
            redirect=False,
            preload_content=False,
        )

    def _data(self, response: BaseHTTPResponse) -> Any:
        text = response.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise self._too_much(f"more than {bytes_text(MOST_BYTES, None)}")
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            raise self.not_prometheus(text[:80].decode(errors="replace")) from None
        if not isinstance(answer, dict) or answer.get("status") != "success" or "data" not in answer:
            raise self.not_prometheus(text[:80].decode(errors="replace"))
        return answer["data"]

    def _rejection(self, status: int, text: str) -> InputError:
        if status in (400, 422) and any(
            word in text for word in ("too many samples", "exceeded maximum resolution", "exceeds", "limit")
        ):
            return self._too_much(text)
        error = InputError.about(self.url, f"the server answers {status}: {text}".rstrip(": "))
        if status in (401, 403):
            error.add_note("add credentials: --http FILE, with basic_auth or authorization")
        elif status in (301, 302, 307, 308, 404):
            error.add_note("expected the address of a Prometheus server, with its path if it has one")
        return error

    def _too_much(self, text: str) -> TooMuchError:
        return TooMuchError.about(self.url, f"too much for one answer: {text}")

    def _unreachable(self, reason: object) -> InputError:
        error = InputError.about(self.url, f"cannot be reached: {reason}")
        error.add_note(f"curl {self.url}/api/v1/query?query=up")
        return error

    def _unsafe(self, reason: ssl.SSLCertVerificationError) -> InputError:
        message = f"its certificate cannot be trusted: {reason.verify_message}"
        error = InputError.about(self.url, message)
        error.add_note("add its authority: --http FILE, with tls_config and ca_file")
        return error

    def not_prometheus(self, text: str) -> InputError:
        """Error about an answer that is not of Prometheus."""
        message = f"it does not answer as Prometheus would: `{' '.join(text.split())}`"
        error = InputError.about(self.url, message)
        error.add_note("expected the address of a Prometheus server, with its path if it has one")
        return error


def server(url: str, http_file: str | PathLike[str] | None = None) -> Server:
    """A server by its address.

    Raises:
        InputError: The address is invalid, or the file of credentials is invalid.
    """
    try:
        parts = urlsplit(url.strip())
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or any(letter in url.strip() for letter in " \t\r\n") or parts.query or parts.fragment:
        raise InputError.about("prometheus", f"`{url}`: expected an address: http://prom:9090")
    if parts.username is not None:
        error = InputError.about("prometheus", "other users of this machine can see a password in an address")
        error.add_note("put it in a file: --http FILE, with basic_auth")
        raise error
    return Server(url.strip().rstrip("/"), Access() if http_file is None else read_access(http_file))


def read_access(path: str | PathLike[str]) -> Access:
    """Reads a file of credentials and certificates, as promtool's `--http.config.file`.

    The fields are `basic_auth` (`username`, and `password` or `password_file`), `authorization` (`type`, and
    `credentials` or `credentials_file`), `http_headers` (for each name its value, or a list of one), and
    `tls_config` (`ca_file`, `cert_file`, `key_file`, `insecure_skip_verify`). Relative paths are from the
    folder of the file.

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
    for header, text in headers.items():
        if not (header + text).isascii() or any(ord(letter) < 32 for letter in header + text):
            raise InputError(name, None, None, header, "a header has an invalid character")
    return Access(headers, _tls(name, folder, fields.get("tls_config")))


def _tls(name: str, folder: Path, content: Any) -> ssl.SSLContext | None:
    if content is None:
        return None
    where = "tls_config"
    fields = _fields(name, where, content, ("ca_file", "cert_file", "key_file", "insecure_skip_verify"))
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


def _beginning(response: BaseHTTPResponse) -> tuple[str, str]:
    """The beginning of an error's text, and the `errorType` that Prometheus gives it."""
    try:
        text = response.read(100_000).decode(errors="replace")
    except (OSError, HTTPError):
        return "", ""
    try:
        document = json.loads(text)
        return str(document["error"])[:300], str(document.get("errorType", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return " ".join(text.split())[:120], ""
