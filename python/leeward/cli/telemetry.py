"""`leeward telemetry`: the cache of Prometheus' answers."""

from typing import Annotated

import typer

from leeward._quantities import bytes_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.groups import Commands
from leeward.cli.notes import print_note
from leeward.cli.output import Format, FormatOption, print_data, print_table
from leeward.cli.telemetry_options import CacheOption
from leeward.errors import InputError
from leeward.telemetry.cache import CachedQuery, cache_folder, cached_queries, delete
from leeward.telemetry.times import moment_text

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

app = Commands()
answers = Commands()
app.add_typer(answers, name="cache")


@app.callback(epilog=LIST_EXAMPLES)
def commands() -> None:
    """Manage the cached answers of Prometheus."""


@answers.callback(epilog=LIST_EXAMPLES)
def cache_commands() -> None:
    """List or clear the cached answers of Prometheus."""


@answers.command("list", epilog=LIST_EXAMPLES)
def list_cache(cache: CacheOption = None, output: FormatOption = Format.table) -> None:
    """List the cached answers, by server and query.

    Answers to other tenants, users or clients are cached apart, so a query may be listed several times.
    """
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
    queries = cached_queries(cache_folder(cache))
    servers = [url.rstrip("/") for url in prometheus or ()]
    for server in servers:
        if all(query.server != server for query in queries):
            raise InputError.about("--prometheus", f"`{server}`: the cache has no answers of this server")
    chosen = [query for query in queries if not servers or query.server in servers]
    for query in chosen:
        delete(query)
    size = bytes_text(sum(query.size_bytes for query in chosen))
    print_note(f"deleted the answers to {len(chosen):,} queries, {size}")


def _record(query: CachedQuery) -> dict[str, object]:
    return {
        "server": query.server,
        "query": query.query,
        "from_ms": query.first_ms,
        "until_ms": query.last_ms,
        "pieces": query.pieces,
        "size_bytes": query.size_bytes,
        "folder": str(query.folder),
    }
