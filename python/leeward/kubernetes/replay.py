"""The replay of a recording: pods come in the order of their creation, and the plugin's rule chooses nodes.

Each decision sees the means of the last whole interval, with two changes. The traffic of pods that the trial
moved is on their new racks. And pods that came after this interval began count with their peak, until their
traffic is in a mean: a pod that came within it counts for the share of the interval before it came (the rule
of the ledger for an estimator of weight 1).

A pod takes its recorded traffic to its new rack. Nothing says with whom it talks, so all of its traffic
counts on the links of its rack.
"""

from collections import Counter, deque
from collections.abc import Callable
from zlib import crc32

import numpy

from leeward.kubernetes.demand import Peaks, peaks_of
from leeward.kubernetes.engine import Engine
from leeward.kubernetes.filters import Room
from leeward.kubernetes.outcome import Move, Outcome, racks_of
from leeward.kubernetes.recording import Pod, Recording


def replay(
    recording: Recording,
    hot: float = 0.75,
    seed: int = 1,
    advance: Callable[[int], None] = lambda _: None,
    measured: bool = True,
) -> Outcome:
    """Places the pods of a recording again.

    Args:
        recording: The recording.
        hot: Utilization above which a rack is hot.
        seed: Seed of ties.
        advance: Called after each pod.
        measured: False to ignore measured peaks, as a scheduler in its first hour does.
    """
    with Engine(recording.nodes, recording.rack_bps) as engine:
        trial = _Trial(recording, engine, seed, measured)
        for time_ms, comes, at in _events(recording):
            if comes:
                trial.come(at, time_ms)
                advance(1)
            else:
                trial.end(at)
    racks, before, after = racks_of(recording, hot, trial.racks, trial.recorded, trial.loads)
    return Outcome(
        recording,
        hot,
        racks,
        before,
        after,
        tuple(trial.moves),
        trial.stayed,
        dict(sorted(trial.not_judged.items(), key=lambda item: (-item[1], item[0]))),
        trial.ran_before,
        dict(sorted(trial.peaks.items())),
    )


def _events(recording: Recording) -> list[tuple[int, bool, int]]:
    """Times at which pods come and end; those that end at a time make room for those that come then."""
    events = [(pod.created_ms, True, at) for at, pod in enumerate(recording.pods)]
    events += [
        (max(pod.ended_ms, pod.created_ms + 1), False, at)
        for at, pod in enumerate(recording.pods)
        if pod.ended_ms is not None and pod.ended_ms <= recording.end_ms
    ]
    return sorted(events)


class _Trial:
    """State of a replay.

    Attributes:
        racks: Racks, in the order of the rows of rates.
        recorded: Rates out of racks and into them, as recorded.
        loads: The same with the trial's placements.
        moves: Pods on other nodes.
        stayed: Number of judged pods that stayed.
        not_judged: Number of pods by reason.
        ran_before: Number of pods that came before there was a mean to decide by.
        peaks: Number of judged pods by the source of their peak.
    """

    def __init__(self, recording: Recording, engine: Engine, seed: int, measured: bool) -> None:
        self._recording, self._engine, self._seed = recording, engine, seed
        self._room = Room(recording.nodes, recording.templates)
        self._number = {node.name: at for at, node in enumerate(recording.nodes)}
        self._with_rack = numpy.array([node.rack is not None for node in recording.nodes], dtype=numpy.bool_)
        self._measured = Peaks(recording) if measured else None
        self._node_of: dict[int, int] = {}
        self._pending: deque[tuple[int, int, tuple[int, int]]] = deque()
        self.racks = sorted(recording.rack_bps)
        self._row = {rack: row for row, rack in enumerate(self.racks)}
        ways = (recording.out, recording.into)
        self.recorded = [numpy.array([way[rack] for rack in self.racks], dtype=numpy.float64) for way in ways]
        self.loads = [way.copy() for way in self.recorded]
        self.moves: list[Move] = []
        self.stayed = self.ran_before = 0
        self.not_judged: Counter[str] = Counter()
        self.peaks: Counter[str] = Counter()

    def come(self, at: int, time_ms: int) -> None:
        """Places a pod."""
        pod = self._recording.pods[at]
        own = self._number.get(pod.node)
        interval = self._recording.interval_of(time_ms)
        node = own
        if interval < 1:
            self.ran_before += 1
        else:
            measured = None if self._measured is None else self._measured.before(pod, interval)
            peaks = peaks_of(self._recording.templates[pod.template], measured)
            peak_bps = (0 if peaks[0] is None else peaks[0][0], 0 if peaks[1] is None else peaks[1][0])
            reason = self._reason(at, own, peaks != (None, None), interval)
            if reason is None and own is not None:
                chosen = self._choose(pod, own, peak_bps, time_ms)
                if isinstance(chosen, str):
                    reason = chosen
                else:
                    node = chosen
                    self._judge(at, own, node, peak_bps)
                    larger = max((one for one in peaks if one is not None), key=lambda one: one[0])
                    self.peaks[larger[1].value] += 1
            if reason is not None:
                self.not_judged[reason] += 1
            rack = None if node is None else self._recording.nodes[node].rack
            if rack is not None and any(peak_bps):
                self._pending.append((time_ms, self._row[rack], peak_bps))
        if node is not None:
            self._node_of[at] = node
            self._room.take(node, pod.template)

    def end(self, at: int) -> None:
        """Ends a pod."""
        node = self._node_of.pop(at, None)
        if node is not None:
            self._room.take(node, self._recording.pods[at].template, -1)

    def _reason(self, at: int, own: int | None, has_peak: bool, interval: int) -> str | None:
        """Reason for which the trial cannot judge a pod."""
        pod = self._recording.pods[at]
        unfit = self._recording.templates[pod.template].unfit
        rack = None if own is None else self._recording.nodes[own].rack
        if unfit is not None or own is None or rack is None:
            return unfit or "node_unknown"
        if not self._room.accepting(pod.template)[own]:
            return "filters_changed"
        if not has_peak:
            return "no_demand"
        if at not in self._recording.traffic:
            return "no_traffic"
        if any(numpy.isnan(way[self._row[rack], interval - 1]) for way in self.loads):
            return "no_telemetry"
        return None

    def _choose(self, pod: Pod, own: int, peak_bps: tuple[int, int], time_ms: int) -> int | str:
        """Node of a pod by the plugin's rule, or the reason without one."""
        nodes = self._recording.nodes
        flags = self._room.candidates(pod.template, own, time_ms) & self._with_rack
        if not flags.any():
            return "no_room"
        candidates = {nodes[int(at)].name for at in numpy.flatnonzero(flags)}
        seed = crc32(f"{self._seed}/{pod.uid}".encode())
        choice = self._engine.choose(self._now(time_ms), peak_bps, candidates, seed)
        if choice.node is None:
            return "no_telemetry"
        chosen = self._number[choice.node]
        best = choice.points[str(nodes[chosen].rack)]
        # The plugin does not prefer another rack, so the other plugins decide as they did.
        if flags[own] and choice.points.get(str(nodes[own].rack), -1) >= best:
            return own
        return chosen

    def _now(self, time_ms: int) -> dict[str, tuple[float, float]]:
        """Loads of racks that the scheduler would see at a time."""
        recording = self._recording
        last = recording.interval_of(time_ms) - 1
        begin = recording.begin_ms + last * recording.interval_ms
        while self._pending and self._pending[0][0] <= begin:
            self._pending.popleft()
        seen = [way[:, last].copy() for way in self.loads]
        for came_ms, row, peak_bps in self._pending:
            share = min(1.0, (came_ms - begin) / recording.interval_ms)
            for way, bps in zip(seen, peak_bps, strict=True):
                way[row] += share * bps
        return {rack: (float(seen[0][row]), float(seen[1][row])) for rack, row in self._row.items()}

    def _judge(self, at: int, own: int, node: int, peak_bps: tuple[int, int]) -> None:
        """Counts a judged pod, and takes its traffic to its new rack."""
        if node == own:
            self.stayed += 1
            return
        pod, nodes, traffic = self._recording.pods[at], self._recording.nodes, self._recording.traffic[at]
        source, target = (str(nodes[one].rack) for one in (own, node))
        part = slice(traffic.first, traffic.first + len(traffic.out))
        for way, rates in zip(self.loads, (traffic.out, traffic.into), strict=True):
            moved = numpy.nan_to_num(rates)
            row = way[self._row[source]]
            # Two exporters measure a pod and its node, so a pod may have a little more than its rack.
            moved = numpy.minimum(moved, numpy.nan_to_num(row[part], nan=numpy.inf))
            row[part] -= moved
            way[self._row[target]][part] += moved
        self.moves.append(
            Move(
                namespace=pod.namespace,
                pod=pod.name,
                workload=pod.workload,
                created_ms=pod.created_ms,
                source=nodes[own].name,
                source_rack=source,
                target=nodes[node].name,
                target_rack=target,
                egress_bps=peak_bps[0],
                ingress_bps=peak_bps[1],
            )
        )
