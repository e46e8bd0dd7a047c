"""The `leeward` command.

One file a command; this one joins them and keeps the manners they share. Data goes to stdout and everything
else to stderr. What the user got wrong is told in one line, `error: ...`, with a `hint: ...` where there is
advice, and ends with code 2.
"""

import os
import sys
from typing import Annotated

import typer

from leeward import __version__
from leeward.cli import cluster, demo, place, policies, schema, simulate
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward demo                                          an hour of 3,000 hosts, under two policies
  leeward simulate scenario.yaml --policy uniform,sinbad
  leeward place replicas --cluster c.yaml --telemetry loads.csv --writer r3h7 --size 256MiB --explain
  leeward policies                                      what there is to choose from
  leeward cluster show racks.yaml                       what a cluster file describes
  leeward schema scenario                               every field of a scenario file
"""

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(cluster.app, name="cluster")
app.command("demo", epilog=demo.EXAMPLES)(demo.demo)
app.add_typer(place.app, name="place", help=place.__doc__)
app.command("policies", epilog=policies.EXAMPLES)(policies.policies)
app.command("schema", epilog=schema.EXAMPLES)(schema.schema)
app.command("simulate", epilog=simulate.EXAMPLES)(simulate.simulate)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"leeward {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=EXAMPLES)
def leeward(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Places work on the sheltered side of the network."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Runs the command that the process was started for, and ends the process."""
    try:
        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
    except InputError as error:
        code = _tell(str(error), *getattr(error, "__notes__", ()), code=2)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        hints = [f"{context.command_path} --help"] if context else []
        code = _tell(error.format_message(), *hints, code=2)
    except BrokenPipeError:
        # Who read our output has seen enough. What is still buffered must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as error:
        code = _tell(f"{error.filename}: {error.strerror}" if error.filename else str(error), code=1)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _tell(problem: str, *hints: str, code: int) -> int:
    print("error:", " ".join(problem.split()), file=sys.stderr)
    for hint in hints:
        print("hint:", hint, file=sys.stderr)
    return code
