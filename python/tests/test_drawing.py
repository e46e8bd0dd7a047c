"""The drawing of the crates shows the crates as they are."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_crate_diagram_matches_the_manifests() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "crates", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
