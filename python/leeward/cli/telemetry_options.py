"""Options for telemetry, from files or from Prometheus, that the commands of analyses share."""

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward._engines import EngineName
from leeward._quantities import read_milliseconds, read_share
from leeward.cli.notes import print_warning
from leeward.cli.options import choice_option, name_flags, parse_path
from leeward.cli.progress import progress, slow_notice

if TYPE_CHECKING:
    from leeward.telemetry import Engine, Samples

FLAGS = {
    name: f"--{name}"
    for name in (
        *("telemetry", "prometheus", "since", "until", "map", "cadence", "interval", "coverage", "engine"),
        *("http", "refresh"),
    )
} | {"keep": "--cache"}
"""Flags of the arguments of the telemetry reader, for errors."""

PARTIAL = 3
"""Exit code of a command whose answers of Prometheus may be incomplete."""

TelemetryArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="TELEMETRY", help="The same as --telemetry.", show_default=False),
]
FilesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--telemetry",
        metavar="FILE,...",
        help="Loads of links: files in CSV or Parquet, or folders of them.",
        show_default=False,
    ),
]
ClusterOption = Annotated[
    str, typer.Option(metavar="FILE", help="Cluster file with these links.", show_default=False)
]
PrometheusOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL,...",
        help="Prometheus servers to query instead of files: http://prom:9090. All are read.",
        show_default=False,
    ),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Start: a time before the end (30d, 2h30m) or before now (now-1d), a date"
        " (2026-01-31, 2026-01-31T12:00Z), or seconds since 1970."
        " By default a day before the end for Prometheus, and the first sample of files.",
        show_default=False,
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="End: a time before now (1d), a date, or seconds since 1970; by default now.",
        show_default=False,
    ),
]
MapOption = Annotated[
    Path | None,
    typer.Option(
        "--map",
        metavar="FILE",
        parser=parse_path,
        help="Map file that finds links by labels, for telemetry without a column `link`.",
        show_default=False,
    ),
]
CadenceOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Time between samples, such as 30s, at most 1h; by default the most frequent time.",
        show_default=False,
    ),
]
IntervalOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION", help="Length of the intervals over which utilization is averaged, 1s to 1d."
    ),
]
CoverageOption = Annotated[
    str,
    typer.Option(
        metavar="SHARE", help="Least share of an interval with telemetry for the interval to count."
    ),
]
EngineOption = Annotated[
    EngineName,
    choice_option(EngineName, description="Engine: DuckDB in this process, or Spark."),
]
HttpOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=parse_path,
        help="File of credentials for Prometheus, in promtool's --http.config.file format.",
        show_default=False,
    ),
]
CacheOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        parser=parse_path,
        help="Folder that caches responses of Prometheus; by default in the user's cache.",
        show_default=False,
    ),
]
RefreshOption = Annotated[
    bool, typer.Option("--refresh", help="Query Prometheus again for answers that are cached.")
]
PartialOkOption = Annotated[
    bool,
    typer.Option(
        "--partial-ok",
        help=f"Exit with code 0, not {PARTIAL}, if answers of Prometheus may be incomplete.",
    ),
]
_partial: ContextVar[list[str]] = ContextVar("partial")
"""Warnings of the answers that the command has read."""


@dataclass(frozen=True)
class Telemetry:
    """Values of the options: the source of telemetry and its settings. Each field is a parameter."""

    cluster: ClusterOption
    paths: TelemetryArgument = None
    telemetry: FilesOption = None
    prometheus: PrometheusOption = None
    since: SinceOption = None
    until: UntilOption = None
    map_file: MapOption = None
    cadence: CadenceOption = None
    interval: IntervalOption = "5min"
    coverage: CoverageOption = "50%"
    engine: EngineOption = EngineName.DUCKDB
    http: HttpOption = None
    cache: CacheOption = None
    refresh: RefreshOption = False
    partial_ok: PartialOkOption = False

    @property
    def files(self) -> list[str]:
        """Files of arguments and options."""
        return [*(self.telemetry or ()), *(self.paths or ())]

    @property
    def interval_ms(self) -> int:
        """Length of an interval.

        Raises:
            InputError: The text is not a duration; the error names `interval`.
        """
        return read_milliseconds("interval", self.interval)

    @property
    def least_covered(self) -> float:
        """Share of an interval that telemetry must cover for it to count.

        Raises:
            InputError: The text is not a share; the error names `coverage`.
        """
        return read_share("coverage", self.coverage)

    def of(self, file: str) -> "Telemetry":
        """The same options for a single file."""
        return replace(self, paths=[], telemetry=[file], prometheus=None)

    def read(self, engine: "Engine | None" = None, **flags: str) -> "Samples":
        """Reads the loads of links.

        Args:
            engine: Engine to use; by default a new one, as `--engine` names it.
            flags: Flags of arguments that differ from `FLAGS`.

        Raises:
            InputError: An option is invalid; the error names its flag.
        """
        from leeward.cli.cluster import read as read_cluster
        from leeward.telemetry import Engine, read

        network = read_cluster(self.cluster)
        with slow_notice("reading telemetry"), name_flags(**FLAGS | flags):
            samples = read(
                network,
                self.files,
                prometheus=self.prometheus,
                since=self.since,
                until=self.until,
                map=self.map_file,
                engine=engine or Engine.of(self.engine),
                cadence=self.cadence,
                http=self.http,
                keep=self.cache,
                refresh=self.refresh,
                progress=progress,
            )
        for warning in samples.discards.examples.get("partial", ()):
            print_warning(f"the answer may be incomplete: {warning}")
            _partial.get([]).append(warning)
        return samples


def takes_telemetry(interval: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replaces the parameter of type `Telemetry` of a command by the options of that class.

    Args:
        interval: Default of `--interval`, from the paper of each analysis.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature_parameters = inspect.signature(command).parameters
        (name,) = (one.name for one in signature_parameters.values() if one.annotation is Telemetry)
        # Keyword-only, so that a required option may follow an optional one.
        parameters = [
            option
            for one in signature_parameters.values()
            for option in (_options(interval) if one.name == name else [one.replace(kind=one.KEYWORD_ONLY)])
        ]

        @wraps(command)
        def wrapper(**values: Any) -> None:
            telemetry = Telemetry(**{one.name: values.pop(one.name) for one in fields(Telemetry)})
            _partial.set([])
            command(**{name: telemetry}, **values)
            if _partial.get() and not telemetry.partial_ok:
                raise typer.Exit(PARTIAL)

        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # typer reads it
        wrapper.__annotations__ = {one.name: one.annotation for one in parameters}
        return wrapper

    return decorate


def _options(interval: str) -> list[inspect.Parameter]:
    """Options as parameters of a command."""
    return [
        one.replace(kind=one.KEYWORD_ONLY, **({"default": interval} if one.name == "interval" else {}))
        for one in inspect.signature(Telemetry).parameters.values()
    ]
