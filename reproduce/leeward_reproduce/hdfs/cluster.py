"""A cluster of HDFS in a lab: a NameNode, and a DataNode on each host."""

import os
import shlex
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from leeward import lab
from leeward.errors import InputError
from leeward_reproduce.hdfs import namenode, settings
from leeward_reproduce.hdfs.machine import Shape, url_of
from leeward_reproduce.hdfs.processes import Process, kill

MEMORY = {"NameNode": "256m", "DataNode": "160m", "TestDFSIO": "160m", "client": "160m"}
"""Heaps. A DataNode of this size has about 200 MB."""
START_S = 240.0
"""Time limit for the start of all parts, on a slow machine with two processors."""
_HADOOP = "org.apache.hadoop.hdfs.server"
_NAMENODE, _DATANODE = f"{_HADOOP}.namenode.NameNode", f"{_HADOOP}.datanode.DataNode"


class HdfsCluster:
    """A running cluster without a controller. Subclasses add the parts that their experiments need."""

    namenode_machine: str
    """Machine of the NameNode, and of the relay to it."""

    def __init__(
        self,
        shape: Shape,
        network: lab.Machines,
        folder: Path,
        port: socket.socket,
        jars: Sequence[Path],
        properties: Mapping[str, str],
        note: Callable[[str], object],
    ) -> None:
        """Makes a cluster without processes.

        Args:
            shape: Racks, links and blocks.
            network: Network without processes.
            folder: Empty folder for logs and configuration.
            port: Port of this machine for the web interface of the NameNode.
            jars: Class path of HDFS and of the policy.
            properties: Further properties of the NameNode.
            note: Called with the next step.
        """
        self.shape = shape
        self.network = network
        self.folder = folder
        self.policy = ""
        """Policy of the NameNode."""
        self.hosts = [host.name for host in network.hosts]
        self.racks = {host.name: host.place.partition("h")[0] for host in network.hosts}
        """Name of the rack of each host."""
        self.core = network.machine(self.namenode_machine).address
        """Address of the NameNode in the lab."""
        self.namenode_url = url_of(port)
        """Address of the web interface of the NameNode on this machine."""
        self.files = namenode.Files(self.namenode_url)
        """Files of HDFS."""
        self._relayed = [(port, settings.HTTP_PORT)]
        """Ports of this machine, with those at the machine of the NameNode to which they lead."""
        self._jars = jars
        self._properties = dict(properties)
        self._note = note
        self._processes: dict[str, Process] = {}
        for part in ("logs", "tmp"):
            (folder / part).mkdir()

    @property
    def processes(self) -> list[Process]:
        """All processes that were started and not replaced."""
        return list(self._processes.values())

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
        check_policy(policy)
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

    def _policy_properties(self, policy: str) -> dict[str, str]:
        return settings.policy_properties(policy, self.shape.block)

    def _start_namenode(self, *arguments: str) -> Process:
        return self._java("NameNode", self.namenode_machine, "NameNode", _NAMENODE, "namenode", *arguments)

    def _is_ready(self) -> bool:
        for name in self.hosts:
            self._processes[f"DataNode {name}"].check()
        return namenode.is_ready(self.namenode_url, len(self.hosts))

    def _write_hosts(self) -> None:
        names = [f"{machine.address} {machine.name}" for machine in self.network.machines]
        lines = ["127.0.0.1 localhost", f"127.0.0.1 {socket.gethostname()}", *names]
        (self.folder / "hosts").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _start_relay(self) -> None:
        """Starts the relay from ports of this machine to those at the machine of the NameNode."""
        descriptors = [port.fileno() for port, _ in self._relayed]
        pairs = [f"{port.fileno()}:{inner}" for port, inner in self._relayed]
        script = str(Path(__file__).with_name("relay.py"))
        self._start(
            "relay", self.namenode_machine, (sys.executable, "-I", script, *pairs), pass_fds=descriptors
        )

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
        settings.write(self.folder / part, self.core, self.network.hosts, self.racks, properties)

    def write_client(self) -> Path:
        """Writes a program that does what `hdfs dfs` does, at any machine of the lab."""
        command = self._java_command("client", "org.apache.hadoop.fs.FsShell", "datanodes")
        command += ["-D", f"dfs.blocksize={self.shape.block}"]
        environment = f"HADOOP_USER_NAME={namenode.USER}"
        file = self.folder / "dfs"
        file.write_text(f'#!/bin/sh\n{environment} exec {shlex.join(command)} "$@"\n', encoding="utf-8")
        file.chmod(0o755)
        return file

    def _java(self, name: str, machine: str, kind: str, program: str, part: str, *arguments: str) -> Process:
        """Starts a program of HDFS with the configuration of a part."""
        return self._start(name, machine, (*self._java_command(kind, program, part), *arguments))

    def _java_command(self, kind: str, program: str, part: str) -> list[str]:
        """Command of a program of HDFS with the configuration of a part."""
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
        return ["java", *options, "-cp", paths, program]

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


def check_policy(policy: str) -> None:
    """Checks the name of a policy.

    Raises:
        InputError: There is no such policy.
    """
    if policy not in settings.POLICIES:
        known = ", ".join(settings.POLICIES)
        raise InputError.about("policy", f"unknown policy `{policy}`; there are: {known}")


def _environment() -> dict[str, str]:
    """Environment of the processes: the modules of this one, and no proxies, which the lab does not reach."""
    ours = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return ours | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HADOOP_USER_NAME": namenode.USER}
