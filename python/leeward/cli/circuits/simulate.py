"""`leeward circuits simulate`: a network of packets and circuits, packet by packet."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli.options import place
from leeward.cli.output import Format, FormatOption, bytes_text, print_json, print_table, print_words
from leeward.cli.progress import progress

if TYPE_CHECKING:
    from leeward.packets import PacketRun

EXAMPLES = """\b
Examples:
  leeward circuits simulate examples/circuits/strobe.yaml
  leeward circuits simulate examples/circuits/rotorlb.yaml
  leeward circuits simulate examples/circuits/strobe.yaml --out results
  leeward circuits simulate examples/circuits/strobe.yaml -o json
"""
STEPS = 200
SUMMARY = "summary.json"
_WORDS = (
    ("used", "the share of its days in which a circuit sent"),
    ("latency", "of packets with data, from entering the switch to leaving it"),
)


def simulate(
    scenario: Annotated[str, typer.Argument(metavar="FILE", help="Scenario file.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            parser=place,
            help="Where to write tables (Parquet) and summary.json. One that is there must be empty or hold"
            " an earlier result, which is replaced.",
            show_default=False,
        ),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """Simulate hosts, TCP and the hybrid switch.

    A scenario is run packet by packet: how far circuits were used, how long packets were in the switch, and
    when flows were over. Packets take circuits of their own pair of racks, or by `routing` those of others.
    """
    from leeward.files import check_replaced, whole_folder
    from leeward.packets import read, tables

    if out is not None:
        check_replaced(out, "--out", "an earlier result of this command", _strange)
    found = read(scenario)
    with progress(f"simulating {scenario}", STEPS) as advance:
        done = 0

        def tell(share: float) -> None:
            nonlocal done
            reached = round(share * STEPS)
            advance(reached - done)
            done = reached

        run = found.run(tell)
    summary = summarized(run)
    if output is Format.json:
        print_json(summary)
    else:
        _print(summary)
    if out is not None:
        from pyarrow import parquet

        with whole_folder(out) as folder:
            for name, table in tables(run).items():
                parquet.write_table(table, folder / f"{name}.parquet")
            (folder / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        print(f"wrote {out}", file=sys.stderr)


def _strange(out: Path) -> str | None:
    """What keeps a folder from being an earlier result, or empty; None if nothing does."""
    from leeward.packets import TABLES

    here = sorted(path.name for path in out.iterdir())
    known = {SUMMARY, *(f"{name}.parquet" for name in TABLES)}
    strange = [name for name in here if name not in known]
    if not here or (SUMMARY in here and not strange):
        return None
    return f"`{(strange or here)[0]}`"


def summarized(run: "PacketRun") -> dict[str, Any]:
    """What a run came to, as values of JSON."""
    from leeward.packets import PATHS

    days = run.days().to_pydict()
    pairs: dict[tuple[int, int], list[int]] = {}
    for source, destination, size in zip(days["source"], days["destination"], days["bytes"], strict=True):
        pairs.setdefault((source, destination), []).append(size)
    circuits = [
        {
            "source": source,
            "destination": destination,
            "days": len(sizes),
            "bytes": sum(sizes),
            "utilization": run.utilization(source, destination),
        }
        for (source, destination), sizes in sorted(pairs.items())
        if any(sizes)
    ]
    latency = {path: {str(share): run.latency(path, share) for share in (0.5, 0.99)} for path in PATHS}
    return {"totals": run.totals(), "circuits": circuits, "latency_s": latency}


def _print(summary: dict[str, Any]) -> None:
    totals = summary["totals"]
    print(
        f"{totals['finished']:,} of {totals['flows']:,} flows finished in {1e3 * totals['ended_s']:,.4g} ms;"
        f" {bytes_text(totals['dropped_bytes'])} of {bytes_text(totals['sent_bytes'])} sent were dropped\n"
    )
    print_table(
        ("PATH", "SENT", "PACKETS", "LATENCY MEDIAN", "P99"),
        "<>>>>",
        [
            (
                path,
                bytes_text(sum(totals[f"{one}_bytes"] for one in counted)),
                f"{sum(totals[f'{one}_packets'] for one in counted):,}",
                *(_us(summary["latency_s"][path][share]) for share in ("0.5", "0.99")),
            )
            for path, counted in (
                ("packet", ("packet",)),
                ("circuit", ("circuit",)),
                ("all", ("packet", "circuit")),
            )
        ],
    )
    if summary["circuits"]:
        print()
        print_table(
            ("CIRCUIT", "DAYS", "SENT", "USED"),
            "<>>>",
            [
                (
                    f"r{one['source']} to r{one['destination']}",
                    f"{one['days']:,}",
                    bytes_text(one["bytes"]),
                    f"{100 * one['utilization']:.1f} %",
                )
                for one in summary["circuits"]
            ],
        )
    print_words(_WORDS)


def _us(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e6 * seconds:,.1f} us"
