"""A Grafana dashboard of the recording rules."""

from typing import Any

from leeward._quantities import percent_text
from leeward.export.rules import CAPACITY, HOT, LOAD, RATE, UTILIZATION, Watch, duration
from leeward.telemetry.units import UNIT_PPM

SCHEMA_VERSION = 39
"""Schema version of Grafana 11; later versions upgrade it."""
WIDTH, HEIGHT = 24, 8
"""Width of the grid, and height of a usual panel."""
RATE_OF_DAY = "Hotspot rate, last day"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_SELECTOR = '{cross_section=~"$cross_section",direction=~"$direction"}'


def dashboard(watch: Watch) -> dict[str, Any]:
    """The dashboard, in Grafana's import format."""
    hot = watch.settings.hot_ppm / 1e6
    step = duration(watch.settings.interval_ms)
    series = {name: f"{name}{_SELECTOR}" for name in (UTILIZATION, LOAD, CAPACITY, HOT)}
    has_speed = watch.source.speed is not None
    least_share = f"{watch.settings.fell:g}"
    loss = f"{series[CAPACITY]} < {least_share} * max_over_time({CAPACITY}{_SELECTOR}[1d])"
    loss_now = (
        f"{series[CAPACITY]} and on (link) ({CAPACITY} < {least_share} * max_over_time({CAPACITY}[1d]))"
    )
    panels = [
        panel("stat", "Hot links now", f"sum({series[HOT]})", "none", 4),
        panel("stat", "Links seen", f"count({series[UTILIZATION]})", "none", 4),
        # Each link-interval counts equally, even of a link that was seen in few intervals.
        panel(
            "stat",
            RATE_OF_DAY,
            f"sum(sum_over_time({HOT}{_SELECTOR}[1d])) / sum(count_over_time({HOT}{_SELECTOR}[1d]))",
            "percentunit",
            4,
        ),
        panel(
            "stat",
            "Links above 105 %",
            f"count({series[UTILIZATION]} > {UNIT_PPM / 1e6:g}) or vector(0)",
            "none",
            4,
        ),
        # Only ports show lost capacity: a cluster file holds the intended capacity.
        *(
            [panel("stat", "Links that lost capacity", f"count({loss}) or vector(0)", "none", 4)]
            if has_speed
            else []
        ),
        panel(
            "stat",
            "Links without telemetry, of those of the last day",
            f"count(max_over_time({UTILIZATION}{_SELECTOR}[1d]) unless on (link) {UTILIZATION}) or vector(0)",
            "none",
            4,
        ),
        panel(
            "timeseries",
            "Hotspot rate by cross-section",
            f"{RATE}{_SELECTOR}",
            "percentunit",
            12,
            "{{cross_section}} {{direction}}",
        ),
        panel(
            "timeseries",
            "Utilization of the ten busiest links",
            f"topk(10, {series[UTILIZATION]})",
            "percentunit",
            12,
            "{{link}}",
            hot,
        ),
        panel(
            "status-history",
            "Hot times of the twenty links that were hot most often",
            f"{HOT}{_SELECTOR} and on (link) topk(20, sum_over_time({HOT}{_SELECTOR}[1d]) > 0)",
            "none",
            24,
            "{{link}}",
            1,
        ),
        _table(
            f"Hot links: number of hot intervals of {step} in the last day",
            f"sort_desc(sum_over_time({HOT}{_SELECTOR}[1d]) > 0)",
            "none",
        ),
        _table(
            "Busiest links: p98 of utilization in the last day",
            f"topk(20, quantile_over_time(0.98, {UTILIZATION}{_SELECTOR}[1d]))",
            "percentunit",
        ),
        *(
            [panel("timeseries", "Capacity of links that lost capacity", loss_now, "bps", 12, "{{link}}")]
            if has_speed
            else []
        ),
        panel(
            "timeseries", "Load of the ten busiest links", f"topk(10, {series[LOAD]})", "bps", 12, "{{link}}"
        ),
    ]
    return board(
        "leeward-hotspots",
        "Hotspots",
        f"A link is hot in an interval of {step} if its utilization is above {percent_text(hot, None)}."
        " From the recording rules of leeward export prometheus-rules.",
        ["leeward", "network"],
        [datasource(), _variable("cross_section"), _variable("direction")],
        panels,
    )


def board(
    uid: str,
    title: str,
    description: str,
    tags: list[str],
    variables: list[dict[str, Any]],
    panels: list[dict[str, Any]],
) -> dict[str, Any]:
    """A dashboard of panels, in rows from the left."""
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": tags,
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "timepicker": {},
        "timezone": "",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": variables},
        "panels": lay_out(panels),
    }


def panel(
    kind: str,
    title: str,
    expression: str,
    unit: str,
    width: int,
    legend: str = "",
    threshold: float | None = None,
) -> dict[str, Any]:
    """A panel of one query."""
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if threshold is not None:
        steps.append({"color": "red", "value": threshold})
    stat = kind == "stat"
    return {
        "type": kind,
        "title": title,
        "datasource": _SOURCE,
        "gridPos": {"h": HEIGHT // 2 if stat else HEIGHT, "w": width, "x": 0, "y": 0},
        "fieldConfig": {
            "defaults": {"unit": unit, "thresholds": {"mode": "absolute", "steps": steps}},
            "overrides": [],
        },
        "options": {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
        if stat
        else {},
        "targets": [
            {
                "refId": "A",
                "datasource": _SOURCE,
                "expr": expression,
                "legendFormat": legend or "__auto",
                "instant": stat,
                "range": not stat,
            }
        ],
    }


def _table(title: str, expression: str, unit: str) -> dict[str, Any]:
    """A panel with a row for each link."""
    table = panel("table", title, expression, unit, WIDTH // 2)
    table["targets"][0] |= {"instant": True, "range": False, "format": "table"}
    hidden = {"Time": True, "__name__": True}
    table["transformations"] = [
        {"id": "organize", "options": {"excludeByName": hidden, "indexByName": {}, "renameByName": {}}}
    ]
    return table


def lay_out(panels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Panels with numbers and places, in rows from the left."""
    x = y = height = 0
    for number, one in enumerate(panels, 1):
        place = one["gridPos"]
        if x + place["w"] > WIDTH:
            x, y, height = 0, y + height, 0
        one["id"] = number
        place |= {"x": x, "y": y}
        x, height = x + place["w"], max(height, place["h"])
    return panels


def datasource() -> dict[str, Any]:
    """The choice of a Prometheus server."""
    return {"type": "datasource", "name": "datasource", "label": "Prometheus", "query": "prometheus"}


def _variable(label: str) -> dict[str, Any]:
    """A choice among the values of a label."""
    query = f"label_values({UTILIZATION}, {label})"
    return {
        "type": "query",
        "name": label,
        "label": label.replace("_", "-"),
        "datasource": _SOURCE,
        "query": {"query": query, "refId": "labels"},
        "definition": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }
