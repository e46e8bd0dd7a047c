"""`leeward export`: rules and dashboards of hotspots and of the service for Prometheus and Grafana."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leeward._quantities import read_milliseconds, read_share
from leeward.cli.groups import Commands
from leeward.cli.notes import print_note
from leeward.cli.options import name_flags, parse_path

if TYPE_CHECKING:
    from leeward.export.rules import Watch

EXAMPLES = """\b
Examples:
  leeward export prometheus-rules --out leeward.rules.yaml
  leeward export prometheus-rules --cadence 60s --hot 80%
  leeward export prometheus-rules --map examples/telemetry/snmp_exporter.yaml \\
      --cluster examples/clusters/racks.yaml
  leeward export grafana --out hotspots.json
  leeward export service-rules --scrape-job leeward --out service.rules.yaml
  leeward export service-grafana --out service.json
"""

app = Commands()

MapOption = Annotated[
    Path | None,
    typer.Option(
        "--map",
        metavar="FILE",
        parser=parse_path,
        help="Map file, which finds links by labels; by default every snmp_exporter port is two links.",
        show_default=False,
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Cluster file with these links: gives the links of pods, the numbers in names, and the"
        " capacities that no metric has.",
    ),
]
HotOption = Annotated[str, typer.Option(metavar="SHARE", help="Utilization above which a link is hot.")]
IntervalOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="Length of an interval; a link is hot for a whole interval or not at all.",
    ),
]
CadenceOption = Annotated[str, typer.Option(metavar="DURATION", help="Time between scrapes.")]
CoverageOption = Annotated[
    str,
    typer.Option(
        metavar="SHARE", help="Least share of an interval with telemetry for the interval to count."
    ),
]
JobOption = Annotated[
    str,
    typer.Option(
        "--scrape-job", metavar="NAME", help="Name of the job under which Prometheus scrapes the service."
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", parser=parse_path, help="Output file; by default stdout.", show_default=False
    ),
]


@app.callback(epilog=EXAMPLES)
def export() -> None:
    """Watch for hotspots, and the service itself, with Prometheus and Grafana.

    The rules compute the same values as `leeward hotspots`: utilization in intervals of five minutes, hot
    links, their share by cross-section, and alerts with the remedy for each persistence class. Other rules
    and another dashboard show the state of the service by its own metrics.
    """


@app.command("prometheus-rules", epilog=EXAMPLES)
def prometheus_rules(
    map_file: MapOption = None,
    cluster: ClusterOption = None,
    hot: HotOption = "75%",
    interval: IntervalOption = "5min",
    cadence: CadenceOption = "30s",
    coverage: CoverageOption = "50%",
    out: OutOption = None,
) -> None:
    """Print a file of recording rules and alerts."""
    from leeward.export.rules import text

    watch = _watch(map_file, cluster, hot, interval, cadence, coverage)
    header = f"Hot: above {hot} in an interval of {interval}. Scraped every {cadence}."
    _write(out, text(watch, header))


@app.command("grafana", epilog=EXAMPLES)
def grafana(
    map_file: MapOption = None,
    cluster: ClusterOption = None,
    hot: HotOption = "75%",
    interval: IntervalOption = "5min",
    cadence: CadenceOption = "30s",
    coverage: CoverageOption = "50%",
    out: OutOption = None,
) -> None:
    """Print a dashboard of the recorded series."""
    from leeward.export.dashboard import dashboard

    watch = _watch(map_file, cluster, hot, interval, cadence, coverage)
    _write(out, json.dumps(dashboard(watch), indent=2) + "\n")


@app.command("service-rules", epilog=EXAMPLES)
def service_rules(job: JobOption = "leeward", out: OutOption = None) -> None:
    """Print a file of recording rules and alerts for the service itself."""
    from leeward.export.service import ServiceWatch, text

    _write(out, text(ServiceWatch(job)))


@app.command("service-grafana", epilog=EXAMPLES)
def service_grafana(job: JobOption = "leeward", out: OutOption = None) -> None:
    """Print a dashboard of the service itself."""
    from leeward.export.service import ServiceWatch, dashboard

    _write(out, json.dumps(dashboard(ServiceWatch(job)), indent=2) + "\n")


def _watch(
    map_file: Path | None, cluster: str | None, hot: str, interval: str, cadence: str, coverage: str
) -> "Watch":
    from leeward.cli.cluster import read
    from leeward.export.promql import SNMP
    from leeward.export.rules import Watch
    from leeward.export.source import from_map
    from leeward.hotspots.settings import HOUR_MS, Settings

    with name_flags(**{name: f"--{name}" for name in ("hot", "interval", "cadence", "coverage", "ahead")}):
        interval_ms = read_milliseconds("interval", interval)
        settings = Settings(
            hot_ppm=round(1e6 * read_share("hot", hot)),
            interval_ms=interval_ms,
            coverage=read_share("coverage", coverage),
            # Rules and dashboards contain no forecast; any multiple of the interval is valid.
            ahead_ms=interval_ms,
        )
        if interval_ms > HOUR_MS:
            raise _too_long(interval)
        pods: tuple[str, ...] = ()
        capacities: dict[str, int] = {}
        if cluster is not None:
            network = read(cluster)
            pods = tuple(sorted({pod for pod in network.rack_table()["pod"].to_pylist() if pod is not None}))
            columns = network.links().select(["name", "capacity_bps"]).to_pydict()
            capacities = dict(zip(*columns.values(), strict=True))
        source = SNMP if map_file is None else from_map(map_file, capacities)
        return Watch(source, settings, read_milliseconds("cadence", cadence), pods)


def _too_long(interval: str) -> Exception:
    from leeward.errors import InputError

    message = (
        f"`{interval}`: expected at most an hour, the shortest duration of the persistence class `hours`"
    )
    return InputError.about("interval", message)


def _write(out: Path | None, text: str) -> None:
    from leeward._files import atomic_file, check_file

    if out is None:
        print(text, end="")
        return
    check_file(out, "--out")
    with atomic_file(out) as path:
        path.write_text(text, encoding="utf-8")
    print_note(f"wrote {out}")
