"""`leeward serve`: the controller, as a service over HTTP."""

import signal
import sys
from typing import Annotated, Any

import typer

from leeward import _native
from leeward.cli import serve_demo
from leeward.cli.common import runs_until_stopped
from leeward.cli.notes import print_note
from leeward.cli.options import parse_seed
from leeward.errors import InputError

EXAMPLES = """\b
Examples:
  leeward serve --demo
  leeward serve --cluster c.yaml
  leeward serve --cluster c.yaml --policy sinbad:remote_racks=2 --moves utp --durable power
  leeward serve --config leeward.yaml --listen 0.0.0.0:7600 --tokens tokens
  leeward serve --cluster c.yaml --prometheus http://prom:9090 --map snmp.yaml --interval 15s
  leeward serve --cluster c.yaml --mode shadow --off-file /run/leeward/off
  leeward serve --config leeward.yaml --check-config
  curl localhost:7600/v1/status

The service runs until it is interrupted (Ctrl-C) or terminated, and then finishes requests in progress. On
SIGHUP it reloads policies, modes, estimates of loads, tokens, certificate, rate limits, Prometheus settings
and log level.
"""


def option(metavar: str, text: str, default: str | bool = False) -> Any:
    """An option whose default is the value in the settings file or, without one, the shown text."""
    return typer.Option(metavar=metavar, help=text, show_default=default)


@runs_until_stopped
def serve(
    config: Annotated[str | None, option("FILE", "Settings file, YAML or TOML; options override it.")] = None,
    cluster: Annotated[str | None, option("FILE", "Cluster file.")] = None,
    listen: Annotated[
        str | None, option("HOST:PORT", "Address to listen on; port 0 selects a free port.", "127.0.0.1:7600")
    ] = None,
    admin_listen: Annotated[
        str | None,
        option(
            "HOST:PORT",
            "Address for health, metrics, status and administration, with connections of their own.",
            "none",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        option(
            "POLICY", "Policy for copies of blocks; settings follow colons: sinbad:remote_racks=2.", "sinbad"
        ),
    ] = None,
    task_policy: Annotated[
        str | None, option("POLICY", "Policy for tasks; settings follow colons: leeward:effort=1.", "leeward")
    ] = None,
    moves: Annotated[
        str | None, option("POLICY", "Policy for moves of tasks from hot racks.", "none")
    ] = None,
    mode: Annotated[
        str | None,
        option(
            "MODE",
            "Mode of all kinds of decisions: off, shadow, on, or a canary such as canary:10%.",
            "on",
        ),
    ] = None,
    off_file: Annotated[str | None, option("FILE", "File whose existence turns every mode off.")] = None,
    interval: Annotated[str | None, option("DURATION", "Time between reports of a link.", "1s")] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", parser=parse_seed, help="Seed of tie-breaking, from 0.", show_default="1"),
    ] = None,
    store: Annotated[
        str | None,
        option(
            "FILE",
            "Store of decisions: a file, `memory` or the address of a PostgreSQL server.",
            "a file named after the cluster",
        ),
    ] = None,
    durable: Annotated[
        str | None, option("process|power", "Failure that stored decisions survive.", "process")
    ] = None,
    tokens: Annotated[
        str | None, option("FILE", "Token file; requests without one of its tokens are rejected.")
    ] = None,
    prometheus: Annotated[
        str | None,
        option(
            "URL", "Address of a Prometheus server, queried for telemetry while this service is the leader."
        ),
    ] = None,
    map_file: Annotated[
        str | None,
        typer.Option(
            "--map",
            metavar="FILE",
            help="With --prometheus: file that maps ports to links.",
            show_default=False,
        ),
    ] = None,
    http: Annotated[
        str | None,
        option(
            "FILE",
            "With --prometheus: its HTTP settings, in promtool's --http.config.file format.",
        ),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Serve a simulated cluster, next to the same cluster without Leeward."),
    ] = False,
    speed: Annotated[
        float | None, option("N", "With --demo: simulated seconds in one second of real time.", "30")
    ] = None,
    check_config: Annotated[
        bool, typer.Option("--check-config", help="Check all settings and files, and exit.")
    ] = False,
) -> None:
    """Collect telemetry and place replicas and tasks over HTTP."""
    options: dict[str, str | int | None] = {
        "config": config,
        "cluster": cluster,
        "listen": listen,
        "admin_listen": admin_listen,
        "policy": policy,
        "task_policy": task_policy,
        "moves": moves,
        "mode": mode,
        "off_file": off_file,
        "interval": interval,
        "seed": seed,
        "store": store,
        "durable": durable,
        "tokens": tokens,
        "prometheus": prometheus,
        "map": map_file,
        "http": http,
    }
    if speed is not None and not demo:
        raise InputError.about("--speed", "only valid with --demo")
    if demo and check_config:
        raise InputError.about("--check-config", "not valid with --demo, which has no settings to check")
    if demo:
        serve_demo.serve(options, serve_demo.SPEED if speed is None else speed)
        return
    if check_config:
        _native.check_service(options)
        print_note("the settings are right")
        return

    def on_listen(url: str, location: str | None) -> None:
        print(f"listening on {url}", file=sys.stderr, flush=True)
        print(f"decisions are kept in {location or 'memory'}", file=sys.stderr, flush=True)

    # The service handles the signal and stops. Python's own handler would raise an exception in it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _native.serve(options, on_listen)
