"""`make slo-demo`: a noisy neighbour on a real disk, without and then with enforcement of a promise.

A mail server reads in bursts from a file server, and a controller promises it a latency. A backup reads from
the same disk as fast as it can. In the first phase nothing enforces the promise: the requests of both reach
the disk in order of arrival. In the second one, agents run enforcers at all hosts. The dashboard shows the
promise, where it is enforced, and the latency that the requests have.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from leeward._quantities import bytes_text, counted, time_text
from leeward.cli.output import print_table
from leeward.errors import InputError
from leeward.traces import workload_fields
from leeward_reproduce.hdfs.processes import Process
from leeward_reproduce.slo.real import layout, parts
from leeward_reproduce.slo.real.bed import Bed, keep_logs, up, write_file
from leeward_reproduce.slo.real.layout import Shape
from leeward_reproduce.slo.real.load import Load

MAIL, BACKUP = "mail", "backup"
"""Workloads. The mail server has a promise, and the backup has none."""
SERVER, CLIENT, NEIGHBOUR = "s0", "c0", "c1"
SHAPE = Shape(clients=2, servers=1, disk="20MB/s")
"""The links carry 25 MB/s, so the disk is the bottleneck."""
PERCENTILE, LATENCY_S = 99.9, 0.15
"""The promise."""
MAIL_READ, MAIL_BURST, MAIL_BURSTS_PER_S = 65_536, 4, 8.0
"""The mail server reads 4 x 64 KiB at once, 8 times a second on average: 2 MB/s."""
BACKUP_READ, BACKUP_OUTSTANDING = 262_144, 16
"""The backup has 16 reads of 256 KiB open: 4 MiB, which the disk needs 0.2 s for."""
MAIL_FILE, BACKUP_FILE = 64 << 20, 128 << 20
"""Sizes of the files."""
TRACE_S = 120.0
"""Length of the trace that the promise is decided from."""
WARMUP_S = 5.0
"""Time of a phase that does not count."""
_STEP_S = 5.0
"""Time between two lines, and between two reports."""
LONGEST_S = 3600.0


@dataclass
class Phase:
    """Requests of a phase."""

    name: str
    latencies: list[float] = field(default_factory=list)
    backup_bytes: int = 0
    seconds: float = 0.0

    def quantile(self, share: float) -> float:
        """Least latency that a share of the requests does not exceed, in seconds."""
        ordered = sorted(self.latencies)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    @property
    def late(self) -> int:
        """Requests above the latency of the promise."""
        return sum(latency > LATENCY_S for latency in self.latencies)

    @property
    def backup_rate(self) -> float:
        """Bytes of the backup in a second."""
        return self.backup_bytes / self.seconds if self.seconds else 0.0


class Lines:
    """Lines of a load's log as they come."""

    def __init__(self, process: Process) -> None:
        """Takes a load that runs."""
        self.process = process
        self._at = 0

    def take(self) -> list[dict[str, Any]]:
        """Complete lines since the last call."""
        text = self.process.log.read_text(encoding="utf-8")
        end = text.rfind("\n") + 1
        lines, self._at = text[self._at : end].splitlines(), max(end, self._at)
        return [json.loads(line) for line in lines if line.startswith("{")]


def mail_load(host: str, ports: tuple[int, int], seconds: float, seed: int) -> Load:
    """Load of the mail server."""
    return Load(
        host,
        *ports,
        export=SHAPE.export("vol"),
        name="mail",
        file_bytes=MAIL_FILE,
        size=MAIL_READ,
        seconds=seconds,
        bursts_per_s=MAIL_BURSTS_PER_S,
        burst=MAIL_BURST,
        seed=seed,
    )


def backup_load(host: str, ports: tuple[int, int], seconds: float) -> Load:
    """Load of the backup."""
    return Load(
        host,
        *ports,
        export=SHAPE.export("vol"),
        name="backup",
        file_bytes=BACKUP_FILE,
        size=BACKUP_READ,
        seconds=seconds,
        outstanding=BACKUP_OUTSTANDING,
    )


def trace_text(load: Load) -> str:
    """Requests of a load as a trace."""
    rows = [f"{at:.9f},read,{load.size},0\n" for at in load.arrivals() for _ in range(load.burst)]
    return "".join(["seconds,kind,size,offset\n", *rows])


def table(phases: Sequence[Phase]) -> list[tuple[str, ...]]:
    """Rows of the comparison: a name, and the value of each phase."""

    def row(name: str, value: Callable[[Phase], str]) -> tuple[str, ...]:
        return name, *map(value, phases)

    return [
        row("mail: requests", lambda one: f"{len(one.latencies):,}"),
        row("mail: p50", lambda one: time_text(one.quantile(0.5))),
        row("mail: p99", lambda one: time_text(one.quantile(0.99))),
        row("mail: p99.9", lambda one: time_text(one.quantile(0.999))),
        row(f"mail: later than {LATENCY_S * 1e3:g} ms", lambda one: f"{one.late / len(one.latencies):.2%}"),
        row("backup", lambda one: f"{bytes_text(round(one.backup_rate))}/s"),
    ]


def summary(phases: Sequence[Phase]) -> str:
    """The comparison in a sentence."""
    before, after = (phase.quantile(PERCENTILE / 100) for phase in phases)
    kept = ["broken" if value > LATENCY_S else "kept" for value in (before, after)]
    return (
        f"The promise is {PERCENTILE:g} % within {time_text(LATENCY_S)}. Beside the backup, it is {kept[0]}"
        f" without enforcement ({time_text(before)}) and {kept[1]} with it ({time_text(after)})."
    )


class Demo:
    """The demo on a bed."""

    def __init__(self, bed: Bed, seconds: float, seed: int, note: Callable[[str], object]) -> None:
        """Takes a bed with servers.

        Args:
            bed: The bed.
            seconds: Length of each phase.
            seed: Seed of the loads.
            note: Prints a line.
        """
        self.bed = bed
        self.seconds = seconds
        self.seed = seed
        self.note = note
        self.server = bed.address(SERVER)
        self.device_file = bed.folder / "disk.json"

    def prepare(self) -> None:
        """Writes the files, and starts the controller."""
        size = bytes_text(MAIL_FILE + BACKUP_FILE, None)
        self.note(f"writing {size} to the disk, which carries {SHAPE.disk}")
        folder = self.bed.disk(SERVER) / "vol"
        write_file(folder / "mail", MAIL_FILE)
        write_file(folder / "backup", BACKUP_FILE)
        self.device_file.write_text(json.dumps(SHAPE.device()), encoding="utf-8")
        self.note("starting the controller")
        self.bed.start_controller()
        self.note(f"dashboard: {self.bed.controller_url} with the token {self.bed.token}")

    def promise(self) -> None:
        """Lets the controller decide on the promise."""
        trace = self.bed.folder / "mail.csv"
        load = mail_load(self.server, (0, 0), TRACE_S, self.seed + 100)
        trace.write_text(trace_text(load), encoding="utf-8")
        fields, _source = workload_fields(trace, device=self.device_file)
        workload = {
            "name": MAIL,
            "client": CLIENT,
            "server": f"{SERVER}:{layout.DISK}",
            "slo": {"percentile": PERCENTILE, "latency": f"{LATENCY_S * 1e3:g}ms"},
            "unloaded": "10ms",
            **{name: value for name, value in fields.items() if value is not None},
        }
        decision = self.bed.client("place").promise(workload)
        bound = (decision.get("promise") or {}).get("bound_s")
        text = "without a bound" if bound is None else f"with a bound of {time_text(bound)}"
        self.note(f"promised: {PERCENTILE:g} % of {MAIL} within {time_text(LATENCY_S)}, {text}")

    def enforce(self) -> None:
        """Starts agents that run enforcers, and waits until the promise is enforced."""
        self.note("starting agents with enforcers")
        device = f"--device {self.device_file}"
        exports = f"--export {self.server}:{SHAPE.export('vol')} --mountport {layout.MOUNT_PORT} --allow all"
        net = f"net --rate {SHAPE.link} --interval 1s"
        self.bed.start_agent(CLIENT, net)
        self.bed.start_agent(NEIGHBOUR, net)
        self.bed.start_agent(SERVER, net, f"nfs {exports} {device} --host {SERVER}:{layout.DISK}")
        controller = self.bed.process("controller")
        controller.wait_until("see the promise enforced", 60.0, self._is_enforced)
        self.note("the promise is enforced at its three places")

    def _is_enforced(self) -> bool:
        self.bed.check()
        enforcement = self.bed.client().workload(MAIL)["enforcement"]
        return enforcement is not None and enforcement["state"] in ("enforced", "seen")

    def phase(self, name: str, ports: tuple[int, int]) -> Phase:
        """Runs both loads against the ports of NFS and MOUNT of the server or of its enforcer."""
        self.note(f"{name}: {counted(round(self.seconds), 'second')} of both loads")
        whole = self.seconds + WARMUP_S
        backup = self._load(BACKUP, NEIGHBOUR, backup_load(self.server, ports, whole), name)
        mail = self._load(MAIL, CLIENT, mail_load(self.server, ports, whole, self.seed), name)
        begin, phase = time.monotonic(), Phase(name)
        shown = Phase(name)
        last = begin
        while mail.process.process.poll() is None or backup.process.process.poll() is None:
            time.sleep(0.5)
            now = time.monotonic()
            rows, others = mail.take(), backup.take()
            latencies = [latency for row in rows for latency in row["latencies"]]
            count = sum(row["bytes"] for row in others)
            if now - begin > WARMUP_S:
                phase.latencies += latencies
                phase.backup_bytes += count
            shown.latencies += latencies
            shown.backup_bytes += count
            if now - last >= _STEP_S:
                shown.seconds = now - last
                self._show(shown)
                shown, last = Phase(name), now
        for load in (mail, backup):
            load.process.finish(10.0)
        phase.seconds = self.seconds
        phase.latencies += [latency for row in mail.take() for latency in row["latencies"]]
        return phase

    def _load(self, workload: str, host: str, load: Load, phase: str) -> Lines:
        command = (sys.executable, "-m", "leeward_reproduce.slo.real.load", json.dumps(asdict(load)))
        return Lines(self.bed.start(f"{workload} {phase}", host, command))

    def _show(self, shown: Phase) -> None:
        """Prints a line, and reports the latency that the mail server had."""
        if not shown.latencies:
            return
        seen = shown.quantile(PERCENTILE / 100)
        enforcement = self.bed.client().workload(MAIL)["enforcement"]
        state = enforcement["state"] if enforcement else None
        self.note(
            f"{shown.name}: mail p50 {time_text(shown.quantile(0.5))}, p99.9 {time_text(seen)};"
            f" backup {bytes_text(round(shown.backup_rate))}/s; the promise is {state}"
        )
        until = datetime.now(UTC)
        since = until - timedelta(seconds=_STEP_S)
        self.bed.client("report").report(since, until, workloads={MAIL: seen})


def lines(bed: Bed) -> list[str]:
    """Commands for a bed that stays up."""
    token = bed.folder / "tokens" / "read"
    at = f"sudo leeward lab exec --name {bed.network.name} --host"
    return [
        f"dashboard  {bed.controller_url} with the token {bed.token}",
        f"status     sudo leeward slo status --controller {bed.controller_url} --token-file {token}",
        f"classes    {at} {SERVER} -- tc -s class show dev eth0",
        f"drift      {at} {SERVER} -- tc qdisc del dev eth0 root",
        "end        Ctrl-C",
    ]


def run(
    seconds: float,
    seed: int,
    note: Callable[[str], object],
    *,
    stays: bool = False,
    logs: Path | None = None,
) -> None:
    """Runs the demo, prints the comparison, and removes everything at its end.

    Args:
        seconds: Length of each phase.
        seed: Seed of the loads.
        note: Prints a line.
        stays: True to go on with enforcement after it, until an interrupt.
        logs: Folder that gets the logs of all programs.

    Raises:
        OSError: This machine lacks a part, or a process failed.
    """
    with up(SHAPE, note=note) as bed:
        try:
            demo = Demo(bed, seconds, seed, note)
            demo.prepare()
            demo.promise()
            without = demo.phase("without enforcement", (layout.NFS_PORT, layout.MOUNT_PORT))
            demo.enforce()
            proxy = SHAPE.proxy_port("vol")
            phases = [without, demo.phase("with enforcement", (proxy, proxy))]
            print_table(["", *(phase.name for phase in phases)], "<>>", table(phases))
            print(f"\n{summary(phases)}", flush=True)
            if stays:
                print("\n".join(lines(bed)), flush=True)
            while stays:
                demo.phase("with enforcement", (proxy, proxy))
        finally:
            if logs is not None:
                keep_logs(bed, logs)
            note("removing everything")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demo; returns its exit status."""
    parser = argparse.ArgumentParser(prog="make slo-demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each phase (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the loads (default: 1)")
    parser.add_argument("--stay", action="store_true", help="go on with enforcement afterwards, until Ctrl-C")
    parser.add_argument("--logs", type=Path, help="folder that gets the logs of all programs")
    options = parser.parse_args(arguments)
    if not 10 <= options.seconds <= LONGEST_S:
        parser.error(f"--seconds {options.seconds:g}: expected 10 to {LONGEST_S:g}")
    if options.seed < 0:
        parser.error(f"--seed {options.seed}: expected at least 0")
    lacks = parts.missing()
    if lacks is not None:
        print(f"error: {lacks}", file=sys.stderr)
        return 1
    began = time.monotonic()

    def note(text: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s  {text}", file=sys.stderr, flush=True)

    try:
        run(options.seconds, options.seed, note, stays=options.stay, logs=options.logs)
    except KeyboardInterrupt:
        print("interrupted: everything is removed", file=sys.stderr)
        return 130
    except (OSError, InputError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
