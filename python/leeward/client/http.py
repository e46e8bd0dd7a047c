"""Requests to the service, with retries."""

import json
import math
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from leeward._http import backoff_s, root_cause
from leeward._quantities import bytes_text
from leeward.client.problems import (
    NotControllerError,
    ProblemError,
    RefusedError,
    UnreachableError,
    beginning,
    parse_problem,
)
from leeward.errors import InputError

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

FIRST_WAIT_S = 0.1
"""Seconds before the first retry."""
LONGEST_WAIT_S = 10.0
PAGE = 1_000
"""Greatest number of items of a page of a list."""
MOST_BYTES = 512 * 2**20
"""Greatest size of an answer."""
CONNECTIONS = 16
"""Number of connections kept open for threads."""


@dataclass(frozen=True)
class Answer:
    """A successful answer.

    Attributes:
        body: JSON body; None without a body.
        headers: Headers by names in lower case.
    """

    body: Any
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Http:
    """A connection to the service.

    Attributes:
        url: Its address, without a slash at the end.
        token: Token sent with every request, if any.
        ca: PEM file of the authority of its certificate; by default the system's authorities.
        timeout_s: Time limit for the start of an answer, and for each pause in it.
        patience_s: Time during which a request is repeated; 0 to send it once.
        sleep: Waits for some seconds.
        clock: Clock in seconds, with any origin.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    ca: str | PathLike[str] | None = None
    timeout_s: float = 60.0
    patience_s: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        if "@" in self.url:
            error = InputError.about("url", "other users of this machine can see a password in an address")
            error.add_note("pass a token instead")
            raise error
        try:
            parts = urlsplit(self.url)
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            good = False
        if not good or any(letter in self.url for letter in " \t\r\n?#"):
            message = f"`{self.url}`: expected an address: http://127.0.0.1:7600"
            raise InputError.about("url", message)
        if self.ca is not None and parts.scheme != "https":
            raise InputError.about("ca", "the address is not https, so no certificate is checked")
        if self.token is not None and (not self.token.isascii() or not self.token.isprintable()):
            message = "it has an invalid character; expected the output of `leeward token new`"
            raise InputError.about("token", message)
        for name, value in (("timeout_s", self.timeout_s), ("patience_s", self.patience_s)):
            if not (math.isfinite(value) and value >= 0):
                raise InputError.about(name, f"{value}: expected at least 0 seconds")

    def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        patience_s: float | None = None,
    ) -> Answer:
        """Answer to an idempotent request, which is repeated while the service is busy or does not answer.

        Args:
            method: HTTP method.
            path: Path, from `/v1` on.
            query: Parameters; those with the value None are omitted.
            body: JSON body, if not None.
            headers: Additional headers.
            timeout_s: Time limit for this request; by default the limit for all requests.
            patience_s: Time during which this request is repeated; by default the time for all requests.

        Raises:
            ProblemError: The service refused.
            UnreachableError: The service did not answer.
        """
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        start, waits = self.clock(), backoff_s(FIRST_WAIT_S, LONGEST_WAIT_S)
        longest, outcome_unknown = self.patience_s if patience_s is None else patience_s, False
        while True:
            wait = next(waits)
            try:
                with self.open_response(method, path, query, data, headers, timeout_s) as response:
                    return self._answer(response)
            except (ProblemError, UnreachableError) as error:
                outcome_unknown = outcome_unknown or error.outcome_unknown
                # A refusal is certain: an earlier attempt that was carried out would be the answer.
                error.outcome_unknown = outcome_unknown and not isinstance(error, RefusedError)
                if isinstance(error, ProblemError):
                    passes, pause = error.passes, max(wait, error.after_s)
                else:
                    passes, pause = not is_misconfigured(error), wait
                if not passes or self.clock() - start + pause > longest:
                    raise
            self.sleep(pause)

    def items(
        self, path: str, most: int | None = None, *, patience_s: float | None = None, **query: Any
    ) -> Iterator[Any]:
        """Items of a list, fetched page by page; at most a given number. `patience_s` as in `ask`.

        Raises:
            ProblemError: The service refused.
            UnreachableError: The service did not answer.
        """
        after, remaining = None, most
        while remaining is None or remaining > 0:
            limit = PAGE if remaining is None else min(remaining, PAGE)
            query |= {"limit": limit, "after": after}
            page = self.ask("GET", path, query, patience_s=patience_s).body
            yield from page["items"]
            after = page["next"]
            remaining = None if remaining is None else remaining - len(page["items"])
            if after is None:
                return

    @contextmanager
    def open_response(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Iterator["BaseHTTPResponse"]:
        """Sends a request once, and yields the successful answer with an unread body.

        Raises:
            ProblemError: The service refused.
            UnreachableError: The service did not answer, or the answer broke off.
        """
        from urllib3 import Timeout
        from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError
        from urllib3.util import make_headers

        compressed = make_headers(accept_encoding=True)
        request_headers = {"accept": "application/json", **compressed, **(headers or {})}
        if self.token is not None:
            request_headers["authorization"] = f"Bearer {self.token}"
        if data is not None:
            request_headers["content-type"] = "application/json"
        parameters = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        url = f"{self.url}{path}" + (f"?{urlencode(parameters)}" if parameters else "")
        longest = self.timeout_s if timeout_s is None else timeout_s
        timeout = Timeout(connect=min(longest, 10.0) or None, read=longest or None)
        try:
            # The target of a redirect must not get the token.
            response = self._pool.request(
                method,
                url,
                body=data,
                headers=request_headers,
                timeout=timeout,
                redirect=False,
                preload_content=False,
            )
            try:
                if not 200 <= response.status < 300:
                    retry_after = response.headers.get("retry-after")
                    raise parse_problem(response.status, response.read(100_000), retry_after)
                yield response
            finally:
                # A fully read response has returned its connection to the pool, where it stays open.
                response.close()
        except (HTTPError, OSError) as error:
            if isinstance(error, UnreachableError):
                raise
            cause = root_cause(error)
            unsent = isinstance(error, NewConnectionError | ConnectTimeoutError)
            raise UnreachableError(self.url, _reason(error, cause), not unsent) from cause

    def _answer(self, response: "BaseHTTPResponse") -> Answer:
        text = response.read(MOST_BYTES + 1)
        headers = {name.lower(): value for name, value in response.headers.items()}
        if len(text) > MOST_BYTES:
            raise NotControllerError(self.url, f"the answer is larger than {bytes_text(MOST_BYTES, None)}")
        if not text:
            return Answer(None, headers)
        try:
            return Answer(json.loads(text), headers)
        except (ValueError, RecursionError):
            start = beginning(text[:60].decode(errors="replace"))
            raise NotControllerError(
                self.url, f"not a controller: the answer begins with `{start}`"
            ) from None

    @cached_property
    def _pool(self) -> "PoolManager":
        from urllib3 import PoolManager

        try:
            context = ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
        except OSError as error:
            message = f"{self.ca}: {error.strerror or 'no certificate in PEM'}"
            raise InputError.about("ca", message) from None
        # Like an agent, a client uses no proxy of the environment. The service is in the same network, and a
        # proxy would see the token.
        return PoolManager(maxsize=CONNECTIONS, block=False, retries=False, ssl_context=context)


def is_misconfigured(error: UnreachableError) -> bool:
    """True if the address or the certificate is wrong, so that a retry would not help."""
    return isinstance(error, NotControllerError) or isinstance(error.__cause__, ssl.SSLCertVerificationError)


def is_away(error: ProblemError | UnreachableError) -> bool:
    """True if a service answers so, or not at all, while it is away.

    Four answers are for the caller: a follower that names its leader, who should get the request; a client
    above its limit of requests; a server that is not a controller; and a certificate that cannot be trusted.
    """
    if isinstance(error, UnreachableError):
        return not is_misconfigured(error)
    if error.word == "follower":
        return error.leader is None
    return error.word == "broken" or (error.passes and error.word != "too-many")


def part(name: str) -> str:
    """A name as part of a path."""
    return quote(name, safe="")


def dry_run_query(dry_run: bool) -> dict[str, bool] | None:
    """Query of a request that commits: none, unless the request is a dry run."""
    return {"dry_run": True} if dry_run else None


def time_text(argument: str, at: datetime) -> str:
    """A time as in the fields of a request.

    Raises:
        ValueError: The time has no zone.
    """
    if at.tzinfo is None:
        raise ValueError(f"{argument}: {at}: expected a time with a zone")
    return at.astimezone(UTC).isoformat()


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _reason(error: BaseException, cause: BaseException) -> str:
    """Reason of a failure, in words."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate cannot be trusted: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError) and "WRONG_VERSION" in str(cause):
        return "it does not speak TLS; give its address with http://"
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    strerror = getattr(cause, "strerror", None)
    return str(strerror or cause or type(error).__name__).split(": ")[-1]
