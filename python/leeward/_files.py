"""Output files and folders that are whole or not there, and are known to be possible before work begins.

And input files, of which each counts once.
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
    """Checks that no file is among those to read twice, by whatever name: what it holds would count twice.

    Args:
        paths: Of files, there or not.
        argument: What gave them.

    Raises:
        InputError: One is; of the argument.
    """
    seen: dict[tuple[int, int], str] = {}
    for path in [os.fspath(one) for one in paths]:
        try:
            of = os.stat(path)
        except OSError:
            # Who reads it says that it is not there.
            continue
        identity = of.st_dev, of.st_ino
        if identity in seen:
            other = "" if seen[identity] == path else f", as `{seen[identity]}` too"
            raise _wrong(argument, f"`{path}`: given twice{other}; expected each file once")
        seen[identity] = path


def check_file(path: Path, flag: str) -> None:
    """Checks that a file can be written.

    Args:
        path: The file, there or not.
        flag: The option that names it.

    Raises:
        InputError: It cannot.
    """
    if path.is_dir():
        raise _wrong(flag, f"`{path}`: is a directory; expected a file")
    if not path.parent.is_dir():
        raise _wrong(flag, f"`{path}`: there is no folder `{path.parent}`")
    _check_writable(path.parent, flag)


def check_folder(path: Path, flag: str) -> None:
    """Checks that a folder is there and can be written to, or can be made, with those above it.

    Raises:
        InputError: It cannot.
    """
    above = path
    # A broken link is there, and cannot be made.
    while not os.path.lexists(above) and above != above.parent:
        above = above.parent
    if not above.is_dir():
        raise _wrong(flag, f"`{path}`: `{above}` is no folder")
    _check_writable(above, flag)


def check_replaced(path: Path, flag: str, kind: str, strange: Callable[[Path], str | None]) -> None:
    """Checks that a result can be written as a folder, in the place of an earlier one and of nothing else.

    Args:
        path: The folder, there or not.
        flag: The option that names it.
        kind: What it may take the place of.
        strange: What keeps a folder from being that, or empty; None if nothing does.

    Raises:
        InputError: It cannot.
    """
    check_folder(path, flag)
    if not path.is_dir():
        return
    # What takes the place of the current folder would leave the shell in one that is gone.
    if Path.cwd().is_relative_to(path.resolve()):
        raise _wrong(flag, f"`{path}`: this is the current folder, or above it; expected another")
    if found := strange(path):
        raise _wrong(flag, f"`{path}`: holds {found}; expected an empty folder or {kind}")


def unfinished(name: str, of: Iterable[str]) -> bool:
    """Whether a file is what a killed process left of writing one of these with `whole_file`."""
    return any(
        re.fullmatch(rf"\.{re.escape(Path(whole).stem)}\.\d+{re.escape(Path(whole).suffix)}", name)
        for whole in of
    )


def _check_writable(folder: Path, flag: str) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _wrong(flag, f"`{folder}`: the folder may not be written to")


def _wrong(flag: str, message: str) -> InputError:
    return InputError(flag, None, None, None, message)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a temporary path to write to; the file takes its place at `path` if the block ends well.

    If it does not, what was at `path` before is untouched and the temporary file is gone.

    Raises:
        OSError: It could not be written; names `path`.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    # Beside the target, since a rename is atomic only within a file system. The suffix stays: some writers
    # choose a format by it.
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        with _named(temporary, path):
            yield temporary
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a temporary folder to write to; it takes the place of the one at `path` if the block ends well.

    If it does not, what was at `path` before is untouched and the temporary folder is gone.

    Raises:
        OSError: It could not be written; names `path`.
    """
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    before = path.with_name(f".{path.name}.{os.getpid()}.before")
    try:
        with _named(temporary, path):
            temporary.mkdir()
            yield temporary
            if path.exists():
                # Who may read what was there may read what takes its place, and nobody else.
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
def made_folder(path: Path) -> Iterator[None]:
    """Makes a folder, with those above it, for the block; removes the ones it made if they stay empty."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for one in missing:
            try:
                one.rmdir()
            except OSError:
                # It holds files, or others use it.
                break


@contextmanager
def _named(temporary: Path, path: Path) -> Iterator[None]:
    """Lets what goes wrong with a temporary file, or below a temporary folder, name what it stands for."""
    try:
        yield
    except OSError as error:
        where = str(error.filename or error)
        # Arrow names the file in its message alone.
        if temporary.name not in where:
            raise
        why = os.strerror(error.errno) if error.errno else "it cannot be written"
        raise OSError(error.errno or errno.EIO, why, str(path)) from error
