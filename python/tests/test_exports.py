"""Exports of other programs: read where unambiguous, else refused with line and cell."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward import Cluster, InputError
from leeward.telemetry import Samples, read
from leeward.telemetry.exports import export
from leeward.telemetry.exports.numbers import Cell, style, written_number

CLUSTER = Cluster({"racks": 2, "hosts_per_rack": 1, "nic": "10Gbps", "rack_link": "10Gbps"})
MINUTE = 60_000
START = 1_767_571_200_000
"""2026-01-05 00:00:00 UTC."""
GRAFANA = """sep=,
"Time","r0:uplink","r1:uplink"
"2026-01-05 00:00:00","1.25 Gb/s","850 Mb/s"
"2026-01-05 00:01:00","1.50 Gb/s","0 b/s"
"2026-01-05 00:02:00","","125 MB/s"
"""
GERMAN = """Time;r0:uplink;r1:uplink
2026-01-05 00:00:00;1.250.000.000,5;850000000
2026-01-05 00:01:00;1.500.000.000;0
2026-01-05 00:02:00;;1000000000,25
"""
ENGLISH = """Time,r0:uplink,r1:uplink
2026-01-05 00:00:00,"1,250,000,000",850000000
2026-01-05 00:01:00,"1,500,000,000",0
2026-01-05 00:02:00,,"1,000,000,000"
"""
CACTI = """"Title:","tor-r0 - Traffic - Ethernet49"
"Vertical Label:","bits per second"
"Start Date:","2026-01-05 00:00:00"
"Step:","60"
"Total Rows:","3"

"Date","Inbound","Outbound"
"2026-01-05 00:00:00","1250000000.0","850000000"
"2026-01-05 00:01:00","1500000000.0","0"
"2026-01-05 00:02:00","NaN","1000000000"
"""
FETCH = """                       traffic_in         traffic_out

1767571200: 1.5625000000e+08 1.0625000000e+08
1767571260: 1.8750000000e+08 0.0000000000e+00
1767571320: -nan 1.2500000000e+08
"""
ONE = "Time,r0:uplink\n2026-01-05 00:00:00,"
TWO = "Time;r0:uplink\n2026-01-05 00:00:00;1.250,5\n2026-01-05 00:01:00;"
XPORT = """{ "about": "RRDtool xport JSON output",
  "meta": {"start": 1767571140, "end": 1767571320, "step": 60, "legend": ["traffic_in", "traffic_out"]},
  "data": [[1.5625e8, 1.0625e8], [1.875e8, 0], [null, 1.25e8]] }
"""
INFLUX = """#group,false,false,true,true,false,false,true,true,true
#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,long,string,string,string
#default,_result,,,,,,,,
,result,table,_start,_stop,_time,_value,_field,agent_host,ifName
,,0,2026-01-05T00:00:00Z,2026-01-05T01:00:00Z,2026-01-05T00:00:00Z,1000,ifHCInOctets,tor-r0,Ethernet49
,,0,2026-01-05T00:00:00Z,2026-01-05T01:00:00Z,2026-01-05T00:01:00Z,9000000001000,ifHCInOctets,tor-r0,Ethernet49

#group,false,false,true,true,false,false,true,true,true
#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,long,string,string,string
#default,_result,,,,,,,,
,result,table,_start,_stop,_time,_value,_field,agent_host,ifName
,,1,2026-01-05T00:00:00Z,2026-01-05T01:00:00Z,2026-01-05T00:00:00Z,5,ifHCOutOctets,tor-r0,Ethernet49
"""
DUMP = """{__name__="ifHCInOctets", instance="tor-r0", ifName="Ethernet49"} 1000 1767571200000
{__name__="ifHCInOctets", instance="tor-r0", ifName="Ethernet49"} 9000000001000 1767571260000
{__name__="ifHCOutOctets", instance="tor-r0", ifName="Ethernet49"} 5 1767571200000
"""
OPENMETRICS = """# TYPE ifHCInOctets counter
ifHCInOctets{instance="tor-r0",ifName="Ethernet49"} 1000 1767571200.000
ifHCInOctets{instance="tor-r0",ifName="Ethernet49"} 9.000000001e12 1767571260
ifHCOutOctets{instance="tor-r0",ifName="Ethernet49"} 5 1767571200
# EOF
"""


def table(folder: Path, text: str) -> dict[str, list[Any]]:
    path = folder / "eth49.csv"
    path.write_text(text)
    found = export(path)
    assert found is not None
    columns: dict[str, list[Any]] = found.table.to_pydict()
    return columns


@pytest.mark.parametrize(
    ("text", "decimals", "last"),
    [(GRAFANA, 0, 1e9), (GERMAN, 0.5, 1_000_000_000.25), (ENGLISH, 0, 1e9)],
    ids=["grafana", "german", "english"],
)
def test_numbers_are_read_as_people_write_them(
    tmp_path: Path, text: str, decimals: float, last: float
) -> None:
    assert table(tmp_path, text) == {
        "t_ms": [START, START + MINUTE, START + 2 * MINUTE],
        "r0:uplink": [1.25e9 + decimals, 1.5e9, None],
        "r1:uplink": [850e6, 0, last],
    }


def test_a_graph_of_cacti_has_its_title_and_unit(tmp_path: Path) -> None:
    assert table(tmp_path, CACTI) == {
        "t_ms": [START, START + MINUTE, START + 2 * MINUTE],
        "device": ["tor-r0 - Traffic - Ethernet49"] * 3,
        "in_bps": [1.25e9, 1.5e9, None],
        "out_bps": [850e6, 0, 1e9],
    }
    octets = CACTI.replace("bits per second", "Bytes/sec")
    assert table(tmp_path, octets)["out_bps"] == [8 * 850e6, 0, 8e9]


@pytest.mark.parametrize("text", [FETCH, XPORT], ids=["fetch", "xport"])
def test_output_of_rrdtool_has_the_file_as_device(tmp_path: Path, text: str) -> None:
    assert table(tmp_path, text) == {
        "t_ms": [START, START + MINUTE, START + 2 * MINUTE],
        "device": ["eth49"] * 3,
        "traffic_in": [156.25e6, 187.5e6, None],
        "traffic_out": [106.25e6, 0, 125e6],
    }


@pytest.mark.parametrize("text", [INFLUX, DUMP, OPENMETRICS], ids=["influx", "dump", "openmetrics"])
def test_readings_of_one_time_and_port_are_one_row(tmp_path: Path, text: str) -> None:
    found = table(tmp_path, text)
    device = "agent_host" if "agent_host" in found else "instance"
    assert found == {
        "t_ms": [START, START + MINUTE],
        device: ["tor-r0"] * 2,
        "ifName": ["Ethernet49"] * 2,
        "ifHCInOctets": [1000, 9_000_000_001_000],
        "ifHCOutOctets": [5, None],
    }


def test_a_default_of_influxdb_fills_empty_cells(tmp_path: Path) -> None:
    text = INFLUX.replace("#default,_result,,,,,,,,", "#default,_result,,,,,,,,Ethernet50")
    text = text.replace(",Ethernet49\n", ",\n")
    assert table(tmp_path, text)["ifName"] == ["Ethernet50"] * 2


def test_rows_of_counters_reach_the_links(tmp_path: Path) -> None:
    """A steady port of 1.2 Gb/s, in each form of counters."""
    growth = 60 * 150_000_000
    rows = [(START + MINUTE * step, step * growth) for step in range(10)]
    forms = {
        "influx.csv": "\n".join(
            [
                *INFLUX.split("\n")[:4],
                *(f",,0,,,{_iso(time)},{value},ifHCOutOctets,tor-r0,Ethernet49" for time, value in rows),
            ]
        ),
        "dump.txt": "\n".join(
            f'ifHCOutOctets{{agent_host="tor-r0",ifName="Ethernet49"}} {value} {time}' for time, value in rows
        ),
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text + "\n")
        assert bits(read_with_map(tmp_path, name)) == 8 * 9 * growth
    (tmp_path / "influx.csv.gz").write_bytes(gzip.compress(forms["influx.csv"].encode()))
    assert bits(read_with_map(tmp_path, "influx.csv.gz")) == 8 * 9 * growth


def _iso(time_ms: int) -> str:
    minutes = (time_ms - START) // MINUTE
    return f"2026-01-05T00:{minutes:02}:00Z"


def read_with_map(folder: Path, name: str) -> Samples:
    (folder / "map.yaml").write_text(
        "columns: {labels: [agent_host, ifName]}\n"
        "links: [{match: {agent_host: 'tor-(?P<rack>.*)'}, in: '{rack}:downlink', out: '{rack}:uplink'}]\n"
    )
    return read(CLUSTER, [folder / name], map=folder / "map.yaml", cadence="1min")


def bits(samples: Samples) -> int:
    return int(samples.engine.arrow(samples.table.agg(bits=samples.table.bits.sum()))["bits"][0].as_py())


@pytest.mark.parametrize("text", [FETCH, XPORT], ids=["fetch", "xport"])
def test_a_map_gives_the_unit_of_rrdtool(tmp_path: Path, text: str) -> None:
    (tmp_path / "eth49.rrd.txt").write_text(text)
    columns = "in: {column: traffic_in, unit: B/s}, out: {column: traffic_out, unit: B/s}"
    (tmp_path / "map.yaml").write_text(
        f"columns: {{{columns}}}\n"
        "links: [{match: {device: eth49}, in: 'r0:downlink', out: 'r0:uplink'}]\n"
    )
    samples = read(CLUSTER, [tmp_path / "eth49.rrd.txt"], map=tmp_path / "map.yaml")
    # The cell without a reading is no reading, and nothing is left out.
    assert bits(samples) == 60 * (1_250_000_000 + 1_500_000_000 + 850_000_000 + 1_000_000_000)
    assert not samples.discards.counts
    with pytest.raises(
        InputError, match="no readings, such as `load_bps`; there are: t_ms, device, traffic_in"
    ):
        read(CLUSTER, [tmp_path / "eth49.rrd.txt"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'{ONE}"1,250"\n', r"eth49.csv:2: r0:uplink: `1,250`: thousands or decimals"),
        (f"{TWO}1,250.5\n", r":3: r0:uplink: `1,250.5` contradicts `1.250,5` in line 2"),
        (GRAFANA.replace("850 Mb/s", "850 p/s"), r":3: r1:uplink: `850 p/s`: `p/s` is no unit of a rate"),
        (GRAFANA.replace("850 Mb/s", "12 %"), r":3: r1:uplink: `12 %`: `%` is no unit of a rate"),
        (GRAFANA.replace("850 Mb/s", "850"), r":3: r1:uplink: `850`: expected a unit, as `0 b/s` in line 4"),
        (GRAFANA.replace("850 Mb/s", "many"), r":3: r1:uplink: `many`: expected a number"),
        (
            GRAFANA.replace("2026-01-05 00:01:00", "05/01/2026 00:01"),
            r":4: `05/01/2026 00:01`: expected a time with the year first",
        ),
        (GRAFANA.replace(',"850 Mb/s"', ""), r":3: 2 cells; expected 3"),
        (
            CACTI.replace("bits per second", "% utilization"),
            r":2: Vertical Label: `% utilization`: expected bits per second or bytes",
        ),
        (
            CACTI.replace("Inbound", "Alpha").replace("Outbound", "Beta"),
            r":7: no column `Inbound` or `Outbound`; there are: Alpha, Beta",
        ),
        (CACTI.replace('"0"', '"zero"'), r":9: Outbound: `zero`: expected a number"),
        (FETCH.replace("1767571260: ", "soon: "), r":4: `soon: .*`: expected a time, a colon, and 2 values"),
        (
            XPORT.replace("[null,", "["),
            r"not as rrdtool xport --json prints it: a row has another number of values",
        ),
        (INFLUX.replace(",1000,", ",much,"), r":5: _value: `much` of the type `long`: expected a number"),
        (
            INFLUX.replace("_time,_value", "_hour,_value"),
            r":4: no column `_time` or `_value`; there are: result, table",
        ),
        (
            "#datatype,string,string\n#group,true,true\n#default,,\n,error,reference\n,query timed out,42\n",
            r":5: InfluxDB reports an error: query timed out",
        ),
        (DUMP.replace(" 1767571260000", ""), r":2: `.*`: no time after the value, so no rate"),
        (DUMP.replace('"tor-r0"', "tor-r0", 1), r":1: `.*`: expected name\{label="),
        ("<html><body>Login</body></html>\n", r":1: `<html><body>Login</body></html>`: XML or HTML"),
        ('{"status": "success"}\n', r":1: `.*`: JSON; expected CSV"),
    ],
)
def test_what_is_not_understood_is_named_with_line_and_cell(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        table(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "time,link,load_bps\n2026-01-05T00:00:00Z,r0:uplink,1.5e9\n",
        "t_s,r0:uplink\n1767571200,1250.5\n",
        "time;link;load_bps\n2026-01-05;r0:uplink;850\n",
        "time,device,interface,in_bps\n2026-01-05,10.0.0.1,1/0/49,oops\n",
        "",
    ],
)
def test_plain_tables_are_left_to_their_reader(tmp_path: Path, text: str) -> None:
    (tmp_path / "plain.csv").write_text(text)
    assert export(tmp_path / "plain.csv") is None


@given(
    st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 99)), min_size=1, max_size=8),
    st.sampled_from([(",", "."), (".", ","), (",", " "), (".", "'"), (",", "\u202f")]),
    st.sampled_from(["", " Mb/s", "kB/s"]),
)
def test_written_numbers_are_read_back_or_refused(
    numbers: list[tuple[int, int]], signs: tuple[str, str], unit: str
) -> None:
    decimal, thousands = signs
    texts = [f"{whole:,}".replace(",", thousands) + f"{decimal}{part:02}{unit}" for whole, part in numbers]
    cells = [Cell(line, "load", text) for line, text in enumerate(texts, 2)]
    how = style("loads.csv", cells, semicolons=False)
    for cell, (whole, part) in zip(cells, numbers, strict=True):
        assert written_number("loads.csv", cell, how) == (float(f"{whole}.{part:02}"), unit.strip())


@given(
    st.text(max_size=200),
    st.sampled_from(
        ["", "sep=;\n", "#datatype,a\n", "Title:,x\n", "# TYPE a b\n", " a b\n\n1767571200: 1 2\n"]
    ),
)
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str, start: str) -> None:
    path = tmp_path_factory.mktemp("any") / "file.csv"
    path.write_text(start + text)
    try:
        export(path)
    except InputError as error:
        assert "file.csv" in str(error)  # noqa: PT017 (any other error fails the test)
