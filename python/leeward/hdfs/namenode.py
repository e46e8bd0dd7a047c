"""The state of a NameNode, from its servlet `/jmx`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from leeward._http import connections, root_cause
from leeward._quantities import bytes_text
from leeward.errors import InputError
from leeward.hdfs.blocks import Block, block_name, read_block
from leeward.hdfs.policy import BEANS, STATES, PolicyState, read_decision, read_policies

URL = "http://127.0.0.1:9870"
"""Default address of a NameNode."""
MOST_BYTES = 256 * 2**20
"""Greatest size of an answer. The list of 10,000 DataNodes has about 10 MB."""
TIMEOUT_S = 10.0
"""Time limit for a connection, and for each pause in an answer."""
_INFO = "Hadoop:service=NameNode,name=NameNodeInfo"
_STATUS = "Hadoop:service=NameNode,name=NameNodeStatus"


@dataclass(frozen=True)
class DataNode:
    """A DataNode that the NameNode counts as live.

    Attributes:
        name: Name of its host.
        address: IP address of its host.
        rack: Path of its rack, such as `/dc1/rack7`.
        serves: False for a DataNode that is decommissioned or in maintenance, or becomes so: it gets no
            blocks.
    """

    name: str
    address: str
    rack: str
    serves: bool


@dataclass(frozen=True)
class NameNodeState:
    """State of a NameNode.

    Attributes:
        version: Version of Hadoop.
        role: `active`, `standby` or `observer`.
        safe_mode: Reason of the safe mode; None outside it.
        datanodes: Live DataNodes, by name.
        policies: States of the Leeward policy, by kind of blocks; empty if the NameNode runs none.
    """

    version: str
    role: str
    safe_mode: str | None
    datanodes: list[DataNode]
    policies: list[PolicyState]


class NameNode:
    """A NameNode that answers over HTTP."""

    def __init__(self, url: str = URL) -> None:
        """Takes the address of its web interface; sends nothing yet.

        Raises:
            InputError: The address is invalid.
        """
        parts = urlsplit(url)
        try:
            is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_valid = False
        if not is_valid or parts.path.strip("/") or parts.query or parts.username is not None:
            message = f"`{url}`: expected the address of the NameNode's web interface, such as {URL}"
            raise InputError.about("namenode", message)
        self.url = url.rstrip("/")

    def state(self) -> NameNodeState:
        """Its present state.

        Raises:
            InputError: The NameNode does not answer, or the answer is not that of a NameNode.
        """
        info = self._bean(_INFO)
        status = self._bean(_STATUS)
        policies = self.policies()
        try:
            return NameNodeState(
                version=str(info["SoftwareVersion"]),
                role=str(status["State"]),
                safe_mode=str(info["Safemode"]).strip() or None,
                datanodes=_datanodes(json.loads(info["LiveNodes"])),
                policies=policies,
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise self._invalid(f"unknown form of {_INFO} or {_STATUS} ({error!r})") from None

    def policies(self) -> list[PolicyState]:
        """States of the Leeward policy; empty if the NameNode runs none.

        Raises:
            InputError: The NameNode does not answer, or a bean has an unknown form.
        """
        return read_policies(self.beans(BEANS))

    def block(self, name: str, user: str) -> Block:
        """The file and the hosts of a block, as `hdfs fsck -blockId` shows them.

        Args:
            name: Name of the block, with or without its generation stamp.
            user: A superuser of HDFS. Without Kerberos, the NameNode believes the name.

        Raises:
            InputError: The name is invalid, the NameNode does not answer, or it has no such block.
        """
        short = block_name(name)
        query = urlencode({"ugi": user, "blockId": short, "path": "/"})
        text = self._get(f"/fsck?{query}").decode(errors="replace")
        block = read_block(short, text)
        if block is None:
            why = " ".join(text.split())[:200] or "no answer"
            error = InputError.about("block", f"{short}: not found: {why}")
            error.add_note("--user names a superuser of HDFS, such as the user that runs the NameNode")
            raise error
        return block

    def explain(self, blocks: str, writer: str, size: int, copies: int) -> dict[str, Any]:
        """The decision of its Leeward policy about a new block now. Nothing is placed.

        Args:
            blocks: `replicated blocks` or `erasure-coded blocks`.
            writer: Name of the DataNode that writes.
            size: Size of the block, or of each chunk, in bytes.
            copies: Number of copies or chunks.

        Raises:
            InputError: The NameNode does not answer, or not with a decision.
        """
        attribute = f"Explain,{writer},{size},{copies}"
        text = self._get(f"/jmx?{urlencode({'get': f'{STATES[blocks]}::{attribute}'})}")
        try:
            return read_decision(json.loads(text)["beans"][0][attribute])
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise self._invalid(f"no decision of its Leeward policy ({error!r})") from None

    def beans(self, query: str) -> list[Mapping[str, Any]]:
        """Beans whose names match a pattern of JMX.

        Raises:
            InputError: The NameNode does not answer, or not with beans.
        """
        text = self._get(f"/jmx?{urlencode({'qry': query})}")
        try:
            beans = json.loads(text)["beans"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._invalid("no list of beans as JSON") from None
        if not isinstance(beans, list) or not all(isinstance(bean, dict) for bean in beans):
            raise self._invalid("no list of beans as JSON")
        return beans

    def _bean(self, name: str) -> Mapping[str, Any]:
        beans = self.beans(name)
        if len(beans) != 1:
            raise self._invalid(f"no bean {name}")
        return beans[0]

    def _get(self, path: str) -> bytes:
        """Body of an answer with status 200."""
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

        pool = connections(self.url)
        try:
            answer = pool.request(
                "GET",
                self.url + path,
                timeout=Timeout(TIMEOUT_S),
                redirect=False,
                preload_content=False,
                headers={"accept": "application/json"},
            )
            with answer:
                body = answer.read(MOST_BYTES + 1)
        except (HTTPError, OSError) as error:
            cause = root_cause(error)
            why = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
            raise self._unreachable(f"unavailable: {why}") from None
        finally:
            pool.clear()
        if answer.status != 200:
            login = ": its web interface asks for a login" if answer.status in (401, 403) else ""
            raise self._unreachable(f"{answer.status} {answer.reason}{login}")
        if len(body) > MOST_BYTES:
            raise self._invalid(f"larger than {bytes_text(MOST_BYTES, None)}")
        return body

    def _unreachable(self, why: str) -> InputError:
        error = InputError.about("namenode", f"{self.url}: {why}")
        error.add_note("the NameNode's web interface has the address dfs.namenode.http-address")
        return error

    def _invalid(self, why: str) -> InputError:
        return InputError.about("namenode", f"{self.url}: not the answer of a NameNode: {why}")


def _datanodes(live: Mapping[str, Mapping[str, Any]]) -> list[DataNode]:
    """DataNodes of the attribute `LiveNodes`: `HOST:PORT` by fields. A host with several is one."""
    found: dict[str, DataNode] = {}
    for name, fields in live.items():
        host = name.rpartition(":")[0]
        address = str(fields["xferaddr"]).rpartition(":")[0]
        rack = str(fields["location"])
        serves = str(fields["adminState"]) == "In Service"
        found.setdefault(host, DataNode(host, address, rack, serves))
    return [found[name] for name in sorted(found)]
