"""Result of every importer: hosts, the rack of each, and the pod of each rack."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from leeward._native import Cluster
from leeward._quantities import bytes_text
from leeward.errors import InputError
from leeward.telemetry.discards import Discards

MOST_BYTES = 512 * 2**20
"""Greatest size of a file."""
MOST_HOSTS = 1_000_000
"""Greatest number of hosts of a topology."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Host:
    """A host and its place.

    Attributes:
        name: Name.
        rack: Name of its rack.
        pod: Pod of its rack, if known.
        cpus: Processors, as in a cluster file; None if unknown.
        memory: Memory, as in a cluster file; None if unknown.
        nic_bps: Rate of all its interfaces, in bits per second; None if unknown.
    """

    name: str
    rack: str
    pod: str | None = None
    cpus: str | None = None
    memory: str | None = None
    nic_bps: int | None = None


@dataclass
class Topology:
    """Hosts, racks and pods.

    Attributes:
        form: Format of the files.
        files: The files.
        hosts: Hosts in the order of the files.
        rack_links: Rate of all uplinks of a rack, in bits per second, for racks whose rate is known.
        pod_links: Rate of all uplinks of a pod, in bits per second, for pods whose rate is known.
        notes: Notes on the interpretation, in sentences.
        left_out: Omissions and changes, by reason.
    """

    form: str
    files: list[str]
    hosts: list[Host] = field(default_factory=list)
    rack_links: dict[str, int] = field(default_factory=dict)
    pod_links: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    left_out: Discards = field(default_factory=Discards)
    _host_by_name: dict[str, Host] = field(default_factory=dict, repr=False)

    def cluster(
        self,
        name: str = "cluster",
        *,
        nic: str | None = None,
        rack_link: str | None = None,
        oversubscription: str | None = None,
        pod_link: str | None = None,
        pod_oversubscription: str | None = None,
    ) -> Cluster:
        """The cluster of these hosts. Speeds of links that the topology lacks are arguments.

        Args:
            name: Display name.
            nic: Rate of all interfaces of a host: `25Gbps`, `2x25Gbps`.
            rack_link: Rate of all uplinks of a rack, and of its downlinks: `4x100Gbps`; instead of
                `oversubscription`.
            oversubscription: Rate of all interfaces in a rack divided by the rate of its uplinks: `3`.
            pod_link: Rate of all uplinks of a pod, and of its downlinks; instead of `pod_oversubscription`.
            pod_oversubscription: Rate of all rack uplinks in a pod divided by the rate of the pod's uplinks.

        Raises:
            InputError: A speed is missing, is given without effect, or is invalid.
        """
        from leeward.importers.cluster_file import Speeds, cluster_file

        speeds = Speeds(nic, rack_link, oversubscription, pod_link, pod_oversubscription)
        return Cluster(cluster_file(self, speeds, name))

    def texts(self) -> list[tuple[str, str]]:
        """Name and text of each file.

        Raises:
            InputError: A file cannot be read, is larger than `MOST_BYTES` or is not text.
        """
        result = []
        for file in self.files:
            try:
                with Path(file).open("rb") as stream:
                    content = stream.read(MOST_BYTES + 1)
            except (OSError, ValueError) as error:
                why = (error.strerror if isinstance(error, OSError) else None) or str(error)
                raise InputError.about(file, why) from None
            if len(content) > MOST_BYTES:
                raise InputError.about(file, f"larger than {bytes_text(MOST_BYTES, None)}")
            try:
                result.append((file, content.decode("utf-8-sig")))
            except UnicodeDecodeError as error:
                line = content.count(b"\n", 0, error.start) + 1
                raise InputError(file, line, None, None, "not text in UTF-8") from None
        return result

    def name(self, text: str, file: str, line: int | None, field: str | None) -> str:
        """A valid name for cluster files: `-` replaces invalid characters, and changed names are counted.

        Raises:
            InputError: No valid character is left.
        """
        valid = _NOT_IN_NAMES.sub("-", text.strip()).strip("-")
        if not valid:
            message = f"`{text[:60]}`: expected a name of letters, digits, `.`, `_` and `-`"
            raise InputError(file, line, None, field, message)
        if valid != text:
            self.left_out.count("renamed", 1, f"{text[:60]} is {valid[:60]}")
        return valid

    def add(self, host: Host, file: str, line: int | None = None, field: str | None = None) -> None:
        """Adds a host; a repeated one is counted, and stays at its first place.

        Raises:
            InputError: There are more than `MOST_HOSTS`.
        """
        before = self._host_by_name.setdefault(host.name, host)
        if before is host:
            if len(self.hosts) == MOST_HOSTS:
                raise InputError(file, line, None, field, f"more than {MOST_HOSTS:,} hosts")
            self.hosts.append(host)
        elif (before.rack, before.pod) == (host.rack, host.pod):
            self.left_out.count("duplicate", 1, host.name)
        else:
            self.left_out.count("second-rack", 1, f"{host.name}: in {before.rack}, not in {host.rack}")

    def settle(self, pods: bool) -> None:
        """Makes one consistent tree of all hosts, after the last one was added.

        A single pod is left out, since it would be a second name of the core. A rack whose name occurs in
        several pods, or as a pod, becomes `pod.rack`, also if pods are left out: it stays a rack of its own.

        Raises:
            InputError: There are no hosts; or some racks have a pod and others none.
        """
        if not self.hosts:
            error = InputError.about(self.files[0], f"no hosts in what is read as {self.form}")
            counts = ", ".join(f"{number} {reason}" for reason, number, _ in self.left_out)
            if counts:
                error.add_note(f"left out: {counts}")
            raise error
        pod_names = {host.pod for host in self.hosts if host.pod is not None}
        if pods and len(pod_names) > 1:
            self._check_pods(min(pod_names))
            self._separate_racks(pod_names)
            return
        if pod_names:
            self.left_out.count("one-pod" if pods else "no-pods", len(pod_names), *sorted(pod_names)[:3])
        self._separate_racks(set())
        self.hosts = [replace(host, pod=None) for host in self.hosts]

    def _check_pods(self, pod: str) -> None:
        """Checks that each rack has a pod, as those of `pod` have."""
        for host in self.hosts:
            if host.pod is None:
                message = f"rack {host.rack}: without a pod, but others have one ({pod})"
                error = InputError.about(self.files[0], message)
                error.add_note("--no-pods joins all racks in one core")
                raise error

    def _separate_racks(self, pod_names: set[str]) -> None:
        """Renames racks whose name occurs in several pods or is among `pod_names`."""
        within: dict[str, set[str]] = {}
        for host in self.hosts:
            mine = within.setdefault(host.rack, set())
            if host.pod is not None:
                mine.add(host.pod)
        ambiguous = {rack for rack, its_pods in within.items() if len(its_pods) > 1 or rack in pod_names}
        stays = (host.rack for host in self.hosts if host.rack not in ambiguous or host.pod is None)
        used_names = {*stays, *pod_names}
        for rack in sorted(ambiguous):
            for full in sorted(f"{pod}.{rack}" for pod in within[rack]):
                if full in used_names:
                    message = f"rack {rack}: several pods have one, and the name {full} is taken"
                    raise InputError.about(self.files[0], message)
                used_names.add(full)
                self.left_out.count("renamed", 1, f"{rack} is {full}")
        self.hosts = [
            replace(host, rack=f"{host.pod}.{host.rack}")
            if host.rack in ambiguous and host.pod is not None
            else host
            for host in self.hosts
        ]

    def racks(self) -> dict[str, list[Host]]:
        """Hosts of each rack, racks in the order of the files."""
        result: dict[str, list[Host]] = {}
        for host in self.hosts:
            result.setdefault(host.rack, []).append(host)
        return result
