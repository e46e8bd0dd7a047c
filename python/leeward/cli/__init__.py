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
from leeward.cli import (
    agent,
    circuits,
    cluster,
    data,
    demo,
    device,
    explain,
    export,
    hotspots,
    impact,
    matrix,
    migrate,
    place,
    plan,
    plugins,
    policies,
    probe,
    schema,
    serve,
    simulate,
    slo,
    token,
    top,
)
from leeward.cli.former_flags import replace_former_flags
from leeward.errors import InputError

EXAMPLES = """\b
Examples, run in the source folder:
  leeward demo
  leeward simulate examples/scenarios/first.yaml
  leeward simulate examples/scenarios/first.yaml --policy uniform,sinbad --seeds 10 --out sweep
  leeward place replicas --cluster examples/clusters/reference.yaml \\
      --telemetry examples/telemetry/loads.csv --writer r3h7 --size 256MiB --explain
  leeward slo curve examples/slo/mail.csv.gz --device examples/slo/ssd.json
  leeward serve --cluster examples/clusters/reference.yaml
  leeward cluster show examples/clusters/reference.yaml
"""

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("agent", epilog=agent.EXAMPLES)(agent.agent)
app.add_typer(circuits.app, name="circuits")
app.add_typer(cluster.app, name="cluster")
app.add_typer(data.app, name="data")
app.command("demo", epilog=demo.EXAMPLES)(demo.demo)
app.add_typer(device.app, name="device")
app.command("explain", epilog=explain.EXAMPLES)(explain.explain)
app.add_typer(export.app, name="export")
app.command("hotspots", epilog=hotspots.EXAMPLES, short_help="Find hot links and their causes.")(
    hotspots.hotspots
)
app.command("impact", epilog=impact.EXAMPLES)(impact.impact)
app.add_typer(matrix.app, name="matrix")
app.command("migrate", epilog=migrate.EXAMPLES)(migrate.migrate)
app.add_typer(place.app, name="place")
app.command("plan", epilog=plan.EXAMPLES)(plan.plan)
app.command("policies", epilog=policies.EXAMPLES)(policies.policies)
app.add_typer(probe.app, name="probe")
plugins.add_commands(app)
app.command("schema", epilog=schema.EXAMPLES)(schema.schema)
app.command("serve", epilog=serve.EXAMPLES)(serve.serve)
app.command("simulate", epilog=simulate.EXAMPLES)(simulate.simulate)
app.add_typer(slo.app, name="slo")
app.add_typer(token.app, name="token")
app.command("top", epilog=top.EXAMPLES)(top.top)


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
    """Place block replicas and tasks by the load of the network.

    Simulate policies on a cluster of thousands of hosts, ask for one decision, or serve decisions over HTTP.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Runs the command line of this process, then ends the process."""
    # A caller that closed stdout or stderr wants no output there.
    sys.stdout = sys.stdout or TextIOWrapper(FileIO(os.devnull, "w"))
    sys.stderr = sys.stderr or TextIOWrapper(FileIO(os.devnull, "w"))
    try:
        arguments = replace_former_flags(sys.argv[1:])
        code = app(arguments, prog_name="leeward", standalone_mode=False) or 0
        sys.stdout.flush()
    except InputError as error:
        code = _print_error(str(error), *getattr(error, "__notes__", ()), code=2)
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
    print("error:", " ".join(problem.split()), file=sys.stderr)
    for hint in hints:
        print("hint:", hint, file=sys.stderr)
    return code
