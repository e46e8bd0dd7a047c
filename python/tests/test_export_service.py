"""Rules and dashboard of the service: planted faults fire the alerts, and every metric exists."""

import json
import re
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from leeward.export.dashboard import WIDTH
from leeward.export.service import ServiceWatch, dashboard, recordings, rules, text
from test_serve import serving

Promtool = Callable[..., subprocess.CompletedProcess[str]]
Run = Callable[..., Any]
WATCH = ServiceWatch()


def expressions() -> list[str]:
    """Every expression of rules and dashboard."""
    board = [target["expr"] for one in dashboard(WATCH)["panels"] for target in one["targets"]]
    return [one["expr"] for one in rules(WATCH)["groups"][0]["rules"]] + board


def check(promtool: Promtool, path: Path, command: str = "check") -> str:
    result = promtool(command, "rules", path.name, folder=path.parent)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_promtool_accepts_rules_and_every_query(promtool: Promtool, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(text(WATCH))
    check(promtool, tmp_path / "rules.yaml")
    records = [{"record": f"a{at}", "expr": one} for at, one in enumerate(expressions())]
    (tmp_path / "queries.yaml").write_text(yaml.safe_dump({"groups": [{"name": "a", "rules": records}]}))
    assert f"SUCCESS: {len(records)} rules found" in check(promtool, tmp_path / "queries.yaml")


RESPONSES = 'http_server_request_duration_seconds_count{{http_response_status_code="{}"}}'
PLACING = (
    'http_server_request_duration_seconds_bucket{{http_request_method="POST",'
    'http_route="/v1/place/tasks",le="{}"}}'
)
LATE = 'leeward_promise_late_requests_total{workload="mail"}'
HEALTHY = {
    "up{}": "1x60",
    "leeward_leads{}": "1x60",
    "process_start_time_seconds{}": "1000x60",
    'leeward_refusals_total{type="broken"}': "0x60",
    'leeward_store_transactions_total{outcome="failed"}': "0x60",
    'leeward_store_transactions_total{outcome="kept"}': "0+10x60",
    'leeward_placements_total{kind="replicas",outcome="placed"}': "0+100x60",
    'leeward_placements_total{kind="replicas",outcome="refused"}': "0+1x60",
    'leeward_fallbacks_total{kind="replicas",reason="no telemetry"}': "0+1x60",
    'leeward_links{state="seen"}': "100x60",
    'leeward_links{state="unseen"}': "0x60",
    'leeward_agents{state="silent"}': "0x60",
    'leeward_promises{state="unenforced"}': "0x60",
    'leeward_enforcers{state="expired"}': "0x60",
    'leeward_promise_requests_total{workload="mail"}': "0+1000x60",
    LATE: "0+5x60",
    'leeward_promise_allowed_late_ratio{workload="mail"}': "0.01x60",
    'leeward_hosts{state="up"}': "40x60",
    "leeward_slow_links{}": "0x60",
    "leeward_telemetry_remarks{}": "0x60",
    'leeward_moves_total{state="expired"}': "0x60",
    "leeward_connections_refused_total{}": "0x60",
    'leeward_connections{listener="main"}': "100x60",
    'leeward_connections_limit{listener="main"}': "512x60",
    "process_open_fds{}": "100x60",
    "process_max_fds{}": "1024x60",
    "leeward_clock_steps_total{}": "0x60",
    RESPONSES.format(201): "0+100x60",
    RESPONSES.format(503): "0x60",
    PLACING.format("0.01"): "0+100x60",
    PLACING.format("1"): "0+100x60",
    PLACING.format("+Inf"): "0+100x60",
}
FAULTS = {
    "LeewardServiceDown": {"up{}": "1x10 0x50"},
    "LeewardServiceHasNoLeader": {"leeward_leads{}": "1x10 0x50"},
    "LeewardServiceRestarts": {"process_start_time_seconds{}": "1000+100x60"},
    "LeewardServiceBroken": {'leeward_refusals_total{type="broken"}': "0x50 1x10"},
    "LeewardServiceErrors": {RESPONSES.format(503): "0+50x60"},
    "LeewardStoreFails": {'leeward_store_transactions_total{outcome="failed"}': "0x50 1x10"},
    "LeewardPlacementsSlow": {PLACING.format("0.01"): "0+10x60"},
    "LeewardPlacementsRefused": {'leeward_placements_total{kind="replicas",outcome="refused"}': "0+50x60"},
    "LeewardPlacementsFallBack": {
        'leeward_fallbacks_total{kind="replicas",reason="no telemetry"}': "0+50x60"
    },
    "LeewardServiceLinksUnseen": {'leeward_links{state="unseen"}': "3x60"},
    "LeewardAgentsSilent": {'leeward_agents{state="silent"}': "0x10 2x50"},
    "LeewardLinksSlow": {"leeward_slow_links{}": "1x60"},
    "LeewardPromisesUnenforced": {'leeward_promises{state="unenforced"}': "0x10 1x50"},
    "LeewardEnforcersSilent": {'leeward_enforcers{state="expired"}': "0x10 2x50"},
    "LeewardPromiseBurnsFast": {LATE: "0+200x60"},
    "LeewardPromiseBurnsSlowly": {LATE: "0+100x60"},
    "LeewardPromiseBurnsLastingly": {LATE: "0+20x60"},
    "LeewardTelemetryDoubtful": {"leeward_telemetry_remarks{}": "1x60"},
    "LeewardMovesExpire": {'leeward_moves_total{state="expired"}': "0x10 1x50"},
    "LeewardConnectionsExhausted": {"leeward_connections_refused_total{}": "0x50 5x10"},
    "LeewardConnectionsNearLimit": {'leeward_connections{listener="main"}': "500x60"},
    "LeewardConnectionsTooFew": {'leeward_hosts{state="up"}': "600x60"},
    "LeewardFilesNearLimit": {"process_open_fds{}": "1000x60"},
    "LeewardClockSet": {"leeward_clock_steps_total{}": "0x50 1x10"},
}


def planted(series: dict[str, str], expected: set[str]) -> dict[str, Any]:
    """A test of promtool with these series: exactly the expected alerts fire after half an hour."""
    names = [one["alert"] for one in rules(WATCH)["groups"][0]["rules"] if "alert" in one]
    labels = 'job="leeward",instance="leeward:7600"'
    inputs = []
    for name, values in series.items():
        metric, _, matchers = name.partition("{")
        separator = "," if matchers != "}" else ""
        inputs.append({"series": f"{metric}{{{labels}{separator}{matchers}", "values": values})
    return {
        "interval": "30s",
        "input_series": inputs,
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)',
                "eval_time": "29m",
                "exp_samples": [{"labels": "{}", "value": int(name in expected)}],
            }
            for name in names
        ],
    }


def test_each_planted_fault_fires_its_alert_and_no_other(promtool: Promtool, tmp_path: Path) -> None:
    assert set(FAULTS) == {one["alert"] for one in rules(WATCH)["groups"][0]["rules"] if "alert" in one}
    (tmp_path / "rules.yaml").write_text(text(WATCH))
    tests = [planted(HEALTHY, set())]
    tests += [planted(HEALTHY | fault, {name}) for name, fault in FAULTS.items()]
    file = {"rule_files": ["rules.yaml"], "evaluation_interval": "30s", "tests": tests}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(file))
    assert "SUCCESS" in check(promtool, tmp_path / "test.yaml", "test")
    # The test of the rules fails with a wrong expectation.
    tests[0] = planted(HEALTHY, {"LeewardClockSet"})
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(file))
    assert promtool("test", "rules", "test.yaml", folder=tmp_path).returncode == 1


def test_every_metric_of_rules_and_dashboard_exists(tmp_path: Path) -> None:
    with serving(tmp_path, "--policy", "sinbad:without_telemetry=default") as service:
        assert service.ask("POST", "/v1/place/replicas", {"size": "256MiB"})[0] == 201
        assert service.ask("GET", "/v1/hosts/nobody")[0] == 404
        # A promise has metrics of its own.
        assert service.ask("PATCH", "/v1/cluster", {"priorities": 7})[0] == 200
        link = [{"rate": "1MB/s", "burst": "64kB"}]
        curves = {"network-in": link, "network-out": link, "storage": [{"rate": "5%", "burst": "4ms"}]}
        slo = {"percentile": 99, "latency": "500ms"}
        mail = {"name": "mail", "client": "r0h0", "server": "r1h0", "slo": slo, "curves": curves}
        assert service.ask("POST", "/v1/workloads", {"workload": mail})[0] == 201
        assert service.ask("GET", "/v1/status")[0] == 200
        request = urllib.request.Request(service.url + "/metrics", headers={"accept": "text/plain"})
        with urllib.request.urlopen(request, timeout=30) as response:
            assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
            scraped = response.read().decode()
    exposed = {re.split(r"[{ ]", line)[0] for line in scraped.splitlines() if not line.startswith("#")}
    # A word before a brace or at the end of a name; functions have a parenthesis instead.
    named = {
        name
        for one in expressions()
        for name in re.findall(r"\b(?:leeward|process|http_server)_[a-z_]+(?![a-z_:=]|\s*=~?)", one)
    }
    assert len(named) > 25
    assert named <= exposed, sorted(named - exposed)


def test_the_dashboard_queries_recorded_series_and_fits_the_grid() -> None:
    board = json.loads(json.dumps(dashboard(WATCH), allow_nan=False))
    assert set(re.findall(r"leeward:[a-z0-9_:]+", json.dumps(board))) <= set(recordings(WATCH))
    assert board["uid"] != "leeward-hotspots"
    cells: set[tuple[int, int]] = set()
    for one in board["panels"]:
        place = one["gridPos"]
        assert place["x"] + place["w"] <= WIDTH
        taken = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken
        cells |= taken


@pytest.mark.parametrize("job", ["leeward", 'a"b'])
def test_the_commands_write_the_files_with_the_job(run: Run, tmp_path: Path, job: str) -> None:
    result = run("export", "service-rules", "--scrape-job", job)
    assert result.returncode == 0, result.stderr
    assert yaml.safe_load(result.stdout) == rules(ServiceWatch(job))
    result = run("export", "service-grafana", "--scrape-job", job, "--out", "board.json")
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "board.json").read_text()) == dashboard(ServiceWatch(job))
