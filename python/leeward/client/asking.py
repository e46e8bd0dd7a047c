"""What a client has whatever it asks for: a way to the service, and lists that come in parts."""

import time
from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any
from uuid import uuid4

from leeward.client.http import Http

URL = "http://127.0.0.1:7600"
"""Where a service listens unless it is told otherwise."""
PAGE = 1_000
"""Items that are asked for at once."""


def _new_key() -> str:
    return uuid4().hex


class Asker:
    """Asks one service."""

    def __init__(
        self,
        url: str = URL,
        *,
        token: str | None = None,
        ca: str | PathLike[str] | None = None,
        timeout_s: float = 60.0,
        patience_s: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        new_key: Callable[[], str] = _new_key,
    ) -> None:
        """A client; nothing is sent yet.

        Args:
            url: Where the service listens.
            token: Who asks, where the service wants to know.
            ca: A PEM file of who signed the service's certificate; by default those that the system knows.
            timeout_s: How long an answer may take.
            patience_s: How long a request is sent again where no answer comes or the service is busy; 0 is
                not at all.
            sleep: Waits so many seconds.
            clock: Seconds from any origin.
            new_key: Makes a key that nobody else uses, for each placement.

        Raises:
            InputError: The address or the token is none; or `ca` is given, and the address is not https.
        """
        self._http = Http(url.rstrip("/"), token, ca, timeout_s, patience_s, sleep, clock)
        self._new_key = new_key

    @property
    def url(self) -> str:
        """Where the service listens."""
        return self._http.url

    def _get(self, path: str, **query: Any) -> Any:
        return self._http.ask("GET", path, query).body

    def _all(self, path: str, most: int | None = None, **query: Any) -> Iterator[Any]:
        """The items of a list, part by part as they are wanted; at most so many of them."""
        after, left = None, most
        while left is None or left > 0:
            limit = PAGE if left is None else min(left, PAGE)
            page = self._get(path, limit=limit, after=after, **query)
            yield from page["items"]
            after = page["next"]
            left = None if left is None else left - len(page["items"])
            if after is None:
                return
