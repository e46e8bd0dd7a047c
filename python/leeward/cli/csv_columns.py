"""Columns of `-o csv`, for each command.

The columns are a part of the stable interface: they do not depend on the data, and a minor version may only
add columns. A column is the path of a field in a row of the JSON document, such as `slo.latency_s`. Commands
whose columns depend on their options or on the scenario (impact, simulate) build them; matrix capture has
others by class.
"""

_LATENCIES = ("count", "mean", "p50", "p95", "p99", "max")
_LOAD = ("hot_h", "p98", "out_bps", "into_bps")
_OUTCOME = ("hot", "intervals", "percentile", "most")
_PATH = (
    *("from", "to", "rate_bps", "train_bps", "bound_bps", "sent_bps", "sender_limited", "overran", "loss"),
    *("rtt_s", "spread", "sent", "received", "overrun", "error"),
)
_REASON = ("candidate", "limit", "sight", "value_bps", "verdict", "because")
_SERVED = ("requests", "mean_s", "p50_s", "p99_s", "p999_s", "max_s")
_SCORES = ("wrong_bytes", "total", "median", "p90", "above_combination")
_WORKLOAD = (
    *("workload", "client", "server", "slo.percentile", "slo.latency_s", "best_effort"),
    *("bound_s", "by", "met", "why"),
)

ESTIMATE_COLUMNS = ("part", "measure", "factor", "percentile", "value", "low", "high", "gap", "judged_to")
"""Columns of impact after those of its split."""
CLASS_LOAD_COLUMNS = ("t_s", "link", "class", "load_bps", "bytes", "packets", "samples", "stderr")
"""Columns of matrix capture by class."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "circuits schedule": (
        *("scheduler", "racks", "night_s", "length_s", "week_s", "demand_bytes", "served_bytes"),
        *("left_bytes", "packets_take_s", "pairs", "days", "within_bytes"),
    ),
    "circuits simulate": (
        *("flows", "finished", "ended_s", "throughput_bps", "data_packets", "sent_packets", "sent_bytes"),
        *("dropped_packets", "dropped_bytes", "packet_packets", "packet_bytes", "circuit_packets"),
        *("circuit_bytes", "local_packets", "local_bytes", "uplink_bytes", "held_bytes", "hops_packets"),
    ),
    "cluster show": (
        *("kind", "count", "least_bps", "most_bps", "least_oversubscription", "most_oversubscription"),
    ),
    "data list": (
        *("name", "what", "repository", "commit", "licence", "redistributable", "cite", "bytes", "path"),
    ),
    "decisions": (
        *("id", "time", "kind", "ref", "client", "sequence", "key", "policy", "mode", "by_default", "note"),
        *("hosts", "racks", "limit.at", "limit.value_bps", "released"),
    ),
    "demo": (
        *("disks", "policy", *(f"full_block_write_s.{name}" for name in _LATENCIES)),
        *("held_back.free", "held_back.links", "held_back.hosts"),
    ),
    "device import": ("kind", "size_bytes", "percentile", "seconds"),
    "device profile": ("kind", "size_bytes", "percentile", "seconds", "distance_bytes"),
    "enforce net": (
        *("interface", "workload", "direction", "priority", "dscp", "class", "limits", "state", "why"),
        *("bytes", "packets", "drops", "overlimits", "waiting_bytes"),
    ),
    "enforce nfs": (
        *("at_s", "workload", "priority", "slo.percentile", "slo.latency_s", "reads", "writes", "commits"),
        *("read_bytes", "written_bytes", "over_limit", "late", "waited_s"),
        *(f"{part}.{name}" for part in ("latency", "recent") for name in _SERVED),
    ),
    "explain": ("task", *_REASON, "objectives.in_rack", "objectives.balance", "objectives.left"),
    "hdfs check": ("check", "state", "detail"),
    "hotspots": (
        *("place", "link", "hot", "rate", "since_ms", "until_ms", "open", "lasts", "cause", "evidence"),
        *("remedy", "lost", "lost_why"),
    ),
    "kubernetes trial": (
        *("rack", "link_bps", "nodes", "known_h"),
        *(f"{when}.{name}" for when in ("before", "after") for name in _LOAD),
    ),
    "lab check": (
        "part",
        "quantity",
        "unit",
        "dilation",
        "expected",
        "measured",
        "accepted.text",
        "holds",
        "note",
    ),
    "lab compare": ("figure", "unit", "simulator", "lab", "difference"),
    "lab down": ("name",),
    "lab list": ("name", "process", "up", "hosts", "since_s", "problem"),
    "lab run": (
        *("flows", "finished", "ended_s", "throughput_bps", "data_packets", "sent_packets", "sent_bytes"),
        *("dropped_packets", "dropped_bytes", "packet_packets", "packet_bytes", "circuit_packets"),
        *("circuit_bytes", "local_packets", "local_bytes", "uplink_bytes", "held_bytes", "hops_packets"),
    ),
    "lab top": ("at_s", "rack", "queued_packets", "capacity_packets", "packet_bps", "circuit_bps"),
    "lab up": ("name", "place", "address", "disks"),
    "matrix capture": ("t_s", "src", "dst", "bytes", "packets", "samples", "stderr"),
    "matrix predict": ("from", "to", "bytes"),
    "matrix score": (
        "predictor",
        *(f"{name}{end}" for name in _SCORES for end in ("", "_low", "_high")),
    ),
    "migrate": ("task", "from", "to", "link"),
    "mode": ("kind", "mode", "set", "settings"),
    "operations": (*("job", "operation", "count", "mean_s", "p50_s", "p95_s", "p99_s", "network_mean_s"),),
    "reevaluate": ("task", "from", "to"),
    "report": (
        *("kind", "decided", "by_default", "fallback", "blind", "refused", "better", "same", "worse"),
        *("unknown", "one_refused"),
    ),
    "place replicas": ("copy", "host"),
    "place tasks": ("task", "host"),
    "plan": (
        *("rack", "kind", "link", *(f"before.{name}" for name in _OUTCOME)),
        *("ports.added", "ports.now", "ports.lost", "ports.needed", "ports.speed_bps", "ports.assumed"),
        *(f"with_ports.{name}" for name in _OUTCOME),
        *("shift.percent", "shift.to", "shift.left", *(f"with_shift.{name}" for name in _OUTCOME)),
    ),
    "policies": ("kind", "name", "summary", "source", "settings"),
    "probe bottlenecks": (
        *("path.from", "path.to", "beside.from", "beside.to", "alone_bps", "beside_bps", "noise_bps"),
        *("fall", "sum", "shares"),
    ),
    "probe calibrate": (
        *("train.bursts", "train.packets", "train.bytes", "train.gap_s", "train_bytes", "paths", "error"),
        "deviation",
    ),
    "probe cross": (
        *("from", "to", "one_bps", "earlier_bps", "later_bps", "advantage", "connections", "path_bps"),
        *("plausible", "window_s"),
    ),
    "probe hops": ("from", "to", "hops"),
    "probe mesh": _PATH,
    "probe path": _PATH,
    "probe steady": ("lag_s", "pairs", "median", "mean", "p95"),
    "reproduce": (
        *("figure", "quantity", "unit", "paper", "paper_high", "ours", "ci_low", "ci_high"),
        *("deviation_percent", "deviation_points", "holds", "reason", "tested", "note"),
    ),
    "slo admit": ("workload", "present", "changed", "admitted", "runs", "refused", "disturbed"),
    "slo bound": _WORKLOAD,
    "slo change": ("stage", "priority", "limits", "own_curve", "bound_s"),
    "slo check": (
        *("workload", "traced", "slo.percentile", "slo.latency_s", "bound_s", "by", "met", "why"),
        *("seen.requests", "seen.percentile", "seen.tail_s", "seen.worst_s", "seen.late", "seen.demoted"),
        *("seen.windows", "seen.windows_met", "kept", "broken"),
    ),
    "slo curve": ("stage", "unit", "rate", "burst"),
    "slo model": (
        *("stage", "state", "share", "requests", "requests_per_s", "requests_per_step", "mean_work"),
        "sizes",
    ),
    "slo pack": (
        *("workload", "client", "server", "priority", "slo.percentile", "slo.latency_s", "bound_s", "met"),
        "why",
    ),
    "slo prioritize": _WORKLOAD,
    "slo status": (
        *("name", "client", "volume", "slo.percentile", "slo.latency_s", "bound_s", "by", "seen_s"),
        *("priority", "version", "enforcement.state", "enforcement.seen_by", "enforcement.total.requests"),
        *("enforcement.total.late", "enforcement.counted_since", "enforcement.burn", "enforcement.alerts"),
        "enforcement.places",
    ),
    "telemetry cache list": ("server", "query", "from_ms", "until_ms", "pieces", "size_bytes", "folder"),
    "tenant run": ("policy", "forecast_s", "wall_s", "cost"),
    "top": (
        *("time", "link", "capacity_bps", "measured_bps", "utilization", "pending_bps", "hot_s", "age_s"),
        "trend",
    ),
    "traces replay": (
        *("requests", "reads", "writes", "read_bytes", "written_bytes", "failed", "short", "unanswered"),
        *("most_open", "start_s", "elapsed_s"),
        *(f"{part}.{name}" for part in ("latency", "lateness") for name in _SERVED),
    ),
    "trial": (
        *("phase", "mode", "since", "until"),
        *(
            f"hot_link_hours.{name}"
            for name in ("simulated", "seen", "with_leeward", "without_leeward", "baseline")
        ),
        *("jobs", "refused", "moved", "wall_s"),
    ),
}
