"""Traffic matrices from packets: captures (pcap, pcapng), and exports of switches (sFlow, NetFlow, IPFIX).

Choreo profiles an app with "sFlow or tcpdump" (section 2.1). Each packet, and each exported record, is
traffic from one address to another; a mapping gives the owners of addresses. Sampled traffic is scaled by its
sampling rate, and each cell has its sampling error. `Capture.discards` counts the rest, by reason.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

import numpy
import pyarrow
from pyarrow import compute

from leeward import _native
from leeward._files import check_once
from leeward._native import Cluster
from leeward.errors import InputError
from leeward.matrix.lists import sum_transfers
from leeward.matrix.series import Series, seconds

BY = ("address", "host", "rack", "service")
"""Levels of a matrix."""
CLASS = "class"
"""Level of captures whose cells are loads of links by class of service."""
SIZES = ("frame", "ip")
"""Definitions of the size of a packet."""
CONTENTS = ("auto", "packets", "exports")
"""Content of captured packets: traffic, or datagrams that report it."""
DIRECTIONS = ("both", "ingress", "egress")
"""Places of observation: where packets enter a switch, or leave it."""
TUNNELS = ("outer", "inner")
"""Addresses of packets in tunnels."""
CONFIDENT = 1.96
"""Standard errors to either side that hold 95 % of a normal distribution."""
MOST_PORTS = 1000
MOST_SAMPLING = 2**32 - 1


@dataclass(frozen=True)
class Capture:
    """Result of reading captures."""

    interval_s: int
    """Length of an interval, in seconds."""
    cells: pyarrow.Table
    """A row for each interval and pair with traffic, by time and names: `t_s` (int64, start of the interval,
    a multiple of its length since 1970), `src`, `dst`, `bytes`, `packets` (int64, scaled by the sampling
    rate), `samples` (int64, packets seen), `stderr` (float64, the standard error of the bytes; 0 unless
    sampled)."""
    sources: pyarrow.Table
    """Observers of traffic: `protocol`, `name` (a file, or an address), `flows` (packets or records),
    `bytes`. Traffic seen by two observers counts twice."""
    unknown: pyarrow.Table
    """Addresses outside of the mapping: `address`, `bytes` of their traffic, the most first; at most
    50,000."""
    discards: pyarrow.Table
    """Traffic that was not counted, or was counted despite a doubt (`kept`): `reason`, `detail`, `kept`,
    `doubt` (the matrix may be wrong because of it), `count`, `bytes`, `meaning`, `examples`."""
    counters: pyarrow.Table
    """Counters of interfaces from sFlow agents, if requested: `t_ms`, `device`, `interface`, `in_octets`,
    `out_octets`, `speed_bps` (0: unknown), in order of arrival."""

    def series(self, tasks: Sequence[str] | None = None) -> Series:
        """The cells as a series of matrices, without a gap.

        Args:
            tasks: Names of all places in the order of matrices, including those that never sent. By default
                names are sorted (`r2` before `r10`).

        Raises:
            InputError: There are no cells, or too many for a series; or a place is not among `tasks`.
        """
        if not len(self.cells):
            raise InputError.about("capture", "no traffic between known places")
        sources, targets = (self.cells[name].combine_chunks().dictionary_encode() for name in ("src", "dst"))
        number_of = {
            name: number
            for number, name in enumerate(
                dict.fromkeys([*sources.dictionary.to_pylist(), *targets.dictionary.to_pylist()])
            )
        }
        ends = numpy.stack(
            [
                numpy.array([number_of[name] for name in column.dictionary.to_pylist()], dtype=numpy.int64)[
                    column.indices.to_numpy()
                ]
                for column in (sources, targets)
            ],
            axis=1,
        )
        starts = self.cells["t_s"].to_numpy() // self.interval_s
        sizes = self.cells["bytes"].to_numpy().astype(numpy.float64)
        return sum_transfers("capture", self.interval_s, tuple(number_of), starts, ends, sizes, tasks)

    def total(self) -> pyarrow.Table:
        """The cells summed over time, the most bytes first.

        Columns: `src`, `dst`, `bytes`, `packets`, `samples`, `stderr`.
        """
        variance = compute.multiply(self.cells["stderr"], self.cells["stderr"])
        sums = [(name, "sum") for name in ("bytes", "packets", "samples", "variance")]
        table = self.cells.append_column("variance", variance).group_by(["src", "dst"]).aggregate(sums)
        columns = {name: table[f"{name}_sum"] for name in ("bytes", "packets", "samples")}
        columns["stderr"] = compute.sqrt(table["variance_sum"])
        result = pyarrow.table({"src": table["src"], "dst": table["dst"], **columns})
        return result.sort_by([("bytes", "descending"), ("src", "ascending"), ("dst", "ascending")])


def capture(
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    mapping: str | PathLike[str] | None = None,
    cluster: Cluster | None = None,
    by: str | None = None,
    interval: str = "1h",
    size: str = "frame",
    content: str = "auto",
    ports: Sequence[int] = (),
    sampling: int | None = None,
    counters: bool = False,
    direction: str = "both",
    tunnels: str = "outer",
    progress: Callable[[int], None] | None = None,
) -> Capture:
    """Reads captures into one traffic matrix.

    Args:
        files: Captures in pcap or pcapng, or files of IPFIX messages; plain or gzip. They may be longer
            than memory.
        mapping: A file with the owners of addresses and with services: YAML, CSV (`address,host`), or lines
            as in `/etc/hosts`.
        cluster: Cluster that has all hosts and racks of the mapping; only with a mapping.
        by: One of `BY`; by default `host` with a mapping, otherwise `address`.
        interval: Length of an interval, such as `1h` or `5min`.
        size: `frame`, from the Ethernet header to the end of the payload, or `ip`, the IP packet.
        content: `packets`, to count each packet but exports; `exports`, to count the records of sFlow,
            NetFlow or IPFIX datagrams; `auto`, to decide by the first IP packet of each file.
        ports: UDP ports of exports, besides 6343, 2055 and 4739. On other ports, consistent exports are
            recognized.
        sampling: Number of packets that each seen packet stands for, if the capture or the exporter does not
            state it.
        counters: True to keep counters of interfaces, which sFlow agents send between packets.
        direction: One of `DIRECTIONS`: samples and records to count, if a switch reports both.
        tunnels: One of `TUNNELS`: the ends of a tunnel (VXLAN, Geneve, GRE, IP in IP), or of the packet in
            it.
        progress: Called with the bytes of a file read since the last call.

    Raises:
        InputError: A file cannot be read or is of another kind, or an argument is invalid.
    """
    if by is None:
        by = "address" if mapping is None else "host"
    if by == CLASS:
        raise InputError.about("by", f"`{by}`: loads of links by class are read by `class_loads`")
    return Capture(
        *read_tables(
            files,
            by=by,
            interval=interval,
            mapping=mapping,
            cluster=cluster,
            size=size,
            content=content,
            ports=ports,
            sampling=sampling,
            counters=counters,
            direction=direction,
            tunnels=tunnels,
            progress=progress,
        )
    )


def read_tables(
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    by: str,
    interval: str,
    mapping: str | PathLike[str] | None,
    cluster: Cluster | None,
    ports: Sequence[int],
    sampling: int | None,
    **settings: Any,
) -> tuple[int, pyarrow.Table, pyarrow.Table, pyarrow.Table, pyarrow.Table, pyarrow.Table]:
    """Length of an interval in seconds, and the tables of captures: the cells come first.

    Args:
        files: See `capture`, as for all other arguments.
        by: One of `BY`, or `CLASS`.
        interval: Length of an interval.
        mapping: File with the owners of addresses.
        cluster: Cluster of the hosts and racks in the mapping.
        ports: Further ports of exports.
        sampling: Number of packets that each seen packet stands for.
        settings: Further arguments of `_native.read_capture`.

    Raises:
        InputError: A file cannot be read or is of another kind, or an argument is invalid.
    """
    length = seconds(interval)
    paths = [fspath(file) for file in ([files] if isinstance(files, str | PathLike) else files)]
    if not paths:
        raise InputError.about("files", "none; expected at least one capture")
    if invalid := [port for port in ports if not 0 < port < 2**16]:
        raise InputError.about("ports", f"{invalid[0]}: expected ports from 1 to 65535")
    if len(ports) > MOST_PORTS:
        raise InputError.about("ports", f"{len(ports):,}: more than {MOST_PORTS:,}")
    if sampling is not None and not 1 <= sampling <= MOST_SAMPLING:
        raise InputError.about("sampling", f"{sampling}: expected one packet in 1 to {MOST_SAMPLING}")
    check_once(paths, "files")
    if by == "address" and mapping is not None:
        raise InputError.about(
            "mapping", "a matrix by address uses no mapping; expected it with host, rack or service"
        )
    if cluster is not None and mapping is None:
        raise InputError.about(
            "cluster", "only valid with a mapping, which names hosts and racks of the cluster"
        )
    cells, sources, unknown, discards, readings = _native.read_capture(
        paths,
        by=by,
        interval_s=length,
        mapping=None if mapping is None else fspath(mapping),
        cluster=cluster,
        ports=list(ports),
        sampling=sampling,
        **settings,
    )
    return length, cells, sources, unknown, discards, readings
