"""Server-sent events, resumed after a broken connection.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leeward._http import backoff_s
from leeward.client.http import FIRST_WAIT_S, LONGEST_WAIT_S, Http
from leeward.client.problems import NotControllerError, ProblemError, UnreachableError, beginning

PATH = "/v1/events"
SILENCE_S = 45.0
"""Seconds without a byte after which a connection is broken; the service sends one byte every 15 seconds."""
LONGEST_EVENT = 64 * 2**20
"""Greatest number of bytes of a line of a stream, and of the data of an event."""


@dataclass(frozen=True)
class Event:
    """An event of the service.

    Attributes:
        name: Kind: `decision`, `racks`, `hotspot`, `cluster`, `leader`, `modes`, or `missed` if the service
            no longer stores some of the events.
        data: Fields as in the reference of the HTTP interface.
        id: Position to resume after; None for `missed`.
    """

    name: str
    data: Any
    id: str | None


def follow(http: Http, after: str | None, chosen: Mapping[str, bool]) -> Iterator[Event]:
    """Events from now on, or after a given one. Reopens a stream that ends, and resumes after its last event.

    Args:
        http: Connection to the service.
        after: Id of the event to resume after.
        chosen: Kinds of events that the stream has or leaves out, by the name of the parameter.

    Raises:
        ProblemError: The service refuses.
        UnreachableError: The service has not answered for as long as `patience_s`.
    """
    query = {name: "false" for name, wanted in chosen.items() if not wanted}
    last, start, waits = after, http.clock(), backoff_s(FIRST_WAIT_S, LONGEST_WAIT_S)
    while True:
        headers = {"accept": "text/event-stream"} | ({} if last is None else {"last-event-id": last})
        wait = pause = next(waits)
        try:
            with http.open_response("GET", PATH, query, headers=headers, timeout_s=SILENCE_S) as response:
                # The wait of this attempt is the first of a new sequence.
                start, waits = http.clock(), backoff_s(2 * FIRST_WAIT_S, LONGEST_WAIT_S)
                for event in events(response.stream(2**16, decode_content=True)):
                    start, last = http.clock(), event.id or last
                    yield event
            failure: ProblemError | UnreachableError = UnreachableError(http.url, "the stream ended")
        except NotControllerError:
            raise
        except UnreachableError as error:
            failure = error
        except ProblemError as error:
            if not error.passes:
                raise
            failure, pause = error, max(wait, error.after_s)
        if http.clock() - start + pause > http.patience_s:
            raise failure
        http.sleep(pause)


def events(pieces: Iterable[bytes]) -> Iterator[Event]:
    """Events of a stream in pieces of any size; an incomplete event at its end is dropped.

    Raises:
        UnreachableError: The bytes are not events of a controller.
    """
    name, data, event_id, size = "", [], None, 0
    for line in _lines(pieces):
        if line:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
                size += len(value) + 1
                if size > LONGEST_EVENT:
                    raise NotControllerError(PATH, "an event of the stream has no end")
            elif field == "id":
                event_id = value
            continue
        if data:
            yield Event(name or "message", _read("\n".join(data)), event_id)
        name, data, event_id, size = "", [], None, 0


def _read(data: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise NotControllerError(PATH, f"an event is not JSON: `{beginning(data)}`") from None


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Complete lines; the service ends them with a line feed."""
    rest: list[bytes] = []
    size = 0
    for piece in pieces:
        *whole, end = piece.split(b"\n")
        for line in whole:
            yield b"".join([*rest, line]).decode(errors="replace").removesuffix("\r")
            rest, size = [], 0
        size += len(end)
        if size > LONGEST_EVENT:
            raise NotControllerError(PATH, "a line of the stream has no end")
        rest.append(end)
