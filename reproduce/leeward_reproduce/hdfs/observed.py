"""A cluster of HDFS that Leeward observes: with a controller, an agent on each host, and helpers.

The NameNode and the controller are at the core. Helpers write files and send background traffic, and counters
read the bytes on the links of racks and hosts.
"""

import json
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leeward import Client, _native, lab
from leeward.client import ProblemError, UnreachableError
from leeward.client.board import read_time
from leeward.client.types import Link
from leeward_reproduce.hdfs import class_path, namenode, settings, workers
from leeward_reproduce.hdfs.cluster import HdfsCluster, check_policy
from leeward_reproduce.hdfs.counters import LinkCounters
from leeward_reproduce.hdfs.machine import MEMORY_FOLDER, Shape, check_memory, device_of, listen, url_of
from leeward_reproduce.hdfs.processes import Process, ended_by_signals
from leeward_reproduce.hdfs.reports import LISTENING
from leeward_reproduce.hdfs.workers import Worker

CORE = "core"
"""Machine of the NameNode, the controller and the sources of background traffic."""
CONTROLLER_PORT = 7600
REPORTS_PORT = 7601
"""Port at which reports are delayed and lost, while they are."""
LEEWARD = str(Path(sys.executable).with_name("leeward"))
"""The `leeward` command of this Python."""
_FRESH_S = 2.0
"""Age of a snapshot with which the policy is ready."""


class ObservedCluster(HdfsCluster):
    """A running cluster; `up` makes one."""

    namenode_machine = CORE

    def __init__(self, controller_port: socket.socket, *arguments: Any) -> None:
        """Takes a port of this machine for the controller, and arguments of `HdfsCluster`."""
        super().__init__(*arguments)
        self.counters = LinkCounters()
        self.controller_url = url_of(controller_port)
        """Address of the controller and its dashboard on this machine."""
        self.sinks: set[str] = set()
        """Hosts with a port for background traffic."""
        self.workers: dict[str, Worker] = {}
        """Helpers by the names of their machines."""
        self._relayed.append((controller_port, CONTROLLER_PORT))
        self._tokens: dict[str, str] = {}
        (self.folder / "tokens").mkdir()

    @property
    def controller(self) -> Process:
        """Process of the controller."""
        return self._processes["controller"]

    @property
    def token(self) -> str:
        """Token of the controller with the role `read`, for the dashboard."""
        return self._tokens["read"]

    def client(self) -> Client:
        """A client of the controller."""
        return Client(self.controller_url, token=self.token, timeout_s=5.0, patience_s=0)

    def use(self, policy: str) -> None:
        """Restarts the NameNode with a policy, and waits until it decides by it.

        Raises:
            InputError: There is no such policy.
            ProcessError: The NameNode is not ready in time.
        """
        super().use(policy)
        if policy not in ("default", "rehdfs"):
            process = self._processes["NameNode"]
            process.wait_until("get a snapshot of the controller", 30.0, self._has_snapshot)

    def start(self, policy: str) -> None:
        """Starts all processes, and waits until all are ready."""
        began = datetime.now(UTC)
        for role in ("read", "report", "place"):
            token, _ = _native.new_token(role, role, [], str(self.folder / "tokens" / "tokens"))
            file = self.folder / "tokens" / role
            file.write_text(token + "\n", encoding="utf-8")
            file.chmod(0o600)
            self._tokens[role] = token
        self._write_hosts()
        self._configure("datanodes", settings.datanode_properties())
        self._note("starting the controller and the agents")
        self._start_relay()
        self._start_controller()
        for host in self.network.hosts:
            self._start_agent(host, CONTROLLER_PORT)
            self._start_datanode(host)
        for machine in (*self.hosts, CORE):
            process = self._start(f"helper {machine}", machine, workers.COMMAND, **workers.pipes())
            self.workers[machine] = Worker(process)
            if machine != CORE:
                self.counters.add("host", machine, process)
        for rack in dict.fromkeys(self.racks.values()):
            self.counters.add("rack", rack, self._start(f"counters {rack}", rack, ("sleep", "infinity")))
        self._note(f"starting the NameNode and {len(self.hosts)} DataNodes")
        self.use(policy)
        self._wait_for_reports(began)
        self.counters.wait()

    def stop(self) -> None:
        """Ends all processes."""
        super().stop()
        for worker in self.workers.values():
            worker.close()

    def _start_controller(self) -> None:
        file = self.folder / "cluster.json"
        file.write_text(json.dumps(self.shape.cluster()), encoding="utf-8")
        tokens = str(self.folder / "tokens" / "tokens")
        address = f"0.0.0.0:{CONTROLLER_PORT}"
        options = ("--cluster", str(file), "--listen", address, "--store", "memory", "--tokens", tokens)
        self._start("controller", CORE, (LEEWARD, "serve", *options))

    @contextmanager
    def reports_impaired(self, delay_s: float, loss: float, seed: int = 1) -> Iterator[None]:
        """Lets the reports of agents arrive late, or not at all, until the end of the block.

        Args:
            delay_s: Time that a report takes, in seconds.
            loss: Share of reports that are lost, from 0 to 1.
            seed: Seed of the lost ones.
        """
        script = str(Path(__file__).with_name("reports.py"))
        values = (REPORTS_PORT, CONTROLLER_PORT, delay_s, loss, seed)
        reports = self._start("reports", CORE, (sys.executable, "-I", script, *map(str, values)))
        reports.wait_until("listen", 10.0, lambda: LISTENING in reports.log.read_text(encoding="utf-8"))
        self._restart_agents(REPORTS_PORT, waits=loss < 1)
        yield
        # After an error the cluster ends, and its agents with it.
        self._restart_agents(CONTROLLER_PORT)
        self._kill("reports")

    def _restart_agents(self, port: int, waits: bool = True) -> None:
        """Restarts all agents, and waits for their reports: without them, links are unknown after seconds."""
        for host in self.network.hosts:
            self._kill(f"agent {host.name}")
        began = datetime.now(UTC)
        for host in self.network.hosts:
            self._start_agent(host, port)
        if waits:
            self._wait_for_reports(began)

    def _start_agent(self, host: lab.Machine, port: int) -> None:
        """Starts the agent of a host, which reports to a port at the core."""
        controller = f"http://{self.core}:{port}"
        token = str(self.folder / "tokens" / "report")
        options = ["--controller", controller, "--host", host.name, "--token-file", token]
        options += ["--interface", "eth0", "--volume", str(self._data(host))]
        device = device_of(host.disks[0]) if host.disks else None
        if device is not None:
            options += ["--disk", f"{device}=disk0"]
        self._start(f"agent {host.name}", host.name, (LEEWARD, "agent", *options))

    def _wait_for_reports(self, since: datetime) -> None:
        """Waits until the controller has a report of each agent about a time after a moment."""

        def have_reported() -> bool:
            self.check()
            try:
                hosts = list(self.client().hosts())
            except (UnreachableError, ProblemError):
                return False
            links = [host[way] for host in hosts for way in ("egress", "ingress")]
            return all(is_newer(link, since) for link in links)

        self.controller.wait_until("receive a new report of each agent", 60.0, have_reported)

    def _has_snapshot(self) -> bool:
        try:
            state = namenode.policy_state(self.namenode_url)
        except OSError:
            return False
        return state is not None and state.snapshot_age_s is not None and state.snapshot_age_s < _FRESH_S

    def _policy_properties(self, policy: str) -> dict[str, str]:
        properties = super()._policy_properties(policy)
        if policy == "default":
            return properties
        controller = f"http://{self.core}:{CONTROLLER_PORT}"
        return properties | settings.controller_properties(controller, self.folder / "tokens" / "place")


@contextmanager
def up(
    shape: Shape | None = None,
    policy: str = "default",
    *,
    properties: Mapping[str, str] | None = None,
    note: Callable[[str], object] = lambda _: None,
) -> Iterator[ObservedCluster]:
    """Brings up a cluster, and removes all of it at the end of the block, also after an error.

    Args:
        shape: Racks, links and blocks.
        policy: First policy of the NameNode, one of `POLICIES`.
        properties: Further properties of the NameNode.
        note: Called with the next step.

    Raises:
        OSError: This machine lacks a part, or a process failed.
        InputError: The policy is unknown.
    """
    check_policy(policy)
    lacks = class_path.missing()
    if lacks is not None:
        raise OSError(lacks)
    shape = shape or Shape()
    if shape.in_memory:
        check_memory()
    note("building the policy with Maven, which downloads Hadoop the first time")
    jars = class_path.class_path()
    with ended_by_signals(), ExitStack() as stack:
        above = MEMORY_FOLDER if shape.in_memory else None
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="leeward-hdfs-", dir=above)))
        note(f"bringing up {shape.racks} racks of {shape.hosts_per_rack} hosts")
        network = stack.enter_context(lab.up(shape.cluster()))
        for remark in network.notes:
            note(remark)
        controller_port = stack.enter_context(listen(CONTROLLER_PORT))
        port = stack.enter_context(listen(0))
        cluster = ObservedCluster(controller_port, shape, network, folder, port, jars, properties or {}, note)
        stack.callback(cluster.stop)
        cluster.start(policy)
        yield cluster


def is_newer(link: Link | None, since: datetime) -> bool:
    """True if the controller knows the load of a link at a time after a moment."""
    until = None if link is None else link["until"]
    return until is not None and read_time(until) > since
