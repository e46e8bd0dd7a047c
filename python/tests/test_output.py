import errno
import io
import os
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from leeward._files import atomic_file, atomic_folder
from leeward.cli.output import print_table
from leeward.cli.progress import progress, slow_notice


class Clock:
    """A clock whose time a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_outside_a_terminal_is_a_line_every_few_seconds() -> None:
    clock, stream = Clock(), io.StringIO()
    with progress("simulating", 30, stream, clock, lambda share: f"{share * 3:.1f} of 3 days") as advance:
        for _ in range(30):
            clock.now += 0.5
            advance(1)
    assert stream.getvalue().splitlines() == [
        "simulating: 13 %, 0.4 of 3 days, after 2 s",
        "simulating: 46 %, 1.4 of 3 days, after 7 s",
        "simulating: 80 %, 2.4 of 3 days, after 12 s",
    ]


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_no_progress_is_shown_for_less_than_two_seconds(stream: io.StringIO) -> None:
    clock = Clock()
    with progress("simulating days", 3, stream, clock) as advance:
        for _ in range(3):
            clock.now += 0.6
            advance(1)
    assert stream.getvalue() == ""


def test_progress_on_a_terminal_is_a_bar() -> None:
    clock, stream = Clock(), Terminal()
    with progress("simulating days", 4, stream, clock) as advance:
        clock.now += 3
        advance(1)
    assert "simulating days" in stream.getvalue()
    assert "25%" in stream.getvalue()


def test_progress_on_a_narrow_terminal_breaks_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    clock, stream = Clock(), Terminal()
    name = "simulating uniform, sinbad and leeward under five seeds"
    with progress(name, 4, stream, clock, lambda _: "16 min of 1 h simulated") as advance:
        clock.now += 3
        advance(1)
    printed = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", stream.getvalue())
    assert {*name.split(), "simulated"} <= {*printed.split()}


def test_a_long_task_without_progress_prints_its_name_once() -> None:
    stream = io.StringIO()
    with slow_notice("reading racks.yaml", stream, seconds=0.02):
        time.sleep(0.2)
    assert stream.getvalue() == "reading racks.yaml ...\n"


def test_a_short_task_prints_no_message() -> None:
    stream = io.StringIO()
    with slow_notice("reading racks.yaml", stream, seconds=0.1):
        pass
    with slow_notice("reading racks.yaml", stream, seconds=0.1) as ended:
        ended()
        time.sleep(0.2)
    assert stream.getvalue() == ""


def test_columns_with_the_same_name_stay_separate(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["", "a", "a"], "<>>", [["x", "1", "2"]])
    assert capsys.readouterr().out.splitlines() == ["   a  a", "x  1  2"]


def test_a_table_on_a_terminal_has_colours_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout", colourful := Terminal())
    print_table(["NAME"], "<", [["[red]r0[/red]"]])
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout", plain := Terminal())
    print_table(["NAME"], "<", [["[red]r0[/red]"]])
    assert "\x1b[1m" in colourful.getvalue()
    assert plain.getvalue() == "NAME\n[red]r0[/red]\n"


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, *table: Any) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    print_table(*table)
    return terminal.getvalue()


def test_on_a_narrow_terminal_only_text_columns_wrap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    description = "traffic between the racks of three clusters, relative"
    output = on_a_terminal(
        monkeypatch, 44, ["NAME", "SIZE", "WHAT"], "<><", [["facebook-tm-parsimon", "1.3 MB", description]]
    )
    lines = output.splitlines()
    assert lines[1].startswith("facebook-tm-parsimon  1.3 MB  traffic")
    assert all(len(line) <= 44 for line in lines)
    assert " ".join(line[30:].strip() for line in lines[1:]) == description


@pytest.mark.parametrize("columns", [10, 20, 40, 60, 80, 200])
def test_a_table_is_complete_at_any_terminal_width_and_breaks_no_word(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    policies = ["uniform:remote_racks=2", "sinbad:remote_racks=2:interval=10s"]
    rows = [["full block write time, mean", "6.80 s", "6.12 s"], ["f" * 64, "1", "2"]]
    output = on_a_terminal(monkeypatch, columns, ["", *policies], "<>>", rows)
    printed = output.split()
    expected = [
        word for cell in [*policies, *(cell for row in rows for cell in row)] for word in cell.split()
    ]
    # As a list, the headers repeat.
    assert {*printed} == {*expected}
    assert len(printed) >= len(expected)
    long = [line for line in output.splitlines() if len(line) > columns]
    assert all(len(line.split()) <= 2 for line in long)


@pytest.mark.parametrize("columns", range(22, 100))
def test_texts_that_wrap_keep_every_word_and_fit(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    headers = ["PLACE", "HOT", "SINCE", "WHY", "WHAT TO DO"]
    rows = [
        ["r9", "54.2 %", "2026-01-05 22:00", "the load grew", "add ports (leeward plan)"],
        ["r1", "41.7 %", "2026-01-05 10:00", "tasks that need much bandwidth", "place work elsewhere"],
    ]
    output = on_a_terminal(monkeypatch, columns, headers, "<><<<", rows)
    # As a list, the headers repeat.
    assert {*output.split()} == {word for row in [headers, *rows] for cell in row for word in cell.split()}
    assert all(len(line) <= columns for line in output.splitlines())


def test_on_a_narrow_terminal_a_row_becomes_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = ["LINK", "SHARE OF TIME", "RUNS"]
    rows = [["r9:uplink", "54.2 %", "1"], ["r1:uplink", "41.7 %", "2"]]
    output = on_a_terminal(monkeypatch, 24, headers, "<>>", rows)
    assert output.splitlines() == [
        "LINK           r9:uplink",
        "SHARE OF TIME  54.2 %",
        "RUNS           1",
        "",
        "LINK           r1:uplink",
        "SHARE OF TIME  41.7 %",
        "RUNS           2",
    ]


def test_in_a_list_a_cell_without_a_header_is_the_title_of_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["block write time, mean", "2.49 s", "2.25 s"], ["  median", "5.37 s", "5.37 s"]]
    output = on_a_terminal(monkeypatch, 30, ["", "uniform", "sinbad"], "<>>", rows)
    assert output.splitlines() == [
        "block write time, mean",
        "uniform  2.49 s",
        "sinbad   2.25 s",
        "",
        "  median",
        "uniform  5.37 s",
        "sinbad   5.37 s",
    ]


def test_a_wide_table_is_not_truncated_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["A", "B"], "<>", [["a" * 150, "b" * 150]])
    assert capsys.readouterr().out.splitlines()[1] == "a" * 150 + "  " + "b" * 150


def test_a_file_is_replaced_only_when_complete(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    target.write_text("old")

    def fail_half_way() -> None:
        with atomic_file(target) as path:
            path.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert target.read_text() == "old"
    with atomic_file(target) as path:
        assert path.suffix == ".json"
        path.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["result.json"]


def test_writing_a_file_into_a_missing_folder_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, atomic_file(tmp_path / "none" / "result.json"):
        pass
    assert caught.value.filename == str(tmp_path / "none")


@pytest.mark.parametrize("replace", [atomic_file, atomic_folder])
def test_write_errors_name_the_target_and_not_the_temporary_file(
    tmp_path: Path, replace: Callable[[Path], AbstractContextManager[Path]]
) -> None:
    target = tmp_path / "result"
    with pytest.raises(OSError, match="No space left") as caught, replace(target) as path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    assert caught.value.filename == str(target)
    # Arrow names the file only in its message.
    with pytest.raises(OSError, match="Permission denied") as caught, replace(target) as path:
        raise OSError(errno.EACCES, f"Failed to open local file '{path}'")
    assert caught.value.filename == str(target)
    assert os.listdir(tmp_path) == []


def test_a_folder_is_replaced_only_when_complete(tmp_path: Path) -> None:
    target = tmp_path / "above" / "results"

    def write(text: str, whole: bool = True) -> None:
        with atomic_folder(target) as path:
            (path / f"{text}.txt").write_text(text)
            if not whole:
                raise RuntimeError

    write("old")
    with pytest.raises(RuntimeError):
        write("half", whole=False)
    assert os.listdir(target) == ["old.txt"]
    write("new")
    assert os.listdir(target) == ["new.txt"]
    assert os.listdir(target.parent) == ["results"]


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o750])
def test_a_replaced_folder_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    target = tmp_path / "results"
    target.mkdir()
    target.chmod(mode)
    with atomic_folder(target) as path:
        (path / "new.txt").write_text("new")
    assert target.stat().st_mode & 0o777 == mode
    assert os.listdir(target) == ["new.txt"]
