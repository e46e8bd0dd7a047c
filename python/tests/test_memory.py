"""Memory of a million flows."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pyarrow.ipc
import pytest

BENCHMARK = Path(__file__).parent.parent / "benchmarks" / "fluid.py"


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_a_million_flows_and_their_table_take_under_100_megabytes(tmp_path: Path) -> None:
    flows = runpy.run_path(str(BENCHMARK))["make_flows"](1_000_000, load=0.7)
    path = tmp_path / "flows.arrow"
    with pyarrow.ipc.new_file(path, flows.schema) as file:
        file.write_table(flows)
    # The measurement needs its own process, because this process may have used more memory before.
    process = subprocess.run([sys.executable, BENCHMARK, path], capture_output=True, text=True, check=True)
    measured = json.loads(process.stdout)
    assert measured["flows"] == 1_000_000
    assert 32 < measured["megabytes"] < 100
