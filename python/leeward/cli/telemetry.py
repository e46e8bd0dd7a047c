"""`leeward telemetry`: a draft of a map file, and the cache of Prometheus' answers."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward._quantities import bytes_text, rate_text, some
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.groups import Commands
from leeward.cli.notes import print_note
from leeward.cli.options import name_flags, parse_path
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.progress import slow_notice
from leeward.cli.telemetry_options import CacheOption, HttpOption

if TYPE_CHECKING:
    from leeward.telemetry.cache import CachedQuery
    from leeward.telemetry.draft import Drafted

MAP_EXAMPLES = """\b
Examples:
  leeward telemetry map --from-prometheus http://prom:9090 --cluster racks.yaml --out map.yaml
  leeward telemetry map --from-prometheus https://mimir/prometheus --http access.yaml --cluster racks.yaml
"""
LIST_EXAMPLES = """\b
Examples:
  leeward telemetry cache list
  leeward telemetry cache list --cache ./answers -o json
"""
CLEAR_EXAMPLES = """\b
Examples:
  leeward telemetry cache clear                                   everything
  leeward telemetry cache clear --prometheus http://prom:9090     the answers of one server
"""

MOST_LINES = 10
"""Ports, and links, that the summary of a draft names."""
app = Commands()
answers = Commands()
app.add_typer(answers, name="cache")


@app.callback(epilog=MAP_EXAMPLES)
def commands() -> None:
    """Draft a map file for Prometheus, and manage its cached answers."""


@app.command("map", epilog=MAP_EXAMPLES)
def draft_map(
    prometheus: Annotated[
        str,
        typer.Option(
            "--from-prometheus",
            metavar="URL",
            help="Prometheus server with counters of ports.",
            show_default=False,
        ),
    ],
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Cluster file whose hosts and racks are looked for; by default each device is a host or a"
            " rack.",
            show_default=False,
        ),
    ] = None,
    http: HttpOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", parser=parse_path, help="Output file; by default stdout.", show_default=False
        ),
    ] = None,
) -> None:
    """Draft a map file: which ports in Prometheus are which links of a cluster.

    Looks for counters of received and sent bytes, and for names of the cluster in their labels. Lists the
    ports that it cannot place, with the reasons. Check the draft before use: hotspots shows the links that it
    sees.
    """
    from leeward._files import atomic_file, check_file
    from leeward.cli.cluster import read as read_cluster
    from leeward.telemetry.draft import from_prometheus

    if out is not None:
        check_file(out, "--out")
    network = None if cluster is None else read_cluster(cluster)
    with (
        slow_notice(f"querying {prometheus}"),
        name_flags(prometheus="--from-prometheus", cluster="--cluster"),
    ):
        drafted = from_prometheus(prometheus, network, round(time.time() * 1000), http)
    if out is None:
        print_text(drafted.text.rstrip())
    else:
        with atomic_file(out) as temporary:
            temporary.write_text(drafted.text, encoding="utf-8")
        print_note(f"wrote {out}")
    for line in _summary(drafted):
        print_note(line, doubt=True)


def _summary(drafted: "Drafted") -> list[str]:
    """What the draft makes of the ports, in lines."""
    family = drafted.family
    links = len({link for _, link in drafted.placed})
    lines = [f"counters: {family.received}, {family.sent}; speed: {family.speed or 'none, from the cluster'}"]
    lines += [f"not used: {other.received}, {other.sent}" for other in drafted.others]
    lines.append(
        f"{len(drafted.placed):,} ports are {links:,} links, {len(drafted.ignored):,} are ignored,"
        f" {len(drafted.unplaced):,} are not placed"
    )
    if drafted.missing:
        lines.append(f"links without a port: {some(drafted.missing)}")
    for link, (ports, capacity) in list(drafted.capacities.items())[:MOST_LINES]:
        lines.append(
            f"{link}: its ports add up to {rate_text(ports)}, the cluster says {rate_text(capacity)}"
        )
    for port, reason in drafted.unplaced[:MOST_LINES]:
        lines.append(f"not placed: {port.text}: {reason}")
    more = len(drafted.unplaced) - MOST_LINES
    return [*lines, *([f"not placed: {more:,} more"] if more > 0 else [])]


@answers.callback(epilog=LIST_EXAMPLES)
def cache_commands() -> None:
    """List or clear the cached answers of Prometheus."""


@answers.command("list", epilog=LIST_EXAMPLES)
def list_cache(cache: CacheOption = None, output: FormatOption = Format.table) -> None:
    """List the cached answers, by server and query.

    Answers to other tenants, users or clients are cached apart, so a query may be listed several times.
    """
    from leeward.telemetry.cache import cache_folder, cached_queries
    from leeward.telemetry.times import moment_text

    rows = [_record(query) for query in cached_queries(cache_folder(cache))]
    if print_data(output, rows, rows, COLUMNS["telemetry cache list"]):
        return
    print_table(
        ("SERVER", "QUERY", "FROM", "UNTIL", "PIECES", "SIZE"),
        "<<<<>>",
        [
            (
                *(str(row["server"]) or "unknown", str(row["query"]) or "unknown"),
                *(moment_text(int(str(row[name]))) for name in ("from_ms", "until_ms")),
                *(f"{row['pieces']:,}", bytes_text(int(str(row["size_bytes"])))),
            )
            for row in rows
        ],
    )


@answers.command("clear", epilog=CLEAR_EXAMPLES)
def clear_cache(
    prometheus: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL,...",
            help="Prometheus servers whose answers are deleted; by default all.",
            show_default=False,
        ),
    ] = None,
    cache: CacheOption = None,
) -> None:
    """Delete cached answers: all, or those of the servers of --prometheus.

    The next command that needs them queries Prometheus again.
    """
    from leeward.telemetry.cache import cache_folder, cached_queries, delete

    queries = cached_queries(cache_folder(cache))
    servers = [url.rstrip("/") for url in prometheus or ()]
    for server in servers:
        if all(query.server != server for query in queries):
            print_note(f"the cache has no answers of {server}")
    chosen = [query for query in queries if not servers or query.server in servers]
    for query in chosen:
        delete(query)
    size = bytes_text(sum(query.size_bytes for query in chosen))
    print_note(f"deleted the answers to {len(chosen):,} queries, {size}")


def _record(query: "CachedQuery") -> dict[str, object]:
    return {
        "server": query.server,
        "query": query.query,
        "from_ms": query.first_ms,
        "until_ms": query.last_ms,
        "pieces": query.pieces,
        "size_bytes": query.size_bytes,
        "folder": str(query.folder),
    }
