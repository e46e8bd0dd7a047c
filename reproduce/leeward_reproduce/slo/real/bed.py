"""A bed for promises on real disks: servers, clients, a controller and enforcers in a lab.

Each host is a network namespace with a link of its own. A server runs nfs-ganesha on a throttled disk, whose
reads are kept out of the page cache. Enforcers are the program `leeward`; they start when a caller says so,
so that the same bed shows requests with and without them.

>>> with bed.up(Shape(clients=2)) as lab_bed:                      # doctest: +SKIP
...     lab_bed.enforce_nfs("s0", "--workloads", "packed.yaml")
...     lab_bed.start("load", "c0", ["python", "load.py", lab_bed.address("s0")])
"""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from leeward import Client, _native, lab
from leeward._quantities import read_rate
from leeward_reproduce.hdfs.machine import listen, url_of
from leeward_reproduce.hdfs.processes import Process, ended_by_signals, kill
from leeward_reproduce.slo.real import layout, parts
from leeward_reproduce.slo.real.layout import Shape

CORE = "core"
"""Machine of the controller."""
CONTROLLER_PORT = 7600
LEEWARD = str(Path(sys.executable).with_name("leeward"))
"""The `leeward` command of this Python."""
START_S = 60.0
"""Time limit for the start of a program, on a slow machine with two processors."""
END_S = 20.0
"""Time limit for an enforcer that undoes its work."""
_SECTOR = 512
"""Bytes of a sector, in the kernel's counters of devices."""
_HERE = Path(__file__).parent
_ROLES = ("read", "report", "place")


class Bed:
    """A running bed; `up` makes one."""

    def __init__(
        self,
        shape: Shape,
        network: lab.Machines,
        folder: Path,
        port: socket.socket,
        note: Callable[[str], object],
    ) -> None:
        """Makes a bed without processes.

        Args:
            shape: Hosts and disks.
            network: Network of the shape's cluster.
            folder: Empty folder for logs and configuration.
            port: Port of this machine for the controller, if it is started.
            note: Called with the next step.
        """
        self.shape = shape
        self.network = network
        self.folder = folder
        self.clients = shape.client_names
        self.servers = shape.server_names
        self.controller_url = url_of(port)
        """Address of the controller and its dashboard on this machine."""
        self.controller = ""
        """Address of the controller in the lab; empty before its start."""
        self.cluster_file = folder / "cluster.json"
        """Cluster file of the bed."""
        self.addresses_file = folder / "addresses.txt"
        """Addresses of all hosts, as `--addresses` reads them."""
        self._port = port
        self._note = note
        self._processes: dict[str, Process] = {}
        self._tokens: dict[str, str] = {}
        for part in ("logs", "servers", "tokens"):
            (folder / part).mkdir()
        self.cluster_file.write_text(json.dumps(shape.cluster()), encoding="utf-8")
        lines = [f"{self.address(name)} {name}\n" for name in (*self.clients, *self.servers)]
        self.addresses_file.write_text("".join(lines), encoding="utf-8")

    def address(self, host: str) -> str:
        """Address of a host."""
        return self.network.machine(host).address

    def disk(self, server: str) -> Path:
        """Folder of a server's disk on this machine; a volume is a folder in it."""
        return Path(self.network.machine(server).disks[0])

    def read_bytes(self, server: str) -> int:
        """Bytes that a server's disk has read since it was made."""
        device = self.disk(server).stat().st_dev
        counters = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text("ascii")
        return _SECTOR * int(counters.split()[2])

    # Processes.

    def start(
        self, name: str, host: str, command: Sequence[str | os.PathLike[str]], **options: Any
    ) -> Process:
        """Starts a program at a host. Its output is a log in the folder `logs`, and it ends with the bed.

        Args:
            name: Name of the process, unique among those that run.
            host: Name of a client or server, or `core`.
            command: Program and its arguments.
            **options: Options of `subprocess.Popen`.
        """
        log = self.folder / "logs" / f"{name.replace(' ', '-')}.log"
        with log.open("w", encoding="utf-8") as out:
            # A session of its own: an interrupt from the terminal reaches this program alone.
            standard = {"stdin": DEVNULL, "stdout": out, "stderr": out, "start_new_session": True}
            values = standard | {"env": _environment(), "cwd": self.folder} | options
            process = Process(name, self.network.start(host, command, **values), log)
        self._processes[name] = process
        return process

    def process(self, name: str) -> Process:
        """A process that was started and not ended."""
        return self._processes[name]

    def end(self, name: str) -> int:
        """Ends a process by SIGTERM, and waits for it: an enforcer undoes its work. Returns its exit status.

        Raises:
            ProcessError: It does not end in time.
        """
        process = self._processes.pop(name)
        process.process.send_signal(signal.SIGTERM)
        try:
            return process.process.wait(END_S)
        except subprocess.TimeoutExpired:
            kill([process])
            raise process.error(f"did not end within {END_S:g} s") from None

    def kill(self, name: str) -> None:
        """Kills a process, which then undoes nothing."""
        kill([self._processes.pop(name)])

    def forget(self, name: str) -> None:
        """Removes a process that has ended, or kills it."""
        process = self._processes.pop(name)
        if process.process.poll() is None:
            kill([process])

    def check(self, but: Collection[str] = ()) -> None:
        """Checks that all processes run.

        Args:
            but: Names of processes that may end.

        Raises:
            ProcessError: A process has ended.
        """
        for name, process in self._processes.items():
            if name not in but:
                process.check()

    def stop(self) -> None:
        """Ends all processes."""
        processes, self._processes = list(self._processes.values()), {}
        kill(processes)

    # Servers and the network.

    def start_servers(self, uncached: bool = True) -> None:
        """Starts nfs-ganesha at each server, and waits until all serve.

        Args:
            uncached: True to keep their reads out of the page cache.
        """
        for server in self.servers:
            self._note(f"starting nfs-ganesha at {server}")
            folder = self.folder / "servers" / server
            folder.mkdir(exist_ok=True)
            files = [str(path) for path in (_HERE / "server.sh", folder, self.disk(server))]
            command = ["sh", *files, *self.shape.volumes]
            process = self.start(f"server {server}", server, command)
            log = folder / "ganesha.log"

            def serves(log: Path = log) -> bool:
                return log.exists() and "NFS SERVER INITIALIZED" in log.read_text(errors="replace")

            process.wait_until("serve", START_S, serves)
            if uncached:
                script = (sys.executable, "-I", str(_HERE / "uncached.py"), str(self.disk(server)))
                self.start(f"uncached {server}", server, script)

    def use_priority_switch(self) -> None:
        """Gives the switch's ports to hosts strict priorities by DSCP. Without this, each is one queue."""
        rate = read_rate("link", self.shape.link)
        for number, host in enumerate((*self.clients, *self.servers)):
            device = f"h{number}"
            self.network.run("rack", ["tc", "qdisc", "del", "dev", device, "root"], check=False)
            text = layout.switch_port(device, rate)
            self.network.run("rack", ["tc", "-batch", "-"], input=text)
            self.network.run("rack", ["nft", "-f", "-"], input=layout.switch_marks(device))
            self._note(f"priorities at the switch's port of {host}")

    # The controller.

    def start_controller(self, *options: str) -> None:
        """Starts a controller at the core, with its dashboard at `controller_url`.

        Args:
            *options: Further options of `leeward serve`.
        """
        for role in _ROLES:
            token, _ = _native.new_token(role, role, [], str(self.folder / "tokens" / "tokens"))
            file = self.folder / "tokens" / role
            file.write_text(token + "\n", encoding="utf-8")
            file.chmod(0o600)
            self._tokens[role] = token
        script = str(_HERE.parents[1] / "hdfs" / "relay.py")
        pair = f"{self._port.fileno()}:{CONTROLLER_PORT}"
        self.start("relay", CORE, (sys.executable, "-I", script, pair), pass_fds=[self._port.fileno()])
        tokens = str(self.folder / "tokens" / "tokens")
        listening = ("--listen", f"0.0.0.0:{CONTROLLER_PORT}", "--store", "memory", "--tokens", tokens)
        command = (LEEWARD, "serve", "--cluster", str(self.cluster_file), *listening, *options)
        process = self.start("controller", CORE, command)
        self.controller = f"http://{self.network.machine(CORE).address}:{CONTROLLER_PORT}"
        process.wait_until("answer", START_S, self._answers)

    def client(self, role: str = "read") -> Client:
        """A client of the controller with a role: `read`, `report` or `place`."""
        return Client(self.controller_url, token=self._tokens[role], timeout_s=5.0, patience_s=0)

    @property
    def token(self) -> str:
        """Token of the controller with the role `read`, for the dashboard."""
        return self._tokens["read"]

    def _answers(self) -> bool:
        try:
            self.client().workloads_page(limit=1)
        except OSError:
            return False
        return True

    def controller_options(self) -> list[str]:
        """Options of an enforcer of the controller's promises."""
        return ["--controller", self.controller, "--token-file", str(self.folder / "tokens" / "report")]

    # Enforcers.

    def enforce_net(self, host: str, *options: str | os.PathLike[str], wait: bool = True) -> Process:
        """Starts the network enforcer of a host, in place of the lab's own queue of its link.

        Args:
            host: Name of a client or server.
            *options: Options that name the promises: `--workloads FILE`, or `controller_options`.
            wait: True to wait until it enforces.
        """
        # One that no machine carries removes the queue; the enforcer limits the link to its rate itself.
        self._limit(host, "1Tbps")
        command = (LEEWARD, "enforce", "net", "--host", host, "--interface", "eth0")
        process = self.start(f"enforce net {host}", host, (*command, "--rate", self.shape.link, *options))
        if wait:
            process.wait_until("enforce", START_S, lambda: "eth0: enforces" in process.log.read_text())
        return process

    def end_net(self, host: str) -> None:
        """Ends the network enforcer of a host; its link has its former queue again."""
        self.end(f"enforce net {host}")
        self._limit(host, self.shape.link)

    def start_agent(self, host: str, *enforcers: str) -> Process:
        """Starts the agent of a host, which reports to the controller and runs enforcers.

        Args:
            host: Name of a client or server.
            *enforcers: Values of its option `--enforce`, such as `net --rate 200Mbps`.
        """
        if any(one.split()[0] == "net" for one in enforcers):
            self._limit(host, "1Tbps")
        options = [word for one in enforcers for word in ("--enforce", one)]
        command = (LEEWARD, "agent", "--host", host, "--interface", "eth0", *self.controller_options())
        return self.start(f"agent {host}", host, (*command, *options))

    def enforce_nfs(self, server: str, *options: str | os.PathLike[str], wait: bool = True) -> Process:
        """Starts the storage enforcer of a server for all its volumes; clients connect to `proxy_port`.

        Args:
            server: Name of a server.
            *options: Options that name the promises, the device and others.
            wait: True to wait until it listens.
        """
        exports = [f"{self.address(server)}:{self.shape.export(name)}" for name in self.shape.volumes]
        listening = [f"0.0.0.0:{self.shape.proxy_port(name)}" for name in self.shape.volumes]
        command = [LEEWARD, "enforce", "nfs", "--export", ",".join(exports), "--listen", ",".join(listening)]
        command += ["--mountport", str(layout.MOUNT_PORT), "--allow", "all"]
        process = self.start(f"enforce nfs {server}", server, (*command, *options))
        if wait:
            count = len(exports)
            process.wait_until(
                "listen", START_S, lambda: process.log.read_text().count("listening on") == count
            )
        return process

    def _limit(self, host: str, rate: str) -> None:
        assert isinstance(self.network, lab.Network)
        self.network.limit(f"{host}:egress", rate)


@contextmanager
def up(shape: Shape | None = None, *, note: Callable[[str], object] = lambda _: None) -> Iterator[Bed]:
    """Brings up a bed with its servers, and removes all of it at the end of the block, also after an error.

    Args:
        shape: Hosts and disks.
        note: Called with the next step.

    Raises:
        OSError: This machine lacks a part, or a process failed.
    """
    lacks = parts.missing()
    if lacks is not None:
        raise OSError(lacks)
    shape = shape or Shape()
    with ended_by_signals(), ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="leeward-bed-")))
        note(f"bringing up {shape.clients} clients and {shape.servers} servers")
        # Links of a lab have no priorities; hosts and `use_priority_switch` set them.
        links = {name: value for name, value in shape.cluster().items() if name != "priorities"}
        network = stack.enter_context(lab.up(links, disk_size=shape.disk_size))
        for remark in network.notes:
            note(remark)
        port = stack.enter_context(listen(CONTROLLER_PORT))
        bed = Bed(shape, network, folder, port, note)
        stack.callback(bed.stop)
        bed.start_servers()
        yield bed


def write_file(path: Path, size: int, seed: int = 1) -> None:
    """Writes a file of random bytes and brings it to the disk, for reads: holes and zeros read faster.

    Args:
        path: New file, on the disk of a server.
        size: Size in bytes.
        seed: Seed of the bytes.
    """
    source = random.Random(seed)
    with path.open("wb") as out:
        for start in range(0, size, 1 << 20):
            out.write(source.randbytes(min(1 << 20, size - start)))
        out.flush()
        os.fsync(out.fileno())
    path.chmod(0o666)


def keep_logs(bed: Bed, folder: Path) -> None:
    """Copies the logs of a bed, which are removed with it, for a look after an error."""
    for part in ("logs", "servers"):
        shutil.copytree(bed.folder / part, folder / part, dirs_exist_ok=True)


def _environment() -> dict[str, str]:
    """Environment of the processes: the modules of this one, and no proxies, which the lab does not reach."""
    ours = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return ours | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": parts.PATH}
