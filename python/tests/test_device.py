"""Profiles of devices, measured with fio: with its recorded output, and with fio itself if installed."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leeward._fio import Settings, file_to_measure, jobs, profile
from leeward._fio_points import BEYOND
from leeward.errors import InputError

Run = Callable[..., subprocess.CompletedProcess[str]]
SETTINGS = Settings(
    sizes=(4096, 65536),
    mixes=(50,),
    seconds=1,
    file_bytes=1 << 20,
    depth=8,
    buffered=False,
    engine="libaio",
)
ARGUMENTS = (
    "device",
    "profile",
    "--fio",
    ".",
    "--sizes",
    "4KiB,64KiB",
    "--for",
    "1s",
    "--file-size",
    "1MiB",
)

RECORDED = """\
#!{python}
# Output of fio 3.33, with the parts that are read; rates and latencies by the requested load.
import json, sys
given = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
open(given["filename"], "r+b").write(b"measured")
load, size = given["rw"], int(given["bs"])
share = float(given.get("rwmixread", 100 if load == "randread" else 0)) / 100
iops = 1e9 / size / (1 if int(given["iodepth"]) > 1 else 10) * (0.8 if load == "randrw" else 1)
def side(share):
    count = int(iops * share)
    asked = [float(p) for p in given.get("percentile_list", "50").split(":")]
    percentiles = {{f"{{p:f}}": int(p * size) for p in asked}}
    return {{"iops": iops * share, "total_ios": count, "lat_ns": {{"percentile": percentiles}}}}
job = {{"jobname": given["name"], "error": 0, "read": side(share), "write": side(1 - share)}}
print("note: both iodepth >= 1 and synchronous I/O engine are selected")
print(json.dumps({{"fio version": "fio-3.33", "jobs": [job]}}))
"""


def fio_record(reads: float, writes: float, lat_ns: int = 100_000) -> dict[str, Any]:
    """Output of fio for a run, in the fields that are read."""
    keys = (50.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99)
    tail = {"percentile": {f"{key:f}": round(key * lat_ns / 50) for key in keys}}
    both = {"read": reads, "write": writes}
    return {kind: {"iops": rate, "total_ios": int(rate), "lat_ns": tail} for kind, rate in both.items()}


def measurements(mixed: float) -> list[tuple[Any, dict[str, Any]]]:
    answers = {100: fio_record(1000, 0), 0: fio_record(0, 500), 50: fio_record(mixed, mixed)}
    return [(job, answers[job.reads]) for job in jobs(SETTINGS)]


def test_faster_mixes_leave_the_rates_of_reads_and_writes_unchanged() -> None:
    # A mix of 333 reads and 333 writes per second keeps the device busy: 333 / 1000 + 333 / 500 = 1.
    result = profile(SETTINGS, measurements(1000 / 3), "fio-3.33", "d")
    assert [row["size_bytes"] for row in result["table"]] == [4096, 65536]
    assert result["table"][0]["read_iops"] == pytest.approx(1000)
    faster = profile(SETTINGS, measurements(600), "fio-3.33", "d")
    assert faster["table"] == profile(SETTINGS, measurements(1000 / 3 + 1), "fio-3.33", "d")["table"]


def test_a_slow_measured_mix_lowers_the_rates_of_the_profile() -> None:
    mixed = 200.0
    for row in profile(SETTINGS, measurements(mixed), "fio-3.33", "d")["table"]:
        assert mixed / row["read_iops"] + mixed / row["write_iops"] == pytest.approx(1)


def test_percentiles_with_too_few_requests_are_left_out() -> None:
    rows = profile(SETTINGS, measurements(300), "fio-3.33", "d")["unloaded"]
    reads = [row["percentile"] for row in rows if row["kind"] == "read" and row["size_bytes"] == 4096]
    # Of 1000 requests, ten take longer than the 99th percentile, and five take longer than the 99.5th.
    assert reads == [50.0, 90.0, 95.0, 99.0]
    assert BEYOND == 10
    with pytest.raises(InputError, match="no read of 4096 bytes was completed in 1 s"):
        profile(SETTINGS, [(job, fio_record(0, 0)) for job in jobs(SETTINGS)], "fio-3.33", "d")


def test_an_existing_file_is_not_overwritten_without_force(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("precious")
    with (
        pytest.raises(InputError, match="the measurement would overwrite this file"),
        file_to_measure(tmp_path / "data", force=False),
    ):
        pytest.fail("the file was accepted")
    with file_to_measure(tmp_path / "data", force=True) as file:
        assert file == tmp_path / "data"
    with file_to_measure(tmp_path, force=False) as file:
        assert file.parent == tmp_path
        assert file != tmp_path / "data"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_dry_run_prints_the_fio_commands_and_writes_no_files(run: Run, tmp_path: Path) -> None:
    result = run(*ARGUMENTS, "--dry-run")
    assert (result.returncode, result.stderr, list(tmp_path.iterdir())) == (0, "", [])
    lines = [shlex.split(line) for line in result.stdout.splitlines()]
    # One command fills the file. Five commands follow for each of two sizes: reads, writes and a mix at
    # saturation, and reads and writes one at a time.
    assert len(lines) == 1 + 2 * 5
    assert all(line[0] == "fio" and "--direct=1" in line for line in lines)
    assert sum("--iodepth=1" in line for line in lines) == 4


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with a program that prints recorded output of fio."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "fio").write_text(RECORDED.format(python=sys.executable))
    (folder / "fio").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_a_profile_is_written_and_read_by_the_other_commands(run: Run, path: str, tmp_path: Path) -> None:
    result = run(*ARGUMENTS, "--name", "recorded", PATH=path)
    assert result.returncode == 0, result.stderr
    assert "wrote device.json" in result.stderr
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bin", "device.fio.json", "device.json"]
    assert (tmp_path / "device.fio.json").read_text().count("fio-3.33") == len(jobs(SETTINGS))
    document = json.loads((tmp_path / "device.json").read_text())
    assert document["table"][0]["read_iops"] == pytest.approx(1e9 / 4096 * 0.8)
    (tmp_path / "t.csv").write_text("1,0x1000,Get\n2,0x1000,Put\n")
    curve = run("slo", "curve", "t.csv", "--device", "device.json", "--percentile", "99", "-o", "json")
    assert curve.returncode == 0, curve.stderr
    # Reads and writes together, as fio had them.
    assert document["outstanding"] == json.loads(curve.stdout)["trace"]["outstanding"] == 32


def test_a_missing_or_failing_fio_is_reported_and_leaves_no_files(run: Run, tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    missing = run(*ARGUMENTS, PATH=str(bare))
    assert missing.returncode == 2
    assert missing.stderr.splitlines()[0] == "error: --fio: fio is not installed"
    assert "hint: install it" in missing.stderr
    (bare / "fio").write_text("#!/bin/sh\necho 'fio: engine libaio not loadable' >&2; exit 1\n")
    (bare / "fio").chmod(0o755)
    failed = run(*ARGUMENTS, PATH=f"{bare}:/bin:/usr/bin")
    assert failed.returncode == 2
    assert failed.stderr.splitlines()[0] == (
        "error: --fio: fill of 1048576 bytes: fio: engine libaio not loadable"
    )
    assert [file.name for file in tmp_path.iterdir()] == ["bin"]


def test_an_output_without_json_names_the_version(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    script = '[ "$1" = --version ] && echo fio-9.1 || echo "fill: (groupid=0)"'
    (folder / "fio").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "fio").chmod(0o755)
    result = run(*ARGUMENTS, PATH=f"{folder}:/bin:/usr/bin")
    assert result.returncode == 2
    message = "the output of fio-9.1 is not as known from fio 2 and 3"
    assert result.stderr.startswith(f"error: --fio: fill of 1048576 bytes: {message}")
    assert (tmp_path / "device.fio.json").read_text() == "fill: (groupid=0)\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sizes", "4KiB", "--fio", "none"), "--fio: `none`: no such folder"),
        (("--sizes", "1000B"), "--sizes: `1000B`: expected multiples of 512 bytes"),
        (("--file-size", "64KiB"), "--file-size: `64KiB`: expected at least four times"),
        (("--sizes", "4KiB,4096B"), "--sizes: `4KiB,4096B`: expected each value once"),
        (("--mixes", "50%,0.5"), "--mixes: `50%,0.5`: expected each value once"),
        (("--mixes", "120%"), "--mixes: `120%`: expected a percentage from 1% to 99%"),
        (("--out", "none/device.json"), "--out: `none/device.json`: there is no folder `none`"),
    ],
)
def test_an_invalid_option_is_rejected_before_the_measurement(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    # A list that is given twice would have the values of both.
    given = [pair for pair in zip(ARGUMENTS[::2], ARGUMENTS[1::2], strict=True) if pair[0] not in arguments]
    for dry in ((), ("--dry-run",)):
        result = run(*(word for pair in given for word in pair), *arguments, *dry)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"error: {message}")


def test_a_dry_run_rejects_an_existing_file_without_force_and_keeps_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("precious")
    refused = run(*ARGUMENTS, "--fio", "data", "--dry-run")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "the measurement would overwrite this file" in refused.stderr
    result = run(*ARGUMENTS, "--fio", "data", "--dry-run", "--force")
    assert (result.returncode, (tmp_path / "data").read_text()) == (0, "precious")


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_a_real_device_is_measured(run: Run, tmp_path: Path) -> None:
    arguments = ("device", "profile", "--fio", ".", "--sizes", "4KiB", "--for", "1s", "--mixes", "")
    result = run(*arguments, "--file-size", "1MiB", "--buffered", "--io-engine", "psync", "-o", "json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document == json.loads((tmp_path / "device.json").read_text())
    assert document["table"][0]["read_iops"] > 1
    assert {row["kind"] for row in document["unloaded"]} == {"read", "write"}


def in_version(result: dict[str, Any], version: str) -> dict[str, Any]:
    """A recorded result as another version of fio writes it."""
    changed: dict[str, Any] = {}
    for kind, figures in result.items():
        percentiles = figures["lat_ns"]["percentile"]
        rest = {name: value for name, value in figures.items() if name != "lat_ns"}
        versions: dict[str, dict[str, Any]] = {
            "fio-3.33": {"lat_ns": {"mean": 1.0, "percentile": percentiles}, "clat_ns": {"mean": 1.0}},
            "fio-3.10": {"lat_ns": {"mean": 1.0}, "clat_ns": {"mean": 1.0, "percentile": percentiles}},
            "fio-2.16": {
                "lat": {"mean": 1.0},
                "clat": {"percentile": {key: value / 1000 for key, value in percentiles.items()}},
            },
        }
        changed[kind] = rest | versions[version]
    return changed


@pytest.mark.parametrize("version", ["fio-3.33", "fio-3.10", "fio-2.16"])
def test_percentiles_are_read_wherever_a_version_of_fio_writes_them(version: str) -> None:
    recorded = [(job, in_version(result, version)) for job, result in measurements(300)]
    now = profile(SETTINGS, measurements(300), version, "d")
    then = profile(SETTINGS, recorded, version, "d")
    seconds = [row.pop("seconds") for row in then["unloaded"]]
    assert seconds == pytest.approx([row.pop("seconds") for row in now["unloaded"]])
    assert then == now


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda figures: figures.pop("lat_ns"), "fio-4.0: no percentiles of latency in its output"),
        (lambda figures: figures["lat_ns"]["percentile"].pop("99.500000"), "fio-4.0: no 99.5th percentile"),
        (lambda figures: figures.pop("iops"), "fio-4.0: its output is not as known from fio 2 and 3"),
        (
            lambda figures: figures.update(lat_ns={"percentile": {"p50": 1}}),
            "fio-4.0: its output is not as known",
        ),
    ],
)
def test_an_unknown_output_of_fio_names_its_version(change: Callable[[Any], Any], message: str) -> None:
    results = [(job, json.loads(json.dumps(result))) for job, result in measurements(300)]
    for _, result in results:
        for kind in ("read", "write"):
            change(result[kind])
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace(")", r"\)")):
        profile(SETTINGS, results, "fio-4.0", "d")
