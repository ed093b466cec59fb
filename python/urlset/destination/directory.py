"""An open folder below which no symbolic link is followed.

An attacker may have created any file or link in an output or state folder. Every step below it
starts at an open folder and follows no link; see ``relative.py``.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Self

from .. import system
from ..errors import ConflictError, PublishError
from ..outfile import random_id
from .objects import ABSENT, Object
from .relative import Folder, calls, is_link

#: how often, and after how many seconds, a folder is removed again to which a task has written
REMOVE_ATTEMPTS = 50
REMOVE_PAUSE = 0.02


class Directory:
    """An open folder: the objects of a folder destination, with renames and fsync.

    Paths are relative to it, with ``/`` between their parts.
    """

    def __init__(self, folder: Folder, path: Path) -> None:
        self._folder: Folder | None = folder
        #: where it was found, for messages and for calls that take paths only
        self.path = path

    @classmethod
    def open(cls, path: Path) -> Directory:
        """Opens a folder that the user named: links on the way to it are followed."""
        return cls(calls.open_root(path), path)

    def close(self) -> None:
        """Closes the folder."""
        if self._folder is not None:
            calls.close(self._folder)
            self._folder = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sub(self, name: str, *, make: bool = False) -> Directory:
        """Opens a folder in this one.

        Args:
            make: create it if it is missing.

        Raises:
            PublishError: ``output.link``: it is a symbolic link.
            OSError: it is missing, not a folder, or cannot be opened.
        """
        place = self.path / name
        with _named(place):
            return Directory(_step(self.folder, name, place, make), place)

    @property
    def folder(self) -> Folder:
        """The open folder.

        Raises:
            OSError: it is closed (EBADF).
        """
        if self._folder is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), os.fspath(self.path))
        return self._folder

    def open_new(self, path: str, flags: int) -> int:
        """Opens a file of this folder with other flags than for reading, and returns its
        descriptor.

        Raises:
            PublishError: ``output.link``.
            OSError: it cannot be opened.
        """
        try:
            return calls.open(self.folder, path, flags)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise link_error(self.path / path) from None
            error.filename = os.fspath(self.path / path)
            raise

    def parent(self, path: str, *, make: bool = False) -> _Parent:
        """A context: the open folder that contains ``path``, and its last part.

        Args:
            make: create missing folders.

        Raises:
            PublishError: ``publish.path``: it is outside of this folder; ``output.link``: a part is
                a link.
        """
        return _Parent(self, path, make)

    def stat(self, path: str) -> os.stat_result | None:
        """The status of a file, a link not followed; None if there is none."""
        try:
            if _is_name(path):  # a commit asks for 600,000 files
                return calls.stat(self.folder, path)
            with self.parent(path) as (folder, name):
                return calls.stat(folder, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            _name(error, self.path, path)
            raise

    def is_file(self, path: str) -> bool:
        """Whether there is a regular file, reached without a link."""
        try:
            found = self.stat(path)
        except (OSError, PublishError):
            return False
        return found is not None and stat.S_ISREG(found.st_mode)

    def open_file(self, path: str) -> int:
        """Opens a regular file for reading, and returns its descriptor.

        Raises:
            PublishError: ``output.link``.
            OSError: it is missing, cannot be read, or is not a regular file (EINVAL).
        """
        with self.parent(path) as (folder, name):
            try:
                file = calls.open(folder, name, system.READ)
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise link_error(self.path / path) from None
                raise
            if not stat.S_ISREG(os.fstat(file).st_mode):
                os.close(file)
                raise OSError(errno.EINVAL, "is not a regular file")
            return file

    def read(self, path: str, limit: int) -> Object | None:
        """The first ``limit`` bytes of a regular file; None if there is none.

        Raises:
            PublishError, OSError: as :meth:`open_file`.
        """
        try:
            descriptor = self.open_file(path)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            # read() allocates the requested size before it reads
            return Object(file.read(min(limit, found.st_size)), _version(found))

    def write(self, path: str, data: bytes, *, only_if: str | None = None) -> None:
        """Writes a file with the usual mode (0666 less the umask) and waits for the disk.

        A new file is written beside ``path`` and renamed. Nothing is written through a link.
        Conditions are exact only while this process has the lock of the state. The name is on
        the disk after :meth:`sync`.

        Raises:
            ConflictError: ``publish.conflict``.
        """
        if only_if is not None:
            found = self.stat(path)
            if (ABSENT if found is None else _version(found)) != only_if:
                raise ConflictError(
                    f"{self.path / path}: was changed by another build", code="publish.conflict"
                )
        with self.parent(path, make=True) as (folder, name):
            beside = f"{name}.new"
            try:
                file = calls.open(folder, beside, system.NEW)
            except FileExistsError:
                _remove(folder, beside)
                file = calls.open(folder, beside, system.NEW)
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(file)
            calls.replace(folder, beside, folder, name)

    def move(self, path: str, to: Directory, target: str) -> None:
        """Renames ``path`` to ``target`` in another folder of the same filesystem.

        Raises:
            FileNotFoundError: ``path`` or the folder of ``target`` does not exist.
        """
        if _is_name(path) and _is_name(target):  # a commit moves 200,000 files
            try:
                calls.replace(self.folder, path, to.folder, target)
            except OSError as error:
                _name(error, to.path, target)
                raise
            return
        with self.parent(path) as (source, name), to.parent(target) as (other, last):
            calls.replace(source, name, other, last)

    def delete(self, path: str) -> None:
        """Removes a file or a link; it is not an error if there is none."""
        with suppress(FileNotFoundError), self.parent(path) as (folder, name):
            calls.unlink(folder, name)

    def rmdir(self, path: str) -> None:
        """Removes an empty folder."""
        with self.parent(path) as (folder, name):
            calls.rmdir(folder, name)

    def clear(self, path: str) -> None:
        """Removes a file, a link, or a folder with its content."""
        with suppress(FileNotFoundError), self.parent(path) as (folder, name):
            _remove(folder, name)

    def list(self, prefix: str = "") -> Iterator[str]:
        """The names in the folder that begin with ``prefix``, sorted."""
        with _named(self.path):
            names = sorted(calls.names(self.folder))
        return (name for name in names if name.startswith(prefix))

    def make(self, path: str) -> None:
        """Creates the folders of ``path``."""
        with self.parent(path, make=True):
            pass

    def sync(self, path: str | None = None) -> None:
        """Waits until the names in this folder, or in the folder of ``path``, are on the disk."""
        if path is None:
            with _named(self.path):
                calls.sync(self.folder)
            return
        with self.parent(path) as (folder, _):
            calls.sync(folder)


class _Parent:
    """See :meth:`Directory.parent`. A generator would take a third of the time of a commit."""

    __slots__ = ("_make", "_opened", "_path", "_top")

    def __init__(self, top: Directory, path: str, make: bool) -> None:
        self._top, self._path, self._make = top, path, make
        self._opened: Folder | None = None

    def __enter__(self) -> tuple[Folder, str]:
        *folders, name = parts_of(self._path, self._top.path)
        folder, place = self._top.folder, self._top.path
        try:
            for each in folders:
                place = place / each
                below = _step(folder, each, place, self._make)
                self._close()
                folder = self._opened = below
        except BaseException as error:
            self.__exit__(None, error, None)
            raise
        return folder, name

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._close()
        if isinstance(error, OSError):
            _name(error, self._top.path, self._path)

    def _close(self) -> None:
        if self._opened is not None:
            calls.close(self._opened)
            self._opened = None


def parts_of(path: str, folder: Path | str) -> tuple[str, ...]:
    """The parts of a path that comes from a journal or a manifest.

    Raises:
        PublishError: ``publish.path``: it leads out of the folder.
    """
    if _is_name(path):
        return (path,)
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise PublishError(f"{path!r} leads out of {folder}", code="publish.path")
    return parts


def _is_name(path: str) -> bool:
    """Whether a path is the name of a file in the folder itself."""
    return "/" not in path and path not in ("", ".", "..") and "\0" not in path


def folder_of(path: str) -> str:
    """The folder of a path, ``""`` for the output folder itself."""
    return path.rpartition("/")[0]


def inside(folder: Path, path: str) -> Path:
    """``path`` in ``folder`` by name, for calls that take no descriptor."""
    return folder.joinpath(*parts_of(path, folder))


def _version(found: os.stat_result) -> str:
    """Differs for every file that replaces another one: writes are renames of new files."""
    return f"{found.st_ino}-{found.st_mtime_ns}-{found.st_size}"


def _step(folder: Folder, name: str, place: Path, make: bool) -> Folder:
    """Opens the folder ``name`` without following a link; creates it first if ``make``."""
    try:
        return calls.open_folder(folder, name)
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):
            calls.mkdir(folder, name)
        return _step(folder, name, place, False)
    except OSError as error:
        # for a link, Linux reports ENOTDIR, other systems ELOOP
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and _is_a_link(folder, name):
            raise link_error(place) from None
        raise


def _is_a_link(folder: Folder, name: str) -> bool:
    try:
        return is_link(calls.stat(folder, name))
    except OSError:
        return False


def link_error(place: Path) -> PublishError:
    """The error for a link."""
    return PublishError(
        f"{place}: is a symbolic link; urlset follows none below the output and state folders;"
        " remove it, or choose another folder with --out or --state",
        code="output.link",
    )


def _remove(folder: Folder, name: str) -> None:
    """Removes a file, a link, or a folder with its content, at any depth.

    Tasks of a job may write there, and remove what they wrote, at the same time.
    """
    for attempt in range(REMOVE_ATTEMPTS):
        try:
            _remove_once(folder, name)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or attempt + 1 == REMOVE_ATTEMPTS:
                raise
            time.sleep(REMOVE_PAUSE)
        else:
            return


def _remove_once(folder: Folder, name: str) -> None:
    if _unlinked(folder, name):
        return
    top = calls.open_folder(folder, name)
    try:
        waiting = calls.names(top)
        while waiting:
            with suppress(FileNotFoundError):  # the task that wrote it was faster
                _remove_child(top, waiting.pop(), waiting)
    finally:
        calls.close(top)
    calls.rmdir(folder, name)


def _remove_child(top: Folder, child: str, waiting: list[str]) -> None:
    """Removes a file, or a folder whose folders are moved up and added to ``waiting``."""
    if _unlinked(top, child):
        return
    below = calls.open_folder(top, child)
    try:
        for deeper in calls.names(below):
            if not _unlinked(below, deeper):
                # moved up, so that neither descriptors nor the stack grow with the depth
                waiting.append(f".{random_id()}")
                calls.replace(below, deeper, top, waiting[-1])
    finally:
        calls.close(below)
    calls.rmdir(top, child)


def _unlinked(folder: Folder, name: str) -> bool:
    """Removes a file or a link; returns False for a folder.

    Raises:
        OSError: it cannot be removed.
    """
    try:
        calls.unlink(folder, name)
    except FileNotFoundError:
        return True
    except IsADirectoryError:
        return False
    return True


@contextmanager
def _named(place: Path) -> Iterator[None]:
    """Puts the whole path into an OSError: calls with a descriptor report only the last part."""
    try:
        yield
    except OSError as error:
        _name(error, place)
        raise


def _name(error: OSError, place: Path, path: str = "") -> None:
    # the filename is a number if the call took a descriptor
    if "/" not in str(error.filename or ""):
        error.filename = os.fspath(place / path)
        error.filename2 = None
