import io
import os
from pathlib import Path

import pytest

from leeward.cli.files import whole_file
from leeward.cli.output import print_table
from leeward.cli.progress import progress


class Clock:
    """Time that passes when told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_elsewhere_than_on_a_terminal_is_a_line_every_few_seconds() -> None:
    clock, stream = Clock(), io.StringIO()
    with progress("simulating days", 30, stream, clock) as advance:
        for _ in range(30):
            clock.now += 0.5
            advance(1)
    assert stream.getvalue().splitlines() == [
        "simulating days: 4 of 30 (13 %) after 2 s",
        "simulating days: 14 of 30 (46 %) after 7 s",
        "simulating days: 24 of 30 (80 %) after 12 s",
    ]


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_what_takes_less_than_two_seconds_shows_no_progress(stream: io.StringIO) -> None:
    clock = Clock()
    with progress("simulating days", 3, stream, clock) as advance:
        for _ in range(3):
            clock.now += 0.6
            advance(1)
    assert stream.getvalue() == ""


def test_progress_on_a_terminal_is_a_bar_that_goes_away() -> None:
    clock, stream = Clock(), Terminal()
    with progress("simulating days", 4, stream, clock) as advance:
        clock.now += 3
        advance(1)
    assert "simulating days" in stream.getvalue()
    assert "25%" in stream.getvalue()


def test_a_table_on_a_terminal_has_colours_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout", colourful := Terminal())
    print_table({"NAME": "left"}, [["[red]r0[/red]"]])
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout", plain := Terminal())
    print_table({"NAME": "left"}, [["[red]r0[/red]"]])
    assert "\x1b[1m" in colourful.getvalue()
    assert plain.getvalue() == "NAME\n[red]r0[/red]\n"


def test_a_wide_table_is_not_cut_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    print_table({"A": "left", "B": "right"}, [["a" * 150, "b" * 150]])
    assert capsys.readouterr().out.splitlines()[1] == "a" * 150 + "  " + "b" * 150


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    target.write_text("old")

    def fail_half_way() -> None:
        with whole_file(target) as path:
            path.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert target.read_text() == "old"
    with whole_file(target) as path:
        assert path.suffix == ".json"
        path.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["result.json"]


def test_a_file_in_no_folder_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, whole_file(tmp_path / "none" / "result.json"):
        pass
    assert caught.value.filename == str(tmp_path / "none")
