"""Commands of other packages."""

import tomllib
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest
import typer

import leeward
from leeward.cli import plugins
from leeward.errors import InputError


def app_with(monkeypatch: pytest.MonkeyPatch, *installed: EntryPoint) -> typer.Typer:
    """A command with the plug-ins of some entry points, and one command of its own."""
    monkeypatch.setattr(plugins, "entry_points", lambda group: installed)
    app = typer.Typer()
    app.command("other")(lambda: None)
    plugins.add_commands(app)
    return app


def test_the_reproductions_are_a_plug_in_of_the_same_version() -> None:
    (entry,) = entry_points(group=plugins.GROUP)
    assert (entry.name, entry.value) == ("reproduce", "leeward_reproduce.command")
    project = tomllib.loads((Path(__file__).parents[2] / "reproduce" / "pyproject.toml").read_text())[
        "project"
    ]
    assert project["version"] == leeward.__version__
    assert project["dependencies"] == [f"leeward=={leeward.__version__}"]


@pytest.mark.parametrize("arguments", [[], ["sinbad"], ["sinbad", "--figure", "8,10"], ["--help"]])
def test_a_plug_in_that_is_not_installed_hints_at_the_install_command(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        app_with(monkeypatch)(["reproduce", *arguments], standalone_mode=False)
    assert str(caught.value) == "reproduce: the plug-in is not installed"
    assert caught.value.__notes__ == ["pip install ./reproduce, in the folder of Leeward's sources"]


def test_a_plug_in_that_does_not_load_reports_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("broken", "leeward.no_such_module", plugins.GROUP)
    with pytest.raises(InputError) as caught:
        app_with(monkeypatch, broken)(["broken"], standalone_mode=False)
    assert str(caught.value) == "broken: the plug-in does not load: No module named 'leeward.no_such_module'"
