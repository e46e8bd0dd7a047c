"""Profiles of devices from existing outputs of fio: forms of several versions, logs, and what is left out."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leeward._fio_import import LogUnit, import_profile
from leeward._fio_points import PERCENTILES
from leeward.errors import InputError

Run = Callable[..., subprocess.CompletedProcess[str]]
VERSIONS = ("fio-2.16", "fio-3.1", "fio-3.10", "fio-3.33", "fio-3.42-6-g219f")
SECONDS = 10
LOADS = {
    # Reads and writes per second, and requests at once, of a device that serves 1000 reads or 500 writes.
    "reads": (1000.0, 0.0, 8),
    "writes": (0.0, 500.0, 8),
    "mixed": (250.0, 250.0, 8),
    "one-read": (800.0, 0.0, 1),
    "one-write": (0.0, 400.0, 1),
}


def figures(version: str, iops: float, seconds: float, size: int) -> dict[str, Any]:
    """Reads or writes of a job as a version of fio writes them; percentiles rise from 0 to twice the mean."""
    count = round(iops * SECONDS)
    old = version.startswith("fio-2")
    scale = 1e6 if old else 1e9
    percentile = {f"{p:f}": round(2 * seconds * p / 100 * scale) for p in PERCENTILES}
    mean = {"mean": seconds * scale if count else 0.0}
    lat, clat = ("lat", "clat") if old else ("lat_ns", "clat_ns")
    # With lat_percentiles, versions before 3.11 wrote them as those of the completion latency.
    first = version in ("fio-3.33", "fio-3.42-6-g219f")
    return {
        "io_bytes": count * size // (1024 if old else 1),
        **({} if old else {"io_kbytes": count * size // 1024}),
        "iops": iops,
        "total_ios": count,
        "runtime": SECONDS * 1000 if count else 0,
        lat: mean | ({"percentile": percentile} if first else {}),
        clat: mean | ({} if first else {"percentile": percentile}),
    }


def output(
    version: str, size: int = 4096, loads: dict[str, tuple[float, float, int]] = LOADS
) -> dict[str, Any]:
    """Output of fio for loads that ran one after the other."""
    jobs = []
    for group, (name, (reads, writes, depth)) in enumerate(loads.items()):
        seconds = depth / (reads + writes)
        rw = "randrw" if reads and writes else "randread" if reads else "randwrite"
        jobs.append(
            {
                "jobname": name,
                "groupid": group,
                "error": 0,
                "job options": {"rw": rw, "iodepth": str(depth)},
                "read": figures(version, reads, seconds, size),
                "write": figures(version, writes, seconds, size),
                "trim": figures(version, 0.0, seconds, size),
            }
        )
    options = {"ioengine": "libaio", "lat_percentiles": "1"}
    return {"fio version": version, "global options": options, "jobs": jobs}


def write(tmp_path: Path, document: Any, name: str = "fio.json") -> Path:
    path = tmp_path / name
    path.write_text(document if isinstance(document, str) else json.dumps(document, indent=1))
    return path


@pytest.mark.parametrize("version", VERSIONS)
def test_the_outputs_of_every_version_give_one_profile(version: str, tmp_path: Path) -> None:
    imported = import_profile([write(tmp_path, output(version))], "d")
    device = imported.device
    assert version in device["measured"]
    assert device["outstanding"] == 8
    # The mix keeps the device busy for 250 / 1000 + 250 / 500 of its time, and was measured at saturation.
    assert device["table"] == [
        {"size_bytes": 4096, "read_iops": pytest.approx(750), "write_iops": pytest.approx(375)}
    ]
    tails = {(row["kind"], row["percentile"]): row["seconds"] for row in device["unloaded"]}
    assert tails["read", 99.0] == pytest.approx(2 * 0.99 / 800, rel=1e-3)
    assert tails["write", 50.0] == pytest.approx(1 / 400, rel=1e-3)
    # 0.1 % of 8000 requests are fewer than ten.
    assert ("read", 99.9) not in tails
    assert (imported.left_out, imported.notes) == ([], [])


def test_outputs_one_after_the_other_and_notes_of_fio_between_them_are_read(tmp_path: Path) -> None:
    both = [json.dumps(output("fio-3.33", size), indent=1) for size in (4096, 65536)]
    text = "fio: note: iodepth >= 1\n" + "\nfio-3.33\nStarting 1 process\n".join(both)
    device = import_profile([write(tmp_path, text)], "d").device
    assert [row["size_bytes"] for row in device["table"]] == [4096, 65536]
    files = [write(tmp_path, text, f"{at}.json") for at, text in enumerate(both)]
    assert import_profile(files, "d").device["table"] == device["table"]


def changed(change: Callable[[dict[str, Any]], object], name: str = "reads") -> dict[str, Any]:
    """Output with a second job `reads` (or `name`) whose record is changed."""
    document = output("fio-3.33")
    job = json.loads(json.dumps(next(job for job in document["jobs"] if job["jobname"] == name)))
    job |= {"jobname": "odd", "groupid": 9}
    change(job)
    document["jobs"].append(job)
    return document


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda job: job["job options"].update(rw="read"), "sequential requests"),
        (lambda job: job["job options"].update(rate_iops="100"), "its rate was limited (rate_iops)"),
        (lambda job: job["job options"].update(bssplit="4k/50:64k/50"), "requests of several sizes"),
        (lambda job: job["read"].update(io_bytes=10_000 * 5000), "requests of several sizes"),
        (lambda job: job["trim"].update(total_ios=5), "trims"),
        (lambda job: job.update(error=22), "fio reports error 22"),
        (lambda job: job.update(mixed={"iops": 1}), "reads and writes in one figure"),
        (lambda job: job["read"].update(total_ios=0), "no request was completed"),
        (
            lambda job: job["job options"].update(iodepth="64"),
            "had 8 requests at once, and the load asked for 64",
        ),
        (lambda job: job["job options"].update(iodepth="9"), "9 requests at once; the profile is for 8"),
    ],
)
def test_a_load_that_is_no_point_of_a_profile_is_named(
    change: Callable[[dict[str, Any]], object], reason: str, tmp_path: Path
) -> None:
    path = write(tmp_path, changed(change))
    document = json.loads(path.read_text())
    if "the profile is for 8" in reason:
        # Nine at once would be the profile if there were writes too.
        document["jobs"][-1]["read"]["lat_ns"]["mean"] = 9e6
        path = write(tmp_path, document)
    imported = import_profile([path], "d")
    assert (
        imported.device["table"] == import_profile([write(tmp_path, output("fio-3.33"))], "d").device["table"]
    )
    (load,) = imported.left_out
    assert load.origin == "fio.json, job `odd`"
    assert reason in load.reason


def test_jobs_of_a_group_ran_together_and_synchronous_engines_have_one_request_each(tmp_path: Path) -> None:
    document = output("fio-3.33")
    for job in document["jobs"][:2]:
        side = job["read"] if job["read"]["total_ios"] else job["write"]
        side["iops"] /= 4
    twins = [json.loads(json.dumps(job)) for job in document["jobs"][:2] for _ in range(4)]
    for job in twins:
        # The depth that is asked for has no effect with this engine.
        job["job options"] |= {"ioengine": "psync", "iodepth": "64"}
        for kind in ("read", "write"):
            job[kind]["lat_ns"]["mean"] /= 2
    document["jobs"] = twins + document["jobs"][3:]
    device = import_profile([write(tmp_path, document)], "d").device
    assert device["outstanding"] == 4
    assert device["table"][0]["read_iops"] == pytest.approx(1000)
    reported = output("fio-3.33")
    for job in reported["jobs"][:3]:
        # One entry for four jobs of two requests.
        job["job options"] |= {"numjobs": "4", "iodepth": "2"}
    assert import_profile([write(tmp_path, reported)], "d").device["outstanding"] == 8


def test_percentiles_without_submission_are_a_doubt(tmp_path: Path) -> None:
    document = output("fio-3.33")
    del document["global options"]["lat_percentiles"]
    for job in document["jobs"]:
        for kind in ("read", "write"):
            job[kind]["clat_ns"]["percentile"] = job[kind]["lat_ns"].pop("percentile")
            job[kind]["slat_ns"] = {"mean": 3000.0}
    notes = import_profile([write(tmp_path, document)], "d").notes
    assert [note.split(":")[0] for note in notes] == ["fio.json, job `one-read`", "fio.json, job `one-write`"]
    assert "lack the time to submit" in notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"fio version": "fio-3.33", "jobs": [', "fio.json:1: the JSON of fio is cut or damaged"),
        ('\n\n{"a": 1}\n', "fio.json:3: expected the JSON output of fio, with `fio version` and `jobs`"),
        ('{"fio version": "fio-3.33", "client_stats": []}', "fio.json:1: an output of fio's client mode"),
        (
            '{"fio version": "fio-5.0", "jobs": [{}]}',
            "fio-5.0: its output is not as known from fio 2 and 3: KeyError",
        ),
        ('{"fio version": "fio-5.0", "jobs": [7]}', "fio-5.0: its output is not as known from fio 2 and 3"),
        ("job: (g=0): rw=randread\n", "expected the JSON output of fio or a log of latency, found neither"),
        ("", "expected the JSON output of fio or a log of latency, found neither"),
        (
            "0, 5, 0, 4096\n5, -5, 0, 4096\n",
            "fio.json:2: `5, -5, 0, 4096`: expected time, latency, 0 to 2, size",
        ),
        (f"0, 5, 0, 4096\n5, {'9' * 5000}, 0, 4096\n", "expected time, latency, 0 to 2, size"),
        ("0, 5, 0, 4096\n5, 5, zero\n", "fio.json:2: `5, 5, zero`: expected time, latency, 0 to 2, size"),
        ("0, 5, 0, 4096\n9, 5, 0, 0\n", "fio.json:2: a line without a size is an average (log_avg_msec)"),
        ("0, 5, 0, 4096\n9, 5, 0, 4096\n", "0.009 s are too short for a profile"),
    ],
)
def test_an_unknown_form_is_an_error_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError) as raised:
        import_profile([path], "d")
    assert message in str(raised.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "1" + 400 * "0", '"fast"', "null"])
@pytest.mark.parametrize("field", ["iops", "mean", "50.000000"])
def test_a_number_that_is_none_is_an_error_with_the_version(number: str, field: str, tmp_path: Path) -> None:
    text = re.sub(rf'("{field}": )[\d.]+', rf"\g<1>{number}", json.dumps(output("fio-3.33")))
    with pytest.raises(InputError, match=r"fio-3.33: its output is not as known from fio 2 and 3"):
        import_profile([write(tmp_path, text)], "d")


def log(latencies: np.ndarray, direction: int, depth: int, unit: float, columns: str) -> str:
    """Log of requests that keep `depth` of them in flight."""
    ends = np.cumsum(latencies) / depth * 1e3
    return "".join(
        f"{int(end)}, {round(latency / unit)}, {direction}, 4096{columns}\n"
        for end, latency in zip(ends, latencies, strict=True)
    )


@pytest.mark.parametrize(("unit", "columns"), [("ns", ", 0"), ("ns", ", 61440, 0x4004"), ("us", "")])
def test_logs_of_latency_are_points_like_json(unit: str, columns: str, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    files, singles = [], {}
    for direction, kind in enumerate(("read", "write")):
        for depth in (1, 8):
            latencies = random.gamma(4, depth * 25e-5, 4000)
            text = log(latencies, direction, depth, float(f"1e-{9 if unit == 'ns' else 6}"), columns)
            files.append(write(tmp_path, text, f"{kind}{depth}_lat.1.log"))
            if depth == 1:
                singles[kind] = latencies
    device = import_profile(files, "d", LogUnit(unit)).device
    assert device["outstanding"] == 8
    assert device["table"][0]["read_iops"] == pytest.approx(1000, rel=0.1)
    for row in device["unloaded"]:
        expected = np.percentile(singles[row["kind"]], row["percentile"], method="inverted_cdf")
        assert row["seconds"] == pytest.approx(expected, abs=1e-6)
    assert [row["percentile"] for row in device["unloaded"][:5]] == [50.0, 90.0, 95.0, 99.0, 99.5]


def test_microseconds_read_as_nanoseconds_are_no_point(tmp_path: Path) -> None:
    latencies = np.full(1000, 1e-3)
    files = [write(tmp_path, log(latencies, at, 1, 1e-6, ""), f"{at}_lat.log") for at in (0, 1)]
    with pytest.raises(InputError) as raised:
        import_profile(files, "d")
    assert any("--log-unit us" in note for note in raised.value.__notes__)
    assert import_profile(files, "d", LogUnit.us).device["outstanding"] == 1


def test_the_command_writes_a_device_that_others_read(run: Run, tmp_path: Path) -> None:
    write(tmp_path, changed(lambda job: job["job options"].update(rw="read")))
    result = run("device", "import", "fio.json", "-o", "json")
    assert result.returncode == 0, result.stderr
    assert "warning: fio.json, job `odd`: left out: sequential requests" in result.stderr
    document = json.loads(result.stdout)
    assert document["left_out"][0]["origin"] == "fio.json, job `odd`"
    device = json.loads((tmp_path / "device.json").read_text())
    assert device == {key: value for key, value in document.items() if key not in ("left_out", "notes")}
    (tmp_path / "t.csv").write_text("1,0x1000,Get\n2,0x1000,Put\n")
    curve = run("slo", "curve", "t.csv", "--device", "device.json", "--percentile", "99")
    assert curve.returncode == 0, curve.stderr
    only_reads = output("fio-3.33", loads={"reads": LOADS["reads"]})
    write(tmp_path, only_reads, "reads.json")
    refused = run("device", "import", "reads.json", "--out", "none.json")
    assert refused.returncode == 2
    assert "no size has random reads and random writes" in refused.stderr
    assert "reads.json, job `reads`: reads of 4 KiB, 8 at once" in refused.stderr
    assert not (tmp_path / "none.json").exists()


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_a_real_log_and_the_json_of_the_same_run_agree(tmp_path: Path) -> None:
    common = [
        "fio",
        "--filename=f",
        "--size=4M",
        "--bs=4k",
        "--ioengine=psync",
        "--time_based",
        "--runtime=1",
    ]
    listed = f"--percentile_list={':'.join(f'{p:g}' for p in PERCENTILES)}"
    outputs = []
    for load in ("randread", "randwrite"):
        flags = (f"--name={load}", f"--rw={load}", f"--write_lat_log={load}", "--lat_percentiles=1", listed)
        ran = subprocess.run(
            [*common, *flags, "--output-format=json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(write(tmp_path, ran.stdout, f"{load}.json"))
    logs = [tmp_path / f"{load}_lat.1.log" for load in ("randread", "randwrite")]
    by_json, by_log = (import_profile(files, "d").device for files in (outputs, logs))
    assert by_log["outstanding"] == by_json["outstanding"] == 1
    assert by_log["table"][0]["read_iops"] == pytest.approx(by_json["table"][0]["read_iops"], rel=0.05)
    # fio counts latencies in classes of 1/64 of their value.
    for logged, told in zip(by_log["unloaded"], by_json["unloaded"], strict=True):
        assert logged["seconds"] == pytest.approx(told["seconds"], rel=0.04, abs=1e-7), logged
