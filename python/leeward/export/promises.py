"""Recording rules and alerts about promises in force.

Windows, factors and the rule of two windows are those of "The Site Reliability Workbook" (Beyer et al.,
2018), chapter 5, "Multiwindow, Multi-Burn-Rate Alerts". The rules take the counters of all services, so that
they outlast a change of the leader.
"""

from collections.abc import Callable

WINDOWS = ("5m", "30m", "1h", "6h", "3d")
"""Windows of burn rates."""
FAST, SLOW, LASTING = 14.4, 6.0, 1.0
"""Burn rates that raise an alert over an hour, six hours and three days."""
MINUTE = 60_000

Select = Callable[..., str]
Alert = tuple[str, str, int, str, str, str]


def burn(window: str) -> str:
    """Name of the recorded burn rate in a window."""
    return f"leeward:promise_burn:rate{window}"


def burn_recordings(select: Select) -> dict[str, str]:
    """Burn rate of each workload in each window: late requests, relative to the share that may be late."""

    def rate(metric: str, window: str) -> str:
        return f"sum by (workload) (rate({select(metric)}[{window}]))"

    allowed = f"max by (workload) ({select('leeward_promise_allowed_late_ratio')})"
    late, requests = "leeward_promise_late_requests_total", "leeward_promise_requests_total"
    return {
        burn(window): f"{rate(late, window)} / ({rate(requests, window)} > 0) / {allowed}"
        for window in WINDOWS
    }


def _above(least: float, long: str, short: str) -> str:
    return f"({burn(long)} > {least:g} and {burn(short)} > {least:g})"


def promise_alerts(leader: Select) -> tuple[Alert, ...]:
    """Alerts: name, expression, time to wait in milliseconds, severity, summary and description."""
    fast, slow = _above(FAST, "1h", "5m"), _above(SLOW, "6h", "30m")
    lasting = _above(LASTING, "3d", "6h")
    return (
        (
            "LeewardPromisesUnenforced",
            f"{leader('leeward_promises', state='unenforced')} > 0",
            MINUTE,
            "warning",
            "{{ $value }} promises are not enforced",
            "An enforcer is silent, refuses or has drifted: leeward slo status has the places and reasons.",
        ),
        (
            "LeewardEnforcersSilent",
            f"{leader('leeward_enforcers', state='expired')} > 0",
            2 * MINUTE,
            "warning",
            "The leases of {{ $value }} enforcers have run out",
            "Look at their hosts. Remove those that have ended: DELETE /v1/enforcers/NAME.",
        ),
        (
            "LeewardPromiseBurnsFast",
            fast,
            0,
            "critical",
            "{{ $labels.workload }} uses up its SLO {{ $value | humanize }} times as fast as it may",
            "In an hour, it uses up at least 2 % of what its SLO permits in 30 days.",
        ),
        (
            "LeewardPromiseBurnsSlowly",
            f"{slow} unless {fast}",
            0,
            "warning",
            "{{ $labels.workload }} uses up its SLO {{ $value | humanize }} times as fast as it may",
            "In six hours, it uses up at least 5 % of what its SLO permits in 30 days.",
        ),
        (
            "LeewardPromiseBurnsLastingly",
            f"{lasting} unless {slow} unless {fast}",
            0,
            "info",
            "{{ $labels.workload }} uses up all that its SLO permits",
            "For three days, at least as many requests were late as the percentile of the SLO permits.",
        ),
    )
