"""Former names of flags work, and say the present name."""

import pytest
import typer.main

from leeward.cli import app
from leeward.cli.former_flags import FORMER_FLAGS, replace_former_flags
from leeward.errors import InputError

FORMER = [(command, old, new) for command, flags in FORMER_FLAGS.items() for old, new in flags.items()]


def flags_of(command: str) -> set[str]:
    """Flags that a command declares."""
    found = typer.main.get_command(app)
    for word in command.split():
        found = found.commands[word]  # type: ignore[attr-defined] # a group
    return {flag for parameter in found.params for flag in parameter.opts}


@pytest.mark.parametrize(("command", "old", "new"), FORMER)
def test_a_former_name_becomes_the_present_one_with_a_warning(
    capsys: pytest.CaptureFixture[str], command: str, old: str, new: str
) -> None:
    assert new in flags_of(command)
    assert old not in flags_of(command)
    value = "10s" if old == "--seconds" else "10"
    words = command.split()
    assert replace_former_flags([*words, old, "10", "x"]) == [*words, new, value, "x"]
    assert replace_former_flags([*words, f"{old}=10"]) == [*words, f"{new}={value}"]
    assert capsys.readouterr().err == 2 * f"warning: {old} is now {new}; the former name will be removed\n"
    with pytest.raises(InputError, match=f"is the former name of {new}; expected only one of the two"):
        replace_former_flags([*words, new, "1", f"{old}=2"])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["simulate", "x.yaml", "--threads", "2"],
        ["plan", "--", "--threshold", "75%"],
        ["probe", "mesh", "--keep"],
    ],
)
def test_other_arguments_stay(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert replace_former_flags(arguments) == arguments
    assert capsys.readouterr().err == ""
