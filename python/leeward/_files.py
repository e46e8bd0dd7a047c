"""Input files read once each, and output files and folders that are complete or absent.

Before any work begins, functions `check_...` test that outputs can be written.
"""

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from leeward.errors import InputError


def check_once(paths: Sequence[str | os.PathLike[str]], argument: str) -> None:
    """Checks that no file is given twice, also not under two names; its content would count twice.

    Args:
        paths: Paths of files, which may be missing.
        argument: Name of the argument with the paths.

    Raises:
        InputError: A file is given twice.
    """
    seen: dict[tuple[int, int], str] = {}
    for path in [os.fspath(one) for one in paths]:
        try:
            status = os.stat(path)
        except OSError:
            # The reader of the file reports that it is missing.
            continue
        identity = status.st_dev, status.st_ino
        if identity in seen:
            other = seen[identity]
            problem = "given twice" if other == path else f"the same file as `{other}`"
            raise InputError.about(argument, f"`{path}`: {problem}; expected each file once")
        seen[identity] = path


def check_file(path: Path, flag: str) -> None:
    """Checks that a file can be written.

    Args:
        path: Path of the file, which may be missing.
        flag: Option that names it.

    Raises:
        InputError: The path is a folder, or its folder is missing or read-only.
    """
    if path.is_dir():
        raise InputError.about(flag, f"`{path}`: is a folder; expected a file")
    if not path.parent.is_dir():
        raise InputError.about(flag, f"`{path}`: there is no folder `{path.parent}`")
    _check_writable(path.parent, flag)


def check_folder(path: Path, flag: str) -> None:
    """Checks that a folder is writable, or can be created with its missing parents.

    Raises:
        InputError: The folder cannot be made or written.
    """
    above = path
    # A broken link exists, and cannot be made.
    while not os.path.lexists(above) and above != above.parent:
        above = above.parent
    if not above.is_dir():
        raise InputError.about(flag, f"`{path}`: `{above}` is not a folder")
    _check_writable(above, flag)


def check_replaced(path: Path, flag: str, kind: str, find_foreign: Callable[[Path], str | None]) -> None:
    """Checks that a result replaces only an earlier result in a folder.

    Args:
        path: Path of the folder, which may be missing.
        flag: Option that names it.
        kind: Description of the result that may be replaced.
        find_foreign: Returns the first entry of a folder that is not part of such a result, or None.

    Raises:
        InputError: The folder is the current one, cannot be written, or holds something else.
    """
    check_folder(path, flag)
    if not path.is_dir():
        return
    # A replaced current folder would leave the shell in a deleted one.
    if Path.cwd().is_relative_to(path.resolve()):
        raise InputError.about(
            flag, f"`{path}`: this is the current folder, or a folder above it; expected another folder"
        )
    if foreign := find_foreign(path):
        raise InputError.about(flag, f"`{path}`: holds {foreign}; expected an empty folder or {kind}")


def is_temporary(name: str, outputs: Iterable[str]) -> bool:
    """True for a temporary file that a killed process left while writing a file with `atomic_file`."""
    return any(
        re.fullmatch(rf"\.{re.escape(Path(output).stem)}\.\d+{re.escape(Path(output).suffix)}", name)
        for output in outputs
    )


def give_to_caller(path: Path) -> None:
    """Under sudo, gives an output with everything in it to the user who called sudo.

    It stays root's in a folder of another user, such as `/etc/leeward`: the caller could otherwise change
    files that services of root read.
    """
    try:
        user, group = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
    except (KeyError, ValueError):
        return
    if os.geteuid() != 0 or path.parent.stat().st_uid != user:
        return
    for one in (path, *(path.rglob("*") if path.is_dir() else ())):
        os.chown(one, user, group, follow_symlinks=False)


def make_folder(path: Path) -> list[Path]:
    """Creates a folder with its parents, for the user who called sudo, and returns the missing ones."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for one in reversed(missing):
        give_to_caller(one)
    return missing


def _check_writable(folder: Path, flag: str) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError.about(flag, f"`{folder}`: no permission to write to this folder")


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary path to write to, which replaces `path` if the block succeeds.

    Otherwise `path` is unchanged, and the temporary file is removed.

    Raises:
        OSError: The file cannot be written; the error names `path`.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    # A rename is atomic only within a file system, so the temporary file is in the same folder. It keeps the
    # suffix, by which some writers choose a format.
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        with _errors_about(temporary, path):
            yield temporary
            give_to_caller(temporary)
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary folder to write to, which replaces the one at `path` if the block succeeds.

    Otherwise `path` is unchanged, and the temporary folder is removed.

    Raises:
        OSError: The folder cannot be written; the error names `path`.
    """
    path = Path(path).resolve()
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    before = path.with_name(f".{path.name}.{os.getpid()}.before")
    try:
        with _errors_about(temporary, path):
            temporary.mkdir()
            yield temporary
            give_to_caller(temporary)
            if path.exists():
                # The new folder gets the permissions of the old one.
                shutil.copymode(path, temporary)
                os.rename(path, before)
            try:
                os.rename(temporary, path)
            except OSError:
                if before.exists():
                    os.rename(before, path)
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(before, ignore_errors=True)


@contextmanager
def ensure_folder(path: Path) -> Iterator[None]:
    """Creates a folder and its missing parents for the block; then removes created folders that are empty."""
    missing = make_folder(path)
    try:
        yield
    finally:
        for one in missing:
            try:
                one.rmdir()
            except OSError:
                # The folder holds files, or another process uses it.
                break


@contextmanager
def _errors_about(temporary: Path, path: Path) -> Iterator[None]:
    """Replaces a temporary path in errors by the path of the output."""
    try:
        yield
    except OSError as error:
        where = str(error.filename or error)
        # Arrow names the file only in its message.
        if temporary.name not in where:
            raise
        why = os.strerror(error.errno) if error.errno else "it cannot be written"
        raise OSError(error.errno or errno.EIO, why, str(path)) from error
