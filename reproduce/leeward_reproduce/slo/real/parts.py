"""Parts of a machine that the bed needs."""

import os
import shutil
import sys
from pathlib import Path

PROGRAMS = (
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("nft", "nftables"),
    ("unshare", "util-linux"),
    ("mkfs.ext4", "e2fsprogs"),
    ("rpcbind", "rpcbind"),
    ("ganesha.nfsd", "nfs-ganesha"),
)
"""Programs with the packages of Debian that have them."""
PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
"""Folders of programs: those of this process, and those of the administrator."""
VFS = ("/usr/lib/ganesha", *map(str, Path("/usr/lib").glob("*/ganesha")), "/usr/lib64/ganesha")
"""Folders of the modules of nfs-ganesha."""


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
    absent = [(name, package) for name, package in PROGRAMS if not shutil.which(name, path=PATH)]
    lacks += [f"{name} (package {package})" for name, package in absent]
    if not any((Path(folder) / "libfsalvfs.so").exists() for folder in VFS):
        lacks.append("VFS for nfs-ganesha (package nfs-ganesha-vfs)")
    return f"missing for file servers in a lab: {', '.join(lacks)}" if lacks else None


if __name__ == "__main__":
    # `make slo-demo` looks for missing parts before it builds Leeward, as the user.
    sys.exit(missing(needs_root=False))
