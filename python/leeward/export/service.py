"""Recording rules, alerts and a dashboard of the service itself, from its metrics."""

from dataclasses import dataclass
from typing import Any

from leeward._quantities import percent_text
from leeward.export.dashboard import board, datasource, panel
from leeward.export.promises import burn, burn_recordings, promise_alerts
from leeward.export.promql import quote
from leeward.export.rules import alert, rule_file

PLACEMENTS = "leeward:placements:rate5m"
LATENCY = "leeward:placement_duration_seconds:p99_5m"
REFUSED = "leeward:placements_refused:ratio5m"
FALLBACKS = "leeward:fallbacks:ratio5m"
ERRORS = "leeward:http_errors:ratio5m"
SEEN = "leeward:links_seen:ratio"
SLOW_S = 0.1
"""99th percentile of placements in seconds above which an alert fires."""
MANY = 0.1
"""Share of refusals, of decisions by the default policy, and of failed requests that raises an alert."""
FULL = 0.9
"""Share of connections or open files in use that raises an alert."""
MINUTE = 60_000
_PLACING = "/v1/place/.*|/v1/workloads"


@dataclass(frozen=True)
class ServiceWatch:
    """Content of rules and dashboard of the service.

    Attributes:
        job: Name of the job under which Prometheus scrapes the service.
    """

    job: str = "leeward"

    def select(self, metric: str, *patterns: str, **labels: str) -> str:
        """A selector of a metric of the service with these labels."""
        matchers = [f"{name}={quote(value)}" for name, value in {"job": self.job, **labels}.items()]
        return f"{metric}{{{','.join([*matchers, *patterns])}}}"

    def leader(self, metric: str, **labels: str) -> str:
        """A metric of the service that leads. Followers may have other telemetry."""
        return f"({self.select(metric, **labels)} and on (job, instance) {self.select('leeward_leads')} == 1)"


def recordings(watch: ServiceWatch) -> dict[str, str]:
    """Expressions of recording rules by name, each after its inputs."""
    responses = watch.select("http_server_request_duration_seconds_count")
    placing = (f"http_route=~{quote(_PLACING)}", 'http_request_method="POST"')
    placements = f"rate({watch.select('leeward_placements_total')}[5m])"
    refused = f"rate({watch.select('leeward_placements_total', outcome='refused')}[5m])"
    failed = watch.select("http_server_request_duration_seconds_count", 'http_response_status_code=~"5.."')
    fallbacks = f"rate({watch.select('leeward_fallbacks_total')}[5m])"
    placed = f"rate({watch.select('leeward_placements_total', outcome='placed')}[5m])"
    seen = watch.select("leeward_links", state="seen")
    return {
        PLACEMENTS: f"sum by (kind, outcome) ({placements})",
        LATENCY: "histogram_quantile(0.99, sum by (le)"
        f" (rate({watch.select('http_server_request_duration_seconds_bucket', *placing)}[5m])))",
        REFUSED: f"sum by (kind) ({refused}) / (sum by (kind) ({placements}) > 0)",
        FALLBACKS: f"sum by (kind) ({fallbacks}) / (sum by (kind) ({placed}) > 0)",
        ERRORS: f"sum(rate({failed}[5m])) / (sum(rate({responses}[5m])) > 0)",
        SEEN: f"{seen} / ignoring (state) sum without (state) ({watch.select('leeward_links')})",
        **burn_recordings(watch.select),
    }


def rules(watch: ServiceWatch) -> dict[str, Any]:
    """Groups of recording rules and alerts, in the format of Prometheus' rule files."""
    records = [{"record": name, "expr": expression} for name, expression in recordings(watch).items()]
    group = {"name": "leeward-service", "interval": "30s", "rules": records + _alerts(watch)}
    return {"groups": [group]}


def text(watch: ServiceWatch) -> str:
    """The rule file, with its inputs in a comment at its top."""
    return rule_file(rules(watch), f"The service, as Prometheus scrapes it under job {watch.job}.")


def _alerts(watch: ServiceWatch) -> list[dict[str, Any]]:
    many = percent_text(MANY, None)
    full = percent_text(FULL, None)
    select, leader = watch.select, watch.leader
    limit = select("leeward_connections_limit", listener="main")
    table = (
        (
            "LeewardServiceDown",
            f"{select('up')} == 0 or absent({select('up')})",
            MINUTE,
            "critical",
            "Prometheus cannot scrape the service",
            "Look at its log: journalctl -u leewardd. Clients place by their default policy meanwhile.",
        ),
        (
            "LeewardServiceHasNoLeader",
            f"sum({select('leeward_leads')}) != 1",
            MINUTE // 2,
            "critical",
            "{{ $value }} services lead; one should",
            "No service makes decisions. The field stalled of /v1/status has the reason.",
        ),
        (
            "LeewardServiceRestarts",
            f"changes({select('process_start_time_seconds')}[15m]) > 2",
            0,
            "warning",
            "The service at {{ $labels.instance }} restarts again and again",
            "Its log has the reason, and systemctl status leewardd the last state.",
        ),
        (
            "LeewardServiceBroken",
            f"increase({select('leeward_refusals_total', type='broken')}[5m]) > 0",
            0,
            "critical",
            "An operation of the service at {{ $labels.instance }} failed by a defect",
            "The log has a line with panicked. Report it.",
        ),
        (
            "LeewardServiceErrors",
            f"{ERRORS} > {MANY:g}",
            5 * MINUTE,
            "warning",
            f"More than {many} of requests fail with 5xx",
            "leeward_refusals_total has the types of the problems.",
        ),
        (
            "LeewardStoreFails",
            f"increase({select('leeward_store_transactions_total', outcome='failed')}[5m]) > 0",
            0,
            "critical",
            "The store of {{ $labels.instance }} fails",
            "The service makes no decisions until the store is available. Check its disk or database.",
        ),
        (
            "LeewardPlacementsSlow",
            f"{LATENCY} > {SLOW_S:g}",
            10 * MINUTE,
            "warning",
            "One placement in a hundred takes {{ $value | humanizeDuration }} or more",
            "Compare process_cpu_seconds_total and leeward_store_transaction_seconds.",
        ),
        (
            "LeewardPlacementsRefused",
            f"{REFUSED} > {MANY:g}",
            10 * MINUTE,
            "warning",
            "{{ $value | humanizePercentage }} of placements of {{ $labels.kind }} are refused",
            "Telemetry is missing, or the cluster is full: refused requests have the reason in detail.",
        ),
        (
            "LeewardPlacementsFallBack",
            f"{FALLBACKS} > {MANY:g}",
            15 * MINUTE,
            "warning",
            "{{ $value | humanizePercentage }} of decisions on {{ $labels.kind }} are fallbacks",
            "They were left to the default policy. The label reason of leeward_fallbacks_total says why.",
        ),
        (
            "LeewardServiceLinksUnseen",
            f"{leader('leeward_links', state='unseen')} > 0",
            5 * MINUTE,
            "warning",
            "{{ $value }} links have no telemetry",
            "Placement sends no best-effort work over them.",
        ),
        (
            "LeewardAgentsSilent",
            f"{leader('leeward_agents', state='silent')} > 0",
            2 * MINUTE,
            "warning",
            "{{ $value }} hosts stopped to report",
            "Look at their agents: systemctl status leeward-agent.",
        ),
        (
            "LeewardLinksSlow",
            f"{leader('leeward_slow_links')} > 0",
            5 * MINUTE,
            "info",
            "{{ $value }} links carry less than the cluster file says",
            "Ports are down, or the cluster file is wrong.",
        ),
        (
            "LeewardTelemetryDoubtful",
            f"{select('leeward_telemetry_remarks')} > 0",
            10 * MINUTE,
            "warning",
            "The service at {{ $labels.instance }} has {{ $value }} remarks on telemetry from Prometheus",
            "/v1/status has their texts in telemetry.remarks.",
        ),
        (
            "LeewardMovesExpire",
            f"increase({select('leeward_moves_total', state='expired')}[1h]) > 0",
            0,
            "warning",
            "Advised moves expire without an answer",
            "The scheduler that answers them does not run, or takes more than five minutes.",
        ),
        (
            "LeewardConnectionsExhausted",
            f"increase({select('leeward_connections_refused_total')}[5m]) > 0",
            0,
            "critical",
            "The service at {{ $labels.instance }} rejects requests because all connections are in use",
            "Raise limits.connections, or find the clients with many connections.",
        ),
        (
            "LeewardConnectionsNearLimit",
            f"{select('leeward_connections', listener='main')} > {FULL:g} * {limit}",
            5 * MINUTE,
            "warning",
            f"More than {full} of the connections of {{{{ $labels.instance }}}} are in use",
            "Raise limits.connections before new clients are rejected.",
        ),
        (
            "LeewardConnectionsTooFew",
            f"{limit} < on (job, instance) sum by (job, instance) ({select('leeward_hosts')})",
            5 * MINUTE,
            "warning",
            "The service at {{ $labels.instance }} allows fewer connections than the cluster has hosts",
            "Restart the service, or raise limits.connections, unless telemetry comes without agents.",
        ),
        (
            "LeewardFilesNearLimit",
            f"{select('process_open_fds')} > {FULL:g} * {select('process_max_fds')}",
            5 * MINUTE,
            "warning",
            f"More than {full} of the open files of {{{{ $labels.instance }}}} are in use",
            "Raise LimitNOFILE in the unit.",
        ),
        (
            "LeewardClockSet",
            f"increase({select('leeward_clock_steps_total')}[10m]) > 0",
            0,
            "warning",
            "The clock of {{ $labels.instance }} was set",
            "Look at its NTP client. Reports by another clock are rejected.",
        ),
        *promise_alerts(leader),
    )
    return [
        alert(name, expression, wait, {"severity": severity}, summary, description)
        for name, expression, wait, severity, summary, description in table
    ]


def dashboard(watch: ServiceWatch) -> dict[str, Any]:
    """The dashboard of the service, in Grafana's import format."""
    select, leader = watch.select, watch.leader
    transactions = select("leeward_store_transaction_seconds_bucket")
    cpu = select("process_cpu_seconds_total")
    panels = [
        panel("stat", "Leader", f"sum({select('leeward_leads')})", "none", 4),
        panel("stat", "Links seen", f"min({SEEN})", "percentunit", 4),
        panel("stat", "Hot links", f"sum({leader('leeward_hot_links')})", "none", 4),
        panel("stat", "Silent agents", f"sum({leader('leeward_agents', state='silent')})", "none", 4),
        panel("stat", "Placements refused", f"max({REFUSED}) or vector(0)", "percentunit", 4),
        panel("stat", "Decisions left to default policy", f"max({FALLBACKS}) or vector(0)", "percentunit", 4),
        panel("timeseries", "Placements by outcome", PLACEMENTS, "reqps", 12, "{{kind}} {{outcome}}"),
        panel("timeseries", "99th percentile of placements", LATENCY, "s", 12, "p99", SLOW_S),
        panel(
            "timeseries",
            "Moves of tasks in an hour",
            f"sum by (state) (increase({select('leeward_moves_total')}[1h]))",
            "none",
            12,
            "{{state}}",
        ),
        panel(
            "timeseries",
            "Decisions by the default policy, by reason",
            f"sum by (kind, reason) (rate({select('leeward_fallbacks_total')}[5m]))",
            "reqps",
            12,
            "{{kind}}: {{reason}}",
        ),
        panel("timeseries", "Hosts by telemetry", leader("leeward_agents"), "none", 12, "{{state}}"),
        panel("timeseries", "Hosts by state", leader("leeward_hosts"), "none", 12, "{{state}}"),
        panel("timeseries", "Promises by state", leader("leeward_promises"), "none", 12, "{{state}}"),
        panel("timeseries", "Burn rates of SLOs over an hour", burn("1h"), "none", 12, "{{workload}}"),
        panel(
            "timeseries",
            "Reports accepted",
            f"sum by (instance) (rate({select('leeward_reports_total')}[5m]))",
            "reqps",
            12,
            "{{instance}}",
        ),
        panel("timeseries", "Requests that fail with 5xx", ERRORS, "percentunit", 12, "5xx", MANY),
        panel(
            "timeseries",
            "Problems by type",
            f"sum by (type) (rate({select('leeward_refusals_total')}[5m]))",
            "reqps",
            12,
            "{{type}}",
        ),
        panel(
            "timeseries",
            "99th percentile of transactions of the store",
            f"histogram_quantile(0.99, sum by (le, instance) (rate({transactions}[5m])))",
            "s",
            12,
            "{{instance}}",
        ),
        panel(
            "timeseries",
            "Connections",
            f"sum by (instance, listener) ({select('leeward_connections')})",
            "none",
            12,
            "{{instance}} {{listener}}",
        ),
        panel(
            "timeseries",
            "Requests in flight",
            f"sum by (instance) ({select('http_server_active_requests')})",
            "none",
            12,
            "{{instance}}",
        ),
        panel("timeseries", "Processor", f"rate({cpu}[5m])", "percentunit", 12, "{{instance}}"),
        panel(
            "timeseries",
            "Resident memory",
            select("process_resident_memory_bytes"),
            "bytes",
            12,
            "{{instance}}",
        ),
    ]
    return board(
        "leeward-service",
        "Leeward service",
        "State of the service. From its metrics and the recording rules of leeward export service-rules.",
        ["leeward"],
        [datasource()],
        panels,
    )
