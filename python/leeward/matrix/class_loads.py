"""Loads of links by class of service, from captures: the telemetry for weighted-effective utilizations.

Switches choose a queue by the code point (DSCP) of a packet, and what a class sees of a link depends on the
loads of the others (Hotspots, appendix C). Few switches count bytes by class. A packet, a sample of sFlow and
a record of NetFlow or IPFIX state the code point, and a mapping and a cluster give the links of the path.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike

import pyarrow
from pyarrow import compute

from leeward._native import Cluster
from leeward.errors import InputError
from leeward.matrix.captures import CLASS, read_tables

Points = str | int | Sequence[str | int]
"""Code points of a class: numbers, names such as `ef`, or `*` for all that no class has."""


@dataclass(frozen=True)
class ClassLoads:
    """Loads of links by class of service."""

    interval_s: int
    """Length of an interval, in seconds."""
    loads: pyarrow.Table
    """A row for each interval, link and class, in this order: `t_s` (int64, the end of the interval), `link`,
    `class`, `load_bps` (float64), `bytes`, `packets` (int64, scaled by the sampling rate), `samples` (int64,
    packets seen), `stderr` (float64, the standard error of the bytes). Links above hosts and racks of the
    mapping have a row in every interval, with a load of 0 if nothing crossed them. The first and the last
    interval are left out, since the capture does not cover them whole."""
    sources: pyarrow.Table
    """See `Capture`, as for the tables below."""
    unknown: pyarrow.Table
    discards: pyarrow.Table
    counters: pyarrow.Table

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes: all that were named, or the code points that occur."""
        if not len(self.loads):
            return ()
        first = self.loads.slice(0, 1)
        here = compute.and_(
            compute.equal(self.loads["t_s"], first["t_s"][0]),
            compute.equal(self.loads["link"], first["link"][0]),
        )
        return tuple(self.loads.filter(here)["class"].to_pylist())

    def of(self, name: str) -> pyarrow.Table:
        """Telemetry of a class: `t_s`, `link`, `load_bps`.

        A file with this table is what `leeward impact --class-telemetry` reads.

        Raises:
            InputError: There is no such class.
        """
        if name not in self.classes:
            raise InputError.about("class", f"`{name}`: expected one of {', '.join(self.classes)}")
        return self.loads.filter(compute.equal(self.loads["class"], name)).select(["t_s", "link", "load_bps"])

    def total(self) -> pyarrow.Table:
        """The loads over time, the most bytes first.

        Columns: `link`, `class`, `mean_bps`, `most_bps`, `bytes`, `packets`, `samples`, `stderr`.
        """
        variance = compute.multiply(self.loads["stderr"], self.loads["stderr"])
        sums = [(name, "sum") for name in ("bytes", "packets", "samples", "variance")]
        rates = [("load_bps", "mean"), ("load_bps", "max")]
        table = self.loads.append_column("variance", variance)
        table = table.group_by(["link", "class"]).aggregate([*rates, *sums])
        columns = {name: table[f"{name}_sum"] for name in ("bytes", "packets", "samples")}
        columns["stderr"] = compute.sqrt(table["variance_sum"])
        result = pyarrow.table(
            {
                "link": table["link"],
                "class": table["class"],
                "mean_bps": table["load_bps_mean"],
                "most_bps": table["load_bps_max"],
                **columns,
            }
        )
        return result.sort_by([("bytes", "descending"), ("link", "ascending"), ("class", "ascending")])


def class_loads(
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    mapping: str | PathLike[str],
    cluster: Cluster,
    classes: Mapping[str, Points] | None = None,
    interval: str = "1min",
    size: str = "frame",
    content: str = "auto",
    ports: Sequence[int] = (),
    sampling: int | None = None,
    counters: bool = False,
    direction: str = "both",
    tunnels: str = "outer",
    progress: Callable[[int], None] | None = None,
) -> ClassLoads:
    """Loads of links by class of service.

    The captures must hold all traffic of the links, such as the samples of all switches of one layer; traffic
    of addresses outside of the mapping is left out and counted. A class is that of the packet on the wire, in
    tunnels that of the outermost packet.

    Args:
        files: Captures, as for `capture`.
        mapping: A file with the owners of addresses: hosts and racks of the cluster.
        cluster: Cluster whose links carry the traffic.
        classes: Code points of each class, such as `{"PC": "ef", "NC": ["af41", 36], "BE": "*"}`. By default
            each code point is a class.
        interval: Length of an interval; at least three must be in the captures.
        size: See `capture`, as for the arguments below.
        content: See `capture`.
        ports: See `capture`.
        sampling: See `capture`.
        counters: See `capture`.
        direction: See `capture`.
        tunnels: See `capture`.
        progress: See `capture`.

    Raises:
        InputError: A file cannot be read or is of another kind, or an argument is invalid.
    """
    points = None if classes is None else [(name, _texts(one)) for name, one in classes.items()]
    return ClassLoads(
        *read_tables(
            files,
            by=CLASS,
            interval=interval,
            mapping=mapping,
            cluster=cluster,
            ports=ports,
            sampling=sampling,
            size=size,
            content=content,
            counters=counters,
            direction=direction,
            tunnels=tunnels,
            classes=points,
            progress=progress,
        )
    )


def _texts(points: Points) -> list[str]:
    """Code points as texts."""
    return [str(points)] if isinstance(points, str | int) else [str(point) for point in points]
