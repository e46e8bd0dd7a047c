"""Commands of other packages."""

import ast
import re
import sys
import tomllib
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path

import pytest

import leeward
from leeward.cli import plugins
from leeward.cli.groups import Commands
from leeward.errors import InputError


def app_with(monkeypatch: pytest.MonkeyPatch, *installed: EntryPoint) -> Commands:
    """A command with the plug-ins of some entry points, and one command of its own."""
    monkeypatch.setattr(plugins, "entry_points", lambda group: installed)
    app = Commands()
    app.command("other")(lambda: None)
    plugins.add_commands(app, "Plug-ins")
    return app


def test_the_reproductions_are_a_plug_in_of_the_same_version() -> None:
    (entry,) = entry_points(group=plugins.GROUP)
    assert (entry.name, entry.value) == ("reproduce", "leeward_reproduce.command")
    root = Path(__file__).parents[2]
    projects = [root / "pyproject.toml", root / "reproduce" / "pyproject.toml"]
    ours, plug_in = (tomllib.loads(project.read_text())["project"] for project in projects)
    assert plug_in["version"] == leeward.__version__
    assert plug_in["dependencies"][0] == f"leeward[analysis,plot]=={leeward.__version__}"
    extras = [*ours["optional-dependencies"]["analysis"], *ours["optional-dependencies"]["plot"]]
    assert set(plug_in["dependencies"][1:]) <= {*ours["dependencies"], *extras}


def test_the_reproductions_depend_on_each_package_that_they_import() -> None:
    folder = Path(__file__).parents[2] / "reproduce"
    dependencies = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {
        "leeward_reproduce",
        *(re.split("[^a-z]", text.replace("pyyaml", "yaml"))[0] for text in dependencies),
    }
    imported = set()
    for source in (folder / "leeward_reproduce").rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(str(node.module).partition(".")[0])
    # Type checkers have the types of the standard library in `_typeshed`, which does not exist at runtime.
    assert imported - sys.stdlib_module_names - {"_typeshed"} == names


@pytest.mark.parametrize("arguments", [[], ["sinbad"], ["sinbad", "--figure", "8,10"], ["--help"]])
def test_a_plug_in_that_is_not_installed_hints_at_the_install_command(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        app_with(monkeypatch)(["reproduce", *arguments], standalone_mode=False)
    assert str(caught.value) == "reproduce: the plug-in is not installed"
    assert caught.value.__notes__ == ["pip install ./reproduce, in the folder of Leeward's sources"]


WHOLE = "EXAMPLES, SHORT_HELP = 'Examples', 'Short help'\n"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import leeward.no_such_module", "No module named 'leeward.no_such_module'"),
        ("raise OSError('no such device')", "OSError: no such device"),
        ("SHORT_HELP = 'Help'\ndef broken(): pass", "AttributeError: module 'broken_module' .*EXAMPLES"),
        ("EXAMPLES = 'Examples'\ndef broken(): pass", "AttributeError: module 'broken_module' .*SHORT_HELP"),
        (WHOLE, "AttributeError: module 'broken_module' has no attribute 'broken'"),
        (WHOLE + "broken = 5", "TypeError: 5 is not a callable object"),
    ],
    ids=["an import", "an exception", "no examples", "no short help", "no function", "no command"],
)
def test_a_plug_in_that_does_not_load_reports_the_reason_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, reason: str
) -> None:
    (tmp_path / "broken_module.py").write_text(source)
    installed = tmp_path / "its_package-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: its-package\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[{plugins.GROUP}]\nbroken = broken_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_module", raising=False)
    app = app_with(monkeypatch, *Distribution.at(installed).entry_points)
    app(["other"], standalone_mode=False)
    with pytest.raises(InputError, match=f"^broken: the plug-in does not load: {reason}") as caught:
        app(["broken"], standalone_mode=False)
    assert caught.value.__notes__ == ["pip install --force-reinstall its-package"]


def test_a_plug_in_of_the_repository_that_does_not_load_hints_at_its_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = EntryPoint("reproduce", "leeward.no_such_module", plugins.GROUP)
    with pytest.raises(InputError, match="does not load: No module named") as caught:
        app_with(monkeypatch, broken)(["reproduce"], standalone_mode=False)
    assert caught.value.__notes__ == ["pip install ./reproduce, in the folder of Leeward's sources"]
