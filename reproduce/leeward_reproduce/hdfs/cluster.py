"""A cluster of HDFS in a lab: NameNode and controller at the core, a DataNode and an agent on each host."""

import json
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from leeward import Client, _native, lab
from leeward._quantities import bytes_text
from leeward.client import ProblemError, UnreachableError
from leeward.client.board import read_time
from leeward.client.types import Link
from leeward.errors import InputError
from leeward_reproduce.hdfs import class_path, namenode, settings, workers
from leeward_reproduce.hdfs.counters import LinkCounters
from leeward_reproduce.hdfs.processes import Process, ended_by_signals, kill
from leeward_reproduce.hdfs.reports import LISTENING
from leeward_reproduce.hdfs.workers import Worker

CORE = "core"
"""Machine of the NameNode, the controller and the sources of background traffic."""
CONTROLLER_PORT = 7600
REPORTS_PORT = 7601
"""Port at which reports are delayed and lost, while they are."""
LEEWARD = str(Path(sys.executable).with_name("leeward"))
"""The `leeward` command of this Python."""
MEMORY = {"NameNode": "256m", "DataNode": "160m", "TestDFSIO": "160m"}
"""Heaps. A DataNode of this size has about 200 MB."""
MEMORY_FOLDER = Path("/dev/shm")
"""File system in memory, for clusters without disks."""
MEMORY_BYTES = 4 << 30
"""Bytes that it must have free."""
START_S = 240.0
"""Time limit for the start of all parts, on a slow machine with two processors."""
_HADOOP = "org.apache.hadoop.hdfs.server"
_NAMENODE, _DATANODE = f"{_HADOOP}.namenode.NameNode", f"{_HADOOP}.datanode.DataNode"
_FRESH_S = 2.0
"""Age of a snapshot with which the policy is ready."""


@dataclass(frozen=True)
class Shape:
    """Racks, links and blocks of a cluster."""

    racks: int = 4
    hosts_per_rack: int = 3
    nic: str = "200Mbps"
    rack_link: str = "100Mbps"
    """Uplink and downlink of each rack. A processor forwards about 500 Mbit/s between racks."""
    block: int = 16 << 20
    """Size of full blocks in bytes."""
    in_memory: bool = False
    """True if DataNodes store their blocks in memory instead of on disks."""

    def cluster(self) -> dict[str, Any]:
        """The cluster in the fields of a cluster file. Disks are too fast to limit a block."""
        disks = {"devices": [{"read": "400MB/s", "write": "400MB/s", "capacity": "1GiB"}]}
        return {
            "name": "hdfs",
            "racks": self.racks,
            "hosts_per_rack": self.hosts_per_rack,
            "nic": self.nic,
            "rack_link": self.rack_link,
            **({} if self.in_memory else disks),
        }


class HdfsCluster:
    """A running cluster; `up` makes one."""

    namenode_machine = CORE
    """Machine of the NameNode, and of the relay to it."""

    def __init__(
        self,
        shape: Shape,
        network: lab.Machines,
        folder: Path,
        ports: tuple[socket.socket, socket.socket],
        jars: Sequence[Path],
        properties: Mapping[str, str],
        note: Callable[[str], object],
    ) -> None:
        """Takes a network without processes, an empty folder, and ports for controller and NameNode."""
        self.shape = shape
        self.network = network
        self.folder = folder
        self.policy = ""
        """Policy of the NameNode."""
        self.hosts = [host.name for host in network.hosts]
        self.racks = {host.name: host.place.partition("h")[0] for host in network.hosts}
        """Name of the rack of each host."""
        self.counters = LinkCounters()
        self.controller_url = _url(ports[0])
        """Address of the controller and its dashboard on this machine."""
        self.namenode_url = _url(ports[1])
        """Address of the web interface of the NameNode on this machine."""
        self.files = namenode.Files(self.namenode_url)
        """Files of HDFS."""
        self._ports = ports
        self.sinks: set[str] = set()
        """Hosts with a port for background traffic."""
        self.workers: dict[str, Worker] = {}
        """Helpers by the names of their machines."""
        self._jars = jars
        self._properties = dict(properties)
        self._note = note
        self._processes: dict[str, Process] = {}
        self._core = network.machine(self.namenode_machine).address
        self._tokens: dict[str, str] = {}
        for part in ("logs", "tmp", "tokens"):
            (folder / part).mkdir()

    @property
    def core(self) -> str:
        """Address of the NameNode and the controller in the lab."""
        return self._core

    @property
    def controller(self) -> Process:
        """Process of the controller."""
        return self._processes["controller"]

    @property
    def token(self) -> str:
        """Token of the controller with the role `read`, for the dashboard."""
        return self._tokens["read"]

    @property
    def processes(self) -> list[Process]:
        """All processes that were started and not replaced."""
        return list(self._processes.values())

    def client(self) -> Client:
        """A client of the controller."""
        return Client(self.controller_url, token=self.token, timeout_s=5.0, patience_s=0)

    def check(self) -> None:
        """Checks that all processes run.

        Raises:
            ProcessError: A process has ended.
        """
        for process in self.processes:
            process.check()

    def delete(self, path: str) -> None:
        """Deletes a folder of HDFS, and waits until DataNodes know.

        A NameNode that restarts before has forgotten the blocks, and they fill the disks.

        Raises:
            OSError: The NameNode does not answer.
            ProcessError: DataNodes do not fetch the list in time.
        """
        self.files.delete(path)
        process = self._processes["NameNode"]
        process.wait_until(
            "delete blocks", 60.0, lambda: not namenode.has_pending_deletions(self.namenode_url)
        )
        time.sleep(2 * settings.HEARTBEAT_S)

    def use(self, policy: str) -> None:
        """Restarts the NameNode with a policy, and waits until it decides by it.

        Raises:
            InputError: There is no such policy.
            ProcessError: The NameNode is not ready in time.
        """
        _check_policy(policy)
        self._kill("NameNode")
        name_folder = self.folder / "name"
        self._configure(
            "namenode",
            settings.namenode_properties(name_folder, len(self.hosts))
            | self._policy_properties(policy)
            | self._properties,
        )
        if not name_folder.exists():
            arguments = ("-format", "-force", "-nonInteractive")
            self._start_namenode(*arguments).finish(START_S)
        process = self._start_namenode()
        self.policy = policy
        process.wait_until("leave safe mode with all DataNodes", START_S, self._is_ready)
        if policy not in ("default", "rehdfs"):
            process.wait_until("get a snapshot of the controller", 30.0, self._has_snapshot)

    def _policy_properties(self, policy: str) -> dict[str, str]:
        controller = f"http://{self._core}:{CONTROLLER_PORT}"
        return settings.policy_properties(
            policy, controller, self.folder / "tokens" / "place", self.shape.block
        )

    def _start_namenode(self, *arguments: str) -> Process:
        return self._java("NameNode", self.namenode_machine, "NameNode", _NAMENODE, "namenode", *arguments)

    def _is_ready(self) -> bool:
        for name in self.hosts:
            self._processes[f"DataNode {name}"].check()
        return namenode.is_ready(self.namenode_url, len(self.hosts))

    def _has_snapshot(self) -> bool:
        try:
            state = namenode.policy_state(self.namenode_url)
        except OSError:
            return False
        return state is not None and state.snapshot_age_s is not None and state.snapshot_age_s < _FRESH_S

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

    def _write_hosts(self) -> None:
        names = [f"{machine.address} {machine.name}" for machine in self.network.machines]
        lines = ["127.0.0.1 localhost", f"127.0.0.1 {socket.gethostname()}", *names]
        (self.folder / "hosts").write_text("\n".join(lines) + "\n", encoding="utf-8")

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

    def _start_relay(self) -> None:
        """Starts the relay from the ports of this machine to the controller and the NameNode."""
        descriptors = [port.fileno() for port in self._ports]
        inner = (CONTROLLER_PORT, settings.HTTP_PORT)
        pairs = [f"{descriptor}:{port}" for descriptor, port in zip(descriptors, inner, strict=True)]
        script = str(Path(__file__).with_name("relay.py"))
        self._start(
            "relay", self.namenode_machine, (sys.executable, "-I", script, *pairs), pass_fds=descriptors
        )

    def _start_controller(self) -> None:
        file = self.folder / "cluster.json"
        file.write_text(json.dumps(self.shape.cluster()), encoding="utf-8")
        tokens = str(self.folder / "tokens" / "tokens")
        listen = f"0.0.0.0:{CONTROLLER_PORT}"
        options = ("--cluster", str(file), "--listen", listen, "--store", "memory", "--tokens", tokens)
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
        controller = f"http://{self._core}:{port}"
        token = str(self.folder / "tokens" / "report")
        options = ["--controller", controller, "--host", host.name, "--token-file", token]
        options += ["--interface", "eth0", "--volume", str(self._data(host))]
        device = _device(host.disks[0]) if host.disks else None
        if device is not None:
            options += ["--disk", f"{device}=disk0"]
        self._start(f"agent {host.name}", host.name, (LEEWARD, "agent", *options))

    def _start_datanode(self, host: lab.Machine) -> None:
        data = (self._data(host) / "dfs").as_uri()
        options = ("-D", f"dfs.datanode.hostname={host.name}", "-D", f"dfs.datanode.data.dir={data}")
        self._java(f"DataNode {host.name}", host.name, "DataNode", _DATANODE, "datanodes", *options)

    def _data(self, host: lab.Machine) -> Path:
        """Folder of the data of a host: its disk, or a folder of the cluster in a lab without disks."""
        folder = Path(host.disks[0]) if host.disks else self.folder / "data" / host.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _configure(self, part: str, properties: Mapping[str, str]) -> None:
        settings.write(self.folder / part, self._core, self.network.hosts, self.racks, properties)

    def _java(self, name: str, machine: str, kind: str, program: str, part: str, *arguments: str) -> Process:
        """Starts a program of HDFS with the configuration of a part."""
        options = (
            f"-Xmx{MEMORY[kind]}",
            "-Xss512k",
            "-XX:+UseSerialGC",
            # Programs that run for minutes gain little from the optimizing compiler.
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            # As in Hadoop's own scripts.
            "-Djava.net.preferIPv4Stack=true",
            # Libraries of the web server of Hadoop define classes, as its own scripts permit on Java 17.
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            # Names resolve without a server, which a namespace does not reach.
            f"-Djdk.net.hosts.file={self.folder / 'hosts'}",
            f"-Djava.io.tmpdir={self.folder / 'tmp'}",
        )
        paths = os.pathsep.join(map(str, (self.folder / part, *self._jars)))
        return self._start(name, machine, ("java", *options, "-cp", paths, program, *arguments))

    def _start(self, name: str, machine: str, command: Sequence[str], **options: Any) -> Process:
        log = self.folder / "logs" / f"{name.replace(' ', '-')}.log"
        with log.open("w", encoding="utf-8") as out:
            # A session of its own: an interrupt from the terminal reaches this program alone.
            standard = {"stdin": DEVNULL, "stdout": out, "stderr": out, "start_new_session": True}
            values = standard | {"env": _environment(), "cwd": self.folder} | options
            process = Process(name, self.network.start(machine, command, **values), log)
        self._processes[name] = process
        return process

    def _kill(self, name: str) -> None:
        process = self._processes.pop(name, None)
        if process is not None:
            kill([process])

    def stop(self) -> None:
        """Ends all processes."""
        processes, self._processes = self.processes, {}
        kill(processes)
        for worker in self.workers.values():
            worker.close()


@contextmanager
def up(
    shape: Shape | None = None,
    policy: str = "default",
    *,
    properties: Mapping[str, str] | None = None,
    note: Callable[[str], object] = lambda _: None,
) -> Iterator[HdfsCluster]:
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
    _check_policy(policy)
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
        ports = (stack.enter_context(listen(CONTROLLER_PORT)), stack.enter_context(listen(0)))
        cluster = HdfsCluster(shape, network, folder, ports, jars, properties or {}, note)
        stack.callback(cluster.stop)
        cluster.start(policy)
        yield cluster


def is_newer(link: Link | None, since: datetime) -> bool:
    """True if the controller knows the load of a link at a time after a moment."""
    until = None if link is None else link["until"]
    return until is not None and read_time(until) > since


def listen(port: int) -> socket.socket:
    """A port of this machine: the given one if it is free, or another."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return socket.create_server(("127.0.0.1", 0))


def check_memory() -> None:
    """Checks that the file system in memory is one, and has room.

    Raises:
        OSError: It is not, or has not.
    """
    mounted = any(line.split()[1:3] == [str(MEMORY_FOLDER), "tmpfs"] for line in _mounts())
    free = shutil.disk_usage(MEMORY_FOLDER).free if mounted else 0
    if free < MEMORY_BYTES:
        problem = f"has {bytes_text(free)} free" if mounted else "is no file system in memory"
        raise OSError(f"{MEMORY_FOLDER} {problem}; HDFS in memory needs {bytes_text(MEMORY_BYTES, None)}")


def _mounts() -> list[str]:
    return Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()


def _url(port: socket.socket) -> str:
    return f"http://127.0.0.1:{port.getsockname()[1]}"


def _check_policy(policy: str) -> None:
    if policy not in settings.POLICIES:
        known = ", ".join(settings.POLICIES)
        raise InputError.about("policy", f"unknown policy `{policy}`; there are: {known}")


def _environment() -> dict[str, str]:
    """Environment of the processes: the modules of this one, and no proxies, which the lab does not reach."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HADOOP_USER_NAME": namenode.USER}


def _device(folder: str) -> str | None:
    """Name of the device whose file system is mounted at a folder; None if none is."""
    mounts = [line.split()[:2] for line in _mounts()]
    return next((Path(device).name for device, place in mounts if place == folder), None)
