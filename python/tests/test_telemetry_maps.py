"""Map files. The service reads them in the same way, and its tests use the same cases."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from leeward import InputError
from leeward.telemetry.mapping import read_map

CASES = yaml.safe_load(
    (Path(__file__).parents[2] / "crates" / "prometheus" / "tests" / "maps" / "cases.yaml").read_text()
)


@pytest.mark.parametrize("case", CASES["right"], ids=lambda case: case["of"])
def test_ports_map_to_the_links_of_the_test_cases(tmp_path: Path, case: dict[str, Any]) -> None:
    (tmp_path / "map.yaml").write_text(case["map"])
    mapping = read_map(tmp_path / "map.yaml")
    assert mapping.metrics is not None
    for port in case["ports"]:
        for way in ("in", "out", "load"):
            if way in port:
                assert mapping.link(port["labels"], way) == port[way], (port, way)
            elif "wrong" in port:
                with pytest.raises(InputError) as error:
                    mapping.link(port["labels"], way)
                assert error.value.field == port["wrong"], (port, way)


@pytest.mark.parametrize("case", CASES["wrong"], ids=lambda case: case["map"].strip())
def test_invalid_maps_are_rejected_with_the_line_and_field_of_the_cases(
    tmp_path: Path, case: dict[str, Any]
) -> None:
    (tmp_path / "map.yaml").write_text(case["map"])
    with pytest.raises(InputError) as error:
        read_map(tmp_path / "map.yaml")
    assert (error.value.line, error.value.field) == (case["line"], case["field"])
