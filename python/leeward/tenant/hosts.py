"""Hosts of a tenant: the address at which they reach each other, and how to start a program on them.

A hosts file is YAML. `run`, `leeward`, `cpus`, `memory` and `cost` at its top are defaults for all hosts:

    run: ssh -o BatchMode=yes -o ConnectTimeout=10 {address}
    cpus: 4
    hosts:
      - {name: vm0, address: 10.0.0.2}
      - {name: vm1, address: 10.0.0.3, cpus: 8, memory: 32GiB}
"""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from leeward.errors import InputError
from leeward.probe import parse_hosts, split_address

RUN = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10 -o ServerAliveCountMax=3 {address}"
LEEWARD = "leeward"
PROBE_PORT = 7601
_FIELDS = {"name", "address", "run", "leeward", "cpus", "memory", "cost"}
_DEFAULTS = _FIELDS - {"name", "address"}


@dataclass(frozen=True)
class Host:
    """A machine on which the tenant may run programs."""

    name: str
    address: str
    """Address at which the other hosts reach it, without a port."""
    probe_port: int = PROBE_PORT
    """Port of its listener for measurements."""
    run: tuple[str, ...] = ()
    """Words before a command that starts it on this host; none for this machine."""
    leeward: tuple[str, ...] = (LEEWARD,)
    """The leeward command there."""
    cpus: str | None = None
    memory: str | None = None
    cost: str | None = None
    """Cost while it has tasks, per hour."""

    @property
    def probe(self) -> str:
        """Address of its listener for measurements."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{address}:{self.probe_port}"


def listed(
    hosts: Sequence[str],
    run: str = RUN,
    leeward: str = LEEWARD,
    cpus: str | None = None,
    memory: str | None = None,
) -> list[Host]:
    """Hosts from texts `NAME=ADDRESS` or `ADDRESS`, with the same settings.

    Args:
        hosts: Hosts; the address may have the port of the listener for measurements.
        run: Words before a command that starts it on a host; `{name}` and `{address}` are those of the host.
        leeward: The leeward command on the hosts.
        cpus: Processors of each host for tasks; by default without limit.
        memory: Memory of each host for tasks; by default without limit.

    Raises:
        InputError: A host or `run` is invalid, or two hosts have the same name.
    """
    settings = {"run": run, "leeward": leeward, "cpus": cpus, "memory": memory}
    return _checked(
        "hosts", [_host("hosts", name, address, settings) for name, address in parse_hosts(hosts)]
    )


def read_hosts(path: str | PathLike[str]) -> list[Host]:
    """Hosts of a hosts file.

    Raises:
        InputError: The file cannot be read, or a field is invalid.
    """
    import yaml

    file = fspath(path)
    try:
        with open(file, encoding="utf-8") as opened:
            content = yaml.safe_load(opened)
    except OSError as error:
        raise InputError.about(file, error.strerror or str(error)) from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else None
        raise InputError(file, line, None, None, getattr(error, "problem", None) or "not YAML") from None
    entries = content.get("hosts") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries:
        raise InputError(file, None, None, "hosts", "expected a list of hosts")
    _check_fields(file, None, content, _DEFAULTS | {"hosts"})
    defaults = {"run": RUN, "leeward": LEEWARD} | {key: content[key] for key in _DEFAULTS & set(content)}
    result = []
    for number, entry in enumerate(entries):
        place = f"hosts[{number}]"
        if not isinstance(entry, dict) or not entry.get("address"):
            raise InputError(file, None, None, place, "expected the fields `name` and `address`")
        _check_fields(file, place, entry, _FIELDS)
        address = str(entry["address"])
        try:
            ((name, address),) = parse_hosts([f"{entry['name']}={address}" if "name" in entry else address])
        except InputError as error:
            raise InputError(file, None, None, place, error.message) from None
        result.append(_host(file, name, address, defaults | entry))
    return _checked(file, result)


def lab_hosts(lab: str, cpus: str | None = None, memory: str | None = None) -> list[Host]:
    """Hosts of a lab on this machine, with their names in its cluster file.

    Args:
        lab: Name of the lab.
        cpus: Processors of each host for tasks; by default without limit.
        memory: Memory of each host for tasks; by default without limit.

    Raises:
        InputError: No lab of this name is up, or it has only one host.
    """
    from leeward.lab import machines

    # The command of this Python: `sudo` has another path.
    leeward = (str(Path(sys.executable).with_name(LEEWARD)),)
    try:
        found = [machine for machine in machines(lab) if machine.is_host]
    except OSError as error:
        raise InputError.about("lab", str(error)) from None
    hosts = [
        Host(host.name, host.address, PROBE_PORT, tuple(host.prefix), leeward, cpus, memory) for host in found
    ]
    return _checked("lab", hosts)


def _host(file: str, name: str, address: str, settings: Mapping[str, Any]) -> Host:
    bare, port = split_address(address)
    if name.startswith("-"):
        # `run` would read it as an option.
        raise InputError.about(file, f"`{name}`: expected a name that does not begin with `-`")
    words = []
    for field in ("run", "leeward"):
        text = str(settings[field])
        try:
            split = shlex.split(text)
        except ValueError as error:
            raise InputError(file, None, None, field, f"`{text}`: {error}") from None
        words.append(tuple(word.replace("{name}", name).replace("{address}", bare) for word in split))
    run, leeward = words
    values = (settings.get(key) for key in ("cpus", "memory", "cost"))
    cpus, memory, cost = (None if value is None else str(value) for value in values)
    return Host(name, bare, int(port or PROBE_PORT), run, leeward, cpus, memory, cost)


def _check_fields(file: str, place: str | None, content: Mapping[str, Any], known: set[str]) -> None:
    if unknown := sorted(str(key) for key in content if key not in known):
        field = ".".join(part for part in (place, unknown[0]) if part)
        raise InputError(file, None, None, field, f"unknown field; there are: {', '.join(sorted(known))}")


def _checked(file: str, hosts: list[Host]) -> list[Host]:
    names = [host.name for host in hosts]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError.about(file, f"`{twice[0]}`: two hosts have this name")
    if len(hosts) < 2:
        raise InputError.about(file, f"{len(hosts)} given: expected at least 2 hosts")
    return hosts
