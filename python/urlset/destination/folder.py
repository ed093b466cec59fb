"""An open folder below which no symbolic link is followed.

What lies in an output or state folder may have been planted. Every step below it is taken from an
open descriptor with ``O_NOFOLLOW``, so that no name, whatever it is replaced with meanwhile, leads
anywhere else.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Self
from uuid import uuid4

from ..errors import PublishError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
#: a FIFO is opened without waiting for its other end, and refused then
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Folder:
    """An open folder. Paths are relative to it, with ``/`` between their parts."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self.descriptor = descriptor
        #: where it was found, for messages and for what takes paths only
        self.path = path

    @classmethod
    def open(cls, path: Path) -> Folder:
        """A folder that the user named: links on the way to it are followed."""
        return cls(os.open(path, _FOLDER), path)

    def close(self) -> None:
        """Lets go of the descriptor."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sub(self, name: str, *, make: bool = False) -> Folder:
        """A folder in this one.

        Raises:
            PublishError: ``output.link``: a symbolic link has its name.
            OSError: it is missing, no folder, or cannot be opened.
        """
        place = self.path / name
        with _named(place):
            return Folder(_step(self.descriptor, name, place, make), place)

    def reopened(self) -> int:
        """A further descriptor of this folder, with locks of its own."""
        return os.open(".", _FOLDER, dir_fd=self.descriptor)

    @contextmanager
    def parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """A descriptor of the folder that ``path`` is in, and its last part.

        Args:
            make: make the folders that are missing.

        Raises:
            PublishError: ``publish.path``: it leads out; ``output.link``: a part is a link.
        """
        *folders, name = parts_of(path, self.path)
        descriptor, place = self.descriptor, self.path
        try:
            with _named(self.path / path):
                for folder in folders:
                    place = place / folder
                    below = _step(descriptor, folder, place, make)
                    if descriptor != self.descriptor:
                        os.close(descriptor)
                    descriptor = below
                yield descriptor, name
        finally:
            if descriptor != self.descriptor:
                os.close(descriptor)

    def stat(self, path: str) -> os.stat_result | None:
        """What is there, a link not followed; None if nothing is."""
        try:
            with self.parent(path) as (descriptor, name):
                return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def is_file(self, path: str) -> bool:
        """Whether a regular file is there, reached through no link."""
        try:
            found = self.stat(path)
        except (OSError, PublishError):
            return False
        return found is not None and stat.S_ISREG(found.st_mode)

    def open_file(self, path: str) -> int:
        """A descriptor of a regular file, for reading.

        Raises:
            PublishError: ``output.link``.
            OSError: it is missing, cannot be read, or is no regular file.
        """
        with self.parent(path) as (descriptor, name):
            try:
                file = os.open(name, _READ, dir_fd=descriptor)
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise link_error(self.path / path) from None
                raise
            if not stat.S_ISREG(os.fstat(file).st_mode):
                os.close(file)
                raise OSError(errno.EINVAL, "is no regular file")
            return file

    def read(self, path: str, most: int) -> bytes:
        """The first ``most`` bytes of a regular file."""
        with os.fdopen(self.open_file(path), "rb") as file:
            # the memory for what is asked for is taken before anything is read
            return file.read(min(most, os.fstat(file.fileno()).st_size))

    def write(self, path: str, text: str) -> None:
        """Writes a new file with the usual mode (0666 less the umask) and waits for the disk.

        What is there under its name, a link or a leftover, is removed and never written through.
        """
        with self.parent(path, make=True) as (descriptor, name):
            try:
                file = os.open(name, _NEW, 0o666, dir_fd=descriptor)
            except FileExistsError:
                _remove(descriptor, name)
                file = os.open(name, _NEW, 0o666, dir_fd=descriptor)
            with os.fdopen(file, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(file)

    def move(self, path: str, to: Folder, target: str) -> None:
        """Renames ``path`` to ``target`` in another folder of the same filesystem.

        Raises:
            FileNotFoundError: there is no ``path``; or no folder for ``target``.
        """
        with self.parent(path) as (source, name), to.parent(target) as (other, last):
            os.replace(name, last, src_dir_fd=source, dst_dir_fd=other)

    def unlink(self, path: str) -> None:
        """Removes a file or a link; it is no error if there is none."""
        with suppress(FileNotFoundError), self.parent(path) as (descriptor, name):
            os.unlink(name, dir_fd=descriptor)

    def rmdir(self, path: str) -> None:
        """Removes an empty folder."""
        with self.parent(path) as (descriptor, name):
            os.rmdir(name, dir_fd=descriptor)

    def clear(self, path: str) -> None:
        """Removes whatever is there, a folder with all that is in it."""
        with suppress(FileNotFoundError), self.parent(path) as (descriptor, name):
            _remove(descriptor, name)

    def names(self) -> list[str]:
        """What is in the folder, in the order of the names."""
        with _named(self.path):
            return sorted(_names(self.descriptor))

    def make(self, path: str) -> None:
        """Makes the folders that ``path`` will be in."""
        with self.parent(path, make=True):
            pass

    def sync(self, path: str | None = None) -> None:
        """Waits until the names in this folder, or in the one that ``path`` is in, are on disk."""
        if path is None:
            with _named(self.path):
                os.fsync(self.descriptor)
            return
        with self.parent(path) as (descriptor, _):
            os.fsync(descriptor)


def parts_of(path: str, folder: Path) -> tuple[str, ...]:
    """The parts of a path; nothing that a journal or a manifest says leads out of the folder.

    Raises:
        PublishError: ``publish.path``.
    """
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise PublishError(f"{path!r} leads out of {folder}", code="publish.path")
    return parts


def folder_of(path: str) -> str:
    """The folder that a path is in, ``""`` for the uppermost."""
    return path.rpartition("/")[0]


def inside(folder: Path, path: str) -> Path:
    """``path`` in ``folder``, by name; for what takes no descriptor."""
    return folder.joinpath(*parts_of(path, folder))


def _names(descriptor: int) -> list[str]:
    return os.listdir(descriptor)


def _step(descriptor: int, name: str, place: Path, make: bool) -> int:
    """Opens the folder ``name`` and follows no link; makes it first where that is asked for."""
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=descriptor)
        return _step(descriptor, name, place, False)
    except OSError as error:
        # Linux says ENOTDIR of a link, other systems ELOOP
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and _is_a_link(descriptor, name):
            raise link_error(place) from None
        raise


def _is_a_link(descriptor: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
    except OSError:
        return False


def link_error(place: Path) -> PublishError:
    """What to say of a link."""
    return PublishError(
        f"{place}: is a symbolic link, and below the output and state folders none is followed;"
        " remove it, or name another folder with --out or --state",
        code="output.link",
    )


def _remove(descriptor: int, name: str) -> None:
    """Removes a file, a link, or a folder with all that is in it, however deep."""
    if _unlinked(descriptor, name):
        return
    top = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
    try:
        waiting = _names(top)
        while waiting:
            child = waiting.pop()
            if _unlinked(top, child):
                continue
            below = os.open(child, _FOLDER | os.O_NOFOLLOW, dir_fd=top)
            try:
                for deeper in _names(below):
                    if not _unlinked(below, deeper):
                        # moved up: neither descriptors nor the stack grow with the depth
                        waiting.append(f".{uuid4().hex}")
                        os.rename(deeper, waiting[-1], src_dir_fd=below, dst_dir_fd=top)
            finally:
                os.close(below)
            os.rmdir(child, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=descriptor)


def _unlinked(descriptor: int, name: str) -> bool:
    """Removes what is no folder; False for a folder.

    Raises:
        OSError: it cannot be removed.
    """
    try:
        os.unlink(name, dir_fd=descriptor)
    except FileNotFoundError:
        return True
    except OSError as error:
        # Linux says EISDIR of a folder, other systems EPERM
        if error.errno not in (errno.EISDIR, errno.EPERM):
            raise
        found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            raise
        return False
    return True


@contextmanager
def _named(place: Path) -> Iterator[None]:
    """Puts the whole path into an OSError: calls with a descriptor know the last part only."""
    try:
        yield
    except OSError as error:
        # a number where a descriptor was given
        if "/" not in str(error.filename or ""):
            error.filename = os.fspath(place)
            error.filename2 = None
        raise
