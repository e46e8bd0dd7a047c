"""`leeward matrix capture --by class`: loads of links by class of service."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leeward._quantities import rate_text
from leeward.cli.capture_output import check_ending, error_text, print_doubts, print_notes, write_table
from leeward.cli.csv_columns import CLASS_LOAD_COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.output import Format, print_data, print_table
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward import Cluster
    from leeward.matrix import ClassLoads

MOST_ROWS = 20
"""Greatest number of links and classes in the table."""


def read_files(given: list[str] | None) -> dict[str, Path]:
    """Files of `--class-out`, by class."""
    from leeward._files import check_file

    flag = "--class-out"
    files = {name: Path(file) for name, file in _pairs(given or [], flag, "CLASS=FILE").items()}
    for name, path in files.items():
        check_ending(path, flag)
        check_file(path, flag)
        if [*files.values()].count(path) > 1:
            raise InputError(flag, None, None, name, f"`{path}`: expected another file for each class")
    return files


def read(
    files: list[str],
    *,
    mapping: str | None,
    cluster: "Cluster | None",
    classes: list[str] | None,
    **settings: Any,
) -> "ClassLoads":
    """Loads of links from captures.

    Args:
        files: The captures.
        mapping: File with the owners of addresses.
        cluster: Cluster whose links carry the traffic.
        classes: Values of `--classes`.
        settings: Further arguments of `class_loads`.
    """
    from leeward.matrix import class_loads

    if mapping is None:
        raise InputError.about("mapping", "required with --by class: the owners of addresses")
    if cluster is None:
        raise InputError.about("cluster", "required with --by class: the links that carry the traffic")
    points = None
    if classes:
        pairs = _pairs(classes, "classes", "CLASS=DSCP, such as PC=ef or NC=af41+36")
        points = {name: [point.strip() for point in text.split("+")] for name, text in pairs.items()}
    return class_loads(files, mapping=mapping, cluster=cluster, classes=points, **settings)


def show(result: "ClassLoads", out: Path | None, files: Mapping[str, Path], output: Format) -> None:
    """Writes loads to files and prints them.

    Args:
        result: The loads.
        out: File for the loads of all classes.
        files: Files for the loads of one class each.
        output: Format of the output.
    """
    from pyarrow import compute

    tables = {path: _of_class(result, name) for name, path in files.items() if len(result.loads)}
    if out is not None:
        tables[out] = result.loads.select([*CLASS_LOAD_COLUMNS])
    for path, table in tables.items():
        write_table(path, table)
        print_note(f"wrote {path}: {len(table):,} rows")
    document = {
        "interval_s": result.interval_s,
        "loads": result.loads.to_pylist(),
        "sources": result.sources.to_pylist(),
        "unknown": result.unknown.to_pylist(),
        "discards": result.discards.to_pylist(),
    }
    if not print_data(output, document, "loads", CLASS_LOAD_COLUMNS) and len(result.loads):
        print_doubts(result)
        _print(result)
    if output is not Format.json:
        print_notes(result, compute.subtract(result.loads["t_s"], result.interval_s))


def _of_class(result: "ClassLoads", name: str) -> Any:
    try:
        return result.of(name)
    except InputError as error:
        raise InputError.about("--class-out", error.message) from error


def _print(result: "ClassLoads") -> None:
    total = result.total()
    rows = [
        (
            row["link"],
            row["class"],
            rate_text(row["mean_bps"]),
            rate_text(row["most_bps"]),
            f"{row['packets']:,}",
            error_text(row),
        )
        for row in total.slice(0, MOST_ROWS).to_pylist()
    ]
    print_table(("LINK", "CLASS", "MEAN", "HIGHEST", "PACKETS", "95 %"), "<<>>>>", rows)
    if len(total) > MOST_ROWS:
        print_note(f"and {len(total) - MOST_ROWS:,} more links and classes")


def _pairs(given: list[str], flag: str, shape: str) -> dict[str, str]:
    """Values by name from texts such as `PC=ef`."""
    result: dict[str, str] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError.about(flag, f"`{text}`: expected {shape}")
        if name in result:
            raise InputError(flag, None, None, name, "given twice; expected each class once")
        result[name] = value
    return result
