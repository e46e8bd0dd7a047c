"""`leeward impact`: cost of hot links for the operations that cross them."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward._quantities import read_bytes, read_share
from leeward.cli.analysis_output import OutOption, ReportOption, check, write
from leeward.cli.csv_columns import ESTIMATE_COLUMNS
from leeward.cli.notes import print_note, print_warning
from leeward.cli.options import name_flags, parse_seed, split_list, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text, print_words
from leeward.cli.progress import slow_notice
from leeward.cli.telemetry_options import FLAGS, Telemetry, takes_telemetry
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.impact import Impact, Settings
    from leeward.telemetry import Samples

EXAMPLES = """\b
Examples:
  leeward impact --cluster examples/clusters/racks.yaml --latency examples/telemetry/latencies.csv.gz \\
      --telemetry examples/telemetry/links.parquet
  leeward impact --cluster examples/clusters/racks.yaml --latency examples/telemetry/latencies.csv.gz \\
      --telemetry examples/telemetry/links.parquet --show-buckets --least 20 --factors 1.5,2,3
  leeward impact --cluster examples/clusters/racks.yaml --latency examples/telemetry/latencies.csv.gz \\
      --telemetry examples/telemetry/links.parquet --links chunk-read=dst:downlink -o json

Latencies are CSV or Parquet with the columns t_s,latency_ms,operation,src,dst: 1767225600,8.2,file-read,r0,r3
"""

LatencyOption = Annotated[
    list[str],
    typer.Option(
        metavar="FILE,...",
        help="Latencies of operations: tables (CSV, Parquet), spans (OpenTelemetry, Jaeger) or histograms"
        " (Prometheus), or folders of such files.",
        show_default=False,
    ),
]


@takes_telemetry(interval="30s")
def impact(
    latency: LatencyOption,
    telemetry: Telemetry,
    class_telemetry: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=FILE,...",
            help="Loads of a class of service, for weighted-effective utilization; one file for"
            " each class, instead of --telemetry.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS=N,...",
            help="Weights of these classes in switches, such as PC=8,NC=4,BE=1.",
            show_default=False,
        ),
    ] = None,
    links: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPERATION=LINKS",
            help="Links that a kind of operation crosses: query=src:uplink,dst:downlink.",
            show_default=False,
        ),
    ] = None,
    operation: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=OPERATION,...",
            help="Kinds of operations by the names of spans and histograms: GetObject=file-read.",
            show_default=False,
        ),
    ] = None,
    query_stages: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Times of query stages (CSV or Parquet), for the compute ratio of each query.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD,...",
            help="Fields that split latencies: operation, medium, class, size, compute. By default operation,"
            " and medium if it is known.",
            show_default=False,
        ),
    ] = None,
    hot: Annotated[
        str, typer.Option(metavar="SHARE", help="Utilization at which hotspot-inflation is measured.")
    ] = "75%",
    bucket_width: Annotated[
        str, typer.Option(metavar="SHARE", help="Width of a bucket of utilization.")
    ] = "5%",
    least: Annotated[
        int,
        typer.Option(
            metavar="N",
            parser=whole_number(2, 10**9),
            help="Least number of latencies for a bucket to count, from 2.",
        ),
    ] = 100,
    factors: Annotated[
        str, typer.Option(metavar="N,...", help="Factors of latency for which load-tolerance is measured.")
    ] = "1.5,2",
    interpolate: Annotated[
        bool,
        typer.Option(
            "--interpolate",
            help="Interpolate load-tolerance between the middles of buckets; else it is a lower edge.",
        ),
    ] = False,
    size_edges: Annotated[
        str, typer.Option(metavar="SIZE,...", help="Edges of size classes.")
    ] = "10KB,100KB,1MB,10MB",
    ratio_edges: Annotated[
        str,
        typer.Option(
            metavar="RATIO,...",
            help="Edges of compute-ratio classes.",
            show_default="0.1 to 0.9 in steps of 0.1",
        ),
    ] = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9",
    resamples: Annotated[
        int,
        typer.Option(
            metavar="N",
            parser=whole_number(0, 100_000),
            help="Number of bootstrap resamples; 0 for no confidence intervals.",
        ),
    ] = 1000,
    seed: Annotated[
        int, typer.Option(metavar="N", parser=parse_seed, help="Seed of the bootstrap, from 0.")
    ] = 1,
    show_buckets: Annotated[
        bool, typer.Option("--show-buckets", help="Show every bucket of every curve.")
    ] = False,
    out: OutOption = None,
    report: ReportOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Measure how latency grows with the utilization of links.

    Compares the latency of each operation with the utilization of its busiest link in intervals of 30 s.
    Load-tolerance is the utilization at which the 95th percentile of latency is 1.5 or 2 times the percentile
    at the lowest utilization. Hotspot-inflation is the factor between the percentiles at 75 % and at the
    lowest utilization (Hotspots, section 4).
    """
    from leeward.impact import latencies, measure, page, tables
    from leeward.impact.operations import rules

    settings = _settings(
        telemetry,
        hot,
        bucket_width,
        least,
        factors,
        interpolate,
        by,
        size_edges,
        ratio_edges,
        resamples,
        seed,
    )
    operations = dict(_pair(one, "--links", "OPERATION=LINKS") for one in links or ())
    names = dict(_pair(one, "--operation", "NAME=OPERATION") for one in operation or ())
    class_weights = _weights(weights)
    # Cheap checks run before telemetry is read.
    with name_flags(operations="--links"):
        rules(operations)
    with name_flags(latency="--latency"):
        latencies.check(latency)
    check(out, report, "impact")
    if class_telemetry and (telemetry.files or telemetry.prometheus):
        message = "cannot be combined with --telemetry or --prometheus"
        raise InputError.about("--class-telemetry", message)
    samples = _by_class(telemetry, class_telemetry) if class_telemetry else telemetry.read()
    flags = {
        "operations": "--links",
        **{name: f"--{name}" for name in ("latency", "by", "weights")},
        "names": "--operation",
    }
    with slow_notice("joining latencies with utilizations"), name_flags(**FLAGS, **flags):
        result = measure(
            latency,
            samples,
            settings,
            operations=operations,
            stages=query_stages,
            weights=class_weights,
            names=names,
        )
    document = tables.record(result)
    columns = (*(f"split.{field}" for field in result.by), *ESTIMATE_COLUMNS)
    if not print_data(output, document, _estimates(document), columns):
        _print(result, show_buckets)
    if output is not Format.json:
        _print_doubts(result)
    if out is not None:
        write(out, "impact", tables.tables(result), tables.summary(result))
    if report is not None:
        page.write_page(report, result)
        print_note(f"wrote {report}")


def _by_class(telemetry: Telemetry, files: list[str]) -> "dict[str, Samples]":
    """Reads the telemetry of classes into one engine, so that they can be joined."""
    from leeward.telemetry import Engine

    class_files = [_pair(one, "--class-telemetry", "CLASS=FILE") for one in files]
    names = [name for name, _file in class_files]
    for name in names:
        if names.count(name) > 1:
            raise InputError("--class-telemetry", None, None, name, "given twice; expected each class once")
    with name_flags(**FLAGS):
        shared_engine = Engine.of(telemetry.engine)
    return {
        name: telemetry.of(file).read(shared_engine, telemetry="--class-telemetry")
        for name, file in class_files
    }


def _print(result: "Impact", every: bool) -> None:
    from leeward.impact import rows

    headers, cells = rows.summary(result)
    print_table(headers, rows.sides(headers, result.by), cells)
    for curve in result.curves if every else ():
        print_text(f"\n{curve.name}{'' if curve.part == 'total' else f', {curve.part}'}")
        headers, cells = rows.buckets(result, curve)
        print_table(headers, ">" * len(headers), cells)
    print_note(f"\n{result.latencies:,} of {result.rows:,} latencies have a utilization")
    print_words(rows.glossary(result))


def _estimates(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of CSV: a row for each estimate of each curve."""
    for curve in document["curves"]:
        for measure in ("load_tolerance", "hotspot_inflation"):
            for estimate in curve[measure]:
                yield {"split": curve["split"], "part": curve["part"], "measure": measure} | estimate


def _print_doubts(result: "Impact") -> None:
    from leeward.impact import rows

    for warning in result.warnings:
        print_warning(warning)
    for line in rows.discard_lines(result):
        print_note(line, doubt=True)


def _settings(
    telemetry: Telemetry,
    hot: str,
    bucket: str,
    least: int,
    factors: str,
    interpolate: bool,
    by: str | None,
    sizes: str,
    ratios: str,
    resamples: int,
    seed: int,
) -> "Settings":
    from leeward.impact import Settings

    names = ("hot", "least", "factors", "by", "resamples")
    with name_flags(
        **FLAGS,
        **{name: f"--{name}" for name in names},
        **dict.fromkeys(("size", "sizes"), "--size-edges"),
        ratios="--ratio-edges",
        bucket="--bucket-width",
    ):
        fields = split_list(by)
        return Settings(
            interval_ms=telemetry.interval_ms,
            coverage=telemetry.least_covered,
            bucket_ppm=round(1e6 * read_share("bucket", bucket)),
            hot_ppm=round(1e6 * read_share("hot", hot)),
            least=least,
            factors=tuple(_number(one, "--factors") for one in split_list(factors) or ()),
            interpolate=interpolate,
            by=None if fields is None else tuple(fields),
            sizes=tuple(read_bytes("size", one) for one in split_list(sizes) or () if one),
            ratios=tuple(
                round(1e6 * _number(one, "--ratio-edges")) for one in split_list(ratios) or () if one
            ),
            resamples=resamples,
            seed=seed,
        )


def _number(text: str, flag: str) -> float:
    from math import isfinite

    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or abs(value) > 1e9:
        raise InputError.about(flag, f"`{text}`: expected a number")
    return value


def _pair(text: str, flag: str, shape: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise InputError.about(flag, f"`{text}`: expected {shape}")
    return name.strip(), value.strip()


def _weights(text: str | None) -> Mapping[str, int] | None:
    if text is None:
        return None
    result = {}
    for part in split_list(text) or ():
        name, value = _pair(part, "--weights", "CLASS=N")
        if not (value.isascii() and value.isdigit() and len(value) < 10):
            raise InputError("--weights", None, None, name, f"`{value}`: expected a whole number from 1")
        result[name] = int(value)
    return result
