"""Parts of a machine that HDFS in a lab needs, and the class path, by Maven from `integrations/hdfs`."""

import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

PROJECT = Path(__file__).parents[3] / "integrations" / "hdfs"
"""Maven project of the policy, in the sources of Leeward."""
JAVA = 17
"""Least version of Java."""
_LIST = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"
_POM = "{http://maven.apache.org/POM/4.0.0}"
"""Namespace of Maven's project files."""
_LINES = 15
"""Lines of Maven's output in an error."""


def missing(needs_root: bool = True) -> str | None:
    """Parts that this machine lacks, in a line; None if it lacks nothing.

    Args:
        needs_root: True if this process needs root, and false if it can start one with `sudo`.
    """
    lacks = []
    if os.geteuid() != 0 and needs_root:
        lacks.append("root (run the command with sudo)")
    elif os.geteuid() != 0 and shutil.which("sudo") is None:
        lacks.append("sudo (or run the command as root)")
    lacks += [f"{name} (package iproute2)" for name in ("ip", "tc") if shutil.which(name) is None]
    version = java_version()
    if version is None:
        lacks.append(f"Java {JAVA} (package openjdk-{JAVA}-jdk-headless or later)")
    elif version < JAVA:
        lacks.append(f"Java {JAVA} (`java` is version {version})")
    elif shutil.which("javac") is None:
        lacks.append(f"the compiler of Java {JAVA} (package openjdk-{JAVA}-jdk-headless)")
    if shutil.which("mvn") is None:
        lacks.append("Maven (package maven)")
    if not (PROJECT / "pom.xml").is_file():
        lacks.append("the sources of Leeward (folder integrations/hdfs)")
    return f"missing for HDFS in a lab: {', '.join(lacks)}" if lacks else None


def java_version() -> int | None:
    """Version of the `java` command; None without one."""
    if shutil.which("java") is None:
        return None
    text = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', text)
    return int(found[1]) if found else None


def class_path(scope: str = "compile") -> list[Path]:
    """The jar of the policy, and those of Hadoop. Maven makes the list when sources have changed.

    Root runs Maven as the owner of the sources, whose later builds write to the same folders.

    Args:
        scope: Scope of Maven. `test` adds Hadoop's MapReduce and Hadoop's own tests and benchmarks.

    Raises:
        OSError: Maven failed, or made no jar.
    """
    listing = PROJECT / "target" / ("class-path" if scope == "compile" else f"class-path-{scope}")
    if not _is_current(listing):
        goals = ("compile", "jar:jar", _LIST)
        options = (f"-DincludeScope={scope}", f"-Dmdep.outputFile={listing}")
        command = ["mvn", "--batch-mode", "--quiet", "--file", str(PROJECT / "pom.xml"), *goals, *options]
        result = subprocess.run(command, capture_output=True, text=True, check=False, **_as_owner())
        if result.returncode:
            end = "\n".join(result.stdout.splitlines()[-_LINES:])
            raise OSError(f"Maven failed with status {result.returncode} in {PROJECT}:\n{end}")
    jars = [Path(path) for path in listing.read_text(encoding="utf-8").strip().split(os.pathsep)]
    jar = policy_jar(PROJECT)
    if not jar.is_file():
        raise OSError(f"{jar}: Maven did not make this jar")
    return [jar, *jars]


def _as_owner() -> dict[str, Any]:
    """Options of a process that root runs as the owner of the sources; none for other users."""
    owner = PROJECT.stat().st_uid
    if os.geteuid() != 0 or owner == 0:
        return {}
    try:
        account = pwd.getpwuid(owner)
    except KeyError:
        # The sources are those of another machine, such as in a container.
        return {}
    environment = os.environ | {"HOME": account.pw_dir, "USER": account.pw_name}
    return {"user": owner, "group": account.pw_gid, "extra_groups": [], "env": environment}


def policy_jar(project: Path) -> Path:
    """The jar of the policy of the present version; those of other versions may be beside it."""
    version = ElementTree.parse(project / "pom.xml").findtext(f"{_POM}version")
    return project / "target" / f"leeward-hdfs-{version}.jar"


def _is_current(listing: Path) -> bool:
    """True if the list is newer than the sources, and all of its jars exist."""
    if not listing.is_file() or not policy_jar(PROJECT).is_file():
        return False
    sources = [PROJECT / "pom.xml", *(PROJECT / "src" / "main").rglob("*")]
    newest = max(path.stat().st_mtime for path in sources)
    paths = listing.read_text(encoding="utf-8").strip().split(os.pathsep)
    return listing.stat().st_mtime >= newest and all(Path(path).exists() for path in paths)


if __name__ == "__main__":
    # `make hdfs-demo` looks for missing parts before it builds Leeward, as the user.
    sys.exit(missing(needs_root=False))
