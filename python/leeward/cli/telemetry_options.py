"""Options by which commands take telemetry: from files, or from Prometheus."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward.cli.options import given_by, one_of, place
from leeward.cli.progress import patience, progress
from leeward.engines import EngineName

if TYPE_CHECKING:
    from leeward.telemetry import Samples

TelemetryArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TELEMETRY...",
        help="What links carried: files in CSV or Parquet, or folders of them.",
        show_default=False,
    ),
]
TelemetryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--telemetry",
        metavar="FILE",
        help="What links carried: a file in CSV or Parquet, or a folder of them; may be repeated.",
        show_default=False,
    ),
]
ClusterOption = Annotated[str, typer.Option(metavar="FILE", help="Cluster file.", show_default=False)]
PrometheusOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="A Prometheus server to ask instead: http://prom:9090.", show_default=False
    ),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="From when on: so long before the end (30d, 6h), or a date (2026-01-31, 2026-01-31T12:00Z)."
        " Prometheus is asked for a day unless it is said otherwise; of files, all counts.",
        show_default=False,
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Up to when: likewise, before now; by default now.", show_default=False
    ),
]
MapOption = Annotated[
    Path | None,
    typer.Option(
        "--map",
        metavar="FILE",
        parser=place,
        help="Which labels are which links, where no column `link` names them.",
        show_default=False,
    ),
]
EngineOption = Annotated[
    EngineName,
    typer.Option(
        metavar="|".join(EngineName),
        parser=one_of(EngineName),
        help="What computes: DuckDB in this process, or Spark.",
    ),
]
CadenceOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="The usual time from a sample to its next (30s); by default the most frequent one.",
        show_default=False,
    ),
]
HttpOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=place,
        help="How to reach Prometheus: password, token, headers, certificates; written as for promtool.",
        show_default=False,
    ),
]
KeepOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        parser=place,
        help="Where Prometheus' answers are kept, so that none is asked for twice; by default in the user's"
        " cache.",
        show_default=False,
    ),
]


def gather(
    cluster: str,
    telemetry: list[str] | None = None,
    prometheus: str | None = None,
    since: str | None = None,
    until: str | None = None,
    map_file: Path | None = None,
    engine: EngineName = EngineName.DUCKDB,
    cadence: str | None = None,
    http: Path | None = None,
    keep: Path | None = None,
) -> "Samples":
    """Reads what the options of a command name.

    Raises:
        InputError: Of an option, by its flag.
    """
    from leeward.cli.cluster import read as read_cluster
    from leeward.telemetry import Engine, read

    flags = {
        "telemetry": "TELEMETRY",
        "prometheus": "--prometheus",
        "since": "--since",
        "until": "--until",
        "cadence": "--cadence",
        "engine": "--engine",
        "http": "--http",
        "keep": "--keep",
    }
    network = read_cluster(cluster)
    with patience("reading telemetry"), given_by(**flags):
        return read(
            network,
            telemetry or (),
            prometheus=prometheus,
            since=since,
            until=until,
            map=map_file,
            engine=Engine.of(engine),
            cadence=cadence,
            http=http,
            keep=keep,
            progress=progress,
        )
