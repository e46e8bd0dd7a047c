"""Rules of map files: PromQL names links as the map does; rules list numbers that PromQL cannot compute."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from leeward import Cluster, InputError
from leeward.export.numbers import ends, narrow_group, numbers
from leeward.export.rules import CAPACITY, LOAD, UTILIZATION, Watch, text
from leeward.export.source import from_map
from leeward.hotspots.settings import Settings
from leeward.telemetry.mapping import read_map
from leeward.telemetry.units import COUNTERS, RATES

Run = Callable[..., Any]
Promtool = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples"
RACKS = EXAMPLES / "clusters" / "racks.yaml"
MAPS = [path for path in sorted((EXAMPLES / "telemetry").glob("*.yaml")) if "prometheus:" in path.read_text()]
PORTS = {
    "snmp_exporter": [
        {"instance": switch, "ifName": port}
        for switch in ("tor-r0", "tor-r5.dc1:9116", "spine-1")
        for port in (
            *(f"Ethernet{number}" for number in (1, 8, 9, 49, 50, 51, 52, "03", 0)),
            *("Vlan3", "Port-Channel1"),
        )
    ],
    "gnmic": [
        {"source": switch, "interface_name": port}
        for switch in ("tor-r0:57400", "tor-r5")
        for port in (
            "ethernet-1/1",
            "ethernet-1/8",
            "ethernet-1/20",
            "ethernet-1/49",
            "ethernet-1/52",
            "mgmt0",
        )
    ],
    "node_exporter": [
        {"instance": host, "device": port}
        for host in ("r0h0:9100", "r5h7.dc1:9100")
        for port in ("eth0", "eno1", "ib0")
    ],
}


def capacities(cluster: Cluster) -> dict[str, int]:
    """Capacity of each link of a cluster."""
    return dict(zip(*cluster.links().select(["name", "capacity_bps"]).to_pydict().values(), strict=True))


@pytest.fixture(scope="module")
def racks() -> dict[str, int]:
    return capacities(Cluster.from_file(RACKS))


def series(selector: str, labels: dict[str, str], values: str) -> dict[str, str]:
    """A series of a promtool test that matches a selector."""
    name, _, matchers = selector.partition("{")
    own = dict(re.findall(r'(\w+)="([^"]*)"', matchers))
    text = ",".join(f'{label}="{value}"' for label, value in {**own, **labels}.items())
    return {"series": f"{name}{{{text}}}", "values": values}


def expect(metric: str, values: dict[str, float], scale: int = 1) -> dict[str, Any]:
    """Expected values of a metric after an hour, by link; values are multiples of a factor."""
    samples = [
        {"labels": f'{{link="{link}"}}', "value": round(scale * value)}
        for link, value in sorted(values.items())
    ]
    return {"expr": f"round({scale} * sum by (link) ({metric}))", "eval_time": "1h", "exp_samples": samples}


def run_promtool(
    promtool: Promtool, folder: Path, rules: str, given: list[dict[str, str]], tests: list[dict[str, Any]]
) -> subprocess.CompletedProcess[str]:
    (folder / "rules.yaml").write_text(rules)
    test = {"interval": "30s", "input_series": given, "promql_expr_test": tests}
    test_file = {"rule_files": ["rules.yaml"], "evaluation_interval": "5m", "tests": [test]}
    (folder / "test.yaml").write_text(yaml.safe_dump(test_file))
    return promtool("test", "rules", "test.yaml", folder=folder)


@pytest.mark.parametrize("file", MAPS, ids=lambda path: path.stem)
def test_promql_and_the_map_give_ports_the_same_link_names(
    promtool: Promtool, tmp_path: Path, racks: dict[str, int], file: Path
) -> None:
    mapping = read_map(file)
    assert mapping.metrics is not None
    given, loads, speeds = [], dict[str, float](), dict[str, float]()
    for number, labels in enumerate(PORTS[file.stem]):
        for way, selector in mapping.metrics.queries.items():
            step = 30 * 1000 * (number + 1) * (2 if way == "in" else 1)
            # The first count is not 0; otherwise Prometheus assumes that the counter has just started.
            given.append(series(selector, labels, f"{10**12}+{step}x130"))
            name = mapping.link(labels, way)
            if name in racks:
                loads[name] = loads.get(name, 0) + step / 30 * COUNTERS[mapping.metrics.unit]
                speeds[name] = speeds.get(name, 0) + 1000 * RATES[mapping.metrics.speed_unit]
        if mapping.metrics.speed:
            given.append(series(mapping.metrics.speed, labels, "1000x130"))
    assert {name.rpartition(":")[2] for name in loads} >= {"egress", "ingress"}
    most = speeds if mapping.metrics.speed else {name: float(racks[name]) for name in loads}
    rules = text(Watch(from_map(file, racks), Settings(), 30_000), "made by a test")
    shares = {name: load / most[name] for name, load in loads.items()}
    tests = [expect(LOAD, loads), expect(CAPACITY, most), expect(UTILIZATION, shares, 10**9)]
    result = run_promtool(promtool, tmp_path, rules, given, tests)
    assert result.returncode == 0, result.stdout + result.stderr
    # With a wrong expectation, the test fails.
    link = min(loads)
    doubled = run_promtool(promtool, tmp_path, rules, given, [expect(LOAD, loads | {link: 2 * loads[link]})])
    assert doubled.returncode == 1


@pytest.mark.parametrize("cluster", ["irregular", "pipe"])
def test_links_without_a_speed_metric_have_the_capacity_of_the_cluster(
    promtool: Promtool, tmp_path: Path, cluster: str
) -> None:
    link_capacities = capacities(Cluster.from_file(EXAMPLES / "clusters" / f"{cluster}.yaml"))
    (tmp_path / "map.yaml").write_text("prometheus: {load: octets}\n")
    rules = text(
        Watch(from_map(tmp_path / "map.yaml", link_capacities), Settings(), 30_000), "made by a test"
    )
    given = [series("octets", {"link": link}, f"{10**12}+1000x130") for link in link_capacities]
    result = run_promtool(promtool, tmp_path, rules, given, [expect(CAPACITY, dict(link_capacities))])
    assert result.returncode == 0, result.stdout + result.stderr
    assert "LeewardLinkLostCapacity" not in rules


@pytest.mark.parametrize("file", MAPS, ids=lambda path: path.stem)
def test_every_example_of_a_map_is_exported(run: Run, promtool: Promtool, tmp_path: Path, file: Path) -> None:
    options = ("--map", str(file), "--cluster", str(RACKS))
    assert run("export", "prometheus-rules", *options, "--out", "rules.yaml").returncode == 0
    checked = promtool("check", "rules", "rules.yaml", folder=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    result = run("export", "grafana", *options)
    titles = {panel["title"] for panel in json.loads(result.stdout)["panels"]}
    assert ("Links that lost capacity" in titles) == (file.stem != "gnmic")


@pytest.mark.parametrize(
    ("file", "error", "hint"),
    [
        (
            "snmp_exporter",
            "links[1]: `{port-1}`: PromQL cannot compute with labels",
            "lists the valid numbers",
        ),
        (
            "gnmic",
            "prometheus.speed: missing: the metric of the capacity of ports",
            "gives the capacities of links",
        ),
    ],
)
def test_a_map_that_needs_a_cluster_asks_for_the_cluster_option(
    run: Run, file: str, error: str, hint: str
) -> None:
    path = EXAMPLES / "telemetry" / f"{file}.yaml"
    result = run("export", "prometheus-rules", "--map", str(path))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"error: {path}: {error}\nhint: --cluster FILE {hint}\n"


@pytest.mark.parametrize(
    ("template", "names", "error"),
    [
        ("{rack}p{port-1}:in", ["r0h0:in"], "`{rack}p{port-1}:in`: no link of the cluster has such a name"),
        (
            "h{port-501}",
            [f"h{at}" for at in range(1000)],
            "`{port-501}`: PromQL would need 1,000 steps",
        ),
    ],
)
def test_port_templates_that_promql_cannot_compute_are_rejected(
    tmp_path: Path, template: str, names: list[str], error: str
) -> None:
    (tmp_path / "map.yaml").write_text(
        "prometheus: {in: octets}\n"
        f"links: [{{match: {{port: '\\d+', rack: '(?P<r>.*)'}}, in: '{template}'}}]\n"
    )
    with pytest.raises(InputError) as raised:
        text(Watch(from_map(tmp_path / "map.yaml", dict.fromkeys(names, 1)), Settings(), 30_000), "")
    assert f"links[0]: {error}" in str(raised.value)


RACK = st.from_regex(r"[a-z]{1,3}[0-9]{0,2}[a-z._-]", fullmatch=True)


@pytest.mark.hypothesis
@given(st.lists(st.tuples(RACK, st.integers(0, 120)), max_size=8), st.integers(-3, 3))
def test_port_numbers_are_derived_from_the_link_names(hosts: list[tuple[str, int]], more: int) -> None:
    template = f"{{rack}}{{port{more:+}}}:egress"
    names = [f"{rack}{number}:egress" for rack, number in hosts]
    strangers = [f"{name}x" for name in names] + [f"{rack}007:egress" for rack, _ in hosts]
    wanted = {number - more for _, number in hosts if number >= more}
    assert numbers(template, names + strangers) == {f"{{port{more:+}}}": sorted(wanted)}


@pytest.mark.hypothesis
@given(st.sets(st.integers(0, 2000), max_size=60), st.integers(-60, 60), st.sampled_from(["", "0", "000"]))
def test_exactly_one_pattern_rewrites_a_number_to_its_sum(of: set[int], more: int, zeros: str) -> None:
    counted = {number for number in of if number + more >= 0}
    result = ends(counted, more)
    for number in counted:
        actual = [re.fullmatch(pattern, f"{zeros}{number}") for pattern in result]
        sums = [
            match.expand(sum_.replace("${1}", r"\g<1>"))
            for match, sum_ in zip(actual, result.values(), strict=True)
            if match
        ]
        assert sums == [str(number + more)]


def test_few_patterns_cover_many_numbers() -> None:
    assert len(ends(range(1, 49), -1)) == 13
    assert len(ends(range(1, 10_001), -1)) < 60


@pytest.mark.hypothesis
@given(
    st.sampled_from(
        [
            r"Eth(?P<n>\d+)",
            r"\((?P<n>(1|2)?[0-9()\]]*)\)",
            r"(?P<m>[(\[]\d)?-(?P<n>[^])\\]+)(?:/\d+)?",
            r"\\(?P<n>0\d)|x(\d+)",
        ]
    ),
    st.lists(st.integers(0, 30), min_size=1, max_size=5),
    st.sampled_from(["Eth", "(", "-", "[7-", "\\", "x"]),
    st.sampled_from(["", "0", "00"]),
    st.integers(0, 30),
    st.sampled_from(["", ")", "/3"]),
)
def test_a_narrowed_pattern_matches_like_the_pattern_for_these_numbers(
    pattern: str, to: list[int], before: str, zeros: str, number: int, after: str
) -> None:
    """Both patterns match exactly the texts in which the group is one of the numbers, or takes no part.

    The property may not hold for a group with other characters than digits. Such a text may match both
    patterns: `narrow_group` has an example.
    """
    given = f"{before}{zeros}{number}{after}"
    whole = re.fullmatch(pattern, given)
    # Rules require both patterns, so the narrowed pattern may match more names.
    both = bool(whole) and bool(re.fullmatch(narrow_group(pattern, "n", to), given))
    held = whole["n"] if whole else None
    if held is not None and not held.isdecimal():
        # The rest of the pattern may take the characters after the number: `-0/3` as `0` and `/3`.
        return
    assert both == bool(whole and (held is None or int(held) in to))
