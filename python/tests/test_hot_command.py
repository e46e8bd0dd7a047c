"""`leeward hotspots`: from telemetry and a cluster file to tables, JSON, Parquet and a page."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import parquet

from leeward.hotspots.causes.changes import CAUSES as CHANGES
from leeward.hotspots.durations import CLASSES
from leeward.hotspots.places import CAUSES, REMEDIES

Run = Callable[..., subprocess.CompletedProcess[str]]
EXAMPLES = Path(__file__).parents[2] / "examples"
FABRIC = (
    str(EXAMPLES / "telemetry/fabric.parquet"),
    "--cluster",
    str(EXAMPLES / "clusters/fabric.yaml"),
)


def test_the_example_prints_its_planted_hotspots_and_writes_all_files(run: Run, tmp_path: Path) -> None:
    tasks = str(EXAMPLES / "telemetry/fabric-tasks.csv")
    result = run(
        "hotspots", *FABRIC, "--tasks", tasks, "--out", "out", "--report", "page.html", "--top", "30"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("2 d from 2026-01-05 00:00 to 2026-01-07 00:00 UTC; 124 of 124 link")
    for planted in (
        r"r9:uplink +mixed +312 +54.2 %  2026-01-05 22:00  2026-01-07 00:00 +1 +26 h",
        r"r0:uplink +capacity-loss +120  capacity 25 Gb/s, 50 % of the earlier 50 Gb/s",
        r"shuffle +concentration +-  100 % of its tasks on compute racks",
        r"r7 +low-uplink +216 ",
        r"r1 +network-intensive-tasks +240 ",
        r"ToR-pod +days +provision +1 ",
    ):
        assert re.search(planted, result.stdout), planted
    assert "nan" not in result.stdout.lower()

    tables = {path.stem: parquet.read_table(path) for path in (tmp_path / "out").glob("*.parquet")}
    assert tables["runs"].num_rows == 31
    assert tables["links"].num_rows == 124
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["extent"]["hot"] == 971

    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 6
    # The page loads no other files.
    assert not re.findall(r"(?:href|src)\s*=\s*[\"'](?!#|data:)[^\"']*", page)
    assert "<script" not in page
    assert "r7" in page

    # A folder with a file of the user is not overwritten.
    (tmp_path / "out" / "mine.txt").write_text("keep")
    refused = run("hotspots", *FABRIC, "--out", "out")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "error: --out: `out`: holds `mine.txt`; expected an empty folder or an earlier result of hotspots\n"
    )


def test_json_has_the_contents_of_the_tables(run: Run) -> None:
    result = run("hotspots", *FABRIC, "-o", "json", "--hot", "80%", "--interval", "10min", "--ahead", "20min")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["settings"]["hot_ppm"] == 800_000
    assert document["extent"]["interval_ms"] == 600_000
    assert {row["name"] for row in document["links"] if row["hot"]} >= {"r0:uplink", "r1:uplink", "r7:uplink"}
    assert {row["cause"] for row in document["findings"]} >= {"capacity-loss", "demand-growth", "low-uplink"}
    assert document["forecast"]["ahead_ms"] == 1_200_000
    assert "heat" not in document


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--hot", "75"), "error: --hot: `75`: expected a percentage, such as 75%\n"),
        (("--hot", "200%"), "error: --hot: `200%`: expected more than 0 % and less than 105 %\n"),
        (("--interval", "5"), "error: --interval: "),
        (("--ahead", "7min"), "error: --ahead: `420 s`: expected a whole number of intervals of 300 s\n"),
        (("--coverage", "nan%"), "error: --coverage: `nan%`: expected a percentage, such as 75%\n"),
        (("--report", "no/page.html"), "error: --report: `no/page.html`: there is no folder `no`\n"),
        (("--split", "nowhere.csv"), "error: --split: `nowhere.csv`: no such file\n"),
        (("--bridge", "-1"), "error: Invalid value for '--bridge'"),
    ],
)
def test_invalid_options_are_rejected_and_leave_no_files(
    run: Run, tmp_path: Path, options: tuple[str, str], message: str
) -> None:
    refused = run("hotspots", *FABRIC, *options)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(message)
    assert "Traceback" not in refused.stderr
    assert not list(tmp_path.iterdir())


def test_the_first_ten_lines_answer_which_racks_since_when_why_and_what_to_do(run: Run) -> None:
    tasks = str(EXAMPLES / "telemetry/fabric-tasks.csv")
    result = run("hotspots", *FABRIC, "--tasks", tasks)
    lines = result.stdout.splitlines()
    assert not lines[10]
    answer = "\n".join(lines[:10])
    for planted in (
        r"^r9 +54.2 %  2026-01-05 22:00  still hot +the load grew +add ports",
        r"^r1 +41.7 %  2026-01-05 10:00  2026-01-06 20:00  tasks that need much bandwidth +place work",
        r"^r7 +37.5 % .* small uplink for its disks +add ports",
        r"^r0 +20.8 % .* the link lost capacity +restore its capacity",
        r"^more hot places: 2$",
        r"^job shuffle: 100 % of its tasks on compute racks are on the 2 hot ones.*; spread it",
    ):
        assert re.search(planted, answer, re.MULTILINE), planted
    assert "--explain" in result.stderr
    assert "share of hot:" not in result.stderr
    assert "share of hot:" in run("hotspots", *FABRIC, "--explain").stderr


def test_hot_places_have_all_hot_intervals_and_each_a_known_cause_and_remedy(run: Run) -> None:
    tasks = str(EXAMPLES / "telemetry/fabric-tasks.csv")
    found = json.loads(run("hotspots", *FABRIC, "--tasks", tasks, "-o", "json").stdout)
    places = found["hot_places"]
    assert sum(place["hot"] for place in places) == found["extent"]["hot"]
    assert [place["hot"] for place in places] == sorted((place["hot"] for place in places), reverse=True)
    links = {link["name"]: link for link in found["links"]}
    for place in places:
        assert links[place["link"]]["rate"] == place["rate"]
        assert place["since_ms"] < place["until_ms"] <= found["extent"]["end_ms"]
        assert place["open"] == (place["until_ms"] == found["extent"]["end_ms"])
        assert place["evidence"]
    assert [(place["place"], place["cause"], place["remedy"]) for place in places] == [
        ("r9", "demand-growth", "provision"),
        ("r1", "network-intensive-tasks", "place"),
        ("r7", "low-uplink", "provision"),
        ("r0", "capacity-loss", "repair"),
        ("r10", "demand", "migrate"),
        ("r2", "demand-growth", "migrate"),
    ]


def test_every_cause_has_words_and_every_remedy_too() -> None:
    assert {
        *CHANGES,
        "low-uplink",
        "network-intensive-tasks",
        "storage",
        "compute",
        "storage-and-compute",
    } == {*CAUSES}
    remedies = {cause.remedy for cause in CAUSES.values() if cause.remedy} | {kind.remedy for kind in CLASSES}
    assert remedies == {*REMEDIES}


LINKS = "racks: 2\nhosts_per_rack: 1\nnic: 10Gbps\nrack_link: 10Gbps\n"


def rates(path: Path, loads: dict[str, float], *more: str) -> str:
    """Writes ten samples of each link, a minute apart, in Gb/s, and more lines."""
    rows = [
        f"{link},2026-01-05T00:{step:02}:00Z,{load * 1e9:.0f}"
        for step in range(1, 11)
        for link, load in loads.items()
    ]
    path.write_text("\n".join(["link,time,bps", *rows, *more]) + "\n")
    return str(path)


@pytest.mark.parametrize(
    ("loads", "fails", "stderr"),
    [
        ({"r0:uplink": 9, "r1:uplink": 1}, "hot", "warning: hot: r0\n"),
        ({"r0:uplink": 1, "r1:uplink": 1}, "hot", ""),
        ({"r0:uplink": 1}, "unseen", "warning: unseen: r0h0:egress, r0h0:ingress, r1h0:egress and 4 more\n"),
        ({"r0:uplink": 9}, "unseen,hot", "warning: hot: r0\n"),
        ({"r0:uplink": 1}, "partial", ""),
    ],
)
def test_alerts_have_an_exit_code_of_their_own(
    run: Run, tmp_path: Path, loads: dict[str, float], fails: str, stderr: str
) -> None:
    (tmp_path / "two.yaml").write_text(LINKS)
    rates(tmp_path / "loads.csv", loads)
    ended = run("hotspots", "loads.csv", "--cluster", "two.yaml", "--fail-on", fails, "-q")
    assert ended.returncode == (4 if stderr else 0), ended.stderr
    assert stderr in ended.stderr


def test_a_lost_reading_fails_an_alert_on_partial_telemetry(run: Run, tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(LINKS)
    rates(tmp_path / "loads.csv", {"r0:uplink": 1}, "r0:uplink,2026-01-05T00:11:00Z,-5")
    ended = run("hotspots", "loads.csv", "--cluster", "two.yaml", "--fail-on", "partial")
    assert ended.returncode == 4
    assert "warning: partial: readings of 1 links are incomplete\n" in ended.stderr


def test_an_unknown_alert_is_an_error(run: Run) -> None:
    ended = run("hotspots", *FABRIC, "--fail-on", "cold")
    assert ended.returncode == 2
    assert ended.stderr == "error: --fail-on: `cold`: expected hot, partial, unseen\n"


def test_links_of_another_cluster_are_a_doubt_beside_the_answer(run: Run, tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(LINKS)
    rates(tmp_path / "loads.csv", {"r0:uplink": 9, "r9:uplink": 9})
    ended = run("hotspots", "loads.csv", "--cluster", "two.yaml")
    assert ended.returncode == 0, ended.stderr
    head = ended.stdout.split("\n\n")[0]
    assert "1 of 8 link directions seen; not r0h0:egress, r0h0:ingress, r1h0:egress and 4 more" in head
    assert "no-link: 10 readings are of ports without a link in the cluster, such as link=r9:uplink" in head


def test_a_rule_that_nearly_matches_is_named_with_the_label_that_failed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(LINKS)
    (tmp_path / "map.yaml").write_text(
        "columns: {labels: [switch, port]}\n"
        "links:\n"
        "  - {match: {switch: 'tor-(?P<rack>r\\d)', port: 'Ethernet(49|50)'}, load: '{rack}:uplink'}\n"
    )
    rows = [
        f"tor-r0,{port},2026-01-05T00:{step:02}:00Z,1000"
        for step in range(1, 11)
        for port in ("Ethernet49", "Ethernet51")
    ]
    (tmp_path / "loads.csv").write_text("\n".join(["switch,port,time,bps", *rows]) + "\n")
    ended = run("hotspots", "loads.csv", "--cluster", "two.yaml", "--map", "map.yaml")
    near = "links[0] matches but for one label: `port` is `Ethernet51`, expected `Ethernet(49|50)`"
    assert near in ended.stdout, ended.stdout + ended.stderr
