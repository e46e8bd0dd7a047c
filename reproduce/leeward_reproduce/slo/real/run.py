"""A scenario on a bed: enforcers at servers and clients, a replay of each workload at its client, and checks.

A run counts only if the clients were in time, the processors were not full, and the server carried out all
requests. Otherwise a slow machine could pass as a slow server, or as a broken promise.
"""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from leeward_reproduce.hdfs.processes import Process, ProcessError
from leeward_reproduce.hdfs.processors import Processors
from leeward_reproduce.hdfs.usage import RejectedRunError
from leeward_reproduce.slo.real import layout
from leeward_reproduce.slo.real.bed import LEEWARD, Bed
from leeward_reproduce.slo.real.cases import Member, Policy
from leeward_reproduce.slo.real.measures import Measures, read_rows
from leeward_reproduce.slo.real.scenario import Scenario
from leeward_reproduce.slo.real.traffic import FILE_BYTES

Advance = Callable[[float], object]
"""Function that is called with the completed share."""
VOLUME, FILE = "vol", "requests"
"""Volume of each server, and the file in it that the requests go to."""
WAIT_S = 4.0
"""Time to wait for answers after the last request. A workload that misbehaves has requests left then."""
LEAD_S, LEAD_OF_CLIENT_S = 1.5, 0.5
"""Time from the start of the replays to their first requests: programs of Python start within it."""
LATE_S = 0.01
"""Largest lateness of a client at percentile 99.9 with which a run counts. SLOs are tens of it."""
BUSY = 0.9
"""Largest share of the processors' time in use with which a run counts."""
_POLL_S = 0.5


def run(
    bed: Bed, scenario: Scenario, policy: Policy, tails: dict[str, float], advance: Advance = lambda _: None
) -> Measures:
    """Runs a scenario under a policy.

    Args:
        bed: Bed of the shape of the case.
        scenario: The scenario.
        policy: The policy.
        tails: Largest latency of single requests to each server of this bed, in seconds.
        advance: Called with the completed share.

    Raises:
        RejectedRunError: The run does not count.
        OSError: A process failed.
    """
    name = f"{scenario.case.name}-{scenario.seed}-{policy.name}"
    folder = bed.folder / "runs" / name
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        _enforce(bed, scenario, policy, stack)
        servers = {one.server for one in scenario.members}
        before = sum(map(bed.read_bytes, servers))
        processors = Processors()
        start = time.time() + LEAD_S + LEAD_OF_CLIENT_S * len(scenario.members)
        replays = {
            one.name: _replay(bed, scenario, policy, one, start, folder, stack) for one in scenario.members
        }
        seconds = scenario.case.seconds
        _wait(bed, replays, start, seconds + WAIT_S, advance)
        busy = processors.busy()
        read = sum(map(bed.read_bytes, servers)) - before
    summaries = {one: _summary(replays[one], folder / f"{one}.json") for one in replays}
    check(name, summaries, busy)
    slos = scenario.slos
    workloads = {one: read_rows(folder / f"{one}.csv", slos.get(one), seconds + WAIT_S) for one in summaries}
    late = max((one["lateness"]["p999_s"] for one in summaries.values()), default=0.0)
    asked = sum(int(one["bytes"]) for one in workloads.values())
    return Measures(workloads, dict(tails), late, busy, read / asked if asked else None)


def _enforce(bed: Bed, scenario: Scenario, policy: Policy, stack: ExitStack) -> None:
    """Starts the enforcers of a policy, and waits for them."""
    workloads = ("--workloads", scenario.file(policy), "--addresses", bed.addresses_file)
    servers = sorted({one.server for one in scenario.members})
    if policy.storage:
        for server in servers:
            options = (*workloads, "--cluster", scenario.cluster, "--host", server, "--order", policy.order)
            process = bed.enforce_nfs(server, *options, wait=False)
            stack.callback(bed.end, process.name)
    if policy.network:
        senders = [*servers, *sorted({one.client for one in scenario.members if _writes(one)})]
        for host in senders:
            process = bed.enforce_net(host, *workloads, wait=False)
            stack.callback(bed.end_net, host)
            _wait_for(process, "enforce", "eth0: enforces")
    if policy.storage:
        for server in servers:
            _wait_for(bed.process(f"enforce nfs {server}"), "listen", "listening on")


def _writes(member: Member) -> bool:
    """True if a workload has writes, whose bytes leave its client."""
    return not bool(member.requests.is_read.all())


def _wait_for(process: Process, what: str, line: str) -> None:
    process.wait_until(what, 60.0, lambda: line in process.log.read_text(errors="replace"))


def _replay(
    bed: Bed,
    scenario: Scenario,
    policy: Policy,
    member: Member,
    start: float,
    folder: Path,
    stack: ExitStack,
) -> Process:
    """Starts the replay of a workload at its client."""
    port = bed.shape.proxy_port(VOLUME) if policy.storage else layout.NFS_PORT
    mount = port if policy.storage else layout.MOUNT_PORT
    options = ["--at", f"{start:.3f}", "--for", f"{scenario.case.seconds:g}s", "--wait", f"{WAIT_S:g}s"]
    options += ["--closed", str(member.open)] if member.open else ["--from", "0s"]
    return replay(
        bed,
        member.name,
        member.client,
        member.server,
        scenario.trace(member),
        (port, mount),
        folder,
        stack,
        options,
    )


def replay(
    bed: Bed,
    name: str,
    client: str,
    server: str,
    trace: Path,
    ports: tuple[int, int],
    folder: Path,
    stack: ExitStack,
    options: Sequence[str] = (),
) -> Process:
    """Starts `leeward traces replay`, whose rows are `NAME.csv` and whose summary is `NAME.json` in a folder.

    Args:
        bed: The bed.
        name: Name of the workload.
        client: Host of the replay.
        server: Host of the file.
        trace: The trace.
        ports: Ports of NFS and of MOUNT at the server.
        folder: Folder of the results.
        stack: Ends the process.
        options: Further options.
    """
    command: list[str | Path] = [LEEWARD, "traces", "replay", trace]
    command += ["--nfs", f"{bed.address(server)}:{bed.shape.export(VOLUME)}"]
    command += ["--nfsport", str(ports[0]), "--mountport", str(ports[1])]
    command += ["--file", FILE, "--file-size", f"{FILE_BYTES}B", "--out", folder / f"{name}.csv"]
    command += ["-o", "json", "-q", *options]
    out = stack.enter_context((folder / f"{name}.json").open("w", encoding="utf-8"))
    process = bed.start(f"replay {name}", client, command, stdout=out)
    stack.callback(bed.forget, process.name)
    return process


def _wait(bed: Bed, replays: dict[str, Process], start: float, seconds: float, advance: Advance) -> None:
    """Waits for the ends of replays."""
    deadline = start + seconds + 20.0
    open_ones = list(replays.values())
    while open_ones:
        advance(min(max((time.time() - start) / seconds, 0.0), 1.0))
        try:
            open_ones[0].process.wait(_POLL_S)
            open_ones.pop(0)
        except TimeoutExpired:
            if time.time() > deadline:
                raise open_ones[0].error("did not end in time") from None
        # Enforcers and servers have to live as long as their clients.
        bed.check(but=[one.name for one in replays.values()])


def _summary(process: Process, file: Path) -> dict[str, Any]:
    """Summary of a replay, which fails if some of its requests were not answered.

    Raises:
        RejectedRunError: The client was not ready for the start.
        ProcessError: It failed for another reason.
    """
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        error: ProcessError = process.error(f"ended with status {process.process.returncode}")
        if "--at" in str(error):
            raise RejectedRunError(f"{process.name} was not ready in time: {error}") from None
        raise error from None
    return content


def check(run_name: str, summaries: dict[str, dict[str, Any]], busy: float) -> None:
    """Checks that a run counts.

    Args:
        run_name: Name of the run.
        summaries: Summaries of the replays by the names of their workloads.
        busy: Share of the processors' time in use.

    Raises:
        RejectedRunError: The clients were late, or the processors were full.
        OSError: The server rejected requests, or another program changed the file.
    """
    for name, one in summaries.items():
        if one["failed"] or one["short"]:
            problem = one["problem"] or f"{one['short']} short reads"
            raise OSError(f"{run_name}: {name}: {one['failed']} requests failed: {problem}")
        if one["lateness"]["p999_s"] is None:
            raise OSError(f"{run_name}: {name} sent no requests")
        if one["lateness"]["p999_s"] > LATE_S:
            late = 1e3 * one["lateness"]["p999_s"]
            raise RejectedRunError(
                f"{run_name}: {name} sent requests {late:.1f} ms late at percentile 99.9, at most"
                f" {1e3 * LATE_S:g} ms are expected; the run does not count. Start the command again on a"
                " machine with less load"
            )
    if busy > BUSY:
        raise RejectedRunError(
            f"{run_name}: processors {busy:.0%} busy, at most {BUSY:.0%} are expected; the run does not count"
        )
