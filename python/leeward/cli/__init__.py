"""The `leeward` command.

Each command has a file; this one joins them. Data goes to stdout and everything else to stderr. A user error
is one line, `error: ...`, with a `hint: ...` where there is advice; the exit code is 2.
"""

import os
import sys
from io import FileIO, TextIOWrapper
from typing import Annotated

import typer

from leeward import __version__
from leeward._extras import MissingExtraError
from leeward.cli import (
    agent,
    cells,
    circuits,
    cluster,
    completion,
    data,
    decisions,
    demo,
    device,
    enforce,
    explain,
    export,
    hdfs,
    hotspots,
    impact,
    kubernetes,
    lab,
    matrix,
    migrate,
    mode,
    operations,
    place,
    plan,
    plugins,
    policies,
    probe,
    reevaluate,
    report,
    schema,
    serve,
    simulate,
    slo,
    telemetry,
    tenant,
    token,
    top,
    traces,
    trial,
)
from leeward.cli.former_flags import replace_former_flags
from leeward.cli.groups import Commands, add
from leeward.cli.help import Group
from leeward.cli.notes import print_error, print_note
from leeward.errors import InputError

SECTIONS = (
    ("See the network", (hotspots, impact, plan, export, top)),
    ("Measure it", (probe, agent, matrix, device)),
    (
        "Place work",
        (
            *(place, reevaluate, migrate, tenant, serve, hdfs, kubernetes, mode, report, decisions, explain),
            token,
        ),
    ),
    ("Keep promises", (slo, enforce, traces, circuits)),
    ("Try a change first", (demo, simulate, operations, cells, trial, lab)),
    ("Files, plug-ins and this shell", (cluster, telemetry, data, schema, policies, completion)),
)
"""Sections of the help, in the order of use, with their commands."""
PLUGINS = "Try a change first"
"""Section of the commands of plug-ins."""

NOTE = """\b
The example files are in the folder of the sources.
Options and examples of a command: leeward COMMAND --help
"""


class Root(Group):
    """The command `leeward`."""

    order = tuple(module.__name__.rpartition(".")[2] for _title, modules in SECTIONS for module in modules)
    start = """\b
See the effect of placement, in a minute:
  leeward demo

Find the hot racks in telemetry (operators):
  leeward hotspots examples/telemetry/fabric.parquet --cluster examples/clusters/fabric.yaml

Compare placement policies on a simulated cluster (policy authors, researchers):
  leeward simulate examples/scenarios/first.yaml

Watch a service place work, in a browser (owners of schedulers and file systems):
  leeward serve --demo

Bound the tail latency of volumes (owners of storage):
  leeward slo bound examples/slo/w.yaml --cluster examples/slo/cluster.yaml
"""


app = Commands(Root, context_settings={"help_option_names": ["-h", "--help"]})
for section, modules in SECTIONS:
    for module in modules:
        add(app, module, section)
plugins.add_commands(app, PLUGINS)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"leeward {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=NOTE)
def leeward(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Place tasks, block replicas and volumes where the network has room."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Runs the command line of this process, then ends the process."""
    # A caller that closed stdout or stderr wants no output there.
    sys.stdout = sys.stdout or TextIOWrapper(FileIO(os.devnull, "w"))
    sys.stderr = sys.stderr or TextIOWrapper(FileIO(os.devnull, "w"))
    try:
        completion.prepare()
        arguments = replace_former_flags(sys.argv[1:])
        code = app(arguments, prog_name="leeward", standalone_mode=False) or 0
        sys.stdout.flush()
    except InputError as error:
        code = _print_error(str(error), *getattr(error, "__notes__", ()), code=2)
    except MissingExtraError as error:
        code = _print_error(f"{error.name} is missing", error.hint, code=1)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        hints = [f"{context.command_path} --help"] if context else []
        code = _print_error(error.format_message(), *hints, code=2)
    except BrokenPipeError:
        # The reader closed the pipe.
        _flush()
        code = 1
    except OSError as error:
        _flush()
        why = error.strerror or str(error)
        code = _print_error(f"{error.filename}: {why}" if error.filename else why, code=1)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _flush() -> None:
    """Flushes stdout; if this fails, output goes to the null device, so that the flush at exit succeeds."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(problem: str, *hints: str, code: int) -> int:
    print_error(" ".join(problem.split()))
    for hint in hints:
        print_note(f"hint: {hint}", doubt=True)
    return code
