"""The choice of a node by the engine: policy `utp-proactive` on the loads of a moment.

The engine ranks racks by the fuller direction of their link with the pod's peak (Hotspots, section 5.1). The
plugin scores nodes by the same utilization in whole points. It counts the links of nodes and of pods of racks
too, of which a recording has no loads. A pod leaves its rack only for a rack with more points.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from leeward import _native
from leeward.kubernetes.recording import Node

STEP = 0.01
"""Step of utilization within which racks are equal: a point of the plugin's score."""
_ROUNDING = 1e-9
"""Error of a utilization that must not cost a point, as in the plugin."""


@dataclass(frozen=True)
class Choice:
    """The engine's choice.

    Attributes:
        node: Chosen node; None if it refuses.
        points: Points of the rack of each candidate, 0 to 100.
    """

    node: str | None
    points: Mapping[str, int]


class Engine:
    """The engine on the racks of a recording; a context manager."""

    def __init__(self, nodes: Sequence[Node], rack_bps: Mapping[str, int]) -> None:
        """Takes the nodes that have a rack, and the rate of the links of each rack."""
        self._rack_of = {node.name: node.rack for node in nodes if node.rack is not None}
        racks = {rack: [name for name, of in self._rack_of.items() if of == rack] for rack in rack_bps}
        self._racks = [rack for rack, hosts in racks.items() if hosts]
        self._cluster = _native.Cluster(
            {
                "racks": [
                    # The policy reads the links of racks alone, so the interfaces of nodes need no true rate.
                    {
                        "name": rack,
                        "link": f"{rack_bps[rack]}bps",
                        "nic": f"{rack_bps[rack]}bps",
                        "hosts": [{"name": name} for name in racks[rack]],
                    }
                    for rack in self._racks
                ]
            }
        )
        # All nodes are compared, not a sample of them.
        self._policy = f"utp-proactive:sample={len(self._rack_of)}:step={STEP}"
        self._folder = TemporaryDirectory(prefix="leeward-trial-")
        self._app_bps: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        """Returns the engine."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes its files."""
        self._folder.cleanup()

    def choose(
        self,
        loads_bps: Mapping[str, tuple[float, float]],
        peak_bps: tuple[int, int],
        candidates: set[str],
        seed: int,
    ) -> Choice:
        """Chooses a node for a pod.

        Args:
            loads_bps: Load out of each rack and into it; NaN if it is unknown.
            peak_bps: Peak rate out of the pod and into it.
            candidates: Nodes that can take the pod.
            seed: Seed of ties.
        """
        lines = [
            f"{rack}:{link},{round(load)}\n"
            for rack in self._racks
            for link, load in zip(("uplink", "downlink"), loads_bps[rack], strict=True)
            if isfinite(load)
        ]
        loads = Path(self._folder.name) / "loads.csv"
        loads.write_text("link,load_bps\n" + "".join(lines), encoding="utf-8")
        answer = _native.place_tasks(
            self._cluster,
            self._policy,
            self._app(peak_bps),
            telemetry=loads,
            exclude=[name for name in self._rack_of if name not in candidates],
            seed=seed,
            explain=len(self._racks),
        )
        points = {
            self._rack_of[reason["candidate"]]: points_of(reason["objectives"]["balance"])
            for reason in (one["reason"] for one in answer["why"])
            if reason.get("objectives") is not None
        }
        return Choice(answer["tasks"][0]["host"], points)

    def _app(self, peak_bps: tuple[int, int]) -> Path:
        """File of an app that is a pod with these rates."""
        path = Path(self._folder.name) / "app.json"
        if peak_bps != self._app_bps:
            egress, ingress = ({"mean": f"{bps}bps", "peak": f"{bps}bps"} for bps in peak_bps)
            task = {"name": "pod", "egress": egress, "ingress": ingress}
            path.write_text(json.dumps({"tasks": [task]}), encoding="utf-8")
            self._app_bps = peak_bps
        return path


def points_of(utilization: float) -> int:
    """Points of a rack whose fuller link has this utilization with the pod."""
    return floor(100 * (1 - min(max(utilization, 0.0), 1.0)) + _ROUNDING)
