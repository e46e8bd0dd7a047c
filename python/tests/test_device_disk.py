"""Profiles of disks: seek times, rate and history of a simulated disk, and latencies in logs of fio."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward._disk import (
    BLOCK,
    CHUNK,
    LEAST_BYTES,
    MOST_STREAMS,
    PAIRS,
    ROUNDS,
    STEPS,
    DiskProfile,
    Read,
    distances,
    measure_disk,
)
from leeward._fio_replay import iolog, latencies
from leeward.errors import InputError
from leeward.traces import open_trace
from support.disks import SimulatedDisk, interpolate

TB = 10**12
ROTATION = 60 / 7200


def seek_table(size: int, least: float, stroke: float) -> list[tuple[int, float]]:
    """Seek times that rise with the root of the distance: from `least` by `stroke` over the whole disk."""
    shares = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    return [(int(size * share), least + stroke * share**0.5) for share in shares]


def measured(size: int, disk: SimulatedDisk, seconds: float = 3600, seed: int = 1) -> DiskProfile:
    return measure_disk(size, seconds, seed, disk.replay, clock=disk.clock)


DISKS = {
    "size": st.integers(2 * LEAST_BYTES, 20 * TB),
    "least": st.floats(0.0045, 0.006),
    "stroke": st.floats(0.006, 0.015),
    "rate": st.floats(50e6, 400e6),
    "seed": st.integers(0, 2**64 - 1),
}


@given(history=st.integers(1, 40), **DISKS)
def test_a_profile_has_the_parameters_of_the_disk(
    size: int, least: float, stroke: float, rate: float, history: int, seed: int
) -> None:
    table = seek_table(size, least, stroke)
    profile = measured(size, SimulatedDisk(table, rate, history), seed=seed)
    assert [seek.distance for seek in profile.seeks] == list(distances(size))
    for seek in profile.seeks:
        assert seek.seconds == pytest.approx(interpolate(table, seek.distance), rel=1e-6)
        assert seek.pairs == 2 * ROUNDS * PAIRS
    assert profile.rate == pytest.approx(rate)
    assert profile.history == history
    assert profile.notes == []


@given(history=st.integers(1, 40), **DISKS)
def test_a_profile_of_a_rotating_disk_is_near_its_parameters(
    size: int, least: float, stroke: float, rate: float, history: int, seed: int
) -> None:
    table = seek_table(size, least, stroke)
    disk = SimulatedDisk(table, rate, history, rotation=ROTATION, seed=seed)
    profile = measured(size, disk, seed=seed)
    # The median of n waits spread over a rotation deviates by half of it over the root of n.
    deviation = ROTATION / 2 / (2 * ROUNDS * PAIRS) ** 0.5
    for seek in profile.seeks:
        assert seek.seconds == pytest.approx(interpolate(table, seek.distance), abs=5 * deviation)
        assert seek.low <= seek.seconds <= seek.high
        # The tenth and the ninetieth percentile of the waits.
        assert seek.high - seek.low == pytest.approx(0.8 * ROTATION, rel=0.3)
    assert profile.rate == pytest.approx(rate)
    assert profile.history == history


@pytest.mark.parametrize("history", [0, 1, 2, 3, 17, 64, 255, 256, 300])
def test_the_history_is_found_up_to_the_most_that_is_measured(history: int) -> None:
    profile = measured(TB, SimulatedDisk(seek_table(TB, 0.005, 0.01), 150e6, history))
    assert profile.history == min(history, MOST_STREAMS)
    words = {0: "continues no stream", 256: "at least 256", 300: "at least 256"}
    assert [words.get(history, "") in note for note in profile.notes] == ([True] if history in words else [])


def test_reads_stay_within_the_disk_and_are_aligned() -> None:
    for size in (LEAST_BYTES, LEAST_BYTES + 511, 3 * TB + 12345):
        disk = SimulatedDisk(seek_table(size, 0.005, 0.01), 150e6, 8)
        measured(size, disk)
        assert {read.size for read in disk.reads} == {BLOCK, CHUNK}
        assert all(read.offset % BLOCK == 0 for read in disk.reads)
        assert min(read.offset for read in disk.reads) >= 0
        assert max(read.offset + read.size for read in disk.reads) <= size


def test_a_seed_repeats_the_reads_and_another_changes_them() -> None:
    disks = [SimulatedDisk(seek_table(TB, 0.005, 0.01), 150e6, 8) for _ in range(3)]
    for disk, seed in zip(disks, (1, 1, 2), strict=True):
        measured(TB, disk, seed=seed)
    assert disks[0].reads == disks[1].reads != disks[2].reads


def test_progress_has_all_steps() -> None:
    steps: list[int] = []
    disk = SimulatedDisk(seek_table(TB, 0.005, 0.01), 150e6, 8)
    measure_disk(TB, 3600, 1, disk.replay, steps.append, disk.clock)
    assert sum(steps) == STEPS


@pytest.mark.parametrize("seconds", [20, 25, 35, 120])
def test_a_measurement_ends_in_time_and_says_what_it_lacks(seconds: float) -> None:
    disk = SimulatedDisk(seek_table(TB, 0.005, 0.01), 150e6, 8)
    profile = measured(TB, disk, seconds=seconds)
    assert disk.now <= seconds
    assert len(profile.seeks) == len(distances(TB))
    fewest = min(seek.pairs for seek in profile.seeks)
    assert (fewest < 2 * ROUNDS * PAIRS) == any("the time ended" in note for note in profile.notes)


def test_a_slow_disk_needs_a_longer_measurement() -> None:
    disk = SimulatedDisk(seek_table(TB, 0.5, 1.0), 150e6, 8)
    with pytest.raises(InputError, match=r"^--duration: \d+ of 480 pairs of reads in 30 s: the device is"):
        measured(TB, disk, seconds=60)
    # The pairs fit into the time, and sequential reads do not.
    crawling = SimulatedDisk(seek_table(TB, 0.005, 0.05), 1e5, 8)
    with pytest.raises(InputError, match=r"^--duration: no place was read in"):
        measured(TB, crawling, seconds=85)


Latency = Callable[[Random, Read, int], float]
WITHOUT_SEEKS: dict[str, Latency] = {
    "SSD": lambda random, _read, _distance: 9e-5 * random.lognormvariate(0, 0.3),
    "RAM disk": lambda random, _read, _distance: 4e-6 * random.lognormvariate(0, 0.1),
    "throttled": lambda random, _read, _distance: 0.025 * random.lognormvariate(0, 0.2),
    "constant": lambda _random, _read, _distance: 0.008,
    # A map of blocks that is read from the flash for a far block.
    "SSD without memory": lambda random, _read, distance: (
        (1.4e-4 if distance > 1e9 else 8e-5) * random.lognormvariate(0, 0.1)
    ),
    # A volume on a network, which is read ahead by 1 MiB.
    "read ahead": lambda random, _read, distance: (
        (1e-4 if distance < CHUNK else 0.01) * random.lognormvariate(0, 0.1)
    ),
    "silent clock": lambda _random, _read, _distance: 0.0,
}


@pytest.mark.parametrize("device", WITHOUT_SEEKS)
@given(size=st.integers(LEAST_BYTES, 4 * TB), seed=st.integers(0, 2**32))
def test_a_device_without_seeks_gets_no_seek_table(device: str, size: int, seed: int) -> None:
    random, last = Random(seed), 0

    def replay(reads: Sequence[Read], _limit: float) -> list[float]:
        nonlocal last
        result = []
        for read in reads:
            result.append(WITHOUT_SEEKS[device](random, read, abs(read.offset - last)))
            last = read.offset
        return result

    with pytest.raises(InputError, match=r"^--disk: reads .* no seeks of a disk, as on an SSD") as refused:
        measure_disk(size, 3600, seed, replay, clock=lambda: 0.0)
    assert any("--fio DIR" in note for note in refused.value.__notes__)


def test_the_simulated_disk_is_that_of_device_files(tmp_path: Path) -> None:
    random = Random(5)
    table = seek_table(TB, 0.005, 0.01)
    disk = SimulatedDisk(table, 150e6, 3)
    reads: list[Read] = []
    for _ in range(500):
        # Some reads continue one of the last few.
        start = random.choice(reads[-4:] or [Read(0, BLOCK)])
        offset = start.offset + start.size if random.random() < 0.5 else BLOCK * random.randrange(10**8)
        reads.append(Read(offset, BLOCK * random.randrange(1, 64)))
    seconds = disk.replay(reads, 3600)
    assert len(seconds) == len(reads)
    (tmp_path / "trace.csv").write_text(
        "seconds,kind,size,offset\n"
        + "".join(f"{at},read,{read.size},{read.offset}\n" for at, read in enumerate(reads))
    )
    device = {
        "disk": {
            "seek": [{"distance_bytes": distance, "seconds": time} for distance, time in table],
            "read_bytes_per_second": 150e6,
            "write_bytes_per_second": 150e6,
            "history": 3,
        }
    }
    (tmp_path / "disk.json").write_text(json.dumps(device))
    statistics = open_trace(tmp_path / "trace.csv", device=tmp_path / "disk.json").statistics()
    (work,) = (stage["total"] for stage in statistics["stages"] if stage["stage"] == "storage")
    assert work == pytest.approx(sum(seconds), rel=1e-6)


def test_a_disk_file_has_the_profile() -> None:
    profile = measured(TB, SimulatedDisk(seek_table(TB, 0.005, 0.01), 150e6, 5))
    disk = profile.disk()
    assert disk["read_bytes_per_second"] == disk["write_bytes_per_second"] == 150_000_000
    assert disk["history"] == 5
    assert [row["distance_bytes"] for row in disk["seek"]] == list(distances(TB))


READS = (Read(0, 4096), Read(65536, 4096), Read(1 << 40, 1 << 20))


def test_an_iolog_has_the_reads_in_order() -> None:
    assert iolog(READS) == (
        "fio version 2 iolog\ndisk add\ndisk open\ndisk read 0 4096\ndisk read 65536 4096\n"
        "disk read 1099511627776 1048576\ndisk close\n"
    )


LOG = """\
0, 5123456, 0, 4096, 0, 0
5, 8000000, 0, 4096, 65536, 0
20, 12000000, 0, 1048576, 1099511627776, 0
"""


@pytest.mark.parametrize(
    ("version", "text", "seconds"),
    [
        ("fio-3.33", LOG, [0.005123456, 0.008, 0.012]),
        # Newer versions write the priority as a hexadecimal number.
        ("fio-3.38", LOG.replace(", 0\n", ", 0x0000\n"), [0.005123456, 0.008, 0.012]),
        ("fio-2.16", "0, 5123, 0, 4096, 0\n5, 8000, 0, 4096, 65536\n", [0.005123, 0.008]),
        # The time limit ended the replay.
        ("fio-3.33", LOG.splitlines()[0], [0.005123456]),
        ("fio-3.33", "", []),
    ],
)
def test_latencies_are_read_from_logs(version: str, text: str, seconds: list[float]) -> None:
    assert latencies(text, READS, version) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0, 1, 0, 4096\n", r"line 1 of its log of latencies: `0, 1, 0, 4096`: expected time, latency"),
        ("0, 1, 1, 4096, 0, 0\n", "line 1 .* expected a read of 4096 bytes at 0"),
        ("0, 1, 0, 512, 0, 0\n", "expected a read of 4096 bytes at 0"),
        ("0, 1, 0, 4096, 0, 0\n0, 1, 0, 4096, 0, 0\n", "line 2 .* expected a read of 4096 bytes at 65536"),
        (LOG + "30, 1, 0, 4096, 0, 0\n", "line 4 .* more than 3 lines"),
        ("0, -1, 0, 4096, 0, 0\n", "expected time, latency"),
        ("0, 1, 0, 4096, x, 0\n", "expected time, latency"),
        (f"0, 1, 0, 4096, {'9' * 5000}, 0\n", "expected time, latency"),
        (f"0, {'9' * 5000}, 0, 4096, 0, 0\n", "expected time, latency"),
        ("\x00\x01", "expected time, latency"),
    ],
)
def test_a_log_of_other_reads_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^--fio: fio-3.33: .*{message}"):
        latencies(text, READS, "fio-3.33")
