"""The fluid simulator: flows that share links and devices max-min fairly, exactly, in continuous time."""

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from leeward import _native
from leeward._arrow import Table

if TYPE_CHECKING:
    import pyarrow

__all__ = ["simulate_flows"]


def simulate_flows(
    cluster: _native.Cluster | Mapping[str, Any] | str | PathLike[str], flows: Table
) -> "pyarrow.Table":
    """Simulates flows on a cluster and returns the time at which each ends.

    At any time, each flow has its weighted max-min fair rate over all resources it crosses. Rates change
    only when a flow arrives or finishes. The model has no latency, packets or congestion control.

    Args:
        cluster: A `Cluster`, or anything that `Cluster(...)` takes.
        flows: A table with one row per flow, in any order, with these columns. Other columns are ignored.

            - `t_arrival_s`: arrival in seconds. Flows with equal times arrive together.
            - `size_bytes`: bytes to transfer. A flow of 0 bytes finishes as it arrives.
            - `src`, `dst`: hosts at its ends, by number or name (`r3h7`). The name of a rack or pod stands
              for an unspecified host in it, whose own links are not part of the path. A flow within one host
              crosses no resource.
            - `resources`, instead of `src` and `dst`: lists of the resources it crosses, by number (see
              `Cluster.resources`) or name (`r3h7:egress`, `r3:downlink`, `r3h7:disk0:read`). All of them work
              for the flow at once, at one common rate. A device without `:read` is written to.
            - `work`, optional with `resources`: lists of the work per byte at each of them, in bits for links
              and nanoseconds of service for devices. By default 8 for links, and the work by the device's
              rate for devices.
            - `weight`, optional: weight of the flow relative to other flows; 1 by default.
            - `cap_bps`, optional: greatest rate in bits per second; null for no limit.

    Returns:
        A table with the columns `t_finish_s` and `fct_s` (from arrival to finish, in seconds), both double,
        in the order of the rows of `flows`.

    Raises:
        InputError: A column is missing or of the wrong type, or a value is null, negative, not finite, or an
            unknown name. `field` is the column; the message begins with the row, counted from 0.
    """
    return _native.simulate_flows(_native.Cluster(cluster), flows)
