"""HDFS in a lab with circuits: a DataNode at each host, and the NameNode at the first one.

Its programs see real time, and only the network is slow: as in Etalon's own runs of HDFS, times are divided
by the dilation afterwards. Under virtual time, each heartbeat would take minutes. So processors, and waits
that HDFS has set, are faster beside the network than they would be.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from leeward import lab
from leeward.packets import read as read_scenario
from leeward_reproduce.hdfs import class_path, memory, settings
from leeward_reproduce.hdfs.cluster import HdfsCluster
from leeward_reproduce.hdfs.machine import MEMORY_FOLDER, Shape, check_memory, listen
from leeward_reproduce.hdfs.processes import Process, ended_by_signals

BENCHMARK = "org.apache.hadoop.fs.TestDFSIO"
"""Program of Hadoop's tests."""
_HOUR_MS = str(3_600_000)
_PATIENT = {
    # Senders wait as long as the network is slow: a timeout of TCP alone may take a minute of real time.
    "dfs.client.socket-timeout": _HOUR_MS,
    "dfs.datanode.socket.write.timeout": _HOUR_MS,
    "ipc.client.rpc-timeout.ms": _HOUR_MS,
}
_NAMENODE = {
    # HDFS passes over racks in which DataNodes are busy: those of the first mappers would leave the ring.
    "dfs.namenode.redundancy.considerLoad": "false",
}
_DATANODE = {
    # Nothing reads a block again; `memory` leaves only its end.
    "dfs.datanode.scan.period.hours": "-1",
}


class CircuitCluster(HdfsCluster):
    """A running cluster; `up` makes one.

    It has no controller, agents and helpers, because none of its policies reads loads.
    """

    namenode_machine = "r0h0"

    def __init__(self, circuits: lab.StandingLab, block: int, *arguments: Any) -> None:
        """Takes a lab, the size of full blocks in bytes, and further arguments of `HdfsCluster`."""
        racks = len({host.place.partition("h")[0] for host in circuits.hosts})
        shape = Shape(racks, len(circuits.hosts) // racks, block=block)
        super().__init__(shape, circuits, *arguments)
        self.circuits = circuits
        """The lab."""
        self.addresses = {host.address: host.name for host in circuits.hosts}
        """Names of hosts by their addresses."""

    def start(self, policy: str) -> None:
        """Starts the NameNode and the DataNodes, and waits until all are ready."""
        self._write_hosts()
        self._configure("datanodes", settings.datanode_properties() | _DATANODE | _PATIENT)
        self._configure("clients", _PATIENT)
        self._start_relay()
        for host in self.network.hosts:
            self._start_datanode(host)
        self.use(policy)

    def benchmark(self, host: str, *arguments: str) -> Process:
        """Starts Hadoop's benchmark at a host, with its arguments."""
        return self._java(f"TestDFSIO {host}", host, "TestDFSIO", BENCHMARK, "clients", *arguments)

    def end(self, process: Process) -> None:
        """Ends a process, and forgets it."""
        self._kill(process.name)

    def _start(self, name: str, machine: str, command: Sequence[str], **options: Any) -> Process:
        # Programs of the lab see virtual time by a library.
        return super()._start(name, machine, ("env", "-u", "LD_PRELOAD", *command), **options)


@contextmanager
def up(
    scenario: Mapping[str, Any],
    dilation: int,
    block: int,
    policy: str = "default",
    *,
    name: str = "hdfs-circuits",
    note: Callable[[str], object] = lambda _: None,
) -> Iterator[CircuitCluster]:
    """Brings up a cluster in a lab with circuits, and removes all of it at the end of the block.

    Args:
        scenario: Scenario of the packet simulator: its network and its schedule, without its workload.
        dilation: Real seconds for each virtual second.
        block: Size of full blocks in bytes.
        policy: First policy of the NameNode: `default` or `rehdfs`.
        name: Name of the lab.
        note: Called with the next step.

    Raises:
        InputError: The scenario is invalid, or kernels cannot run it.
        OSError: This machine lacks a part, a process failed, or a lab of this name is up.
    """
    lacks = class_path.missing()
    if lacks is not None:
        raise OSError(lacks)
    check_memory()
    note("building the policy and resolving the class path of HDFS and MapReduce")
    jars = class_path.class_path("test")
    with ended_by_signals(), ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="leeward-hdfs-", dir=MEMORY_FOLDER)
        folder = Path(stack.enter_context(temporary))
        note(f"bringing up {read_scenario(scenario).racks} racks with circuits under dilation {dilation}")
        circuits = stack.enter_context(lab.stand_up(scenario, name=name, dilation=dilation))
        port = stack.enter_context(listen(0))
        cluster = CircuitCluster(circuits, block, folder, port, jars, _NAMENODE | _PATIENT, note)
        stack.callback(cluster.stop)
        cluster.start(policy)
        with memory.freeing(folder / "data"):
            yield cluster
