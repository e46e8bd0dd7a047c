"""Templates of Hotspots' figures of section 4: curves from tables, with marks for the paper's values."""

from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
from matplotlib import pyplot
from matplotlib.patches import Rectangle
from pyarrow import parquet

import leeward
from leeward.impact import Settings, measure, tables
from leeward.impact.synthetic import Kind, plant
from leeward.telemetry import Engine, Samples
from leeward_reproduce import drawing
from leeward_reproduce.hotspots import impact_figures, paper

GROWTH = [1 + 4 * (at / 19) ** 2 for at in range(20)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of synthetic latencies: a folder for each set of fields by which a figure splits latencies."""
    cluster = leeward.Cluster("racks: 4\nhosts_per_rack: 2\nnic: 10Gbps\nrack_link: 10Gbps\n")
    kinds = [Kind("file-read", GROWTH, 0.3), Kind("file-write", GROWTH, 0.9, medium="ssd")]
    planted = plant(cluster.links(), kinds, per_bucket=120)
    random = numpy.random.default_rng(1)
    rows = planted.latencies.num_rows
    latencies = planted.latencies.append_column("size_bytes", pyarrow.array(random.choice([5e4, 5e6], rows)))
    latencies = latencies.append_column("compute_ratio", pyarrow.array(random.choice([0.15, 0.85], rows)))
    latencies = latencies.append_column("class", pyarrow.array(random.choice(["PC", "NC"], rows)))
    folder = tmp_path_factory.mktemp("templates")
    parquet.write_table(latencies, folder / "l.parquet")
    engine = Engine.duckdb(threads=1)
    samples = Samples(engine, engine.table(planted.samples), cluster.links(), cluster.rack_table(), 30_000)
    for by in {template.by for template in impact_figures.TEMPLATES.values()}:
        options = Settings(by=by, least=10, resamples=0)
        tables_folder = folder / ",".join(by)
        tables_folder.mkdir()
        for name, table in tables.tables(measure(folder / "l.parquet", samples, options)).items():
            parquet.write_table(table, tables_folder / f"{name}.parquet")
    return folder


@pytest.mark.parametrize("name", impact_figures.TEMPLATES)
def test_every_template_draws_its_tables_and_names_the_source_of_the_marks(folder: Path, name: str) -> None:
    template = impact_figures.TEMPLATES[name]
    source = impact_figures.read(folder / ",".join(template.by))
    open_before = pyplot.get_fignums()
    with drawing.settings():
        svg = drawing.render(template.draw(source))["svg"].decode()
    assert impact_figures.PRIVATE in svg
    for kind in {kind for row in source.buckets.select(template.by[:1]).to_pylist() for kind in row.values()}:
        assert kind in svg
    assert ("paper: " in svg) == (name != "22")
    assert pyplot.get_fignums() == open_before


def test_curves_match_the_planted_growth(folder: Path) -> None:
    source = impact_figures.read(folder / "operation")
    curves = source.curves("network", ("operation",))
    for points in curves.values():
        assert [round(across, 3) for across, _ in points] == [2.5 + 5 * at for at in range(20)]
        assert [up for _, up in points] == pytest.approx(GROWTH, rel=0.005)


def test_table_1_has_the_columns_of_the_paper_and_our_values(folder: Path) -> None:
    source = impact_figures.read(folder / "operation")
    rows = {row.quantity: row for row in impact_figures.table_1(source)}
    assert len(rows) == 6
    # The inflation of file-write is 0.1 + 0.9 x growth: 1.5 is reached from 40 % on, and 2 from 55 % on.
    assert rows["load-tolerance at 1.5x, file-write"].ours == pytest.approx(40)
    assert rows["load-tolerance at 2x, file-write"].ours == pytest.approx(55)
    assert rows["hotspot-inflation, file-write"].ours == pytest.approx(0.1 + 0.9 * GROWTH[15], rel=0.005)
    assert all(row.paper is None for row in rows.values())
    names = pyarrow.array(["streaming"] * source.tolerance.num_rows)
    renamed = source.tolerance.set_column(0, "operation", names)
    (row,) = [
        row
        for row in impact_figures.table_1(impact_figures.Tables(source.buckets, renamed))
        if row.quantity.startswith("hotspot")
    ]
    assert (row.paper, row.note) == (paper.QUERIES["streaming"][2], impact_figures.PRIVATE)


def test_tolerance_bars_are_filled_or_hatched_up_to_the_judged_range() -> None:
    kinds = [("NC", 1.065, 1.5), ("PC", None, 0.75)]
    rows: list[dict[str, Any]] = [
        {"operation": "file-read", "class": name, "size": "1MB to 10MB", "part": "total", "percentile": "p95"}
        | {"figure": "load-tolerance", "factor": 2.0, "value": value, "judged_to": judged}
        for name, value, judged in kinds
    ]
    source = impact_figures.Tables(pyarrow.table({}), pyarrow.Table.from_pylist(rows))
    (axes,) = impact_figures.classes(source).axes
    rectangles = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    bars = [(round(bar.get_height(), 3), bar.get_fill(), bar.get_hatch()) for bar in rectangles]
    pyplot.close("all")
    assert bars == [(106.5, True, None), (75.0, False, "///")]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "file-read NC",
        "file-read PC",
        "not reached where buckets end",
    ]
    # The figure has no line for full links, since full links differ in effective utilization.
    assert not axes.get_lines()
