import pickle
from pathlib import Path

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
