"""Base of the client: connection to the service, and outage decisions."""

import time
from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any
from uuid import uuid4

from leeward.client.fallback import Fallback
from leeward.client.http import Http
from leeward.client.standby import Standby

URL = "http://127.0.0.1:7600"
"""Default address of a service."""


def _new_key() -> str:
    return uuid4().hex


class ClientBase:
    """Sends requests to one service."""

    def __init__(
        self,
        url: str = URL,
        *,
        token: str | None = None,
        ca: str | PathLike[str] | None = None,
        timeout_s: float = 60.0,
        patience_s: float = 30.0,
        fallback: Fallback | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        new_key: Callable[[], str] = _new_key,
    ) -> None:
        """A client, before its first request.

        Args:
            url: Address of the service.
            token: Token of the client, if the service requires one.
            ca: PEM file of the authority of the service's certificate; by default the system's authorities.
            timeout_s: Time limit for an answer.
            patience_s: Time during which a request is repeated while the service is busy or does not answer;
                0 to send it once.
            fallback: Settings of outage decisions, which the client makes alone while the service is away. By
                default, it makes none.
            sleep: Waits for some seconds.
            clock: Clock in seconds, with any origin.
            new_key: Returns a unique key for each placement.

        Raises:
            InputError: The address or the token is invalid; or `ca` is given for an address without https.
        """
        self._http = Http(url.rstrip("/"), token, ca, timeout_s, patience_s, sleep, clock)
        self._new_key = new_key
        self._standby = None if fallback is None else Standby(self._http, fallback)

    @property
    def url(self) -> str:
        """Address of the service."""
        return self._http.url

    def _get(self, path: str, **query: Any) -> Any:
        return self._http.ask("GET", path, query).body

    def _all(self, path: str, most: int | None = None, **query: Any) -> Iterator[Any]:
        """Items of a list, fetched page by page; at most a given number."""
        return self._http.items(path, most, **query)
