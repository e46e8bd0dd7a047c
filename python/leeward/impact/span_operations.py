"""Operations of storage from spans: which spans are operations, between which hosts, and how long.

A span of a client is an operation if its name is that of a kind of operation, or the caller says so. The
server's span below it has the server's host. The part on the network is the client's time without the
server's, so that clocks need not agree; requests that wait in the client's queues count for it too.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from leeward.errors import InputError
from leeward.impact.operations import Places, Rules
from leeward.impact.records import Records, text, whole
from leeward.impact.spans import Span
from leeward.telemetry import Discards

MOST_SPANS = 20_000_000
"""Greatest number of spans; all operations, servers and hosts of traces are in memory."""
_SERVERS = ("leeward.server", "server.address", "peer.hostname", "net.peer.name", "peer.address")
_CLIENTS = ("leeward.client", "client.address", "peer.hostname", "net.peer.name", "peer.address")
_ANSWERS = ("leeward.size_bytes", "http.response.body.size", "http.response_content_length")
_REQUESTS = ("leeward.size_bytes", "http.request.body.size", "http.request_content_length")
_EXAMPLES = 3
_USUAL = 5
_Key = tuple[str, str]


class SpanOperations:
    """Operations among the spans of all files.

    Attributes:
        spans: Number of spans.
        found: Number of spans that are operations.
    """

    def __init__(self, places: Places, rules: Rules, names: Mapping[str, str]) -> None:
        """Takes the hosts of the cluster, rules, and kinds of operations by names of spans."""
        self.spans = self.found = 0
        self._places, self._rules, self._names = places, rules, names
        self._operations: list[tuple[int, str, Span]] = []
        self._clients: set[_Key] = set()
        self._servers: dict[_Key, list[tuple[int | None, str]]] = {}
        self._hosts: dict[str, dict[str, None]] = {}
        self._others: Counter[str] = Counter()

    def take(self, span: Span, file: int) -> None:
        """Takes a span of a file, by its number.

        Raises:
            InputError: There are too many spans.
        """
        self.spans += 1
        if self.spans > MOST_SPANS:
            raise InputError.about("latency", f"more than {MOST_SPANS:,} spans: expected fewer files at once")
        if span.host:
            self._hosts.setdefault(span.trace, {})[self._places.known(span.host)] = None
        if span.kind == "server" and span.parent:
            below = self._servers.setdefault((span.trace, span.parent), [])
            below.append((span.duration_ns, self._places.known(span.host) if span.host else ""))
        named = self._names.get(span.name, span.name if span.name in self._rules else None)
        operation = text(span.attributes.get("leeward.operation")) or named
        if operation is None:
            self._others[span.name] += 1
            return
        self.found += 1
        self._operations.append((file, operation, span))
        if span.kind != "server":
            self._clients.add((span.trace, span.span))

    def usual_names(self) -> Iterator[str]:
        """Most frequent names of spans that are no operations."""
        return (name for name, _ in self._others.most_common(_USUAL))

    def records(self, files: int, discards: Discards) -> list[Records]:
        """Latencies of each file. Spans that are no latencies are counted.

        Args:
            files: Number of files.
            discards: Counts of spans that are left out.
        """
        result = [Records() for _ in range(files)]
        usual = [name for name, _ in self._others.most_common(_EXAMPLES)]
        discards.count("other-span", self._others.total(), *usual)
        for file, operation, span in self._operations:
            if span.failed:
                discards.count("failed", 1, span.name)
            elif span.kind == "server" and (span.trace, span.parent) in self._clients:
                discards.count("server-side", 1, span.name)
            else:
                self._add(result[file], operation, span)
        return result

    def _add(self, records: Records, operation: str, span: Span) -> None:
        """Adds an operation to latencies."""
        is_write = operation.endswith("write")
        src, dst = self._ends(operation, span, is_write)
        size = next(
            (
                number
                for name in (_REQUESTS if is_write else _ANSWERS)
                if (number := whole(span.attributes.get(name))) is not None
            ),
            None,
        )
        records.add(
            t=None if span.end_ns is None else span.end_ns // 1000,
            latency_ns=span.duration_ns,
            operation=operation,
            src=text(span.attributes.get("leeward.src")) or src,
            dst=text(span.attributes.get("leeward.dst")) or dst,
            links=text(span.attributes.get("leeward.links")),
            network_ns=self._network(span),
            size_bytes=size,
            medium=text(span.attributes.get("leeward.medium")),
            compute_ratio=_number(span.attributes.get("leeward.compute_ratio")),
            query=text(span.attributes.get("leeward.query")),
            **{"class": text(span.attributes.get("leeward.class"))},
        )

    def _ends(self, operation: str, span: Span, is_write: bool) -> tuple[str | None, str | None]:
        """Source and destination of the bytes of an operation."""
        if operation == "query":
            # All machines of a query are its workers; a rule counts both of their links.
            return None, " ".join(self._hosts.get(span.trace, {})) or None
        here = self._places.known(span.host) if span.host else None
        if span.kind == "server":
            client, servers = self._peer(span, _CLIENTS), here
        else:
            below = self._servers.get((span.trace, span.span), [])
            hosts = dict.fromkeys(host for _, host in below if host)
            client, servers = here, " ".join(hosts) or self._peer(span, _SERVERS)
        return (client, servers) if is_write else (servers, client)

    def _peer(self, span: Span, names: tuple[str, ...]) -> str | None:
        """The other end by an attribute, without a port."""
        peer = span.first(names)
        if peer is None:
            return None
        host, _, port = peer.partition(":")
        return self._places.known(host if port.isdigit() else peer)

    def _network(self, span: Span) -> int | None:
        """Part on the network: the client's time without that of its only server, in nanoseconds."""
        below = self._servers.get((span.trace, span.span), [])
        if span.kind == "server" or span.duration_ns is None or len(below) != 1:
            return None
        ((server_ns, _),) = below
        is_within = server_ns is not None and 0 <= server_ns <= span.duration_ns
        return span.duration_ns - server_ns if server_ns is not None and is_within else None


def _number(value: object) -> float | None:
    """A number as a float; None for another value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
