"""A test that lacks a requirement fails under CI and is skipped elsewhere."""

import pytest

from support.parts import lack, require

FAILS, SKIPS = pytest.fail.Exception, pytest.skip.Exception


@pytest.mark.parametrize(
    ("ci", "outcome"),
    [
        ("true", FAILS),
        ("1", FAILS),
        ("yes", FAILS),
        ("false", SKIPS),
        ("0", SKIPS),
        ("", SKIPS),
        (None, SKIPS),
    ],
)
def test_a_missing_requirement_fails_only_under_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str | None, outcome: type[BaseException]
) -> None:
    monkeypatch.delenv("CI", raising=False)
    if ci is not None:
        monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="no such part"):
        lack("no such part")
    with pytest.raises(outcome, match="no no-such-program: as root, apt-get install its-package"):
        require("sh", "no-such-program", package="its-package")
