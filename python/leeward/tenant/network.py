"""The network between a tenant's hosts: assumed before a measurement, and measured by these hosts."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leeward.errors import InputError
from leeward.tenant.fleet import Fleet, HostError
from leeward.tenant.hosts import Host

NIC = "1Gbps"
"""Rate of each host before the network is measured: that of EC2's and HP Cloud's machines in the paper."""
SLOW = 0.6
"""Rate of the slow fifth of EC2's paths as a share of the others': 296 to 900 against 900 to 1,100 Mb/s."""
TRAIN_S = 1.0
"""Time of a train: less than a second (Choreo, section 4.1)."""
TRANSFER_S = 3.5
"""Time of a transfer of the search for bottlenecks, with the longer one beside it."""
PAIRS = 20
"""Pairs of paths that the search draws of each kind."""
LEAST_SEARCHED = 3
"""Least number of hosts of a search for bottlenecks."""
_SLOWNESS = 10.0
"""Factor of its expected time within which a survey must end."""
_LEAST_LIMIT_S = 600.0


@dataclass(frozen=True)
class Survey:
    """A measurement of all paths between the hosts."""

    cluster: dict[str, Any]
    """The network, in the fields of a cluster file, with the processors and memory of the hosts."""
    kind: str | None
    """Kind of the network that the search for bottlenecks found; None without a search."""
    seconds: float
    """Time that the measurement took."""
    sent_bytes: int
    """Bytes that left the hosts in this time."""


def assumed(hosts: Sequence[Host], nic: str = NIC) -> dict[str, Any]:
    """A network in which every host sends at the same rate and nothing else limits: a hose.

    Its round-trip times are zero, so that bounds on them are judged by measured ones only.

    Raises:
        InputError: The rate is invalid.
    """
    from leeward._quantities import read_rate

    read_rate("nic", nic)
    content = {
        "name": "assumed",
        "shape": "hose",
        "nic": nic,
        "rtt": {"network": "0s"},
        "hosts": [{"name": host.name} for host in hosts],
    }
    return with_resources(content, hosts)


def varied(hosts: Sequence[Host], nic: str = NIC) -> dict[str, Any]:
    """An assumed network whose rates differ as on EC2 in Choreo's figure 2: a fifth of the hosts is slow.

    Raises:
        InputError: The rate is invalid.
    """
    from leeward._quantities import rate_literal, read_rate

    slow = rate_literal(round(SLOW * read_rate("nic", nic)))
    content = assumed(hosts, nic)
    entries = [one if at % 5 else {**one, "nic": slow} for at, one in enumerate(content["hosts"])]
    return {**content, "hosts": entries}


def with_resources(content: Mapping[str, Any], hosts: Sequence[Host]) -> dict[str, Any]:
    """The fields of a cluster file, with the processors, memory and cost of the tenant's hosts.

    Raises:
        InputError: The cluster lacks a host.
    """
    by_name = {host.name: host for host in hosts}
    known: set[str] = set()

    def with_own(entries: object) -> list[Any]:
        if not isinstance(entries, list) or not all(
            isinstance(one, dict) and "name" in one for one in entries
        ):
            raise InputError.about(
                "cluster", "expected a mesh with a list of named hosts, as probes write it"
            )
        result = []
        for entry in entries:
            known.add(entry["name"])
            host = by_name.get(entry["name"])
            own = {"cpus": host.cpus, "memory": host.memory, "cost": host.cost} if host else {}
            result.append({**entry, **{key: value for key, value in own.items() if value is not None}})
        return result

    if isinstance(content.get("racks"), list):
        racks = [{**rack, "hosts": with_own(rack.get("hosts"))} for rack in content["racks"]]
        changed = {**content, "racks": racks}
    else:
        changed = {**content, "hosts": with_own(content.get("hosts"))}
    if missing := [name for name in by_name if name not in known]:
        raise InputError.about("cluster", f"has no host `{missing[0]}`; expected all hosts of the run")
    return changed


def other_hosts(content: Mapping[str, Any], hosts: Sequence[Host]) -> list[str]:
    """Hosts in the fields of a cluster file that the tenant does not have, on which no task can start."""
    own = {host.name for host in hosts}
    racks = content["racks"] if isinstance(content.get("racks"), list) else [content]
    return [entry["name"] for rack in racks for entry in rack["hosts"] if entry["name"] not in own]


def survey_s(hosts: int, *, alone: bool = False, bottlenecks: bool = False) -> float:
    """Expected time of a measurement of all paths between a number of hosts, in seconds.

    Args:
        hosts: Number of hosts.
        alone: True if one train runs at a time; otherwise each host takes part in one.
        bottlenecks: True if shared bottlenecks are searched too.
    """
    others = hosts - 1
    trains_s = TRAIN_S * others * (hosts if alone else 2)
    if not bottlenecks:
        return trains_s
    from_one = min(PAIRS, hosts * others * (hosts - 2) // 2)
    between_four = min(PAIRS, hosts * others * (hosts - 2) * (hosts - 3) // 2)
    pairs = from_one + between_four
    # The first path of each pair is measured alone too.
    return trains_s + TRANSFER_S * (pairs + min(pairs, hosts * others))


def start_listeners(fleet: Fleet) -> str:
    """Starts a listener for measurements on each host, and returns their secret.

    Raises:
        HostError: A host cannot listen, such as because it listens already.
    """
    secret = secrets.token_hex(16)
    for name, host in fleet.hosts.items():
        listen = "[::]" if ":" in host.address else "0.0.0.0"
        fleet.order(name, "listen", address=f"{listen}:{host.probe_port}", secret=secret)
    fleet.answers("listening", fleet.hosts)
    return secret


def measure(fleet: Fleet, secret: str | None, **arguments: Any) -> Survey:
    """Orders the first host to measure all paths between the hosts, which must listen.

    Args:
        fleet: Hosts that carry out no other order.
        secret: Secret of their listeners.
        arguments: Further arguments of `leeward.probe.mesh`.

    Raises:
        HostError: A host does not answer, or a path could not be measured.
    """
    import yaml

    first = next(iter(fleet.hosts))
    hosts = [(host.name, host.probe) for host in fleet.hosts.values()]
    before = _sent_bytes(fleet)
    fleet.order(first, "mesh", arguments={"hosts": hosts, "secret": secret, **arguments})
    alone, bottlenecks = arguments.get("at_once") == 1, arguments.get("bottlenecks", False)
    expected_s = survey_s(len(hosts), alone=alone, bottlenecks=bottlenecks)
    (event,) = fleet.answers("measured", [first], max(_LEAST_LIMIT_S, _SLOWNESS * expected_s))
    sent = _sent_bytes(fleet) - before
    result = event["result"]
    for path in result["paths"]:
        if path["error"]:
            raise HostError(path["from"], f"the path to {path['to']} could not be measured: {path['error']}")
    search = result["bottlenecks"]
    content = with_resources(yaml.safe_load(result["cluster"]), list(fleet.hosts.values()))
    return Survey(content, search and search["kind"], event["seconds"], sent)


def _sent_bytes(fleet: Fleet) -> int:
    for name in fleet.hosts:
        fleet.order(name, "count")
    return sum(event["bytes"] for event in fleet.answers("counted", fleet.hosts))
