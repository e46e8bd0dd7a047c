"""Traffic matrices from packets: captures (pcap, pcapng), and what switches export (sFlow, NetFlow, IPFIX).

Choreo profiles an app with "sFlow or tcpdump" (section 2.1). Each packet, and each exported record, is
traffic from one address to another; a mapping says whose addresses are. Sampled traffic is scaled by its
sampling rate, and each cell has the standard error that comes of it. What could not be counted is in
`Capture.discards`, by reason.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath

import numpy
import pyarrow
from pyarrow import compute

from leeward import _native
from leeward._files import check_once
from leeward._native import Cluster
from leeward.errors import InputError
from leeward.matrix.lists import summed
from leeward.matrix.series import Series, seconds

BY = ("address", "host", "rack", "service")
"""What a matrix may be by."""
SIZES = ("frame", "ip")
"""Which bytes of a packet count."""
CONTENTS = ("auto", "packets", "exports")
"""What captured packets are: traffic, or datagrams that tell of it."""
CONFIDENT = 1.96
"""Standard errors either way that hold 95 % of a normal distribution."""
MOST_PORTS = 1000
MOST_SAMPLING = 2**32 - 1


@dataclass(frozen=True)
class Capture:
    """What captures came to."""

    interval_s: int
    """The length of an interval, in seconds."""
    cells: pyarrow.Table
    """A row for each interval and pair that sent anything, by time and names: `t_s` (int64, when the
    interval begins, a multiple of its length since 1970), `src`, `dst`, `bytes`, `packets` (int64, scaled
    by the sampling rate), `samples` (int64, packets that were seen), `stderr` (float64, the standard error
    of the bytes; 0 unless sampled)."""
    sources: pyarrow.Table
    """Who saw traffic: `protocol`, `name` (a file, or an address), `flows` (packets or records), `bytes`.
    What two of them saw is counted twice."""
    unknown: pyarrow.Table
    """Addresses that belong nowhere: `address`, `bytes` of their traffic, the most first; at most 50,000."""
    discards: pyarrow.Table
    """What was not counted, or was with a doubt (`kept`): `reason`, `detail`, `kept`, `count`, `bytes`,
    `meaning`, `examples`."""
    counters: pyarrow.Table
    """Counters of interfaces that sFlow agents sent, where they are asked for: `t_ms`, `device`, `interface`,
    `in_octets`, `out_octets`, `speed_bps` (0: unknown), in order of arrival."""

    def series(self, tasks: Sequence[str] | None = None) -> Series:
        """The cells as a series of matrices, without a gap.

        Args:
            tasks: The names of all places in the order that matrices have, also those that never sent. By
                default names are sorted (`r2` before `r10`).

        Raises:
            InputError: There are no cells, or more than a series has room for; or a place is not among
                `tasks`.
        """
        if not len(self.cells):
            raise InputError("capture", None, None, None, "no traffic between places that are known")
        sources, targets = (self.cells[name].combine_chunks().dictionary_encode() for name in ("src", "dst"))
        known = {
            name: at
            for at, name in enumerate(
                dict.fromkeys([*sources.dictionary.to_pylist(), *targets.dictionary.to_pylist()])
            )
        }
        ends = numpy.stack(
            [
                numpy.array([known[name] for name in column.dictionary.to_pylist()], dtype=numpy.int64)[
                    column.indices.to_numpy()
                ]
                for column in (sources, targets)
            ],
            axis=1,
        )
        starts = self.cells["t_s"].to_numpy() // self.interval_s
        sizes = self.cells["bytes"].to_numpy().astype(numpy.float64)
        return summed("capture", self.interval_s, tuple(known), starts, ends, sizes, tasks)

    def total(self) -> pyarrow.Table:
        """The cells summed over time, the most bytes first.

        Columns: `src`, `dst`, `bytes`, `packets`, `samples`, `stderr`.
        """
        squared = compute.multiply(self.cells["stderr"], self.cells["stderr"])
        sums = [(name, "sum") for name in ("bytes", "packets", "samples", "variance")]
        table = self.cells.append_column("variance", squared).group_by(["src", "dst"]).aggregate(sums)
        columns = {name: table[f"{name}_sum"] for name in ("bytes", "packets", "samples")}
        columns["stderr"] = compute.sqrt(table["variance_sum"])
        made = pyarrow.table({"src": table["src"], "dst": table["dst"], **columns})
        return made.sort_by([("bytes", "descending"), ("src", "ascending"), ("dst", "ascending")])


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
    progress: Callable[[int], None] | None = None,
) -> Capture:
    """Reads captures into one traffic matrix.

    Args:
        files: Captures in pcap or pcapng, or files of IPFIX messages; plain or gzip. They may be longer
            than memory.
        mapping: A file that says whose addresses are, and what services there are: YAML, CSV
            (`address,host`), or lines as in `/etc/hosts`.
        cluster: The network, with a mapping. Then all names of that must be hosts or racks of it.
        by: One of `BY`; by default `host` with a mapping, otherwise `address`.
        interval: The length of an interval, such as `1h` or `5min`.
        size: `frame`, from the Ethernet header to the end of the payload, or `ip`, the IP packet.
        content: `packets`, if each packet counts; `exports`, if they are sFlow, NetFlow or IPFIX datagrams
            and what they tell counts; `auto`, what the first IP packet of each file is.
        ports: More ports that such datagrams are sent to, beside 6343, 2055 and 4739.
        sampling: How many packets each seen one stands for, where the capture or the exporter does not tell.
        counters: Whether counters of interfaces are kept, which sFlow agents send between packets.
        progress: Called with the bytes of a file that were read since the last call.

    Raises:
        InputError: A file cannot be read or is of another kind, or an argument is not right.
    """
    length = seconds(interval)
    paths = [fspath(file) for file in ([files] if isinstance(files, str | PathLike) else files)]
    if not paths:
        raise _wrong("files", "none; expected at least one capture")
    if wrong := [port for port in ports if not 0 < port < 2**16]:
        raise _wrong("ports", f"{wrong[0]}: expected ports from 1 to 65535")
    if len(ports) > MOST_PORTS:
        raise _wrong("ports", f"{len(ports):,}: more than {MOST_PORTS:,}")
    if sampling is not None and not 1 <= sampling <= MOST_SAMPLING:
        raise _wrong("sampling", f"{sampling}: expected one packet in 1 to {MOST_SAMPLING}")
    check_once(paths, "files")
    if by is None:
        by = "address" if mapping is None else "host"
    if by == "address" and mapping is not None:
        raise _wrong("mapping", "by address no place is looked for; expected it with host, rack or service")
    if cluster is not None and mapping is None:
        raise _wrong("cluster", "expected with a mapping, whose places it has")
    tables = _native.read_capture(
        paths,
        by=by,
        interval_s=length,
        mapping=None if mapping is None else fspath(mapping),
        cluster=cluster,
        size=size,
        content=content,
        ports=list(ports),
        sampling=sampling,
        counters=counters,
        progress=progress,
    )
    return Capture(length, *tables)


def _wrong(name: str, message: str) -> InputError:
    return InputError(name, None, None, None, message)
