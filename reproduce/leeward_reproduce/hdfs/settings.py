"""Configuration files of HDFS in a lab.

The heartbeat is short, because an experiment restarts the NameNode with another policy. Everything else that
decides on placement and speed is as HDFS has it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from leeward.lab import Machine

POLICIES = ("default", "sinbad", "ccp", "rehdfs", "leeward")
"""HDFS's own policy, and those of Leeward."""
RPC_PORT, HTTP_PORT, DATANODE_HTTP_PORT = 8020, 9870, 9864
"""Ports of HDFS: calls to the NameNode, its web interface, and the web interface of a DataNode."""
HEARTBEAT_S = 1
_PACKAGE = "org.apache.hadoop.hdfs.server.blockmanagement"
# DataNodes log blocks that they take by INFO, and those that they send by DEBUG: `traces` reads both.
_LOG = """\
log4j.rootLogger=INFO,stderr
log4j.logger.org.apache.hadoop.hdfs.server.datanode.DataNode.clienttrace=DEBUG
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""


def policy_properties(policy: str, block: int) -> dict[str, str]:
    """Properties that select a policy: none for that of HDFS.

    Args:
        policy: One of `POLICIES`.
        block: Size of full blocks in bytes, the least that `sinbad` places.
    """
    if policy == "default":
        return {}
    return {
        "dfs.block.replicator.classname": f"{_PACKAGE}.LeewardBlockPlacementPolicy",
        "dfs.block.placement.ec.classname": f"{_PACKAGE}.LeewardErasureCodedPlacementPolicy",
        "dfs.leeward.policy": policy,
        "dfs.leeward.client": "hdfs-lab",
        "dfs.leeward.strict": "true",
        "dfs.leeward.sinbad.threshold": f"{block}B",
        "dfs.leeward.explain.sample": "1",
    }


def controller_properties(controller: str, token_file: Path) -> dict[str, str]:
    """Properties of a policy that has a controller.

    Args:
        controller: Address of the controller.
        token_file: File with a token of the role `place`.
    """
    return {"dfs.leeward.controller": controller, "dfs.leeward.token.file": str(token_file)}


def write(
    folder: Path, namenode: str, hosts: Sequence[Machine], racks: Mapping[str, str], hdfs: Mapping[str, str]
) -> None:
    """Writes the configuration of a NameNode or of DataNodes into a folder of the class path.

    Args:
        folder: The folder.
        namenode: IP address of the NameNode.
        hosts: Machines with DataNodes.
        racks: Name of the rack of each host, by the name of the host.
        hdfs: Properties of `hdfs-site.xml`.
    """
    for pages in ("hdfs", "datanode"):
        # Servers start only if their folder of pages exists, and the jars of Hadoop have none.
        (folder / "webapps" / pages).mkdir(parents=True, exist_ok=True)
    table = folder / "topology.table"
    # HDFS looks up addresses in the table, and not names.
    lines = [f"{host.address} /{racks[host.name]}\n" for host in hosts]
    table.write_text("".join(lines), encoding="utf-8")
    core = {
        "fs.defaultFS": f"hdfs://{namenode}:{RPC_PORT}",
        "hadoop.tmp.dir": str(folder.parent / "tmp"),
        # An idle connection does not notice that the NameNode restarts, and its next call fails.
        "ipc.client.connection.maxidletime": "1000",
        "net.topology.node.switch.mapping.impl": "org.apache.hadoop.net.TableMapping",
        "net.topology.table.file.name": str(table),
    }
    common = {
        "dfs.namenode.rpc-address": f"{namenode}:{RPC_PORT}",
        "dfs.heartbeat.interval": str(HEARTBEAT_S),
        "dfs.permissions.enabled": "false",
    }
    (folder / "core-site.xml").write_text(_site(core), encoding="utf-8")
    (folder / "hdfs-site.xml").write_text(_site({**common, **hdfs}), encoding="utf-8")
    (folder / "log4j.properties").write_text(_LOG, encoding="utf-8")


def namenode_properties(folder: Path, datanodes: int) -> dict[str, str]:
    """Properties of a NameNode that has its files in a folder, and waits for DataNodes in safe mode."""
    return {
        "dfs.namenode.name.dir": folder.as_uri(),
        "dfs.namenode.http-address": f"0.0.0.0:{HTTP_PORT}",
        # The NameNode resolves no names of DataNodes.
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.namenode.safemode.min.datanodes": str(datanodes),
        "dfs.namenode.safemode.extension": "0",
        # Seconds between two rounds in which DataNodes get lists of deleted blocks.
        "dfs.namenode.redundancy.interval.seconds": "1",
        "dfs.namenode.fs-limits.min-block-size": str(1 << 20),
    }


def datanode_properties() -> dict[str, str]:
    """Properties of DataNodes with small disks, of which they would leave 1 GiB free."""
    return {"dfs.datanode.round-robin-volume-choosing-policy.additional-available-space": "0"}


def _site(properties: Mapping[str, str]) -> str:
    lines = [
        f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in properties.items()
    ]
    return "\n".join(['<?xml version="1.0"?>', "<configuration>", *lines, "</configuration>", ""])
