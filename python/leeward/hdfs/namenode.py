"""The state of a NameNode, from its servlet `/jmx`, or from a file with the answer of this servlet."""

import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from leeward._http import connections, root_cause
from leeward._quantities import bytes_text
from leeward.errors import InputError
from leeward.hdfs.blocks import Block, block_name, read_block
from leeward.hdfs.policy import BEANS, FORM_ERRORS, STATES, PolicyState, read_decision, read_policies

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

    def __init__(self, url: str = URL, ca: str | PathLike[str] | None = None) -> None:
        """Takes the address of its web interface; sends nothing yet.

        Args:
            url: The address.
            ca: PEM file with the authorities of its certificate; by default the system's.

        Raises:
            InputError: The address is invalid; or `ca` is given for an address without https, or is no file
                of certificates.
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
        self._tls = None if ca is None else _trust(ca, parts.scheme)

    def state(self) -> NameNodeState:
        """Its present state.

        Raises:
            InputError: The NameNode does not answer, or the answer is not that of a NameNode.
        """
        return _state(self.beans, self._invalid)

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
        try:
            return read_decision(self._attribute(blocks, attribute))
        except FORM_ERRORS as error:
            raise self._invalid(f"no decision of its Leeward policy ({error!r})") from None

    def decisions(self, blocks: str, path: str = "") -> list[dict[str, Any]]:
        """Stored decisions of its Leeward policy, the latest first.

        Args:
            blocks: `replicated blocks` or `erasure-coded blocks`.
            path: Text that the path of the file contains; empty for all.

        Raises:
            InputError: The NameNode does not answer, or not with decisions.
        """
        try:
            return [read_decision(text) for text in self._attribute(blocks, f"Decisions,{path}")]
        except FORM_ERRORS as error:
            raise self._invalid(f"no decisions of its Leeward policy ({error!r})") from None

    def beans(self, query: str) -> list[Mapping[str, Any]]:
        """Beans whose names match a pattern of JMX.

        Raises:
            InputError: The NameNode does not answer, or not with beans.
        """
        return _beans(self._get(f"/jmx?{urlencode({'qry': query})}"), self._invalid)

    def _attribute(self, blocks: str, name: str) -> Any:
        """An attribute of the policy's bean that is shown on demand.

        Raises:
            FORM_ERRORS: The answer has another form than expected.
            InputError: The NameNode does not answer.
        """
        text = self._get(f"/jmx?{urlencode({'get': f'{STATES[blocks]}::{name}'})}")
        return json.loads(text)["beans"][0][name]

    def _get(self, path: str) -> bytes:
        """Body of an answer with status 200."""
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

        pool = connections(self.url, self._tls)
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
            raise self._rejected(answer.status, answer.reason)
        if len(body) > MOST_BYTES:
            raise self._invalid(f"larger than {bytes_text(MOST_BYTES, None)}")
        return body

    def _unreachable(self, why: str) -> InputError:
        error = InputError.about("namenode", f"{self.url}: {why}")
        error.add_note("the NameNode's web interface has the address dfs.namenode.http-address")
        return error

    def _rejected(self, status: int, reason: str | None) -> InputError:
        if status not in (401, 403):
            return self._unreachable(f"{status} {reason}")
        message = f"{self.url}: {status} {reason}: its web interface asks for a login"
        error = InputError.about("namenode", message)
        error.add_note(f"curl --negotiate -u : {self.url}/jmx > jmx.json; leeward hdfs check --jmx jmx.json")
        return error

    def _invalid(self, why: str) -> InputError:
        return InputError.about("namenode", f"{self.url}: not the answer of a NameNode: {why}")


class SavedNameNode:
    """A NameNode whose servlet `/jmx` gave the content of a file.

    It stands in for a NameNode whose web interface asks for a login: `curl --negotiate` logs in by Kerberos.
    """

    def __init__(self, file: str | PathLike[str]) -> None:
        """Reads the file.

        Raises:
            InputError: The file cannot be read, or is not such an answer.
        """
        self._file = str(file)
        try:
            with Path(file).open("rb") as stream:
                text = stream.read(MOST_BYTES + 1)
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise InputError.about("jmx", f"`{file}`: {why}") from None
        if len(text) > MOST_BYTES:
            raise self._invalid(f"larger than {bytes_text(MOST_BYTES, None)}")
        self._beans = _beans(text, self._invalid)

    def state(self) -> NameNodeState:
        """The state of the NameNode at that time.

        Raises:
            InputError: The file lacks a bean, or one has an unknown form.
        """
        return _state(
            lambda query: [one for one in self._beans if fnmatchcase(str(one.get("name")), query)],
            self._invalid,
        )

    def _invalid(self, why: str) -> InputError:
        error = InputError.about("jmx", f"`{self._file}`: not the answer of a NameNode: {why}")
        error.add_note("curl --negotiate -u : https://NAMENODE:9871/jmx > FILE makes such a file")
        return error


def _trust(ca: str | PathLike[str], scheme: str) -> ssl.SSLContext:
    """TLS settings with the authorities of a file."""
    if scheme != "https":
        raise InputError.about("ca", f"`{ca}`: only valid for an address with https")
    try:
        return ssl.create_default_context(cafile=str(ca))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError.about("ca", f"`{ca}`: {why}") from None


def _beans(text: bytes, invalid: Callable[[str], InputError]) -> list[Mapping[str, Any]]:
    """Beans of an answer; `invalid` makes the error about another one."""
    try:
        beans = json.loads(text)["beans"]
    except FORM_ERRORS:
        raise invalid("no list of beans as JSON") from None
    if not isinstance(beans, list) or not all(isinstance(bean, dict) for bean in beans):
        raise invalid("no list of beans as JSON")
    return beans


def _state(
    beans: Callable[[str], list[Mapping[str, Any]]], invalid: Callable[[str], InputError]
) -> NameNodeState:
    """State of a NameNode, from its beans by the pattern of their names."""

    def bean(name: str) -> Mapping[str, Any]:
        found = beans(name)
        if len(found) != 1:
            raise invalid(f"no bean {name}")
        return found[0]

    info, status = bean(_INFO), bean(_STATUS)
    policies = read_policies(beans(BEANS))
    try:
        return NameNodeState(
            version=str(info["SoftwareVersion"]),
            role=str(status["State"]),
            safe_mode=str(info["Safemode"]).strip() or None,
            datanodes=_datanodes(json.loads(info["LiveNodes"])),
            policies=policies,
        )
    except FORM_ERRORS as error:
        raise invalid(f"unknown form of {_INFO} or {_STATUS} ({error!r})") from None


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
