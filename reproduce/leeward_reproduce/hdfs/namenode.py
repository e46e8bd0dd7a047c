"""The NameNode over HTTP: files, the places of their blocks, and its readiness."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from leeward.errors import InputError
from leeward.hdfs import NameNode, PolicyState
from leeward.hdfs.policy import BEANS, read_policies
from leeward_reproduce.hdfs.settings import RPC_PORT

USER = "root"
_INFO = "Hadoop:service=NameNode,name=NameNodeInfo"
_TIMEOUT_S = 120.0
"""Longest time of an answer. The first one loads classes, which takes long on a busy machine."""


@dataclass(frozen=True)
class Replica:
    """A copy of a block."""

    host: str
    rack: str


def target(path: str, namenode: str, block: int, replicas: int) -> str:
    """Request of WebHDFS to a DataNode that creates a file."""
    query = {
        "op": "CREATE",
        "user.name": USER,
        "namenoderpcaddress": f"{namenode}:{RPC_PORT}",
        "createparent": "true",
        "overwrite": "false",
        "blocksize": block,
        "replication": replicas,
    }
    return f"/webhdfs/v1{quote(path)}?{urlencode(query)}"


def source(path: str, namenode: str) -> str:
    """Request of WebHDFS to a DataNode that reads a file."""
    query = {"op": "OPEN", "user.name": USER, "namenoderpcaddress": f"{namenode}:{RPC_PORT}"}
    return f"/webhdfs/v1{quote(path)}?{urlencode(query)}"


class Files:
    """Files of HDFS, by the NameNode at an address."""

    def __init__(self, url: str) -> None:
        """Takes the address of the web interface of the NameNode."""
        self.url = url

    def replicas(self, path: str) -> list[list[Replica]]:
        """The copies of each block of a file.

        Raises:
            OSError: The NameNode does not answer, or has no such file.
        """
        return [
            [
                Replica(host, place.strip("/").partition("/")[0])
                for host, place in zip(block["hosts"], block["topologyPaths"], strict=True)
            ]
            for block in self._blocks(path)
        ]

    def stored(self, path: str) -> dict[str, int]:
        """Bytes of a file on each host with a copy of a block.

        Raises:
            OSError: The NameNode does not answer, or has no such file.
        """
        result: dict[str, int] = {}
        for block in self._blocks(path):
            for host in block["hosts"]:
                result[host] = result.get(host, 0) + block["length"]
        return result

    def delete(self, path: str) -> None:
        """Deletes a file or a folder.

        Raises:
            OSError: The NameNode does not answer.
        """
        self._send("DELETE", path, op="DELETE", recursive="true")

    def _blocks(self, path: str) -> list[dict[str, Any]]:
        answer = self._send("GET", path, op="GETFILEBLOCKLOCATIONS")
        blocks: list[dict[str, Any]] = answer["BlockLocations"]["BlockLocation"]
        return blocks

    def _send(self, method: str, path: str, **query: str) -> Any:
        url = f"{self.url}/webhdfs/v1{quote(path)}?{urlencode({'user.name': USER, **query})}"
        request = urllib.request.Request(url, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")[:300]
            raise OSError(f"{path}: the NameNode answers {error.code}: {text}") from None


def is_ready(url: str, datanodes: int) -> bool:
    """True if a NameNode is out of safe mode, and knows all its DataNodes with their disks."""
    try:
        (info,) = _beans(url, _INFO)
    except (OSError, ValueError):
        return False
    # A DataNode registers before it reports its disks, and gets no block until then.
    with_disks = [one for one in json.loads(info["LiveNodes"]).values() if one["capacity"] > 0]
    return not info["Safemode"] and len(with_disks) == datanodes


def has_pending_deletions(url: str) -> bool:
    """True if blocks of deleted files wait for the next heartbeats of their DataNodes.

    Raises:
        OSError: The NameNode does not answer.
    """
    (state,) = _beans(url, "Hadoop:service=NameNode,name=FSNamesystem")
    return int(state["PendingDeletionBlocks"]) > 0


def policy_state(url: str) -> PolicyState | None:
    """State of the policy for replicated blocks; None without one.

    Raises:
        OSError: The NameNode does not answer.
    """
    states = read_policies(_beans(url, BEANS))
    return next((one for one in states if one.blocks == "replicated blocks"), None)


def decisions(url: str) -> dict[str, int]:
    """Number of decisions of the policy by reason since its start; empty under HDFS's own policy.

    Raises:
        OSError: The NameNode does not answer.
    """
    state = policy_state(url)
    return {} if state is None else state.decisions


def _beans(url: str, query: str) -> list[Mapping[str, Any]]:
    try:
        return NameNode(url).beans(query)
    except InputError as error:
        # The NameNode is a part of the cluster, and no input.
        raise OSError(str(error)) from None
