"""`leeward data`: public traces with known checksums."""

from pathlib import Path
from typing import Annotated, Any

import typer

from leeward import data
from leeward._quantities import bytes_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.groups import Commands
from leeward.cli.notes import print_error, print_note
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.progress import progress

LIST_EXAMPLES = """\b
Examples:
  leeward data list                        all sets, and their files on this machine
  leeward data list swim-facebook          origin and checksums of the files, and the citation
  leeward data list -o json
"""
GET_EXAMPLES = """\b
Examples:
  leeward data get fb2010-coflow swim-facebook
  LEEWARD_DATA=~/traces leeward data get swim-facebook       into another folder
  LEEWARD_DATA_MIRROR=https://mirror.example.org/traces leeward data get swim-facebook
"""
PATH_EXAMPLES = """\b
Examples:
  leeward data path swim-facebook
  cp cluster_a.csv.gz "$(leeward data path facebook-tm-parsimon)"
"""

app = Commands()

Name = Annotated[str, typer.Argument(metavar="NAME", help="A set of traces.", show_default=False)]
Names = Annotated[list[str], typer.Argument(metavar="NAME", help="Sets of traces.", show_default=False)]


@app.callback(epilog=LIST_EXAMPLES)
def commands() -> None:
    """List, fetch and check public traces for scenarios."""


@app.command("list", epilog=LIST_EXAMPLES)
def list_sets(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Sets to show in full; by default, a summary of all sets."),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """List the known traces.

    Shows the content, source and licence of each set, and its files on this machine.
    """
    trace_sets = [data.find(name) for name in names] if names else list(data.sets())
    records = [set_record(trace_set) for trace_set in trace_sets]
    if print_data(output, records, records, COLUMNS["data list"]):
        return
    if names:
        for index, trace_set in enumerate(trace_sets):
            print("\n" * (index > 0), end="")
            print_set(trace_set)
    else:
        print_table(
            ("NAME", "LICENCE", "SIZE", "HERE", "GET", "WHAT"),
            "<<><<<",
            [
                (
                    trace_set.name,
                    trace_set.licence,
                    bytes_text(trace_set.bytes),
                    count_text(
                        trace_set, [file for file in trace_set.files if file_path(trace_set, file).is_file()]
                    ),
                    count_text(trace_set, [file for file in trace_set.files if file.path], none="by hand"),
                    trace_set.what,
                )
                for trace_set in trace_sets
            ],
        )


@app.command(epilog=GET_EXAMPLES)
def get(names: Names) -> None:
    """Fetch missing traces and check present ones.

    Checks files against their checksums. For files that cannot be fetched, shows how to make them.
    """
    from leeward.data import fetch

    failed = unreachable = False
    for trace_set in [data.find(name) for name in names]:
        folder = data.folder() / trace_set.name
        if trace_set.licence == data.NO_LICENCE:
            print_note(f"{trace_set.name}: no licence is stated: do not redistribute the files", doubt=True)
        states = {file: fetch.state(folder, file) for file in trace_set.files}
        for file in trace_set.files:
            if states[file] is fetch.State.invalid:
                failed = True
                print_error(f"{folder / file.name}: not the published file: its checksum differs")
                print_note(
                    "hint: remove the file"
                    + (f"; leeward data get {trace_set.name} fetches it" if file.path else "")
                )
        missing = [file for file in trace_set.files if states[file] is fetch.State.missing]
        downloads = [file for file in missing if file.path]
        with progress(f"fetching {trace_set.name}", sum(file.bytes for file in downloads)) as advance:
            for number, file in enumerate(downloads):
                # One host, or one mirror, has the files of all sets.
                if unreachable:
                    print_not_tried(trace_set, len(downloads) - number)
                    break
                try:
                    fetch.fetch(folder, file, advance)
                    states[file] = fetch.State.valid
                except fetch.FetchError as error:
                    failed = True
                    unreachable = isinstance(error, fetch.HostError)
                    print_error(str(error))
        for file in missing:
            if file.by_hand:
                print_note(f"{trace_set.name}: {file.name} cannot be fetched: {file.by_hand}")
                print_note(f"hint: put the file at {folder / file.name}")
        valid = sum(state is fetch.State.valid for state in states.values())
        failed = failed or valid == 0
        print_note(f"{trace_set.name}: {valid} of {len(states)} files are present and valid, in {folder}")
    if failed:
        raise typer.Exit(1)


@app.command(epilog=PATH_EXAMPLES)
def path(name: Name) -> None:
    """Print the folder of a set of traces.

    The folder may still be missing.
    """
    trace_set = data.find(name)
    print(data.folder() / trace_set.name)
    if not all(file_path(trace_set, file).is_file() for file in trace_set.files):
        print_note(f"files are missing; leeward data get {name} fetches them, or shows how to make them")


def print_set(trace_set: data.TraceSet) -> None:
    """Prints all facts about a set."""
    print_text(f"{trace_set.name}: {trace_set.what}")
    print(f"source: https://github.com/{trace_set.repository} at {trace_set.commit}")
    print_text(f"licence: {trace_set.licence}")
    print_text(f"cite: {trace_set.cite}")
    print(f"here: {data.folder() / trace_set.name}")
    print_text("Size and SHA-256 of a .gz file are those of its decompressed content.\n")
    print_table(
        ("FILE", "SIZE", "HERE", "SHA-256", "FROM"),
        "<><<<",
        [
            (
                file.name,
                bytes_text(file.bytes),
                "yes" if file_path(trace_set, file).is_file() else "no",
                file.sha256,
                f"{file.repository}/{file.commit}/{file.path}" if file.path else f"by hand: {file.by_hand}",
            )
            for file in trace_set.files
        ],
    )


def set_record(trace_set: data.TraceSet) -> dict[str, Any]:
    """A set as JSON."""
    return {
        "name": trace_set.name,
        "what": trace_set.what,
        "repository": trace_set.repository,
        "commit": trace_set.commit,
        "licence": trace_set.licence,
        "redistributable": trace_set.licence != data.NO_LICENCE,
        "cite": trace_set.cite,
        "bytes": trace_set.bytes,
        "path": str(data.folder() / trace_set.name),
        "files": [
            {
                "name": file.name,
                "here": file_path(trace_set, file).is_file(),
                "bytes": file.bytes,
                "sha256": file.sha256,
                "checksum_of": "content" if file.compressed else "file",
                "repository": file.repository,
                "commit": file.commit,
                "path": file.path,
                "by_hand": file.by_hand,
            }
            for file in trace_set.files
        ],
    }


def file_path(trace_set: data.TraceSet, file: data.TraceFile) -> Path:
    """Path of a file, which may be missing."""
    return data.folder() / trace_set.name / file.name


def count_text(trace_set: data.TraceSet, files: list[data.TraceFile], none: str = "no") -> str:
    """Text for some of the files of a set: `yes` for all, `none` for no file, otherwise their number."""
    if len(files) in (0, len(trace_set.files)):
        return "yes" if files else none
    return f"{len(files)} of {len(trace_set.files)} files"


def print_not_tried(trace_set: data.TraceSet, count: int) -> None:
    """Prints the number of files of a set that were skipped because their host cannot be reached."""
    files = "1 more file of this host was" if count == 1 else f"{count} more files of this host were"
    print_note(f"{trace_set.name}: {files} not tried")
