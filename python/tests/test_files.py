"""Outputs under sudo belong to the user who called it, and those in folders of others stay root's."""

import os
from pathlib import Path

import pytest

from leeward import _files
from leeward.cli.device_output import KeptText

GROUP = 4321


@pytest.fixture
def chowned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, tuple[int, int]]:
    """Owners that files get, by their names, in a process that root runs for the owner of the folder."""
    owners: dict[str, tuple[int, int]] = {}

    def chown(path: Path, user: int, group: int, *, follow_symlinks: bool) -> None:
        assert not follow_symlinks
        owners[Path(path).name] = (user, group)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", chown)
    monkeypatch.setenv("SUDO_UID", str(tmp_path.stat().st_uid))
    monkeypatch.setenv("SUDO_GID", str(GROUP))
    return owners


def test_outputs_under_sudo_belong_to_the_caller(chowned: dict[str, tuple[int, int]], tmp_path: Path) -> None:
    owner = (tmp_path.stat().st_uid, GROUP)
    with _files.atomic_file(tmp_path / "a.json") as temporary:
        temporary.write_text("{}")
    assert chowned == {temporary.name: owner}
    chowned.clear()
    with _files.atomic_folder(tmp_path / "new" / "results") as folder:
        (folder / "rows").mkdir()
        (folder / "rows" / "one.csv").write_text("")
    assert chowned == dict.fromkeys(("new", folder.name, "rows", "one.csv"), owner)
    chowned.clear()
    with _files.ensure_folder(tmp_path / "cache" / "deep"):
        assert chowned == dict.fromkeys(("cache", "deep"), owner)
    chowned.clear()
    KeptText(tmp_path / "fio.log").add("a line")
    assert chowned == {"fio.log": owner}


def test_outputs_in_folders_of_others_and_without_sudo_keep_their_owner(
    chowned: dict[str, tuple[int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write() -> None:
        with _files.atomic_file(tmp_path / "a.json") as temporary:
            temporary.write_text("{}")

    # A folder of another user, such as root's.
    monkeypatch.setenv("SUDO_UID", str(tmp_path.stat().st_uid + 1))
    write()
    monkeypatch.delenv("SUDO_UID")
    write()
    monkeypatch.setenv("SUDO_UID", "no number")
    write()
    monkeypatch.setenv("SUDO_UID", str(tmp_path.stat().st_uid))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    write()
    assert chowned == {}
