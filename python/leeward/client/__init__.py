"""A client of the controller: operations are methods, and problems are exceptions.

    >>> from leeward import Client
    >>> client = Client("http://127.0.0.1:7600", token=None)
    >>> client.url
    'http://127.0.0.1:7600'

Requests are idempotent. The client repeats a request for up to `patience_s` after a lost answer, or while the
service is busy or restarts. With `fallback=Fallback()` it makes outage decisions: it decides placements alone
while the service is away.
"""

from leeward.client.client import Client
from leeward.client.events import Event
from leeward.client.fallback import Fallback
from leeward.client.problems import ProblemError, RefusedError, UnreachableError

__all__ = ["Client", "Event", "Fallback", "ProblemError", "RefusedError", "UnreachableError"]
