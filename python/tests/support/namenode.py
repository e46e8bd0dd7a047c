"""A NameNode that answers over HTTP as Hadoop 3.5 does, with the beans and the blocks of a test."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

RACKS = {f"/row1/r{rack}": [f"r{rack}h{host}" for host in range(3)] for rack in range(4)}
"""Racks of the DataNodes, with their hosts."""
BLOCK = "blk_1073741825"
METRICS = {
    "name": "Hadoop:service=NameNode,name=LeewardErasureCoded",
    "modelerType": "LeewardErasureCoded",
    "tag.Context": "dfs",
    "tag.Policy": "ccp",
    "tag.Hostname": "namenode",
    "Decisions_ranked": 7,
    "Decisions_stale": 2,
    "PlaceTimeP50Ns": 11_000,
    "UnknownDataNodes": 0,
    "SnapshotAgeMs": 410,
}
"""Source of metrics of a policy without a bean of its own."""
SUPERUSER = "hdfs"
DECISION = "decision"
"""Key of the decision of a bean that is shown on demand."""
STORED = "stored"
"""Key of the stored decisions of a bean, as JSON, that are shown on demand."""


def live_nodes(racks: Mapping[str, Sequence[str]]) -> str:
    """The attribute `LiveNodes`, for hosts by location."""
    nodes = {}
    for number, (rack, host) in enumerate((rack, host) for rack, hosts in racks.items() for host in hosts):
        nodes[f"{host}:9866"] = {
            "infoAddr": f"10.0.0.{number}:9864",
            "infoSecureAddr": f"10.0.0.{number}:0",
            "xferaddr": f"10.0.0.{number}:9866",
            "location": rack,
            "uuid": f"7d5ab5f2-{number:04}",
            "lastContact": 1,
            "usedSpace": 28672,
            "adminState": "In Service",
            "nonDfsUsedSpace": 50774499328,
            "capacity": 270553174016,
            "numBlocks": 0,
            "version": "3.5.0",
            "used": 28672,
            "remaining": 205948366848,
            "blockScheduled": 0,
            "blockPoolUsed": 28672,
            "blockPoolUsedPercent": 1.0597545e-05,
            "volfails": 0,
            "lastBlockReport": 0,
            "blockPoolUsedPercentStdDev": 0.0,
        }
    return json.dumps(nodes)


def beans(live: str, policy: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The beans of a NameNode; `policy` has fields of the policy's bean, and None leaves the bean out."""
    info = "Hadoop:service=NameNode,name=NameNodeInfo"
    status = "Hadoop:service=NameNode,name=NameNodeStatus"
    result: list[dict[str, Any]] = [
        {
            "name": info,
            "modelerType": "org.apache.hadoop.hdfs.server.namenode.FSNamesystem",
            "Total": 811659522048,
            "SoftwareVersion": "3.5.0",
            "Safemode": "",
            "LiveNodes": live,
            "DeadNodes": "{}",
        },
        {
            "name": status,
            "modelerType": "org.apache.hadoop.hdfs.server.namenode.NameNode",
            "State": "active",
            "NNRole": "NameNode",
            "HostAndPort": "localhost:8020",
            "SecurityEnabled": False,
        },
    ]
    if policy is not None:
        result.append(
            {
                "name": "Hadoop:service=NameNode,name=LeewardInfo",
                "modelerType": "dev.leeward.hdfs.Metrics",
                "Policy": "sinbad",
                "Controller": "http://leeward:7600",
                "SnapshotAgeMs": 320,
                "SnapshotMaxAgeMs": 5_000,
                "SnapshotEpoch": 41,
                "Failure": "",
                "FailureDetail": "",
                "DataNodes": 12,
                "UnknownDataNodes": [],
                "DecisionsByReason": [{"key": "ranked", "value": 17}, {"key": "stale", "value": 0}],
                # No attributes of the list: what `Decisions,...` and `Explain,...` show.
                STORED: [],
                DECISION: {
                    "time": "2026-03-02T10:00:00Z",
                    "path": "",
                    "policy": "sinbad",
                    "reason": "ranked",
                    "hosts": ["r0h0", "r2h1", "r2h0"],
                    "existing": [],
                    "steps": [
                        {
                            "scope": "~/row1/r0",
                            "host": "r2h1",
                            "reason": "ranked",
                            "racks": [{"name": "/row1/r2", "value": 8e8, "unit": "bit/s expected"}],
                        }
                    ],
                    "steps_omitted": 0,
                },
            }
            | dict(policy)
        )
    return result


def fsck(name: str, path: str, hosts: Mapping[str, str]) -> str:
    """The answer about a block that hosts store, by location."""
    lines = ["Connecting to namenode", f"FSCK started by {SUPERUSER}", f"Block Id: {name}"]
    lines += [f"Block belongs to: {path}", "No. of Expected Replica: 3"]
    lines += [f"Block replica on datanode/rack: {host}{rack} is HEALTHY" for host, rack in hosts.items()]
    return "\n".join(lines) + "\n"


@contextmanager
def namenode(beans: Sequence[Mapping[str, Any]], blocks: Mapping[str, str] | None = None) -> Iterator[str]:
    """Runs a NameNode with beans, and with the answers of fsck about blocks; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if parts.path == "/jmx" and "get" in query:
                self.show_attribute(*query["get"].split("::"))
            elif parts.path == "/jmx":
                found = [bean for bean in beans if fnmatchcase(str(bean["name"]), query["qry"])]
                hidden = (DECISION, STORED)
                shown = [{key: bean[key] for key in bean if key not in hidden} for bean in found]
                self.answer("application/json", json.dumps({"beans": shown}, indent=1))
            elif parts.path == "/fsck" and query["ugi"] == SUPERUSER:
                name = query["blockId"]
                missing = f"Block {name} does not exist\n"
                self.answer("text/plain", (blocks or {}).get(name, missing))
            elif parts.path == "/fsck":
                why = "Superuser privilege is required for operation fsck"
                text = f"Access denied for user {query['ugi']}. {why}\n\n\nFsck on path '/' FAILED"
                self.answer("text/plain", text)
            else:
                self.send_error(404)

        def show_attribute(self, name: str, attribute: str) -> None:
            bean = next(bean for bean in beans if bean["name"] == name)
            word, _, arguments = attribute.partition(",")
            value: Any
            if word == "Explain":
                writer, size, _copies = arguments.split(",")
                value = json.dumps({"writer": writer, "bytes": int(size)} | bean[DECISION])
            elif word == "Decisions":
                value = [text for text in bean[STORED] if arguments in text]
            else:
                self.send_error(404)
                return
            shown = {"name": name, "modelerType": bean["modelerType"], attribute: value}
            self.answer("application/json", json.dumps({"beans": [shown]}, indent=1))

        def answer(self, kind: str, text: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
