"""`leeward data`: public traces with known checksums."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward import data
from leeward._quantities import file_size_text
from leeward.cli.output import Format, FormatOption, print_json, print_table
from leeward.cli.progress import progress

LIST_EXAMPLES = """\b
Examples:
  leeward data list                        what there is, and what of it is here
  leeward data list swim-facebook          where its files are from, checksums, how to cite it
  leeward data list -o json
"""
GET_EXAMPLES = """\b
Examples:
  leeward data get fb2010-coflow swim-facebook
  LEEWARD_DATA=~/traces leeward data get swim-facebook       into a folder of your own
  LEEWARD_DATA_MIRROR=https://mirror.example.org/traces leeward data get swim-facebook
"""
PATH_EXAMPLES = """\b
Examples:
  leeward data path swim-facebook
  cp cluster_a.csv.gz "$(leeward data path facebook-tm-parsimon)"
"""

app = typer.Typer(rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A set of traces.", show_default=False)]
Names = Annotated[list[str], typer.Argument(metavar="NAME", help="Sets of traces.", show_default=False)]


@app.callback(epilog=LIST_EXAMPLES)
def commands() -> None:
    """Find, fetch and check public traces for scenarios."""


@app.command("list", epilog=LIST_EXAMPLES)
def list_sets(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Sets to show in full; by default all, in short."),
    ] = None,
    output: FormatOption = Format.table,
) -> None:
    """List the known traces.

    Shows their content, source and licence, and the files that are here.
    """
    wanted = [data.find(name) for name in names] if names else list(data.sets())
    if output is Format.json:
        print_json([described(known) for known in wanted])
    elif names:
        for at, known in enumerate(wanted):
            print("\n" * (at > 0), end="")
            print_set(known)
    else:
        print_table(
            ("NAME", "LICENCE", "SIZE", "HERE", "GET", "WHAT"),
            "<<><<<",
            [
                (
                    known.name,
                    known.licence,
                    file_size_text(known.bytes),
                    of_files(known, [file for file in known.files if place(known, file).is_file()]),
                    of_files(known, [file for file in known.files if file.path], none="by hand"),
                    known.what,
                )
                for known in wanted
            ],
        )


@app.command(epilog=GET_EXAMPLES)
def get(names: Names) -> None:
    """Fetch missing traces and check present ones.

    Files are checked against their checksums. Files that cannot be fetched are named, with the steps that
    make them.
    """
    from leeward.data import fetch

    failed = False
    for known in [data.find(name) for name in names]:
        folder = data.folder() / known.name
        if known.licence == data.NO_LICENCE:
            tell(f"{known.name}: no licence is stated; for your own use, not to be redistributed")
        states = {file: fetch.state(folder, file) for file in known.files}
        for file in known.files:
            if states[file] is fetch.State.wrong:
                failed = True
                tell(f"error: {folder / file.name}: not the file that is known: the checksum is another")
                tell("hint: remove it" + (f"; leeward data get {known.name} fetches it" if file.path else ""))
        missing = [file for file in known.files if states[file] is fetch.State.missing]
        fetched = [file for file in missing if file.path]
        with progress(f"fetching {known.name}", sum(file.bytes for file in fetched)) as advance:
            for at, file in enumerate(fetched, 1):
                try:
                    fetch.fetch(folder, file, advance)
                    states[file] = fetch.State.right
                except fetch.FetchError as error:
                    failed = True
                    tell(f"error: {error}")
                    if isinstance(error, fetch.HostError):
                        left = len(fetched) - at
                        if left:
                            tell(f"{known.name}: {left} more from this host not tried")
                        break
        for file in missing:
            if file.by_hand:
                tell(f"{known.name}: {file.name} cannot be fetched: {file.by_hand}")
                tell(f"hint: put it at {folder / file.name}")
        right = sum(state is fetch.State.right for state in states.values())
        failed = failed or right == 0
        tell(f"{known.name}: {right} of {len(states)} files are here and right, in {folder}")
    if failed:
        raise typer.Exit(1)


@app.command(epilog=PATH_EXAMPLES)
def path(name: Name) -> None:
    """Print the folder of some traces.

    The folder may still be missing.
    """
    known = data.find(name)
    print(data.folder() / known.name)
    if not all(place(known, file).is_file() for file in known.files):
        tell(f"not all of it is there; leeward data get {name} says what is missing")


def print_set(known: data.TraceSet) -> None:
    """Prints all facts about a set."""
    print(f"{known.name}: {known.what}")
    print(f"source: https://github.com/{known.repository} at {known.commit}")
    print(f"licence: {known.licence}")
    print(f"cite: {known.cite}")
    print(f"here: {data.folder() / known.name}")
    print("Size and SHA-256 are of what is in a file, where its name ends in .gz.\n")
    print_table(
        ("FILE", "SIZE", "HERE", "SHA-256", "FROM"),
        "<><<<",
        [
            (
                file.name,
                file_size_text(file.bytes),
                "yes" if place(known, file).is_file() else "no",
                file.sha256,
                f"{file.repository}/{file.commit}/{file.path}" if file.path else f"by hand: {file.by_hand}",
            )
            for file in known.files
        ],
    )


def described(known: data.TraceSet) -> dict[str, Any]:
    """A set as JSON."""
    return {
        "name": known.name,
        "what": known.what,
        "repository": known.repository,
        "commit": known.commit,
        "licence": known.licence,
        "redistributable": known.licence != data.NO_LICENCE,
        "cite": known.cite,
        "bytes": known.bytes,
        "path": str(data.folder() / known.name),
        "files": [
            {
                "name": file.name,
                "here": place(known, file).is_file(),
                "bytes": file.bytes,
                "sha256": file.sha256,
                "checksum_of": "content" if file.compressed else "file",
                "repository": file.repository,
                "commit": file.commit,
                "path": file.path,
                "by_hand": file.by_hand,
            }
            for file in known.files
        ],
    }


def place(known: data.TraceSet, file: data.TraceFile) -> Path:
    """Path of a file, which may be missing."""
    return data.folder() / known.name / file.name


def of_files(known: data.TraceSet, some: list[data.TraceFile], none: str = "no") -> str:
    """Text for a number of the files of a set."""
    if len(some) in (0, len(known.files)):
        return "yes" if some else none
    return f"{len(some)} of {len(known.files)} files"


def tell(line: str) -> None:
    """Prints a line for the user on stderr."""
    print(line, file=sys.stderr)
