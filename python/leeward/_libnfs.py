"""Makes and removes a folder in an NFS export through libnfs. A program of its own, without other modules.

    python _libnfs.py make URL FOLDER       makes a folder; fails if it exists
    python _libnfs.py remove URL FOLDER     removes the file `data` in it, and the folder

It runs beside Leeward because a call of libnfs waits for a server without a time limit, and a process can be
ended. Errors are a line on stderr, with code 1, or 3 if libnfs is not installed.
"""

import errno
import sys
from ctypes import CDLL, POINTER, Structure, c_char_p, c_int, c_void_p
from ctypes.util import find_library
from typing import Any

FILE = "data"
FAILED, NOT_INSTALLED = 1, 3
SONAMES = ("libnfs.so.16", "libnfs.so.14", "libnfs.so.13", "libnfs.so")
"""Names of the library, where the linker's list is not available. These functions are the same in all."""


class Url(Structure):
    """Parts of a URL, as libnfs has them; later versions have more after these."""

    _fields_ = (("server", c_char_p), ("path", c_char_p), ("file", c_char_p))


class LibraryError(Exception):
    """A failed call; the message is that of libnfs."""


def load() -> Any:
    """The library with the types of its functions; None if it is not installed."""
    for name in (find_library("nfs"), *SONAMES):
        if name is None:
            continue
        try:
            library = CDLL(name)
        except OSError:
            continue
        library.nfs_init_context.restype = c_void_p
        library.nfs_init_context.argtypes = ()
        library.nfs_get_error.restype = c_char_p
        library.nfs_get_error.argtypes = (c_void_p,)
        library.nfs_parse_url_dir.restype = POINTER(Url)
        library.nfs_parse_url_dir.argtypes = (c_void_p, c_char_p)
        library.nfs_mount.restype = c_int
        library.nfs_mount.argtypes = (c_void_p, c_char_p, c_char_p)
        for call in (library.nfs_mkdir, library.nfs_unlink, library.nfs_rmdir):
            call.restype = c_int
            call.argtypes = (c_void_p, c_char_p)
        return library
    return None


def change(library: Any, action: str, url: str, folder: str) -> None:
    """Makes or removes a folder.

    Raises:
        LibraryError: The export cannot be mounted, or the change failed.
    """
    context = library.nfs_init_context()
    if not context:
        raise LibraryError("libnfs has no memory")

    def check(code: int, *accepted: int) -> None:
        if code < 0 and -code not in accepted:
            text = library.nfs_get_error(context) or b""
            raise LibraryError(text.decode(errors="replace").strip() or f"error {-code}")

    parsed = library.nfs_parse_url_dir(context, url.encode())
    if not parsed:
        check(-errno.EINVAL)
    check(library.nfs_mount(context, parsed.contents.server, parsed.contents.path))
    path = f"/{folder}".encode()
    if action == "make":
        check(library.nfs_mkdir(context, path))
    else:
        check(library.nfs_unlink(context, path + f"/{FILE}".encode()), errno.ENOENT)
        check(library.nfs_rmdir(context, path), errno.ENOENT)


def main(arguments: list[str]) -> int:
    """Runs the program, and returns its exit code."""
    library = load()
    if library is None:
        print("libnfs is not installed", file=sys.stderr)
        return NOT_INSTALLED
    try:
        change(library, *arguments)
    except LibraryError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
