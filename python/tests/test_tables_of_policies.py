"""The tables of policies in docs/ match the registries."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_tables_of_policies_match_the_registries() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "tables", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
