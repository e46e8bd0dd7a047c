"""`leeward tenant run`: measures hosts, places an app on them, runs it, and compares with the forecast."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from leeward._quantities import bytes_text, percent_text, rate_text, read_rate, time_text
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.notes import print_note
from leeward.cli.options import choice_option, name_flags, parse_path, parse_seed, split_list, whole_number
from leeward.cli.output import Format, FormatOption, print_data, print_table, print_text
from leeward.cli.probe.options import Shape, secret_of
from leeward.errors import InputError
from leeward.probe import MOST_PORT
from leeward.tenant.fleet import PORT
from leeward.tenant.network import NIC

EXAMPLES = """\b
Examples:
  leeward tenant run examples/apps/wordcount.yaml --hosts vm0=10.0.0.2,vm1=10.0.0.3,vm2=10.0.0.4 --host-cpus 8
  leeward tenant run examples/apps/wordcount.yaml --hosts-file hosts.yaml --policy choreo,random,round-robin
  leeward tenant run examples/apps/wordcount.yaml --hosts-file hosts.yaml --bottlenecks --out measured.yaml
  leeward tenant run examples/apps/wordcount.yaml --hosts-file hosts.yaml --cluster measured.yaml -o json
  leeward tenant run examples/apps/wordcount.yaml --hosts-file hosts.yaml --again 60s --state 2GiB
  leeward tenant run examples/apps/wordcount.yaml --lab mylab --host-cpus 4

Leeward sends the transfers of the app over TCP. If its tasks have a `command`, Leeward starts these instead,
with LEEWARD_TASK, LEEWARD_ADDRESS and LEEWARD_PEERS (NAME=ADDRESS,...) in the environment; the run ends when
all have ended. The firewall must allow ports 7601 (TCP and UDP) and 7602 (TCP) between the hosts. With
several policies, the app runs under each, one after another.
"""


class Measure(StrEnum):
    """When to measure the network."""

    worthwhile = "worthwhile"
    always = "always"
    never = "never"


def run(
    app: Annotated[str, typer.Argument(metavar="APP", help="App file.", show_default=False)],
    hosts: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=ADDRESS,...",
            help="Addresses; NAME=ADDRESS names a host.",
            show_default=False,
        ),
    ] = None,
    hosts_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Hosts file, with addresses, commands and processors.", show_default=False
        ),
    ] = None,
    lab: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Lab on this machine whose hosts to use.", show_default=False),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="TEXT",
            help="Words before a command that start it on a host of --hosts, with {name} and {address}; by"
            " default ssh without a password, which ends if the host is unreachable.",
            show_default=False,
        ),
    ] = None,
    cpus: Annotated[
        str | None,
        typer.Option("--host-cpus", metavar="N", help="Processors of each host; by default without limit."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--host-memory", metavar="SIZE", help="Memory of each host; by default without limit."),
    ] = None,
    policy: Annotated[
        str, typer.Option(metavar="POLICY,...", help="Policies for tasks; settings follow colons.")
    ] = "leeward",
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Cluster file with the measured rates of the hosts, instead of a measurement.",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="capture|sflow:PORT",
            help="Run the commands of the app once before, and place them by what they send: in captures of"
            " the hosts, which need root there and tcpdump; or by sFlow datagrams to this port.",
            show_default=False,
        ),
    ] = None,
    profile_for: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="DURATION",
            help="Longest time of the run of --profile. [default: 60s]",
            show_default=False,
        ),
    ] = None,
    measure: Annotated[
        Measure,
        choice_option(
            Measure,
            description="When to measure the network: if the app may gain more time than that takes, always,"
            " or never.",
        ),
    ] = Measure.worthwhile,
    assume: Annotated[
        str, typer.Option(metavar="RATE", help="Rate of a host before the network is measured.")
    ] = NIC,
    bottlenecks: Annotated[
        bool,
        typer.Option(
            "--bottlenecks",
            help="Search for shared bottlenecks too, so that placement counts links that several hosts"
            " share.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="Cluster file to write if the network is measured, for --cluster of later runs.",
            show_default=False,
        ),
    ] = None,
    shape: Annotated[
        Shape,
        choice_option(
            Shape,
            description="Shape of the measured network without --bottlenecks: each host has a limit for all"
            " its paths (hose), or none (pipe).",
        ),
    ] = Shape.hose,
    again: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Look at the placement again at this interval, measure if that may pay, and move tasks.",
            show_default=False,
        ),
    ] = None,
    state: Annotated[
        str, typer.Option(metavar="SIZE", help="State that a task takes along when it moves.")
    ] = "0B",
    port: Annotated[
        int,
        typer.Option(
            "--data-port",
            metavar="N",
            parser=whole_number(0, MOST_PORT),
            help="TCP port for data on each host; 0 selects a free port.",
        ),
    ] = PORT,
    secret: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=parse_path,
            help="File with the secret of listeners that already run on the hosts; by default Leeward starts"
            " listeners.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", parser=parse_seed, help="Seed of tie-breaking, from 0.")
    ] = 1,
    output: FormatOption = Format.table,
) -> None:
    """Measure hosts, place an app on them, and run it.

    Compares the time that the app took with the forecast.
    """
    from leeward import tenant
    from leeward._files import check_file

    if out is not None:
        check_file(out, "--out")
    flags = {
        "hosts": "--hosts",
        "lab": "--lab",
        "policies": "--policy",
        "policy": "--policy",
        "nic": "--assume",
        "again": "--again",
        "measure": "--measure",
        "profile": "--profile",
        "profile_for": "--for",
        "bottlenecks": "--bottlenecks",
        "out": "--out",
    }
    flags |= {"state": "--state", "cluster": "--cluster", "app": app, "cpus": "--host-cpus"}
    with name_flags(**flags):
        chosen = _hosts(hosts, hosts_file, lab, start, cpus, memory)
        result = tenant.run(
            app,
            chosen,
            policies=split_list(policy) or [],
            cluster=cluster,
            profile=profile,
            profile_for=profile_for,
            measure=measure.value,
            nic=assume,
            shape=shape.value,
            bottlenecks=bottlenecks,
            out=out,
            again=again,
            state=state,
            secret=secret_of(secret),
            port=port,
            seed=seed,
            on_step=lambda text: print_note(f"{text} ..."),
            on_output=lambda task, line: print_note(f"{task}: {line}"),
        )
    if not print_data(output, result, "runs", COLUMNS["tenant run"]):
        _print(result)
    if out is not None:
        measured = result["network"]["measured"]
        print_note(f"wrote {out}" if measured else f"did not write {out}: nothing was measured")


def _hosts(
    hosts: str | None,
    file: str | None,
    lab: str | None,
    start: str | None,
    cpus: str | None,
    memory: str | None,
) -> list[Any]:
    """Hosts from exactly one of three options."""
    from leeward import tenant
    from leeward.tenant.hosts import RUN

    if sum(one is not None for one in (hosts, file, lab)) != 1:
        raise InputError.about("--hosts, --hosts-file, --lab", "expected exactly one of them")
    if start is not None and hosts is None:
        raise InputError.about("--run", "only valid with --hosts; a hosts file has the field `run`")
    if hosts is not None:
        listed = [part for part in split_list(hosts) or [] if part]
        return tenant.listed(listed, RUN if start is None else start, cpus=cpus, memory=memory)
    if lab is not None:
        return tenant.lab_hosts(lab, cpus, memory)
    for flag, value in (("--host-cpus", cpus), ("--host-memory", memory)):
        if value is not None:
            raise InputError.about(flag, "only valid with --hosts or --lab; a hosts file has its own field")
    assert file is not None
    return tenant.read_hosts(file)


def _print(result: dict[str, Any]) -> None:
    network, runs = result["network"], result["runs"]
    if network["measured"]:
        kind = f", a {network['kind']}" if network["kind"] in ("hose", "pipe") else ""
        sent = bytes_text(network["bytes"])
        print_text(f"measured the network in {time_text(network['seconds'])}, with {sent}{kind}\n")
    else:
        print_text(f"did not measure the network: {network['why']}\n")
    if network["shared_links"]:
        links = [
            (link["name"], rate_text(read_rate("rate", link["rate"])), ", ".join(link["out_of"]))
            for link in network["shared_links"]
        ]
        print_table(("SHARED LINK", "RATE", "OUT OF"), "<><", links)
        print_text()
    for one in runs:
        if len(runs) > 1:
            print_text(f"{one['policy']}:")
        _print_run(one)
        print_text()
    first = runs[0]
    has_costs = any(one["cost"] is not None for one in runs)
    rows = []
    for one in runs:
        saved = (one["wall_s"] - first["wall_s"]) / one["wall_s"] if one["wall_s"] else 0.0
        error = one["wall_s"] / one["forecast_s"] - 1 if one["forecast_s"] else None
        rows.append(
            (
                one["policy"],
                time_text(one["forecast_s"]),
                time_text(one["wall_s"]),
                percent_text(error, 0),
                *(("" if one["cost"] is None else f"{one['cost']:.6g}",) if has_costs else ()),
                "" if one is first else percent_text(saved, 0),
            )
        )
    costs = ("COST PER HOUR",) if has_costs else ()
    header = ("POLICY", "FORECAST", "TOOK", "OFF BY", *costs, f"SAVED BY {first['policy'].upper()}")
    print_table(header, "<>>>>" + ">" * has_costs, rows)


def _print_run(one: dict[str, Any]) -> None:
    if not one["transfers"]:
        print_table(("TASK", "HOST"), "<<", [(task["task"], task["host"]) for task in one["tasks"]])
        return
    has_phases = any(transfer["phase"] for transfer in one["transfers"])
    print_table(
        (*(("PHASE",) if has_phases else ()), "FROM", "TO", "BYTES", "RATE", "FORECAST", "ENDED AFTER"),
        ">" * has_phases + "<<>>>>",
        [
            (
                *((str(transfer["phase"]),) if has_phases else ()),
                f"{transfer['from']} ({transfer['from_host']})",
                f"{transfer['to']} ({transfer['to_host']})",
                bytes_text(transfer["bytes"], None),
                rate_text(transfer["rate_bps"]),
                time_text(transfer["forecast_s"]),
                time_text(transfer["ended_s"]),
            )
            for transfer in one["transfers"]
        ],
    )
    if not one["looks"]:
        return
    print_text()
    print_table(
        ("LOOK AFTER", "REST WOULD TAKE", "FORECAST", "MEASURED IN", "DECISION"),
        ">>>><",
        [
            (
                time_text(look["t_s"]),
                time_text(look["observed_s"]),
                time_text(look["forecast_s"]),
                time_text(look.get("seconds")),
                look.get("because", look["reason"]),
            )
            for look in one["looks"]
        ],
    )
    for look in one["looks"]:
        if look.get("moves"):
            names = ", ".join(f"{move['task']} from {move['from']} to {move['to']}" for move in look["moves"])
            forecast, seen = time_text(look["gain_s"]), time_text(look["seen_s"])
            print_text(f"moved {names}: forecast to save {forecast}, saved {seen}")
