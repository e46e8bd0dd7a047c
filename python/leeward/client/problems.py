"""Refusals of the service, as exceptions."""

import json
from typing import Any

from leeward._http import retry_after_s

KIND = "urn:leeward:problem:"
"""Prefix of the type of every problem."""
PASSING = (429, 502, 503, 504)
"""Statuses of temporary problems."""
NOTHING_DONE = ("busy", "too-many", "follower")
"""Temporary problems after which the service has certainly not carried out the request."""


class UnreachableError(ConnectionError):
    """The service did not answer, or it is not a controller.

    Attributes:
        url: Address.
        why: Reason.
        outcome_unknown: True if the service may have carried out the request; False if no attempt reached it.
    """

    def __init__(self, url: str, why: str, outcome_unknown: bool = True) -> None:
        """Takes the attributes, in order."""
        super().__init__(url, why)
        self.url = url
        self.why = why
        self.outcome_unknown = outcome_unknown

    def __str__(self) -> str:
        return f"{self.url}: no answer: {self.why}"


class NotControllerError(UnreachableError):
    """The server is not a controller, or its answer is invalid. A retry would not help."""


class ProblemError(Exception):
    """A refusal of the service: a problem document (RFC 9457).

    Attributes:
        word: Kind of the problem, as in the reference of the HTTP interface: `not-found`, `invalid`, `busy`.
        title: Kind of the problem, as a sentence.
        status: Status of the answer.
        detail: Problem and remedy.
        field: Path of the invalid field; None without one.
        after_s: Seconds to wait before a retry, if the service states them; otherwise 0.
        leader: Address of the leader, if known; only for `follower`.
        outcome_unknown: True if the service may have carried out the request, now or in an earlier attempt.
    """

    def __init__(
        self,
        word: str,
        title: str,
        status: int,
        detail: str,
        field: str | None = None,
        after_s: float = 0.0,
        leader: str | None = None,
    ) -> None:
        """Takes the attributes, in order."""
        super().__init__(word, title, status, detail, field, after_s, leader)
        self.word = word
        self.title = title
        self.status = status
        self.detail = detail
        self.field = field
        self.after_s = after_s
        self.leader = leader
        self.outcome_unknown = status in (500, *PASSING) and word not in NOTHING_DONE

    @property
    def passes(self) -> bool:
        """True for temporary problems: the service is busy or temporarily unavailable.

        The answer of a follower is not temporary: the client should send the request to the leader.
        """
        return self.status in PASSING and self.word != "follower"

    def __str__(self) -> str:
        return ": ".join(part for part in (self.field, self.detail or self.title) if part)


class RefusedError(ProblemError):
    """The policy finds no placement, and nothing changed."""


def parse_problem(status: int, body: bytes, retry_after: str | None = None) -> ProblemError:
    """Problem in an unsuccessful answer.

    A proxy answers in its own format; then the problem has the status and the beginning of the text.

    Args:
        status: Status of the answer.
        body: Beginning of the body.
        retry_after: Header of this name.
    """
    after_s = retry_after_s(retry_after)
    try:
        document: Any = json.loads(body)
        kind, title = str(document["type"]), str(document.get("title", ""))
        detail, field = str(document.get("detail", "")), document.get("field")
        leader = document.get("leader")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        text = beginning(body[:200].decode(errors="replace"))
        title = f"the answer is {status}"
        return ProblemError("", title, status, f"{title}: {text}".rstrip(": "), None, after_s)
    word = kind.removeprefix(KIND)
    error_type = RefusedError if word == "refused" else ProblemError
    field, leader = (None if one is None else str(one) for one in (field, leader))
    return error_type(word, title, status, detail, field, after_s, leader)


def beginning(text: str, most: int = 200) -> str:
    """Text of another system as one printable line of at most a given number of characters."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text[:most]).split())
