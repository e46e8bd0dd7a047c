"""Names of container images: those that the Helm chart pulls are those that are built and pushed."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
VERSION = next(
    line.split()[1]
    for line in (REPOSITORY / "packaging/helm/leeward/Chart.yaml").read_text().splitlines()
    if line.startswith("appVersion:")
)
Image = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """The script, with a container engine that prints its arguments."""
    engine = tmp_path / "podman"
    engine.write_text('#!/bin/sh\n[ "$1" = info ] || echo "$@"\n')
    engine.chmod(0o755)

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["scripts/image", *arguments],
            cwd=REPOSITORY,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"} | variables,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_an_image_has_the_name_and_the_version_that_the_chart_pulls(image: Image) -> None:
    local = image("leeward-agent").stdout.split()
    assert [local[at + 1] for at, word in enumerate(local) if word == "--tag"] == [
        "leeward-agent",
        f"leeward-agent:{VERSION}",
    ]
    pushed = {"IMAGE_REPOSITORY": "registry.example.com/leeward"}
    name = f"registry.example.com/leeward/leeward-scheduler:{VERSION}"
    assert name in image("leeward-scheduler", **pushed).stdout.split()
    assert image("--push", "leeward-scheduler", **pushed).stdout.split() == ["push", name]


def test_a_push_needs_a_repository(image: Image) -> None:
    result = image("--push", "leewardd")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: IMAGE_REPOSITORY: missing")
