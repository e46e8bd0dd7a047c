import pickle
from pathlib import Path
from typing import Any

from leeward import InputError


def test_an_input_error_prints_the_known_parts_of_its_position() -> None:
    assert str(InputError("a.yaml", 7, 12, "nic", "too slow")) == "a.yaml:7:12: nic: too slow"
    assert str(InputError("a.yaml", 7, None, None, "too slow")) == "a.yaml:7: too slow"
    assert str(InputError("a.yaml", None, None, "nic", "too slow")) == "a.yaml: nic: too slow"
    assert str(InputError.about("a.yaml", "too slow")) == "a.yaml: too slow"
    assert InputError.about(Path("a.yaml"), "too slow").file == "a.yaml"


def test_an_input_error_has_no_os_error_number() -> None:
    error = InputError.about("a.yaml", "No such file or directory (os error 2)")
    assert str(error) == "a.yaml: No such file or directory"


def test_an_input_error_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(InputError("a.yaml", 7, 12, "nic", "too slow")))
    assert (error.file, error.line, error.column, error.field) == ("a.yaml", 7, 12, "nic")
    assert error.message == "too slow"


def test_a_cluster_file_given_as_a_scenario_is_recognized(run: Any, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("racks: 2\nhosts_per_rack: 2\nnic: 10Gbps\nrack_link: 10Gbps\n")
    ended = run("simulate", "cluster.yaml")
    assert ended.returncode == 2
    assert "hint: this is a cluster file; a scenario names it in its field `cluster`" in ended.stderr


def test_a_name_that_the_cluster_lacks_has_no_hint_about_fields(run: Any, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("racks: 2\nhosts_per_rack: 2\nnic: 10Gbps\nrack_link: 10Gbps\n")
    curve = "curves: {network-in: [{rate: 1kB/s, burst: 1kB}]}"
    (tmp_path / "w.yaml").write_text(
        f"stages: [network-in]\nworkloads:\n  - {{name: a, client: h9, server: r0h0, {curve}}}\n"
    )
    ended = run("slo", "bound", "w.yaml", "--cluster", "cluster.yaml")
    assert ended.returncode == 2
    assert "`h9`: the cluster has no such host" in ended.stderr
    assert "hint" not in ended.stderr
