"""Presentation of a comparison: its rows and their labels, the pictures, and the page."""

import html
import re
from pathlib import Path

import numpy
import pytest

import leeward
from leeward.report import comparison_rows, page, pictures, style
from leeward.report.rows import glossary

CLUSTER = """\
racks: 4
hosts_per_rack: 4
nic: 1Gbps
oversubscription: 4
devices: [{read: 50MB/s, write: 50MB/s}]
"""
BLOCK = 256 * 2**20


def scenario(folder: Path, sizes: list[int], warmup: str = "0s", more: str = "") -> leeward.Scenario:
    """A scenario whose jobs write files of these sizes; a job arrives every two seconds."""
    jobs = [f"job{i}\t{2 * i}\t0\t0\t0\t{size}" for i, size in enumerate(sizes)]
    (folder / "cluster.yaml").write_text(CLUSTER)
    (folder / "jobs.tsv").write_text("\n".join(jobs) + "\n")
    text = (
        f"cluster: cluster.yaml\nworkloads: [{{swim: {{file: jobs.tsv}}}}]\nhorizon: 3min\nwarmup: {warmup}\n"
    )
    (folder / "scenario.yaml").write_text(text + more)
    return leeward.read_scenario(folder / "scenario.yaml")


def cells(runs: list[leeward.Run]) -> dict[str, tuple[str, ...]]:
    return {row.quantity: row.cells for row in comparison_rows(runs)}


def test_a_missing_value_is_shown_as_a_dash(tmp_path: Path) -> None:
    rows = cells(leeward.simulate(scenario(tmp_path, [BLOCK // 2] * 4), ["uniform", "sinbad"]))
    assert rows["full blocks written"] == ("0", "0")
    assert rows["full block write time, mean"] == ("-", "-")
    assert rows["time of the same full blocks, uniform / this"] == ("", "-")
    assert rows["full blocks faster than uniform"] == ("", "-")
    assert rows["smaller blocks written"] == ("4", "4")
    assert rows["  smaller blocks"][1].endswith("x")
    nothing = cells(leeward.simulate(scenario(tmp_path, [0]), ["uniform", "sinbad"]))
    assert nothing["block write time, mean"] == nothing["file write time, mean"] == ("-", "-")


def test_blocks_placed_without_telemetry_are_counted(tmp_path: Path) -> None:
    policies = ["uniform", "sinbad:without_telemetry=default"]
    blind = scenario(tmp_path, [BLOCK] * 4, more="telemetry: {loss: 1}\n")
    assert cells(leeward.simulate(blind, policies))["placed blindly (no telemetry)"] == ("0", "4")
    seen = scenario(tmp_path, [BLOCK] * 4)
    assert "placed blindly (no telemetry)" not in cells(leeward.simulate(seen, ["uniform"]))


def test_every_term_of_the_table_is_explained_once(tmp_path: Path) -> None:
    runs = leeward.simulate(scenario(tmp_path, [BLOCK]), ["uniform", "sinbad"])
    words = [word for word, _ in glossary(comparison_rows(runs), "uniform")]
    assert len(words) == len(set(words))
    assert {"write time", "full block", "uniform / this", "Cv", "hot"} == set(words)
    alone = glossary(comparison_rows(runs[:1]), "uniform")
    assert "uniform / this" not in dict(alone)


def test_pictures_leave_out_the_warm_up_like_the_table(tmp_path: Path) -> None:
    (run,) = leeward.simulate(scenario(tmp_path, [BLOCK] * 20, warmup="20s"), ["uniform"])
    times = pictures.times_of(run)
    assert 0 < len(times) < len(run.blocks())
    assert len(times) == run.summary()["full_block_write_s"]["count"]
    assert numpy.mean(list(times.values())) == pytest.approx(run.summary()["full_block_write_s"]["mean"])


def test_the_colour_of_a_policy_does_not_depend_on_its_settings() -> None:
    plain, other, spread, sinbad = style.styles(["uniform", "best", "uniform:remote_racks=2", "sinbad"])
    assert plain["color"] == spread["color"] != sinbad["color"]
    assert plain["linestyle"] != spread["linestyle"]
    assert other["color"] == style.OTHER
    # Admission policies appear in no picture.
    named = {policy["name"] for policy in leeward.policies() if policy["kind"] != "admission"}
    assert named == set(style.COLOURS)
    assert len({*style.COLOURS.values(), style.OTHER}) == len(named) + 1


def test_axes_have_plain_numbers_and_curves_are_labelled(tmp_path: Path) -> None:
    runs = leeward.simulate(scenario(tmp_path, [2 * BLOCK] * 60), ["uniform", "leeward"])
    for svg in (pictures.write_times(runs), pictures.hot_links(runs), pictures.gains(runs)):
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
        assert texts
        assert not any("10^" in text or "mathdefault" in text for text in texts)
        assert "leeward" in texts
    assert pictures.write_times(runs) == pictures.write_times(runs)


@pytest.mark.parametrize("policies", [["uniform"], ["uniform", "sinbad:threshold=1MB"]])
def test_the_page_describes_the_run_and_explains_its_terms(tmp_path: Path, policies: list[str]) -> None:
    path = scenario(tmp_path, [BLOCK] * 5, warmup="10s")
    text = page.page(path, leeward.simulate(path, policies))
    plain = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)))
    for words in (
        "the first 10 s are not counted",
        "16 hosts in 4 racks",
        "rack uplink 1 Gbps (oversubscription 4:1)",
        "reads 50 MB/s and writes 50 MB/s",
        "HDFS's default: the writer's host",
        "a block of the block size of its file",
        "standard deviation over mean",
    ):
        assert words in plain, words
    assert text.count("<svg") == (4 if len(policies) > 1 else 3)


@pytest.mark.parametrize("kind", ["replicas", "cell", "apps"])
def test_a_page_describes_a_policy_by_its_kind_and_name(kind: str) -> None:
    # Policies of several kinds have the name `leeward`.
    of_kind = {
        policy["name"]: policy for policy in leeward.policies() if policy["kind"] == page.POLICIES[kind]
    }
    text = html.unescape(page.policy_words(kind, ["leeward"]))
    assert of_kind["leeward"]["summary"] in text
    others = [policy for policy in leeward.policies() if policy["name"] == "leeward"]
    assert len(others) > 1
    assert [policy["kind"] for policy in others if policy["summary"] in text] == [page.POLICIES[kind]]


def test_a_page_of_no_writes_has_no_broken_picture(tmp_path: Path) -> None:
    path = scenario(tmp_path, [0])
    text = page.page(path, leeward.simulate(path, ["uniform", "sinbad"]))
    assert "nan" not in text.lower().replace("<svg", "")
