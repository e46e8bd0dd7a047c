"""What the service did not do, as exceptions."""

import json
from typing import Any

from leeward._http import retry_after_s

KIND = "urn:leeward:problem:"
"""What the type of every problem begins with."""
PASSING = (429, 502, 503, 504)
"""Statuses of what passes."""


class UnreachableError(ConnectionError):
    """No answer came from the service, or none that it would give.

    Attributes:
        url: Its address.
        why: What was in the way.
    """

    def __init__(self, url: str, why: str) -> None:
        """Takes the attributes, in order."""
        super().__init__(url, why)
        self.url = url
        self.why = why

    def __str__(self) -> str:
        return f"{self.url}: no answer: {self.why}"


class StrangeError(UnreachableError):
    """What answered is no controller, or answers as none does: asked again, it would say the same."""


class ProblemError(Exception):
    """The service did not do what it was asked for: a problem document (RFC 9457).

    Attributes:
        word: Which problem, as in the reference of the HTTP interface: `not-found`, `invalid`, `busy`.
        title: The same as a sentence.
        status: Of the answer.
        detail: What was wrong, and what to do.
        field: The field that was wrong, as a path; None where it is none.
        after_s: After how many seconds to ask again, as the service says; 0 if it says nothing.
        leader: Where to ask instead, if another service decides and it is known which; of `follower`.
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

    @property
    def passes(self) -> bool:
        """Whether the same may be done a little later: the service is busy, or cannot be reached just now.

        A follower says the same until it leads: its leader is to be asked.
        """
        return self.status in PASSING and self.word != "follower"

    def __str__(self) -> str:
        return ": ".join(part for part in (self.field, self.detail or self.title) if part)


class RefusedError(ProblemError):
    """The policy places it nowhere, and nothing changed."""


def problem(status: int, body: bytes, retry_after: str | None = None) -> ProblemError:
    """What an answer that is no success says.

    What stands between client and service answers otherwise; then its status and beginning are told.

    Args:
        status: Of the answer.
        body: Its beginning.
        retry_after: The header of this name.
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
    made = RefusedError if word == "refused" else ProblemError
    field, leader = (None if one is None else str(one) for one in (field, leader))
    return made(word, title, status, detail, field, after_s, leader)


def beginning(text: str, most: int = 200) -> str:
    """What others said, in a line that a terminal can be shown; at most so many letters of it."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text[:most]).split())
