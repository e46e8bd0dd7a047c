"""`leeward matrix`: traffic matrices from packets, predictions and their errors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward._quantities import bytes_text, percent_text, read_share
from leeward.cli import matrix_capture
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.groups import Commands
from leeward.cli.matrix_files import WRITERS, write_square
from leeward.cli.notes import print_note, print_warning
from leeward.cli.options import name_flags, parse_path, split_list
from leeward.cli.output import Format, FormatOption, print_data, print_table
from leeward.cli.progress import slow_notice
from leeward.errors import InputError

if TYPE_CHECKING:
    from leeward.matrix import Model, Prediction, Score, Series
    from leeward.matrix.scoring import Figure

EXAMPLES = """\b
Examples:
  leeward matrix capture examples/captures/shuffle.pcap.gz --interval 1min
  leeward matrix predict examples/traffic/wordcount.csv --out next.npy
  leeward matrix score examples/traffic/wordcount.csv
"""
PREDICT_EXAMPLES = """\b
Examples:
  leeward matrix predict examples/traffic/wordcount.csv
  leeward matrix predict examples/traffic/wordcount.csv --interval 2h -o json
  leeward matrix predict examples/traffic/wordcount.csv --out next.npy \\
      --only-tasks split,map0,map1,map2,map3,reduce0,reduce1 && \\
      leeward place tasks --cluster examples/clusters/tenant.yaml \\
      --app examples/apps/wordcount.yaml --matrix next.npy

A list of transfers is CSV or Parquet with the columns t_s,src,dst,bytes: 3600,map0,reduce1,2.5e9
"""
SCORE_EXAMPLES = """\b
Examples:
  leeward matrix score examples/traffic/wordcount.csv
  leeward matrix score examples/traffic/wordcount.csv --train 0.5 -o json
"""
MOST_PAIRS = 20
"""Greatest number of pairs in the table of a prediction."""
_WORDS = (
    ("wrong bytes", "sum of absolute errors divided by sum of bytes, over all pairs and hours"),
    ("total", "relative error of the bytes of all pairs together, mean over hours"),
    ("pairs", "relative error of pairs with traffic: median and 90th percentile, mean over hours"),
    (
        "above combination",
        "wrong bytes minus those of the combination, in percentage points; above 0 is worse",
    ),
    ("in brackets", "95 % confidence interval, by bootstrap over blocks of a quarter of a day"),
)

app = Commands()

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Matrices of consecutive intervals (.npy), or a list of transfers (CSV or Parquet).",
        show_default=False,
    ),
]
IntervalOption = Annotated[
    str, typer.Option(metavar="DURATION", help="Length of an interval, which must divide a day: 1h, 30min.")
]
TasksOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="All tasks in the order of the app file; by default the sorted"
        " names of a list, and numbers from 0 for .npy.",
        show_default=False,
    ),
]


@app.callback(epilog=EXAMPLES)
def matrix() -> None:
    """Make traffic matrices from packets, and predict them.

    Predictions combine the bytes of each pair of tasks in the last hour and at the same time of earlier days,
    which section 2.1 of Choreo finds to be good predictors.
    """


app.command("capture", epilog=matrix_capture.EXAMPLES)(matrix_capture.capture)


@app.command(epilog=PREDICT_EXAMPLES)
def predict(
    file: File,
    interval: IntervalOption = "1h",
    only_tasks: TasksOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="File for the matrix: a NumPy file (.npy) or a square of numbers (.csv).",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Predict the matrix of the next interval."""
    from leeward._files import check_file
    from leeward.matrix import predict as predict_next

    if out is not None:
        if out.suffix not in WRITERS:
            raise InputError.about("--out", f"`{out}`: expected a name that ends in .npy or .csv")
        check_file(out, "--out")
    series = _read(file, interval, only_tasks)
    prediction = predict_next(series)
    square = prediction.matrix.tolist()
    document = _common_fields(series, prediction.model) | {"matrix": square}
    rows = [
        {"from": source, "to": destination, "bytes": count}
        for source, row in zip(series.tasks, square, strict=True)
        for destination, count in zip(series.tasks, row, strict=True)
        if count
    ]
    if not print_data(output, document, rows, COLUMNS["matrix predict"]):
        _print_prediction(series, prediction)
    if out is not None:
        write_square(out, prediction.matrix)
        print_note(f"wrote {out}")


@app.command(epilog=SCORE_EXAMPLES)
def score(
    file: File,
    train: Annotated[
        str,
        typer.Option(
            metavar="SHARE", help="Share of the intervals to learn from, the earliest; the rest is scored."
        ),
    ] = "70%",
    interval: IntervalOption = "1h",
    only_tasks: TasksOption = None,
    output: FormatOption = Format.table,
) -> None:
    """Score predictions of later hours.

    The predictor learns from the first part of the file, and predicts each later interval from the
    intervals before it. Baselines are the last hour alone, the same time of earlier days alone, and the mean
    of all earlier intervals.
    """
    from leeward.matrix import score as score_series

    series = _read(file, interval, only_tasks)
    with slow_notice("scoring"), name_flags(train="--train", series=file):
        result = score_series(series, read_share("train", train))
    if not print_data(output, _score_record(series, result), "predictors", COLUMNS["matrix score"]):
        _print_score(result)


def _read(file: str, interval: str, tasks: str | None) -> "Series":
    from leeward.matrix import read

    with slow_notice("reading"), name_flags(path="FILE", interval="--interval", tasks="--only-tasks"):
        series = read(file, interval, split_list(tasks))
    within = series.within_bytes
    if within:
        text = f"{bytes_text(within)} of {bytes_text(float(series.bytes.sum()))}"
        print_warning(f"{text} are on the diagonal: from a task to itself, which crosses no link")
    return series


def _common_fields(series: "Series", model: "Model") -> dict[str, Any]:
    """Fields that both commands print as JSON."""
    shares = model.last_hour
    return {
        "tasks": list(series.tasks),
        "interval_s": series.interval_s,
        "intervals": series.intervals,
        "pairs": len(series.pairs),
        "within_bytes": series.within_bytes,
        "model": {
            "days": model.days,
            "scope": model.scope,
            "last_hour": float(shares.mean()) if len(shares) else None,
            "learnt_intervals": model.learnt_hours,
            "validation": model.validation,
        },
    }


def _print_prediction(series: "Series", result: "Prediction") -> None:
    before, after = series.bytes[-1], result.matrix[series.pairs[:, 0], series.pairs[:, 1]]
    largest = sorted(range(len(after)), key=lambda pair: (-after[pair], pair))
    rows = [
        (
            *(series.tasks[end] for end in series.pairs[pair]),
            bytes_text(before[pair]),
            bytes_text(after[pair]),
        )
        for pair in largest[:MOST_PAIRS]
    ]
    if len(largest) > MOST_PAIRS:
        rest = largest[MOST_PAIRS:]
        rows.append(
            (
                f"{len(rest):,} more pairs",
                "",
                bytes_text(before[rest].sum()),
                bytes_text(after[rest].sum()),
            )
        )
    rows.append(("all pairs", "", bytes_text(before.sum()), bytes_text(after.sum())))
    print_table(("FROM", "TO", "LAST", "NEXT"), "<<>>", rows)
    print_note(f"\n{_model_text(result.model)}")


def _model_text(model: "Model") -> str:
    """Parameters of the predictor, in one line."""
    if not model.learnt_hours:
        return "the prediction is the last interval: there is no full earlier day to learn from"
    shares, baseline = model.last_hour, "the day before" if model.days == "day before" else "all earlier days"
    text = f"{percent_text(float(shares.mean()))} last interval, the rest the same time of {baseline}"
    text += (
        ", one weight for all pairs"
        if model.scope == "all pairs"
        else ", on average over the weights of pairs"
    )
    if model.validation is not None:
        text += f"; {percent_text(model.validation)} of bytes wrong in the rolling validation"
    return text


def _score_record(series: "Series", result: "Score") -> dict[str, Any]:
    """A score as JSON."""
    names = ("wrong_bytes", "total", "median", "p90", "above_combination")
    rows = []
    for one in result.scored:
        row: dict[str, Any] = {"predictor": one.predictor}
        for name in names:
            figure: Figure = getattr(one, name)
            low, high = figure.within or (None, None)
            row |= {name: figure.value, f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    return _common_fields(series, result.model) | {"learnt": result.learnt, "predictors": rows}


def _print_score(result: "Score") -> None:
    print_table(
        (
            "PREDICTOR",
            "WRONG BYTES",
            "TOTAL",
            "PAIRS, MEDIAN",
            "PAIRS, 90TH",
            "ABOVE COMBINATION",
        ),
        "<>>>>>",
        [
            (
                one.predictor,
                *(_figure(figure) for figure in (one.wrong_bytes, one.total, one.median, one.p90)),
                _figure(one.above_combination, "points") if at else "",
            )
            for at, one in enumerate(result.scored)
        ],
    )
    count = result.intervals - result.learnt
    text = (
        f"{count} of {result.intervals} intervals scored, {result.pairs:,} pairs; {_model_text(result.model)}"
    )
    print_note(f"\n{text}")
    for word, meaning in _WORDS:
        print_note(f"{word}: {meaning}")


def _figure(figure: "Figure", unit: str = "%") -> str:
    values = (figure.value, *(figure.within or ()))
    value, *within = (percent_text(value, beside=figure.value).removesuffix(" %") for value in values)
    return f"{value} {unit}" + (f" ({' to '.join(within)})" if within else "")
