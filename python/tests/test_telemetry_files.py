"""Telemetry in files of any layout, as samples; and map files."""

import gzip
import os
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from leeward import Cluster, InputError
from leeward.telemetry import Engine, Samples, read, windows
from leeward.telemetry.layout import layout
from leeward.telemetry.mapping import read_map
from leeward.telemetry.series import most_frequent

T = 1_700_000_000
EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER = Cluster({"racks": 3, "hosts_per_rack": 2, "nic": "10Gbps", "rack_link": "40Gbps"})
NAMES = dict(zip(*(CLUSTER.links()[name].to_pylist() for name in ("link", "name")), strict=True))
PORTS = """
links:
  - match: {device: 'tor(?P<n>\\d+)', interface: 'Eth\\d+'}
    in: 'r{n-1}:downlink'
    out: 'r{n-1}:uplink'
ignore:
  - {interface: Null0}
"""


def rows(samples: Samples) -> list[tuple[str, int, int, int, int]]:
    """Rows of samples: link name, seconds since `T`, span in seconds, bits, and capacity."""
    table = samples.engine.arrow(samples.table.order_by("link", "t_ms")).to_pylist()
    return [
        (
            NAMES[row["link"]],
            (row["t_ms"] - 1000 * T) // 1000,
            row["span_ms"] // 1000,
            row["bits"],
            row["capacity_bps"],
        )
        for row in table
    ]


def read_telemetry(path: Path, text: str, name: str = "a.csv", **given: Any) -> Samples:
    (path / name).write_text(text)
    return read(CLUSTER, [path / name], engine=Engine.duckdb(threads=1), **given)


LONG = (
    f"link,load_bps,t_s\nr0:uplink,1e9,{T}\nr0:uplink,2e9,{T + 30}\nr1:uplink,5,{T}\nr1:uplink,6,{T + 30}\n"
)
WANTED = [
    ("r0:uplink", 0, 30, 30 * 10**9, 40 * 10**9),
    ("r0:uplink", 30, 30, 60 * 10**9, 40 * 10**9),
    ("r1:uplink", 0, 30, 150, 40 * 10**9),
    ("r1:uplink", 30, 30, 180, 40 * 10**9),
]


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        LONG.replace(",", ";"),
        LONG.replace("t_s", "time"),
        LONG.replace("load_bps", "rate_kbps")
        .replace("1e9", "1e6")
        .replace("2e9", "2e6")
        .replace(",5,", ",0.005,")
        .replace(",6,", ",0.006,"),
        f"t_ms,r0:uplink,r1:uplink\n{T}000,1e9,5\n{T + 30}000,2e9,6\n",
        "timestamp,r0:uplink,r1:uplink\n2023-11-14T22:13:20Z,1e9,5\n2023-11-14 23:13:50+01:00,2e9,6\n",
    ],
    ids=["long", "semicolons", "time by its size", "kbps", "wide", "dates"],
)
def test_equivalent_layouts_give_the_same_samples(tmp_path: Path, text: str) -> None:
    assert rows(read_telemetry(tmp_path, text)) == WANTED


def test_gzip_parquet_and_folders_give_the_same_samples(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    first, second = LONG.split("r1", 1)
    (tmp_path / "a" / "1.csv.gz").write_bytes(gzip.compress(first.encode()))
    cells = [line.split(",") for line in ("r1" + second).splitlines()]
    columns = {
        "link": [link for link, *_ in cells],
        "load_bps": [float(load) for _, load, _ in cells],
        "t_s": [int(time) for *_, time in cells],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "a" / "2.parquet")
    (tmp_path / "a" / "readme.txt").write_text("not one of them")
    assert rows(read(CLUSTER, [tmp_path / "a"])) == WANTED


def test_unusable_rows_are_counted_by_reason(tmp_path: Path) -> None:
    bad = [
        f"r0:uplink,x,{T + 60}",
        f"r0:uplink,nan,{T + 60}",
        f"r0:uplink,inf,{T + 60}",
        f"r0:uplink,-1,{T + 60}",
        f"r0:uplink,1e16,{T + 60}",
        "r0:uplink,1,never",
        f"r0:uplink,1,{T + 10**6}",
        f"r0:uplimk,1,{T}",
        f",1,{T}",
        f"r0:uplink,1e9,{T}",
    ]
    samples = read_telemetry(tmp_path, LONG + "\n".join(bad) + "\n", now_ms=1000 * (T + 100))
    assert rows(samples) == WANTED
    assert samples.discards.counts == {
        "not-a-number": 3,
        "negative": 1,
        "too-fast": 1,
        "no-time": 1,
        "future": 1,
        "no-link": 2,
        "duplicate": 1,
    }
    assert any("nearest: r0:uplink" in one for one in samples.discards.examples["no-link"])


def test_non_numeric_cells_of_a_wide_file_are_counted_and_empty_ones_not(tmp_path: Path) -> None:
    cells = ["", "error", "n/a", '""', "5e8", " ", "nan"]
    text = "t_s,r0:uplink,r1:uplink\n" + "".join(f"{T + 30 * at},1,{cell}\n" for at, cell in enumerate(cells))
    samples = read_telemetry(tmp_path, text)
    assert [row[0] for row in rows(samples)].count("r1:uplink") == 1
    assert samples.discards.counts == {"not-a-number": 3}


def test_times_of_an_unset_clock_are_discarded_as_past(tmp_path: Path) -> None:
    samples = read_telemetry(tmp_path, f"{LONG}r0:uplink,1,5\nr1:uplink,1,-{T}\n")
    assert rows(samples) == WANTED
    assert samples.discards.counts == {"past": 2}
    counters = "link,counter_octets,t_s\nr0:uplink,5,30\n" + "".join(
        f"r0:uplink,{at},{T + 30 * at}\n" for at in range(4)
    )
    assert read_telemetry(tmp_path, counters).discards.counts == {"past": 1}


@pytest.mark.parametrize("speed", ["inf", "-inf", "nan", "", "x", "-5"])
def test_invalid_speeds_are_counted_and_do_not_hide_excessive_ones(tmp_path: Path, speed: str) -> None:
    text = "link,load_bps,t_s,speed_bps\n" + "".join(
        f"r0:uplink,1e9,{T + 30 * at},{speed if at == 1 else '2e10'}\n" for at in range(4)
    )
    samples = read_telemetry(tmp_path, text)
    assert [row[4] for row in rows(samples)] == [2 * 10**10, 4 * 10**10, 2 * 10**10, 2 * 10**10]
    assert samples.discards.counts == {"no-speed": 1}
    with pytest.raises(InputError, match="is the unit right"):
        read_telemetry(tmp_path, f"{text}r0:uplink,1,{T + 120},1e20\n")


def test_a_sample_of_a_link_with_all_ports_down_is_counted(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(PORTS)
    text = "unix_s,device,interface,speed_mbps,out_bps\n" + "".join(
        f"{T + 10 * step},tor1,Eth{port},{'0,0' if step > 1 else '10000,1000'}\n"
        for step in range(4)
        for port in (1, 2)
    )
    samples = read_telemetry(tmp_path, text, map=tmp_path / "map.yaml")
    assert len(rows(samples)) == 2
    assert samples.discards.counts == {"no-capacity": 4}


def test_ports_become_the_links_of_the_map_with_their_own_speeds(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(PORTS)
    text = (
        "unix_s,device,interface,bandwidth_kbps,in_kbps,out_kbps\n"
        f"{T},tor1,Eth1,40000000,5,6\n{T + 10},tor1,Eth1,20000000,7,8\n{T},tor1,Null0,0,1,1\n"
    )
    samples = read_telemetry(tmp_path, text, map=tmp_path / "map.yaml")
    assert rows(samples) == [
        ("r0:uplink", 0, 10, 60_000, 40 * 10**9),
        ("r0:uplink", 10, 10, 80_000, 20 * 10**9),
        ("r0:downlink", 0, 10, 50_000, 40 * 10**9),
        ("r0:downlink", 10, 10, 70_000, 20 * 10**9),
    ]
    assert samples.discards.counts == {"ignored": 2}


def test_a_map_that_leaves_out_every_series_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(PORTS)
    with pytest.raises(
        InputError, match="none of 1 series is a link of the cluster: device=tor1, int"
    ) as error:
        read_telemetry(
            tmp_path, f"unix_s,device,interface,load_bps\n{T},tor1,Eth1,1\n", map=tmp_path / "map.yaml"
        )
    (hint,) = error.value.__notes__
    assert hint.endswith("map.yaml: `ignore` has them, or their rule has no link for `load`")


def test_bits_and_capacities_of_the_ports_of_a_link_add_up(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(PORTS)
    text = "unix_s,device,interface,speed_mbps,out_bps\n" + "".join(
        f"{T + 10 * step}.{port}00,tor1,Eth{port},{'0,0' if step > 1 and port > 2 else '10000,1000'}\n"
        for step in range(4)
        for port in (1, 2, 3, 4)
    )
    samples = read_telemetry(tmp_path, text, map=tmp_path / "map.yaml")
    assert [(bits, capacity // 10**9) for *_, bits, capacity in rows(samples)] == [
        (40_000, 40), (40_000, 40), (20_000, 20), (20_000, 20)
    ]  # fmt: skip


def test_ports_without_speeds_share_the_capacity_of_the_cluster_file(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(PORTS)
    text = "unix_s,device,interface,out_bps\n" + "".join(
        f"{T + 10 * step},tor1,Eth{port},1000\n" for step in range(2) for port in (1, 2)
    )
    assert {row[4] for row in rows(read_telemetry(tmp_path, text, map=tmp_path / "map.yaml"))} == {40 * 10**9}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("t_s,link\n1,2\n", "no readings, such as `load_bps`"),
        ("link,load_bps\na,2\n", "no column of times"),
        ("t_s,load_bps\n1,2\n", "no `link`"),
        ("t_s,link,load_bps,LINK\n", "given twice"),
        ("t_s,link,load_bps\n", "no readings"),
        (f"t_s,link,load_bps\n{T},r9:uplink,1\n", "none of 1 series is a link"),
        (f"t_s,link,load_bps\n{T},r0:uplink,1\n", "no series has two readings"),
        (f"t_s,link,load_bps\n{T},r0:uplink,1,2,3\n", "a.csv:2"),
        (f"t_s,link,load_bps,speed_mbps\n{T},r0:uplink,1,1e12\n", "is the unit right?"),
        (f"t_s,link,load_bps\n{T},r0:uplink,x\n", "no reading can be used (not-a-number: 1)"),
        ("PAR1 but not really", "not readable as Parquet"),
    ],
)
def test_an_invalid_file_is_an_input_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read_telemetry(tmp_path, text)
    assert message in str(error.value)


def test_a_truncated_file_is_reported(tmp_path: Path) -> None:
    whole = gzip.compress((LONG * 50).encode())
    (tmp_path / "a.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="truncated"):
        read(CLUSTER, [tmp_path / "a.csv.gz"])


@pytest.mark.hypothesis
@settings(max_examples=settings().max_examples // 2)
@given(data=st.binary(max_size=300))
def test_random_bytes_only_raise_input_errors(tmp_path_factory: Any, data: bytes) -> None:
    path = tmp_path_factory.mktemp("hostile") / "a.csv"
    path.write_bytes(b"t_s,link,load_bps\n" + data)
    with suppress(InputError):
        read(CLUSTER, [path], engine=Engine.duckdb(threads=1))


def test_since_and_until_bound_the_samples(tmp_path: Path) -> None:
    text = "link,load_bps,t_s\n" + "".join(f"r0:uplink,1,{T + 30 * step}\n" for step in range(100))
    some = read_telemetry(tmp_path, text, since="10min", until="2023-11-14T22:33:20Z")
    assert [row[1] for row in rows(some)] == list(range(630, 1201, 30))
    assert not some.discards.counts


@pytest.mark.parametrize(
    ("spacings", "wanted"),
    [
        ({10_000: 5}, 10_000),
        ({9_990: 3, 10_000: 3, 10_020: 3, 20_000: 8}, 10_000),
        ({1: 1, 30_000: 100, 60_000: 3}, 30_000),
    ],
)
def test_the_cadence_is_the_most_frequent_spacing_despite_clock_jitter(
    spacings: dict[int, int], wanted: int
) -> None:
    assert most_frequent(spacings.keys(), spacings.values()) == wanted


@pytest.mark.parametrize(
    ("columns", "ways", "counter", "width"),
    [
        ("unix_s Producer interface-name bytes-received bytes-sent", {"in", "out"}, True, 0),
        ("time instance ifName ifHCInOctets ifHCOutOctets ifHighSpeed", {"in", "out"}, True, 0),
        ("time instance ifName ifInOctets ifOutOctets", {"in", "out"}, True, 32),
        ("time instance device node_network_receive_bytes_total", {"in"}, True, 0),
        ("t_ms link counter_octets", {"load"}, True, 0),
        ("t_ms device interface rx_mbps tx_mbps", {"in", "out"}, False, 0),
        ("t_ms device interface rx_mbps tx_mbps rx_octets tx_octets", {"in", "out"}, True, 0),
    ],
)
def test_columns_are_known_by_their_names(columns: str, ways: set[str], counter: bool, width: int) -> None:
    actual = layout("a.csv", columns.split())
    assert (set(actual.values), actual.counter, actual.width) == (ways, counter, width)


@pytest.mark.parametrize(
    ("readings", "lost"), [("rx_bps tx_octets", "rx_bps"), ("rx_octets tx_octets load_bps", "load_bps")]
)
def test_a_rate_without_a_counter_beside_counters_is_an_error(readings: str, lost: str) -> None:
    with pytest.raises(InputError, match=f"{lost}: a rate beside the counter `[rt]x_octets`, and no counter"):
        layout("a.csv", ["t_ms", "device", "interface", *readings.split()])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("links: 3", "links: expected a list"),
        ("links:\n- {in: a}", "2:3: links[0].match: missing"),
        ("links:\n- {match: {a: '('}, in: a}", "links[0].match.a: `(`: invalid pattern"),
        ("links:\n- {match: {a: b}}", "links[0]: expected `in`, `out` or `load`"),
        ("links:\n- {match: {a: b}, in: '{x'}", "expected `{name}`"),
        ("lniks: []", "lniks: no such field; expected prometheus"),
        ("columns: {in: {column: x, unit: furlongs}}", "columns.in.unit: `furlongs`: expected one of bps"),
        ("prometheus: {speed: x}", "expected the counters to query: `in` and `out`, or `load`"),
        ("a: [", "expected the node content"),
        ("", "expected fields with values"),
    ],
)
def test_an_invalid_map_is_rejected_with_the_position(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "map.yaml").write_text(text)
    with pytest.raises(InputError) as error:
        read_map(tmp_path / "map.yaml")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("file", "labels", "way", "link"),
    [
        ("snmp_exporter", {"instance": "tor-r3", "ifName": "Ethernet49"}, "in", "r3:downlink"),
        ("snmp_exporter", {"instance": "tor-r3.dc1", "ifName": "Ethernet52"}, "out", "r3:uplink"),
        ("snmp_exporter", {"instance": "tor-r3", "ifName": "Ethernet8"}, "in", "r3h7:egress"),
        ("snmp_exporter", {"instance": "tor-r3", "ifName": "Vlan7"}, "in", ""),
        ("snmp_exporter", {"instance": "core1", "ifName": "Ethernet1"}, "in", None),
        ("node_exporter", {"instance": "r0h1:9100", "device": "eth0"}, "out", "r0h1:egress"),
        ("gnmic", {"source": "tor-r1:57400", "interface_name": "ethernet-1/1"}, "out", "r1h0:ingress"),
    ],
)
def test_examples_of_maps_name_links(file: str, labels: dict[str, str], way: str, link: str | None) -> None:
    assert read_map(EXAMPLES / "telemetry" / f"{file}.yaml").link(labels, way) == link


def captures() -> Path:
    if "LEEWARD_DATA" not in os.environ:
        pytest.skip("LEEWARD_DATA is not set: no captures to read")
    return Path(os.environ["LEEWARD_DATA"])


@pytest.mark.parametrize("kind", ["data_rate", "byte_counters"])
def test_public_captures_of_a_fabric_are_read_unchanged(tmp_path: Path, kind: str) -> None:
    leaf = "device" if kind == "data_rate" else "Producer"
    port = "interface" if kind == "data_rate" else "interface-name"
    (tmp_path / "map.yaml").write_text(
        f"links:\n  - match: {{{leaf}: '(?P<leaf>leaf\\d+)', {port}: 'HundredGigE.*'}}\n"
        "    in: '{leaf}:downlink'\n    out: '{leaf}:uplink'\n"
    )
    network = Cluster({"racks": [{"name": "leaf7", "hosts": 2}], "nic": "25Gbps", "rack_link": "3600Gbps"})
    file = captures() / "cisco-dcfabric-telemetry" / f"leaf7_5h28m.{kind}.csv.gz"
    samples = read(network, [file], map=tmp_path / "map.yaml")
    assert 9_000 < samples.cadence_ms < 12_000
    assert set(samples.discards.counts) <= {"gap", "duplicate", "too-fast"}
    peak = samples.engine.arrow(windows(samples, 60_000).table)["ppm"].to_numpy().max()
    assert 10_000 < peak < 600_000


@pytest.mark.parametrize(
    ("lines", "share"),
    [pytest.param(8928, 0.84, marks=pytest.mark.whole, id="a month"), pytest.param(600, 0.85, id="two days")],
)
def test_public_loads_of_machines_are_read_unchanged(tmp_path: Path, lines: int, share: float) -> None:
    with gzip.open(captures() / "bitbrains-rnd" / "net_rx_2013-07.csv.gz", "rb") as every:
        (tmp_path / "vms.csv.gz").write_bytes(gzip.compress(b"".join(islice(every, lines + 1)), 1))
    (tmp_path / "map.yaml").write_text(
        "columns: {wide: kB/s}\nlinks:\n  - {match: {link: 'vm\\d+'}, load: '{link}:ingress'}\n"
    )
    hosts = [{"name": f"vm{number}"} for number in range(1, 501)]
    network = Cluster({"racks": [{"hosts": hosts}], "nic": "10Gbps", "oversubscription": 4})
    samples = read(network, [tmp_path / "vms.csv.gz"], map=tmp_path / "map.yaml")
    number = samples.engine.arrow(samples.table.agg(n=samples.table.count()))["n"][0].as_py()
    assert (samples.cadence_ms, round(number / (lines * 500), 2)) == (300_000, share)


@pytest.mark.hypothesis
@settings(max_examples=settings().max_examples // 20)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["r0:uplink", "r1:uplink", "r9:uplink"]),
            st.integers(-1, 45),
            st.integers(-2, 2),
            st.sampled_from(["1e9", "2.5", "0", "-1", "nan", "", "x", "1e300"]),
        ),
        max_size=60,
    ),
    st.sampled_from([10, 30, 600]),
)
def test_sums_computed_while_reading_match_the_samples(
    drawn: list[tuple[str, int, int, str]], cadence: int
) -> None:
    # Both links have some valid rows, so each has sums.
    good = [(link, at, 0, "3e9") for link in ("r0:uplink", "r1:uplink") for at in range(100, 120)]
    lines = [f"{link},{value},{T + cadence * at + late}" for link, at, late, value in drawn + good]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text("\n".join(["link,load_bps,t_s", *lines, f"r0:uplink,1,{10 * T}", "r0:uplink,1,"]))
        result = read(CLUSTER, [path], engine=Engine.duckdb(threads=1), cadence=f"{cadence}s")
        assert result.sums is not None
        for interval in (result.sums.length_ms, 7 * result.sums.length_ms):
            ours, theirs = (
                result.engine.arrow(
                    windows(one, interval, 0.0).table.order_by("link", "start_ms")
                ).to_pylist()
                for one in (result, replace(result, sums=None))
            )
            names = ("link", "start_ms", "bits", "capacity_bits", "covered_ms", "ppm")
            assert [[row[name] for name in names] for row in ours] == [
                [row[name] for name in names] for row in theirs
            ]
        samples = result.engine.arrow(result.table.agg(n=result.table.count()))["n"][0].as_py()
        # The last two rows have no time or a time in the future. Each discarded row is counted.
        assert samples + result.discards.total == len(lines) + 2


@pytest.mark.parametrize(
    ("columns", "cells", "capacity", "reason"),
    [
        ("ifSpeed,ifHighSpeed", "4294967295,20000", 20, None),
        ("ifHighSpeed,ifSpeed", "20000,4294967295", 20, None),
        ("ifSpeed", "4294967295", 40, "no-speed"),
        ("ifSpeed", "0", 40, "no-speed"),
        ("ifHighSpeed", "0", 40, "no-speed"),
        ("ifSpeed", "1000000000", 1, None),
    ],
)
def test_a_speed_at_its_top_or_of_a_busy_port_at_0_is_unknown(
    tmp_path: Path, columns: str, cells: str, capacity: int, reason: str | None
) -> None:
    (tmp_path / "map.yaml").write_text(PORTS)
    text = f"unix_s,device,interface,{columns},ifHCOutOctets\n" + "".join(
        f"{T + 60 * step},tor1,Eth1,{cells},{10**9 + 10**8 * step}\n" for step in range(6)
    )
    samples = read_telemetry(tmp_path, text, map=tmp_path / "map.yaml")
    assert {row[4] for row in rows(samples)} == {capacity * 10**9}
    assert [row[3] for row in rows(samples)] == [8 * 10**8] * 5
    assert set(samples.discards.counts) == ({reason} if reason else set())


def test_a_table_in_memory_is_read_like_its_file() -> None:
    cluster = Cluster(EXAMPLES / "clusters" / "racks.yaml")
    file = EXAMPLES / "telemetry" / "links.parquet"
    table = parquet.read_table(file)

    def ordered(source: Any) -> Any:
        samples = read(cluster, source)
        return samples.engine.arrow(samples.table.order_by("link", "t_ms")).to_pydict()

    expected = ordered(file)
    assert expected == ordered([file])
    assert len(expected["link"]) > 0
    half = table.num_rows // 2
    for source in (table, [table], [table.slice(0, half), table.slice(half)]):
        assert ordered(source) == expected
    with pytest.raises(InputError, match="table 0"):
        read(cluster, table.rename_columns([f"c{at}" for at in range(table.num_columns)]))
