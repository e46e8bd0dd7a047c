"""Packages: what they install, that an upgrade keeps settings, and that a removal leaves nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.parts import require

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "leewardd": "leeward.yaml",
    "leeward-agent": "agent.env",
    "leeward-enforce-net": "enforce-net.env",
    "leeward-nfs": "nfs.env",
}
"""Packages with their settings."""
DROP_IN = "usr/share/doc/leeward-agent/enforce.conf"
"""Rights of an agent that runs enforcers, for an operator to copy."""
PROGRAM = """#!/bin/sh
case "$1" in
--version) echo "leewardd 0.0.0" ;;
--help) printf 'Does its work.\\n\\nOptions:\\n      --check-config\\n.hidden\\n' ;;
esac
"""


def build(folder: Path) -> Path:
    """The packages of programs that only print their help."""
    for name in PACKAGES:
        program = folder / name
        program.write_text(PROGRAM)
        program.chmod(0o755)
    command = [sys.executable, str(ROOT / "scripts/packages"), str(folder), str(folder / "out")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "out"


@pytest.fixture
def dpkg(tmp_path: Path) -> list[str]:
    """A dpkg with its own database and root, whose scripts know that they are not on the running system."""
    require("dpkg", "dpkg-deb", package="dpkg")
    root, admin = tmp_path / "root", tmp_path / "admin"
    for folder in (root, admin / "info", admin / "updates", admin / "triggers"):
        folder.mkdir(parents=True)
    (admin / "status").touch()
    force = "--force-script-chrootless,not-root,bad-path,confold"
    return ["dpkg", f"--instdir={root}", f"--admindir={admin}", f"--log={tmp_path}/log", force]


def run(*command: str) -> str:
    result = subprocess.run(
        command, capture_output=True, check=False, text=True, env={**os.environ, "LC_ALL": "C"}
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_debian_packages_install_upgrade_and_leave_nothing(tmp_path: Path, dpkg: list[str]) -> None:
    root = tmp_path / "root"
    packages = [str(path) for path in sorted(build(tmp_path).glob("*.deb"))]
    assert len(packages) == len(PACKAGES)
    run(*dpkg, "--install", *packages)
    assert files(root) == {
        f"{folder}{name}{end}"
        for name in PACKAGES
        for folder, end in (
            ("usr/bin/", ""),
            ("usr/lib/systemd/system/", ".service"),
            ("usr/share/man/man8/", ".8.gz"),
            ("usr/share/doc/", "/copyright"),
            ("usr/share/doc/", "/changelog.gz"),
            ("usr/share/doc/", "/operate.md"),
        )
    } | {f"etc/leeward/{name}" for name in PACKAGES.values()} | {DROP_IN}
    unit = (root / "usr/lib/systemd/system/leewardd.service").read_text()
    assert "ExecStart=/usr/bin/leewardd --config /etc/leeward/leeward.yaml" in unit
    assert "Type=notify" in unit
    assert "/usr/local" not in unit
    settings = root / "etc/leeward/leeward.yaml"
    settings.write_text("cluster: mine.yaml\n")
    run(*dpkg, "--install", *packages)
    assert settings.read_text() == "cluster: mine.yaml\n"
    run(*dpkg, "--purge", *PACKAGES)
    assert files(root) == set()


def test_rpms_have_the_same_files_and_mark_settings(tmp_path: Path) -> None:
    require("rpmbuild", "rpm", package="rpm")
    packages = sorted(build(tmp_path).glob("*.rpm"))
    settings = [PACKAGES[name] for name in sorted(PACKAGES)]
    assert len(packages) == len(PACKAGES)
    for package, file in zip(packages, settings, strict=True):
        listed = run("rpm", "-qpl", str(package)).split()
        assert f"/etc/leeward/{file}" in listed
        assert len(listed) == (8 if f"/{DROP_IN}" in listed else 7)
        assert (f"/{DROP_IN}" in listed) == (package.name.startswith("leeward-agent-"))
        assert run("rpm", "-qp", "--configfiles", str(package)).split() == [f"/etc/leeward/{file}"]
        scripts = run("rpm", "-qp", "--scripts", str(package))
        assert "systemctl disable --now" in scripts
        assert "systemctl enable" not in scripts


def test_the_manual_page_has_the_help_of_the_program(tmp_path: Path) -> None:
    require("man", package="man-db")
    program = tmp_path / "leewardd"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    page = tmp_path / "leewardd.8"
    page.write_text(run(str(ROOT / "packaging/man"), str(program)))
    shown = run("man", "--warnings", "--nj", "-l", str(page))
    assert "leewardd - Does its work" in shown
    assert "--check-config" in shown
    assert ".hidden" in shown
