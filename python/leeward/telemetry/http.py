"""Requests to Prometheus' HTTP API, one at a time, with retries while the server is busy.

https://prometheus.io/docs/prometheus/latest/querying/api/
"""

import json
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from urllib3 import BaseHTTPResponse, PoolManager
from urllib3.exceptions import HTTPError

from leeward._http import backoff_s, connections, retry_after_s, root_cause
from leeward._quantities import bytes_text
from leeward.errors import InputError
from leeward.telemetry.access import Access, read_access

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
_LIMITS = re.compile(r"too many|too large|too long|exceed|limit|maximum|more than", re.IGNORECASE)
"""Words of answers by which servers reject a query for its size."""


class TooMuchError(InputError):
    """A server rejects a query whose answer would be too large, or take too long."""


class Answer(NamedTuple):
    """An answer of Prometheus.

    Attributes:
        data: Its `data`.
        warnings: Its `warnings` and `infos`, and `isPartial` of VictoriaMetrics: with
            any, data may be missing.
    """

    data: Any
    warnings: tuple[str, ...]


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

    def ask(self, path: str, **parameters: str | list[str]) -> Answer:
        """The answer to a query.

        Args:
            path: Path below `/api/v1/`, such as `query`.
            parameters: Parameters.

        Raises:
            InputError: The server is unreachable, rejects the query, or does not answer as Prometheus.
            TooMuchError: The answer would be too large, or take too long.
        """
        start, waits = self.clock(), backoff_s(FIRST_WAIT_S, LONGEST_WAIT_S)
        # Selectors may exceed the length of an address; only GET answers names of labels and the version.
        method = "GET" if path.startswith(("label/", "status/")) else "POST"
        while True:
            wait = next(waits)
            try:
                response = self._request(method, path, urlencode(parameters, doseq=True))
                try:
                    if 200 <= response.status < 300:
                        return self._answer(response)
                    status, (text, kind) = response.status, _beginning(response)
                finally:
                    response.close()
                # Proxies that only permit to read may reject POST.
                if status == 405 and method == "POST":
                    method = "GET"
                    continue
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
        return connections(self.url, self.access.tls, self.access.proxy, self.access.server_name)

    def _request(self, method: str, path: str, query: str) -> BaseHTTPResponse:
        """The response to one request; a redirect is not followed, since a password must not go elsewhere."""
        url, headers = f"{self.url}/api/v1/{path}", self.access.all_headers(self.clock)
        if method == "GET":
            url, body = f"{url}?{query}", None
        else:
            body = query.encode()
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

    def _answer(self, response: BaseHTTPResponse) -> Answer:
        text = response.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise self._too_much(f"more than {bytes_text(MOST_BYTES, None)}")
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            raise self.not_prometheus(text[:80].decode(errors="replace")) from None
        if not isinstance(answer, dict) or answer.get("status") != "success" or "data" not in answer:
            raise self.not_prometheus(text[:80].decode(errors="replace"))
        warnings = [answer.get(name) or () for name in ("warnings", "infos")]
        if not all(isinstance(texts, list | tuple) for texts in warnings):
            raise self.not_prometheus(text[:80].decode(errors="replace"))
        if answer.get("isPartial") is True:
            warnings.append(["isPartial: a storage node did not answer"])
        return Answer(
            answer["data"], tuple(" ".join(str(text).split()) for texts in warnings for text in texts)
        )

    def _rejection(self, status: int, text: str) -> InputError:
        if status in (400, 413, 422, 500) and _LIMITS.search(text):
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

    def unknown_form(self, text: str) -> InputError:
        """Error about data of an unknown form, with the version of the server if it names one."""
        version = self._version()
        if version is None:
            return self.not_prometheus(text)
        message = f"version {version} of the server answers in an unknown form: `{' '.join(text.split())}`"
        return InputError.about(self.url, message)

    def _version(self) -> str | None:
        """Version of the server, or None if it names none."""
        try:
            response = self._request("GET", "status/buildinfo", "")
            try:
                data = self._answer(response).data if response.status == 200 else None
            finally:
                response.close()
        except (HTTPError, OSError, InputError):
            return None
        version = data.get("version") if isinstance(data, dict) else None
        return " ".join(version.split())[:40] if isinstance(version, str) else None


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
