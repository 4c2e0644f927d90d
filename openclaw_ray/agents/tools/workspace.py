"""The folder that file tools and commands of a session are kept in, and the only way into it (SPEC.md I2).

1. A path is relative to the workspace, or absolute and inside of it. ``..`` is refused wherever it stands.
2. It is walked from a descriptor of the workspace, name by name, each opened below the one before and never through a
   symbolic link. So it does not matter what is renamed or replaced meanwhile: what is open is inside.
3. What is opened at last is an ordinary file or a folder, not a link, device, pipe or socket. A hard link is an
   ordinary file: whoever can make one has the file already.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import Protocol

__all__ = ["PathRefused", "Workspace", "workspace"]

_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_PATH = 4_096
_NAME = 255
_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


class PathRefused(Exception):
    """A path that leads out of the workspace, or to what is no ordinary file or folder.

    Attributes:
        path: as it was given.
        why: what is wrong with it.
        forbidden: it is against the rule; else it is only not there, or of another kind.
    """

    def __init__(self, path: str, why: str, *, forbidden: bool = True) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why
        self.forbidden = forbidden

    def __str__(self) -> str:
        return f"{self.path[:_NAME]}: {self.why}"


class _Session(Protocol):
    @property
    def cwd(self) -> str: ...


class _Caller(Protocol):
    @property
    def session(self) -> _Session: ...


def workspace(caller: _Caller) -> Workspace:
    """The workspace of a session: its working folder. The only place that knows.

    Raises:
        PathRefused: it has none, or it is the root of the file system.
    """
    return Workspace(caller.session.cwd)


class Workspace:
    """One folder, and what is opened below it.

    Args:
        root: its path; links in that are followed, it is the operator's.

    Raises:
        PathRefused: it is no folder, or ``/``.
    """

    def __init__(self, root: str) -> None:
        if not os.path.isabs(root):
            raise PathRefused(root or "(none)", "the session has no working folder any more")
        self.root = os.path.realpath(root)
        self._names = tuple(dict.fromkeys((os.path.normpath(root), self.root)))
        if self.root == "/":
            raise PathRefused("/", "the whole file system is no workspace; give the session a working folder (cwd)")

    def parts(self, path: str) -> tuple[str, ...]:
        """The names on the way from the workspace to ``path`` (1); none for the workspace itself.

        Raises:
            PathRefused: it leads elsewhere, or no file can be called so.
        """
        if "\0" in path or len(path) > _PATH:
            raise PathRefused(path, "no file can be called so")
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            raise PathRefused(path.encode("utf-8", "replace").decode(), "no file can be called so") from None
        names = [name for name in path.split("/") if name not in ("", ".")]
        if ".." in names:
            raise PathRefused(path, "a path with .. is refused; say where it is in the workspace")
        if path.startswith("/"):
            for root in self._names:
                above = [name for name in root.split("/") if name]
                if names[: len(above)] == above:
                    return tuple(names[len(above) :])
            raise PathRefused(path, f"it is outside of the workspace {self.root}")
        if path.startswith("~"):
            raise PathRefused(path, f"it is outside of the workspace {self.root}; ~ is not expanded")
        return tuple(names)

    @contextlib.contextmanager
    def folder(self, names: tuple[str, ...], shown: str, *, make: bool = False) -> Iterator[int]:
        """A descriptor of the folder that these names lead to (2).

        Args:
            shown: the path, for errors.
            make: folders that are not there are made.

        Raises:
            PathRefused: one of them is no folder.
        """
        try:
            fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise PathRefused(self.root, f"the workspace cannot be opened: {error.strerror}") from None
        try:
            for name in names:
                below = _step(fd, name, shown, make)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def file(self, path: str) -> Iterator[int]:
        """A descriptor of an ordinary file, to be read (3).

        Raises:
            PathRefused: it is none, or not to be opened.
        """
        with self.place(path) as (folder, name):
            check_file(folder, name, path)
            try:
                fd = os.open(name, _FILE, dir_fd=folder)
            except OSError as error:
                raise _refusal(error, folder, name, path) from None
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise PathRefused(path, "it is no ordinary file")
                yield fd
            finally:
                os.close(fd)

    @contextlib.contextmanager
    def place(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The folder that a file is in, as a descriptor, and its name there.

        Raises:
            PathRefused: as by `folder`, or the path names no file.
        """
        names = self.parts(path)
        if not names or path.endswith(("/", "/.")):
            raise PathRefused(path, "it is a folder", forbidden=False)
        with self.folder(names[:-1], path, make=make) as folder:
            yield folder, names[-1]


def check_file(folder: int, name: str, shown: str) -> os.stat_result:
    """What is known of an ordinary file, which is not opened for it: to open a device may do something.

    Raises:
        PathRefused: it is not there, or of another kind.
    """
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        raise PathRefused(shown, _reason(error), forbidden=False) from None
    if not stat.S_ISREG(found.st_mode):
        raise _of_kind(found.st_mode, shown)
    return found


def _step(fd: int, name: str, shown: str, make: bool) -> int:
    try:
        return os.open(name, _DIR, dir_fd=fd)
    except FileNotFoundError:
        if not make:
            raise PathRefused(shown, f"there is no folder {name}", forbidden=False) from None
    except OSError as error:
        raise _refusal(error, fd, name, shown) from None
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=fd)
        return os.open(name, _DIR, dir_fd=fd)
    except OSError as error:
        raise _refusal(error, fd, name, shown) from None


def _refusal(error: OSError, folder: int, name: str, shown: str) -> PathRefused:
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
        with contextlib.suppress(OSError):
            return _of_kind(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode, shown, name)
    return PathRefused(shown, _reason(error), forbidden=False)


def _of_kind(mode: int, shown: str, name: str | None = None) -> PathRefused:
    what = "it" if name is None else name
    kind = next((word for is_kind, word in _KINDS if is_kind(mode)), None)
    if kind is None:
        return PathRefused(shown, f"{what} is no folder", forbidden=False)
    if kind == "a folder":
        return PathRefused(shown, f"{what} is a folder", forbidden=False)
    return PathRefused(shown, f"{what} is {kind}; only ordinary files and folders are opened")


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "there is no such file"
    return (error.strerror or str(error)).lower()
