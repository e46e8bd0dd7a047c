"""Files of latencies: tables, and the spans and histograms of other programs, from which tables are made.

JSON has spans of OpenTelemetry or Jaeger, or an answer of Prometheus. Text of Prometheus has histograms.
Everything else is a table in CSV or Parquet. The content of a file decides, not its name.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

from pyarrow import parquet

from leeward._table_head import GZIP, PARQUET, SUFFIXES, files
from leeward.errors import InputError
from leeward.impact import histograms, spans
from leeward.impact.histograms import Histograms
from leeward.impact.operations import Places, Rules
from leeward.impact.records import Records
from leeward.impact.span_operations import SpanOperations
from leeward.telemetry import Discards
from leeward.telemetry.exports import prometheus_text

Form = Literal["json", "prometheus"]
"""Form of a file that is no table."""
MOST_BYTES = 1_000_000_000
"""Greatest size of a JSON document, and of a text of Prometheus. A file may have a document on each line."""
_HEAD = 4096
_JSON = (".json", ".json.gz", ".jsonl", ".jsonl.gz")


@dataclass(frozen=True)
class Tables:
    """Tables of latencies.

    Attributes:
        files: Each file and its table: the file itself, or the table that was made from it.
        above: Number of latencies above the last bound of their histogram, which count with that bound.
    """

    files: list[tuple[Path, Path]]
    above: int


def files_of(paths: Sequence[str | Path]) -> list[Path]:
    """Files as given, and the files of given folders that may have latencies.

    Raises:
        InputError: A path is missing, a folder has no such file, or a file is given twice.
    """
    return files(paths, "latency", (*SUFFIXES, *_JSON))


def form(path: Path) -> Form | None:
    """Form of a file; None for a table, and for a file that cannot be read."""
    try:
        with _open(path) as file:
            head = file.read(_HEAD)
    except (OSError, EOFError, zlib.error):
        return None
    if head.startswith(PARQUET):
        return None
    text = head.decode("utf-8-sig", errors="ignore").lstrip()
    if text.startswith(("{", "[")):
        return "json"
    return "prometheus" if prometheus_text.recognizes(text.splitlines()) else None


def tables(
    paths: Sequence[str | Path],
    places: Places,
    rules: Rules,
    names: Mapping[str, str],
    folder: Path,
    discards: Discards,
) -> Tables:
    """The tables of latencies of files.

    Args:
        paths: Files or folders.
        places: Hosts of the cluster.
        rules: Rules of the kinds of operations.
        names: Kinds of operations by the names of spans and histograms.
        folder: Folder for tables.
        discards: Counts of spans and histograms that are no latencies.

    Raises:
        InputError: A file cannot be read or is of another form, or no span or histogram is an operation.
    """
    for name, operation in names.items():
        if operation not in rules:
            message = f"`{operation}`: no rule for the links of this operation; expected one of"
            raise InputError("names", None, None, name, f"{message} {', '.join(rules)}")
    found = [(file, form(file)) for file in files_of(paths)]
    if all(kind is None for _, kind in found):
        if names:
            raise InputError.about("names", "only valid with files of spans or histograms")
        return Tables([(file, file) for file, _ in found], 0)
    operations = SpanOperations(places, rules, names)
    records: list[Records] = []
    above = 0
    for number, (file, kind) in enumerate(found):
        series, spans_before = Histograms(places, rules, names), operations.spans
        if kind == "prometheus":
            histograms.read_text(file, _lines(file), series)
        elif kind == "json":
            _read_json(file, number, series, operations)
        if kind is not None and not series.readings and operations.spans == spans_before:
            raise InputError.about(file, "no spans, and no histograms with buckets (`le`)")
        records.append(series.records(str(file), discards))
        above += series.above
    for number, record in enumerate(operations.records(len(found), discards)):
        records[number].extend(record)
    _check_any(found, operations)
    result = []
    for number, (file, kind) in enumerate(found):
        table = file if kind is None else folder / f"source{number}.parquet"
        if kind is not None:
            parquet.write_table(records[number].table(), table)
        result.append((file, table))
    return Tables(result, above)


def _read_json(file: Path, number: int, series: Histograms, operations: SpanOperations) -> None:
    """Reads documents: spans, or answers of Prometheus."""
    for line, document in _documents(file):
        if histograms.is_answer(document):
            histograms.read_answer(file, document, series)
            continue
        try:
            for span in spans.spans_of(document):
                operations.take(span, number)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(str(file), line, None, None, str(error)) from None


def _check_any(found: Sequence[tuple[Path, Form | None]], operations: SpanOperations) -> None:
    """Raises an error if there are spans, and none is an operation."""
    if operations.spans and not operations.found:
        first = next(str(file) for file, kind in found if kind == "json")
        usual = ", ".join(operations.usual_names())
        error = InputError.about(
            first, f"no span is a known kind of operation; the most frequent are {usual}"
        )
        name = next(iter(operations.usual_names()), "GetObject")
        error.add_note(f"--operation '{name}=file-read' makes spans of this name file reads")
        raise error


def _documents(file: Path) -> Iterator[tuple[int | None, Any]]:
    """JSON documents of a file, each with its line: one on each line, or one for the whole file.

    Raises:
        InputError: The file is not readable as JSON.
    """
    try:
        with _open(file) as opened:
            first = opened.readline(MOST_BYTES + 1)
            while first and not first.strip():
                first = opened.readline(MOST_BYTES + 1)
            try:
                document = json.loads(first)
            except (ValueError, RecursionError):
                content = first + opened.read(MOST_BYTES + 1)
                _check_size(file, content)
                yield None, _parse(file, None, content)
                return
            yield 1, document
            for number, line in enumerate(iter(lambda: opened.readline(MOST_BYTES + 1), b""), 2):
                _check_size(file, line)
                if line.strip():
                    yield number, _parse(file, number, line)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError.about(file, f"not readable: {error}") from None


def _parse(file: Path, line: int | None, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0][:120]
        raise InputError(str(file), line, None, None, f"not readable as JSON: {reason}") from None


def _check_size(file: Path, content: bytes) -> None:
    if len(content) > MOST_BYTES:
        message = f"a document longer than {MOST_BYTES:,} bytes; expected one document on each line"
        raise InputError.about(file, message)


def _lines(file: Path) -> list[str]:
    try:
        with _open(file) as opened:
            content = opened.read(MOST_BYTES + 1)
        _check_size(file, content)
        return content.decode("utf-8-sig").splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError.about(file, f"not readable: {error}") from None


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        compressed = file.read(len(GZIP)) == GZIP
    return cast("IO[bytes]", gzip.open(path, "rb") if compressed else path.open("rb"))
