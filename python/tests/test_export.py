"""Rules and dashboard: promtool and a real Prometheus compute the same results as `leeward hotspots`."""

import json
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
import yaml

from leeward import Cluster, InputError
from leeward.export.dashboard import RATE_OF_DAY, WIDTH, dashboard
from leeward.export.patterns import find_unsupported
from leeward.export.promql import SNMP, Ports, Source, links, quote
from leeward.export.rules import HOT, UTILIZATION, Watch, duration, recordings, rules, text
from leeward.hotspots.settings import Settings
from leeward.telemetry import Engine, Samples, windows
from leeward.telemetry.samples import COLUMNS

Run = Callable[..., Any]
Promtool = Callable[..., subprocess.CompletedProcess[str]]
CADENCE = 30_000
INTERVAL = 300_000
FABRIC = Source(
    "fabric",
    {"in": "ifHCInOctets", "out": 'ifHCOutOctets{job="snmp"}'},
    8,
    "ifHighSpeed",
    10**6,
    (
        Ports(
            {"instance": r"tor(?P<rack>\d+)", "ifName": r"up\d+"},
            {"in": "r{rack}:downlink", "out": "r{rack}:uplink"},
        ),
        Ports(
            {"instance": r"tor(?P<rack>\d+)", "ifName": r"eth(?P<host>\d+)"},
            {"in": "r{rack}h{host}:egress", "out": "r{rack}h{host}:ingress"},
        ),
        Ports({"instance": "core"}, {"in": "{ifName}:uplink", "out": "{ifName}:downlink"}),
    ),
    ({"ifName": "mgmt.*"}, {"instance": "tor9", "ifName": "up1"}),
)
WATCH = Watch(FABRIC, Settings(), CADENCE, ("p0",))
PORTS = Watch(SNMP, Settings(), CADENCE)


def check_rules(promtool: Promtool, path: Path, command: str = "check") -> str:
    result = promtool(command, "rules", path.name, folder=path.parent)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("watch", [WATCH, PORTS], ids=["map", "ports"])
def test_promtool_accepts_the_rules(promtool: Promtool, tmp_path: Path, watch: Watch) -> None:
    (tmp_path / "rules.yaml").write_text(text(watch, "made by a test"))
    assert f"SUCCESS: {len(rules(watch)['groups'][0]['rules'])} rules found" in check_rules(
        promtool, tmp_path / "rules.yaml"
    )


def port(name: str, instance: str, port: str, values: str) -> dict[str, str]:
    job = ',job="snmp"' if name == "ifHCOutOctets" else ""
    return {"series": f'{name}{{instance="{instance}",ifName="{port}"{job}}}', "values": values}


def test_promtool_finds_planted_hotspots_and_fires_their_alerts(promtool: Promtool, tmp_path: Path) -> None:
    """Uplinks have two 1 Gb/s ports. r0's carries 1.6 Gb/s all day, r1's for 30 minutes; r2 loses a port."""
    day = 24 * 120
    busy, calm = 30 * 100_000_000, 30 * 25_000_000
    # Prometheus assumes that a counter which begins at 0 has just started.
    zero = 10**12
    series = []
    for instance, values in (
        ("tor0", f"{zero}+{busy}x{day}"),
        ("tor1", f"{zero}+{busy}x60 {zero + busy * 60 + calm}+{calm}x{day - 61}"),
        ("tor2", f"{zero}+{calm}x{day}"),
    ):
        for number in (0, 1):
            series.append(port("ifHCOutOctets", instance, f"up{number}", values))
            series.append(port("ifHCInOctets", instance, f"up{number}", f"{zero}+{calm}x{day}"))
            lost = f"1000x{day // 2} 0x{day // 2}" if (instance, number) == ("tor2", 1) else f"1000x{day}"
            series.append(port("ifHighSpeed", instance, f"up{number}", lost))
    series.append(port("ifHCOutOctets", "tor0", "mgmt0", f"0+{busy}x{day}"))

    def hot(at: str, *names: str) -> dict[str, Any]:
        samples = [{"labels": f'{{link="{name}"}}', "value": 1} for name in names]
        return {"expr": f"sum by (link) ({HOT} == 1)", "eval_time": at, "exp_samples": samples}

    def alert(at: str, name: str, *hot_links: str) -> dict[str, Any]:
        wanted = {one["alert"]: one for one in rules(WATCH)["groups"][0]["rules"] if "alert" in one}[name]
        labels = [
            {"link": link, "direction": link.split(":")[1][:-4], "cross_section": "ToR-pod"}
            | wanted["labels"]
            for link in hot_links
        ]
        expected = []
        for one in labels:
            summary = wanted["annotations"]["summary"].replace("{{ $labels.link }}", one["link"])
            annotations = wanted["annotations"] | {"summary": summary}
            expected.append({"exp_labels": one, "exp_annotations": annotations})
        return {"eval_time": at, "alertname": name, "exp_alerts": expected}

    tests: dict[str, Any] = {
        "interval": "30s",
        "input_series": series,
        "promql_expr_test": [
            hot("5m", "r0:uplink", "r1:uplink"),
            hot("30m", "r0:uplink", "r1:uplink"),
            hot("35m", "r0:uplink"),
            {
                "expr": f'{UTILIZATION}{{link="r0:uplink"}}',
                "eval_time": "1h",
                "exp_samples": [
                    {
                        "labels": f'{UTILIZATION}{{link="r0:uplink",direction="up",cross_section="ToR-pod"}}',
                        "value": 0.8,
                    }
                ],
            },
            {
                "expr": 'leeward:hotspot_rate:ratio{direction="up"} * 3',
                "eval_time": "10m",
                "exp_samples": [{"labels": '{cross_section="ToR-pod",direction="up"}', "value": 2}],
            },
            {"expr": f'{HOT}{{link=~".*mgmt.*"}}', "eval_time": "1h", "exp_samples": []},
        ],
        "alert_rule_test": [
            alert("5m", "LeewardLinkHotMinutes", "r0:uplink", "r1:uplink"),
            alert("55m", "LeewardLinkHotHours"),
            alert("1h", "LeewardLinkHotHours", "r0:uplink"),
            alert("23h55m", "LeewardLinkHotDays"),
            alert("24h", "LeewardLinkHotDays", "r0:uplink"),
            alert("11h", "LeewardLinkLostCapacity"),
            alert("13h", "LeewardLinkLostCapacity", "r2:downlink", "r2:uplink"),
            alert("13h", "LeewardTelemetryMissing"),
            alert("13h", "LeewardLinkUnseen"),
        ],
    }
    (tmp_path / "rules.yaml").write_text(text(WATCH, "made by a test"))
    test_file = {"rule_files": ["rules.yaml"], "evaluation_interval": "5m", "tests": [tests]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test_file))
    assert "SUCCESS" in check_rules(promtool, tmp_path / "test.yaml", "test")
    # The rule test fails with a wrong expectation: here, r1 is hot for five minutes longer.
    tests["promql_expr_test"][2] = hot("35m", "r0:uplink", "r1:uplink")
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test_file))
    assert promtool("test", "rules", "test.yaml", folder=tmp_path).returncode == 1


def test_a_link_without_recent_samples_raises_an_alert(promtool: Promtool, tmp_path: Path) -> None:
    series = [
        port(name, "tor0", "up0", values)
        for name, values in (
            ("ifHCOutOctets", "0+1000x120"),
            ("ifHCInOctets", "0+1000x120"),
            ("ifHighSpeed", "1000x120"),
        )
    ]
    alerts = {one["alert"]: one for one in rules(WATCH)["groups"][0]["rules"] if "alert" in one}
    gone, unseen = alerts["LeewardTelemetryMissing"], alerts["LeewardLinkUnseen"]
    missing = [
        {"exp_labels": job | gone["labels"], "exp_annotations": gone["annotations"]}
        for job in ({}, {"job": "snmp"})
    ]
    lost = []
    for link, way in (("r0:downlink", "down"), ("r0:uplink", "up")):
        labels = {"link": link, "direction": way, "cross_section": "ToR-pod"} | unseen["labels"]
        summary = unseen["annotations"]["summary"].replace("{{ $labels.link }}", link)
        lost.append({"exp_labels": labels, "exp_annotations": unseen["annotations"] | {"summary": summary}})
    tests = [
        {"eval_time": "1h", "alertname": "LeewardTelemetryMissing", "exp_alerts": []},
        {"eval_time": "1h", "alertname": "LeewardLinkUnseen", "exp_alerts": []},
        {"eval_time": "1h20m", "alertname": "LeewardTelemetryMissing", "exp_alerts": missing},
        {"eval_time": "1h20m", "alertname": "LeewardLinkUnseen", "exp_alerts": lost},
    ]
    (tmp_path / "rules.yaml").write_text(text(WATCH, "made by a test"))
    test = {"interval": "30s", "input_series": series, "alert_rule_test": tests}
    test_file = {"rule_files": ["rules.yaml"], "evaluation_interval": "5m", "tests": [test]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test_file))
    assert "SUCCESS" in check_rules(promtool, tmp_path / "test.yaml", "test")


def queries(board: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def test_promtool_accepts_every_query_of_the_dashboard(promtool: Promtool, tmp_path: Path) -> None:
    records = [{"record": f"a{at}", "expr": one} for at, one in enumerate(queries(dashboard(WATCH)))]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "a", "rules": records}]}))
    assert f"SUCCESS: {len(records)} rules found" in check_rules(promtool, tmp_path / "rules.yaml")


def test_the_dashboard_queries_only_recorded_series() -> None:
    recorded = set(recordings(WATCH))
    names = {name for one in queries(dashboard(WATCH)) for name in re.findall(r"leeward:[a-z_:]+", one)}
    assert names
    assert names <= recorded


def test_the_dashboard_has_the_fields_that_grafana_requires() -> None:
    board = json.loads(json.dumps(dashboard(WATCH), allow_nan=False))
    assert {"uid": str, "title": str, "schemaVersion": int, "panels": list, "version": int}.items() <= {
        name: type(value) for name, value in board.items()
    }.items()
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", board["uid"])
    assert board["time"].keys() == {"from", "to"}
    variables = {one["name"] for one in board["templating"]["list"]}
    assert {one["type"] for one in board["templating"]["list"]} == {"datasource", "query"}
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        assert panel["type"] in {"stat", "timeseries", "table", "status-history"}
        assert panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["fieldConfig"].keys() == {"defaults", "overrides"}
        assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["value"] is None
        place = panel["gridPos"]
        assert place.keys() == {"h", "w", "x", "y"}
        assert 0 <= place["x"] <= place["x"] + place["w"] <= WIDTH
        cells = {
            (place["x"] + across, place["y"] + down)
            for across in range(place["w"])
            for down in range(place["h"])
        }
        assert not cells & taken
        taken |= cells
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for one in panel["targets"]:
            assert one["expr"]
            assert set(re.findall(r"\$\{?(\w+)", one["expr"])) <= variables


SCRAPES = 240
START = 1_767_225_600_000
OFFSETS = {"tor0": 0, "tor1": 7_123, "core": 29_999}
GAP = range(95, 131)
"""Numbers of the missing scrapes of tor1."""


def counters() -> dict[tuple[str, str, str], list[tuple[int, int]]]:
    """Readings of octets by metric, switch and port: time in milliseconds, value."""
    rng = numpy.random.default_rng(7)
    readings = {}
    for instance, ports in (("tor0", ["up0", "up1", "eth0"]), ("tor1", ["up0", "up1"]), ("core", ["p0"])):
        for name in ports:
            for metric in ("ifHCInOctets", "ifHCOutOctets"):
                level = rng.choice([0.6, 0.74, 0.75, 0.76, 0.9], SCRAPES // 10 + 2).repeat(10)[:SCRAPES]
                steps = (level * 125e6 * 30 * rng.uniform(0.97, 1.03, SCRAPES)).astype(int)
                values = 10**12 + numpy.cumsum(steps)
                readings[metric, instance, name] = [
                    (START + OFFSETS[instance] + CADENCE * number, int(value))
                    for number, value in enumerate(values)
                    if not (instance == "tor1" and number in GAP)
                ]
    return readings


def leeward_windows() -> dict[tuple[str, int], tuple[int, int]]:
    """Results of leeward on the same counters: utilization in ppm and covered time, by link and interval."""
    cluster = Cluster(
        {
            "racks": 2,
            "hosts_per_rack": 1,
            "nic": "1Gbps",
            "rack_link": "2Gbps",
            "pods": 1,
            "pod_link": "1Gbps",
        }
    )
    names = cluster.links()["name"].to_pylist()
    sums: dict[tuple[str, int], list[int]] = {}
    for (metric, instance, name), readings in counters().items():
        inwards = metric == "ifHCInOctets"
        if instance == "core":
            link = f"{name}:{'uplink' if inwards else 'downlink'}"
        elif name.startswith("eth"):
            link = f"r{instance[3:]}h{name[3:]}:{'egress' if inwards else 'ingress'}"
        else:
            link = f"r{instance[3:]}:{'downlink' if inwards else 'uplink'}"
        for (before, low), (t_ms, high) in pairwise(readings):
            if t_ms - before == CADENCE:
                sample = sums.setdefault((link, t_ms), [0, 0])
                sample[0] += 8 * (high - low)
                sample[1] += 10**9
    rows = [
        dict(zip(COLUMNS, (names.index(link), t_ms, CADENCE, bits, capacity), strict=True))
        for (link, t_ms), (bits, capacity) in sums.items()
    ]
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in COLUMNS.items()])
    engine = Engine.duckdb(threads=1)
    table = engine.table(pyarrow.Table.from_pylist(rows, schema))
    every = windows(Samples(engine, table, cluster.links(), cluster.rack_table(), CADENCE), INTERVAL)
    return {
        (names[row["link"]], row["start_ms"]): (row["ppm"], row["covered_ms"])
        for row in engine.arrow(every.table).to_pylist()
    }


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory, backfill: Any) -> Iterator[str]:
    """Address of a Prometheus that has the counters."""
    lines = []
    for (metric, instance, name), readings in sorted(counters().items()):
        job = ',job="snmp"' if metric == "ifHCOutOctets" else ""
        labels = f'{{instance="{instance}",ifName="{name}"{job}}}'
        lines += [f"{metric}{labels} {value} {t_ms / 1000:.3f}" for t_ms, value in readings]
        if metric == "ifHCInOctets":
            lines += [f"ifHighSpeed{labels} 1000 {t_ms / 1000:.3f}" for t_ms, _ in readings]
    with backfill(tmp_path_factory.mktemp("prometheus"), lines) as address:
        yield address


def prometheus_values(address: str, expression: str) -> dict[tuple[str, int], float]:
    """Results of Prometheus at the end of each interval, by link and start of the interval."""
    end = START + CADENCE * SCRAPES + INTERVAL
    fields = {"query": expression, "start": START / 1000, "end": end / 1000, "step": INTERVAL / 1000}
    body = urllib.parse.urlencode(fields).encode()
    with urllib.request.urlopen(f"{address}/api/v1/query_range", body, timeout=60) as answer:
        result = json.load(answer)["data"]["result"]
    return {
        (one["metric"]["link"], round(1000 * at) - INTERVAL): float(value)
        for one in result
        for at, value in one["values"]
    }


def expand_recordings(expression: str) -> str:
    """Returns an expression with recorded expressions in place of their names."""
    for name, recorded in reversed(recordings(WATCH).items()):
        expression = expression.replace(name, f"({recorded})")
    return expression


def test_rules_and_hotspots_call_the_same_intervals_hot(prometheus: str) -> None:
    ours = leeward_windows()
    theirs = prometheus_values(prometheus, expand_recordings(HOT))
    ratios = prometheus_values(prometheus, expand_recordings(UTILIZATION))
    # A first reading has no predecessor. An interval counts in both systems if half of it is observed.
    assert theirs.keys() == ours.keys() == ratios.keys()
    whole = {key for key, (_, covered) in ours.items() if covered == INTERVAL}
    assert len(whole) > 0.8 * len(ours)
    hot = {key for key in whole if ours[key][0] > 750_000}
    assert hot == {key for key in whole if theirs[key] == 1}
    assert 10 < len(hot) < len(whole) - 10
    for key in whole:
        assert ratios[key] * 1e6 == pytest.approx(ours[key][0] + 0.5, abs=0.51)


def test_every_query_of_the_dashboard_is_answered(prometheus: str) -> None:
    for one in queries(dashboard(WATCH)):
        plain = one.replace("$cross_section", ".*").replace("$direction", ".*")
        body = urllib.parse.urlencode({"query": plain, "time": START / 1000 + 3600}).encode()
        with urllib.request.urlopen(f"{prometheus}/api/v1/query", body, timeout=60) as answer:
            assert json.load(answer)["status"] == "success"


def test_the_hotspot_rate_of_a_day_weighs_each_interval_equally(promtool: Promtool, tmp_path: Path) -> None:
    (panel,) = (one for one in dashboard(WATCH)["panels"] if one["title"] == RATE_OF_DAY)
    query = panel["targets"][0]["expr"].replace("$cross_section", ".*").replace("$direction", ".*")
    # Link a has one interval, which is hot. Link b has three intervals, of which none is hot.
    series = [
        {"series": f'{HOT}{{link="{link}"}}', "values": values} for link, values in (("a", "1"), ("b", "0x2"))
    ]
    expected = {"expr": query, "eval_time": "10m", "exp_samples": [{"labels": "{}", "value": 0.25}]}
    tests = [{"interval": "5m", "input_series": series, "promql_expr_test": [expected]}]
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": [], "tests": tests}))
    assert "SUCCESS" in check_rules(promtool, tmp_path / "test.yaml", "test")


@pytest.mark.parametrize(
    ("ms", "text"),
    [(300_000, "5m"), (329_999, "5m29s999ms"), (90_000_000, "1d1h"), (0, "0s"), (1500, "1s500ms")],
)
def test_durations_are_in_the_prometheus_format(ms: int, text: str) -> None:
    assert duration(ms) == text


@pytest.mark.parametrize(
    ("ports", "selector", "error"),
    [
        (Ports({"a": "(?=x)y"}, {"in": "l"}), "m", "links[0].match.a: `(?=x)y`: Prometheus does not"),
        (Ports({"a": "x"}, {"in": "r{a-1}"}), "m", "links[0]: `{a-1}`: PromQL cannot compute"),
        (Ports({}, {"in": "l"}), "sum(m)", "prometheus: `sum(m)`: expected a metric"),
    ],
)
def test_maps_that_promql_cannot_express_are_rejected(ports: Ports, selector: str, error: str) -> None:
    source = Source("map.yaml", {"in": selector}, 8, "speed", 1, (ports,))
    with pytest.raises(InputError) as raised:
        links(source, selector, "in", lambda one: one)
    assert str(raised.value).startswith(f"map.yaml: {error}")


SHARED = (
    r"tor-(?P<rack>r\d+)(\..*)?", "(?:a|b)*?c+?d??", "[]a-c^]x{2,3}?y{4}z{5,}", r"[^\]\s]\.\-\x41\t",
    "(a{10}){100}", "(?i)up", "(?i:up)|a{|b}|]", r"\bup\B\A", "^a$",
)  # fmt: skip
"""Patterns with every allowed construct."""
FOREIGN = (
    r"a\Z", "(?x)a", "a(?#b)c", "a{1001}", "(a{10}){101}", "(?=a)b", "(?<!a)b", r"(a)\1", "(?P<a>b)(?P=a)",
    "(?>a)b", "a*+b", "a{2}+b", "(a)?(?(1)b|c)", "(?a)b", "a{,3}", "[[:alpha:]]", r"[\b]", r"\u0041",
)  # fmt: skip


def test_promtool_accepts_every_allowed_pattern(promtool: Promtool, tmp_path: Path) -> None:
    assert [find_unsupported(pattern) for pattern in SHARED if re.compile(pattern)] == [None] * len(SHARED)
    rules_of = [{"record": "a", "expr": f"up{{a=~{quote(pattern)}}}"} for pattern in SHARED]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "a", "rules": rules_of}]}))
    check_rules(promtool, tmp_path / "rules.yaml")


@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
@pytest.mark.parametrize("pattern", FOREIGN)
def test_a_pattern_outside_the_shared_syntax_is_rejected_with_a_hint(pattern: str) -> None:
    re.compile(pattern)
    source = Source("map.yaml", {"in": "m"}, 8, "speed", 1, (Ports({"a": pattern}, {"in": "l"}),))
    with pytest.raises(InputError, match="Prometheus does not support `") as raised:
        links(source, "m", "in", lambda one: one)
    assert raised.value.__notes__[0].startswith("allowed are letters and sets")


def test_a_cadence_above_half_an_interval_is_rejected() -> None:
    with pytest.raises(InputError, match=r"cadence: `3m`: expected at most half of an interval \(5m\)"):
        Watch(SNMP, Settings(), 180_000)


MAP = """\
prometheus: {in: ifHCInOctets, out: ifHCOutOctets, speed: ifHighSpeed}
links:
  - match: {instance: 'tor(?P<rack>\\d+)', ifName: 'up.*'}
    in: 'r{rack}:downlink'
    out: 'r{rack}:uplink'
"""


def test_the_command_writes_rules_from_a_map_and_a_cluster(
    run: Run, promtool: Promtool, tmp_path: Path
) -> None:
    (tmp_path / "map.yaml").write_text(MAP)
    fields = {"racks": 2, "hosts_per_rack": 1, "nic": "1Gbps", "oversubscription": 1, "pods": 2}
    (tmp_path / "racks.yaml").write_text(json.dumps(fields | {"pod_oversubscription": 1}))
    completed = run(
        *("export", "prometheus-rules", "--map", "map.yaml", "--cluster", "racks.yaml"),
        *("--hot", "80%", "--interval", "10min", "--cadence", "1min", "--out", "rules.yaml"),
    )
    assert (completed.returncode, completed.stdout) == (0, "")
    result = yaml.safe_load((tmp_path / "rules.yaml").read_text())["groups"][0]
    assert result["interval"] == "10m"
    assert "[10m59s999ms]" in result["rules"][0]["expr"]
    assert "(p0|p1):(uplink|downlink)" in result["rules"][0]["expr"]
    assert result["rules"][3]["expr"] == f"floor(1e6 * {UTILIZATION}) > bool 800000"
    check_rules(promtool, tmp_path / "rules.yaml")


def test_the_command_prints_a_dashboard(run: Run) -> None:
    result = run("export", "grafana", "--hot", "80%")
    assert (result.returncode, result.stderr) == (0, "")
    assert "above 80 %" in json.loads(result.stdout)["description"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--hot", "80"], "--hot: `80`: expected a percentage"),
        (["--interval", "2h"], "--interval: `2h`: expected at most an hour"),
        (["--cadence", "4min"], "--cadence: `4m`: expected at most half of an interval (5m)"),
        (["--map", "none.yaml"], "none.yaml: "),
        (["--map", "map.yaml"], "map.yaml: prometheus.speed: missing"),
    ],
)
def test_invalid_options_are_named(run: Run, tmp_path: Path, options: list[str], error: str) -> None:
    (tmp_path / "map.yaml").write_text("prometheus: {in: a, out: b}\n")
    result = run("export", "prometheus-rules", *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"error: {error}" in result.stderr
